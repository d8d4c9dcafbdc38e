"""Speed-up from short visits spread over time: the rounds in one state of the machine, and how much visits differ.

A machine changes its speed by 15 to 25 % for seconds or minutes, and speed-ups move with it. So the rounds of one state are
compared, what differs between visits is estimated by leaving out one at a time, and no visit counts more than its share of
these rounds.
"""

from collections.abc import Sequence
from math import exp, hypot
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sweeps.stats.pooling import ALPHA, Pooling, ProcessPart, ProcessTerm, SpeedUp, Visited, process_half_width, quantile
from sweeps.stats.two_way import NORMAL_MAD, Array, Contrast

LEVEL_QUANTILE = 0.05
"""Of the times of a column over all visits: its quickest known level."""
QUICK_LOG = 0.10
"""A round is quick if the median of its columns lies less than this above their quickest levels, in logarithms."""
QUICK_SHARE = 0.2
"""The quick state is claimed where it has at least this share of the rounds."""
LOWEST = 0.7
"""The share of a column's times in the state, the lowest ones, whose mean is its estimate."""
FLOOR_SD, FLOOR_FREEDOM = 0.01, 3.0
"""What the log speed-ups of visits are taken to deviate by before any two are compared, and the degrees of freedom of that."""

ALONE_FREEDOM = 4.0
"""From so many degrees of freedom on, what visits differ by has an interval of its own."""


class Visit(NamedTuple):
    """The rounds of two arms in one visit."""

    baseline: Array
    """Seconds, shape [rounds, columns of the baseline]."""
    arm: Array
    """Seconds, shape [rounds, columns of the arm]."""


def pool_visits(visits: Sequence[Visit], turns: Sequence[int], floor_sd: float = FLOOR_SD) -> Pooling:
    """The speed-up of an arm over its baseline from visits, oldest first, as a pooling of which each visit is a part.

    `turns` has for each visit which of its run it was. All count as one look, with half of the level: the other half covers looks
    after further runs (`tests/sweeps/test_visits.py`). Raises `ValueError` without a visit.
    """
    if not visits:
        raise ValueError("no visit to pool; at least one is needed")
    slots = min(visit.baseline.shape[1] for visit in visits)
    table = np.log(np.vstack([np.hstack([visit.baseline[:, :slots], visit.arm[:, :1]]) for visit in visits]))
    of_visit = np.repeat(np.arange(len(visits)), [len(visit.arm) for visit in visits])
    above = np.median(table - np.quantile(table, LEVEL_QUANTILE, axis=0), axis=1)
    quick = above < QUICK_LOG
    is_quick = bool(quick.mean() >= QUICK_SHARE)
    used = quick if is_quick else ~quick
    shares = np.bincount(of_visit[used], minlength=len(visits)) / used.sum()
    rows = table[used]
    effect, own = _effects(rows, of_visit[used], shares)
    squares = float((shares**2).sum())
    freedom = 1 / squares - 1
    apart = _variance(effect, own, shares)
    within = _within(rows, of_visit[used], len(visits))
    assumed = max(floor_sd**2, within)
    term = ProcessTerm(((freedom * apart + FLOOR_FREEDOM * assumed) / (freedom + FLOOR_FREEDOM)) ** 0.5, freedom + FLOOR_FREEDOM)
    shown = ProcessTerm(apart**0.5, freedom)
    if freedom >= ALONE_FREEDOM and process_half_width(shown) > process_half_width(term):
        term = shown  # what is assumed makes no interval narrower than the visits themselves do
    newest = np.isin(of_visit, _newest_run(turns))
    null = None
    if slots > 1 and freedom >= 1:
        offset, offsets = _effects(rows[:, :2], of_visit[used], shares)
        null = Contrast(offset, (_variance(offset, offsets, shares) * squares) ** 0.5, freedom)
    visited = Visited(
        state="quick" if is_quick else "slow",
        rounds=len(rows),
        between=apart**0.5,
        freedom=freedom,
        floor_sd=floor_sd,
        host_speed=exp(-float(np.median(above[newest]))),
        null=null,
    )
    parts = [ProcessPart(Contrast(one, term.sd, term.freedom), term, share) for one, share in zip(own, shares, strict=True)]
    found = SpeedUp(effect, hypot(term.sd * squares**0.5, _offset(null)), term.freedom, len(table))
    return Pooling(found, tuple(parts), visited=visited)


def _variance(effect: float, own: Array, shares: Array) -> float:
    """Between visits, of what each alone estimates; 0 where one visit has all rounds."""
    free = 1 - float((shares**2).sum())
    return float(np.nansum(shares * (own - effect) ** 2)) / free if free > 0 else 0.0


def _within(rows: Array, of_visit: NDArray[np.int_], visits: int) -> float:
    """Variance that the rounds of a visit alone give its log speed-up, in the median visit: on a busy host far above the floor."""
    ratios = rows[:, :-1].mean(axis=1) - rows[:, -1]
    own = [ratios[of_visit == visit] for visit in range(visits)]
    apart = np.concatenate([each - np.median(each) for each in own if len(each) > 1] or [np.zeros(1)])
    sizes = np.median([len(each) for each in own if len(each) > 1] or [2])
    return float((NORMAL_MAD * np.median(np.abs(apart))) ** 2 / (sizes - 1))


def _offset(null: Contrast | None) -> float:
    """What equal columns that clearly differ add to the error: either may be the one that is wrong."""
    if null is None or abs(null.effect) <= quantile(ALPHA, null.freedom) * null.se:
        return 0.0
    return abs(null.effect) / 2


def _effects(rows: Array, of_visit: NDArray[np.int_], shares: Array) -> tuple[float, Array]:
    """The log speed-up by all rows, whose last column is the arm's, and by each visit alone, shape [visits].

    What a visit alone would estimate follows from the estimate without it; not a number for one without rows.
    """
    ordered = [(column[order], of_visit[order]) for column in rows.T for order in [np.argsort(column, kind="stable")]]

    def estimate(visit: int) -> float:
        *baselines, arm = (_lowest_of_sorted(logs[visits != visit]) for logs, visits in ordered)
        return float(np.mean(baselines)) - arm

    effect = estimate(-1)
    own = np.full(len(shares), np.nan)
    for visit in np.flatnonzero(shares):
        share = shares[visit]
        own[visit] = effect if share == 1 else effect - (1 - share) / share * (estimate(int(visit)) - effect)
    return effect, own


def _lowest_of_sorted(logs: Array) -> float:
    """The mean of the lowest share."""
    return float(logs[: max(1, round(LOWEST * len(logs)))].mean())


def _newest_run(turns: Sequence[int]) -> list[int]:
    """The visits after which no run began: from the newest first turn on."""
    start = max((place for place, turn in enumerate(turns) if turn == min(turns)), default=0)
    return list(range(start, len(turns)))
