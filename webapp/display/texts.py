"""Sentences and numbers of pages and charts, made of the words of `sweeps.text.effects` and
`sweeps.number_format`.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields

import pandas as pd

from store.rows.frames import rows_of
from sweeps.analysis.labels import GAINS, LOSSES, SPEEDUP, Conclusion, conclude_speedup
from sweeps.analysis.rows import CeilingRow, SpeedupRow
from sweeps.model.flags import split_flags
from sweeps.model.metrics import COMPARED_BY, METRICS
from sweeps.number_format import moment, seconds_at
from sweeps.text.effects import effect_phrase, effect_word

SHOWN = SPEEDUP._replace(mark="×")
"""Speed-ups in the app: words and decimals as in the report."""
UNDECIDED = {
    "quarantined": "measured on a slowed machine alone",
    "insufficient": "fewer pairs than requested",
}
"""Verdicts that stand whatever the interval is, and why."""
SPEED_COLUMNS = ("speedup", "speedup_low", "speedup_high")
THIN_SPACE = "\u202f"
"""Between groups of three digits: a narrow space that does not break."""
SIGNS: Mapping[str, str | Callable[[re.Match[str]], str]] = {
    r"(?<![\w.])(\d[\d,]*(?:\.\d+)?)x(?!\w)": r"\1×",
    r"(?<![\w.=-])-(?=\d)": "−",
    r"^-$": "–",
    " -> ": " → ",
    r"`([^`\n]+)`": r"\1",
    r"(?<![\w.,=[])\d{1,3}(?:,\d{3})+(?![\w,])": lambda found: found[0].replace(",", THIN_SPACE),
    r"(?<![\w.,])(\d+)(\d{3})(?=(?:\.\d+)? ms\b)": rf"\1{THIN_SPACE}\2",
    r"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d)(?::[\d.]+)?(?:Z|\+00:00)?": lambda found: moment(
        seconds_at(f"{found[1]}Z")
    ),
}
"""A ratio, the sign of a number, thousands, milliseconds and times as views and the terminal have
them, and as pages show them."""
NOTABLE = 0.01
"""Share by which the ratio of two medians may differ from the speed-up without a note."""


@dataclass(frozen=True, kw_only=True)
class PointRow(CeilingRow):
    """A row of `webapp.queries.scope_points`, with what pages add to it."""

    arm: str = ""
    against: str = ""
    gmacs_saved: float | None = None
    promised: float | None = None


REQUIRED_COLUMNS = {field.name for field in fields(PointRow) if field.default is MISSING}
"""Columns without which rows are no points of a speed-up."""


def point_rows(points: pd.DataFrame) -> list[PointRow]:
    return rows_of(points, PointRow)


def typeset(sentence: str) -> str:
    """A sentence of the terminal with the signs that pages use: `1.5×`, a true minus, `1 580 ms`
    and `23 Nov 07:23`.
    """
    for printed, shown in SIGNS.items():
        sentence = re.sub(printed, shown, sentence)
    return sentence


def extremes(title: str, rows: pd.DataFrame, label: str = "label", value: str = "value") -> str:
    """What a chart of values shows: from the row with the least to that with the most."""
    known = rows.dropna(subset=[value]).sort_values(value).iloc[[0, -1]]
    ends = [f"{name} {found:.3g}" for name, found in zip(known[label], known[value], strict=True)]
    return f"{title}: {' to '.join(dict.fromkeys(ends))}"


def capitalised(sentence: str) -> str:
    """With a capital, the rest as it is."""
    return f"{sentence[:1].upper()}{sentence[1:]}"


def time_title(metric: str) -> str:
    """Of an axis of times: `Latency, ms`, `Time per character, ms`."""
    return f"{capitalised(METRICS[metric].label)}, ms"


def loss_phrase(found: Conclusion) -> str:
    """A change of quality in words; one without a side has its sign explained, as numbers above 0
    are losses by any metric.
    """
    signed = found.value is not None and found.finding not in GAINS | LOSSES
    return f"{effect_phrase(found)} (above 0: worse)" if signed else effect_phrase(found)


def metrics_in(found: Iterable[str]) -> list[str]:
    """The metrics in a column, the one to be shown first at the front."""
    names = set(found)
    return [name for name in COMPARED_BY if name in names]


def speed(point: SpeedupRow) -> Conclusion:
    """What a point allows to conclude."""
    return conclude_speedup(point, SHOWN)


def undecided(points: pd.DataFrame) -> pd.Series:
    """Which rows of the view `speedup` have a verdict that stands whatever their interval is, so
    that no number follows from it.
    """
    return points["verdict"].isin(list(UNDECIDED))


def too_few(pairs: int | None, required: int | None) -> str:
    """`1 of 30 pairs`."""
    known = required and pairs is not None and required > pairs
    return f"{pairs:,} of {required:,} pairs" if known else "too few pairs"


def pairs_reached(point: SpeedupRow) -> str:
    """`1 of 30 pairs` for a point with fewer than requested; empty for one with enough."""
    return too_few(point.pairs, point.pairs_min) if point.verdict == "insufficient" else ""


def speed_numbers(point: SpeedupRow) -> str:
    """`1.234× [1.220, 1.250], faster`, or `1 of 30 pairs`."""
    return pairs_reached(point) or f"{speed(point).numbers}, {effect_word(speed(point))}"


def with_words(points: pd.DataFrame) -> pd.DataFrame:
    """Rows of the view `speedup` with `estimate`, `interval` and `word` as the report prints them,
    and their `digits`.

    The estimate of one with too few pairs is how many it has.
    """
    rows = point_rows(points)
    found, short = list(map(speed, rows)), list(map(pairs_reached, rows))
    return points.assign(
        estimate=[few or each.estimate for each, few in zip(found, short, strict=True)],
        interval=["–" if few else each.interval for each, few in zip(found, short, strict=True)],
        word=[effect_word(each) for each in found],
        digits=[each.digits for each in found],
    )


def with_enough_pairs(points: pd.DataFrame) -> pd.DataFrame:
    """The rows, without the numbers of those that have too few pairs."""
    few = points["verdict"] == "insufficient"
    return points.assign(**{name: points[name].mask(few) for name in SPEED_COLUMNS})


def single_point(point: SpeedupRow) -> str:
    """The only point of an arm after its label: `is probably slower: 0.97× [0.95, 0.99]`."""
    note = f"; flagged: {point.flags.replace(',', ', ')}" if point.flags else ""
    few = pairs_reached(point)
    return f"has {few}{note}" if few else f"is {effect_phrase(speed(point))}{note}"


def explained(points: pd.DataFrame) -> pd.DataFrame:
    """Rows of `with_words` with the `reason` of the verdict, and a `medians` note where the two
    times alone show another ratio.
    """
    rows: Sequence[PointRow] = point_rows(points)
    return points.assign(
        reason=list(map(interval_reason, rows)), medians=list(map(medians_note, rows))
    )


def interval_reason(point: SpeedupRow) -> str:
    """Why a point has its verdict, from its interval as it is, and whether it concerns fewer tokens
    at all.
    """
    idle = "no_effect" in split_flags(point.flags)
    note = "; it removes nothing here, so that this is no effect of fewer tokens" if idle else ""
    return f"{_reason(point)}{note}"


def _reason(point: SpeedupRow) -> str:
    low, high, floor = point.speedup_low, point.speedup_high, point.floor or 0.0
    if point.verdict in UNDECIDED:
        return UNDECIDED[point.verdict]
    if low is None or high is None:
        return "too few pairs for an interval"
    within = f"within {100 * floor:.3g} % of 1"
    if 1 / (1 + floor) <= low and high <= 1 + floor:
        return f"the whole interval lies {within}"
    if low > 1 or high < 1:
        return f"the whole interval lies {'above' if low > 1 else 'below'} 1"
    return f"the interval holds 1 and reaches beyond {within}"


def medians_note(point: SpeedupRow) -> str:
    """Where the ratio of the two median times is another number than the speed-up, which compares
    times of the same round.
    """
    few = point.verdict == "insufficient"
    if few or not (point.baseline_ms and point.arm_ms and point.speedup):
        return ""
    return ratio_note(point.baseline_ms / point.arm_ms, point.speedup)


def ratio_note(ratio: float, speedup: float) -> str:
    """Where the ratio of two medians is another number than the speed-up."""
    if abs(ratio / speedup - 1) < NOTABLE:
        return ""
    return (
        f"the two medians alone give {ratio:.3f}×; the speed-up compares times of the same round,"
        " which drift does not touch"
    )
