"""What in this process itself disturbs its timing: other threads that run, and whatever traces
it.
"""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psutil

RUNNING_SHARE = 0.02
"""A thread runs if it takes more of a core than this; the kernel counts in ticks of 10 ms."""


@contextmanager
def own_disturbances() -> Iterator[set[str]]:
    """The flags of what disturbs the block, known at its end: `other_threads` of Python that ran
    all the while, and `traced` by a debugger, a profiler or a measurement of coverage.
    """
    flags = {"traced"} if is_traced() else set()
    before, start = _seconds_by_thread(), time.perf_counter()
    yield flags
    least_s = max(0.02, RUNNING_SHARE * (time.perf_counter() - start))
    after = _seconds_by_thread()
    if any(after.get(thread, 0.0) - spent > least_s for thread, spent in before.items()):
        flags.add("other_threads")


def is_traced() -> bool:
    """Whether Python code of this thread runs with a trace or profile function or an events tool
    (`sys.monitoring`, Python 3.12).
    """
    if sys.gettrace() is not None or sys.getprofile() is not None:
        return True
    monitoring = getattr(sys, "monitoring", None)
    return monitoring is not None and any(
        monitoring.get_tool(tool) is not None and monitoring.get_events(tool) for tool in range(6)
    )


def _seconds_by_thread() -> dict[int, float]:
    """CPU time of the other threads that Python started, by their number in the kernel; without
    threads of torch and BLAS, which work for the arms.
    """
    others = {
        thread.native_id
        for thread in threading.enumerate()
        if thread is not threading.current_thread()
    }
    if not others:
        return {}
    return {
        each.id: each.user_time + each.system_time
        for each in psutil.Process().threads()
        if each.id in others
    }
