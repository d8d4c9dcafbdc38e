"""A function of about 100 us as `breakeven.compare` times it, against a loop written by hand, in the
same rounds: uv run python -m tests.benchmarks.call_overhead
"""

import time

import breakeven
from orchestrator.api.callables import Calls
from orchestrator.api.comparison import Slot
from workers.measure.timer import SampleTime

SECONDS = 20.0


def work() -> int:
    """About 100 microseconds."""
    return sum(range(5000))


def by_hand(calls: int) -> SampleTime:
    """A slot that a user would write."""
    start = time.perf_counter()
    for _ in range(calls):
        work()
    return SampleTime((time.perf_counter() - start) / calls, None)


def slots() -> list[Slot]:
    """By hand, that of `compare`, and by hand once more."""
    return [by_hand, Calls({"old": work}, None, {}, {}).make()[0], by_hand]


if __name__ == "__main__":
    print(breakeven.measure(["by hand", "compare"], slots, time_s=SECONDS))
