"""Speed-ups of several processes pooled to one, with an interval that stays valid however often more is measured."""

from collections.abc import Iterable, Sequence
from math import exp, inf, sqrt
from typing import Literal, NamedTuple

from sweeps.metrics import SPEED_FLOOR
from sweeps.stats.two_way import Contrast

ALPHA = 0.01
"""Probability that the intervals of a comparison ever miss its speed-up, over all attempts that are ever made at it."""
PROCESS_SD = 0.015
"""Standard deviation of a log speed-up between processes (memory layout, state of the machine) for arms that do other work than
their baseline, until `breakeven calibrate` measured it: 1.5 % over ten quickstarts on two cores (`tests.benchmarks.spread`)."""
SAME_WORK_SD = 0.004
"""The same for an arm that does the work of its baseline, with the same kernels on the same shapes: 0.4 % in those runs."""
COMMON_SHARE = 1 / 3
"""Part of a term that all points measured in one process have in common; the rest is each point's own."""
WIDEST_LOG = 3.0
"""Half-width of the interval of a log speed-up, a factor of 20 to each side, beyond which there is none: too few pairs for it."""
DISAGREEMENT_P = 0.001
"""Processes that lie so far apart less often than this are flagged `runs_disagree`."""

Verdict = Literal["faster", "slower", "same", "unclear", "insufficient", "quarantined"]
"""`insufficient`: fewer pairs than requested; `quarantined`: the machine was slowed in every attempt (`sweeps.flags`)."""


class ProcessTerm(NamedTuple):
    """What differs between processes: the standard deviation of a log speed-up, and the degrees of freedom of its estimate."""

    sd: float = PROCESS_SD
    freedom: float = inf
    calibration_id: str | None = None
    """`None` for the stated default."""


SAME_WORK = ProcessTerm(SAME_WORK_SD)
"""The term of an arm that does the work of its baseline; no calibration measures it."""


def stated_term(*, same_work: bool) -> ProcessTerm:
    """The term of a comparison without a calibration; `same_work` as `Outcome.same_work`."""
    return SAME_WORK if same_work else ProcessTerm()


class Visited(NamedTuple):
    """What a speed-up from short visits rests on."""

    state: Literal["quick", "slow"]
    """Of the machine, whose rounds it rests on: `slow` where too few were quick."""
    rounds: int
    """In that state."""
    between: float
    """Standard deviation of the log speed-ups of visits, as far as they show it."""
    freedom: float
    """Degrees of freedom of `between`: one less than the visits, counted by their shares of the rounds (Kish)."""
    floor_sd: float
    """Standard deviation that is assumed before any visits are compared."""
    host_speed: float
    """Median speed of the newest run as a share of the quickest known one."""
    null: Contrast | None
    """Of the two columns of the baseline, which are equal, by the errors that visits show; `None` where there is one."""


class SpeedUp(NamedTuple):
    """A pooled speed-up: its logarithm with standard error and degrees of freedom, pairs, and how often it was looked at."""

    log: float
    se: float
    freedom: float
    pairs: int
    looks: int = 1
    alpha: float = ALPHA
    """Probability that an interval ever misses, over all looks."""
    loads: tuple[float, ...] = ()
    """Of each process: the standard deviation that its term adds to `log` and to every speed-up measured in that process alike."""

    @property
    def value(self) -> float:
        return exp(self.log)

    @property
    def spent(self) -> float:
        """Part of `alpha` that the interval of this look spends."""
        return self.alpha / (self.looks * (self.looks + 1))

    @property
    def quantile(self) -> float:
        """Of Student's t at `spent`: how many standard errors the interval reaches to each side."""
        return quantile(self.spent, self.freedom)

    @property
    def half_width(self) -> float:
        """Of the interval of the log speed-up; infinite where there is none, or none narrower than `WIDEST_LOG`."""
        width = self.quantile * self.se if self.se < inf else inf
        return width if width <= WIDEST_LOG else inf

    @property
    def low(self) -> float:
        """Lower end of the interval of the speed-up; 0 where there is none."""
        return exp(self.log - self.half_width)

    @property
    def high(self) -> float:
        """Upper end of the interval of the speed-up; infinite where there is none."""
        return exp(self.log + self.half_width) if self.half_width < inf else inf

    def verdict(self, pairs_min: int = 0) -> Verdict:
        """That of `ratio_verdict`, or `insufficient` for a measurement with fewer pairs than the `pairs_min` requested."""
        return "insufficient" if self.pairs < pairs_min else ratio_verdict(self.low, self.high)


class ProcessPart(NamedTuple):
    """One process among those that are pooled."""

    contrast: Contrast
    """Of all its attempts."""
    term: ProcessTerm
    weight: float
    """Share in the pooled log speed-up; 0 where it does not count."""


class Pooling(NamedTuple):
    """A pooled speed-up with the steps that lead to it."""

    found: SpeedUp
    parts: tuple[ProcessPart, ...]
    agreement: float | None = None
    """Probability that processes differ at least so much by their errors and terms alone; `None` for one process."""
    spread: float = 1.0
    """Factor by which the standard error is raised where they differ by more than that explains."""
    visited: Visited | None = None
    """Where the parts are short visits, whose differences are estimated."""

    @property
    def disagree(self) -> bool:
        """Whether processes lie further apart than their errors and terms explain."""
        return self.agreement is not None and self.agreement < DISAGREEMENT_P


def ratio_verdict(low: float, high: float, floor: float = SPEED_FLOOR) -> Verdict:
    """What the interval of a speed-up allows to conclude.

    `same`: it lies within `floor` of 1, on whichever side; else `faster` or `slower` where it excludes 1.
    """
    if low >= 1 / (1 + floor) and high <= 1 + floor:
        return "same"
    return "faster" if low > 1 else "slower" if high < 1 else "unclear"


def process_half_width(term: ProcessTerm) -> float:
    """Half-width of the interval of a log speed-up from one process whose own errors are 0: what processes alone make it."""
    return SpeedUp(0.0, term.sd, min(term.freedom, 1e6), 0).half_width


def pool(processes: Iterable[Sequence[Contrast]], pairs: int, terms: Sequence[ProcessTerm] = ()) -> SpeedUp:
    """One speed-up from the contrasts of each process, every attempt being one contrast.

    Attempts of one process share what is particular to it, so they are weighted by 1 / se^2, and processes by
    1 / (se^2 + sd^2) with the sd of their `terms` (by default the stated one), with degrees of freedom by Welch and Satterthwaite,
    to which a term counts once for all processes that have it. Where k processes differ by more than that explains, the standard
    error grows to that of their spread, and what is added has k - 1 degrees of freedom. The k-th attempt spends
    ALPHA / (k (k + 1)), which sums to less than `ALPHA` however many there are. Raises `ValueError` without a contrast.
    """
    return pool_stepwise(processes, pairs, terms).found


def pool_stepwise(processes: Iterable[Sequence[Contrast]], pairs: int, terms: Sequence[ProcessTerm] = ()) -> Pooling:
    """As `pool`, with the steps that lead to the speed-up."""
    attempts = list(processes)
    if not attempts:
        raise ValueError("no measurement to pool; at least one is needed")
    each = [_within(contrasts) for contrasts in attempts]
    looks = sum(len(contrasts) for contrasts in attempts)
    by_process = list(zip(each, terms or [ProcessTerm()] * len(each), strict=True))
    known = [(one, term) for one, term in by_process if one.se < inf]
    if not known:
        found = SpeedUp(sum(one.effect for one in each) / len(each), inf, 1.0, pairs, looks)
        return Pooling(found, tuple(ProcessPart(one, term, 1 / len(each)) for one, term in by_process))
    variances = [one.se**2 + term.sd**2 for one, term in known]
    if not min(variances):
        exact = [one.effect for (one, _), variance in zip(known, variances, strict=True) if not variance]
        parts = (ProcessPart(one, term, 0.0 if one.se or term.sd else 1 / len(exact)) for one, term in by_process)
        return Pooling(SpeedUp(sum(exact) / len(exact), 0.0, 1.0, pairs, looks), tuple(parts))
    weights = [1 / variance for variance in variances]
    total = sum(weights)
    log = sum(weight * one.effect for weight, (one, _) in zip(weights, known, strict=True)) / total
    misfit = sum(weight * (one.effect - log) ** 2 for weight, (one, _) in zip(weights, known, strict=True))
    freedom, others = _freedom(weights, known), len(known) - 1
    agreement = _exceeds(misfit, others) if others else None
    spread = sqrt(max(1.0, misfit / others)) if others else 1.0
    if spread > 1:
        freedom = min(spread**4 / (1 / freedom + (spread**2 - 1) ** 2 / others), freedom)
    shares = iter(COMMON_SHARE * spread * weight * term.sd / total for weight, (_, term) in zip(weights, known, strict=True))
    loads = tuple(next(shares) if one.se < inf else 0.0 for one in each)
    found = SpeedUp(log, spread * total**-0.5, freedom, pairs, looks, loads=loads)
    parts = (ProcessPart(one, term, 1 / (one.se**2 + term.sd**2) / total if one.se < inf else 0.0) for one, term in by_process)
    return Pooling(found, tuple(parts), agreement, spread)


def _freedom(weights: Sequence[float], known: Sequence[tuple[Contrast, ProcessTerm]]) -> float:
    """Degrees of freedom of 1 / sum(weights), the variance of a mean weighted by 1 / (se^2 + sd^2)."""
    own = sum(weight**4 * one.se**4 / one.freedom for weight, (one, _) in zip(weights, known, strict=True))
    squares: dict[ProcessTerm, float] = {}
    for weight, (_, term) in zip(weights, known, strict=True):
        squares[term] = squares.get(term, 0.0) + weight**2
    common = sum(square**2 * term.sd**4 / term.freedom for term, square in squares.items())
    return min(sum(weights) ** 2 / (own + common), 1e6) if own + common else 1e6


def quantile(alpha: float, freedom: float) -> float:
    """Of Student's t: exceeded by its absolute value with probability `alpha`."""
    from scipy.special import stdtrit  # imported late, because commands without statistics do not need it

    return float(stdtrit(freedom, 1 - alpha / 2))


def _exceeds(chi2: float, freedom: int) -> float:
    """The probability that a chi-squared variable is larger than `chi2`."""
    from scipy.special import chdtrc

    return float(chdtrc(freedom, chi2))


def _within(contrasts: Sequence[Contrast]) -> Contrast:
    """The contrasts of one process as one; those without a standard error count only if no other has one."""
    known = [contrast for contrast in contrasts if contrast.se < inf] or list(contrasts)
    if len(known) == 1:
        return known[0]
    if any(contrast.se in (0, inf) for contrast in known):
        known = [contrast for contrast in known if contrast.se == 0] or known
        return Contrast(sum(contrast.effect for contrast in known) / len(known), known[0].se, known[0].freedom)
    total = sum(contrast.se**-2 for contrast in known)
    effect = sum(contrast.effect * contrast.se**-2 for contrast in known) / total
    freedom = total**2 / sum(contrast.se**-4 / contrast.freedom for contrast in known)
    return Contrast(effect, total**-0.5, freedom)
