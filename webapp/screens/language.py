"""Page: what arms of language models gain in speed and memory along the length of the prompt, and
what they cost in quality.
"""

from collections.abc import Mapping
from typing import Any

import pandas as pd
import streamlit as st

from store.read.quality import conclude_quality
from store.read.queries import panel_rows
from store.rows.frames import rows_of
from store.views.attempts import metric_column
from sweeps.analysis.labels import Stack, stacks_of
from sweeps.model.metrics import INTERVAL, METRICS, MetricSpec
from sweeps.number_format import count
from sweeps.stats.pooling import ALPHA
from sweeps.text.effects import losses_headline, stack_text
from webapp import queries
from webapp.charts.points import Measure
from webapp.charts.quality import ENDS, bar_chart, length_info
from webapp.display import plain, texts
from webapp.display.arm_style import arm_styles, label_arms
from webapp.queries import Scope, kept
from webapp.widgets import filters
from webapp.widgets.chart_block import show_chart
from webapp.widgets.quality import (
    QualityOfPoint,
    against_control,
    beside_unmodified,
    quality_of,
    show_front,
    speed_and_quality,
    with_quality_words,
)
from workers.methods.arm_labels import params_label


@kept
def generation(engine: Any, scope: Scope) -> pd.DataFrame:
    """Rows of the view `generation` with the fixed values of a scope, each arm alone, with `arm`
    and `flags`.
    """
    rows = panel_rows(engine, scope.sweep, "generation", scope.fixed, {})
    flags = rows["arm_flags"].fillna("") + "," + rows["job_flags"].fillna("")
    named = rows.drop(columns="arm").assign(
        baseline="",
        baseline_id="",
        flags=[", ".join(filter(None, text.split(","))) for text in flags],
    )
    return label_arms(named, named.iloc[:0])[0]


def measured_figures(arms: pd.DataFrame) -> Mapping[str, MetricSpec]:
    """Metrics of a run that one of the arms has, by title with unit."""
    found = {}
    for spec in METRICS.values():
        column, unit = metric_column(spec)[0], spec.unit
        measured = column in arms and arms[column].notna().any()
        if spec.better and spec.read in {"once", "round"} and measured:
            note = "" if unit == "1/s" else f", {'B' if unit == 'MiB' else unit}"
            found[f"{texts.capitalised(spec.label)}{note}"] = spec
    return found


def _along_length(scope: Scope) -> None:
    """One figure of each arm along the length of the prompt."""
    st.subheader("Along the length of the prompt", anchor=False)
    arms = generation(scope)
    titles = measured_figures(arms)
    if not titles:
        plain.sentence("No figure of the arms by themselves was measured.", "muted")
        return
    rate = next((title for title, spec in titles.items() if spec.better == "higher"), None)
    title = filters.choose_one("Figure", list(titles), "figure", rate)
    spec = titles[title]
    frame = arms.assign(value=arms[metric_column(spec)[0]])
    drawn = set(frame.dropna(subset=["value"])["arm"])
    styles = {arm: style for arm, style in arm_styles(arms).items() if arm in drawn}
    chart = length_info(frame, title, styles, spec.better or "")
    name = f"language-{spec.name}"
    show_chart(chart, name, frame, scope, texts.extremes(title, frame, "arm"))
    plain.sentence(
        "Each arm's newest attempt, without an interval; ratios of arms and their intervals are in"
        " the tables.",
        "muted",
    )


def _bits_against_speed(arms: pd.DataFrame, spec: MetricSpec, scope: Scope) -> None:
    """Quality lost against speed gained, with both intervals."""
    title = f"Speed-up: {METRICS[scope.metric].label}, {INTERVAL} interval"
    x = Measure("speedup", title, "higher", "ratio", alpha=ALPHA)
    y = Measure(
        "worse", f"{texts.capitalised(spec.label)} lost, 95 % interval", "lower", form="+.2~r"
    )
    known = arms.dropna(subset=["worse", "speedup"])
    if known.empty:
        return
    points = beside_unmodified(known, speedup=1.0, worse=0.0)
    show_front(points, x, y, "language-pareto", scope)


def _stacks(rows: list[QualityOfPoint], scope: Scope) -> None:
    """Stacked methods beside their parts and the product of the parts."""
    found = list(stacks_of(rows, params_label))
    if found:
        st.subheader("Stacks and their parts", anchor=False)
    for number, stack in enumerate(found):
        parts = stack_rows(stack)
        if parts["value"].isna().all():
            plain.sentence(f"{stack.label}: neither it nor its parts have enough pairs.")
            continue
        title, name = f"Speed-up: {METRICS[scope.metric].label}", f"language-stack-{number}"
        chart = bar_chart(parts, Measure("value", title, "", "ratio", ends=ENDS, none=1.0))
        answer = f"{stack.label}: {stack_text(stack)}."
        show_chart(chart, name, parts, scope, answer)
        plain.sentence(answer)


def stack_rows(stack: Stack) -> pd.DataFrame:
    """Rows for `bar_chart`: the parts alone, their product, and all together as measured."""
    parts = [(f"{part.label} alone", part.speedup) for part in stack.parts]
    named = [
        *parts,
        ("product of the parts", stack.product),
        ("all together, measured", stack.together),
    ]
    rows = [
        (label, found.value, found.low, found.high) for label, found in named if found is not None
    ]
    return pd.DataFrame(rows, columns=["label", "value", "low", "high"]).astype(
        {"value": float, "low": float, "high": float}
    )


def _tuned_controls(rows: list[QualityOfPoint], floor: float, scope: Scope) -> None:
    """Tuned arms against the same tuning without what the method adds."""
    tuned = {row.arm: row for row in reversed(rows) if row.control is not None}
    if not tuned:
        return
    st.subheader("Tuned arms against their controls", anchor=False)
    plain.sentence(
        "A control is the same tuning on the same text without what the method adds: what tuning"
        " alone gains.",
        "muted",
    )
    drawn = []
    for arm, row in reversed(tuned.items()):
        control = params_label(row.control or "", row.control_params or "{}")
        drawn.append((arm, row.change, row.change_low, row.change_high))
        plain.sentence(
            f"{arm}: its control, {control}, was not measured beside it."
            if row.change is None
            else f"{arm}: {against_control(row)} against {control}."
        )
    columns = ["label", "value", "low", "high"]
    frame = pd.DataFrame(drawn, columns=columns).astype(dict.fromkeys(columns[1:], float))
    title = "Bits per byte more than the control's, 95 % interval"
    if frame["value"].notna().any():
        chart = bar_chart(frame, Measure("value", title, ends=ENDS, none=0.0, floor=floor))
        answer = texts.extremes(title, frame)
        show_chart(chart, "language-controls", frame, scope, answer)


def _show() -> None:
    """The page, from its answer down."""
    scope = filters.chosen_scope()
    points, _ = queries.scope_points(scope)
    if points["prompt_tokens"].isna().all():
        plain.sentence(
            "These are no language models. What vision models cost in quality is on the page"
            " Accuracy."
        )
        return
    quality = quality_of(scope.sweep, "language", scope.fixed["model"], scope.fixed["weights"])
    arms = with_quality_words(points, quality)
    lengths = {
        count(int(length), "token"): length for length in sorted(arms["prompt_tokens"].unique())
    }
    length = filters.choose_one("Prompt", list(lengths), "prompt", list(lengths)[-1])
    here = arms[arms["prompt_tokens"] == lengths[length]]

    rows, spec = rows_of(here, QualityOfPoint), quality.spec
    words = ", ".join(f"{number} {word}" for word, number in here["word"].value_counts().items())
    judged = {row.arm: conclude_quality(row, spec) for row in rows if row.effect is not None}
    known = losses_headline(judged, "quality") if judged else ""
    plain.headline(known or f"{count(len(here), 'arm')}: {words}")
    metric = texts.capitalised(METRICS[scope.metric].label)
    requested = quality.states["state"].value_counts().items()
    stand = ", ".join(f"{number} {state}" for state, number in requested)
    plain.sentence(
        f"{metric} at {length} of the prompt, against {here['against'].iloc[0]}: {words}. Quality:"
        f" {stand or 'not requested by the sweep'}.",
        "muted",
    )
    _bits_against_speed(here, spec, scope)
    speed_and_quality(here, spec)
    _along_length(scope)
    _stacks(rows, scope)
    _tuned_controls(rows, spec.floor, scope)


if __name__ == "__main__":
    _show()
