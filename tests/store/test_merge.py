"""`merge`: a store brought into another one loses nothing, adds nothing twice and hides nothing."""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine, text

from store.errors import StoreError
from store.open.engine import connect, connect_readonly
from store.write.merge import MergedSweep, merge_stores, stored_outcome
from store.write.record import record_imported
from tests.fixtures import big_store
from tests.fixtures.big_outcomes import outcome
from tests.fixtures.sql_rows import rows
from tests.store.conftest import a_job, an_outcome, submit, table

DERIVED = ("effect_row", "comparison_attempt", "arm_label", "sample_series", "metric_row", "sample")
"""Tables without rows of the sweeps' older revisions."""
SWEEPS = "SELECT name, text, question FROM sweep ORDER BY name"
BREAK_EVENS = "SELECT * FROM break_even ORDER BY sweep, curve_id, metric, axis, environment, x"
ATTEMPTS = "SELECT digest, job_id, host, payload, protocol FROM attempt ORDER BY digest"
COUNT = "SELECT count(*) FROM attempt"
MERGE = """
import sys
from store.open.engine import connect, connect_readonly
from store.write.merge import merge_stores
merge_stores(connect(sys.argv[1]), connect_readonly(sys.argv[2]))
"""


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Engine]:
    """Another empty store."""
    engine = connect(str(tmp_path / "other.db"))
    yield engine
    engine.dispose()


def content(engine: Engine) -> dict[str, object]:
    """All that the merge of a store is to bring, by attempts' digests in place of their rows."""
    digest = "(SELECT digest FROM attempt WHERE attempt.id = t.attempt) AS attempt"
    found: dict[str, object] = {sql: table(engine, sql) for sql in (SWEEPS, BREAK_EVENS, ATTEMPTS)}
    for of in DERIVED:
        names = [row["name"] for row in rows(engine, f"PRAGMA table_info({of})")]
        # rows of other tables, and what imported outcomes have in place of `measured`
        kept = [name for name in names if name not in {"attempt", "failure", "source"}]
        columns = ", ".join([*kept, *([digest] if "attempt" in names else [])])
        found[of] = sorted(map(str, rows(engine, f"SELECT {columns} FROM {of} AS t")))
    return found


def test_all_comes_and_nothing_twice(engine: Engine, path: Path, tmp_path: Path) -> None:
    """Sweeps, attempts bit by bit, effects and break-evens are those of the other store, which has
    all kinds of jobs, two environments, failures and waiting jobs. A merge that is killed leaves
    what came before whole, and the next one adds the rest; one more changes no row.
    """
    big_store.fill(tmp_path / "big.db", 60)
    process = subprocess.Popen([sys.executable, "-c", MERGE, str(path), str(tmp_path / "big.db")])
    while not table(engine, "SELECT 1 FROM attempt LIMIT 1"):
        assert process.poll() is None
        time.sleep(0.01)
    process.kill()
    process.wait()
    ((came,),) = table(engine, COUNT)
    assert table(engine, "PRAGMA integrity_check") == [("ok",)]
    source = connect_readonly(str(tmp_path / "big.db"))
    rest = merge_stores(engine, source)
    assert (rest.known, [(rest.attempts + rest.known,)]) == (came, table(source, COUNT))
    merged, there = content(engine), content(source)
    for part in there:
        assert merged[part] == there[part], part
    assert table(engine, "SELECT count(*) FROM job") == [(0,)]
    again = merge_stores(engine, source)
    assert (again.attempts, again.known) == (0, rest.attempts + came)
    assert not any(sweep.new for sweep in again.sweeps)
    assert content(engine) == merged
    job, kinds = next(big_store.large_jobs(60)), set()
    with source.connect() as connection:
        for (row,) in table(source, "SELECT id FROM attempt"):
            found = stored_outcome(connection, row)
            kinds.add(found.job.kind)
            assert found.job.job_id != job.job_id or found == outcome(job, 0)
    source.dispose()
    assert kinds == {"latency", "accuracy", "profile", "generation", "quality"}


def test_machines_stand_side_by_side(engine: Engine, other: Engine) -> None:
    """Two hosts that answered one question have an effect each; no effect counts attempts of
    both. A sweep that still waits here waits on.
    """
    for host, each in (("a", engine), ("b", other)):
        submit(each, [a_job()], "one")
        record_imported(each, [an_outcome(a_job(), host=host)])
    merged = merge_stores(engine, other)
    assert (merged.attempts, merged.sweeps) == (1, [MergedSweep("one", "one", False)])
    found = table(engine, "SELECT host, rounds FROM speedup ORDER BY host")
    assert found == [("a", 1), ("b", 1)]
    assert table(engine, "SELECT state FROM job") == [("waiting",)]


def test_a_sweep_of_the_same_name_is_not_hidden(engine: Engine, other: Engine) -> None:
    """Its text is another one: it comes under a name of its own, twice the same."""
    submit(engine, [a_job(64)], "one")
    submit(other, [a_job(96)], "one", "another text")
    (sweep,) = merge_stores(engine, other).sweeps
    assert (sweep.name, sweep.here.startswith("one-"), sweep.new) == ("one", True, True)
    assert merge_stores(engine, other).sweeps == [sweep._replace(new=False)]
    assert [name for name, *_ in table(engine, SWEEPS)] == ["one", sweep.here]


def test_a_damaged_attempt_is_refused(engine: Engine, other: Engine) -> None:
    """After those before it came."""
    record_imported(other, [an_outcome(a_job(64)), an_outcome(a_job(96))])
    with other.begin() as connection:
        connection.execute(text("UPDATE attempt SET payload = '{}' WHERE id = 2"))
    with pytest.raises(StoreError, match="attempt 2 of the other store is damaged"):
        merge_stores(engine, other)
    assert table(engine, COUNT) == [(1,)]
