"""A queue of sweeps on one machine: the most urgent runs first and stops what is smaller, a killed
server loses nothing, and a sweep that fails the same way again and again is paused.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from store.open.engine import connect_readonly
from store.read.queries import sweep_summaries
from store.write import submissions
from tests.orchestrator.commands import ROOT, SWEEP, in_process
from tests.orchestrator.conftest import FAILING_METHODS

FAILING = """\
schema: 1
name: failing
question: What if every arm fails alike?
axes:
  model: [test_vit]
  image_size: [32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240, 256, 272]
methods: [{method: faulty, what: raise}]
jobs:
  latency: {pairs: {min: 10, max: 10}, budget: 1s}
"""


def command(folder: Path, *arguments: str) -> str:
    """What a command on the queue prints, which must succeed."""
    done = in_process(*arguments, "--db", str(folder / "q.db"), folder=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


def submitted(folder: Path, name: str, text: str = SWEEP, priority: int = 0) -> None:
    file = folder / f"{name}.yaml"
    file.write_text(text.replace("name: tiny", f"name: {name}"))
    command(folder, "submit", str(file), "--priority", str(priority))


@contextmanager
def serving(folder: Path, *options: str) -> "Iterator[subprocess.Popen[bytes]]":
    """A server of the queue in `folder`, killed with the block."""
    with (folder / "serve.txt").open("ab") as log:
        server = subprocess.Popen(
            [sys.executable, "-m", "orchestrator", "serve", "--db", "q.db", *options],
            cwd=folder,
            env=os.environ | {"PYTHONPATH": str(ROOT), "BREAKEVEN_METHODS": str(FAILING_METHODS)},
            stdout=log,
            stderr=log,
        )
    try:
        yield server
    finally:
        server.kill()
        server.wait()


def wait_for(condition: Callable[[], bool], folder: Path, seconds: float = 150.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, (folder / "serve.txt").read_text()
        time.sleep(0.1)


def states(folder: Path) -> dict[str, str]:
    engine = connect_readonly(str(folder / "q.db"))
    try:
        every = (*submissions.OPEN, "answered", "unanswered", "refused", "cancelled")
        return {each.name: each.state for each in submissions.submissions(engine, every)}
    finally:
        engine.dispose()


def jobs(folder: Path) -> dict[str, tuple[int, int]]:
    """Of each sweep its jobs that are done, and all of them."""
    engine = connect_readonly(str(folder / "q.db"))
    try:
        return {
            each["name"]: (each["done"], each["comparisons"]) for each in sweep_summaries(engine)
        }
    finally:
        engine.dispose()


def test_states_of_a_submission(tmp_path: Path) -> None:
    """A wrong sweep is refused when it is submitted."""
    (tmp_path / "wrong.yaml").write_text(SWEEP.replace("topk", "topkk"))
    refused = in_process("submit", "wrong.yaml", "--db", "q.db", folder=tmp_path)
    assert (refused.returncode, "topkk" in refused.stderr) == (2, True)
    submitted(tmp_path, "tiny")
    assert "queued" in command(tmp_path, "status", "tiny")
    assert command(tmp_path, "pause", "1").startswith("1 tiny: paused (by ")
    assert "paused" in command(tmp_path, "logs", "1")
    assert command(tmp_path, "resume", "1").startswith("1 tiny: queued")
    assert "cancelled" in command(tmp_path, "cancel", "1")


def test_an_array_for_slurm(tmp_path: Path) -> None:
    """Each task of the array runs a job of its own, and the outcomes are imported as they land; a
    file that is not whole is named, and waits.
    """
    (tmp_path / "tiny.yaml").write_text(SWEEP.replace("[32, 48, 64]", "[32, 48]"))
    written = command(tmp_path, "submit", "tiny.yaml", "--slurm", "array", "--device", "cpu")
    assert written.startswith("2 jobs in array/jobs")
    script = (tmp_path / "array" / "array.sbatch").read_text()
    assert "--array=0-1\n" in script
    again = in_process("submit", "tiny.yaml", "--slurm", "array", "--db", "q.db", folder=tmp_path)
    assert (again.returncode, "exists already" in again.stderr) == (2, True)
    search = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    subprocess.run(
        ["bash", "array.sbatch"],
        cwd=tmp_path / "array",
        env=os.environ | search | {"PYTHONPATH": str(ROOT), "SLURM_ARRAY_TASK_ID": "1"},
        check=True,
        capture_output=True,
    )
    outcomes = tmp_path / "array" / "outcomes"
    assert len(list(outcomes.glob("0001-*.json"))) == 1
    (outcomes / "torn.json").write_text("{")
    printed = [*written.split("breakeven ")[1].split(), "--db", "q.db"]
    with (tmp_path / "watch.txt").open("w") as log:
        watching = subprocess.Popen(
            [sys.executable, "-m", "orchestrator", *printed],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            stdout=log,
            stderr=log,
        )
    try:
        wait_for(lambda: "torn.json" in (tmp_path / "watch.txt").read_text(), tmp_path, 60)
    finally:
        watching.send_signal(signal.SIGINT)
        assert watching.wait(30) == 130
    assert "read again when it has changed" in (tmp_path / "watch.txt").read_text()
    engine = connect_readonly(str(tmp_path / "q.db"))
    (tiny,) = sweep_summaries(engine)
    engine.dispose()
    assert (tiny["measured"], tiny["comparisons"]) == (1, 2)


@pytest.mark.slow
@pytest.mark.ray
def test_an_urgent_sweep_comes_first_and_a_killed_server_loses_nothing(tmp_path: Path) -> None:
    """A sweep that runs goes back to the queue for a more urgent one, and ends after it; its server
    is killed between, and the next one goes on. Each job is done once, and `--notify` names each
    end.
    """
    submitted(tmp_path, "patient", SWEEP.replace("[32, 48, 64]", "[32, 48, 64, 80, 96]"))
    with serving(tmp_path):
        wait_for(lambda: jobs(tmp_path).get("patient", (0, 0))[0] >= 1, tmp_path)
        submitted(tmp_path, "urgent", SWEEP.replace("0.5", "0.7"), priority=5)
        wait_for(lambda: states(tmp_path)["urgent"] == "running", tmp_path)
        assert states(tmp_path)["patient"] == "queued"
    notified = tmp_path / "ended.txt"
    script = f'echo $BREAKEVEN_SWEEP $BREAKEVEN_STATE >> "{notified}"'
    (tmp_path / "notify.sh").write_text(script)
    with serving(tmp_path, "--until-empty", "--notify", f"sh {tmp_path / 'notify.sh'}") as server:
        assert server.wait(240) == 0
    assert states(tmp_path) == {"patient": "answered", "urgent": "answered"}
    assert jobs(tmp_path) == {"patient": (5, 5), "urgent": (3, 3)}
    assert notified.read_text().split("\n")[:2] == ["urgent answered", "patient answered"]
    assert "break-even" in command(tmp_path, "logs", "1")
    command(tmp_path, "retry", "urgent", "--failed")
    assert states(tmp_path)["urgent"] == "queued"


@pytest.mark.slow
@pytest.mark.ray
def test_a_sweep_that_fails_alike_is_paused(tmp_path: Path) -> None:
    """After ten failures of one kind, with the reason; what comes after it is run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BREAKEVEN_METHODS", str(FAILING_METHODS))
        submitted(tmp_path, "failing", FAILING, priority=1)
    submitted(tmp_path, "tiny", SWEEP.replace("[32, 48, 64]", "[32]"))
    with serving(tmp_path, "--until-empty") as server:
        assert server.wait(600) == 0
    assert states(tmp_path)["failing"] == "paused"
    assert states(tmp_path)["tiny"] == "answered"
    assert "the method's own mistake" in command(tmp_path, "status", "failing")


def test_a_submission_is_named_by_its_sweep_too(tmp_path: Path) -> None:
    """The newest open one of that name; what is queued already is not queued again."""
    for name in ("first", "second"):
        submitted(tmp_path, name)
    again = command(tmp_path, "submit", str(tmp_path / "second.yaml"))
    assert "2 second: queued, priority 0: it is in the queue already" in again
    assert "2 second: paused" in command(tmp_path, "pause", "second")
    assert "2 second: queued" in command(tmp_path, "resume", "second")
    assert "2 second: cancelled" in command(tmp_path, "cancel", "second")
    assert "2 second: cancelled" in command(tmp_path, "logs", "second")
    assert "3 second: queued" in command(tmp_path, "submit", str(tmp_path / "second.yaml"))
    assert "3 second: cancelled" in command(tmp_path, "cancel", "second")
    for arguments, right in (
        (("cancel", "third"), "has no submission of third; see: status"),
        (("retry", "nosuch", "--failed"), "contains no sweep called nosuch"),
    ):
        done = in_process(*arguments, "--db", "q.db", folder=tmp_path)
        assert (done.returncode, len(done.stderr.splitlines())) == (2, 1), done.stderr
        assert right in done.stderr
