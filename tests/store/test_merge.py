"""`merge`: a store brought into another one loses nothing, adds nothing twice and hides nothing."""

import subprocess
import sys
import time
from pathlib import Path

import pytest
from sqlalchemy import Engine, text

from store.errors import StoreError
from store.open.engine import connect, connect_readonly
from store.write.merge import MergedSweep, merge_stores, stored_outcome
from store.write.record import record_imported
from store.write.submission import NewSweep, submit_sweep
from sweeps.model.job import Job
from tests.fixtures import big_store
from tests.fixtures.big_outcomes import ARMS, outcome, vision_job
from tests.fixtures.sql_rows import rows

DERIVED = ("effect_row", "comparison_attempt", "arm_label", "sample_series", "metric_row", "sample")
"""Tables without rows of the sweeps' older revisions."""
SWEEPS = "SELECT name, text, question FROM sweep ORDER BY name"
BREAK_EVENS = "SELECT * FROM break_even ORDER BY sweep, curve_id, metric, axis, environment, x"
MERGE = """
import sys
from store.open.engine import connect, connect_readonly
from store.write.merge import merge_stores
merge_stores(connect(sys.argv[1]), connect_readonly(sys.argv[2]))
"""


def a_job(size: int = 224) -> Job:
    """One arm against the unmodified model."""
    return vision_job("latency", size, ARMS[:2])


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with all kinds of jobs, two environments, failures and waiting jobs."""
    path = tmp_path_factory.mktemp("other") / "other.db"
    big_store.fill(path, 60)
    return path


def content(engine: Engine) -> dict[str, object]:
    """All that the merge of a store is to bring, by attempts' digests in place of their rows."""
    digest = "(SELECT digest FROM attempt WHERE attempt.id = t.attempt) AS attempt"
    found: dict[str, object] = {"sweeps": rows(engine, SWEEPS)}
    for table in DERIVED:
        names = [row["name"] for row in rows(engine, f"PRAGMA table_info({table})")]
        # rows of other tables, and what imported outcomes have in place of `measured`
        kept = [name for name in names if name not in {"attempt", "failure", "source"}]
        columns = ", ".join([*kept, *([digest] if "attempt" in names else [])])
        found[table] = sorted(map(str, rows(engine, f"SELECT {columns} FROM {table} AS t")))
    found["break_evens"] = rows(engine, BREAK_EVENS)
    found["attempts"] = rows(
        engine, "SELECT digest, job_id, host, payload, protocol FROM attempt ORDER BY digest"
    )
    return found


def test_all_comes_and_nothing_twice(other: Path, tmp_path: Path) -> None:
    """Sweeps, attempts bit by bit, effects and break-evens are those of the other store; the second
    merge changes no row.
    """
    source, mine = connect_readonly(str(other)), connect(str(tmp_path / "mine.db"))
    first = merge_stores(mine, source)
    assert first.attempts == rows(source, "SELECT count(*) AS n FROM attempt")[0]["n"]
    assert (first.known, [sweep.new for sweep in first.sweeps]) == (0, [True] * 4)
    merged, there = content(mine), content(source)
    for part in there:
        assert merged[part] == there[part], part
    assert rows(mine, "SELECT count(*) AS n FROM job")[0]["n"] == 0
    second = merge_stores(mine, source)
    assert (second.attempts, second.known) == (0, first.attempts)
    assert not any(sweep.new for sweep in second.sweeps)
    assert content(mine) == merged


def test_outcomes_come_back_as_they_were(other: Path) -> None:
    """Of every kind of job."""
    source = connect_readonly(str(other))
    job = next(big_store.large_jobs(60))
    kinds = set()
    with source.connect() as connection:
        for row in rows(source, "SELECT id, digest FROM attempt"):
            found = stored_outcome(connection, row["id"])
            kinds.add(found.job.kind)
            if found.job.job_id == job.job_id:
                assert found == outcome(job, 0)
    assert kinds == {"latency", "accuracy", "profile", "generation", "quality"}


def test_machines_stand_side_by_side(tmp_path: Path) -> None:
    """Two hosts that answered one question have an effect each; no effect counts attempts of
    both.
    """
    job = a_job()
    engines = []
    for name in ("a", "b"):
        engine = connect(str(tmp_path / f"{name}.db"))
        measured = outcome(job).model_copy(update={"host": name})
        submit_sweep(engine, NewSweep("one", "name: one", "?"), [job], [])
        record_imported(engine, [measured])
        engines.append(engine)
    merged = merge_stores(*engines)
    assert (merged.attempts, merged.sweeps) == (1, [MergedSweep("one", "one", False)])
    found = rows(engines[0], "SELECT host, rounds FROM speedup ORDER BY host")
    assert found == [{"host": "a", "rounds": 1}, {"host": "b", "rounds": 1}]


def test_a_sweep_of_the_same_name_is_not_hidden(tmp_path: Path) -> None:
    """Its text is another one: it comes under a name of its own, twice the same."""
    mine, other = (connect(str(tmp_path / f"{name}.db")) for name in ("mine", "other"))
    submit_sweep(mine, NewSweep("one", "name: one", "?"), [a_job(64)], [])
    submit_sweep(other, NewSweep("one", "name: one # more", "?"), [a_job(96)], [])
    (sweep,) = merge_stores(mine, other).sweeps
    assert (sweep.name, sweep.here.startswith("one-"), sweep.new) == ("one", True, True)
    assert merge_stores(mine, other).sweeps == [sweep._replace(new=False)]
    assert [row["name"] for row in rows(mine, SWEEPS)] == ["one", sweep.here]


def test_waiting_jobs_stay(tmp_path: Path) -> None:
    """A sweep that still waits here waits on."""
    mine, other = (connect(str(tmp_path / f"{name}.db")) for name in ("mine", "other"))
    for engine in (mine, other):
        submit_sweep(engine, NewSweep("one", "name: one", "?"), [a_job(64)], [a_job(64)])
    merge_stores(mine, other)
    assert rows(mine, "SELECT state FROM job") == [{"state": "waiting"}]


def test_nothing_is_lost_when_it_is_killed(other: Path, tmp_path: Path) -> None:
    """What came before stays whole, and the next merge brings the rest."""
    path = tmp_path / "mine.db"
    mine = connect(str(path))
    process = subprocess.Popen([sys.executable, "-c", MERGE, str(path), str(other)])
    while not rows(mine, "SELECT 1 FROM attempt LIMIT 1"):
        assert process.poll() is None
        time.sleep(0.01)
    process.kill()
    process.wait()
    came = rows(mine, "SELECT count(*) AS n FROM attempt")[0]["n"]
    assert rows(mine, "PRAGMA integrity_check") == [{"integrity_check": "ok"}]
    source = connect_readonly(str(other))
    rest = merge_stores(mine, source)
    assert rest.known == came
    assert content(mine) == content(source)


def test_what_cannot_be_merged_is_refused(tmp_path: Path) -> None:
    """Another schema, in one line; a damaged attempt, after those before it."""
    other = connect(str(tmp_path / "other.db"))
    record_imported(other, [outcome(a_job(64)), outcome(a_job(96))])
    with other.begin() as connection:
        connection.execute(text("UPDATE attempt SET payload = '{}' WHERE id = 2"))
    mine = connect(str(tmp_path / "mine.db"))
    with pytest.raises(StoreError, match="attempt 2 of the other store is damaged"):
        merge_stores(mine, other)
    assert rows(mine, "SELECT count(*) AS n FROM attempt") == [{"n": 1}]
    with other.begin() as connection:
        connection.execute(text("DROP VIEW store_fingerprint"))
        connection.execute(text("UPDATE alembic_version SET version_num = '0011'"))
    with pytest.raises(StoreError, match="version") as refused:
        connect_readonly(str(tmp_path / "other.db"))
    assert "\n" not in str(refused.value)
