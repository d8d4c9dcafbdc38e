"""A function of 100 us measured by breakeven.compare against a loop written by hand, interleaved:
`uv run pytest -q -n 0 -s tests/benchmarks/test_call_overhead.py -m slow`.
"""

import statistics
import time

import pytest

import breakeven

CALLS = 50
ROUNDS = 40


def work() -> int:
    """About 100 microseconds."""
    return sum(range(5000))


def by_hand() -> float:
    start = time.perf_counter()
    for _ in range(CALLS):
        work()
    return (time.perf_counter() - start) / CALLS


@pytest.mark.slow
@pytest.mark.alone
def test_a_call_takes_what_a_loop_by_hand_takes() -> None:
    """Within 2 %, by the quickest quarter of both, which neighbours disturb least."""
    ratios = []
    for _ in range(5):
        hand = [by_hand() for _ in range(ROUNDS)]
        found = breakeven.compare({"old": work, "new": work}, time=3, visits=4)
        hand += [by_hand() for _ in range(ROUNDS)]
        times = [row[0] for visit in found.visits for row in visit.samples.seconds]
        ratios.append(quickest(times) / quickest(hand))
    print("measured / by hand:", ", ".join(f"{ratio:.4f}" for ratio in ratios))
    assert abs(statistics.median(ratios) - 1) < 0.02


def quickest(times: list[float]) -> float:
    """The median of the quickest quarter, in seconds."""
    return statistics.median(sorted(times)[: max(1, len(times) // 4)])
