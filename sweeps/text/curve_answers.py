"""The answer of a sweep in one sentence, from its curves: the same words for the terminal, the HTML
report and the web app.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sweeps.number_format import count, is_missing
from sweeps.stats.curve import NEVER_GAIN

CLAIMS: Mapping[str, str] = {
    "always": "pays everywhere",
    "crossing": "has a break-even",
    "pays_from": "pays from some point on",
    "pays_up_to": "pays up to some point",
    "pays_at_both_ends": "pays at both ends",
    "pays_between": "pays at some sizes only",
    "same": "is no different",
    "never": f"gains {100 * NEVER_GAIN:g} % at most",
    "no_effect": "does nothing",
    "unclear": "cannot tell",
}
"""What a verdict of a curve claims, without numbers."""


class CurveAnswer(NamedTuple):
    """A curve and what it claims."""

    method: str
    label: str
    """The arm, and what distinguishes its curve from others."""
    sentence: str
    """The break-even in the words of `sweeps.text.curve_labels.describe_break_even`."""
    verdict: str
    merit: tuple[int, float]
    """See `merit_of`."""
    for_use: bool
    """Whether it is an optimisation; controls are not recommended."""

    @property
    def line(self) -> str:
        return f"{self.label}: {self.sentence}"


def merit_of(rows: Sequence[Any]) -> tuple[int, float]:
    """The larger, the better a curve: whether it pays everywhere, from some point on, only
    elsewhere, or nowhere; then how early.

    `rows` are those of the curve in the view `break_even`.
    """
    first = rows[0]
    place = next((float(x) for x in (first.x, first.x_high, first.x_low) if not is_missing(x)), 0.0)
    if first.verdict == "always":
        return 3, 0.0
    if first.verdict == "pays_from" or (first.verdict == "crossing" and first.direction == "gains"):
        return 2, -place
    return (
        (1, place)
        if first.verdict in {"pays_up_to", "pays_at_both_ends", "pays_between", "crossing"}
        else (0, 0.0)
    )


def pays_at(rows: Sequence[Any], x: float) -> bool:
    """Whether the break-even of a curve, its rows of the view `break_even`, claims that it pays at
    `x`.
    """
    if not rows or rows[0].verdict == "pays_between":
        return False
    bounded = [row for row in rows if not is_missing(row.direction)]
    claimed = any(
        x <= row.x_low if row.direction == "loses" else x >= row.x_high for row in bounded
    )
    return claimed or rows[0].verdict == "always"


def answer_of_curves(curves: Sequence[CurveAnswer]) -> str:
    """All curves in a sentence, but for those of controls; one curve alone is its line."""
    for_use = [curve for curve in curves if curve.for_use] or list(curves)
    if len(curves) == 1:
        return f"{curves[0].line}."
    best = max(for_use, key=lambda curve: curve.merit)
    if not best.merit[0]:
        return f"No arm is known to pay in what was measured: {tally(for_use)}."
    pays = sum(curve.merit[0] > 0 for curve in for_use)
    return (
        f"{pays} of {count(len(for_use), 'curve')} pay in at least a part of what was measured;"
        f" best {best.line}."
    )


def tally(curves: Sequence[CurveAnswer]) -> str:
    """`3 × has a break-even, 1 × gains 5 % at most`."""
    found = Counter(curve.verdict for curve in curves).most_common()
    return ", ".join(f"{number} × {CLAIMS[verdict]}" for verdict, number in found)


def answer_of_points(compared: int, best: str) -> str:
    """Speed-ups at single points; `best` is the one with a gain whose interval lies highest, in
    words, or empty.
    """
    among = count(compared, "comparison")
    return (
        f"Of {among} the one whose interval lies highest: {best}."
        if best
        else f"None of {among} shows a gain."
    )
