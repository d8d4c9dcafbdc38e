"""Contention is waited out when it is short, and not for longer than allowed."""

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from sweeps.model.condition import Condition
from sweeps.model.job import DENSE, Job, Pair, Protocol
from sweeps.model.outcome import WAITED_S
from workers.kinds.timed_job import WAIT_SHARE
from workers.measure.monitors import LOOK_S, ContentionWait
from workers.run import run

pytestmark = pytest.mark.alone
CORES = len(os.sched_getaffinity(0))
BUSY = (
    "import sys, time\nend = time.monotonic() + float(sys.argv[1])\nwhile time.monotonic() < end:"
    " pass"
)


def counters(wall: float, foreign: float) -> dict[str, float]:
    """The counters after so many seconds, in which other processes used the cores for `foreign`
    seconds.
    """
    return {"wall": wall, "own": 0.0, "load": 0.0, "busy": foreign, "stolen": 0.0}


@contextlib.contextmanager
def busy_cores(seconds: float) -> Iterator[None]:
    """A process for each core keeps it busy for so long."""
    processes = [subprocess.Popen([sys.executable, "-c", BUSY, str(seconds)]) for _ in range(CORES)]
    try:
        time.sleep(0.5)
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def test_short_contention_is_waited_out() -> None:
    """Until others have used none of the cores for a while, and no more."""
    read = iter([counters(0, 0), counters(3, 2), counters(6, 4), counters(9, 4)])
    patience = ContentionWait(CORES, limit_s=30.0, read=lambda: next(read))
    patience.wait()
    assert patience.waited_s == pytest.approx(2 * LOOK_S)


def test_no_contention_costs_no_time() -> None:
    """One look at the counters since the last."""
    read = iter([counters(0, 0), counters(3, 0.1), counters(6, 0.2)])
    patience = ContentionWait(CORES, limit_s=30.0, read=lambda: next(read))
    patience.wait()
    patience.wait()
    assert patience.waited_s == 0


def test_lasting_contention_is_waited_for_once_and_no_longer_than_allowed() -> None:
    """Further looks cost nothing: the rest is what intervals and the flag are for."""
    with busy_cores(60.0):
        patience = ContentionWait(CORES, limit_s=1.0)
        time.sleep(0.5)
        patience.wait()
        assert patience.waited_s == pytest.approx(1.0)
        patience.wait()
    assert patience.waited_s == pytest.approx(1.0)


def test_what_a_job_waited_is_part_of_its_budget_and_of_its_outcome() -> None:
    """A job beside lasting contention stores the seconds; it is flagged and measured."""
    job = Job(
        condition=Condition(model="deit_tiny_patch16_224", image_size=32),
        arms=(DENSE, DENSE.model_copy(update={"replicate": 1})),
        pairs=(Pair(0, 1),),
        protocol=Protocol(pairs_min=6, pairs_max=6, budget_s=10.0),
    )
    with busy_cores(120.0):
        outcome = run(job, pass_seconds=0.05)
    assert outcome.samples is not None
    assert outcome.system_metrics[WAITED_S] == pytest.approx(WAIT_SHARE * 10.0)
    assert "contended" in outcome.flags
