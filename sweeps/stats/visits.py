"""Speed-up from visits spread over time: the rounds in one state of the machine, and how much
visits and runs differ.

A machine changes its speed by 15 to 25 % for seconds or minutes, and speed-ups move with it. So the
rounds of one state are compared, what differs between visits is estimated by leaving out one at a
time, and no visit counts more than its share of these rounds. One visit alone shows nothing of how
visits differ: its interval rests on what is assumed, and is wide.
"""

from collections.abc import Callable, Sequence
from math import exp, hypot, inf, sqrt
from statistics import median
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sweeps.stats.pooling import ALPHA, SPENT_NOW, SpeedUp, quantile
from sweeps.stats.timing import MIN_ROUNDS, NORMAL_MAD, Array, Contrast

LEVEL_QUANTILE = 0.05
"""Of the times of a column over all visits: its quickest known level."""
QUICK_LOG = 0.10
"""A state is slow that lies further above the quickest known levels than this, in logarithms, and
than rounds deviate."""
NEIGHBOURS = 2
"""Rounds before and after one that show in which state the machine was."""
MODES_APART, MODE_SHARE, MODE_ROUNDS = 5.0, 0.05, 4
"""There are two states where the means of two groups of rounds lie so many standard deviations
inside them apart, and each has so large a share and so many rounds."""
QUICK_SHARE = 0.2
"""The quick state is claimed where it has at least this share of the rounds."""
TAIL_SHARE = 0.1
"""Of the times of a column on either side. Half of the distance between the limits of the rest
beyond them is the most that a round counts."""
HUBER, LOCATION_STEPS, LOCATION_EXACT = 1.0, 50, 1e-4
"""A log ratio counts up to so many standard deviations from the location, which is found in so many
steps or to such a share of them."""
INSIDE_SHARE = 0.5
"""Where rounds of a visit deviate by less than this share of what all do, visits are what differs,
and each counts by its mean."""
RUN_SD, RUN_FREEDOM = 0.004, 6.0
"""The same of what runs differ by beyond their visits."""
SAME_RUN_SD = 0.0012
"""Of arms that do the work of their baseline."""
ALONE_VISITS = 4
"""From so many visits on, counted by their rounds, what they differ by gives an interval of its
own; with fewer it is no wider than what is assumed."""
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
    """Log speed-up that it alone would estimate, as the estimate without it shows; that of all
    where it has none of the rounds."""
    weight: float
    """Share of the rounds; 0 where it does not count."""
    speed: float = 1.0
    """Median speed of its rounds as a share of the quickest known one."""


class Spread(NamedTuple):
    """By how much log speed-ups of visits deviate: standard deviation and degrees of freedom."""

    sd: float
    freedom: float


FLOOR = Spread(0.0105, 3.0)
"""What visits are taken to deviate by before any two are compared, unless the spread of those of an
environment is known (`sweeps.stats.calibration`)."""


class Pooling(NamedTuple):
    """A pooled speed-up with the steps that lead to it."""

    speedup: SpeedUp
    parts: tuple[VisitPart, ...]
    state: State
    """Of the machine, whose rounds it rests on: `slow` where too few were quick."""
    rounds: int
    """In that state."""
    by_pairs: bool
    """Whether it compares pairs of a round, whose error is the smaller one, or mean times."""
    between: Spread
    """As the visits of each run show it; degrees of freedom: one less than its visits, counted by
    their shares of the rounds (Kish)."""
    counted: Spread
    """As the interval counts it, with what is assumed."""
    between_runs: Spread
    """Beyond their visits, as the interval counts it, with what is assumed."""
    inside: float
    """Half-width of the interval of the log speed-up that the visits alone would give."""
    floor: Spread
    """What is assumed before any visits are compared."""
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
    floor: Spread = FLOOR,
    levels: Array | None = None,
    run_sd: float = RUN_SD,
) -> Pooling:
    """The speed-up of an arm over its baseline from visits, oldest first.

    `levels` are the quickest known log times of the baseline's columns and of the arm, where more
    visits are known than these.

    `turns` has for each visit which of its run it was. A run is a look, and the k-th spends one
    k-th of half of the level: over all looks 1 % miss (`tests/sweeps/scenarios/test_looks.py`).
    Runs are taken to differ by `run_sd` before any two are compared; 0 where the claim is about
    one. Raises `ValueError` without a visit.
    """
    if not visits:
        raise ValueError("no visit to pool; at least one is needed")
    slots, own = (
        min(side.shape[1] for side in sides) for sides in list(zip(*visits, strict=True))[:2]
    )
    table = np.log(
        np.vstack([np.hstack([visit.baseline[:, :slots], visit.arm[:, :own]]) for visit in visits])
    )
    others = [
        np.empty((len(visit.arm), 0)) if visit.equal is None else visit.equal for visit in visits
    ]
    equal = np.log(
        np.vstack([each[:, : min(other.shape[1] for other in others)] for each in others])
    )
    of_visit = np.repeat(np.arange(len(visits)), [len(visit.arm) for visit in visits])
    runs = np.cumsum([place > 0 and turn <= turns[place - 1] for place, turn in enumerate(turns)])
    apart = table - (quickest_levels(table) if levels is None else levels)
    above = np.median(apart, axis=1)
    speeds = np.exp([-median(above[of_visit == visit].tolist()) for visit in range(len(visits))])
    quick, slower = rounds_of_states(
        np.minimum(np.median(apart[:, :slots], axis=1), np.median(apart[:, slots:], axis=1)),
        of_visit,
    )
    is_quick = bool(quick.mean() >= QUICK_SHARE)
    used = quick if is_quick else slower
    assumed = floor, _of_a_round(table, slots, of_visit)
    one = _OneState(table[used], slots, of_visit[used], runs, assumed)
    null, nulls, by_pairs = one.null(), one.equal_arms(equal[used]), one.doubt > 0
    one.doubt = hypot(one.doubt, _offset([*filter(None, [null]), *nulls]))
    error, between_runs, runs_p = one.error(run_sd)
    looks = int(runs.max()) + 1
    if looks > 1:
        error = error._replace(
            sd=error.sd
            * quantile(ALPHA * SPENT_NOW / looks, error.freedom)
            / quantile(ALPHA * SPENT_NOW, error.freedom)
        )
    slow = None
    if is_quick and len(set(of_visit[slower])) > 1:
        other = _OneState(table[slower], slots, of_visit[slower], runs, assumed)
        slow = SpeedUp(other.effect, *other.error(run_sd)[0], int(slower.sum()))
    return Pooling(
        speedup=SpeedUp(one.effect, *error, len(table)),
        parts=tuple(
            VisitPart(*part)
            for part in zip(one.own.tolist(), one.shares.tolist(), speeds.tolist(), strict=True)
        ),
        state="quick" if is_quick else "slow",
        rounds=len(one.rows),
        by_pairs=by_pairs,
        between=one.between,
        counted=one.counted,
        between_runs=between_runs,
        inside=_reach(one.inside()),
        floor=floor,
        host_speed=exp(-median(above[runs[of_visit] == runs.max()].tolist())),
        null=null,
        equal=nulls,
        runs_p=runs_p,
        slow=slow,
    )


def rounds_of_states(
    above: Array, of_visit: _ORDERS
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which rounds are of the quick state and which of the slow one, by how much both sides of each
    are `above` the quickest known levels, as logarithms.

    The rounds before and after one show its state, so that no time decides whether it counts
    itself; one between two states is of neither.
    """
    number = len(above)
    near = np.full((2, NEIGHBOURS, number), np.nan)
    for side, step in np.ndindex(2, NEIGHBOURS):
        order = np.arange(number) + (step + 1) * (2 * side - 1)
        inside = (order >= 0) & (order < number)
        inside[inside] = of_visit[order[inside]] == of_visit[inside]
        near[side, step, inside] = above[order[inside]]
    near[0, 0] = np.where(np.isnan(near).all(axis=(0, 1)), above, near[0, 0])  # alone in a visit
    level = np.nanmedian(near, axis=(0, 1))
    noise = NORMAL_MAD * median(np.abs(above - level).tolist())
    quick = np.ones(number, bool)
    slow = ~quick
    limits = (_limit_of_modes(each) for each in (above, level))
    if (limit := next((each for each in limits if each is not None), None)) is not None:
        sides = np.where(np.isnan(near[:, :1]), near[::-1], near).transpose(1, 0, 2)
        sides = np.where(np.isnan(sides[1]), sides[0], sides.mean(axis=0))
        states = (sides < limit).all(axis=0), (sides >= limit).all(axis=0)
        if all(state.any() for state in states):
            quick, slow = states
    if median(above[quick].tolist()) > QUICK_LOG + quantile(2 * LEVEL_QUANTILE, inf) * noise:
        return np.zeros(number, bool), quick | slow
    return quick, slow


def _limit_of_modes(level: Array) -> float | None:
    """Between the two groups of values that are most apart; `None` where they are one."""
    values, number = np.sort(level), len(level)
    left = np.arange(1, number)
    sums = np.cumsum(values)
    lower, upper = sums[:-1] / left, (sums[-1] - sums[:-1]) / (number - left)
    between = left * (number - left) / number * (upper - lower) ** 2
    between[np.minimum(left, number - left) < max(MODE_SHARE * number, MODE_ROUNDS)] = 0.0
    if not between.any():
        return None
    cut = int(between.argmax())
    inside = sqrt(max(float(values.var() - between[cut] / number), 0.0))
    apart = upper[cut] - lower[cut] > MODES_APART * inside
    return float(values[cut : cut + 2].mean()) if apart else None


def quickest_levels(table: Array) -> Array:
    """Of each column of log times, shape [rounds, columns]."""
    levels: Array = np.quantile(table, LEVEL_QUANTILE, axis=0)
    return levels


class _OneState:
    """The rounds of one state: log times `rows` of shape [rounds, columns], each `of_visit`, first
    the `slots` of the baseline; `runs` has the run of each visit. Visits are assumed to deviate by
    the first of `floor`, or by what a round does, the second: the variance of its log speed-up.
    """

    def __init__(
        self,
        rows: Array,
        slots: int,
        of_visit: _ORDERS,
        runs: _ORDERS,
        floor: tuple[Spread, float],
    ) -> None:
        self.rows, self.slots, self.of_visit = rows, slots, of_visit
        numbers = np.bincount(of_visit, minlength=len(runs))
        self.shares = numbers / len(rows)
        self.squares = float((self.shares**2).sum())
        least = floor[1] / max(median(numbers[numbers > 0].tolist()) - 1, 1.0)
        self.floor = floor[0]._replace(sd=max(floor[0].sd, sqrt(least)))
        self.effect, self.own, self.doubt = _estimate(
            rows, slots, of_visit, self.shares, self.floor.sd**2
        )
        known = np.bincount(runs, numbers) > 0
        self.run_shares = np.bincount(runs, self.shares)[known]
        self.run_means = np.bincount(runs, self.shares * self.own)[known] / self.run_shares
        of_run = np.maximum(np.cumsum(known)[runs] - 1, 0)
        inside = self.shares / self.run_shares[of_run]
        self.run_squares = np.bincount(of_run, inside**2, len(self.run_shares))
        freedom = float((1 / self.run_squares - 1).sum())
        self.between = self._spread(inside, self.run_means[of_run], freedom)
        self.of_runs = self._with_assumed(self.between)
        if not self.between.freedom:  # a visit in each run: what runs differ by is theirs
            self.between = self._spread(
                self.shares, np.full(len(runs), self.effect), 1 / self.squares - 1
            )
        self.counted = self._with_assumed(self.between)
        if self.between.freedom and self.floor.freedom <= FLOOR.freedom:
            shown = self.between  # what is only assumed makes no interval narrower than visits do
            if int((numbers**2).sum()) * ALONE_VISITS > len(rows) ** 2:
                shown = min(shown, self.floor, key=_reach)
            self.counted = max(self.counted, shown, key=_reach)

    def _spread(self, inside: Array, centres: Array, freedom: float) -> Spread:
        """Of visits around their `centres`, of which they have the shares `inside`; none where each
        is its own.
        """
        free = 1 - float((self.shares * inside).sum())
        apart = float((self.shares * (self.own - centres) ** 2).sum())
        return Spread(sqrt(apart / free), freedom) if free > 1e-9 else Spread(0.0, 0.0)

    def _with_assumed(self, shown: Spread) -> Spread:
        freedom = shown.freedom + self.floor.freedom
        squares = shown.freedom * shown.sd**2 + self.floor.freedom * self.floor.sd**2
        return Spread(sqrt(squares / freedom), freedom)

    def inside(self) -> Spread:
        """Of the log speed-up, by its visits alone."""
        sd = hypot(self.counted.sd * sqrt(self.squares), self.doubt)
        return Spread(sd, self.counted.freedom)

    def error(self, run_sd: float) -> tuple[Spread, Spread, float | None]:
        """Of the log speed-up, what runs differ by beyond their visits, which `run_sd` is assumed
        of, and the probability that runs lie so far apart (F test; `None` for one).

        Runs that disagree are themselves what differs.
        """
        visits, number = self.counted.sd**2, len(self.run_shares)
        squares, mean_squares = float((self.run_shares**2).sum()), float(self.run_squares.mean())
        apart = 0.0
        if number > 1:
            apart = float((self.run_shares * (self.run_means - self.effect) ** 2).sum())
            apart /= 1 - squares
        freedom = number - 1 + RUN_FREEDOM
        variance = (
            (number - 1) * max(0.0, apart - visits * mean_squares) + RUN_FREEDOM * run_sd**2
        ) / freedom
        runs = Spread(sqrt(variance) if run_sd else 0.0, freedom)
        inside = self.inside()
        error = max(inside, _sum_of(inside, Spread(runs.sd * sqrt(squares), freedom)), key=_reach)
        if number < 2:
            return error, runs, None
        # imported late, because commands without statistics do not need it
        from scipy.special import fdtrc

        expected = _sum_of(
            Spread(self.of_runs.sd * sqrt(mean_squares), self.of_runs.freedom),
            Spread(run_sd, RUN_FREEDOM),
        )
        p = float(fdtrc(number - 1, expected.freedom, apart / expected.sd**2))
        if p < RUNS_P:
            error = max(error, Spread(sqrt(apart * squares), float(number)), key=_reach)
        return error, runs, p

    def null(self) -> Contrast | None:
        """Between the first two columns, where both are the baseline's and there are two visits to
        compare.
        """
        if self.slots < 2 or 1 / self.squares < 2:
            return None
        return self._contrast(self.rows[:, :1], self.rows[:, 1:2])

    def equal_arms(self, logs: Array) -> tuple[Contrast, ...]:
        """Of the baseline over each column of `logs`, shape [rounds, arms]; none where one visit
        has all rounds.
        """
        return (
            tuple(self._contrast(self.rows[:, : self.slots], arm[:, None]) for arm in logs.T)
            if 1 / self.squares >= 2
            else ()
        )

    def _contrast(self, one: Array, other: Array) -> Contrast:
        """Of two groups of columns, by what visits show of it."""
        rows = np.hstack([one, other])
        shown = _estimate(rows, one.shape[1], self.of_visit, self.shares, 0.0)
        variance = _variance(shown.effect, shown.own, self.shares) * self.squares
        return Contrast(shown.effect, hypot(sqrt(variance), shown.doubt), 1 / self.squares - 1)


def _sum_of(one: Spread, other: Spread) -> Spread:
    """Of the sum of two, with the degrees of freedom of Welch and Satterthwaite."""
    total = one.sd**2 + other.sd**2
    squares = one.sd**4 / one.freedom + other.sd**4 / other.freedom
    return Spread(sqrt(total), total**2 / squares if squares else inf)


def _reach(spread: Spread) -> float:
    """Of the interval that a spread gives."""
    return quantile(ALPHA * SPENT_NOW, spread.freedom) * spread.sd


def _variance(effect: float, own: Array, shares: Array) -> float:
    """Between visits, of what each alone estimates; 0 where one visit has all rounds."""
    free = 1 - float((shares**2).sum())
    return float((shares * (own - effect) ** 2).sum()) / free if free > 0 else 0.0


def _of_a_round(table: Array, slots: int, of_visit: _ORDERS) -> float:
    """Variance of the log speed-up of a round, inside visits; 0 where none has two rounds."""
    ratios = table[:, :slots].mean(axis=1) - table[:, slots:].mean(axis=1)
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


class _Estimate(NamedTuple):
    """The log speed-up by all rows and by each visit alone, and what it may be wrong by, as a
    standard deviation, beyond what visits show.
    """

    effect: float
    own: Array
    doubt: float = 0.0


def _estimate(
    rows: Array, slots: int, of_visit: _ORDERS, shares: Array, assumed: float
) -> _Estimate:
    """The log speed-up by mean times, or by typical pairs of times where that has the smaller
    error; visits deviate by the variance `assumed` at least.

    The first `slots` columns of `rows` are the baseline's. On a busy machine few rounds decide a
    mean, and the same ones on both sides, so that pairs of one round show the speed-up several
    times as well; but only where both sides deviate alike.
    """
    means = _by_means(rows, slots, of_visit, shares)
    pairs = _by_pairs(rows, slots, of_visit, shares)
    if pairs is None:
        return means
    squares = float((shares**2).sum())

    def error(one: _Estimate) -> float:
        variance = max(_variance(one.effect, one.own, shares), assumed)
        return variance * squares + one.doubt**2

    return min(means, pairs, key=error)


def _alone(estimate: Callable[[int | np.int_], float], shares: Array) -> tuple[float, Array]:
    """Of all visits (-1), and of each alone as it follows from the estimate without it; of one
    without rows it is that of all.
    """
    effect = estimate(-1)
    own = np.full(len(shares), effect)
    for visit in np.flatnonzero((shares > 0) & (shares < 1)):
        share = shares[visit]
        own[visit] = effect - (1 - share) / share * (estimate(visit) - effect)
    return effect, own


def _deviations(rows: Array, of_visit: _ORDERS, visits: int) -> tuple[Array, Array]:
    """From the median of their visit, and the medians, shape [visits, columns]."""
    medians = np.zeros((visits, rows.shape[1]))
    for visit in set(of_visit):
        medians[visit] = np.median(rows[of_visit == visit], axis=0)
    return rows - medians[of_visit], medians


def _by_means(rows: Array, slots: int, of_visit: _ORDERS, shares: Array) -> _Estimate:
    """Of each column the mean deviation from the median of its visit, on both sides alike however
    much either deviates.
    """
    number = np.bincount(of_visit, minlength=len(shares))
    deviations, medians = _deviations(rows, of_visit, len(shares))
    orders = np.argsort(deviations, axis=0)
    columns = [
        (logs[order], np.expm1(logs[order]), of_visit[order])
        for logs, order in zip(deviations.T, orders.T, strict=True)
    ]

    def estimate(without: int | np.int_) -> float:
        counted = np.where(np.arange(len(number)) == without, 0, number)
        means = counted @ medians / counted.sum() + np.log1p(
            [
                _clipped_mean(*(part[visits != without] for part in (logs, times)))
                for logs, times, visits in columns
            ]
        )
        return float(means[:slots].mean() - means[slots:].mean())

    return _Estimate(*_alone(estimate, shares))


def _by_pairs(rows: Array, slots: int, of_visit: _ORDERS, shares: Array) -> _Estimate | None:
    """Location (Huber) of the log ratios of all pairs of a round; `None` where most are equal.

    In doubt is how far the mean of a column lies above its location, as far as both sides
    may deviate by different amounts.
    """
    ratios = (rows[:, :slots, None] - rows[:, None, slots:]).reshape(len(rows), -1)
    scale = _scale(ratios)
    deviations, _ = _deviations(rows, of_visit, len(shares))
    scales = [_scale(column) for column in deviations.T]
    inside = _scale(_deviations(ratios, of_visit, len(shares))[0])
    if not all([inside, *scales]) or inside < INSIDE_SHARE * scale:
        return None
    low, high = np.quantile(deviations, (TAIL_SHARE, 1 - TAIL_SHARE), axis=0)
    spread = np.log(high - low)
    unequal = float(spread[:slots].mean() - spread[slots:].mean())
    above = np.mean(
        [
            np.log1p(_clipped_mean(logs, np.expm1(logs))) - _location(logs, scale_of)
            for logs, scale_of in zip(np.sort(deviations, axis=0).T, scales, strict=True)
        ]
    )
    start = median(ratios.ravel().tolist())
    effect, own = _alone(
        lambda without: _location(ratios[of_visit != without].ravel(), scale, start), shares
    )
    return _Estimate(effect, own, abs(float(above)) * hypot(unequal, 1 / sqrt(len(rows))))


def _scale(values: Array) -> float:
    """Standard deviation as the median deviation from the median shows it."""
    return NORMAL_MAD * float(np.median(np.abs(values - np.median(values))))


def _location(values: Array, scale: float, start: float = 0.0) -> float:
    """Of values that count up to `HUBER` times their scale (Huber 1964)."""
    location = start
    for _ in range(LOCATION_STEPS):
        weights = 1 / np.maximum(np.abs(values - location) / (HUBER * scale), 1)
        last, location = location, float((weights * values).sum() / weights.sum())
        if abs(location - last) < LOCATION_EXACT * scale:
            break
    return location


def _clipped_mean(logs: Array, times: Array) -> float:
    """Of relative times less 1, whose logarithms are in order, up to what counts at most."""
    low, high = (
        (1 - place % 1) * logs[int(place)] + place % 1 * logs[min(int(place) + 1, len(logs) - 1)]
        for place in (TAIL_SHARE * (len(logs) - 1), (1 - TAIL_SHARE) * (len(logs) - 1))
    )
    limits = low - (high - low) / 2, high + (high - low) / 2
    first, last = np.searchsorted(logs, limits)
    below, above = np.expm1(limits)
    total = first * below + times[first:last].sum() + (len(logs) - last) * above
    return float(total / len(logs))
