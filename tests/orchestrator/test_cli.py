"""Commands that plan, run and import, as their users meet them: exit codes, messages, and whole
runs in their own process.
"""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.fixtures.outcomes import HOSTILE, OUTCOME, changed
from tests.orchestrator.commands import ROOT, SWEEP, breakeven, in_process

pytestmark = pytest.mark.ray


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("batch_sise: [1]", "did you mean 'batch_size'?"),
        ("image_size: [33]", "not a multiple of"),
        ("model: [deit_tiny_patch16_225]", "did you mean 'deit_tiny_patch16_224'?"),
        ("dtype: [no]", "axes.dtype"),
        ("batch_size: []", "axes.batch_size"),
    ],
)
def test_wrong_sweep_is_reported_and_nothing_is_stored(
    tmp_path: Path, wrong: str, message: str
) -> None:
    """A wrong sweep ends with exit code 2 and one line with file, line, key and what would be
    right; no store appears.
    """
    lines = SWEEP.splitlines()
    key = wrong.partition(":")[0]
    lines = [text for text in lines if not text.strip().startswith(f"{key}:")]
    at = next(number for number, text in enumerate(lines) if text.startswith("axes:")) + 1
    lines.insert(at, f"  {wrong}")
    (tmp_path / "wrong.yaml").write_text("\n".join(lines) + "\n")

    done = in_process("run", "wrong.yaml", folder=tmp_path)

    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert f"wrong.yaml:{at + 1}: " in done.stderr
    assert message in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["wrong.yaml"]


def test_device_that_is_not_there_is_refused_at_once(tmp_path: Path) -> None:
    """A sweep for a GPU on a machine without one ends with exit code 2 and the reason, before Ray
    starts or a store is made.
    """
    from workers.measure.environment import devices

    if "cuda" in devices():
        pytest.skip("this machine has a GPU")
    (tmp_path / "sweep.yaml").write_text(SWEEP)

    done = in_process("run", "sweep.yaml", "--device", "cuda", folder=tmp_path)
    assert done.returncode == 2
    assert "the sweep requires device cuda, and there is only cpu" in done.stderr
    assert not (tmp_path / "breakeven.db").exists()


def test_ray_that_cannot_start_is_one_line(tmp_path: Path) -> None:
    """Where Ray has no place for its files a run ends with exit code 2 and a line that names the
    place.
    """
    (tmp_path / "sweep.yaml").write_text(SWEEP)
    done = breakeven("run", "sweep.yaml", folder=tmp_path, RAY_TMPDIR="/nowhere")
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "Ray cannot be started here, because it has no place for its files" in done.stderr
    assert "/nowhere/breakeven-" in done.stderr


@pytest.mark.slow
def test_plan_writes_jobs_that_the_worker_runs_and_import_takes_in(tmp_path: Path) -> None:
    """Plan writes job files, `python -m workers.run` answers one without Ray or store, import
    stores it once, report shows it.
    """
    (tmp_path / "sweep.yaml").write_text(SWEEP)
    planned = breakeven("plan", "sweep.yaml", "--jobs", "jobs", "--format", "json", folder=tmp_path)
    files = sorted((tmp_path / "jobs").iterdir())
    assert planned.returncode == 0
    assert json.loads(planned.stdout)["comparisons"] == len(files) == 3
    assert not (tmp_path / "breakeven.db").exists()

    command = [sys.executable, "-m", "workers.run", str(files[0]), "--out", "outcome.json"]
    subprocess.run(
        command,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=True,
        capture_output=True,
    )
    first = breakeven("import", "outcome.json", "--sweep", "sweep.yaml", folder=tmp_path)
    second = breakeven("import", "outcome.json", folder=tmp_path)

    assert "1 outcomes imported" in first.stdout
    assert "1 of 3 comparisons are measured, 1 answered" in first.stdout
    assert "0 outcomes imported, 1 were in the store already" in second.stdout
    report = json.loads(breakeven("report", "tiny", "--format", "json", folder=tmp_path).stdout)
    assert [(row["source"], row["tokens"], row["model"]) for row in report["speedups"]] == [
        ("imported", 4, "deit_tiny_patch16_224")
    ]


def test_file_that_is_no_outcome_is_refused(tmp_path: Path) -> None:
    """Importing something else reports what is wrong with it, and stores nothing."""
    (tmp_path / "wrong.json").write_text('{"job": 1}\n')
    done = breakeven("import", "wrong.json", folder=tmp_path)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "is not an outcome" in done.stderr
    assert not (tmp_path / "breakeven.db").exists()


@pytest.mark.parametrize("which", ["a huge seed", "a start beyond all calendars", "arm 99"])
def test_hostile_outcome_is_one_line_and_nothing_is_imported(tmp_path: Path, which: str) -> None:
    """An outcome that contradicts itself among honest ones is refused with exit code 2, and the
    honest ones are not stored.
    """
    change, message = HOSTILE[which]
    (tmp_path / "outcomes").mkdir()
    (tmp_path / "outcomes/1.json").write_text(OUTCOME.model_dump_json())
    (tmp_path / "outcomes/2.json").write_text(changed(change))
    done = breakeven("import", "outcomes", folder=tmp_path)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "2.json is not an outcome" in done.stderr
    assert message in done.stderr
    assert not (tmp_path / "breakeven.db").exists()


@pytest.mark.usefixtures("shared_ray")
def test_run_measures_survives_kill_and_resumes(tmp_path: Path) -> None:
    """A run that is killed with -9 loses at most the job in flight; the next one measures the rest,
    once, and reports.
    """
    (tmp_path / "sweep.yaml").write_text(SWEEP)
    command = [sys.executable, "-m", "orchestrator", "run", "sweep.yaml"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "BREAKEVEN_DB": "breakeven.db"}
    process = subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("[1/3]"):
            break
    process.send_signal(signal.SIGKILL)
    process.communicate()

    done = in_process("run", "sweep.yaml", folder=tmp_path)

    assert done.returncode == 0, done.stderr
    assert "1 of 3 comparisons are answered in this environment; 2 jobs left" in done.stdout
    assert done.stdout.count("break-even, tokens") == 1
    assert not list(tmp_path.glob("breakeven.db-*")), "the file alone holds all of it"
    assert "breakeven run FILE" not in done.stdout
    with sqlite3.connect(tmp_path / "breakeven.db") as connection:
        assert connection.execute(
            "SELECT count(*), count(DISTINCT comparison_id) FROM comparison_attempt"
        ).fetchone() == (3, 3)
    connection.close()

    again = in_process("run", "sweep.yaml", folder=tmp_path)
    assert "3 of 3 comparisons are answered in this environment; 0 jobs left" in again.stdout
    assert "starting Ray" not in again.stdout


@pytest.mark.usefixtures("shared_ray")
def test_a_time_out_before_the_requested_pairs_is_no_answer(tmp_path: Path) -> None:
    """A run whose time is up before `pairs: min` ends with exit code 1, the count, and the command
    that adds pairs.
    """
    few = (
        SWEEP.replace("[32, 48, 64]", "[32]")
        .replace("min: 30, max: 30", "min: 99999, max: 99999")
        .replace("1m", "8s")
    )
    (tmp_path / "sweep.yaml").write_text(few)

    done = in_process("run", "sweep.yaml", folder=tmp_path)

    assert done.returncode == 1, done.stderr
    text = " ".join(done.stdout.split())
    assert (
        "1 comparison is insufficient: time was up before the pairs that `pairs: min` requires"
        in text
    )
    assert "this adds pairs to them: breakeven run sweep.yaml" in text
    assert "0 of 1 comparisons are answered" in " ".join(
        breakeven("plan", "sweep.yaml", folder=tmp_path).stdout.split()
    )
    with sqlite3.connect(tmp_path / "breakeven.db") as connection:
        assert connection.execute("SELECT verdict FROM speedup").fetchall() == [("insufficient",)]
    connection.close()


def test_ctrl_c_stops_the_job_in_flight_and_leaves_the_rest_waiting(tmp_path: Path) -> None:
    """Ctrl-C ends a run with exit code 130 before its first job has ended, and what was not
    measured waits in the queue.
    """
    (tmp_path / "sweep.yaml").write_text(
        SWEEP.replace("topk, keep_rate: 0.5", "faulty, what: hang")
    )
    command = [sys.executable, "-m", "orchestrator", "run", "sweep.yaml"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "BREAKEVEN_DB": "breakeven.db"}
    environment["BREAKEVEN_METHODS"] = str(ROOT / "tests" / "faults" / "methods")
    process = subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 180
    while time.monotonic() < deadline:
        time.sleep(0.2)
        if (tmp_path / "breakeven.db").exists() and "running" in breakeven(
            "status", folder=tmp_path
        ).stdout:
            break
    process.send_signal(signal.SIGINT)
    shown, _ = process.communicate(timeout=60)

    assert process.returncode == 130
    assert "stopped with 3 jobs left; the same command goes on from here" in shown
    assert "3 waiting" in breakeven("status", folder=tmp_path).stdout
