"""What in the timed process disturbs it is seen: threads that run, and what traces it."""

import sys
import threading
import time

from workers.measure.monitors import own_disturbances

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
    with own_disturbances() as waiting:
        time.sleep(0.05)
    with own_disturbances() as running:
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
        with own_disturbances() as found:
            pass
    finally:
        sys.setprofile(before)
    assert "traced" in found
