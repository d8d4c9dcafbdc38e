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
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Engine, create_engine, inspect, text
from sqlalchemy.exc import ProgrammingError
from sqlalchemy.pool import NullPool

from store.errors import StoreError
from store.open import migration
from store.open.engine import connect, connect_readonly, state_mark
from store.read.answers import answers
from store.read.curves import claims_of_curves
from store.read.evidence.evidence import point_evidence, similar_comparisons
from store.read.evidence.history import question_history
from store.read.evidence.side_by_side import side_by_side, side_choices
from store.read.queries import sweep_rows
from store.read.runs import failure_classes, run_progress, seconds_left
from store.read.user_sql import open_query, run_query
from store.rows.transactions import writing
from store.schema.tables import model_metadata
from store.views import public
from store.write import queue
from store.write.reanalysis import reanalyse
from store.write.record import record, record_imported
from store.write.references import import_references
from store.write.submission import NewSweep, newest_attempt, submit_sweep
from sweeps.importers.tables import load_reference, shipped_references
from sweeps.model.condition import Condition, Overrides
from sweeps.model.job import DENSE, Arm, Job, Pair, Protocol
from sweeps.model.metrics import METRICS, MetricSpec
from sweeps.model.outcome import Failure, Outcome
from tests.fixtures.quality_states import filled, found_states
from tests.orchestrator.commands import breakeven
from tests.store import postgresql
from tests.store.conftest import (
    CLAIM,
    a_job,
    an_evaluation,
    an_outcome,
    check_order_of_submissions,
    keep,
    submit,
)
from tests.store.language_fixtures import (
    a_generation,
    a_generation_job,
    a_quality_job,
    a_reading,
    larosa,
)
from tests.workers.saved_llm import saved, written
from workers.run import run

PROGRAMS = postgresql.programs()
pytestmark = pytest.mark.skipif(
    PROGRAMS is None, reason="needs PostgreSQL: apt-get install postgresql"
)


@pytest.fixture(scope="module")
def server() -> Iterator[Path]:
    assert PROGRAMS is not None
    with postgresql.serving(PROGRAMS) as folder:
        yield folder


@pytest.fixture
def engines(server: Path, tmp_path: Path) -> Iterator[tuple[Engine, Engine]]:
    """Two empty stores: PostgreSQL and SQLite."""
    both = (
        connect(postgresql.database(server, tmp_path.name)),
        connect(str(tmp_path / "breakeven.db")),
    )
    yield both
    for engine in both:
        engine.dispose()


PROFILED = {"profile", "kernel"}
"""Views of what only profile jobs and imported traces hold."""


def shown(engine: Engine, view: str) -> list[dict[str, Any]]:
    """The rows of a view in an order of their own, since none is promised."""
    with engine.connect() as connection:
        found = [dict(row._mapping) for row in connection.execute(text(f"SELECT * FROM {view}"))]
    return sorted(found, key=str)


def assert_same(engines: tuple[Engine, Engine], *expected: str) -> None:
    """Every view has the same columns and rows in both stores, and those `expected` have some."""
    for view in public.VIEWS:
        there, here = (shown(engine, view) for engine in engines)
        assert there == here
        assert here or view not in expected
        columns = [
            [column["name"] for column in inspect(engine).get_columns(view)] for engine in engines
        ]
        assert columns[0] == columns[1]


def language_outcomes(folder: Path) -> list[Outcome]:
    """What the worker reports of a model of two layers: speed and quality, an arm in bfloat16 and
    one that cannot run beside it.
    """
    condition = {
        "model": str(saved(folder / "model", max_position_embeddings=1024)),
        "weights": "pretrained",
        "data": written(folder / "text"),
        "threads": 1,
    }
    arms = (
        DENSE,
        Arm(overrides=Overrides(dtype="bfloat16")),
        Arm(overrides=Overrides(runtime="compile")),
    )
    pairs, protocol = (
        (Pair(0, 1), Pair(0, 2)),
        Protocol(pairs_min=6, pairs_max=6, budget_s=0.1, characters=800),
    )
    timed = Condition(
        **condition, prompt_tokens=12, new_tokens=5, kv_cache="dynamic", decoding="teacher_forcing"
    )
    speed = Job(kind="generation", condition=timed, arms=arms, pairs=pairs, protocol=protocol)
    quality = Job(
        kind="quality",
        condition=Condition(**condition),
        arms=arms[:2],
        pairs=pairs[:1],
        protocol=protocol,
    )
    return [run(speed, pass_seconds=0.05, isolated=False), run(quality)]


def submitted(engine: Engine, outcomes: list[Outcome]) -> None:
    """Store a sweep that requests what the outcomes answer, and these."""
    requested = [
        (each.job.comparison(Pair(*pair)), each.job.content_hashes)
        for each in outcomes
        for pair in each.job.pairs
    ]
    submit_sweep(engine, NewSweep("language", "text", "?"), requested, [])
    for outcome in outcomes:
        assert keep(engine, outcome)
        assert not keep(engine, outcome)


def test_the_schema_is_that_of_the_tables(engines: tuple[Engine, Engine]) -> None:
    """A new store has exactly the tables, columns and indexes of the models, and opening it again
    changes nothing.
    """
    there, _ = engines
    with there.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), model_metadata()) == []
        assert migration.version(connection) == migration.SCHEMA
    connect(there.url.render_as_string(hide_password=False)).dispose()


def test_what_a_language_model_was_measured_at_is_shown_alike(
    engines: tuple[Engine, Engine], tmp_path: Path
) -> None:
    """A worker's own outcomes, of speed and of quality, give the same rows in every view, joined
    and analysed again too.
    """
    outcomes = language_outcomes(tmp_path)
    for engine in engines:
        submitted(engine, outcomes)
    assert_same(
        engines, "speedup", "arm", "generation", "quality", "failures", "metric", "sweep_comparison"
    )
    assert {row["metric"] for row in shown(engines[0], "speedup")} == {
        "ttft",
        "tpot",
        "time_per_char",
    }
    assert [row["reason"] for row in shown(engines[0], "failures")] == ["unsupported"]
    joined = """SELECT s.speedup, q.bits_per_byte_change FROM speedup AS s JOIN quality AS q
      ON q.arm_id = s.arm_id AND q.model = s.model AND q.weights = s.weights WHERE s.metric = 'tpot'"""
    places = [engine.url.render_as_string(hide_password=False) for engine in engines]
    there, here = (run_query(place, joined).rows for place in places)
    assert there == here != []
    before = {view: shown(engines[0], view) for view in public.VIEWS}
    assert [reanalyse(engine, processes=2) for engine in engines] == [3, 3]
    assert {view: shown(engines[0], view) for view in public.VIEWS} == before
    ids = dict.fromkeys(outcomes[0].job.comparison_ids(), Protocol(pairs_min=6, pairs_max=6))
    here_ids = [outcomes[0].environment.environment_id]
    assert (
        answers(engines[0], ids, here_ids).answered
        == answers(engines[1], ids, here_ids).answered
        != set()
    )


def test_curves_of_language_models_cross_alike(engines: tuple[Engine, Engine]) -> None:
    """Break-evens along the prompt and along what is saved, a failed arm, and a vision sweep beside
    them.
    """
    arms = [larosa(share) for share in (0.25, 0.4, 0.5)]
    outcomes = [
        *(
            a_generation(a_generation_job(size), (1.0, gain))
            for size, gain in ((16, 0.8), (64, 0.9), (256, 1.3))
        ),
        a_generation(a_generation_job(128, arms), (1.0, 0.9, 1.2, 1.4)),
        a_generation(
            a_generation_job(512),
            failures=[Failure(arm=1, reason="out_of_memory", message="prefill")],
        ),
        a_reading(a_quality_job()),
        an_outcome(a_job()),
        an_evaluation(a_job(kind="accuracy")),
    ]
    for engine in engines:
        submitted(engine, outcomes)
        import_references(engine, [load_reference(name) for name in shipped_references()])
    assert_same(engines, *(set(public.VIEWS) - PROFILED))
    assert {row["metric"] for row in shown(engines[0], "break_even")} >= {
        "ttft",
        "tpot",
        "time_per_char",
    }
    assert {row["axis"] for row in shown(engines[0], "break_even")} >= {
        "tokens",
        "gmacs",
        "gmacs_saved",
    }


def test_queries_can_only_read_and_end(server: Path, tmp_path: Path) -> None:
    """Writing, a second statement and what takes too long are refused; rows come as they are found,
    and no more than requested.
    """
    place = postgresql.database(server, tmp_path.name)
    connect(place).dispose()
    for sql, problem in {
        "DELETE FROM sweep": "only reading is allowed here",
        "WITH gone AS (DELETE FROM sweep RETURNING id) SELECT id FROM gone": "data-modifying",
        "SELECT 1; DELETE FROM sweep": "multiple commands",
        "SELECT pg_sleep(9)": "timeout",
    }.items():
        with pytest.raises(StoreError, match=problem):
            run_query(place, sql, seconds=0.2)
    endless = "WITH RECURSIVE a(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM a) SELECT x FROM a"
    with open_query(place, endless) as rows:
        assert [x for (x,) in itertools.islice(rows, 3)] == [1, 2, 3]
    assert run_query(place, endless, rows=1000).truncated


def test_a_declared_metric_is_a_column_for_readers_and_writers(
    server: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a store made before the declaration: readers have views of their own, a writer makes those
    of the store anew.
    """
    place = postgresql.database(server, tmp_path.name)
    made = connect(place)
    keep(made, an_outcome(a_job()))
    made.dispose()
    monkeypatch.setitem(
        METRICS, "toy_energy", MetricSpec(name="toy_energy", unit="J", label="toy energy")
    )
    column = "SELECT toy_energy FROM arm"
    assert run_query(place, column).rows == [(None,), (None,)]
    reader = connect_readonly(place)
    with pytest.raises(StoreError), writing(reader) as connection:
        connection.execute(text("DELETE FROM sample"))
    reader.dispose()
    plain = create_engine(place, poolclass=NullPool)
    with plain.connect() as connection, pytest.raises(ProgrammingError):
        connection.execute(text(column))
    connect(place).dispose()
    with plain.connect() as connection:
        assert connection.execute(text(column)).all() == [(None,), (None,)]


@pytest.mark.parametrize("shift", [-7200, 7200])
def test_leases_hold_whatever_clock_their_host_has(
    server: Path, tmp_path: Path, shift: int
) -> None:
    """A host whose clock is two hours off keeps the job that it has just taken, and takes none that
    another one holds.
    """
    place = postgresql.database(server, tmp_path.name)
    engine = connect(place)
    sweep = submit(engine, [a_job(32), a_job(64)])
    queue.claim(engine, sweep, owner="here:1:1")
    taken = [sys.executable, "-c", CLAIM, place, str(sweep), str(shift)]
    assert subprocess.run(taken, capture_output=True, text=True, check=True).stdout.split() == [
        "1",
        "0",
    ]
    assert queue.recover(engine) == 0
    engine.dispose()


def test_a_server_that_restarts_is_reached_again() -> None:
    """What was open before its end works once it is back, and waits while it is away."""
    assert PROGRAMS is not None
    with tempfile.TemporaryDirectory(prefix="pg-", dir="/tmp") as made:
        with postgresql.serving(PROGRAMS, Path(made)) as folder:
            place = postgresql.database(folder, "restarted")
            engine, reader = connect(place), connect_readonly(place)
            sweep = submit(engine, [a_job(32), a_job(64)])
            assert queue.waiting_devices(reader, sweep) == {"cpu"}
        begun = threading.Event()

        def claimed() -> list[queue.QueuedJob]:
            begun.set()
            return queue.claim(engine, sweep, owner="here:1:1")

        with ThreadPoolExecutor(1) as waiting:
            found = waiting.submit(claimed)
            assert begun.wait(10)
            time.sleep(1)
            assert not found.done()
            with postgresql.serving(PROGRAMS, Path(made)):
                assert len(found.result(timeout=60)) == 1
                assert queue.renew(engine, "here:1:1") == 1
                assert queue.waiting_devices(reader, sweep) == {"cpu"}
        engine.dispose()
        reader.dispose()


def test_a_server_that_is_away_is_no_wrong_usage(tmp_path: Path, server: Path) -> None:
    """Exit code 1 where nothing answers, 2 where the server refuses the name of the database."""
    away = breakeven(
        "status", "--db", f"postgresql://breakeven@/none?host={tmp_path}", folder=tmp_path
    )
    unknown = breakeven(
        "status", "--db", f"postgresql://breakeven@/none?host={server}", folder=tmp_path
    )
    assert [(done.returncode, done.stderr.count("\n")) for done in (away, unknown)] == [
        (1, 1),
        (2, 1),
    ]


def test_a_database_without_a_store_keeps_no_connection(server: Path, tmp_path: Path) -> None:
    """It is refused to readers, and left as it was before a command that makes the store."""
    url = postgresql.database(server, tmp_path.name)
    with pytest.raises(StoreError):
        connect_readonly(url)
    assert queue.derive_before_reading(url) == url
    other = create_engine(url.replace("postgresql:", "postgresql+psycopg:"), poolclass=NullPool)
    with other.connect() as connection:
        counted = text("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()")
        assert connection.execute(counted).scalar() == 1


def test_states_of_comparisons_are_the_same(engines: tuple[Engine, Engine]) -> None:
    """What is measured, failed, queued or neither reads the same from both."""
    for engine in engines:
        filled(engine)
    there, here = map(found_states, engines)
    assert there == here
    assert len(here) == 4


def test_a_plan_that_is_older_than_the_store_queues_the_same(
    engines: tuple[Engine, Engine],
) -> None:
    """Of three pairs one is measured by a part of a split job and one was answered after the plan:
    only the third is queued.
    """
    whole = a_job(keep_rates=(0.3, 0.5, 0.7))
    for engine in engines:
        since = newest_attempt(engine)
        sweep = submit_sweep(engine, NewSweep("sweep", "text", "?"), [whole], [whole])
        (claimed,) = queue.claim(engine, sweep, owner="elsewhere:1:1")
        parts = [whole.only([pair]) for pair in whole.pairs]
        rows = queue.split(engine, claimed.row, "elsewhere:1:1", parts)
        queue.claim(engine, sweep, owner="elsewhere:1:1", limit=2)
        record(engine, rows[0], "elsewhere:1:1", an_outcome(parts[0]))
        submit_sweep(engine, NewSweep("sweep", "text", "?"), [whole], [whole], since)
        assert [each.job for each in queue.claim(engine, sweep, owner="here:1:1", limit=9)] == [
            parts[2]
        ]
        assert [
            holder.jobs for holder in queue.held(engine, sweep) if holder.owner == "elsewhere:1:1"
        ] == [1]
        (progress,) = run_progress(engine, now=1e12)
        assert (progress.waiting, progress.running, progress.ended) == (0, 2, 1)
        assert progress.left_s == seconds_left(engine, sweep, now=1e12)
        assert failure_classes(engine, "sweep") == []


def test_commits_change_the_mark(server: Path) -> None:
    """The mark of a store on PostgreSQL changes with a commit, and not by reading."""
    url = postgresql.database(server, "marked")
    engine = connect(url)
    before = state_mark(url)
    assert state_mark(url) == before
    submit_sweep(engine, NewSweep("s", "text", "?"), [], [])
    assert state_mark(url) != before
    engine.dispose()


def test_evidence_sides_and_history_are_equal(engines: tuple[Engine, Engine]) -> None:
    """What the pages Evidence and Compare read is the same on both."""
    job = a_job()
    outcomes = [an_outcome(job, seed=1), an_outcome(job, seed=2, ended_at=1_790_000_000.0 + 86_400)]
    (question,) = job.comparisons()
    found = []
    for engine in engines:
        record_imported(engine, outcomes)
        evidence = point_evidence(engine, job.comparison_ids()[0])
        days = side_choices(engine, "date")
        sides = side_by_side(engine, "date", *(choice.value for choice in reversed(days)))
        history = question_history(engine, question.question_id)
        with pytest.raises(StoreError, match=r"nearest: \w+"):
            point_evidence(engine, job.comparison_ids()[0][:-1] + "x")
        places = [row["comparison_id"] for row in similar_comparisons(engine, "topk deit")]
        found.append(
            (
                evidence.timed[0].pooling,
                days,
                [row.difference for row in sides.rows],
                history.points,
                places,
            )
        )
        assert side_by_side(
            engine, "environment", *2 * [side_choices(engine, "environment")[0].value]
        ).rows
    assert found[0] == found[1]


def test_the_likeliest_place_of_a_break_even(engines: tuple[Engine, Engine]) -> None:
    """The cost model puts it into the bracket of the points, in a sweep and by the curve, alike on
    both databases.
    """
    gains = {32: 0.8, 48: 0.9, 64: 0.97, 96: 1.06, 128: 1.15, 160: 1.22, 192: 1.28, 224: 1.32}
    found = []
    for engine in engines:
        submitted(
            engine,
            [an_outcome(a_job(size), speedups=(gain,), seed=size) for size, gain in gains.items()],
        )
        rows = [
            row
            for row in sweep_rows(engine, "language", "break_even").itertuples()
            if row.metric == "latency"
        ]
        (along,) = (row for row in rows if row.axis == "tokens")
        assert along.x_low < along.x < along.x_high
        (claims,) = claims_of_curves(engine, [str(along.curve_id)], "latency").values()
        found.append((along.x, *(claim.x for claim in claims)))
    assert found[0] == pytest.approx(found[1])
    assert found[0][0] == found[0][1]


def test_submitted_sweeps_are_taken_in_order(engines: tuple[Engine, Engine]) -> None:
    check_order_of_submissions(engines[0])
