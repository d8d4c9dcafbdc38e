"""An arm against a baseline with a margin: the verdict of an interval, and the time until there is
one.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from math import exp, log1p
from typing import Literal, NamedTuple

from sweeps.stats.pooling import WIDEST_LOG, SpeedUp, quantile
from sweeps.stats.timing import Contrast
from sweeps.stats.visits import Pooling

DEFAULT_MARGIN = 0.02
"""An arm is slower only if it certainly loses more than this share of the speed."""

Judgement = Literal["faster", "slower", "equal", "undecided"]


class Ratio(NamedTuple):
    """A ratio of times with its interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class ComparedArm:
    """One arm compared with the baseline; a speed-up of 2 is half the time."""

    name: str
    verdict: Judgement
    """`faster`: the interval lies above 1. `slower`: below 1 / (1 + margin). `equal`: within the
    margin on both sides. Else `undecided`."""
    ratio: float
    """Speed-up: time of the baseline over that of the arm."""
    low: float
    """99 % interval over all looks; 0 and infinity where there is none."""
    high: float
    pairs: int
    """Rounds that it rests on."""
    visits: int
    flags: tuple[str, ...] = ()
    """Reasons for doubt, see `sweeps.model.flags`."""
    needed_s: float | None = None
    """Seconds in all after which it should be decided, from the width of the interval; `None` for a
    decided one, and where that is not known."""
    not_slower: bool = False
    """Whether the interval lies above 1 / (1 + margin)."""


def judge(low: float, high: float, margin: float = DEFAULT_MARGIN) -> Judgement:
    """The verdict of an interval of a speed-up, see `ComparedArm.verdict`."""
    if low > 1:
        return "faster"
    if high < 1 / (1 + margin):
        return "slower"
    return "equal" if low > 1 / (1 + margin) and high < 1 + margin else "undecided"


def compare_pooled(
    name: str,
    pooling: Pooling,
    flags: Iterable[str],
    *,
    margin: float,
    alpha: float,
    spent_s: float,
) -> ComparedArm:
    """What the visits of an arm show at a look that spends its part of `alpha`, after `spent_s`
    seconds of them.
    """
    found = pooling.speedup._replace(alpha=alpha)
    verdict = judge(found.low, found.high, margin)
    raised = {"slow_state": pooling.state == "slow", "states_differ": pooling.states_differ}
    return ComparedArm(
        name,
        verdict,
        found.value,
        found.low,
        found.high,
        found.pairs,
        len(pooling.parts),
        tuple(sorted({*flags, *(flag for flag, holds in raised.items() if holds)})),
        needed_time(found, margin, spent_s) if verdict == "undecided" else None,
        not_slower=found.low > 1 / (1 + margin),
    )


def null_ratio(null: Contrast | None, alpha: float) -> Ratio:
    """Of two copies of the baseline; without an interval where there was one visit alone, or
    none narrower than `WIDEST_LOG`.
    """
    if null is None:
        return Ratio(1.0, 0.0, math.inf)
    half_width = quantile(alpha, null.freedom) * null.se
    if not half_width <= WIDEST_LOG:
        return Ratio(exp(null.effect), 0.0, math.inf)
    return Ratio(*(exp(null.effect + side * half_width) for side in (0, -1, 1)))


def needed_time(found: SpeedUp, margin: float, spent_s: float) -> float | None:
    """Seconds after which the interval, whose width falls with the root of the time, is narrow
    enough for a verdict; `None` where there is no interval.
    """
    allowed = log1p(margin)
    distance = max(found.log, -found.log - allowed, allowed - abs(found.log))
    if found.half_width == math.inf or distance <= 0:
        return None
    return spent_s * max(1.0, (found.half_width / distance) ** 2)
