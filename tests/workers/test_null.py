"""Null test and positive control: equal arms are not called different, and a slowdown of 5 % is, also beside a busy neighbour."""

import pytest

from tests.benchmarks.null import busy_neighbour, compare, show

pytestmark = pytest.mark.slow
BUDGET_S = 4.0
"""Shorter than the sweeps ask for: false alarms must not come of wide intervals either."""
ENOUGH_S = 12.0
"""To see a slowdown of 5 % where samples scatter by several per cent; the sweeps ask for 20 s."""


def test_equal_arms_are_not_called_different() -> None:
    """At most 1 of 20 A/A comparisons is called faster or slower, whatever the machine is doing meanwhile."""
    counts = show("A/A, dense against dense", compare("null", apart=True, budget_s=BUDGET_S))
    assert counts.total() == 20
    assert counts["faster"] + counts["slower"] <= 1


def test_equal_arms_are_not_called_different_beside_a_busy_neighbour() -> None:
    """The same while another process keeps one core busy."""
    with busy_neighbour():
        counts = show("A/A while another process keeps one core busy", compare("null", budget_s=BUDGET_S))
    assert counts.total() == 20
    assert counts["faster"] + counts["slower"] <= 1


def test_a_slowdown_of_5_percent_is_seen() -> None:
    """At least 18 of 20 comparisons with an arm slowed by 5 % are called slower."""
    counts = show("dense against dense slowed by 5 %", compare("slowed", budget_s=ENOUGH_S))
    assert counts.total() == 20
    assert counts["slower"] >= 18
