"""Page: the answer of a sweep, in words, as a chart and as a table."""

from collections.abc import Mapping, Sequence
from html import escape

import pandas as pd
import streamlit as st

from store.host_labels import label_hosts
from store.quality_join import quality_metrics
from sweeps.caveats import cautions, load_caution
from sweeps.curve_labels import describe_break_even
from webapp import filters, plain, queries, texts
from webapp.arm_style import ArmStyle, arm_styles
from webapp.axis_curves import SIZES, Axis, curves_along, size_of
from webapp.chart_block import show_chart
from webapp.charts import curves
from webapp.charts.published import published_points
from webapp.tables import point_table, quality_table

SCROLLS = "<style>[data-testid=stVegaLiteChart] {max-width: 100%; overflow-x: auto}</style>"
"""A chart that is wider than the window scrolls by itself, so that the page does not."""
UNITS = {column: size.unit for column, size in SIZES.items()} | {"new_tokens": "new tokens"}


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
    device = str(about["device_name"]) + (host and f" ({host})")
    where = ", ".join([device, about["model"], f"batch {about['batch_size']}", *sizes])
    plain.sentence(f"On {where}, against {about['against']}")
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
        plain.sentence("\n".join(lines), "muted")


_scope = filters.chosen_scope()
points, break_evens = queries.scope_points(_scope)
saved: tuple[Axis, ...] = ("gmacs_saved",) if (break_evens["axis"] == "gmacs_saved").any() else ()
styles = arm_styles(points)
sizes = [axis for axis, column in curves.X_COLUMN.items() if axis != "gmacs_saved" and points[column].nunique() > 1]
axis = filters.choose_axis([*sizes, *saved] if sizes else [*saved, "tokens"])
chosen = points
points, break_evens = curves_along(chosen, break_evens, axis)
if points.empty:
    st.info("No point lies on a curve along this axis.", icon=":material/filter_alt_off:")
    st.stop()
styles = arm_styles(points) if axis == "gmacs_saved" else styles
distrusted = curves.flagged(points)
drawn_panels = list(curves.curve_panels(points, break_evens, axis))
for panel in drawn_panels:
    arm_sentences(panel, axis, styles, label_hosts(points))
notes(drawn_panels, _scope.sweep, axis)
show_flagged = filters.choose_flagged(int(distrusted.sum()))
drawn = pd.concat([panel.points for panel in drawn_panels])
published = queries.references()
show_references = filters.choose_references(len(published_points(published, drawn, axis)))
listed = points if show_flagged else points[~distrusted]
try:
    beside = published if show_references else None
    chart = curves.speedup_chart(drawn, break_evens, axis, show_flagged=show_flagged, references=beside, styles=styles, links=True)
except ValueError as problem:
    st.info(f"{problem}".capitalize(), icon=":material/flag:")
else:
    st.html(SCROLLS)
    show_chart(chart, name=f"speedup-{axis}", data=listed, scope_or_sweep=_scope)
hidden = curves.flagged(chosen) & (not show_flagged)
for kind, spec in quality_metrics(chosen["kind"].iloc[0]):
    quality_table(chosen.assign(speedup=chosen["speedup"].mask(hidden)), _scope.sweep, _scope.metric, kind, spec)
if len(listed):
    st.subheader("Points", anchor=False)
    point_table(listed)
