"""What docs and the README of the store state of the public views holds: columns, their order, and
every query.
"""

import re
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from sqlalchemy import inspect

from orchestrator.commands.import_files import import_files, import_published
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
from tests.webapp.quality_stores import corrupted

ALEXNET = {"fog": (80,), "jpeg": (50, 60, 70, 80, 90), "snow": (90,)}
"""Errors in %, made up: a mean over severities, or each."""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with latency, accuracy, generation, quality, a failure and imported profiles."""
    path = tmp_path_factory.mktemp("views") / "store.db"
    engine = connect(str(path))
    arms = [vision.topk(rate) for rate in vision.RATES]
    clean = vision.job("accuracy", arms)
    failing = vision.job("latency", arms[:1], batch_size=8)
    failed = Failure(arm=None, reason="out_of_memory", message="7 GB")
    outcomes: list[Outcome] = [
        vision.outcome(vision.job("latency", arms)),
        vision.outcome(clean),
        *(
            vision.outcome(corrupted(clean, name, severity))
            for name, severities in (("fog", 5), ("jpeg", 5), ("snow", 4), ("speckle_noise", 5))
            for severity in range(1, severities + 1)
        ),
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
    [written] = re.findall(r"```yaml\n(reference: 1.*?)```", VIEWS_PAGE, re.DOTALL)
    path.with_name("alexnet.yaml").write_text(written)
    rows = [f"{name},{100 - error}\n" for name, errors in ALEXNET.items() for error in errors]
    path.with_name("alexnet.csv").write_text(f"corruption,top1\n{''.join(rows)}")
    import_published([path.with_name("alexnet.yaml")], db=str(path))
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


def test_corruption_errors(path: Path) -> None:
    """Both queries give what the definition does: over corruptions with five severities the mean of
    the summed errors' ratio; extra corruptions are left out.
    """
    columns = "method, params, corruption, severity, 100 - top1, 100 - top1_baseline"
    rows = run_query(
        str(path), f"SELECT {columns} FROM accuracy WHERE corruption IN ('fog', 'jpeg')"
    ).rows
    assert len(rows) == len(vision.RATES) * 2 * 5
    alexnet = {name: 5 * sum(errors) / len(errors) for name, errors in ALEXNET.items()}
    relative, absolute = (
        {(row[0], row[1]): row[6:] for row in run_query(str(path), sql).rows}
        for sql in statements()
        if "mce" in sql
    )
    for arm in {(row[0], row[1]) for row in rows}:
        sums = {
            name: np.sum([row[4:] for row in rows if (*row[:2], row[2]) == (*arm, name)], axis=0)
            for name in ("fog", "jpeg")
        }
        to_dense = 100 * np.mean([error / dense for error, dense in sums.values()])
        assert relative[arm] == (pytest.approx(to_dense), 2)
        mce, dense = 100 * np.mean([sums[name] / alexnet[name] for name in sums], axis=0)
        assert absolute[arm] == (pytest.approx(mce), pytest.approx(dense), 2)
    assert max(found[0] for found in relative.values()) > 120


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
