"""The answer of a panel in words: one sentence, and a card for each method with its best arm; from
rows of the views alone.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from store.read.quality import conclude_quality, join_quality, quality_rows
from sweeps.analysis.labels import GAINS, Finding
from sweeps.model.metrics import METRICS, MetricSpec
from sweeps.number_format import count, is_missing
from sweeps.text.curves import (
    CurveAnswer,
    answer_of_curves,
    answer_of_points,
    axis_place,
    describe_break_even,
    merit_of,
)
from webapp.charts.curves import X_COLUMN, Panel, flagged
from webapp.charts.emphasis import ranked_arms, rows_by_arm
from webapp.display import texts
from webapp.display.axis_curves import Axis, size_of
from workers.methods import purpose


class MethodCard(NamedTuple):
    """What the best arm of a method does."""

    method: str
    arm: str
    headline: str
    lines: list[str]
    why: str
    """The reason of the analysis for its break-even; empty where there is none."""


class PanelAnswers(NamedTuple):
    """What sentence and cards of a panel are made from, read once for both."""

    panel: Panel
    axis: Axis
    counted: pd.DataFrame
    """The points that no flag marks as wrong, or all where each is."""
    ranked: Sequence[str]
    """The arms, best first."""
    rows: Mapping[str, list[Any]]
    """Of the view `break_even`, by arm."""
    curves: Mapping[str, CurveAnswer]
    """What the curve of each arm claims; empty for a panel with one size."""


def answers_of_panel(panel: Panel, axis: Axis) -> PanelAnswers:
    right = panel.points[~flagged(panel.points)]
    counted = pd.concat([right, panel.points[~panel.points["arm"].isin(right["arm"])]])
    known = PanelAnswers(
        panel,
        axis,
        counted,
        ranked_arms(panel.points, panel.break_evens),
        rows_by_arm(panel.break_evens),
        curves={},
    )
    return known if panel.single(axis) else known._replace(curves=_curves(known))


def answer_sentence(known: PanelAnswers) -> str:
    """One sentence, the same as in the terminal's report of a sweep with this panel alone."""
    if known.curves:
        return answer_of_curves(list(known.curves.values()))
    gains = [row for row in known.counted.to_dict("records") if _gain(row)]
    best = max(gains, key=lambda row: row["speedup_low"], default=None)
    if best is None:
        return answer_of_points(len(known.counted), "")
    found_best = texts.speed(best)
    label = METRICS[best["metric"]].label
    return answer_of_points(
        len(known.counted),
        f"{best['arm']}, {found_best.numbers} in {label} ({found_best.word}) against"
        f" {best['against']}",
    )


def measured_span(known: PanelAnswers) -> str:
    """What was measured along the axis, such as `4 to 196 tokens`."""
    x = known.counted[X_COLUMN[known.axis]].astype(float)
    unit = size_of(known.panel.points).token_unit
    low, high = (axis_place(value, known.axis, unit) for value in (x.min(), x.max()))
    if low == high:
        return high
    words, ends = low.split(), high.split()
    while words and ends and words[-1] == ends.pop():
        words.pop()
    return f"{' '.join(words)} to {high}"


def first_clear_tokens(known: PanelAnswers) -> int:
    """The fewest tokens at which the best arm clearly gains, else the most that were measured."""
    own = known.counted[known.counted["arm"] == known.ranked[0]].sort_values("tokens")
    clear = [row["tokens"] for row in own.to_dict("records") if _gain(row)]
    return int(clear[0] if clear else own["tokens"].max())


def method_cards(known: PanelAnswers, quality: Mapping[str, str]) -> list[MethodCard]:
    """A card for each method, best first; `quality` has the cost in quality of arms in words, where
    it is known.
    """
    methods = dict(zip(known.panel.points["arm"], known.panel.points["method"], strict=True))
    families: dict[str, list[str]] = {}
    for arm in known.ranked:
        families.setdefault(methods[arm], []).append(arm)
    random = known.panel.about["weights"] == "random" and not quality
    unknown = (
        "quality: not known, the weights are random"
        if random
        else "quality: not measured in this sweep"
    )
    return [
        _card(known, method, arms, quality.get(arms[0], unknown))
        for method, arms in families.items()
    ]


def quality_words(points: pd.DataFrame, effects: pd.DataFrame, spec: MetricSpec) -> dict[str, str]:
    """The change in quality of each arm that was evaluated, with the data; `effects` are rows of
    the view `effect`.
    """
    rows = quality_rows(effects, spec.name)
    if rows.empty:
        return {}
    own = points.drop(columns=["data", "corruption", "severity"], errors="ignore")
    found = join_quality(own, rows).drop_duplicates("arm").assign(state="measured", reason="")
    known = [row for row in found.itertuples() if not is_missing(row.effect)]
    return {
        str(
            row.arm
        ): f"{spec.label} {texts.loss_phrase(conclude_quality(row, spec))} on {data_text(row)}"
        for row in known
    }


def data_text(row: Any) -> str:
    """The data of a row of an evaluation: `digits`, `digits with fog, severity 3`."""
    return (
        str(row.data)
        if is_missing(row.corruption)
        else f"{row.data} with {row.corruption}, severity {row.severity:.0f}"
    )


def _card(known: PanelAnswers, method: str, arms: Sequence[str], quality: str) -> MethodCard:
    arm, axis = arms[0], known.axis
    own = known.counted[known.counted["arm"] == arm].sort_values(X_COLUMN[axis])
    rows = known.rows.get(arm, [])
    points = own.to_dict("records")
    if known.panel.single(axis):
        headline, lines = texts.single_point(points[0]), []
    else:
        headline, lines = (
            known.curves[arm].sentence,
            _speeds(points, rows, axis, size_of(own).token_unit),
        )
    pairs = own["pairs"].astype(int)
    span = (
        f"{pairs.min():,}" if pairs.min() == pairs.max() else f"{pairs.min():,} to {pairs.max():,}"
    )
    lines.append(
        f"{count(len(points), 'point')} of {span} pairs"
        + ("" if len(own) == len(own[~flagged(own)]) else ", flagged")
    )
    lines.append(quality)
    if len(arms) > 1:
        lines.append(f"{count(len(arms) - 1, 'more arm')} below")
    role = purpose(method)
    title = method if role == "optimisation" else f"{method} (a {role})"
    return MethodCard(title, arm, headline, lines, str(rows[0].why) if rows else "")


def _speeds(
    points: Sequence[Mapping[Any, Any]], rows: Sequence[Any], axis: Axis, unit: str
) -> list[str]:
    """The first clear gain of a curve that pays from some point on, and the best speed-up; `points`
    are in order along the axis.
    """
    decided = [row for row in points if row["verdict"] not in texts.UNDECIDED]
    best = max(decided or points, key=lambda row: row["speedup" if decided else "pairs"])
    first = (
        next((row for row in points if _gain(row)), None)
        if rows and merit_of(rows)[0] >= 2
        else None
    )
    firsts = {"first clear gain": first} if first is not None and first is not best else {}
    chosen = firsts | {"best speed-up" if decided else "no speed-up yet": best}
    return [
        f"{word}, at {_place(row, axis, unit)}: {texts.speed_numbers(row)}"
        for word, row in chosen.items()
    ]


def _place(row: Mapping[Any, Any], axis: Axis, unit: str) -> str:
    return axis_place(float(row[X_COLUMN[axis]]), axis, unit)


def _gain(row: Mapping[Any, Any]) -> bool:
    return texts.speed(row).finding in GAINS - {Finding.SMALL_GAIN}


def _curves(known: PanelAnswers) -> dict[str, CurveAnswer]:
    """What the curve of each arm claims, best first."""
    unit = size_of(known.panel.points).token_unit
    methods = dict(zip(known.counted["arm"], known.counted["method"], strict=True))
    found = {}
    for arm in known.ranked:
        rows = known.rows.get(arm, [])
        sentence = describe_break_even(rows, unit)
        verdict, merit = (str(rows[0].verdict), merit_of(rows)) if rows else ("unclear", (0, 0.0))
        method = str(methods[arm])
        found[arm] = CurveAnswer(
            method, arm, sentence, verdict, merit, purpose(method) == "optimisation"
        )
    return found
