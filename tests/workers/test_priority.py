"""Priority of the process that is timed: raised to the normal one where the system allows it, else
flagged.
"""

import multiprocessing
import os
import resource
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Literal, TypeVar

from tests.workers.vision_jobs import DENSE, TOPK, job
from workers.kinds import latency
from workers.measure.process_state import raise_priority
from workers.run import run

_T = TypeVar("_T")
LOW = 10
UNPRIVILEGED = 65534


def nice() -> int:
    return os.getpriority(os.PRIO_PROCESS, 0)


def elsewhere(work: Callable[[], _T], method: Literal["fork", "spawn"] = "fork") -> _T:
    """What it returns in a new process, whose priority is its own; one that computes is spawned,
    since threads do not survive a fork.
    """
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context(method)) as pool:
        return pool.submit(work).result()


def forbid() -> None:
    """Leave this process no right to a higher priority."""
    resource.setrlimit(resource.RLIMIT_NICE, (0, 0))
    if os.geteuid() == 0:
        os.setuid(UNPRIVILEGED)


def raised_where_allowed() -> tuple[bool, bool, int]:
    """Whether the system allows the normal priority to a process of a lower one; what
    `raise_priority` returns and leaves.
    """
    os.nice(max(0, LOW - nice()))
    try:
        os.setpriority(os.PRIO_PROCESS, 0, 0)
    except OSError:
        allowed = False
    else:
        allowed = True
        os.nice(LOW)
    return allowed, raise_priority(), nice()


def refused() -> tuple[bool, int]:
    os.nice(max(0, LOW - nice()))
    forbid()
    return raise_priority(), nice()


def flags_of_jobs() -> tuple[tuple[bool, ...], ...]:
    """Of a job at any priority, and of one at a low priority that cannot be raised: its flag, and
    whether it was low.
    """
    latency.BUDGET_FOR_PEAKS_S = 0.0
    requested = job([DENSE, TOPK])
    first = "low_priority" in run(requested, pass_seconds=0.05).flags, nice() > 0
    os.nice(max(0, LOW - nice()))
    forbid()
    outcome = run(requested, pass_seconds=0.05)
    assert not outcome.failures, outcome.failures
    return first, ("low_priority" in outcome.flags, nice() > 0)


def test_a_low_priority_is_raised_where_the_system_allows_it() -> None:
    """Ray's workers start at a low one; where it is refused it stays, and the flag names it."""
    allowed, raised, left = elsewhere(raised_where_allowed)
    assert raised is allowed
    assert left == (0 if allowed else LOW)


def test_a_refused_priority_is_told() -> None:
    """Without the right to it the process keeps its priority, and nothing is raised as an error."""
    assert elsewhere(refused) == (False, LOW)


def test_only_a_job_timed_at_a_low_priority_is_flagged() -> None:
    """Flagged where the priority stayed low, and only then; arms are measured."""
    first, second = elsewhere(flags_of_jobs, "spawn")
    assert first[0] is first[1]
    assert second == (True, True)
