"""Sentences and numbers of pages and charts, made of the words of `sweeps.analysis.labels` and
`sweeps.number_format`.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from sweeps.analysis.labels import (
    BITS,
    GAINS,
    LOSSES,
    SPEEDUP,
    Conclusion,
    conclude_interval,
    conclude_row,
)
from sweeps.model.flags import split_flags
from sweeps.model.kinds import KINDS
from sweeps.number_format import is_missing

SHOWN = SPEEDUP._replace(mark="×")
"""Speed-ups in the app: words and decimals as in the report."""

UNDECIDED = {
    "quarantined": "measured on a slowed machine alone",
    "insufficient": "fewer pairs than requested",
}
"""Verdicts that stand whatever the interval is, and why."""
SPEED_COLUMNS = ("speedup", "speedup_low", "speedup_high")
RATIO = re.compile(r"(?<![\w.])(\d[\d,]*(?:\.\d+)?)x(?!\w)")
"""A ratio as the terminal prints it, `1.5x`."""
NOTABLE = 0.01
"""Share by which the ratio of two medians may differ from the speed-up without a note."""


def typeset(sentence: str) -> str:
    """A sentence of the terminal with the sign that the app uses for ratios: `1.5×`."""
    return RATIO.sub(r"\1×", sentence)


def loss_phrase(found: Conclusion) -> str:
    """A change of quality in words; one without a side has its sign explained, as numbers above 0
    are losses by any metric.
    """
    signed = found.value is not None and found.finding not in GAINS | LOSSES
    return f"{found.phrase} (above 0: worse)" if signed else found.phrase


def metrics_in(found: Iterable[str]) -> list[str]:
    """The metrics in a column, the one to be shown first at the front."""
    names = set(found)
    return [name for kind in KINDS.values() for name in kind.metrics if name in names]


def speed(point: Mapping[Any, Any]) -> Conclusion:
    """What a row of the view `speedup` allows to conclude."""
    return conclude_row(SHOWN, point, "speedup")


def undecided(points: pd.DataFrame) -> pd.Series:
    """Which rows of the view `speedup` have a verdict that stands whatever their interval is, so
    that no number follows from it.
    """
    return points["verdict"].isin(list(UNDECIDED))


def pairs_reached(point: Mapping[Any, Any]) -> str:
    """`1 of 30 pairs` for a row of `webapp.queries.scope_points` with fewer than requested; empty
    for one with enough.
    """
    if point["verdict"] != "insufficient":
        return ""
    required = point.get("pairs_min")
    return (
        f"{point['pairs']:,.0f} of {required:,.0f} pairs"
        if required and required > point["pairs"]
        else "too few pairs"
    )


def speed_numbers(point: Mapping[Any, Any]) -> str:
    """`1.234× [1.220, 1.250], faster`, or `1 of 30 pairs`."""
    return pairs_reached(point) or f"{speed(point).numbers}, {speed(point).word}"


def with_words(points: pd.DataFrame) -> pd.DataFrame:
    """Rows of the view `speedup` with `estimate`, `interval` and `word` as the report prints them,
    and their `digits`.

    The estimate of one with too few pairs is how many it has.
    """
    rows = points.to_dict("records")
    found, short = [speed(point) for point in rows], [pairs_reached(point) for point in rows]
    words = {
        name: [getattr(each, name) for each in found]
        for name in ("estimate", "interval", "word", "digits")
    }
    words["estimate"] = [few or words["estimate"][place] for place, few in enumerate(short)]
    words["interval"] = [
        "–" if few else words["interval"][place] for place, few in enumerate(short)
    ]
    return points.assign(**words)


def with_enough_pairs(points: pd.DataFrame) -> pd.DataFrame:
    """The rows, without the numbers of those that have too few pairs."""
    return points.assign(
        **{name: points[name].mask(points["verdict"] == "insufficient") for name in SPEED_COLUMNS}
    )


def against_control(row: Mapping[Any, Any]) -> str:
    """A tuned arm against the control of its tuning: a row of
    `store.read.quality.with_controls`; empty for other arms.
    """
    if not isinstance(row["control"], str):
        return ""
    if is_missing(row["change"]):
        return "control not measured"
    return loss_phrase(
        conclude_interval(BITS, row["change"], row["change_low"], row["change_high"])
    )


def single_point(point: Mapping[Any, Any]) -> str:
    """The only point of an arm, a row of the view `speedup`, after its label: `is probably slower:
    0.97× [0.95, 0.99]`.
    """
    note = f"; flagged: {point['flags'].replace(',', ', ')}" if point["flags"] else ""
    few = pairs_reached(point)
    return f"has {few}{note}" if few else f"is {speed(point).phrase}{note}"


def explained(points: pd.DataFrame) -> pd.DataFrame:
    """Rows of `with_words` with the `reason` of the verdict, and a `medians` note where the two
    times alone show another ratio.
    """
    rows = points.to_dict("records")
    return points.assign(
        reason=list(map(interval_reason, rows)), medians=list(map(medians_note, rows))
    )


def interval_reason(point: Mapping[Any, Any]) -> str:
    """Why a row of the view `speedup` has its verdict, from its interval as it is; and whether it
    is one on fewer tokens at all.
    """
    reason = _reason(point)
    idle = "no_effect" in split_flags(point.get("flags"))
    return (
        f"{reason}; it removes nothing here, so that this is no effect of fewer tokens"
        if idle
        else reason
    )


def _reason(point: Mapping[Any, Any]) -> str:
    low, high, floor = point["speedup_low"], point["speedup_high"], point["floor"]
    if point["verdict"] in UNDECIDED:
        return UNDECIDED[point["verdict"]]
    if is_missing(low) or is_missing(high):
        return "too few pairs for an interval"
    within = f"within {100 * floor:.3g} % of 1"
    if 1 / (1 + floor) <= low and high <= 1 + floor:
        return f"the whole interval lies {within}"
    if low > 1 or high < 1:
        return f"the whole interval lies {'above' if low > 1 else 'below'} 1"
    return f"the interval holds 1 and reaches beyond {within}"


def medians_note(point: Mapping[Any, Any]) -> str:
    """Where the ratio of the two median times is another number than the speed-up, which compares
    times of the same round.
    """
    if (
        is_missing(point["baseline_ms"])
        or is_missing(point["arm_ms"])
        or not point["arm_ms"]
        or point["verdict"] == "insufficient"
    ):
        return ""
    ratio = point["baseline_ms"] / point["arm_ms"]
    if abs(ratio / point["speedup"] - 1) < NOTABLE:
        return ""
    return (
        f"the two medians alone give {ratio:.3f}×; the speed-up compares times of the same round,"
        " which drift does not touch"
    )
