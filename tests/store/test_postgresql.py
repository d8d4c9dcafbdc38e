"""PostgreSQL in SQLite's place: the migrations, what is recorded, and the views, which show the same rows on both."""

import itertools
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Engine, LargeBinary, MetaData, create_engine, inspect, select, text

from store import migration, queue
from store.answers import answers
from store.comparison_search import similar_comparisons
from store.engine import connect
from store.errors import StoreError
from store.evidence import point_evidence
from store.history import question_history
from store.overlap import newest_attempt
from store.queries import sweep_rows
from store.record import reanalyse, record, record_imported
from store.references import import_references
from store.runs import failure_classes, run_progress, seconds_left
from store.side_by_side import side_by_side
from store.side_rows import side_choices
from store.state_mark import state_mark
from store.submission import NewSweep, submit_sweep
from store.tables.planned import METADATA
from store.token_break_evens import claims_of_curves
from store.user_sql import open_query, run_query
from store.views import public
from sweeps.condition import Condition, Overrides
from sweeps.job import DENSE, Arm, Job, Pair
from sweeps.kinds import KINDS
from sweeps.number_format import is_missing
from sweeps.outcome import Failure, Outcome
from sweeps.protocol import Protocol
from sweeps.references.reference_files import load_reference, shipped_references
from tests.fixtures.quality_states import filled, found_states
from tests.store import postgresql
from tests.store.conftest import a_job, an_evaluation, an_outcome
from tests.store.language_fixtures import a_generation, a_generation_job, a_quality_job, a_reading, larosa
from tests.workers.saved_llm import saved, written
from workers.run import run

PROGRAMS = postgresql.programs()
pytestmark = pytest.mark.skipif(PROGRAMS is None, reason="needs PostgreSQL: apt-get install postgresql")


@pytest.fixture(scope="module")
def server() -> Iterator[Path]:
    assert PROGRAMS is not None
    with postgresql.serving(PROGRAMS) as folder:
        yield folder


@pytest.fixture
def engines(server: Path, tmp_path: Path) -> Iterator[tuple[Engine, Engine]]:
    """Two empty stores: PostgreSQL and SQLite."""
    both = (connect(postgresql.database(server, tmp_path.name)), connect(str(tmp_path / "breakeven.db")))
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
        columns = [[column["name"] for column in inspect(engine).get_columns(view)] for engine in engines]
        assert columns[0] == columns[1]


def language_outcomes(folder: Path) -> list[Outcome]:
    """What the worker reports of a model of two layers: speed and quality, an arm in bfloat16 and one that cannot run beside it."""
    condition = {
        "model": str(saved(folder / "model", max_position_embeddings=1024)),
        "weights": "pretrained",
        "data": written(folder / "text"),
        "threads": 1,
    }
    arms = (DENSE, Arm(overrides=Overrides(dtype="bfloat16")), Arm(overrides=Overrides(runtime="compile")))
    pairs, protocol = (Pair(0, 1), Pair(0, 2)), Protocol(pairs_min=6, pairs_max=6, budget_s=0.1, characters=800)
    timed = Condition(**condition, prompt_tokens=12, new_tokens=5, kv_cache="dynamic", decoding="teacher_forcing")
    speed = Job(kind="generation", condition=timed, arms=arms, pairs=pairs, protocol=protocol)
    quality = Job(kind="quality", condition=Condition(**condition), arms=arms[:2], pairs=pairs[:1], protocol=protocol)
    return [run(speed, pass_seconds=0.05, isolated=False), run(quality)]


def submitted(engine: Engine, outcomes: list[Outcome]) -> None:
    """Store a sweep that requests what the outcomes answer, and these."""
    requested = [(each.job.comparison(Pair(*pair)), each.job.content_hashes) for each in outcomes for pair in each.job.pairs]
    submit_sweep(engine, NewSweep("language", "text", "?"), requested, [])
    for outcome in outcomes:
        assert record(engine, None, None, outcome)
        assert not record(engine, None, None, outcome)


def test_the_schema_is_that_of_the_tables(engines: tuple[Engine, Engine]) -> None:
    """A new store has exactly the tables, columns and indexes of the models, and opening it again changes nothing."""
    there, _ = engines
    with there.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), METADATA) == []
        assert migration.version(connection) == migration.SCHEMA
    connect(there.url.render_as_string(hide_password=False)).dispose()


def test_what_a_language_model_was_measured_at_is_shown_alike(engines: tuple[Engine, Engine], tmp_path: Path) -> None:
    """A worker's own outcomes, of speed and of quality, give the same rows in every view, joined and analysed again too."""
    outcomes = language_outcomes(tmp_path)
    for engine in engines:
        submitted(engine, outcomes)
    assert_same(engines, "speedup", "arm", "generation", "quality", "failures", "metric", "sweep_comparison")
    assert {row["metric"] for row in shown(engines[0], "speedup")} == {"ttft", "tpot", "time_per_char"}
    assert [row["reason"] for row in shown(engines[0], "failures")] == ["unsupported"]
    joined = """SELECT s.speedup, q.bits_per_byte_change FROM speedup AS s JOIN quality AS q
      ON q.arm_id = s.arm_id AND q.model = s.model AND q.weights = s.weights WHERE s.metric = 'tpot'"""
    places = [engine.url.render_as_string(hide_password=False) for engine in engines]
    there, here = (run_query(place, joined).rows for place in places)
    assert there == here != []
    before = {view: shown(engines[0], view) for view in public.VIEWS}
    assert [reanalyse(engine) for engine in engines] == [3, 3]
    assert {view: shown(engines[0], view) for view in public.VIEWS} == before
    ids = dict.fromkeys(outcomes[0].job.comparison_ids(), Protocol(pairs_min=6, pairs_max=6))
    here_ids = [outcomes[0].environment.environment_id]
    assert answers(engines[0], ids, here_ids).answered == answers(engines[1], ids, here_ids).answered != set()


def test_curves_of_language_models_cross_alike(engines: tuple[Engine, Engine]) -> None:
    """Break-evens along the prompt and along what is saved, a failed arm, and a vision sweep beside them."""
    arms = [larosa(share) for share in (0.25, 0.4, 0.5)]
    outcomes = [
        *(a_generation(a_generation_job(size), (1.0, gain)) for size, gain in ((16, 0.8), (64, 0.9), (256, 1.3))),
        a_generation(a_generation_job(128, arms), (1.0, 0.9, 1.2, 1.4)),
        a_generation(a_generation_job(512), failures=[Failure(arm=1, reason="out_of_memory", message="prefill")]),
        a_reading(a_quality_job()),
        an_outcome(a_job()),
        an_evaluation(a_job(kind="accuracy")),
    ]
    for engine in engines:
        submitted(engine, outcomes)
        import_references(engine, [load_reference(name) for name in shipped_references()])
    assert_same(engines, *(set(public.VIEWS) - PROFILED))
    assert {row["metric"] for row in shown(engines[0], "break_even")} >= {"ttft", "tpot", "time_per_char"}
    assert {row["axis"] for row in shown(engines[0], "break_even")} >= {"tokens", "gmacs", "gmacs_saved"}


@pytest.mark.parametrize(
    ("version", "filled_views", "failures"),
    [
        (2, ("speedup", "accuracy", "break_even", "failures", "metric"), {"latency"}),
        (5, tuple(set(public.VIEWS) - PROFILED - {"reference"}), {name for name in KINDS if "profile" not in name}),
    ],
)
def test_an_older_store_is_upgraded_without_loss(
    *, server: Path, tmp_path: Path, version: int, filled_views: tuple[str, ...], failures: set[str]
) -> None:
    """Rows of an older schema are the same in every view after the upgrade as those of an upgraded SQLite store."""
    place, path = postgresql.database(server, tmp_path.name), tmp_path / "older.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript((Path(__file__).parent / f"version_{version}.sql").read_text())
    copy(path, place)
    there, here = connect(place), connect(str(path))
    try:
        with there.connect() as server_connection:
            assert compare_metadata(MigrationContext.configure(server_connection), METADATA) == []
        assert_same((there, here), *filled_views)
        outcome = an_outcome(a_job())
        assert [record(engine, None, None, outcome.model_copy(update={"host": "new"})) for engine in (there, here)] == [True, True]
        assert_same((there, here), *filled_views)
    finally:
        there.dispose()
        here.dispose()
    assert {kind for (kind,) in run_query(place, "SELECT kind FROM failures").rows} == failures
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


def copy(path: Path, place: str) -> None:
    """Create the tables of an SQLite file in another database, with their rows."""
    source, target, tables = create_engine(f"sqlite:///{path}"), create_engine(place), MetaData()
    tables.reflect(source)
    for column in [column for table in tables.sorted_tables for column in table.columns if isinstance(column.type, LargeBinary)]:
        column.type = LargeBinary()  # not the type BLOB, which SQLite alone has
    tables.create_all(target)
    with source.connect() as reading, target.begin() as writing:
        for table in tables.sorted_tables:
            if rows := [dict(row._mapping) for row in reading.execute(select(table))]:
                writing.execute(table.insert(), rows)
    source.dispose()
    target.dispose()


def test_states_of_comparisons_are_the_same(engines: tuple[Engine, Engine]) -> None:
    """What is measured, failed, queued or neither reads the same from both."""
    for engine in engines:
        filled(engine)
    there, here = map(found_states, engines)
    assert there == here
    assert len(here) == 4


def test_a_plan_that_is_older_than_the_store_queues_the_same(engines: tuple[Engine, Engine]) -> None:
    """Of three pairs one is measured by a part of a split job and one was answered after the plan: only the third is queued."""
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
        assert [each.job for each in queue.claim(engine, sweep, owner="here:1:1", limit=9)] == [parts[2]]
        assert [holder.jobs for holder in queue.held(engine, sweep) if holder.owner == "elsewhere:1:1"] == [1]
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
        found.append((evidence.timed[0].pooling, days, [row.difference for row in sides.rows], history.points, places))
        assert side_by_side(engine, "environment", *2 * [side_choices(engine, "environment")[0].value]).rows
    assert found[0] == found[1]


def test_where_the_points_alone_put_a_break_even(engines: tuple[Engine, Engine]) -> None:
    """What the cost model narrows has the place by the points beside it, in a sweep and by the curve, and nowhere else."""
    gains = {32: 0.8, 48: 0.9, 64: 0.97, 96: 1.06, 128: 1.15, 160: 1.22, 192: 1.28, 224: 1.32}
    found = []
    for engine in engines:
        submitted(engine, [an_outcome(a_job(size), speedups=(gain,), seed=size) for size, gain in gains.items()])
        rows = [row for row in sweep_rows(engine, "language", "break_even").itertuples() if row.metric == "latency"]
        (along,) = (row for row in rows if row.axis == "tokens")
        assert (along.fitted, along.cost_model) == (True, "fits")
        assert along.measured_x_low <= along.x_low < along.x < along.x_high <= along.measured_x_high
        assert all(is_missing(row.cost_model) for row in rows if row.axis != "tokens")
        (claims,) = claims_of_curves(engine, [str(along.curve_id)], "latency").values()
        assert [claim.measured_x for claim in claims] == [along.measured_x]
        found.append((along.x, along.measured_x))
    assert found[0] == pytest.approx(found[1])
