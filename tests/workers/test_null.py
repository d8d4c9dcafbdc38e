"""Null test and positive control: equal arms are not called different, also beside a busy
neighbour, and slowed ones not equal.
"""

from pathlib import Path

import pytest

from tests.benchmarks.null import (
    Row,
    busy_neighbour,
    compare,
    compare_at_once,
    in_new_process,
    large_working_sets,
    show,
)

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.slow, pytest.mark.alone]
PAIRS = {"visits": 6, "pairs_min": 5, "pairs_max": 5, "budget_s": 120.0}
"""In each of 6 visits, fewer than in the sweeps: the rate of false alarms depends on no width of
the intervals.

The budget is never to be spent."""
FALSE_MARGIN = 1.01
"""No interval of equal arms may exclude every speed-up this close to 1."""
ENOUGH_S = 3.0
"""For each visit to one of the five sizes; a quiet machine needs less."""
SLOWED = 1 / 1.05
"""The speed-up of an arm that waits after each forward for 5 % of the time that this forward
took."""
EXACT_PX = 128
"""From this size on the wait is all that slows a forward."""
NARROW = (1 - SLOWED * FALSE_MARGIN) / 2
"""An interval of a slowdown of 5 % with a smaller half-width holds 1 only where it excludes the
truth by more than 1 %."""


def check_equal(title: str, rows: list[Row]) -> None:
    """All are `same` or `unclear`, but for one at most, and no other speed-up of more than 1 % is
    claimed.

    Each interval misses with a probability of 1 %, so that one of 20 does in up to every sixth run.
    """
    counts = show(title, rows)
    assert counts.total() == 20
    assert counts["faster"] + counts["slower"] <= 1
    assert counts["insufficient"] == 0
    assert all(row.speedup.pairs == 30 for row in rows)
    assert all(row.speedup.low > 0 for row in rows)
    assert (
        sum(row.speedup.low > FALSE_MARGIN or row.speedup.high < 1 / FALSE_MARGIN for row in rows)
        <= 1
    )


def test_equal_arms_are_not_called_different() -> None:
    """At most 1 of 20 A/A comparisons is called faster or slower, whatever else runs."""
    check_equal("A/A, dense against dense", in_new_process(compare, "null", **PAIRS))


def test_equal_arms_are_not_called_different_beside_a_busy_neighbour() -> None:
    """The same while another process keeps one core busy."""
    with busy_neighbour():
        rows = in_new_process(compare_at_once, "null", **PAIRS)
    check_equal("A/A while another process keeps one core busy", rows)


def test_no_verdict_contradicts_a_slowdown_of_5_percent() -> None:
    """No arm slowed by 5 % is called faster or same, intervals hold its speed-up of 1 / 1.05, and
    narrow ones but for one are `slower`.

    Small forwards are slowed by about 1 % more (see `workers/methods/vision/slowed.py`).

    How often it is seen in how much time depends on the machine: `python -m tests.benchmarks.null`
    counts that, and `tests/orchestrator/test_compare_regression.py` has a slowdown that is seen on
    any.
    """
    rows = in_new_process(compare, "slowed", visits=12, budget_s=ENOUGH_S / 3)
    counts = show("dense against dense slowed by 5 %", rows)
    assert counts.total() == 20
    assert counts["faster"] + counts["same"] == 0
    assert [row for row in rows if row.verdict == "insufficient" and row.stopped != "budget"] == []
    assert sum(row.speedup.low / FALSE_MARGIN > SLOWED for row in rows) <= 1
    assert (
        sum(row.speedup.high * FALSE_MARGIN < SLOWED for row in rows if row.image_size >= EXACT_PX)
        <= 1
    )
    narrow = [
        row for row in rows if row.verdict != "insufficient" and row.speedup.half_width < NARROW
    ]
    assert sum(row.verdict != "slower" for row in narrow) <= 1


def test_equal_arms_beside_large_working_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    """The unmodified model twice, and twice one that reads 4 MB more, beside one that reads 40: no
    equal one is called faster or slower, and the large one is called nothing but slower.
    """
    folder = ROOT / "tests" / "fixtures" / "reading_method"
    monkeypatch.setenv("BREAKEVEN_METHODS", str(folder))
    rows = in_new_process(large_working_sets, 64, 12.0)
    equal, large = rows[:2], rows[2]
    assert [row.verdict for row in equal if row.verdict in {"faster", "slower"}] == []
    assert large.verdict in {"slower", "unclear"}
