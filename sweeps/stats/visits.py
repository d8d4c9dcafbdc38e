"""Speed-up from visits spread over time: the rounds in one state of the machine, and how much
visits and processes differ.

A machine changes its speed by 15 to 25 % for seconds or minutes, and speed-ups move with it. So the
rounds of one state are compared, what differs between visits is estimated by leaving out one at a
time, and no visit counts more than its share of these rounds. One visit alone shows nothing of how
visits differ: its interval rests on what is assumed, and is wide. Calibration measures how much the
log speed-up of one comparison differs between fresh processes beyond the errors within each.
"""

from collections.abc import Sequence
from math import exp, hypot, inf, sqrt
from statistics import median
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sweeps.stats.pooling import ALPHA, SpeedUp, quantile
from sweeps.stats.timing import MIN_ROUNDS, NORMAL_MAD, Array, Contrast

LEVEL_QUANTILE = 0.05
"""Of the times of a column over all visits: its quickest known level."""
QUICK_LOG = 0.10
"""A round is quick if the median of its columns lies less than this above their quickest levels, in
logarithms."""
QUICK_SHARE = 0.2
"""The quick state is claimed where it has at least this share of the rounds."""
LOWEST = 0.7
"""The share of a column's times in the state, the lowest ones, whose mean is its estimate."""
FLOOR_SD, FLOOR_FREEDOM = 0.01, 3.0
"""What the log speed-ups of visits are taken to deviate by before any two are compared, and the
degrees of freedom of that."""
ALONE_FREEDOM = 4.0
"""From so many degrees of freedom on, what visits differ by has an interval of its own."""
RUNS_P = 0.001
"""Runs that lie so far apart less often than this, by what visits differ by, disagree."""
_ORDERS = NDArray[np.int_]

State = Literal["quick", "slow"]


class Visit(NamedTuple):
    """The rounds of two arms in one visit."""

    baseline: Array
    """Seconds, shape [rounds, columns of the baseline]."""
    arm: Array
    """Seconds, shape [rounds, columns of the arm]."""
    equal: Array | None = None
    """Seconds of other arms that do the work of the baseline, shape [rounds, arms]; `None`:
    none."""


class VisitPart(NamedTuple):
    """One visit among those that are pooled."""

    log: float
    """Log speed-up that it alone would estimate; that of all where it has none of the rounds."""
    weight: float
    """Share of the rounds; 0 where it does not count."""
    speed: float = 1.0
    """Median speed of its rounds as a share of the quickest known one."""


class Spread(NamedTuple):
    """By how much log speed-ups of visits deviate: standard deviation and degrees of freedom."""

    sd: float
    freedom: float


class Pooling(NamedTuple):
    """A pooled speed-up with the steps that lead to it."""

    speedup: SpeedUp
    parts: tuple[VisitPart, ...]
    state: State
    """Of the machine, whose rounds it rests on: `slow` where too few were quick."""
    rounds: int
    """In that state."""
    between: Spread
    """As the visits show it; degrees of freedom: one less than the visits, counted by their shares
    of the rounds (Kish)."""
    counted: Spread
    """As the interval counts it, with what is assumed."""
    floor_sd: float
    """Standard deviation that is assumed before any visits are compared."""
    host_speed: float
    """Median speed of the newest run as a share of the quickest known one."""
    null: Contrast | None
    """Of the two columns of the baseline, which are equal, by the errors that visits show; `None`
    where there is one."""
    equal: tuple[Contrast, ...]
    """Of the baseline over each other arm that does its work in all visits, in the same way."""
    runs_p: float | None
    """Probability that runs lie at least so far apart by what visits differ by; `None` for one
    run."""
    slow: SpeedUp | None
    """In the slow state, where the answer is that of the quick one and several visits saw the slow
    one too."""

    @property
    def disagree(self) -> bool:
        """Whether runs lie further apart than visits explain."""
        return self.runs_p is not None and self.runs_p < RUNS_P

    @property
    def states_differ(self) -> bool:
        """Whether the speed-up is clearly another one in the slow state."""
        if self.slow is None:
            return False
        errors = [each.quantile * each.se for each in (self.speedup, self.slow)]
        return abs(self.speedup.log - self.slow.log) > hypot(*errors)


def pool_visits(
    visits: Sequence[Visit],
    turns: Sequence[int],
    floor_sd: float = FLOOR_SD,
    levels: Array | None = None,
) -> Pooling:
    """The speed-up of an arm over its baseline from visits, oldest first.

    `levels` are the quickest known log times of the baseline's columns and of the arm, where more
    visits are known than these.

    `turns` has for each visit which of its run it was. All count as one look, with half of the
    level: the other half covers looks after further runs (`tests/sweeps/test_visits.py`). Raises
    `ValueError` without a visit.
    """
    if not visits:
        raise ValueError("no visit to pool; at least one is needed")
    slots = min(visit.baseline.shape[1] for visit in visits)
    table = np.log(
        np.vstack([np.hstack([visit.baseline[:, :slots], visit.arm[:, :1]]) for visit in visits])
    )
    others = [
        np.empty((len(visit.arm), 0)) if visit.equal is None else visit.equal for visit in visits
    ]
    equal = np.log(
        np.vstack([each[:, : min(other.shape[1] for other in others)] for each in others])
    )
    of_visit = np.repeat(np.arange(len(visits)), [len(visit.arm) for visit in visits])
    runs = np.cumsum([place > 0 and turn <= turns[place - 1] for place, turn in enumerate(turns)])
    above = np.median(table - (quickest_levels(table) if levels is None else levels), axis=1)
    speeds = np.exp([-median(above[of_visit == visit].tolist()) for visit in range(len(visits))])
    quick = above < QUICK_LOG
    is_quick = bool(quick.mean() >= QUICK_SHARE)
    used = quick if is_quick else ~quick
    noise = _of_a_round(table, of_visit)
    one = _OneState(table[used], of_visit[used], len(visits), floor_sd, noise)
    runs_p, between_runs = one.compare_runs(runs)
    error, freedom = sqrt(one.squares) * one.counted.sd, one.counted.freedom
    if runs_p is not None and runs_p < RUNS_P:  # the runs themselves are then what differs
        error, freedom = max(error, between_runs), runs.max() + FLOOR_FREEDOM
    null, nulls = one.null(), one.equal_arms(equal[used])
    slow = None
    if is_quick and len(set(of_visit[~quick])) > 1:
        other = _OneState(table[~quick], of_visit[~quick], len(visits), floor_sd, noise)
        slow = SpeedUp(
            other.effect,
            sqrt(other.squares) * other.counted.sd,
            other.counted.freedom,
            int((~quick).sum()),
        )
    return Pooling(
        speedup=SpeedUp(
            one.effect, hypot(error, _offset([*filter(None, [null]), *nulls])), freedom, len(table)
        ),
        parts=tuple(
            VisitPart(*part)
            for part in zip(one.own.tolist(), one.shares.tolist(), speeds.tolist(), strict=True)
        ),
        state="quick" if is_quick else "slow",
        rounds=len(one.rows),
        between=one.between,
        counted=one.counted,
        floor_sd=floor_sd,
        host_speed=exp(-median(above[runs[of_visit] == runs.max()].tolist())),
        null=null,
        equal=nulls,
        runs_p=runs_p,
        slow=slow,
    )


def quickest_levels(table: Array) -> Array:
    """Of each column of log times, shape [rounds, columns]."""
    levels: Array = np.quantile(table, LEVEL_QUANTILE, axis=0)
    return levels


class _OneState:
    """The rounds of one state: log times `rows` of shape [rounds, columns], the arm's last, each
    `of_visit`.
    """

    def __init__(
        self, rows: Array, of_visit: _ORDERS, visits: int, floor_sd: float, noise: float
    ) -> None:
        """`noise`: variance of the log speed-up of a round; on a busy host what it gives a visit is
        far above the floor.
        """
        self.rows, self.of_visit = rows, of_visit
        numbers = np.bincount(of_visit, minlength=visits)
        self.shares = numbers / len(rows)
        self.squares = float((self.shares**2).sum())
        self.effect, self.own = _effects(rows, of_visit, self.shares)
        self.between = Spread(
            sqrt(_variance(self.effect, self.own, self.shares)), 1 / self.squares - 1
        )
        self.assumed = max(floor_sd**2, noise / max(median(numbers[numbers > 0].tolist()) - 1, 1.0))
        freedom = self.between.freedom
        variance = (freedom * self.between.sd**2 + FLOOR_FREEDOM * self.assumed) / (
            freedom + FLOOR_FREEDOM
        )
        self.counted = Spread(sqrt(variance), freedom + FLOOR_FREEDOM)
        if freedom >= ALONE_FREEDOM and _reach(self.between) > _reach(self.counted):
            # what is assumed makes no interval narrower than the visits themselves do
            self.counted = self.between

    def null(self) -> Contrast | None:
        """Between the first two columns, where both are the baseline's and there are two visits to
        compare.
        """
        if self.rows.shape[1] < 3 or self.between.freedom < 1:
            return None
        return self._contrast(self.rows[:, :2])

    def equal_arms(self, logs: Array) -> tuple[Contrast, ...]:
        """Of the baseline over each column of `logs`, shape [rounds, arms]; none where one visit
        has all rounds.
        """
        baseline, visits = self.rows[:, :-1], self.between.freedom + 1
        return (
            tuple(self._contrast(np.column_stack([baseline, arm])) for arm in logs.T)
            if visits >= 2
            else ()
        )

    def _contrast(self, rows: Array) -> Contrast:
        """Of the last column, by what visits show of it."""
        offset, offsets = _effects(rows, self.of_visit, self.shares)
        return Contrast(
            offset,
            sqrt(_variance(offset, offsets, self.shares) * self.squares),
            self.between.freedom,
        )

    def compare_runs(self, runs: _ORDERS) -> tuple[float | None, float]:
        """Of the run of each visit: the probability that they lie so far apart (F test), and the
        error that their spread gives.
        """
        weights = np.bincount(runs, self.shares)
        known = np.flatnonzero(weights)
        if len(known) < 2:
            return None, 0.0
        # imported late, because commands without statistics do not need it
        from scipy.special import fdtrc

        counted, number = self.shares > 0, 1 / self.squares
        means = (
            np.bincount(runs[counted], (self.shares * self.own)[counted], len(weights))[known]
            / weights[known]
        )
        apart = (
            float((weights[known] * (means - self.effect) ** 2).sum()) * number / (len(known) - 1)
        )
        inside = self.own[counted] - means[np.searchsorted(known, runs[counted])]
        freedom = max(number - len(known), 0.0)
        squares = float((self.shares[counted] * inside**2).sum()) * number
        expected = (squares + FLOOR_FREEDOM * self.assumed) / (freedom + FLOOR_FREEDOM)
        return float(fdtrc(len(known) - 1, freedom + FLOOR_FREEDOM, apart / expected)), sqrt(
            apart * self.squares
        )


def _reach(spread: Spread) -> float:
    """Of the interval that a spread gives."""
    return quantile(ALPHA, spread.freedom) * spread.sd


def _variance(effect: float, own: Array, shares: Array) -> float:
    """Between visits, of what each alone estimates; 0 where one visit has all rounds."""
    free = 1 - float((shares**2).sum())
    return float((shares * (own - effect) ** 2).sum()) / free if free > 0 else 0.0


def _of_a_round(table: Array, of_visit: _ORDERS) -> float:
    """Variance of the log speed-up of a round, inside visits; 0 where none has two rounds."""
    ratios = table[:, :-1].mean(axis=1) - table[:, -1]
    own = [each for each in (ratios[of_visit == visit] for visit in set(of_visit)) if len(each) > 1]
    if not own:
        return 0.0
    if (number := sum(map(len, own))) < MIN_ROUNDS:  # too few for a robust estimate
        return sum(float(((each - each.mean()) ** 2).sum()) for each in own) / (number - len(own))
    apart = np.concatenate([each - median(each.tolist()) for each in own])
    return float(NORMAL_MAD * median(np.abs(apart).tolist())) ** 2


def _offset(nulls: Sequence[Contrast]) -> float:
    """What equal columns that clearly differ add to the error: either of the two may be the one
    that is wrong.
    """
    clear = [
        abs(null.effect)
        for null in nulls
        if abs(null.effect) > quantile(ALPHA / len(nulls), null.freedom) * null.se
    ]
    return max(clear, default=0.0) / 2


def _effects(rows: Array, of_visit: _ORDERS, shares: Array) -> tuple[float, Array]:
    """The log speed-up by all rows, whose last column is the arm's, and by each visit alone, shape
    [visits].

    What a visit alone would estimate follows from the estimate without it; of one without rows it
    is that of all.
    """
    ordered = [
        (column[order], of_visit[order])
        for column in rows.T
        for order in [np.argsort(column, kind="stable")]
    ]

    def estimate(visit: object) -> float:
        number = max(1, round(LOWEST * np.count_nonzero(of_visit != visit)))
        *baselines, arm = (
            logs[visits != visit][:number].sum() / number for logs, visits in ordered
        )
        return float(sum(baselines) / len(baselines) - arm)

    effect = estimate(-1)
    own = np.full(len(shares), effect)
    for visit in np.flatnonzero((shares > 0) & (shares < 1)):
        share = shares[visit]
        own[visit] = effect - (1 - share) / share * (estimate(visit) - effect)
    return effect, own


TERM_CONFIDENCE = 0.95
"""Of the interval of the term."""
USED_CONFIDENCE = 0.8
"""Intervals use the term's one-sided upper bound at this confidence: the estimate itself covers too
little where arms differ in it (`tests/sweeps/test_calibration.py`)."""
MIN_FREEDOM = 5
"""Errors within a process that rest on fewer degrees of freedom are too uncertain: about 18 rounds
are needed."""
SHARED = 0.25
"""Squared correlation of two contrasts of one process that have their baseline in common."""
LARGEST = 1.0
"""No process is slower by more than this, as a logarithm."""
_DECADES = {7: "up to 10 M", 8: "10 M to 100 M", 9: "100 M to 1 B"}

Repeats = Sequence[Sequence[Contrast]]
"""The contrasts of one job, each measured in several processes: shape [contrasts][processes]."""


class Calibration(NamedTuple):
    """The standard deviation of a log speed-up between processes, from repeats in fresh ones."""

    tau: float
    """Estimate by Paule and Mandel: at it the weighted squares around each contrast's mean are as
    large as expected."""
    low: float
    high: float
    """Interval at `TERM_CONFIDENCE` (Q-profile, Viechtbauer 2007)."""
    used: float
    """What intervals are made with: the upper bound at `USED_CONFIDENCE`, and no less than
    `visits.FLOOR_SD` unless `high` is.

    So few or noisy repeats, which exclude nothing, narrow no interval.
    """
    freedom: float
    """Of the squares, less what contrasts with a common baseline share."""
    processes: int
    contrasts: int


def fit_process_term(jobs: Sequence[Repeats]) -> Calibration | None:
    """The term that contrasts of several jobs have in common; `None` unless one was measured in two
    processes or more.

    A contrast whose standard error has fewer than `MIN_FREEDOM` does not count. An error estimated
    with f degrees of freedom is raised to f / (f - 2), the expectation of its weight. Random
    effects: in process p it is its mean + N(0, se_p^2 + tau^2).
    """
    repeats = [[_certain(contrast) for contrast in job] for job in jobs]
    repeats = [[contrast for contrast in job if len(contrast) > 1] for job in repeats]
    known = [contrast for job in repeats for contrast in job]
    if not known:
        return None
    squares = sum(len(contrast) - 1 for contrast in known)
    shares = [
        sum(len(one) - 1 for one in job) / (1 + SHARED * (len(job) - 1)) for job in repeats if job
    ]
    freedom = float(sum(shares))
    processes = max(map(len, known))
    effects, variances = np.zeros((len(known), processes)), np.full((len(known), processes), inf)
    for row, contrast in enumerate(known):
        effects[row, : len(contrast)] = [one.effect for one in contrast]
        variances[row, : len(contrast)] = [
            one.se**2 * one.freedom / (one.freedom - 2) for one in contrast
        ]

    def at(chi2: float) -> float:
        return sqrt(_solve(effects, variances, squares / freedom * chi2))

    # imported late, because commands without statistics do not need it
    from scipy.special import chdtri

    tail = (1 - TERM_CONFIDENCE) / 2
    low, high, used = (at(float(chdtri(freedom, p))) for p in (tail, 1 - tail, USED_CONFIDENCE))
    return Calibration(
        at(freedom), low, high, max(used, min(high, FLOOR_SD)), freedom, processes, len(known)
    )


def size_class(parameters: int | None) -> str:
    """The class of models with about as many parameters, the smallest where they are not known:
    what differs between processes is estimated for each.
    """
    return _DECADES.get(max(7, len(str((parameters or 1) - 1))), "above 1 B")


def _certain(contrast: Sequence[Contrast]) -> list[Contrast]:
    return [one for one in contrast if 0 < one.se < inf and one.freedom >= MIN_FREEDOM]


def _solve(effects: Array, variances: Array, target: float) -> float:
    """The variance between processes at which the weighted squares of contrasts, of shape
    [contrasts, processes], are `target`.

    0 where they are smaller without any. A missing effect has an infinite variance.
    """
    from scipy.optimize import brentq

    def excess(between: float) -> float:
        weights = 1 / (variances + between)
        means = np.sum(weights * effects, axis=1, keepdims=True) / np.sum(
            weights, axis=1, keepdims=True
        )
        return float(np.sum(weights * (effects - means) ** 2)) - target

    if excess(0.0) <= 0:
        return 0.0
    return LARGEST if excess(LARGEST) > 0 else float(brentq(excess, 0.0, LARGEST, xtol=1e-12))
