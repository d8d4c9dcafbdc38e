"""Break-even: from where on each arm pays, in words, as a chart and as a table."""

from functools import partial
from html import escape

import altair as alt
import pandas as pd
import streamlit as st

from webapp import arms, charts, filters, frames, plot, wording
from webapp.along import SAVED, along
from webapp.scales import Axis

PANELS = 12  # more are not drawn at once

SIZES = {"image_size": "px", "prompt_tokens": "tokens of the prompt", "new_tokens": "new tokens"}
PICTURES: dict[plot.Format, str] = {"png": "image/png", "svg": "image/svg+xml", "html": "text/html"}

TABLE = {
    "arm": st.column_config.TextColumn("Arm", width="medium"),
    "model": st.column_config.TextColumn("Model"),
    "batch_size": st.column_config.NumberColumn("Batch", format="%d"),
    "image_size": st.column_config.NumberColumn("Image, px", format="%d"),
    "tokens": st.column_config.NumberColumn("Tokens", format="%d"),
    "new_tokens": st.column_config.NumberColumn("New tokens", format="%d"),
    "kv_cache": st.column_config.TextColumn("KV cache"),
    "gmacs_saved": st.column_config.NumberColumn("GMACs saved", format="percent"),
    "gmacs_baseline": st.column_config.NumberColumn("GMACs", format="%.3f", help="Of the unmodified model; papers say GFLOPs"),
    "baseline_ms": st.column_config.NumberColumn("Baseline, ms", format="%.2f"),
    "method_ms": st.column_config.NumberColumn("Arm, ms", format="%.2f"),
    "speedup": st.column_config.NumberColumn("Speed-up", format="%.2f×"),
    "interval": st.column_config.TextColumn("95 % interval"),
    "verdict": st.column_config.TextColumn("Verdict"),
    "pairs": st.column_config.NumberColumn("Pairs", format="%d"),
    "flags": st.column_config.TextColumn("Flags"),
}


def headlines(panel: charts.Panel, axis: Axis, styles: dict[str, arms.Style]) -> None:
    """One sentence for each arm of a panel; what the analysis says in full appears at a touch."""
    counted = panel.points[~charts.flagged(panel.points)]
    x = (counted if len(counted) else panel.points).groupby("arm")[charts.X_COLUMN[axis]].agg(["min", "max"])
    lines = []
    for name in (name for name in styles if name in x.index):
        found = panel.break_evens[panel.break_evens["arm"] == name]
        said = wording.headline(found, axis, *map(float, x.loc[name]))
        why = "" if found.empty else str(found["why"].iloc[0])
        dot = f'<span style="color:{styles[name].color}">●</span>'
        lines.append(f'<div title="{escape(why)}">{dot}&ensp;<b>{escape(name)}</b> {escape(said)}</div>')
    about = panel.about
    size = "".join(f", {about[name]:.0f} {unit}" for name, unit in SIZES.items() if not pd.isna(about.get(name)))
    st.markdown(f"On **{about['device_name']}**, {about['model']}, batch {about['batch_size']}{size}")
    st.html(f'<div style="line-height:1.8">{"".join(lines)}</div>')


def pictures(chart: alt.VConcatChart, name: str) -> None:
    """The chart as files, drawn when asked for."""
    with st.container(horizontal=True):
        for form, mime in PICTURES.items():
            draw = partial(plot.rendered, chart, form)
            st.download_button(form.upper(), draw, f"{name}.{form}", mime, icon=":material/download:", on_click="ignore")


def table(points: pd.DataFrame) -> None:
    """The points as numbers; a column that says nothing, or the same everywhere, is left out."""
    intervals = [wording.interval(low, high) for low, high in zip(points["speedup_low"], points["speedup_high"], strict=True)]
    shown = points.assign(interval=intervals)
    known = [name for name in TABLE if name in shown.columns and (name == "flags" or shown[name].notna().any())]
    columns = [name for name in known if name not in ("model", "batch_size", "kv_cache", "flags") or shown[name].nunique() > 1]
    st.dataframe(shown[columns], column_config=TABLE, hide_index=True)


sweep = filters.chosen_sweep()
points, break_evens = arms.named(frames.points(sweep), frames.break_evens(sweep))
if points.empty:
    st.info(f"Sweep **{sweep}** has no measurement yet. The Sweeps page shows how far it is.", icon=":material/hourglass_empty:")
    st.stop()
metric = filters.choose_metric(points)
points, break_evens = points[points["metric"] == metric], break_evens[break_evens["metric"] == metric]
saved = bool((break_evens["axis"] == SAVED).any())
styles = arms.styles(points)
points, axis = filters.choose(points, ("tokens", "gmacs", "gmacs_saved") if saved else ("tokens", "gmacs"))
points, break_evens = along(points, break_evens, axis)
if points.empty:
    st.info("No point fits all of these choices; take one of them back.", icon=":material/filter_alt_off:")
    st.stop()
styles = arms.styles(points) if axis == SAVED else styles
distrusted = charts.flagged(points)

panels = list(charts.panels(points, break_evens, axis))
for panel in panels[:PANELS]:
    headlines(panel, axis, styles)
if len(panels) > PANELS:
    st.info(f"Shown are {PANELS} of {len(panels)} panels. Choose above to see the others.", icon=":material/filter_alt:")
show_flagged = filters.choose_flagged(int(distrusted.sum()))
drawn = pd.concat([panel.points for panel in panels[:PANELS]])
try:
    chart = charts.speedup_chart(drawn, break_evens, axis, show_flagged=show_flagged, styles=styles)
except ValueError as problem:
    st.info(f"{problem}".capitalize(), icon=":material/flag:")
else:
    st.altair_chart(chart, width="content", key="chart")
    pictures(chart, f"{sweep}-{axis}" if metric == "latency" else f"{sweep}-{metric}-{axis}")

st.subheader("Points", anchor=False)
listed = points if show_flagged else points[~distrusted]
table(listed)
st.download_button("CSV", listed.to_csv(index=False), f"{sweep}.csv", "text/csv", icon=":material/download:", on_click="ignore")
