"""Page: what arms cost in accuracy, beside their speed and work, on clean and on corrupted
images.
"""

from dataclasses import dataclass
from typing import Any

import pandas as pd
import streamlit as st

from store.read.queries import panel_rows
from store.rows.frames import rows_of
from sweeps.analysis.labels import Conclusion, conclude_change
from sweeps.analysis.rows import AccuracyRow
from sweeps.model.metrics import INTERVAL, METRICS
from sweeps.number_format import count, image_text, p_text
from sweeps.stats.pooling import ALPHA
from sweeps.text.effects import effect_word, losses_headline
from webapp import queries
from webapp.charts.panels import dense_first
from webapp.charts.points import Measure
from webapp.charts.quality import (
    ENDS,
    bar_chart,
    corruption_chart,
    disagreement_chart,
    disagreement_rows,
)
from webapp.display import plain, texts
from webapp.display.arm_style import QUALIFIERS, arm_styles, label_arms
from webapp.queries import Scope, kept
from webapp.widgets import filters
from webapp.widgets.chart_block import show_chart
from webapp.widgets.quality import (
    beside_unmodified,
    data_text,
    models,
    quality_metric,
    quality_of,
    show_front,
    speed_and_quality,
    with_quality_words,
)
from webapp.widgets.tables import show_table

SPEEDS = {
    "Speed-up": Measure(
        "speedup", f"Speed-up, {INTERVAL} interval", better="higher", scale="ratio", alpha=ALPHA
    ),
    "Time of a forward": Measure("arm_ms", "Time of a forward, ms", scale="log"),
    "GMACs of a forward": Measure("gmacs_total", "GMACs of a forward, the method's own included"),
}
LOST = Measure("top1_drop", "Top-1 lost, points, 95 % interval", better="lower", form="+.2~r")
FIGURES = {  # columns with intervals, drawn for each arm: above 0 it loses by each
    "top1_drop": "Top-1 lost, points",
    "kl": "KL divergence from the baseline, nat",
    "margin_lost": "Margin lost, logits",
}
TABLE = ("arm", "only_baseline_correct", "only_arm_correct", "mcnemar_p", "top1", "top5", "kl")
ACCURACY_SECTION = """defaults: {pretrained: true, data: "imagefolder:/path/to/val"}

jobs:
  accuracy: {}"""
NO_ACCURACY = {
    "not requested": "This sweep requests no accuracy. These lines in the sweep file do:",
    "queued": "The accuracy of these arms is in the queue; its progress is on the page Runs.",
    "failed": (
        "No accuracy was measured: every comparison failed. The reasons are on the page Runs."
    ),
    "not measured": "The sweep requests accuracy, and none is measured yet: run it again.",
}


@kept
def accuracies(engine: Any, sweep: str, model: str, weights: str) -> pd.DataFrame:
    """Rows of the view `accuracy` of a model's arms, with `arm`, `against`, the `word` of the
    verdict on top-1, the `text` of what was classified, `margin_lost` with its ends, and
    `mcnemar_p` as a text.
    """
    fixed = {"kind": quality_metric("vision")[0].name, "model": model, "weights": weights}
    rows = panel_rows(engine, sweep, "accuracy", fixed, {})
    missing = {name: None for name in QUALIFIERS if name not in rows}
    found = label_arms(rows.assign(**missing), rows.iloc[:0].assign(**missing))[0]
    judged = rows_of(found, AccuracyRow)
    return found.assign(
        margin_lost=-found["margin_change"].astype(float),
        margin_lost_low=-found["margin_change_high"].astype(float),
        margin_lost_high=-found["margin_change_low"].astype(float),
        mcnemar_p=found["mcnemar_p"].map(p_text, na_action="ignore"),
        word=[effect_word(_conclusion(row)) for row in judged],
        text=[
            f"{data_text(row)}, {image_text(row.image_size or 0, row.image_shape)}"
            for row in judged
        ],
    )


@dataclass(frozen=True, kw_only=True)
class JudgedArm(AccuracyRow):
    """A row of `accuracies`."""

    arm: str


def _conclusion(row: AccuracyRow) -> Conclusion:
    """What a row allows to conclude about top-1, which counts the other way than its drop."""
    low, high = (None if end is None else -end for end in (row.top1_drop_high, row.top1_drop_low))
    change = -(row.top1_drop or 0.0)
    return conclude_change(METRICS["top1"], change, low, high, verdict=row.verdict, floor=row.floor)


def _explain_absence(state: str) -> None:
    """Why there are no numbers, and what to do."""
    plain.sentence(NO_ACCURACY[state])
    if state == "not requested":
        plain.text_block(ACCURACY_SECTION)


def states_in_words(found: pd.DataFrame) -> str:
    """How many comparisons stand where, such as `12 measured, 2 failed (out_of_memory)`."""
    words = []
    for state, own in found.groupby("state", sort=False):
        reasons = ", ".join(sorted(set(own["reason"].dropna()))) if state == "failed" else ""
        note = f" ({reasons})" if reasons else ""
        words.append(f"{count(len(own), 'comparison')} {state}{note}")
    return ", ".join(words)


def _accuracy_front(arms: pd.DataFrame, scope: Scope | str, choices: Any) -> None:
    """Accuracy lost against speed or work, which is chosen beside the other `choices`."""
    measured = [
        name for name, axis in SPEEDS.items() if axis.column in arms and arms[axis.column].any()
    ]
    with choices:
        measure = SPEEDS[filters.choose_one("Drawn against", measured, "x")]
    first = arms.iloc[0]
    points = beside_unmodified(
        arms,
        speedup=1.0,
        arm_ms=first.get("baseline_ms"),
        gmacs_total=first.get("gmacs_baseline"),
        top1_drop=0.0,
    )
    show_front(points, measure, LOST, "accuracy-pareto", scope)


def _figures(rows: pd.DataFrame, scope: Scope | str) -> None:
    """One figure of each arm with its interval."""
    st.subheader("What changes in the outputs", anchor=False)
    titles = {title: name for name, title in FIGURES.items() if rows[name].notna().any()}
    title = filters.choose_one("Figure", list(titles), "figure")
    name = titles[title]
    columns = {"arm": "label", name: "value", f"{name}_low": "low", f"{name}_high": "high"}
    floor = METRICS["top1"].floor if name == "top1_drop" else 0.0
    colors = {arm: style.color for arm, style in arm_styles(rows).items()}
    drawn = rows[list(columns)].rename(columns=columns)
    drawn["color"] = drawn["label"].map(colors)
    named = f"{title}, 95 % interval"
    measure = Measure("value", named, form="+.2~r", ends=ENDS, none=0.0, floor=floor)
    show_chart(
        bar_chart(drawn, measure),
        f"accuracy-{name}",
        rows,
        scope,
        texts.extremes(title, drawn),
    )


def _agreement(rows: pd.DataFrame, scope: Scope | str, *, alone: bool) -> None:
    """Images that only one of the two classifies correctly, with the other figures if `alone`: if
    no table above has them.
    """
    st.subheader("Images that only one of the two classifies correctly", anchor=False)
    chart = disagreement_chart(disagreement_rows(rows.assign(label=rows["arm"])))
    answer = texts.extremes("Only the baseline is right", rows, "arm", "only_baseline_correct")
    show_chart(chart, "accuracy-mcnemar", rows, scope, answer)
    listed = TABLE if alone else TABLE[:4]
    known = [name for name in listed if name in rows and rows[name].notna().any()]
    show_table(rows.assign(digits=0), known)


def _corruptions(rows: pd.DataFrame, scope: Scope | str) -> None:
    """The map of one arm."""
    st.subheader("Corrupted images", anchor=False)
    corrupted = rows[rows["corruption"].notna()]
    if corrupted.empty:
        plain.sentence("The sweep requests no corrupted images.", "muted")
        return
    worst = str(corrupted.groupby("arm")["top1_drop"].mean().idxmax())
    arm = filters.choose_one("Arm", list(dict.fromkeys(corrupted["arm"])), "arm", worst)
    own = corrupted[corrupted["arm"] == arm]
    chart = corruption_chart(own)
    answer = texts.extremes(f"Top-1 lost by {arm}", own, "corruption", "top1_drop")
    show_chart(chart, "accuracy-corruptions", own, scope, answer)


def _chosen(scope: Scope | None, column: str, values: pd.Series, label: str, key: str) -> str:
    """The model or weights of the filters where these are among the values, else of a choice."""
    names, fixed = list(dict.fromkeys(values)), "" if scope is None else scope.fixed.get(column)
    return str(fixed) if fixed in names else filters.choose_one(label, names, key)


def _show() -> None:
    """The page, from its answer down."""
    sweep = filters.chosen_sweep()
    requested = models(sweep, "vision")
    if requested.empty:
        _explain_absence("not requested")
        return
    scope = filters.choose_scope(sweep) if len(queries.panels(sweep)) else None
    model = _chosen(scope, "model", requested["model"], "Accuracy of", "of")
    of_model = requested[requested["model"] == model]
    weights = _chosen(scope, "weights", of_model["weights"], "Weights of it", "trained")
    found = accuracies(sweep, model, weights)
    states = set(of_model["state"])
    if found.empty:
        open_states = (state for state in ("queued", "failed") if state in states)
        _explain_absence(next(open_states, "not measured"))
        return
    choices = st.container(horizontal=True)
    with choices:
        against = filters.choose_one("Against", dense_first(found), "beside")
        found = found[found["against"] == against]
        ordered = found.sort_values(
            ["corruption", "image_size"], ascending=[True, False], na_position="first"
        )
        text = filters.choose_one("Images", list(dict.fromkeys(ordered["text"])), "images")
    rows = found[found["text"] == text].sort_values("top1_drop")

    about: Scope | str = sweep if scope is None else scope
    judged = {row.arm: _conclusion(row) for row in rows_of(rows, JudgedArm)}
    plain.headline(losses_headline(judged, "top-1"))
    words = ", ".join(f"{number} {word}" for word, number in rows["word"].value_counts().items())
    images = count(int(rows["images"].max()), "image")
    plain.sentence(f"{words}: {model} on {images} of {text}, against {against}", "muted")
    if states != {"measured"}:
        plain.sentence(
            f"Of the accuracy that the sweep requests: {states_in_words(of_model)}.", "muted"
        )

    arms = rows
    if scope is not None:
        points, _ = queries.scope_points(scope)
        quality = quality_of(sweep, "vision", model, weights)
        chosen = quality.effects[quality.effects["comparison_id"].isin(rows["comparison_id"])]
        timed = with_quality_words(
            points[points["image_size"] == rows["image_size"].iloc[0]],
            quality._replace(effects=chosen),
        )
        if len(timed):
            # a time without enough pairs surpasses nothing either
            few = timed["verdict"] == "insufficient"
            columns = ["speedup", "speedup_low", "speedup_high", "arm_ms", "baseline_ms"]
            own = timed.assign(arm_ms=timed["arm_ms"].mask(few))[["quality_pair_id", *columns]]
            own = own.drop_duplicates("quality_pair_id")
            arms = rows.merge(own, how="left", on="quality_pair_id")
    _accuracy_front(arms, about, choices)
    if arms is not rows:
        speed_and_quality(timed, quality.spec)
    _figures(rows, about)
    _agreement(rows, about, alone=arms is rows)
    _corruptions(found, about)


if __name__ == "__main__":
    _show()
