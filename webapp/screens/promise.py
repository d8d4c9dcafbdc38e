"""Page: how much of the saving that MACs promise arrives as time, and from how many tokens on arms
pay, as a map.
"""

from math import inf

import streamlit as st

from sweeps.stats.pooling import realised_of
from sweeps.text.reasons import realised_sentence
from webapp import queries
from webapp.blocks.map_cells import (
    MAP_AXES,
    MAX_CELLS,
    axes_of,
    in_scope,
    label_curves,
    map_frame,
    values_of,
)
from webapp.charts.break_even_map import break_even_map
from webapp.charts.curves import flagged
from webapp.charts.promise import promise_chart
from webapp.display import links, plain, texts
from webapp.display.scope import Scope
from webapp.widgets import filters
from webapp.widgets.chart_block import show_chart
from workers.methods import purpose

READ = (
    "Solid: time follows the MACs. Dashed: half of the saving arrives, or none of it. A share"
    " counts logarithms, so that half of 2× is 1.41×; points whose promise is within 2 % of nothing"
    " have none, and points that a flag marks as wrong, or that have too few pairs, are left out."
)
LEGEND = (
    "From how many tokens on an arm pays. Blue: it does, the darker the earlier; purple: up to a"
    " size only, or at both ends; orange: gains 5 % at most; grey: does nothing; pale: cannot tell"
    " (?), or curves differ. Intervals are rounded outwards."
)


def show_promise(scope: Scope) -> None:
    """A sentence for each method and runtime, and a chart for each panel."""
    points, _ = queries.scope_points(scope)
    right = points[~flagged(points) & ~texts.undecided(points)]
    st.subheader("How much of the promise arrives", anchor=False)
    if right.empty:
        plain.sentence(
            "No point to draw: each has too few pairs, or a flag that marks it as wrong."
        )
        return
    several = right["runtime"].nunique() > 1
    purposes = {method: purpose(method) for method in right["method"].unique()}
    titles = {
        method: method if own == "optimisation" else f"{method} ({own})"
        for method, own in purposes.items()
    }
    names = right["method"].map(titles) + (", " + right["runtime"] if several else "")
    found = []
    for (method, name), own in right.groupby([right["method"], names]):
        share = realised_of(own["realised_share"])
        found.append(
            (
                purposes[method] != "optimisation",
                -share.median if share else inf,
                realised_sentence(str(name), share),
            )
        )
    plain.sentence("\n".join(line for *_, line in sorted(found)))
    for value, own in right.groupby(scope.facet, sort=True) if scope.facet else [("", right)]:
        if scope.facet:
            plain.sentence(f"{MAP_AXES[scope.facet]}: {value}")
        places = zip(own["comparison_id"], own["environment"], own["host"], strict=True)
        drawn = texts.with_words(own).assign(href=[links.point_link(*place) for place in places])
        try:
            chart = promise_chart(drawn)
        except ValueError as problem:
            plain.sentence(f"{problem}".capitalize() + ".", "muted")
            continue
        show_chart(
            chart,
            name=f"promise-{value}" if scope.facet else "promise",
            data=drawn.drop(columns="href"),
            scope_or_sweep=scope,
        )
    plain.sentence(READ, "muted")


def show_map(scope: Scope) -> None:
    """The break-even map along two axes of those that vary in the sweep; what else varies is fixed
    by the filters above.
    """
    st.subheader("Break-even map", anchor=False)
    found = queries.sweep_break_evens(scope.sweep, scope.metric)
    for column, values in scope.chosen.items():
        found = found[found[column].astype(str).isin(values)] if values else found
    if found.empty:
        plain.sentence(
            "No arm has a break-even along the tokens: each needs several sizes.", "muted"
        )
        return
    axes = axes_of(found)
    across, down = choose_axes(axes)
    curves = label_curves(in_scope(found, scope.fixed, (across, down)), (across, down))
    if curves.empty:
        plain.sentence(
            "No curve has the fixed values above; choose others, or other axes.", "muted"
        )
        return
    plain.sentence(LEGEND, "muted")
    columns, rows = values_of(curves, across), values_of(curves, down)
    shown = rows[: max(1, MAX_CELLS // max(1, len(columns)))]
    cells = map_frame(curves, across, down)
    cells = cells[cells["row"].isin(shown)]
    show_chart(
        break_even_map(cells, columns, shown, (MAP_AXES[across], MAP_AXES[down])),
        name="break-even-map",
        data=cells.drop(columns=["fill", "ink"]),
        scope_or_sweep=scope,
    )
    if len(shown) < len(rows):
        plain.sentence(
            f"{len(shown)} of {len(rows)} rows are shown; narrow the arms above to see the others.",
            "muted",
        )


def choose_axes(axes: list[str]) -> tuple[str, str]:
    """Two different axes: columns and rows."""
    names = {MAP_AXES[name]: name for name in axes}
    first = next(
        (MAP_AXES[name] for name in axes if name not in {"arm", "method"}), MAP_AXES[axes[-1]]
    )
    with st.container(horizontal=True):
        down = st.selectbox("Rows", list(names), key="down", bind="query-params", width=190)
        others = [name for name in names if name != down] or list(names)
        default = others.index(first) if first in others else 0
        across = st.selectbox(
            "Columns", others, default, key="across", bind="query-params", width=190
        )
    return names[across], names[down]


_scope = filters.chosen_scope()
show_promise(_scope)
show_map(_scope)
