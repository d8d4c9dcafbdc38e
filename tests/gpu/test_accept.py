"""The acceptance of a GPU box, run on the CPU: the same path, on the smallest jobs."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.gpu import phases
from tests.gpu.accept import TESTS, main
from tests.gpu.phases import JOBS_EACH, PAIRS_EACH, SWEEPS, planned, reduced, shipped

ROOT = Path(__file__).parents[2]
BARE = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"ray", "sqlmodel", "sqlalchemy", "orchestrator", "store", "webapp"}:
            raise ModuleNotFoundError(f"No module named {name!r} on a bare box", name=name)
sys.meta_path.insert(0, Absent())
"""


def test_acceptance_runs_on_a_bare_box_and_its_outcomes_are_imported(tmp_path: Path) -> None:
    """Without Ray, SQLModel and our own upper floors: tests, jobs, summary and exit code; the store
    takes the outcomes in.
    """
    (tmp_path / "bare").mkdir()
    (tmp_path / "bare" / "sitecustomize.py").write_text(BARE)
    out = tmp_path / "out"
    arguments = [
        "--out",
        str(out),
        "--device",
        "cpu",
        "--minutes",
        "2",
        "--sweeps",
        "quickstart",
        "--tests",
        "tests/sweeps/test_passes.py",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "tests.gpu.accept", *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "bare")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((out / "summary.json").read_text())
    assert found["passed"]
    assert found["tests"]["passed"] >= 1
    assert found["tests"]["failed"] == 0
    (job,) = found["jobs"]
    assert len(job["points"]) == PAIRS_EACH
    assert all(point["low"] <= point["speedup"] <= point["high"] for point in job["points"])
    page = (out / "summary.md").read_text()
    assert (
        "| quickstart | deit_tiny_patch16_224 32 px batch 1 float32 sdpa eager latency | topk"
        in page
    )
    command = [
        sys.executable,
        "-m",
        "orchestrator",
        "import",
        str(out / "outcomes.jsonl"),
        "--db",
        str(tmp_path / "store.db"),
    ]
    command += ["--sweep", str(SWEEPS / "quickstart.yaml"), "--device", "cpu"]
    imported = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "1 outcome imported" in imported
    assert "linked to sweep quickstart" in imported


def test_failures_and_jobs_without_time_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failing test, an unknown sweep, jobs without time left: exit code 1, each named, the rest
    still runs.
    """
    failing = tmp_path / "test_failing.py"
    failing.write_text("def test_that_fails():\n    assert False\n")
    # more than is left once the tests have run, on any machine
    monkeypatch.setattr("tests.gpu.accept.MIN_S", 60.0)
    arguments = [
        "--out",
        str(tmp_path),
        "--device",
        "cpu",
        "--sweeps",
        "quickstart",
        "nonesuch",
        "--tests",
        str(failing),
    ]
    assert main([*arguments, "--minutes", "1"]) == 1
    problems = json.loads((tmp_path / "summary.json").read_text())["problems"]
    assert "there is no sweep nonesuch" in problems
    jobs = [problem for problem in problems if problem.startswith("quickstart, ")]
    assert jobs
    assert all(problem.endswith(": not reached in time") for problem in jobs)
    assert any("test_that_fails failed" in problem for problem in problems)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_every_sweep_of_a_device_is_planned_small(device: str) -> None:
    """Few jobs of few pairs, in every runtime and precision, the smallest first; identities are
    those of the whole sweep.
    """
    for path in shipped(device).values():
        whole = planned(path, device)
        jobs = reduced(whole, device)
        assert 1 <= len(jobs) <= JOBS_EACH
        assert all(len(job.pairs) <= PAIRS_EACH for job in jobs)
        known = {comparison for job in whole for comparison in job.comparison_ids()}
        assert {comparison for job in jobs for comparison in job.comparison_ids()} <= known


def test_the_sweeps_and_tests_for_a_gpu_are_there() -> None:
    """Those whose device is `cuda` or `auto`, and every test file that exists."""
    assert {"flops_saved", "llm_gpu", "quickstart", "tr_batch_and_size"} <= shipped("cuda").keys()
    assert all((ROOT / name).exists() for name in TESTS)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_the_parts_are_planned(device: str) -> None:
    """Each has jobs; what an earlier run answered is left out; of compiled arms those that are
    ready are left.
    """
    parts, problems = phases.planned_parts(device, None)
    assert problems == []
    assert list(parts) == [phase.name for phase in phases.PHASES]
    assert all(parts.values())
    assert {one.job.round for one in parts["quickstart"]} == {0, 1}
    first = parts["quickstart"][0]
    answered = {(first.job.round, comparison) for comparison in first.job.comparison_ids()}
    assert phases.left_part(first, answered) is None
    assert phases.left_part(first, {(1 - first.job.round, name) for _, name in answered}) == first
    if device == "cuda":
        compiled = next(one for one in parts["report"] if phases.compiled_arms(one.job))
        ready = {(compiled.job.job_id, arm) for arm in (0, 1)}
        assert phases.ready_part(compiled, set()) is None
        assert len(phases.ready_part(compiled, ready).job.pairs) <= 1


def test_a_cut_loses_no_whole_line(tmp_path: Path) -> None:
    """What a killed process wrote of a line is taken away."""
    file = tmp_path / "outcomes.jsonl"
    file.write_text("{}\n{}\n{")
    phases.cut_partial_line(file)
    assert file.read_text() == "{}\n{}\n"
    assert phases.read_outcomes(None) == []


@pytest.mark.slow
def test_the_whole_acceptance_runs_on_a_cpu(tmp_path: Path) -> None:
    """All parts in a minute and a half: outcomes of some, the rest named as not reached."""
    command = [sys.executable, "-m", "tests.gpu.accept", "--out", str(tmp_path), "--device", "cpu"]
    done = subprocess.run(
        [*command, "--minutes", "1.5", "--tests"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in {0, 1}, done.stderr
    found = json.loads((tmp_path / "summary.json").read_text())
    assert found["seconds"] < 120
    assert any(job["points"] for job in found["jobs"])
    assert all("not reached in time" in problem for problem in found["problems"])
    assert "## Where the time went" in (tmp_path / "summary.md").read_text()


def test_a_device_that_is_not_there_is_wrong_usage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 2 and one line, before anything is written."""
    from workers.measure.environment import devices

    if "cuda" in devices():
        pytest.skip("there is a GPU")
    assert main(["--out", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err == "no cuda device can be used here; there is cpu\n"
    assert not (tmp_path / "out").exists()
