"""What in the timed process disturbs it is seen: threads that run, and what traces it."""

import sys
import threading
import time
from typing import Any

import pytest

from tests.workers.scripted_arm import scripted_arm as method_files
from tests.workers.vision_jobs import DENSE, PASS_S, TOPK, job
from workers.measure.monitors import own_disturbances, thread_seconds
from workers.run import run

scripted_arm = pytest.fixture(method_files)
BUSY_S = 0.5


def test_a_thread_that_runs_meanwhile_is_seen() -> None:
    """One that waits is none."""
    begun, ended, busy_s = threading.Event(), threading.Event(), [0.0]

    def busy() -> None:
        begun.wait()
        while busy_s[0] < BUSY_S:
            sum(range(10_000))
            busy_s[0] = time.thread_time()
        ended.wait()

    thread = threading.Thread(target=busy)
    thread.start()
    with own_disturbances(thread_seconds) as waiting:
        time.sleep(0.05)
    with own_disturbances(thread_seconds) as running:
        begun.set()
        while busy_s[0] < BUSY_S:
            time.sleep(0.05)
    ended.set()
    thread.join()
    assert waiting == set()
    assert running == {"other_threads"}


def test_a_profiler_is_seen() -> None:
    """As debuggers and coverage, which set such a function too."""
    before = sys.getprofile()
    sys.setprofile(lambda *_: None)
    try:
        with own_disturbances(thread_seconds) as found:
            pass
    finally:
        sys.setprofile(before)
    assert "traced" in found


BUSY_THREAD = """if not hasattr(fitted, "spent"):
            import threading
            fitted.spent, fitted.wanted = 0.0, 0.0
            end = time.monotonic() + 60
            def work():
                while time.monotonic() < end:
                    fitted.spent = time.thread_time()
                    if fitted.spent > fitted.wanted: time.sleep(0.001)
            threading.Thread(target=work, daemon=True).start()
        fitted.wanted = fitted.spent + 0.03
        while fitted.spent < fitted.wanted: time.sleep(0.001)"""
"""Leaves a thread that works for 30 ms at every call, for a minute."""


def test_a_thread_that_an_arm_leaves_in_a_sweep_is_flagged(scripted_arm: Any) -> None:
    """By the flag that comparisons of functions have; arms without one have none."""
    faulty = scripted_arm("busy", BUSY_THREAD)
    quiet, busy = (run(job([DENSE, arm]), pass_seconds=PASS_S) for arm in (TOPK, faulty))
    assert not busy.failures
    assert ["other_threads" in outcome.flags for outcome in (quiet, busy)] == [False, True]
