"""Page: how much of the saving that MACs promise arrives as time, and from how many tokens on arms
pay, as a map.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from store.rows.frames import rows_of
from sweeps.analysis.rows import ClaimRow
from sweeps.analysis.waterfall import promise_of
from sweeps.model.identity import canonical
from sweeps.stats.pooling import realised_of, realised_share
from sweeps.text.curves import alike, break_even_cell, earliest
from sweeps.text.reasons import realised_headline, realised_sentence
from webapp import queries
from webapp.charts.panels import flagged
from webapp.charts.points import with_links
from webapp.charts.promise import break_even_map, promise_info, with_colors
from webapp.display import plain, texts
from webapp.display.arm_style import QUALIFIERS, label_arms
from webapp.queries import Scope
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
    " size only, or at both ends; orange: not shown to pay; grey: does nothing; pale: cannot tell"
    " (?), or curves differ. Intervals are rounded outwards."
)
# Columns that may be an axis, in the order in which they are preferred.
MAP_AXES = (
    *("arm", "method", "batch_size", "runtime", "dtype", "model", "threads", "device_name"),
    *("attention", "kv_cache", "new_tokens", "data", "decoding", "weights", "host", "seed"),
    *("exclusive", "inputs", "against"),
)
# Columns that tell the values of an axis apart, where these are not its own.
_COLUMNS = {"against": "baseline_id", "arm": "params"}
# Cells that a map shows; more are counted.
MAX_CELLS = 1200
# Of those how many assistive technology reads.
MAX_DESCRIBED = 20


def axes_of(curves: pd.DataFrame) -> list[str]:
    """The axes along which these rows of `webapp.queries.sweep_break_evens` differ, in the order of
    `MAP_AXES`, arms in any case.

    Where nothing else varies the model is one, so that a map has columns.
    """
    found = [
        name
        for name in MAP_AXES
        if name == "arm" or curves[_COLUMNS.get(name, name)].nunique(dropna=False) > 1
    ]
    return found if set(found) - {"arm", "method"} else [*found, "model"]


def label_curves(curves: pd.DataFrame, axes: Sequence[str]) -> pd.DataFrame:
    """With the labels `arm` and `against`; what an axis states already is left out of the labels of
    arms.
    """
    shown = [name for name in QUALIFIERS if name in axes]
    unqualified = curves.assign(
        params=curves["params"].map(lambda params: _without(params, shown)), **dict.fromkeys(shown)
    )
    labelled, _ = label_arms(unqualified, unqualified)
    return labelled.assign(**{name: curves[name] for name in shown})


def in_scope(curves: pd.DataFrame, fixed: Mapping[str, Any], axes: Sequence[str]) -> pd.DataFrame:
    """The curves with the fixed values of a scope, but for those along an axis and what differs
    with it.
    """
    free = {_COLUMNS["against"] if name == "against" else name for name in axes}
    free |= set(filters.OF_A_DEVICE) if free & {"device_name", "host"} else set()
    kept = pd.Series(data=True, index=curves.index)
    for name, value in fixed.items():
        if name in curves and name not in free:
            missing, own = curves[name].isna(), curves[name].astype(str)
            kept &= missing if pd.isna(value) else own == str(value)
    return curves[kept]


def map_frame(curves: pd.DataFrame, across: str, down: str) -> pd.DataFrame:
    """A row for each cell: `column`, `row`, `label` (of its arm), `sentence`, `reason`, and how it
    is drawn (`with_colors`).

    Of several arms in a cell the one that pays from the fewest tokens on is shown; of several
    curves of one arm what they agree on.
    """
    places: dict[tuple[str, str], dict[str, dict[tuple[str, ...], list[ClaimRow]]]] = {}
    values = [map(filters.value_text, curves[axis]) for axis in (across, down)]
    keys = curves[["curve_id", "environment", "host"]].itertuples(index=False, name=None)
    claims = rows_of(curves, ClaimRow)
    for column, row, arm, key, claim in zip(*values, curves["arm"], keys, claims, strict=True):
        here = places.setdefault((column, row), {}).setdefault(str(arm), {})
        here.setdefault(key, []).append(claim)
    rows, found = [], []
    for (column, row), arms in places.items():
        cells = [alike(list(map(break_even_cell, own.values()))) for own in arms.values()]
        place = earliest(cells)
        name, several = list(arms.items())[place]
        label = name + (f" (of {len(arms)} arms the one that pays first)" if len(arms) > 1 else "")
        why = next(iter(several.values()))[0].why
        rows.append({"column": column, "row": row, "label": label, "reason": why})
        found.append(cells[place])
    return with_colors(pd.DataFrame(rows, columns=["column", "row", "label", "reason"]), found)


def values_of(curves: pd.DataFrame, axis: str) -> list[str]:
    """The values along an axis, numbers by size."""
    values = curves[axis].dropna().unique()
    known = sorted(values) if curves[axis].dtype.kind in "iuf" else sorted(values, key=str)
    return list(map(filters.value_text, [*known, None] if curves[axis].isna().any() else known))


def _without(params: str | None, names: Sequence[str]) -> str | None:
    """Parameters without overrides that an axis states."""
    if not params or not names:
        return params
    value = json.loads(params)
    several = isinstance(value, list)
    steps = [
        step
        if several and "method" in step
        else {key: own for key, own in step.items() if key not in names}
        for step in (value if several else [value])
    ]
    return canonical(steps if several else steps[0])


def share_ends(points: pd.DataFrame) -> list[tuple[float, float]]:
    """The intervals of the realised shares of points, where there are any."""
    found = []
    for row in texts.point_rows(points):
        ends = [realised_share(end, promise_of(row)) for end in (row.speedup_low, row.speedup_high)]
        known = [share for share in ends if share is not None]
        found += [(min(known), max(known))] if len(known) == len(ends) else []
    return found


def _show_promise(scope: Scope) -> None:
    """What arrives in a headline, a chart for each panel, and a sentence for each method and
    runtime.
    """
    points, _ = queries.scope_points(scope)
    right = points[~flagged(points) & ~texts.undecided(points)]
    if right.empty:
        plain.headline("No point yet has enough pairs and no flag")
        return
    several = right["runtime"].nunique() > 1
    shares, roles = {}, {}
    for (method, runtime), own in right.groupby(["method", "runtime"]):
        name = f"{method} {runtime}" if several else str(method)
        shares[name] = realised_of(own["realised_share"], share_ends(own))
        roles[name] = purpose(str(method))
    for_use = {name: share for name, share in shares.items() if roles[name] == "optimisation"}
    plain.headline(answer := realised_headline(for_use or shares))
    for value, own in right.groupby(scope.facet, sort=True) if scope.facet else [("", right)]:
        if scope.facet:
            plain.sentence(f"{filters.column_title(scope.facet)}: {value}")
        worded = texts.with_words(own)
        try:
            chart = promise_info(with_links(worded))
        except ValueError as problem:
            plain.sentence(f"{problem}".capitalize() + ".", "muted")
            continue
        name = f"promise-{value}" if scope.facet else "promise"
        show_chart(chart, name, worded, scope, answer)
    notes = {"optimisation": ""}
    lines = [
        realised_sentence(f"{name}{notes.get(roles[name], f' ({roles[name]})')}", share)
        for name, share in shares.items()
    ]
    plain.sentence("\n".join(lines))
    plain.sentence(READ, "muted")


def _show_map(scope: Scope) -> None:
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
    across, down = _choose_axes(axes_of(found))
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
    chart = break_even_map(
        cells, columns, shown, (filters.column_title(across), filters.column_title(down))
    )
    data = cells.drop(columns=["fill", "ink"])
    described = zip(cells["row"], cells["column"], cells["text"], strict=True)
    answer = "Pays from: " + "; ".join(": ".join(each) for each in list(described)[:MAX_DESCRIBED])
    show_chart(chart, "break-even-map", data, scope, answer)
    if len(shown) < len(rows):
        plain.sentence(
            f"{len(shown)} of {len(rows)} rows are shown; narrow the arms above to see the others.",
            "muted",
        )


def _choose_axes(axes: list[str]) -> tuple[str, str]:
    """Two different axes: columns and rows."""
    names = {filters.column_title(name): name for name in axes}
    others = [title for title, name in names.items() if name not in {"arm", "method"}]
    first = (others or list(names)[-1:])[0]
    with st.container(horizontal=True):
        down = filters.choose_one("Rows", list(names), "down", width=190)
        left = [name for name in names if name != down] or list(names)
        across = filters.choose_one("Columns", left, "across", first, width=190)
    return names[across], names[down]


def _show() -> None:
    scope = filters.chosen_scope()
    _show_promise(scope)
    _show_map(scope)


if __name__ == "__main__":
    _show()
