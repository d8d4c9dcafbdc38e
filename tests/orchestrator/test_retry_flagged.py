"""What a run measures again: quarantined answers always, other flagged ones with `--retry-flagged`,
and what it prints of them.
"""

import io
import platform
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from orchestrator.cli import app
from orchestrator.commands.run import conclude_run
from orchestrator.plan.planning import load_sweep
from store.open.engine import connect
from store.read.answers import doubted
from store.write.record import record
from sweeps.model.job import Job
from tests.fixtures.sql_rows import rows
from tests.orchestrator.commands import SWEEP, in_process
from tests.orchestrator.conftest import Store
from tests.orchestrator.sites import A, planned
from tests.store.conftest import a_job, an_outcome
from workers.measure.environment import environment_of

FLAGS = {32: (), 48: ("contended",), 64: ("thermal_slowdown",), 80: ("state_changed",)}
SIZES = {size: a_job(size) for size in FLAGS}


@pytest.fixture
def measured(store: Store) -> Store:
    """A store with an answer of each kind, by size."""
    place = A.environments["cpu"]
    store.submit(list(SIZES.values()))
    for size, flags in FLAGS.items():
        record(
            store.engine,
            None,
            None,
            an_outcome(SIZES[size], flags=flags, environment=place, host=A.host),
        )
    return store


def sizes(jobs: tuple[Job, ...]) -> list[int | None]:
    return [each.condition.image_size for each in jobs]


def test_quarantined_answers_are_left_by_every_plan(measured: Store) -> None:
    """Without an option what was measured on a slowed machine is open; with `--retry-flagged` every
    flagged answer is.
    """
    plan = planned(measured, [A], list(SIZES.values()))
    assert (sizes(plan.jobs), plan.answered) == ([64], 3)
    assert list(plan.quarantined.values()) == [("thermal_slowdown",)]
    again = doubted(measured.engine, "flagged", [A.environments["cpu"].environment_id])
    assert sizes(planned(measured, [A], list(SIZES.values()), again=again).jobs) == [48, 64, 80]


def test_a_run_ends_with_what_is_quarantined(measured: Store) -> None:
    """The last lines name the reason and the command; something is not answered."""
    console = Console(file=io.StringIO(), width=240)
    plan = planned(measured, [A], list(SIZES.values()))
    assert conclude_run(console, measured.engine, plan, Path("x.yaml")) == 1
    assert isinstance(console.file, io.StringIO)
    assert " ".join(console.file.getvalue().split()) == (
        "1 comparison is quarantined: measured only while the machine was slowed"
        " (thermal_slowdown), so that there is no verdict; when that is over, this measures them"
        " again: breakeven run x.yaml"
    )


def test_both_ways_at_once_are_wrong_usage(tmp_path: Path) -> None:
    """`--retry-flagged` is short for what `--remeasure` would repeat."""
    (tmp_path / "sweep.yaml").write_text(SWEEP)
    done = CliRunner().invoke(
        app, ["run", str(tmp_path / "sweep.yaml"), "--remeasure", "--retry-flagged"]
    )
    assert done.exit_code == 2
    assert "leave out --remeasure" in " ".join(done.output.replace("│", " ").split())


@pytest.mark.slow
@pytest.mark.ray
@pytest.mark.usefixtures("shared_ray")
def test_a_run_measures_flagged_answers_again(tmp_path: Path) -> None:
    """Of three answers one is quarantined and one noisy: both are measured, the quarantined attempt
    stays and no longer counts.
    """
    (tmp_path / "sweep.yaml").write_text(SWEEP)
    here, jobs = environment_of("cpu"), load_sweep(tmp_path / "sweep.yaml", auto="cpu").jobs
    engine = connect(str(tmp_path / "breakeven.db"))
    for job, flags in zip(jobs, ((), ("contended",), ("quota_throttled",)), strict=True):
        record(
            engine, None, None, an_outcome(job, flags=flags, environment=here, host=platform.node())
        )
    done = in_process("run", "sweep.yaml", "--retry-flagged", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (
        "2 of 3 comparisons are answered in this environment, 1 of them to be measured again; 2"
        " jobs left" in done.stdout
    )
    assert [row["quarantine"] for row in rows(engine, "SELECT quarantine FROM execution ORDER BY attempt")][:3] == [
        None, None, "quota_throttled"
    ]  # fmt: skip
    assert len(rows(engine, "SELECT * FROM execution")) == 5
    assert {row["verdict"] for row in rows(engine, "SELECT verdict FROM speedup")} & {
        "quarantined"
    } == set()
    engine.dispose()
