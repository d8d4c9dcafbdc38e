"""Evidence of speed-ups: whether one is noise (pair by pair, half against half, equal columns
against each other), and whether two answers to one question differ, at a stated rate of false
alarms.

Only speed-ups are compared, which each side measured against its own baseline; no ratio of times is
formed between two places.
"""

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from math import exp, hypot, inf, log
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sweeps.model.metrics import SPEED_FLOOR
from sweeps.stats.pooling import SPENT_NOW, WIDEST_LOG, SpeedUp, quantile, ratio_verdict
from sweeps.stats.quality import mcnemar
from sweeps.stats.timing import Array, Contrast, Rounds, outliers


class Halves(NamedTuple):
    """The log speed-up by the earlier and by the later half of the rounds."""

    earlier: Contrast
    later: Contrast
    p: float | None
    """Of a difference at least so large where both are the same; `None` where a half has too few
    rounds."""


class Signs(NamedTuple):
    """How many pairs have the arm faster and slower; pairs with equal times are left out."""

    faster: int
    slower: int
    p: float
    """Of a split this uneven where either is as likely (two-sided, exact), the pairs being
    independent."""

    @classmethod
    def of(cls, faster: int, slower: int) -> "Signs":
        return cls(faster, slower, mcnemar(faster, slower))


def pair_logs(seconds: ArrayLike, arms: Sequence[int], baseline: int, arm: int) -> Array:
    """Log of baseline over arm in each round, shape [rounds], from times of shape [rounds,
    columns].

    Of an arm with several columns it is the mean of the logarithms, as in `Rounds.contrast`.
    """
    logs, columns = np.log(np.asarray(seconds, dtype=np.float64)), np.asarray(arms)
    found: Array = logs[:, columns == baseline].mean(axis=1) - logs[:, columns == arm].mean(axis=1)
    return found


def outlying(logs: ArrayLike) -> NDArray[np.bool_]:
    """Which log ratios lie outside the outer fences of `sweeps.stats.timing.outliers`; they are
    shown, and count as all do.
    """
    return outliers(np.exp(np.asarray(logs, dtype=np.float64)))


def halves(seconds: ArrayLike, arms: Sequence[int], baseline: int, arm: int) -> Halves:
    """Both halves of times of shape [rounds, columns], of at least 2 rounds, and whether they
    agree.
    """
    times = np.asarray(seconds, dtype=np.float64)
    middle = len(times) // 2
    earlier, later = (
        Rounds(part, arms).contrast(baseline, arm) for part in (times[:middle], times[middle:])
    )
    return Halves(earlier, later, difference_p(earlier, later))


def signs(logs: ArrayLike) -> Signs:
    """The sign test of log ratios, shape [pairs]."""
    ratios = np.asarray(logs, dtype=np.float64)
    return Signs.of(int(np.sum(ratios > 0)), int(np.sum(ratios < 0)))


def no_effect_p(contrast: Contrast) -> float | None:
    """Two-sided probability of an effect at least so large where there is none; `None` without a
    standard error.
    """
    return _two_sided(contrast.effect, contrast.se, contrast.freedom)


def difference_p(one: Contrast, other: Contrast) -> float | None:
    """Two-sided probability that independent estimates of one effect lie at least so far apart
    (Welch); `None` without errors.
    """
    se = hypot(one.se, other.se)
    if not 0 < se < inf:
        return None
    freedom = se**4 / sum(each.se**4 / each.freedom for each in (one, other))
    return _two_sided(one.effect - other.effect, se, freedom)


def _two_sided(effect: float, se: float, freedom: float) -> float | None:
    if not 0 < se < inf:
        return None
    # imported late, because commands without statistics do not need it
    from scipy.special import stdtr

    return float(2 * stdtr(freedom, -abs(effect) / se))


FAMILY_ALPHA = 0.05
"""Probability that any of the questions side by side is called different where none is, however
often each was measured."""

Contrasted = Literal[
    "different", "apart", "same", "overlap", "unclear", "one answer", "not comparable"
]
"""`different`, `same`, `unclear`: by the interval of the ratio of both speed-ups. `apart`,
`overlap`: of answers with a process in common, by their own intervals. `one answer`: both show the
same measurement. `not comparable`: one has no interval or verdict."""

Row = Mapping[str, Any]


class SpeedAnswer(NamedTuple):
    """What is compared of a stored speed-up."""

    log: float
    se: float | None
    """`None` where there were too few pairs."""
    freedom: float
    processes: frozenset[str] | None
    """Those that measured it; `None` where they are not known."""
    key: Hashable = None
    """Equal for the same stored answer."""

    def half_width(self, alpha: float) -> float:
        """Of the interval of `log` that misses with probability `alpha` over all looks; infinite
        where there is none.
        """
        se = inf if self.se is None else self.se
        return SpeedUp(self.log, se, self.freedom, 0, alpha).half_width


class SpeedDifference(NamedTuple):
    """How two speed-ups differ."""

    found: Contrasted
    ratio: float
    """Speed-up of the first side over that of the second."""
    low: float | None
    """Interval of the ratio at the level of the family; `None` without one, and where both have a
    process in common."""
    high: float | None

    @property
    def distance(self) -> float:
        """How far the interval stays from 1, as a logarithm; of one that holds 1, or of none, how
        far the ratio lies from it.
        """
        if self.low is None or self.high is None or self.low <= 1 <= self.high:
            return abs(log(self.ratio))
        return min(abs(log(self.low)), abs(log(self.high)))


def speed_difference(
    a: SpeedAnswer, b: SpeedAnswer, questions: int, floor: float = SPEED_FLOOR
) -> SpeedDifference:
    """Whether two answers to a question differ, as one of `questions` that are looked at together.

    Each may be called different wrongly with probability `FAMILY_ALPHA` / `questions` (Bonferroni).
    Answers without a common process are independent: the ratio of their speed-ups has an interval,
    by Student's t with the smaller of their degrees of freedom, since both may rest on one
    calibration, at a quarter of the level: the rest covers looks after further runs. Others are
    called `apart` where their own intervals, each at half of the level, do not touch: that holds
    whatever they have in common. Raises `ValueError` for less than one question.
    """
    if questions < 1:
        raise ValueError(f"{questions} questions cannot be compared; at least one is needed")
    ratio = exp(a.log - b.log)
    if a.key is not None and a.key == b.key:
        return SpeedDifference("one answer", 1.0, None, None)
    alpha = FAMILY_ALPHA / questions
    if not independent(a, b):
        widths = a.half_width(alpha / 2) + b.half_width(alpha / 2)
        if widths == inf:
            return SpeedDifference("not comparable", ratio, None, None)
        return SpeedDifference(
            "apart" if abs(a.log - b.log) > widths else "overlap", ratio, None, None
        )
    if a.se is None or b.se is None:
        return SpeedDifference("not comparable", ratio, None, None)
    width = quantile(alpha * SPENT_NOW**2, min(a.freedom, b.freedom)) * hypot(a.se, b.se)
    if width > WIDEST_LOG:
        return SpeedDifference("not comparable", ratio, None, None)
    low, high = ratio * exp(-width), ratio * exp(width)
    verdict = ratio_verdict(low, high, floor)
    return SpeedDifference(
        "same" if verdict == "same" else "unclear" if verdict == "unclear" else "different",
        ratio,
        low,
        high,
    )


def independent(a: SpeedAnswer, b: SpeedAnswer) -> bool:
    """Whether no process measured both."""
    return a.processes is not None and b.processes is not None and not a.processes & b.processes


class MatchedAnswers(NamedTuple):
    """Rows of two sides, those that answer the same question beside each other."""

    pairs: list[tuple[Row, Row]]
    differing: dict[str, tuple[Any, Any]]
    """Fields that have one value on each side, and not the same: they are what is compared."""
    only_a: int
    """Rows of the first side without a counterpart."""
    only_b: int


def match_answers(
    a: Sequence[Row], b: Sequence[Row], fields: Iterable[str], free: Collection[str] = ()
) -> MatchedAnswers:
    """The rows of both sides that are equal in all `fields`, but those in which the sides differ.

    A field is what the sides differ in if it is `free`, or if each has a single value of it, and
    another one. Of rows of one side that are equal in the other fields the last one counts.
    """
    names = [name for name in fields if name not in free]
    values = {
        name: ({row[name] for row in a}, {row[name] for row in b}) for name in (*names, *free)
    }
    single = {
        name: (next(iter(one)), next(iter(other)))
        for name, (one, other) in values.items()
        if len(one) == len(other) == 1
    }
    differing = {name: both for name, both in single.items() if both[0] != both[1]}
    key = [name for name in names if name not in differing]
    first, second = ({tuple(row[name] for name in key): row for row in side} for side in (a, b))
    pairs = [(row, second[place]) for place, row in first.items() if place in second]
    return MatchedAnswers(pairs, differing, len(first) - len(pairs), len(second) - len(pairs))
