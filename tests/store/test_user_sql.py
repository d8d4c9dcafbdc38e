"""SQL of users can read and do nothing else, whatever it tries."""

import hashlib
import itertools
import time
from pathlib import Path

import pytest
from sqlalchemy import Engine

from store.errors import StoreError
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


@pytest.fixture
def store(engine: Engine, path: Path) -> str:
    """The path of a store with two answers."""
    for size in (64, 128):
        record.record(engine, None, None, an_outcome(a_job(size)))
    engine.dispose()
    return str(path)


def test_select(store: str) -> None:
    """A query returns columns and rows, and whether there are more."""
    found = run_query(store, "SELECT tokens, speedup FROM speedup ORDER BY tokens")
    assert found.columns == ("tokens", "speedup")
    assert [row[0] for row in found.rows] == [16, 64]
    assert not found.truncated
    assert run_query(
        store, "SELECT tokens FROM speedup ORDER BY tokens", rows=1
    ) == user_sql.Result(("tokens",), [(16,)], True)
    assert not run_query(store, "SELECT tokens FROM speedup", rows=2).truncated


@pytest.mark.parametrize("sql", WRITES)
def test_writing_is_refused(store: str, tmp_path: Path, sql: str) -> None:
    """No statement but SELECT has an effect, and the message names what is allowed."""
    before = {
        file: hashlib.sha256(file.read_bytes()).hexdigest()
        for file in tmp_path.iterdir()
        if file.suffix == ".db"
    }
    with pytest.raises(StoreError, match="only reading is allowed here: one SELECT"):
        run_query(store, sql.format(folder=tmp_path))
    assert {
        file: hashlib.sha256(file.read_bytes()).hexdigest()
        for file in tmp_path.iterdir()
        if file.suffix == ".db"
    } == before


@pytest.mark.parametrize("sql", ["SELECT 1; DELETE FROM attempt", "SELECT 1; SELECT 2"])
def test_one_statement(store: str, sql: str) -> None:
    """Two statements are refused, and the second is not run."""
    with pytest.raises(StoreError, match="one statement at a time"):
        run_query(store, sql)
    assert run_query(store, "SELECT count(*) FROM attempt").rows == [(2,)]


@pytest.mark.parametrize(
    "function",
    [
        "load_extension('x')",
        "readfile('/etc/passwd')",
        "writefile('x', 'y')",
        "fts3_tokenizer('simple')",
    ],
)
def test_functions_that_reach_out(store: str, function: str) -> None:
    """Functions that read files, write files or load code are refused by name."""
    with pytest.raises(StoreError, match=function.partition("(")[0]):
        run_query(store, f"SELECT {function}")


@pytest.mark.alone
@pytest.mark.parametrize(
    "sql", [f"{ENDLESS} SELECT count(*) FROM a", f"{ENDLESS} SELECT max(x) FROM a GROUP BY x % 2"]
)
def test_endless_query(store: str, sql: str) -> None:
    """An endless query ends at its time limit."""
    start = time.monotonic()
    with pytest.raises(StoreError, match=r"took longer than 0\.2 s"):
        run_query(store, sql, seconds=0.2)
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
    with open_query(store, sql, seconds=1.0) as rows:
        for _ in itertools.islice(rows, 2):
            time.sleep(0.6)
        assert len(list(rows)) > 1000


def test_endless_rows(store: str) -> None:
    """Endlessly many rows end at the row limit."""
    found = run_query(store, f"{ENDLESS} SELECT x FROM a", rows=500)
    assert (len(found.rows), found.truncated) == (500, True)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT zeroblob(900000000)",
        "SELECT length(randomblob(2000000000))",
        "SELECT hex(zeroblob(200000))",
        (
            "SELECT group_concat(hex(zeroblob(100000))) FROM (SELECT 1 UNION ALL SELECT 2 UNION ALL"
            " SELECT 3)"
        ),
        "SELECT replace(hex(zeroblob(100000)), '0', '0000')",
    ],
)
def test_huge_values(store: str, sql: str) -> None:
    """No value may be longer than the limit, however it is made."""
    with pytest.raises(StoreError, match="a value longer than 250 kB"):
        run_query(store, sql)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT printf('%.*c', 1000000000, 'x')",
        "SELECT format('%1000000000d', 1)",
        "SELECT trim('a', 'b')",
    ],
)
def test_functions_that_cannot_be_interrupted(store: str, sql: str) -> None:
    """Functions of which one call may run for minutes are refused."""
    with pytest.raises(StoreError, match=r"printf|format|trim"):
        run_query(store, sql)


def test_many_large_values(store: str) -> None:
    """A result stops growing at its limit of bytes."""
    found = run_query(store, f"{ENDLESS} SELECT zeroblob(200000) FROM a")
    assert found.truncated
    assert len(found.rows) == user_sql.RESULT_BYTES // 200_000


def test_memory(store: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Sorting more than fits ends at the memory limit, and nothing is spilled to a file."""
    monkeypatch.setattr(user_sql, "MEMORY_BYTES", 50_000_000)
    with pytest.raises(StoreError, match="more than 50 MB of memory"):
        run_query(store, f"{ENDLESS} SELECT x, randomblob(2000) FROM a ORDER BY 2", seconds=30)


def test_unknown_names(store: str) -> None:
    """An unknown column or view is answered with the nearest ones."""
    with pytest.raises(
        StoreError, match=r"no such column: speed_up; did you mean speedup \(of speedup\)"
    ):
        run_query(store, "SELECT speed_up FROM speedup")
    with pytest.raises(StoreError, match=r"no such table: breakeven; did you mean break_even"):
        run_query(store, "SELECT * FROM breakeven")
    with pytest.raises(StoreError, match="the views are effect, speedup, accuracy"):
        run_query(store, "SELECT * FROM qqq")


@pytest.mark.parametrize(
    ("sql", "message"),
    [("", "the query is empty"), ("-- nothing", "the query is empty"), ("SELCT 1", "syntax error")],
)
def test_mistakes(store: str, sql: str, message: str) -> None:
    """The message for a mistake is one line."""
    with pytest.raises(StoreError, match=message):
        run_query(store, sql)
