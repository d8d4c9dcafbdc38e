"""What a method leaves behind in its process: found, reported, and restored or left to another
process.
"""

import copy
import os
import re
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import psutil
import pytest
import torch

from sweeps.model.job import DENSE, Arm, Job, Protocol, Step
from sweeps.model.outcome import WORKER_UNFIT, Outcome
from tests.workers.vision_jobs import job as vision_job
from workers.measure.process_state import FLAG, Change, ProcessState
from workers.models.share_weights import checksums
from workers.run import run

FAULTS = Path(__file__).parents[1] / "faults" / "methods"
TIDY = Step(method="topk", params={"keep_rate": 0.5, "layers": [1, 2, 3]})


@pytest.fixture(autouse=True)
def _methods(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BREAKEVEN_METHODS", str(FAULTS))


def untidy(what: str, **params: str) -> Step:
    return Step(method="untidy", params={"what": what, **params})


def job(*steps: Step, **condition: object) -> Job:
    """Dense against arms of one step each, as short as the protocol allows."""
    protocol = Protocol(pairs_min=6, pairs_max=6, half_width=0.5, budget_s=0.1, timeout_s=60.0)
    return vision_job([DENSE, *(Arm(stack=(step,)) for step in steps)], protocol, **condition)


def measured(requested: Job) -> Outcome:
    outcome = run(requested, pass_seconds=0.05)
    assert not outcome.failures, outcome.failures
    return outcome


def flagged(outcome: Outcome) -> list[int]:
    return [arm.arm for arm in outcome.arms if FLAG in arm.flags]


def test_threads_set_in_the_forward_pass_are_those_of_that_arm_alone() -> None:
    """The arm's samples ran with 7 threads, which its row records; the others' with 1."""
    outcome = measured(job(untidy("threads", when="forward"), TIDY))
    assert [arm.threads for arm in outcome.arms] == [1, 7, 1]
    assert flagged(outcome) == [1]
    assert (
        'while timing untidy(what="threads", when="forward"): CPU threads of torch changed from 1'
        " to 7" in outcome.notes
    )


CHANGED = {
    ("dtype", "building"): ["default dtype changed from torch.float32 to torch.float64"],
    ("gradients", "forward"): ["gradients changed from False to True"],
    ("settings", "building"): ["float32 matmul precision", "cudnn.benchmark", "backend flash"],
    ("surroundings", "building"): ["current folder", "UNTIDY"],
}


def test_changed_settings_are_put_back_and_named() -> None:
    """The arms are flagged, the arm behind them and the next job find the process as it was."""
    before = ProcessState()
    outcome = measured(job(*(untidy(what, when=when) for what, when in CHANGED), TIDY))
    assert before.restore() == []
    assert flagged(outcome) == [1, 2, 3, 4]
    for (what, _), named in CHANGED.items():
        notes = "\n".join(note for note in outcome.notes if f'untidy(what="{what}"' in note)
        assert all(name in notes for name in named), outcome.notes
    assert WORKER_UNFIT not in outcome.system_metrics
    clean = measured(job(TIDY))
    assert (flagged(clean), clean.flags.count(FLAG), clean.notes) == ([], 0, ())


def test_what_changes_no_time_is_named_once_and_stays() -> None:
    """What only a new process is without stays; what it would inherit is restored."""
    before, mask, interval = ProcessState(), os.umask(0o077), sys.getswitchinterval()
    sys.setswitchinterval(0.5)
    try:
        assert set(before.restore()) == {
            Change(f"umask changed from {mask} to {0o077}", restored=False),
            Change(f"thread switch interval changed from {interval} to 0.5", restored=False),
        }
        assert before.restore() == []
        assert sys.getswitchinterval() == 0.5
    finally:
        sys.setswitchinterval(interval)
    assert os.umask(mask) == mask


EVERYONE = [("linear", "forward"), ("clock", "building"), ("hook", "building")]
WRITTEN = [("weights", "building"), ("weights", "forward"), ("late weights", "forward")]


@pytest.mark.parametrize(("what", "when"), EVERYONE + WRITTEN)
def test_arm_that_changes_all_others_is_named_and_they_are_left_to_another_process(
    what: str, when: str
) -> None:
    """No wrong numbers: the arm is named, its process unfit, the others apart."""
    before = torch.nn.functional.linear, time.perf_counter
    requested = job(untidy(what, when=when), TIDY)
    outcome = run(requested, pass_seconds=0.05)
    assert (outcome.suspects, outcome.samples, outcome.arms) == (
        (1, 2) if what == "late weights" else (1,),
        None,
        (),
    )
    assert [(failure.arm, failure.reason) for failure in outcome.failures] == [(None, "error")]
    assert (outcome.flags, outcome.system_metrics[WORKER_UNFIT]) == ((FLAG,), 1.0)
    others, own = requested.apart(outcome.suspects)
    assert ({others.arms[1].stack[0].method, own.arms[1].stack[0].method}) == {"topk", "untidy"}
    assert (torch.nn.functional.linear, time.perf_counter) == before
    clean = measured(job(TIDY))
    assert (flagged(clean), FLAG in clean.flags, clean.notes) == ([], False, ())


def test_a_file_that_replaces_a_function_when_it_is_imported_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The function is put back before any arm is built, and no arm is to blame."""
    (tmp_path / "patches.py").write_text("import torch\ntorch.nn.functional.linear = None\n")
    monkeypatch.setenv("BREAKEVEN_METHODS", str(tmp_path))
    before = torch.nn.functional.linear
    outcome = measured(job(TIDY))
    assert torch.nn.functional.linear is before
    assert (flagged(outcome), FLAG in outcome.flags, WORKER_UNFIT in outcome.system_metrics) == (
        [],
        False,
        False,
    )


NAMED = {
    "linear": ["torch.nn.functional.linear was replaced"],
    "modes": ["deterministic algorithms changed", "autocast on cpu changed"],
    "process": [
        "umask changed",
        "SIGALRM changed",
        "ITIMER_PROF changed",
        "garbage collector changed",
    ],
}


def test_parts_are_answered_by_new_processes(tmp_path: Path) -> None:
    """`python -m workers.run` gives a clean outcome of the others, a flagged one of the arm."""
    requested = job(untidy("linear"), TIDY)
    untidy_arm = Arm(stack=tuple(map(untidy, NAMED)))
    arms = (DENSE, untidy_arm, requested.arms[2])
    (tmp_path / "job.json").write_text(
        requested.model_copy(update={"arms": arms}).model_dump_json()
    )
    command = [sys.executable, "-m", "workers.run", str(tmp_path / "job.json")]
    variables = {**os.environ, "BREAKEVEN_METHODS": str(FAULTS)}
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
        env=variables,
    )
    found = [Outcome.model_validate_json(line) for line in done.stdout.splitlines()]
    assert [(each.job.arms[1].stack[0].method, FLAG in each.flags) for each in found] == [
        ("topk", False),
        ("untidy", True),
    ]
    assert len({each.process for each in found}) == 2
    assert all(each.samples is not None for each in found)
    tidy, own = found
    assert (tidy.notes, WORKER_UNFIT in tidy.system_metrics) == ((), False)
    assert (flagged(own), own.system_metrics[WORKER_UNFIT]) == ([1], 1.0)
    assert all(
        any(re.search(f"while preparing untidy.*{name}", note) for note in own.notes)
        for names in NAMED.values()
        for name in names
    ), own.notes


def test_checksum_shows_every_byte() -> None:
    """Each bit of a last value, an exchange of two values, another dtype's odd sizes."""
    sizes = ((2048, 2048), (3, 5), (1, 1))
    model = torch.nn.Sequential(*(torch.nn.Linear(*size) for size in sizes)).bfloat16()
    model.register_buffer("empty", torch.empty(0))
    before = checksums(model)
    assert checksums(copy.deepcopy(model)) == before
    with torch.no_grad():
        for name, weight in model.named_parameters():
            last = weight.view(torch.int16).view(-1)[-1:]
            for bit in (*(1 << shift for shift in range(15)), -(1 << 15)):
                last ^= bit
                after = checksums(model)
                assert {key for key in after if after[key] != before[key]} == {name}, bit
                last ^= bit
        first = model.get_parameter("0.weight")
        first[[0, 7]] = first[[7, 0]]
        assert checksums(model)["0.weight"] != before["0.weight"]


def test_children_left_by_a_job_are_killed_and_noted() -> None:
    """Arm and job are flagged: the process ran beside the samples of every arm."""
    outcome = measured(job(untidy("child"), TIDY))
    assert flagged(outcome) == [1]
    assert FLAG in outcome.flags
    pid = int(
        next(note for note in outcome.notes if "child processes" in note)
        .rpartition("(")[2]
        .rstrip(")")
    )
    assert not psutil.pid_exists(pid)


def test_process_that_grew_or_kept_a_thread_is_unfit() -> None:
    """190 MB for each of two copies and a thread cannot be put back; in a process of its own."""
    code = """
        import sys, os
        from tests.workers.test_process_state import FLAG, TIDY, flagged, job, measured, untidy
        from sweeps.model.outcome import WORKER_UNFIT
        first = measured(job(TIDY))
        print(first.system_metrics.get(WORKER_UNFIT), measured(job(TIDY)).system_metrics.get(WORKER_UNFIT))
        leaking = measured(job(untidy("memory")))
        seen = leaking.system_metrics
        print(seen[WORKER_UNFIT], round(seen["memory_growth_mib"], -1), leaking.flags.count(FLAG))
        threaded = measured(job(untidy("thread")))
        print(threaded.system_metrics[WORKER_UNFIT], flagged(threaded), threaded.notes[0])
        sys.stdout.flush()
        os._exit(0)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "BREAKEVEN_METHODS": str(FAULTS)},
    )
    lines = done.stdout.splitlines()
    assert lines[0] == "None None"
    assert lines[1] == "1.0 360.0 0"
    assert (
        lines[2]
        == '1.0 [1] while preparing untidy(what="thread"): threads were left running: untidy'
    )


def test_arm_that_changes_all_others_in_an_accuracy_job() -> None:
    """Not only where times are taken."""
    requested = job(untidy("weights", when="forward"), TIDY, model="digits_vit_64", data="digits")
    outcome = run(
        requested.model_copy(update={"kind": "accuracy", "protocol": Protocol(images=16)})
    )
    assert (outcome.suspects, outcome.predictions) == ((1,), None)
