"""Conclusion: what may be written about one effect, from its verdict and its numbers as they are
printed; and the effects of stacks of methods beside those of their parts.

Report, progress lines, charts and the web app take every claim about an effect from here, so that
none contradicts the interval that stands beside it. The rule is in `conclude`, its outcomes are the
members of `Finding`; `sweeps.text.effects` has words for them. And how near the unmodified model
comes to the peak of its CPU.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from math import inf, isfinite, nan, prod
from typing import Any, NamedTuple

from sweeps.analysis.rows import ComparisonState, SpeedupRow
from sweeps.model.metrics import METRICS, MetricSpec, metric
from sweeps.model.profile import Peaks

MAX_DIGITS = 12
"""Decimals after which an interval is not printed more exactly, even if it still seems to touch no
difference."""

FAR_BELOW_PEAK = 0.6
"""Share of the peak below which another runtime is worth a try."""
PeaksOfHosts = Mapping[tuple[str, str], Mapping[tuple[str, int | None], Peaks]]
"""The best that was measured, by environment and host, then by dtype and CPU threads."""


class Finding(StrEnum):
    """What an effect allows to conclude."""

    GAIN = "gain"
    LOSS = "loss"
    """The verdict is clear and the interval excludes no difference, on the side of the verdict."""
    PROBABLE_GAIN = "probable gain"
    PROBABLE_LOSS = "probable loss"
    """The 95 % interval excludes no difference, but the verdict, which needs more, is not clear."""
    SMALL_GAIN = "small gain"
    SMALL_LOSS = "small loss"
    """The verdict is `same`: the interval excludes no difference, and lies within the floor."""
    SAME = "same"
    """The interval holds no difference and lies within the floor."""
    UNCLEAR = "unclear"
    """The interval holds no difference and reaches beyond the floor."""
    NO_INTERVAL = "no interval"
    INSUFFICIENT = "insufficient"
    """Cut short: fewer pairs than requested."""
    QUARANTINED = "quarantined"
    """Measured only while the machine was slowed: no verdict, whatever the interval."""
    QUEUED = "queued"
    FAILED = "failed"
    NOT_MEASURED = "not measured"
    NOT_REQUESTED = "not requested"


GAINS = frozenset({Finding.GAIN, Finding.PROBABLE_GAIN, Finding.SMALL_GAIN})
LOSSES = frozenset({Finding.LOSS, Finding.PROBABLE_LOSS, Finding.SMALL_LOSS})
PROBABLE = frozenset({Finding.PROBABLE_GAIN, Finding.PROBABLE_LOSS})
SMALL = frozenset({Finding.SMALL_GAIN, Finding.SMALL_LOSS})
_NO_VERDICT = {"insufficient": Finding.INSUFFICIENT, "quarantined": Finding.QUARANTINED}
"""Verdicts that stand whatever the interval is."""


class Effect(NamedTuple):
    """How one kind of effect is named and printed."""

    gain: str
    loss: str
    no_difference: float
    """1 for a ratio, 0 for a difference."""
    gain_above: bool
    """Whether values above no difference are gains."""
    floor: float
    """Differences that count as none where a verdict names no other: a share for a ratio, else in
    `unit`."""
    digits: int
    """Decimals."""
    mark: str = ""
    """Directly after the value, such as `x`."""
    unit: str = ""

    @property
    def ratio(self) -> bool:
        return self.no_difference == 1

    def within(self, low: float, high: float, floor: float, digits: int = MAX_DIGITS) -> bool:
        """Whether an interval lies within the floor as both are printed: a share for a ratio, else
        in the effect's unit.
        """
        bounds = (1 / (1 + floor), 1 + floor) if self.ratio else (-floor, floor)
        return _rounded(bounds[0], digits) <= _rounded(low, digits) and _rounded(
            high, digits
        ) <= _rounded(bounds[1], digits)


def effect_of(spec: MetricSpec) -> Effect:
    """How effects of a metric are named and printed. Raises `ValueError` for one that is not
    compared.
    """
    if spec.compared is None:
        raise ValueError(f"the metric {spec.name} is not compared, so it has no effects")
    if spec.compared == "ratio":
        return Effect(
            "faster",
            "slower",
            1,
            gain_above=spec.better == "lower",
            floor=spec.floor,
            digits=spec.digits,
            mark="x",
        )
    unit = {"%": "points", "1": ""}.get(spec.unit, spec.label)
    return Effect(
        "better", "worse", 0, gain_above=False, floor=spec.floor, digits=spec.digits, unit=unit
    )


SPEEDUP = effect_of(METRICS["latency"])
BITS = effect_of(METRICS["bits_per_byte"])
TOP1 = effect_of(METRICS["top1"])
TASK = effect_of(metric("zeroshot_*_acc"))
"""The drop in a zero-shot task, as a share of its documents."""


class Conclusion(NamedTuple):
    """What is concluded about an effect, and its numbers rounded to the decimals that are
    printed.
    """

    effect: Effect
    finding: Finding
    value: float | None = None
    low: float | None = None
    high: float | None = None
    digits: int = 0
    floor: float = 0.0
    reason: str = ""
    """Of a failure."""
    pairs: tuple[int, int] | None = None
    """How many were measured, and requested at least; where that is known of too few pairs."""

    @property
    def numbers(self) -> str:
        """`1.234x [1.220, 1.250]` or `+0.0070 [+0.0042, +0.0098]`; a dash where nothing was
        measured.

        Too few pairs show no effect: how many there are, such as `1 of 30 pairs`.
        """
        if self.finding is Finding.INSUFFICIENT:
            return "-" if self.pairs is None else f"{self.pairs[0]} of {self.pairs[1]} pairs"
        return self.written(self.value, self.low, self.high, self._form)

    @property
    def estimate(self) -> str:
        """`1.234x` or `+0.0070`, without the interval; a dash where nothing was measured."""
        return self.written(self._shown, None, None, self._form)

    @property
    def interval(self) -> str:
        """`[1.220, 1.250]`; a dash where there is none."""
        return "–" if self._shown is None else self._ends(self.low, self.high, self._form) or "–"

    @property
    def _shown(self) -> float | None:
        return None if self.finding is Finding.INSUFFICIENT else self.value

    def written(
        self, value: float | None, low: float | None, high: float | None, form: str = ""
    ) -> str:
        """Numbers with the decimals of this effect, in the given format."""
        if value is None:
            return "-"
        number, ends = f"{value:{form}.{self.digits}f}", self._ends(low, high, form)
        return f"{number}{self.effect.mark}{ends and f' {ends}'}"

    def _ends(self, low: float | None, high: float | None, form: str) -> str:
        if low is None or high is None:
            return ""
        return f"[{low:{form}.{self.digits}f}, {high:{form}.{self.digits}f}]"

    @property
    def _form(self) -> str:
        return "" if self.effect.ratio else "+"


def conclude(
    effect: Effect,
    value: float | None,
    low: float | None,
    high: float | None,
    *,
    verdict: str | None,
    floor: float | None = None,
    pairs: tuple[int, int] | None = None,
) -> Conclusion:
    """What the verdict and the interval, rounded as they are printed, allow to write.

    Missing numbers are `None`, NaN or infinite. `pairs` are those measured, and those requested at
    least. `floor` is what the verdict took for no difference (default: that of the effect). More
    decimals than those of the effect are printed where these would hide that the interval of a
    clear verdict excludes no difference, or that the one of an unclear verdict reaches beyond the
    floor. A verdict that the interval does not bear out counts as `unclear`.
    """
    floor = effect.floor if floor is None or not isfinite(floor) else floor
    places = effect.digits
    if value is None or not isfinite(value):
        return Conclusion(effect, Finding.NOT_MEASURED, floor=floor)
    if low is None or high is None or not isfinite(low + high):
        finding = _NO_VERDICT.get(verdict or "", Finding.NO_INTERVAL)
        return Conclusion(
            effect, finding, _rounded(value, places), digits=places, floor=floor, pairs=pairs
        )
    low, high = min(low, value), max(high, value)
    clear = verdict in {effect.gain, effect.loss} and verdict == _outside(effect, low, high)
    beyond = verdict == "unclear" and not effect.within(low, high, floor)
    while places < MAX_DIGITS and (
        (clear and _outside(effect, _rounded(low, places), _rounded(high, places)) is None)
        or (beyond and effect.within(low, high, floor, places))
    ):
        places += 1
    value_shown, low_shown, high_shown = (_rounded(number, places) for number in (value, low, high))
    side = _outside(effect, low_shown, high_shown)
    strength = (
        ""
        if verdict == side
        else "small "
        if verdict == "same" and effect.within(low, high, floor)
        else "probable "
    )
    if verdict in _NO_VERDICT:
        finding = _NO_VERDICT[verdict]
    elif side is not None:
        finding = Finding(f"{strength}{'gain' if side == effect.gain else 'loss'}")
    else:
        finding = Finding.SAME if strength == "small " else Finding.UNCLEAR
    return Conclusion(
        effect, finding, value_shown, low_shown, high_shown, places, floor, pairs=pairs
    )


def unanswered(effect: Effect, state: ComparisonState, reason: str = "") -> Conclusion:
    """The conclusion where there are no numbers; `reason` of a failure."""
    return Conclusion(effect, Finding(state), reason=reason)


def _outside(effect: Effect, low: float, high: float) -> str | None:
    """`effect.gain` or `effect.loss` for an interval on that side of no difference, `None` if it
    holds or touches it.
    """
    if low > effect.no_difference or high < effect.no_difference:
        return effect.gain if (low > effect.no_difference) == effect.gain_above else effect.loss
    return None


def _rounded(number: float, digits: int) -> float:
    """As printed, and no negative zero."""
    return float(f"{number:.{digits}f}") + 0.0


def conclude_speedup(row: SpeedupRow, effect: Effect = SPEEDUP) -> Conclusion:
    """What a row of the view `speedup` allows to conclude, in the words of `effect`."""
    bounds = (row.speedup, row.speedup_low, row.speedup_high)
    known = row.pairs is not None and row.pairs_min is not None
    pairs = (row.pairs or 0, row.pairs_min or 0) if known else None
    return conclude(effect, *bounds, verdict=row.verdict, floor=row.floor, pairs=pairs)


class PeakShare(NamedTuple):
    """What the unmodified model reaches of its CPU's peak."""

    gflops: float
    """1e9 operations per second, two per MAC."""
    peak: Peaks

    @property
    def share(self) -> float:
        return self.gflops / self.peak.gflops

    @property
    def is_far_below(self) -> bool:
        return self.share < FAR_BELOW_PEAK


def peak_share(rows: Iterable[SpeedupRow], peaks: PeaksOfHosts) -> PeakShare | None:
    """That of the point with the largest share, of images in the runtime eager; `None` where no
    peak is known.
    """
    found = []
    for row in rows:
        peak = peaks.get((row.environment, row.host), {}).get((row.dtype, row.threads))
        own = row.runtime == "eager" and row.baseline == "dense"  # which then ran as the arm did
        if own and row.image_size and peak and row.gmacs_baseline:
            seconds = (row.baseline_ms or inf) / 1e3
            found.append(PeakShare(2 * row.gmacs_baseline * (row.batch_size or 1) / seconds, peak))
    return max(found, key=lambda each: each.share, default=None)


def conclude_change(
    spec: MetricSpec,
    change: float,
    low: float | None,
    high: float | None,
    *,
    verdict: str | None,
    floor: float | None,
) -> Conclusion:
    """What the change of a metric against its baseline allows to conclude, printed as by how much
    the arm is worse.
    """
    effect = effect_of(spec)
    if spec.better == "higher":
        change, low, high = (
            0 - change,
            None if high is None else 0 - high,
            None if low is None else 0 - low,
        )
    return conclude(effect, change, low, high, verdict=verdict, floor=floor)


def conclude_interval(
    effect: Effect, value: float | None, low: float | None, high: float | None
) -> Conclusion:
    """What an effect without a stored verdict allows to conclude: its interval is compared with the
    floor of the effect.
    """
    verdict = None
    if low is not None and high is not None and isfinite(low + high):
        # imports NumPy, which `status` does not need
        from sweeps.stats.quality import interval_verdict

        verdict = interval_verdict(low, high, effect.floor)
    return conclude(effect, value, low, high, verdict=verdict)


_NO_FACTOR = frozenset(
    {Finding.NO_INTERVAL, Finding.INSUFFICIENT, Finding.QUARANTINED, Finding.NOT_MEASURED}
)


class StackPart(NamedTuple):
    """A part of a stack: a method, or one condition that the stack overrides."""

    label: str
    speedup: Conclusion | None
    """Alone, against the same baseline; `None`: not measured alone."""


class Stack(NamedTuple):
    """A stack of methods, its parts, and the speed-up that their product would be."""

    row: SpeedupRow
    label: str
    together: Conclusion
    parts: tuple[StackPart, ...]
    product: Conclusion | None
    """Its interval is the product of theirs: parts that were timed in the same rounds share the
    baseline's noise, so that their errors may add up. `None` unless every part was measured alone
    with an interval."""


def stacks_of(rows: Iterable[SpeedupRow], label: Callable[[str, str], str]) -> Iterator[Stack]:
    """The stacks among rows of the view `speedup` by one metric, under one condition and against
    one baseline.

    `label` gives the label of a method and its parameters (JSON).
    """
    known = list(rows)
    alone = {
        _key(row.method, json.loads(row.params or "{}")): row
        for row in known
        if "+" not in row.method
    }
    for row in known:
        steps = json.loads(row.params or "{}")
        if not isinstance(steps, list):
            continue
        keys = [
            _key(step["method"], {k: v for k, v in step.items() if k != "method"})
            for step in steps
            if "method" in step
        ]
        keys += [
            _key("dense", {name: value})
            for step in steps
            if "method" not in step
            for name, value in step.items()
        ]
        parts = [_part(key, alone.get(key), label) for key in keys]
        yield Stack(
            row,
            label(row.method, row.params),
            conclude_speedup(row),
            tuple(parts),
            _product([alone.get(key) for key in keys]),
        )


def _part(
    key: tuple[str, str], row: SpeedupRow | None, label: Callable[[str, str], str]
) -> StackPart:
    if row is None:
        return StackPart(f"{key[0]} {key[1]}", None)
    return StackPart(label(row.method, row.params), conclude_speedup(row))


def _product(rows: Sequence[SpeedupRow | None]) -> Conclusion | None:
    known = [
        row for row in rows if row is not None and conclude_speedup(row).finding not in _NO_FACTOR
    ]
    if len(known) < len(rows):
        return None
    return conclude(
        SPEEDUP,
        prod(row.speedup for row in known),
        prod(row.speedup_low or nan for row in known),
        prod(row.speedup_high or nan for row in known),
        verdict=None,
    )


def _key(method: str, params: dict[str, Any]) -> tuple[str, str]:
    return method, json.dumps(
        {name: value for name, value in params.items() if value is not None}, sort_keys=True
    )
