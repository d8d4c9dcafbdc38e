"""Advice: which of the arms measured under one condition to use, by intervals that hold for all of
them together.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import inf, sqrt
from typing import Literal, NamedTuple

from sweeps.model.metrics import METRICS, SPEED_FLOOR
from sweeps.stats.pooling import ALPHA, SpeedUp, Verdict, quantile

FRONT_ALPHA = 0.05
"""Probability that any interval misses by which arms are left out of a Pareto set."""
QUALITY_ALPHA = 0.05
"""Of the interval of a cost in quality."""
UNMODIFIED = "unmodified"
"""Key of the model without a method, which is always among what is ranked."""


class QualityCost(NamedTuple):
    """By how much an arm is worse than the unmodified model on one data set; it holds for no other
    data and no other model.
    """

    metric: str
    unit: str
    """For people: `points` or `bits per byte`."""
    data: str
    """The data set with its corruption, if it has one."""
    worse: float
    low: float | None
    high: float | None
    """The 95 % interval of this cost alone."""
    items: int
    """Images or windows that it rests on."""


class Obstacle(NamedTuple):
    """Why an arm cannot be advised, however fast it is."""

    reason: Literal["no_effect", "not_for_use", "no_quality", "quality"]
    purpose: str = ""
    """Of a method that is not for use."""
    method: str = ""
    cost: QualityCost | None = None
    """That exceeds `max_drop`, or has no interval."""
    max_drop: float = 0.0


class Amount(NamedTuple):
    """What is read besides times: peak memory or energy, of the arm and of the unmodified model
    next to it.
    """

    ratio: float
    """How many times less the arm needs."""
    baseline: float | None
    arm: float | None
    unit: str
    low: float | None = None
    """Interval of the ratio at `ALPHA`; `None` where it was read once."""
    high: float | None = None


class MeasuredArm(NamedTuple):
    """One arm against the unmodified model at one size."""

    key: str
    """Names the arm among those that are ranked together."""
    speedup: SpeedUp
    costs: tuple[QualityCost, ...] = ()
    amounts: Mapping[str, Amount] = {}
    """Peak memory and energy by metric."""
    obstacle: Obstacle | None = None


class RankedArm(NamedTuple):
    """An arm in its place of a ranking, with an interval that holds together with those of the
    others.
    """

    key: str
    value: float
    low: float
    high: float
    verdict: Verdict
    obstacle: Obstacle | None = None
    """`None` where only its speed counts."""

    @property
    def advised(self) -> bool:
        """Whether it may be used instead of the unmodified model: clearly faster, and nothing
        stands against it.
        """
        return self.verdict == "faster" and not self.obstacle


class Ranking(NamedTuple):
    """Arms of one condition: first those that are advised, then the unmodified model, then the
    rest, each by the low end.
    """

    arms: tuple[RankedArm, ...]
    compared: int
    """Intervals that hold together."""
    alpha: float
    """Probability that any of them misses."""

    @property
    def winner(self) -> RankedArm:
        return self.arms[0]

    @property
    def each_alpha(self) -> float:
        """Level of each interval (Bonferroni)."""
        return self.alpha / max(1, self.compared)


def rank(
    arms: Sequence[MeasuredArm],
    *,
    max_drop: float | None = None,
    compared: int | None = None,
) -> Ranking:
    """The arms and the unmodified model in the order in which they are to be preferred.

    The best of many estimates is probably too good (the winner's curse). So the order is that of
    the low ends of intervals that all hold at once with probability 1 - `ALPHA`: whichever arm
    comes first, its interval misses no more often than that. `compared` is the number of intervals
    that must hold together where other rankings belong to the same decision (default: of these
    arms).

    An arm is advised if its interval makes it faster (`ratio_verdict`: `same` is not) and it loses
    at most `max_drop`, in the unit of its quality, by the upper end on every data set where that
    was measured; where it was not, it is not known to hold. The arms share the level of that end
    too: if all of them lose more, one is accepted with probability `QUALITY_ALPHA` / 2 at most.
    """
    number = max(1, len(arms) if compared is None else compared)
    ranked = []
    for arm in arms:
        together = arm.speedup._replace(alpha=ALPHA / number)
        obstacle = arm.obstacle or quality_obstacle(arm.costs, max_drop, number)
        ranked.append(
            RankedArm(
                arm.key, together.value, together.low, together.high, together.verdict(), obstacle
            )
        )
    ranked.sort(key=lambda each: -each.low)
    advised = [each for each in ranked if each.advised]
    rest = [each for each in ranked if not each.advised]
    return Ranking((*advised, RankedArm(UNMODIFIED, 1.0, 1.0, 1.0, "same"), *rest), number, ALPHA)


def quality_obstacle(
    costs: Sequence[QualityCost], max_drop: float | None, number: int = 1
) -> Obstacle | None:
    """Why costs do not show that at most `max_drop` is lost, by intervals that hold for `number`
    arms together; `None` where they do, or nothing is required.
    """
    if max_drop is None:
        return None
    wider = _wider(QUALITY_ALPHA / number, QUALITY_ALPHA)
    for cost in costs:
        high = None if cost.high is None else cost.worse + wider * (cost.high - cost.worse)
        if high is None or high > max_drop:
            return Obstacle("quality", cost=cost._replace(high=high), max_drop=max_drop)
    return None if costs else Obstacle("no_quality")


def _wider(alpha: float, known: float) -> float:
    """How many times as wide as at the level `known` an interval is at `alpha` (normal)."""
    return quantile(alpha, inf) / quantile(known, inf)


class Figure(NamedTuple):
    """Something of which more is better, with its interval."""

    value: float
    low: float
    high: float
    alpha: float | None = None
    """Probability that the interval misses; `None` where it is exact, or no matter of chance."""


_Figures = Mapping[tuple[str, str], Figure]
"""By what was measured and on which data."""


def pareto(arms: Sequence[MeasuredArm]) -> tuple[str, ...]:
    """Keys of the arms, and of the unmodified model, that no other surpasses in time, quality,
    memory and energy, as measured.

    One surpasses another if it is at least as good by every figure that either has, and clearly
    better by one: the intervals do not meet. Peak memory is as good within the floor, and clearly
    better beyond it; energy is as good where the intervals meet, and does not count where it was
    read once. Where only one of the two has a figure, neither is surpassed.
    """
    figures = {arm.key: dict(_figures(arm)) for arm in arms if not arm.obstacle}
    names = {name for own in figures.values() for name in own}
    figures[UNMODIFIED] = {
        name: Figure(*((0.0,) * 3 if name[0] == "quality" else (1.0,) * 3)) for name in names
    }
    return unsurpassed(figures)


def unsurpassed(figures: Mapping[str, _Figures]) -> tuple[str, ...]:
    """The keys whose figures no other surpasses, as in `pareto`.

    Intervals are widened until all of them hold together with probability 1 - `FRONT_ALPHA`
    (Bonferroni; by quantiles of the normal distribution), so that arms which are equal in all
    figures are left out no more often than that.
    """
    number = sum(each.alpha is not None for own in figures.values() for each in own.values())
    together = {
        key: {name: _widened(each, number) for name, each in own.items()}
        for key, own in figures.items()
    }
    return tuple(
        key
        for key, own in together.items()
        if not any(_surpasses(other, own) for name, other in together.items() if name != key)
    )


def _widened(figure: Figure, number: int) -> Figure:
    """With an interval that holds together with those of `number` figures."""
    if figure.alpha is None:
        return figure
    wider = max(1.0, _wider(FRONT_ALPHA / number, figure.alpha))
    low, high = (figure.value + wider * (end - figure.value) for end in (figure.low, figure.high))
    return figure._replace(low=low, high=high)


def _figures(arm: MeasuredArm) -> Iterator[tuple[tuple[str, str], Figure]]:
    speedup = arm.speedup
    yield ("time", ""), Figure(speedup.value, speedup.low, speedup.high, speedup.alpha)
    for cost in arm.costs:
        known = cost.low is not None and cost.high is not None
        low, high = (cost.worse if end is None else end for end in (cost.low, cost.high))
        alpha = QUALITY_ALPHA if known else None
        yield (
            ("quality", f"{cost.metric} on {cost.data}"),
            Figure(0 - cost.worse, 0 - high, 0 - low, alpha),
        )
    half = sqrt(1 + SPEED_FLOOR)  # intervals of two amounts meet where they differ by the floor
    for name, amount in arm.amounts.items():
        ratio = amount.ratio
        if METRICS[name].repeatable:
            yield ("amount", name), Figure(ratio, ratio / half, ratio * half)
        elif amount.low is not None and amount.high is not None:
            yield ("amount", name), Figure(ratio, amount.low, amount.high, ALPHA)


def _surpasses(one: _Figures, other: _Figures) -> bool:
    if one.keys() != other.keys():
        return False
    pairs = [(name[0], one[name], other[name]) for name in other]
    at_least = (a.high >= b.low if what == "amount" else a.value >= b.value for what, a, b in pairs)
    return all(at_least) and any(a.low > b.high for _, a, b in pairs)


class PolicySpan(NamedTuple):
    """Sizes of the work, both ends included, for which a policy has one answer."""

    first: int
    last: int
    key: str
    """Of the arm to use, or `UNMODIFIED`."""
    at_least: float
    """Least speed-up by the intervals at all measured sizes that it rests on; 1 of the unmodified
    model."""
    measured: tuple[int, ...]
    """Measured sizes that it rests on: those in it, and its neighbours where it reaches between
    two."""


def spans(rankings: Mapping[int, Ranking]) -> tuple[PolicySpan, ...]:
    """The arm to use at each whole size from the first to the last that was measured, neighbours
    with one answer together.

    At a measured size it is the winner there. Between two neighbouring measured sizes it is the arm
    that is advised at both, of several the one whose lower low end is highest; where there is none,
    the unmodified model. There is no answer beyond the ends.
    """
    sizes = sorted(rankings)
    found = []
    for place, size in enumerate(sizes):
        winner = rankings[size].winner
        found.append(PolicySpan(size, size, winner.key, winner.low, (size,)))
        if place + 1 < len(sizes) and sizes[place + 1] - size > 1:
            found.append(_between(size, sizes[place + 1], rankings))
    joined: list[PolicySpan] = []
    for span in found:
        before = joined.pop() if joined and joined[-1].key == span.key else None
        if before is None:
            joined.append(span)
            continue
        measured = tuple(sorted({*before.measured, *span.measured}))
        joined.append(
            before._replace(
                last=span.last, at_least=min(before.at_least, span.at_least), measured=measured
            )
        )
    return tuple(joined)


def _between(left: int, right: int, rankings: Mapping[int, Ranking]) -> PolicySpan:
    lows = [
        {each.key: each.low for each in rankings[size].arms if each.advised}
        for size in (left, right)
    ]
    both = {key: min(low, lows[1][key]) for key, low in lows[0].items() if key in lows[1]}
    key = max(both, key=lambda each: both[each], default=UNMODIFIED)
    return PolicySpan(left + 1, right - 1, key, both.get(key, 1.0), (left, right))
