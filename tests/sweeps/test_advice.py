"""Advice: a winner's interval holds although it won, equal arms are not preferred, limits and
Pareto sets rest on what is known.
"""

from collections.abc import Sequence

import numpy as np
import pytest

from sweeps.analysis.advice import (
    UNMODIFIED,
    Amount,
    MeasuredArm,
    Obstacle,
    PolicySpan,
    QualityCost,
    pareto,
    quality_obstacle,
    rank,
    spans,
)
from sweeps.stats.pooling import ALPHA, SpeedUp
from sweeps.text.advice_text import obstacle_text

SE, FREEDOM = 0.02, 12.0


def speedup(value: float, se: float = 0.005) -> SpeedUp:
    return SpeedUp(float(np.log(value)), se, 1e6, 100)


def arm(
    key: str,
    value: float,
    *costs: QualityCost,
    se: float = 0.005,
    obstacle: Obstacle | None = None,
    **amounts: float,
) -> MeasuredArm:
    read = {
        name: Amount(ratio, None, None, "", ratio / 1.001, ratio * 1.001)
        for name, ratio in amounts.items()
    }
    return MeasuredArm(key, speedup(value, se), costs, read, obstacle)


def cost(worse: float, half: float = 0.2, data: str = "digits") -> QualityCost:
    return QualityCost("top1", "points", data, worse, worse - half, worse + half, 1000)


def simulated(rng: np.random.Generator, truths: Sequence[float]) -> list[MeasuredArm]:
    """Arms of these true log speed-ups; standard errors are estimated with `FREEDOM` degrees, half
    the noise is shared.
    """
    shared = rng.normal(0, SE / np.sqrt(2))
    found = []
    for place, truth in enumerate(truths):
        own = rng.normal(0, SE / np.sqrt(2))
        se = SE * np.sqrt(rng.chisquare(FREEDOM) / FREEDOM)
        found.append(
            MeasuredArm(str(place), SpeedUp(truth + shared + own, float(se), FREEDOM, 100))
        )
    return found


def test_the_winners_interval_holds_although_it_was_chosen() -> None:
    """The first of 20 arms that gain nothing looks too good; its interval misses as seldom as it
    claims, which alone it would not, and in less than one of a hundred sweeps one is advised.
    """
    rng = np.random.default_rng(0)
    runs, missed, alone, bias, advised = 3000, 0, 0, 0.0, 0
    for _ in range(runs):
        arms = simulated(rng, [0.0] * 20)
        ranking = rank(arms)
        first = next(each for each in ranking.arms if each.key != UNMODIFIED)
        own = arms[int(first.key)].speedup
        missed += not first.low <= 1 <= first.high
        alone += not own.low <= 1 <= own.high
        bias += np.log(first.value)
        advised += ranking.winner.key != UNMODIFIED
    assert bias / runs > 0.5 * SE, "what came first of many is probably too good: it is not printed"
    assert missed / runs < ALPHA
    assert advised / runs < ALPHA
    assert alone / runs > 2 * ALPHA, (
        "the interval of a single comparison misses more often than it claims, once it was chosen"
    )


def test_the_winners_printed_speed_up_is_not_too_high() -> None:
    """Of eight equal arms that gain 5 % the best estimate is 1.077 in the mean; what is printed
    of it does not exceed 1.05.
    """
    rng = np.random.default_rng(2)
    rankings = [rank(simulated(rng, [np.log(1.05)] * 8)) for _ in range(1000)]
    estimates = [max(each.value for each in ranking.arms) for ranking in rankings]
    assert np.mean(estimates) > 1.065
    assert np.mean([ranking.winner.low for ranking in rankings]) <= 1.05 * 1.002


def test_equal_arms_stay_in_the_pareto_set() -> None:
    """Of eight arms that equal the unmodified model in all figures, some is left out in at most 5
    of 100 sweeps.
    """
    rng = np.random.default_rng(3)
    runs, shrunk = 1500, 0
    for _ in range(runs):
        costs = [[cost(value, 1.96 * 0.1) for value in rng.normal(0, 0.1, 1)] for _ in range(8)]
        arms = [
            each._replace(costs=tuple(own))
            for each, own in zip(simulated(rng, [0.0] * 8), costs, strict=True)
        ]
        shrunk += len(pareto(arms)) < 9
    assert shrunk / runs <= 0.05


def test_the_order_is_that_of_the_low_ends() -> None:
    """A sure gain comes before a larger one that is less sure; the unmodified model comes before
    what is not clearly faster.
    """
    arms = [arm("sure", 1.2), arm("perhaps", 1.5, se=0.15), arm("same", 1.01, se=0.001)]
    ranking = rank([*arms, arm("slow", 0.8)])
    assert [each.key for each in ranking.arms] == ["sure", UNMODIFIED, "same", "perhaps", "slow"]
    assert ranking.winner.advised
    assert (ranking.compared, ranking.each_alpha) == (4, ALPHA / 4)
    assert rank([]).winner.key == UNMODIFIED
    assert rank([arm("a", 1.2)], compared=50).winner.low < rank([arm("a", 1.2)]).winner.low


def test_a_limit_on_quality_needs_quality() -> None:
    """An arm is advised where every data set shows that it keeps the limit, by the upper end; not
    known is not kept.
    """
    arms = [
        arm("unknown", 2.0),
        arm("wide", 1.8, cost(0.9)),
        arm("elsewhere", 1.7, cost(0.1), cost(3, data="other")),
        arm("kept", 1.1, cost(0.5)),
    ]
    assert rank(arms).winner.key == "unknown"
    ranking = rank(arms, max_drop=1.0)
    assert ranking.winner.key == "kept"
    found = {each.key: obstacle_text(each.obstacle) for each in ranking.arms}
    assert found["unknown"] == "what it costs in quality was not measured"
    assert found["wide"] == "it may lose 1.15 points on digits, more than 1"
    assert found["elsewhere"] == "it may lose 3.25 points on other, more than 1"
    assert (
        obstacle_text(quality_obstacle([cost(0)._replace(high=None)], 1.0))
        == "its quality on digits has no interval"
    )
    assert rank([arm("control", 3.0, obstacle=Obstacle("not_for_use"))]).winner.key == UNMODIFIED


def test_the_pareto_set_compares_what_both_have() -> None:
    """An arm drops out where another is at least as good in everything and clearly better in one;
    not where figures are missing.
    """
    arms = [
        arm("fast", 1.5, cost(1.0), peak_rss=1.0),
        arm("better", 1.5, cost(0.2), peak_rss=1.0),
        arm("slower", 1.2, cost(0.2), peak_rss=1.0),
        arm("lean", 1.2, cost(0.2), peak_rss=1.5),
        arm("unknown", 1.1, peak_rss=1.0),
        arm("control", 9.0, cost(0.0), obstacle=Obstacle("not_for_use")),
    ]
    assert set(pareto(arms)) == {"better", "lean", "unknown", UNMODIFIED}
    assert set(pareto([arm("a", 1.2), arm("b", 1.5), arm("c", 0.7)])) == {"b"}
    close = [arm("a", 1.20, se=0.05), arm("b", 1.21, se=0.05)]
    assert set(pareto(close)) == {"a", "b"}, "not clearly better"


@pytest.mark.parametrize(
    ("memory", "energy", "stays"),
    [(1.0, 1.0, False), (0.999, 1.0, False), (0.97, 1.0, True), (1.0, 0.97, True)],
)
def test_amounts_within_the_floor_are_as_good(memory: float, energy: float, stays: bool) -> None:
    """A faster arm surpasses the unmodified model unless it needs more memory by more than the
    floor, or clearly more energy.
    """
    found = pareto([arm("fast", 1.5, peak_rss=memory, energy_per_image=energy)])
    assert (UNMODIFIED in found) == stays
    assert "fast" in found


def test_spans_reach_between_neighbours_that_agree_and_no_further() -> None:
    """Between two sizes an arm is used if it is faster at both, beyond the ends there is none."""
    rankings = {
        16: rank([arm("a", 0.8), arm("b", 0.9)]),
        64: rank([arm("a", 1.3), arm("b", 1.2)]),
        100: rank([arm("a", 1.1), arm("b", 1.4)]),
        101: rank([arm("b", 1.5)]),
    }
    found = spans(rankings)
    kept = [(span.first, span.last, span.key) for span in found]
    assert kept == [(16, 63, UNMODIFIED), (64, 64, "a"), (65, 101, "b")]
    assert found[2].measured == (64, 100, 101)
    assert found[2].at_least == pytest.approx(1.2, abs=0.03)
    assert found[0] == PolicySpan(16, 63, UNMODIFIED, 1.0, (16, 64))
    assert spans({}) == ()
