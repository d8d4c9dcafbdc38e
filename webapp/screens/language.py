"""Page: what arms of language models gain in speed and memory along the length of the prompt, and
what they cost in quality.
"""

from collections.abc import Mapping

import pandas as pd
import streamlit as st

from store.rows.frames import rows_of
from store.views.attempts import metric_column
from sweeps.analysis.labels import Stack, stacks_of
from sweeps.analysis.rows import SpeedupRow
from sweeps.model.metrics import INTERVAL, METRICS, MetricSpec
from sweeps.number_format import count, is_missing
from sweeps.stats.pooling import ALPHA
from webapp import queries
from webapp.charts.encodings import with_links
from webapp.charts.interval_rows import interval_chart
from webapp.charts.length_lines import length_chart
from webapp.charts.pareto import Measure, pareto_chart
from webapp.display import plain, texts
from webapp.display.arm_style import arm_styles
from webapp.display.scope import Scope
from webapp.queries import queries_quality
from webapp.queries.quality_frames import (
    FRONT_NOTE,
    QualityOfArms,
    beside_unmodified,
    with_front,
    with_quality_words,
)
from webapp.widgets import filters
from webapp.widgets.arm_key import show_key
from webapp.widgets.chart_block import draw_chart, offer_files, show_chart
from webapp.widgets.choices import choose_one
from webapp.widgets.tables import speed_and_quality
from workers.methods.arm_labels import params_label


def measured_figures(arms: pd.DataFrame) -> Mapping[str, MetricSpec]:
    """Metrics of a run that one of the arms has, by title with unit."""
    found = {}
    for spec in METRICS.values():
        column = metric_column(spec)[0]
        if (
            spec.better
            and spec.read in {"once", "round"}
            and column in arms
            and arms[column].notna().any()
        ):
            unit = {"1/s": "per second", "MiB": "B"}.get(spec.unit, spec.unit)
            found[
                f"{spec.label[:1].upper()}{spec.label[1:]}"
                + ("" if unit == "per second" else f", {unit}")
            ] = spec
    return found


def along_length(scope: Scope) -> None:
    """One figure of each arm along the length of the prompt."""
    st.subheader("Along the length of the prompt", anchor=False)
    arms = queries_quality.generation(scope.sweep, scope.fixed)
    titles = measured_figures(arms)
    if not titles:
        plain.sentence("No figure of the arms by themselves was measured.", "muted")
        return
    rate = next((title for title, spec in titles.items() if spec.better == "higher"), None)
    title = choose_one("Figure", list(titles), "figure", rate)
    spec = titles[title]
    styles = arm_styles(arms)
    frame = arms.assign(value=arms[metric_column(spec)[0]])
    chart = length_chart(frame, title, styles, better=spec.better or "")
    name = f"language-{spec.name}"
    draw_chart(chart, name)
    show_key(
        {
            name: style
            for name, style in styles.items()
            if name in set(frame.dropna(subset=["value"])["arm"])
        }
    )
    offer_files(lambda: chart, name=name, data=frame, scope_or_sweep=scope)
    plain.sentence(
        "Each arm's newest attempt, without an interval; ratios of arms and their intervals are in"
        " the tables.",
        "muted",
    )


def bits_against_speed(arms: pd.DataFrame, quality: QualityOfArms, scope: Scope) -> None:
    """Quality lost against speed gained, with both intervals."""
    st.subheader(f"{quality.spec.label.capitalize()} against speed", anchor=False)
    x = Measure(
        "speedup",
        f"Speed-up: {METRICS[scope.metric].label}, {INTERVAL} interval",
        better="higher",
        scale="ratio",
        alpha=ALPHA,
    )
    y = Measure("worse", f"More {quality.spec.label}, 95 % interval", form="+.2~r")
    known = arms.dropna(subset=["worse", "speedup"])
    if known.empty:
        plain.sentence("No arm has both.", "muted")
        return
    points = with_front(beside_unmodified(known, speedup=1.0, worse=0.0), (x, y))
    colors = {name: style.color for name, style in arm_styles(points).items()}
    show_chart(
        pareto_chart(with_links(points), x, y, colors=colors),
        name="language-pareto",
        data=points,
        scope_or_sweep=scope,
    )
    plain.sentence(FRONT_NOTE, "muted")


def stacks(arms: pd.DataFrame, scope: Scope) -> None:
    """Stacked methods beside their parts and the product of the parts."""
    found = list(stacks_of(rows_of(arms, SpeedupRow), params_label))
    if not found:
        return
    st.subheader("Stacks and their parts", anchor=False)
    for number, stack in enumerate(found):
        rows = stack_rows(stack)
        if rows["value"].isna().all():
            plain.sentence(f"{stack.label}: neither it nor its parts have enough pairs.")
            continue
        title = f"Speed-up: {METRICS[scope.metric].label}"
        show_chart(
            interval_chart(rows, title, none=1),
            name=f"language-stack-{number}",
            data=rows,
            scope_or_sweep=scope,
        )
        plain.sentence(texts.typeset(f"{stack.label}: {stack.text}."))


def stack_rows(stack: Stack) -> pd.DataFrame:
    """Rows for `interval_chart`: the parts alone, their product, and all together as measured."""
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


def tuned_controls(arms: pd.DataFrame, quality: QualityOfArms, scope: Scope) -> None:
    """Tuned arms against the same tuning without what the method adds."""
    tuned = arms[arms["control"].notna()].drop_duplicates("arm")
    if tuned.empty:
        return
    st.subheader("Tuned arms against their controls", anchor=False)
    plain.sentence(
        "A control is the same tuning on the same text without what the method adds: what tuning"
        " alone gains.",
        "muted",
    )
    rows = pd.DataFrame(
        {
            "label": tuned["arm"],
            "value": tuned["change"],
            "low": tuned["change_low"],
            "high": tuned["change_high"],
        }
    )
    for row in tuned.to_dict("records"):
        control = params_label(row["control"], row["control_params"])
        if is_missing(row["change"]):
            plain.sentence(f"{row['arm']}: its control, {control}, was not measured beside it.")
        else:
            plain.sentence(f"{row['arm']}: {texts.against_control(row)} against {control}.")
    if rows["value"].notna().any():
        chart = interval_chart(
            rows,
            "Bits per byte more than the control's, 95 % interval",
            none=0,
            floor=quality.spec.floor,
        )
        show_chart(chart, name="language-controls", data=rows, scope_or_sweep=scope)


def _show() -> None:
    """The page, from its answer down."""
    scope = filters.chosen_scope()
    points, _ = queries.scope_points(scope)
    if points["prompt_tokens"].isna().all():
        plain.sentence(
            "These are no language models. What vision models cost in quality is on the page"
            " Accuracy."
        )
        st.stop()
    quality = queries_quality.quality_of(
        scope.sweep, "language", {name: scope.fixed[name] for name in ("model", "weights")}
    )
    arms = with_quality_words(points, quality)
    lengths = [f"{length:.0f} tokens" for length in sorted(arms["prompt_tokens"].unique())]
    length = choose_one("Prompt", lengths, "prompt", lengths[-1])
    here = arms[arms["prompt_tokens"] == float(length.partition(" ")[0])]

    words = here["word"].value_counts()
    plain.sentence(
        f"{count(len(here), 'arm')}:"
        f" {', '.join(f'{number} {word}' for word, number in words.items())}.",
        "strong",
    )
    metric = METRICS[scope.metric].label
    plain.sentence(
        f"{metric[:1].upper()}{metric[1:]} at {length} of the prompt, against"
        f" {here['against'].iloc[0]}",
        "muted",
    )
    requested = quality.states["state"].value_counts().to_dict()
    stand = ", ".join(f"{number} {state}" for state, number in requested.items())
    plain.sentence(
        (
            f"Quality of the arms: {stand}."
            if requested
            else "The sweep requests no quality of this model."
        ),
        "muted",
    )
    speed_and_quality(here, quality)
    along_length(scope)
    bits_against_speed(here, quality, scope)
    stacks(here, scope)
    tuned_controls(here, quality, scope)


_show()
