"""Page: from where on each arm pays, in words, as a chart and as a table."""

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from html import escape

import altair as alt
import pandas as pd
import streamlit as st

from store.host_labels import label_hosts
from store.quality_join import conclude_quality, join_quality, quality_metrics, quality_rows, with_controls, with_states
from sweeps.caveats import cautions, load_caution
from sweeps.curve_labels import describe_break_even
from sweeps.kinds import KindSpec, Payload
from sweeps.metrics import METRICS, MetricSpec
from webapp import filters, plot, queries, texts
from webapp.arm_style import ArmStyle, arm_styles
from webapp.axis_curves import SIZES, Axis, curves_along, size_of
from webapp.charts import curves
from webapp.charts.published import published_points
from webapp.columns import column_of

MAX_PANELS = 12  # drawn at once

SCROLLS = "<style>[data-testid=stVegaLiteChart] {max-width: 100%; overflow-x: auto}</style>"
"""A chart that is wider than the window scrolls by itself, so that the page does not."""

UNITS = {column: size.unit for column, size in SIZES.items()} | {"new_tokens": "new tokens"}
FILE_TYPES: dict[plot.FileFormat, str] = {"png": "image/png", "svg": "image/svg+xml", "html": "text/html"}

POINT_COLUMNS = (
    *("arm", "against", "model", "host", "batch_size", "image_size", "prompt_tokens", "tokens", "new_tokens", "kv_cache"),
    *("gmacs_saved", "gmacs_baseline", "baseline_ms", "arm_ms", "speedup", "interval", "word", "pairs", "flags"),
)
ARM_COLUMNS = ("arm", "against", "model", "image_size", "prompt_tokens", "speedup")
ITEMS: Mapping[Payload, str] = {"predictions": "images", "text_scores": "windows of text"}
"""What a kind of job that is not timed reads."""
LEFT_OUT_IF_EQUAL = ("model", "host", "batch_size", "kv_cache", "against", "flags")
"""Columns of the tables that are left out where all values are equal."""


def arm_sentences(panel: curves.Panel, axis: Axis, styles: Mapping[str, ArmStyle], hosts: Mapping[tuple[str, str], str]) -> None:
    """One sentence for each arm of a panel; the full reason of the analysis is the hover text."""
    counted = panel.points[~curves.flagged(panel.points)]
    x = (counted if len(counted) else panel.points).groupby("arm")[curves.X_COLUMN[axis]].agg(["min", "max"])
    lines = []
    for name in (name for name in styles if name in x.index):
        found = list(panel.break_evens[panel.break_evens["arm"] == name].itertuples())
        if panel.single(axis):
            sentence = texts.single_point(panel.points[panel.points["arm"] == name].to_dict("records")[0])
        else:
            low, high = map(float, x.loc[name])
            sentence = describe_break_even(found, size_of(panel.points).token_unit, (low, high))
        why = str(found[0].why) if found else ""
        dot = f'<span style="color:{styles[name].color}">●</span>'
        lines.append(f'<div title="{escape(why)}">{dot}&ensp;<b>{escape(name, quote=False)}</b> {escape(sentence)}</div>')
    about = panel.about
    sizes = [f"{panel.points[name].iloc[0]:.0f} {unit}" for name, unit in UNITS.items() if panel.points[name].nunique() == 1]
    host = hosts[about["environment"], about["host"]]
    device = f"**{about['device_name']}**" + (host and f" ({host})")
    where = ", ".join([device, about["model"], f"batch {about['batch_size']}", *sizes])
    st.markdown(f"On {where}, against **{about['against']}**")
    st.html(f'<div style="line-height:1.8">{"".join(lines)}</div>')


def notes(panels: Sequence[curves.Panel], sweep: str, axis: Axis) -> None:
    """Limits of the answers above."""
    lines = []
    if any(panel.single(axis) for panel in panels):
        lines.append(f"One {size_of(panels[0].points).one_size} was measured; a break-even needs several.")
    parameters = queries.parameters(sweep)
    models = {(str(panel.about["model"]), str(panel.about["weights"])) for panel in panels}
    lines += [
        line for model, weights in sorted(models) if model in parameters for line in cautions(model, weights, parameters[model])
    ]
    lines += load_caution(flags for panel in panels for flags in panel.points["flags"])
    if lines:
        st.caption("  \n".join(lines))


def download_buttons(chart: alt.VConcatChart, name: str) -> None:
    """The chart as files, drawn at a click."""
    with st.container(horizontal=True):
        for form, mime in FILE_TYPES.items():
            draw = partial(plot.render_chart, chart, form)
            st.download_button(form.upper(), draw, f"{name}.{form}", mime, icon=":material/download:", on_click="ignore")


def point_table(points: pd.DataFrame) -> None:
    """The points as numbers, without empty columns."""
    shown = texts.with_words(points)
    known = [name for name in POINT_COLUMNS if name in shown.columns and (name == "flags" or shown[name].notna().any())]
    show_table(shown, [name for name in known if name != "tokens" or "prompt_tokens" not in known])


def show_table(shown: pd.DataFrame, names: Sequence[str], may_be_equal: Collection[str] = ()) -> None:
    """These columns, but for those that are left out where all values are equal; speed-ups as exact as their intervals."""
    formats = {"speedup": f"%.{max(texts.SHOWN.digits, *shown['digits'])}f×"}
    chosen = [name for name in names if name not in (*LEFT_OUT_IF_EQUAL, *may_be_equal) or shown[name].nunique() > 1]
    config = {}
    for name in chosen:
        column = column_of(name)
        form = formats.get(name, column.table_format)
        number = st.column_config.NumberColumn(column.title, format=form, help=column.help)
        config[name] = number if form else st.column_config.TextColumn(column.title, help=column.help)
    st.dataframe(shown[chosen], column_config=config, hide_index=True, placeholder="–")


def quality_table(points: pd.DataFrame, sweep: str, metric: str, kind: KindSpec, spec: MetricSpec) -> None:
    """Speed-up and change of a metric of each arm, if the sweep requests it; a state where there are no numbers."""
    found = with_states(points, queries.comparison_states(sweep, kind.name))
    if (found["state"] == "not requested").all():
        return
    effects = queries.view_rows(sweep, "effect")
    rows = quality_rows(effects[effects["kind"] == kind.name], spec.name)
    found = with_controls(join_quality(found, rows), queries.controls(sweep))
    st.subheader(f"Speed and {kind.name}", anchor=False)
    read = "" if found["n"].isna().all() else f" {spec.label.capitalize()} of {found['n'].max():,.0f} {ITEMS[kind.payload]}."
    st.caption(f"Speed-up: {METRICS[metric].label}.{read}")
    conclusions = [conclude_quality(row, spec) for row in found.itertuples()]
    shown = (
        texts.with_words(found)
        .assign(
            change=[conclusion.numbers for conclusion in conclusions],
            quality_verdict=[conclusion.word for conclusion in conclusions],
            control_change=pd.Series(map(texts.against_control, found.to_dict("records")), index=found.index).replace("", None),
        )
        .sort_values(["against", "arm"])
    )
    beside = [name for name, other in METRICS.items() if name in rows.columns and other.read == "item" and other.better]
    columns = [*ARM_COLUMNS, *dict.fromkeys((spec.name, "change", *beside)), "quality_verdict", "control_change"]
    known = [name for name in columns if name in shown and (name == "speedup" or shown[name].notna().any())]
    show_table(shown, known, SIZES)


_sweep = filters.chosen_sweep()
points, break_evens = queries.labelled_speedups(_sweep)
if points.empty:
    st.info(f"Sweep **{_sweep}** has no measurement yet. Its progress is on the page Sweeps.", icon=":material/hourglass_empty:")
    st.stop()
chosen_metric = filters.choose_metric(points)
points, break_evens = points[points["metric"] == chosen_metric], break_evens[break_evens["metric"] == chosen_metric]
saved: tuple[Axis, ...] = ("gmacs_saved",) if (break_evens["axis"] == "gmacs_saved").any() else ()
styles = arm_styles(points)
sizes = [axis for axis, column in curves.X_COLUMN.items() if axis != "gmacs_saved" and points[column].nunique() > 1]
chosen, axis = filters.choose_points(points, [*sizes, *saved] if sizes else [*saved, "tokens"])
points, break_evens = curves_along(chosen, break_evens, axis)
if points.empty:
    st.info("No point fits all of these choices; remove one of them.", icon=":material/filter_alt_off:")
    st.stop()
styles = arm_styles(points) if axis == "gmacs_saved" else styles
distrusted = curves.flagged(points)

drawn_panels = list(curves.panels(points, break_evens, axis))
for panel in drawn_panels[:MAX_PANELS]:
    arm_sentences(panel, axis, styles, label_hosts(points))
notes(drawn_panels, _sweep, axis)
if len(drawn_panels) > MAX_PANELS:
    st.info(f"{MAX_PANELS} of {len(drawn_panels)} panels are shown. Choose above to see the others.", icon=":material/filter_alt:")
show_flagged = filters.choose_flagged(int(distrusted.sum()))
drawn = pd.concat([panel.points for panel in drawn_panels[:MAX_PANELS]])
published = queries.references()
show_references = filters.choose_references(len(published_points(published, drawn, axis)))
try:
    beside = published if show_references else None
    chart = curves.speedup_chart(drawn, break_evens, axis, show_flagged=show_flagged, references=beside, styles=styles)
except ValueError as problem:
    st.info(f"{problem}".capitalize(), icon=":material/flag:")
else:
    st.html(SCROLLS)
    st.altair_chart(chart, width="content", key="chart")
    download_buttons(chart, f"{_sweep}-{chosen_metric}-{axis}")

hidden = curves.flagged(chosen) & (not show_flagged)
for kind, spec in quality_metrics(chosen["kind"].iloc[0]):
    quality_table(chosen.assign(speedup=chosen["speedup"].mask(hidden)), _sweep, chosen_metric, kind, spec)

listed = points if show_flagged else points[~distrusted]
if len(listed):
    st.subheader("Points", anchor=False)
    point_table(listed)
st.download_button("CSV", listed.to_csv(index=False), f"{_sweep}.csv", "text/csv", icon=":material/download:", on_click="ignore")
