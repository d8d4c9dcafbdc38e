"""SQL of users can read and do nothing else, whatever it tries."""

import hashlib
import itertools
import shutil
import time
from pathlib import Path

import pytest

from store.errors import StoreError
from store.open.engine import connect
from store.read import user_sql
from store.read.user_sql import open_query, run_query
from store.write import record
from tests.store.conftest import a_job, an_outcome

ENDLESS = "WITH RECURSIVE a(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM a)"
WRITES = [
    "INSERT INTO sweep (name) VALUES ('x')",
    "UPDATE attempt SET host = 'elsewhere'",
    "DELETE FROM attempt",
    "WITH x AS (SELECT 1) DELETE FROM attempt",
    "DROP TABLE attempt",
    "ALTER TABLE sweep RENAME TO swept",
    "CREATE TABLE x (a)",
    "CREATE TEMP TABLE x (a)",
    "CREATE VIEW x AS SELECT 1",
    "ATTACH DATABASE '{folder}/attached.db' AS other",
    "VACUUM",
    "VACUUM INTO '{folder}/copy.db'",
    "PRAGMA journal_mode = DELETE",
    "PRAGMA writable_schema = 1",
    "PRAGMA user_version = 7",
    "SELECT * FROM pragma_table_info('sweep')",
    "REINDEX",
    "ANALYZE",
    "BEGIN IMMEDIATE",
    "SAVEPOINT x",
    "DETACH DATABASE main",
]
REFUSED = {
    "SELECT 1; DELETE FROM attempt": "one statement at a time",
    "SELECT load_extension('x')": "load_extension",
    "SELECT readfile('/etc/passwd')": "readfile",
    "SELECT writefile('x', 'y')": "writefile",
    "SELECT fts3_tokenizer('simple')": "fts3_tokenizer",
    # of which one call may run for minutes
    "SELECT printf('%.*c', 1000000000, 'x')": "printf",
    "SELECT format('%1000000000d', 1)": "format",
    "SELECT trim('a', 'b')": "trim",
    "SELECT zeroblob(900000000)": "a value longer than 250 kB",
    "SELECT length(randomblob(2000000000))": "a value longer than 250 kB",
    "SELECT hex(zeroblob(200000))": "a value longer than 250 kB",
    "SELECT group_concat(hex(zeroblob(100000))) FROM (VALUES (1), (2), (3))": "longer than 250 kB",
    "SELECT replace(hex(zeroblob(100000)), '0', '0000')": "a value longer than 250 kB",
    "SELECT speed_up FROM speedup": r"no such column: speed_up; did you mean speedup \(of speedup\)",
    "SELECT token FROM speedup": "no such column: token",
    "SELECT * FROM breakeven": "no such table: breakeven; did you mean break_even",
    "SELECT * FROM qqq": "the views are effect, speedup, accuracy",
    "": "the query is empty",
    "-- nothing": "the query is empty",
    "SELCT 1": "syntax error",
}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory, empty_store: Path) -> str:
    """The path of a store with two answers."""
    path = tmp_path_factory.mktemp("sql") / "store.db"
    shutil.copy(empty_store, path)
    engine = connect(str(path))
    for size in (64, 128):
        record.record(engine, None, None, an_outcome(a_job(size)))
    engine.dispose()
    return str(path)


def test_select(store: str) -> None:
    """A query returns columns and rows, and whether there are more than the limit."""
    sizes = "SELECT tokens FROM speedup ORDER BY tokens"
    assert run_query(store, sizes, rows=2) == user_sql.Result(("tokens",), [(16,), (64,)], False)
    assert run_query(store, sizes, rows=1) == user_sql.Result(("tokens",), [(16,)], True)
    found = run_query(store, f"{ENDLESS} SELECT x FROM a", rows=500)
    assert (len(found.rows), found.truncated) == (500, True)
    found = run_query(store, f"{ENDLESS} SELECT zeroblob(200000) FROM a")
    assert (len(found.rows), found.truncated) == (user_sql.RESULT_BYTES // 200_000, True)


def test_writing_is_refused(store: str) -> None:
    """No statement but SELECT has an effect, and the message names what is allowed."""
    folder = Path(store).parent

    def digests() -> dict[Path, str]:
        files = folder.glob("*.db")
        return {file: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}

    before = digests()
    for sql in WRITES:
        with pytest.raises(StoreError, match="only reading is allowed here: one SELECT"):
            run_query(store, sql.format(folder=folder))
        assert digests() == before, sql


def test_what_reaches_out_is_large_or_wrong_is_refused(store: str) -> None:
    """Two statements, functions that read files, load code or cannot be interrupted, values beyond
    the limit however they are made, unknown names (with the nearest ones) and mistakes.
    """
    for sql, message in REFUSED.items():
        with pytest.raises(StoreError, match=message):
            run_query(store, sql)
    assert run_query(store, "SELECT count(*) FROM attempt").rows == [(2,)]


@pytest.mark.alone
def test_endless_query(store: str) -> None:
    """An endless query ends at its time limit."""
    for sql in ("SELECT count(*) FROM a", "SELECT max(x) FROM a GROUP BY x % 2"):
        start = time.monotonic()
        with pytest.raises(StoreError, match=r"took longer than 0\.2 s"):
            run_query(store, f"{ENDLESS} {sql}", seconds=0.2)
        assert time.monotonic() - start < 30


def consume(store: str, sql: str, work: int) -> None:
    """Read all rows within a time that does not suffice, with some work for each."""
    with open_query(store, sql, seconds=0.2, rows=10**9) as rows:
        for _ in rows:
            sum(range(work))


def test_time_counts_while_rows_are_read(store: str) -> None:
    """The time limit covers all rows and what is done between them, but not waiting there."""
    sql = f"{ENDLESS} SELECT x FROM a"
    for work in (0, 100_000):
        with pytest.raises(StoreError, match=r"took longer than 0\.2 s"):
            consume(store, sql, work)
    with open_query(store, sql, seconds=1.0, rows=1000) as rows:
        for _ in itertools.islice(rows, 2):
            time.sleep(0.6)
        assert len(list(rows)) == 998


def test_memory(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sorting more than fits ends at the memory limit, and nothing is spilled to a file."""
    monkeypatch.setattr(user_sql, "MEMORY_BYTES", 50_000_000)
    with pytest.raises(StoreError, match="more than 50 MB of memory"):
        run_query(store, f"{ENDLESS} SELECT x, randomblob(2000) FROM a ORDER BY 2", seconds=30)
