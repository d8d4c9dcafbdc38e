"""What docs and the README of the store state of the public views holds: columns, their order, and
every query.
"""

import re
from pathlib import Path
from typing import get_args

import pytest
from sqlalchemy import inspect

from orchestrator.commands.import_files import import_files
from store.open.engine import connect
from store.read.user_sql import run_query
from store.views.public import VIEWS
from store.write.record import record
from store.write.submission import NewSweep, submit_sweep
from sweeps.model.outcome import Failure, Outcome
from sweeps.stats.curve import Claim
from tests.fixtures.device_traces import a_trace
from tests.fixtures.documented_sql import STORE_README, VIEWS_PAGE, statements
from tests.fixtures.ncu_tables import raw_page
from tests.fixtures.nsys_exports import write_nsys
from tests.orchestrator import vision_fixtures as vision
from tests.store.language_fixtures import a_generation, a_generation_job, a_quality_job, a_reading
from tests.webapp import simulated


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with latency, accuracy, generation, quality, a failure and imported profiles."""
    path = tmp_path_factory.mktemp("views") / "store.db"
    engine = connect(str(path))
    arms = [vision.topk(rate) for rate in vision.RATES]
    failing = vision.job("latency", arms[:1], batch_size=8)
    failed = Failure(arm=None, reason="out_of_memory", message="7 GB")
    outcomes: list[Outcome] = [
        vision.outcome(vision.job("latency", arms)),
        vision.outcome(vision.job("accuracy", arms)),
        vision.outcome(failing).model_copy(
            update={"failures": (failed,), "arms": (), "samples": None}
        ),
        simulated.outcome(simulated.job(64)),
        a_generation(a_generation_job(16)),
        a_generation(a_generation_job(64)),
        a_reading(a_quality_job()),
    ]
    requested = [
        (found.job.comparison(pair), found.job.content_hashes)
        for found in outcomes
        for pair in found.job.pairs
    ]
    submit_sweep(engine, NewSweep("all", "text", "What do the views hold?"), requested, [])
    for outcome in outcomes:
        record(engine, None, None, outcome)
    engine.dispose()
    marks = (
        f"breakeven:comparison:{outcomes[0].job.comparison_ids()[0]}",
        "breakeven:side:arm",
        "breakeven:arm:1",
    )
    timeline = write_nsys(path.with_name("arm1.sqlite"), a_trace(4, marks=marks))
    path.with_name("arm1.csv").write_text(raw_page(nvtx=" ".join(marks)))
    import_files([timeline, path.with_name("arm1.csv")], db=str(path))
    return path


def columns(path: Path) -> dict[str, list[str]]:
    """The columns of every view."""
    engine = connect(str(path))
    found = {
        view: [column["name"] for column in inspect(engine).get_columns(view)] for view in VIEWS
    }
    engine.dispose()
    return found


def test_the_page_lists_every_column(path: Path) -> None:
    """The table of the page has each view once with exactly its columns, in their order."""
    listed = re.findall(r"^\| `(\w+)` \| [^|]+ \| ([^|]+) \|$", VIEWS_PAGE, re.MULTILINE)
    assert {view: names.split(", ") for view, names in listed} == columns(path)
    assert len(listed) == len(VIEWS)


@pytest.mark.parametrize("sql", statements(), ids=range(len(statements())))
def test_every_documented_query_finds_rows(path: Path, sql: str) -> None:
    """Each statement in the pages runs as it stands and finds something in a store with all kinds
    of answers.
    """
    assert run_query(str(path), sql).rows


def test_there_are_queries_to_check() -> None:
    """The statements are found at all, those on the command line too."""
    assert len(statements()) >= 6
    assert any("FROM failures" in sql for sql in statements())


def test_names_in_the_stores_readme_exist(path: Path) -> None:
    """Each name of a column or table that the chapter on views mentions exists; verdicts of curves
    are none.
    """
    section = STORE_README.partition("## The public views")[2].partition("## Decisions")[0]
    named = set(re.findall(r"`([a-z0-9]+(?:_[a-z0-9]+)+)`", section))
    engine = connect(str(path))
    tables = set(inspect(engine).get_table_names()) | set(VIEWS)
    engine.dispose()
    known = (
        tables
        | {name for names in columns(path).values() for name in names}
        | {"time_per_char", "gmacs_saved", *get_args(Claim)}
    )
    assert named
    assert not named - known
