"""Command `calibrate`: the shipped sweep with the options, the table of what was found, and a run
in fresh processes.
"""

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from orchestrator.cli import app
from orchestrator.commands import calibrate
from orchestrator.commands.calibrate import calibrate_device, expanded
from store.open.engine import connect
from store.write.record import record_imported
from store.write.submission import NewSweep, submit_sweep
from tests.fixtures.sql_rows import rows
from tests.store.conftest import a_job, an_outcome, two_slots
from workers.measure.environment import environment_of


def test_the_sweep_has_the_processes_and_the_time() -> None:
    """Processes become rounds, and the time is divided among them, less what a process takes to
    start.
    """
    found = expanded("cpu", 8, 384.0)
    assert (len({job.condition for job in found.jobs}), len(found.jobs)) == (4, 32)
    assert {(job.protocol.rounds, job.protocol.budget_s) for job in found.jobs} == {(8, 5.0)}
    assert {job.protocol.budget_s for job in expanded("cpu", 8, 1.0).jobs} == {1.0}


def test_what_the_store_holds_is_estimated(tmp_path: Path) -> None:
    """`--processes 0` measures nothing: the table has the term with its interval, what was used
    before and what is from now on.
    """
    path = str(tmp_path / "store.db")
    engine, job, here = connect(path), a_job(64), environment_of("cpu")
    submit_sweep(engine, NewSweep("calibration", "text", "?"), [job], [])
    for n, bias in enumerate(np.random.default_rng(1).normal(0, 0.01, 6)):
        outcome = two_slots(
            an_outcome(job, speedups=(1.2 * np.exp(bias),), noise=0.005, seed=n, environment=here)
        )
        record_imported(engine, [outcome.model_copy(update={"process": str(n)})])
    done = CliRunner().invoke(
        app, ["calibrate", "--db", path, "--processes", "0", "--device", "cpu"]
    )
    assert done.exit_code == 0
    (found,) = rows(engine, "SELECT * FROM calibration")
    engine.dispose()
    for shown in (
        "up to 10 M",
        f"{100 * found['tau']:.2f} %",
        "1.05 % (default)",
        f"{100 * found['process_sd']:.2f} %",
    ):
        assert shown in done.output
    assert found["calibration_id"] in done.output


def test_nothing_to_estimate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A store without repeats is not calibrated: exit code 1."""
    assert calibrate_device(str(tmp_path / "store.db"), "cpu", 0, 60.0) == 1
    assert "nothing is calibrated" in capsys.readouterr().out


def test_a_wrong_time_is_refused(tmp_path: Path) -> None:
    """What is no duration is wrong usage, and named."""
    done = CliRunner().invoke(
        app, ["calibrate", "--db", str(tmp_path / "store.db"), "--time", "soon"]
    )
    assert done.exit_code == 2
    assert "'soon' is no duration" in done.output


@pytest.mark.slow
@pytest.mark.ray
@pytest.mark.usefixtures("shared_ray")
def test_each_repeat_runs_in_a_fresh_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two repeats of a job are two processes; a second call adds to them. The shipped sweep, with
    one short job.
    """
    text = (calibrate.files("sweeps") / "calibration.yaml").read_text()
    shorter = {
        "[deit_tiny_patch16_224, deit_small_patch16_224]": "[test_vit]",
        "[64, 128]": "[32]",
        "[3, 6, 9]": "[1]",
    }
    for several, one in shorter.items():
        assert several in text
        text = text.replace(several, one)
    (tmp_path / "calibration.yaml").write_text(text)
    monkeypatch.setattr(calibrate, "files", lambda _: tmp_path)
    path, measured = str(tmp_path / "store.db"), 0
    for processes in (2, 2):
        assert calibrate_device(path, "cpu", processes, 11.0 * processes) == 0
        measured += processes
        engine = connect(path)
        (counted,) = rows(
            engine, "SELECT count(*) AS attempts, count(DISTINCT process) AS processes FROM attempt"
        )
        assert tuple(counted.values()) == (measured, measured)
        newest = rows(engine, "SELECT processes FROM calibration ORDER BY created_at DESC")
        assert newest[0]["processes"] == measured
        engine.dispose()
