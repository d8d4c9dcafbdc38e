"""PostgreSQL in SQLite's place: the schema, what is recorded, and the views, which show the same
rows on both.
"""

import itertools
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Engine, create_engine, inspect, text
from sqlalchemy.exc import ProgrammingError
from sqlalchemy.pool import NullPool

from store.errors import StoreError, StoreOutageError
from store.open import migration
from store.open.engine import connect, connect_readonly, state_mark
from store.read.answers import answers
from store.read.curves import claims_of_curves
from store.read.evidence.evidence import point_evidence, similar_comparisons
from store.read.evidence.history import question_history
from store.read.evidence.side_by_side import side_by_side, side_choices
from store.read.runs import failure_classes, run_progress, seconds_left
from store.read.user_sql import open_query, run_query
from store.rows.transactions import WRITER_LOCK, writing
from store.schema.tables import model_metadata
from store.views import public
from store.write import queue
from store.write.reanalysis import reanalyse
from store.write.record import record, record_imported
from store.write.references import import_references
from store.write.submission import newest_attempt
from sweeps.importers.tables import load_reference, shipped_references
from sweeps.model.job import Protocol
from sweeps.model.metrics import METRICS, MetricSpec
from sweeps.model.outcome import Failure
from tests.fixtures.quality_states import filled, found_states
from tests.fixtures.sql_rows import rows
from tests.orchestrator.commands import breakeven
from tests.store import postgresql
from tests.store.conftest import (
    CLAIM,
    CPU,
    a_job,
    an_evaluation,
    an_outcome,
    check_order_of_submissions,
    keep,
    keep_curve,
    submit,
    table,
)
from tests.store.language_fixtures import (
    a_generation,
    a_generation_job,
    a_quality_job,
    a_reading,
    larosa,
)

PROGRAMS = postgresql.programs()
pytestmark = pytest.mark.skipif(
    PROGRAMS is None, reason="needs PostgreSQL: apt-get install postgresql"
)
PROFILED = {"profile", "kernel"}
"""Views of what only profile jobs and imported traces hold."""
ENDLESS = "WITH RECURSIVE a(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM a) SELECT x FROM a"


@pytest.fixture(scope="module")
def server() -> Iterator[Path]:
    assert PROGRAMS is not None
    with postgresql.serving(PROGRAMS) as folder:
        yield folder


@pytest.fixture
def place(server: Path, tmp_path: Path) -> str:
    """The URL of a new database."""
    return postgresql.database(server, tmp_path.name)


@pytest.fixture
def engines(place: str, engine: Engine) -> Iterator[tuple[Engine, Engine]]:
    """Two empty stores: PostgreSQL and SQLite."""
    yield (there := connect(place)), engine
    there.dispose()


def shown(engine: Engine, view: str) -> list[dict[str, Any]]:
    """The rows of a view in an order of their own, since none is promised."""
    return sorted(rows(engine, f"SELECT * FROM {view}"), key=str)


def test_the_schema_is_that_of_the_tables(engines: tuple[Engine, Engine], place: str) -> None:
    """A new store has exactly the tables, columns and indexes of the models, and its views the
    columns of those on SQLite; opening it again changes nothing. Its mark changes with a commit,
    and not by reading.
    """
    there, _ = engines
    with there.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), model_metadata()) == []
        assert migration.version(connection) == migration.SCHEMA
    connect(place).dispose()
    for view in public.VIEWS:
        of, own = ([each["name"] for each in inspect(e).get_columns(view)] for e in engines)
        assert of == own
    before = state_mark(place)
    assert state_mark(place) == before
    check_order_of_submissions(there)
    assert state_mark(place) != before


def test_views_are_shown_alike(engines: tuple[Engine, Engine], place: str, path: Path) -> None:
    """Break-evens along the prompt and along what is saved, failed arms, a vision sweep with its
    accuracy and published tables give the same rows in every view, analysed again by two processes
    too, joined in SQL, and as answers.
    """
    arms = [larosa(share) for share in (0.25, 0.4, 0.5)]
    full = Failure(arm=1, reason="out_of_memory", message="prefill")
    gains = ((16, 0.8), (64, 0.9), (256, 1.3))
    outcomes = [
        *(a_generation(a_generation_job(size), (1.0, gain)) for size, gain in gains),
        a_generation(a_generation_job(128, arms), (1.0, 0.9, 1.2, 1.4)),
        a_generation(a_generation_job(512), failures=[full]),
        a_reading(a_quality_job()),
        an_outcome(a_job()),
        an_evaluation(a_job(kind="accuracy")),
    ]
    for engine in engines:
        submit(engine, [each.job for each in outcomes])
        assert record_imported(engine, outcomes) == len(outcomes)
        assert not keep(engine, outcomes[0])
        import_references(engine, [load_reference(name) for name in shipped_references()])
    found = {view: shown(engines[0], view) for view in public.VIEWS}
    assert found == {view: shown(engines[1], view) for view in public.VIEWS}
    assert {view for view in found if not found[view]} == PROFILED
    curves = table(engines[0], "SELECT metric, axis FROM break_even")
    assert {metric for metric, _ in curves} >= {"ttft", "tpot", "time_per_char"}
    assert {axis for _, axis in curves} >= {"tokens", "gmacs", "gmacs_saved"}
    joined = """SELECT s.speedup, q.bits_per_byte_change FROM speedup AS s JOIN quality AS q
      ON q.arm_id = s.arm_id AND q.model = s.model AND q.weights = s.weights
      WHERE s.metric = 'tpot' ORDER BY 1"""
    both = [run_query(of, joined).rows for of in (place, str(path))]
    assert both[0] == both[1] != []
    assert reanalyse(engines[0], processes=2) == 10
    assert {view: shown(engines[0], view) for view in public.VIEWS} == found
    ids = dict.fromkeys(outcomes[0].job.comparison_ids(), Protocol())
    of, own = (answers(engine, ids, [CPU.environment_id]).answered for engine in engines)
    assert of == own != set()


def test_queries_can_only_read_and_end(place: str) -> None:
    """Writing, a second statement and what takes too long are refused; rows come as they are found,
    and no more than requested.
    """
    connect(place).dispose()
    for sql, problem in {
        "DELETE FROM sweep": "only reading is allowed here",
        "WITH gone AS (DELETE FROM sweep RETURNING id) SELECT id FROM gone": "data-modifying",
        "SELECT 1; DELETE FROM sweep": "multiple commands",
        "SELECT pg_sleep(9)": "timeout",
    }.items():
        with pytest.raises(StoreError, match=problem):
            run_query(place, sql, seconds=0.2)
    with open_query(place, ENDLESS) as stream:
        assert [x for (x,) in itertools.islice(stream, 3)] == [1, 2, 3]
    assert run_query(place, ENDLESS, rows=1000).truncated


def test_a_declared_metric_is_a_column_for_readers_and_writers(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a store made before the declaration: readers have views of their own, a writer makes those
    of the store anew. A database without a store is refused to readers, and keeps no connection.
    """
    with pytest.raises(StoreError):
        connect_readonly(place)
    assert queue.derive_before_reading(place) == place
    plain = create_engine(place.replace("postgresql:", "postgresql+psycopg:"), poolclass=NullPool)
    connections = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
    assert table(plain, connections) == [(1,)]
    made = connect(place)
    keep(made, an_outcome(a_job()))
    made.dispose()
    toy = MetricSpec(name="toy_energy", unit="J", label="toy energy")
    monkeypatch.setitem(METRICS, "toy_energy", toy)
    column = "SELECT toy_energy FROM arm"
    assert run_query(place, column).rows == [(None,), (None,)]
    reader = connect_readonly(place)
    with pytest.raises(StoreError), writing(reader) as connection:
        connection.execute(text("DELETE FROM sample"))
    reader.dispose()
    with pytest.raises(ProgrammingError):
        table(plain, column)
    connect(place).dispose()
    assert len(table(plain, column)) == 2


def test_leases_hold_whatever_clock_their_host_has(place: str) -> None:
    """A host whose clock is two hours off keeps the job that it has just taken, and takes none that
    another one holds.
    """
    engine = connect(place)
    sweep = submit(engine, [a_job(32), a_job(64)])
    queue.claim(engine, sweep, owner="here:1:1")
    taken = [sys.executable, "-c", CLAIM, place, str(sweep), "-7200"]
    done = subprocess.run(taken, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1", "0"]
    assert queue.recover(engine) == 0
    engine.dispose()


def test_a_server_that_restarts_is_reached_again(tmp_path: Path) -> None:
    """What was open before its end works once it is back, and waits while it is away. Where nothing
    answers the exit code of a command is 1, where the server refuses the name of a database 2.
    """
    assert PROGRAMS is not None
    with tempfile.TemporaryDirectory(prefix="pg-", dir="/tmp") as made:

        def status() -> tuple[int, int]:
            url = f"postgresql://breakeven@/none?host={made}"
            done = breakeven("status", "--db", url, folder=tmp_path)
            return done.returncode, done.stderr.count("\n")

        with postgresql.serving(PROGRAMS, Path(made)) as folder:
            place = postgresql.database(folder, "restarted")
            engine, reader = connect(place), connect_readonly(place)
            sweep = submit(engine, [a_job(32), a_job(64)])
            assert queue.waiting_devices(reader, sweep) == {"cpu"}
            assert status() == (2, 1)
        assert status() == (1, 1)
        begun = threading.Event()

        def claimed() -> list[queue.QueuedJob]:
            begun.set()
            return queue.claim(engine, sweep, owner="here:1:1")

        with ThreadPoolExecutor(1) as waiting:
            found = waiting.submit(claimed)
            assert begun.wait(10)
            time.sleep(0.6)
            assert not found.done()
            with postgresql.serving(PROGRAMS, Path(made)):
                assert len(found.result(timeout=60)) == 1
                assert queue.renew(engine, "here:1:1") == 1
                assert queue.waiting_devices(reader, sweep) == {"cpu"}
        engine.dispose()
        reader.dispose()


def test_a_restart_within_a_transaction(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dispatchers whose transactions a restart ends repeat them, and take a job each; where the
    server stays away, it is named after a while, with what to do.
    """
    assert PROGRAMS is not None
    waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted"
    with (
        tempfile.TemporaryDirectory(prefix="pg-", dir="/tmp") as made,
        ThreadPoolExecutor() as pool,
    ):
        with postgresql.serving(PROGRAMS, Path(made)) as folder:
            place = postgresql.database(folder, "restarted")
            engine = connect(place)
            sweep = submit(engine, [a_job(32), a_job(64)])
            with closing(psycopg.connect(place, autocommit=True)) as holder:
                holder.execute("SELECT pg_advisory_lock(%s)", [WRITER_LOCK])
                claims = [
                    pool.submit(queue.claim, engine, sweep, owner=f"here:{number}:1")
                    for number in (1, 2)
                ]
                while holder.execute(waiting).fetchone() != (2,):
                    assert not any(claim.done() for claim in claims)
                    time.sleep(0.05)
        with postgresql.serving(PROGRAMS, Path(made)):
            assert [len(claim.result(timeout=90)) for claim in claims] == [1, 1]
            assert queue.progress(engine, sweep).counts["running"] == 2
        monkeypatch.setattr("store.rows.transactions.RECONNECT_S", 0.5)
        with pytest.raises(StoreOutageError, match=r"once it is back the same command goes on$"):
            queue.claim(engine, sweep, owner="here:1:1")
        engine.dispose()


def test_states_and_queued_jobs_are_the_same(engines: tuple[Engine, Engine]) -> None:
    """What is measured, failed, queued or neither. Of three pairs one is measured by a part of a
    split job and one was answered after the plan: only the third is queued.
    """
    whole, there = a_job(keep_rates=(0.3, 0.5, 0.7)), "elsewhere:1:1"
    parts = [whole.only([pair]) for pair in whole.pairs]
    states = []
    for engine in engines:
        filled(engine)
        states.append(found_states(engine))
        since = newest_attempt(engine)
        sweep = submit(engine, [whole])
        (claimed,) = queue.claim(engine, sweep, owner=there)
        first, *_ = queue.split(engine, claimed.row, there, parts)
        queue.claim(engine, sweep, owner=there, limit=2)
        record(engine, first, there, an_outcome(parts[0]))
        submit(engine, [whole], since=since)
        rest = queue.claim(engine, sweep, owner="here:1:1", limit=9)
        assert [each.job for each in rest] == parts[2:]
        held = {holder.owner: holder.jobs for holder in queue.held(engine, sweep)}
        assert held[there] == 1
        progress = next(each for each in run_progress(engine, now=1e12) if each.sweep == "sweep")
        assert (progress.waiting, progress.running, progress.ended) == (0, 2, 1)
        assert progress.left_s == seconds_left(engine, sweep, now=1e12)
        assert failure_classes(engine, "sweep") == []
    assert states[0] == states[1]
    assert len(states[0]) == 4


def test_evidence_sides_history_and_claims_are_equal(engines: tuple[Engine, Engine]) -> None:
    """What the pages Evidence and Compare read is the same on both. The cost model puts the likeliest
    place into the bracket of the points, in a sweep and by the curve.
    """
    gains = {32: 0.8, 48: 0.9, 64: 0.97, 96: 1.06, 128: 1.15, 160: 1.22, 192: 1.28, 224: 1.32}
    job, found = a_job(224), []
    (question,), (comparison,) = job.comparisons(), job.comparison_ids()
    for engine in engines:
        keep_curve(engine, gains)
        wanted = "curve_id, x, x_low, x_high FROM break_even WHERE axis = 'tokens'"
        ((curve, x, low, high),) = table(engine, f"SELECT {wanted}")
        assert low < x < high
        ((claim,),) = claims_of_curves(engine, [curve], "latency").values()
        assert claim.x == x
        record_imported(engine, [an_outcome(job, seed=2, ended_at=1_790_086_400.0)])
        evidence = point_evidence(engine, comparison)
        days = side_choices(engine, "date")
        sides = side_by_side(engine, "date", *(choice.value for choice in reversed(days)))
        history = question_history(engine, question.question_id)
        with pytest.raises(StoreError, match=r"nearest: \w+"):
            point_evidence(engine, f"{comparison[:-1]}x")
        named = [row["comparison_id"] for row in similar_comparisons(engine, "topk deit 224")]
        differences: list[Any] = [row.difference for row in sides.rows]
        pooling = evidence.timed[0].pooling
        found.append((x, (pooling, days, differences, history.points, named)))
        place = side_choices(engine, "environment")[0].value
        assert side_by_side(engine, "environment", place, place).rows
    (x_there, there), (x_here, here) = found
    assert there == here
    assert x_there == pytest.approx(x_here)
