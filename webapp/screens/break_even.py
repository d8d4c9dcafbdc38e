"""Break-even: from where on each arm pays, in words, as a chart and as a table."""

from collections.abc import Mapping, Sequence
from functools import partial
from html import escape

import altair as alt
import pandas as pd
import streamlit as st

from store.host_labels import Place, places
from store.quality_join import judged, with_controls, with_states
from sweeps.caveats import cautions
from sweeps.labels import Conclusion
from webapp import arm_style, filters, plot, queries, texts
from webapp.axis_curves import SAVED, along
from webapp.charts import curves
from webapp.charts.scales import Axis

PANELS = 12  # more are not drawn at once

SCROLLS = "<style>[data-testid=stVegaLiteChart] {max-width: 100%; overflow-x: auto}</style>"
"""A chart that is wider than the window scrolls by itself, so that the page need not."""

SIZES = {"image_size": "px", "prompt_tokens": "tokens of the prompt", "new_tokens": "new tokens"}
PICTURES: dict[plot.Format, str] = {"png": "image/png", "svg": "image/svg+xml", "html": "text/html"}

TABLE = {
    "arm": st.column_config.TextColumn("Arm", width="medium"),
    "against": st.column_config.TextColumn("Against"),
    "model": st.column_config.TextColumn("Model"),
    "host": st.column_config.TextColumn("Host"),
    "batch_size": st.column_config.NumberColumn("Batch", format="%d"),
    "image_size": st.column_config.NumberColumn("Image, px", format="%d"),
    "prompt_tokens": st.column_config.NumberColumn("Prompt tokens", format="%d"),
    "tokens": st.column_config.NumberColumn("Tokens", format="%d"),
    "new_tokens": st.column_config.NumberColumn("New tokens", format="%d"),
    "kv_cache": st.column_config.TextColumn("KV cache"),
    "gmacs_saved": st.column_config.NumberColumn("GMACs saved", format="percent"),
    "gmacs_baseline": st.column_config.NumberColumn("GMACs, baseline", format="%.3f", help="Papers say GFLOPs"),
    "baseline_ms": st.column_config.NumberColumn("Baseline, ms", format="%.2f"),
    "method_ms": st.column_config.NumberColumn("Arm, ms", format="%.2f"),
    "speedup": st.column_config.NumberColumn("Speed-up"),
    "interval": st.column_config.TextColumn("95 % interval"),
    "verdict": st.column_config.TextColumn("Verdict"),
    "pairs": st.column_config.NumberColumn("Pairs", format="%d"),
    "flags": st.column_config.TextColumn("Flags"),
}
SAME = ("model", "host", "batch_size", "kv_cache", "against", "flags")
"""Columns of the table that are left out where they say the same everywhere."""
COSTS = {
    "arm": st.column_config.TextColumn("Arm", width="medium"),
    "against": st.column_config.TextColumn("Against"),
    "model": st.column_config.TextColumn("Model"),
    "prompt_tokens": st.column_config.NumberColumn("Prompt tokens", format="%d"),
    "speedup": st.column_config.NumberColumn("Speed-up"),
    "bits_per_byte": st.column_config.NumberColumn("Bits per byte", format="%.3f", help="On held-out text; fewer are better"),
    "change": st.column_config.TextColumn("Change", help="In bits per byte, with its 95 % interval; below zero is better"),
    "kl": st.column_config.NumberColumn("KL, nats", format="%.4f", help="Of the next token's distribution from the baseline's"),
    "top1_agreement": st.column_config.NumberColumn("Same top-1", format="%.1f %%", help="Share of tokens on which both agree"),
    "judgement": st.column_config.TextColumn("Quality"),
    "control_change": st.column_config.TextColumn(
        "Against its control", help="Bits per byte against the same tuning without what the method adds, on the same text"
    ),
}
"""KL and agreement need both to have the same tokens; they are empty for an arm with a vocabulary of its own."""


def headlines(panel: curves.Panel, axis: Axis, styles: dict[str, arm_style.Style], known: Mapping[Place, str]) -> None:
    """One sentence for each arm of a panel; what the analysis says in full appears at a touch."""
    counted = panel.points[~curves.flagged(panel.points)]
    x = (counted if len(counted) else panel.points).groupby("arm")[curves.X_COLUMN[axis]].agg(["min", "max"])
    lines = []
    for name in (name for name in styles if name in x.index):
        found = panel.break_evens[panel.break_evens["arm"] == name]
        if panel.single(axis):
            said = texts.single(panel.points[panel.points["arm"] == name].to_dict("records")[0])
        else:
            said = texts.headline(found, axis, *map(float, x.loc[name]), spoken=panel.spoken)
        why = "" if found.empty else str(found["why"].iloc[0])
        dot = f'<span style="color:{styles[name].color}">●</span>'
        lines.append(f'<div title="{escape(why)}">{dot}&ensp;<b>{escape(name)}</b> {escape(said)}</div>')
    about = panel.about
    fixed = {name: panel.points[name].iloc[0] for name in SIZES if panel.points[name].nunique() == 1}
    size = "".join(f", {value:.0f} {SIZES[name]}" for name, value in fixed.items())
    place = known[about["environment"], about["host"]]
    where = f"**{about['device_name']}**{place and f' ({place})'}, {about['model']}, batch {about['batch_size']}{size}"
    st.markdown(f"On {where}, against **{about['against']}**")
    st.html(f'<div style="line-height:1.8">{"".join(lines)}</div>')


def notes(panels: list[curves.Panel], axis: Axis) -> None:
    """What the answers above do not say."""
    said = []
    if any(panel.single(axis) for panel in panels):
        size = "length of the prompt" if panels[0].spoken else "size"
        said.append(f"One {size} was measured; a break-even needs several.")
    if panels[0].spoken:
        known = queries.parameters()
        models = {(str(panel.about["model"]), str(panel.about["weights"])) for panel in panels}
        said += [line for model, weights in sorted(models) for line in cautions(model, weights, known.get(model))]
    if said:
        st.caption("  \n".join(said))


def pictures(chart: alt.VConcatChart, name: str) -> None:
    """The chart as files, drawn when asked for."""
    with st.container(horizontal=True):
        for form, mime in PICTURES.items():
            draw = partial(plot.rendered, chart, form)
            st.download_button(form.upper(), draw, f"{name}.{form}", mime, icon=":material/download:", on_click="ignore")


def table(points: pd.DataFrame) -> None:
    """The points as numbers; a column that says nothing, or the same everywhere, is left out."""
    found = [texts.speed(point) for point in points.to_dict("records")]
    shown = points.assign(interval=[each.interval for each in found], verdict=[each.word for each in found])
    known = [name for name in TABLE if name in shown.columns and (name == "flags" or shown[name].notna().any())]
    known = [name for name in known if name != "tokens" or "prompt_tokens" not in known]
    columns = [name for name in known if name not in SAME or shown[name].nunique() > 1]
    speed = st.column_config.NumberColumn("Speed-up", format=ratios(found))
    st.dataframe(shown[columns], column_config=TABLE | {"speedup": speed}, hide_index=True, placeholder="–")


def ratios(found: Sequence[Conclusion]) -> str:
    """The number format of speed-ups, with as many decimals as the most exact of their intervals."""
    return f"%.{max([texts.SHOWN.digits, *(each.digits for each in found)])}f×"


def costs(points: pd.DataFrame, sweep: str, metric: str) -> None:
    """Speed-up and change in quality of each arm, where quality was asked; a state where it has no numbers."""
    found = with_states(points, queries.quality_states(sweep))
    found = judged(found, queries.qualities(sweep).rename(columns={"verdict": "judgement"}))
    if (found["state"] == "not asked").all():
        return
    st.subheader("Speed and quality", anchor=False)
    characters = found["characters"].max()
    text = "" if pd.isna(characters) else f" Bits per byte on {characters:,.0f} characters held out."
    st.caption(f"Speed-up: {texts.METRIC[metric]}.{text}")
    found = with_controls(found, queries.controls(sweep))
    rows = [(texts.quality(row), texts.against_control(row)) for row in found.to_dict("records")]
    shown = found.assign(
        change=[quality.numbers for quality, _ in rows],
        judgement=[quality.word for quality, _ in rows],
        control_change=pd.Series([control for _, control in rows], index=found.index).replace("", None),
    ).sort_values(["against", "arm"])
    known = [name for name in COSTS if name != "control_change" or shown[name].notna().any()]
    columns = [name for name in known if name not in (*SAME, "prompt_tokens") or shown[name].nunique() > 1]
    concluded = [texts.speed(point) for point in points.to_dict("records")]
    speed = st.column_config.NumberColumn("Speed-up", format=ratios(concluded))
    st.dataframe(shown[columns], column_config=COSTS | {"speedup": speed}, hide_index=True, placeholder="–")


sweep = filters.chosen_sweep()
points, break_evens = arm_style.named(queries.points(sweep), queries.break_evens(sweep))
if points.empty:
    st.info(f"Sweep **{sweep}** has no measurement yet. The Sweeps page shows how far it is.", icon=":material/hourglass_empty:")
    st.stop()
metric = filters.choose_metric(points)
points, break_evens = points[points["metric"] == metric], break_evens[break_evens["metric"] == metric]
saved: tuple[Axis, ...] = ("gmacs_saved",) if (break_evens["axis"] == SAVED).any() else ()
styles = arm_style.styles(points)
sizes = [axis for axis, column in curves.X_COLUMN.items() if axis != SAVED and points[column].nunique() > 1]
chosen, axis = filters.choose(points, [*sizes, *saved] if sizes else [*saved, "tokens"])
points, break_evens = along(chosen, break_evens, axis)
if points.empty:
    st.info("No point fits all of these choices; take one of them back.", icon=":material/filter_alt_off:")
    st.stop()
styles = arm_style.styles(points) if axis == SAVED else styles
distrusted = curves.flagged(points)

panels = list(curves.panels(points, break_evens, axis))
for panel in panels[:PANELS]:
    headlines(panel, axis, styles, places(points))
notes(panels, axis)
if len(panels) > PANELS:
    st.info(f"Shown are {PANELS} of {len(panels)} panels. Choose above to see the others.", icon=":material/filter_alt:")
show_flagged = filters.choose_flagged(int(distrusted.sum()))
drawn = pd.concat([panel.points for panel in panels[:PANELS]])
try:
    chart = curves.speedup_chart(drawn, break_evens, axis, show_flagged=show_flagged, styles=styles)
except ValueError as problem:
    st.info(f"{problem}".capitalize(), icon=":material/flag:")
else:
    st.html(SCROLLS)
    st.altair_chart(chart, width="content", key="chart")
    pictures(chart, f"{sweep}-{axis}" if metric == "latency" else f"{sweep}-{metric}-{axis}")

if any(panel.spoken for panel in panels):
    hidden = curves.flagged(chosen) & (not show_flagged)
    costs(chosen.assign(speedup=chosen["speedup"].mask(hidden)), sweep, metric)

listed = points if show_flagged else points[~distrusted]
if len(listed):
    st.subheader("Points", anchor=False)
    table(listed)
st.download_button("CSV", listed.to_csv(index=False), f"{sweep}.csv", "text/csv", icon=":material/download:", on_click="ignore")
