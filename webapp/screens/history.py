"""Page: how the speed-ups of a sweep moved over days, revisions and versions, and what changed
there.
"""

import streamlit as st

from store.errors import StoreError
from store.read.evidence.history import sweep_trends
from sweeps.stats.trends import Trend
from sweeps.text.compared import (
    change_text,
    changes_text,
    ends_text,
    moved_text,
    possible_text,
    trends_text,
)
from webapp import queries
from webapp.charts.compare import trend_info
from webapp.charts.panels import ALL_COLOURED
from webapp.charts.points import draw_points
from webapp.display import plain, texts
from webapp.display.arm_style import arm_styles
from webapp.display.axis_curves import size_of
from webapp.display.links import point_link
from webapp.queries import Scope, kept
from webapp.widgets import address, filters
from webapp.widgets.chart_block import draw_chart, offer_files
from webapp.widgets.tables import grid_html

HEADS = ("arm", "size", "measurements", "first", "last", "newest change")

# See `store.read.evidence.history.sweep_trends`.
read_trends = kept(sweep_trends)


def scope_trends(scope: Scope) -> list[tuple[str, texts.PointRow, Trend]]:
    """The size in words, the newest answer and the trend of each comparison in the scope: falls
    first, then gains, then those that did not move.
    """
    points, _ = queries.scope_points(scope)
    unit = size_of(points).token_unit
    known = {
        (each.question_id, each.host, each.device_name): each
        for each in read_trends(scope.sweep, scope.metric, frozenset(points["question_id"]))
    }
    found = []
    for row in texts.point_rows(points.sort_values("tokens", ascending=False, kind="stable")):
        if trend := known.pop((row.question_id, row.host, row.device_name), None):
            panel = f", {getattr(row, scope.facet)}" if scope.facet else ""
            found.append((f"{row.tokens or 0:,.0f} {unit}{panel}", row, trend))
    return sorted(
        found, key=lambda one: [not one[2].changes, *(each.ratio for each in one[2].changes[-1:])]
    )


def _show() -> None:
    scope = filters.chosen_scope()
    try:
        found = scope_trends(scope)
    except StoreError as problem:
        plain.sentence(f"{problem}.")
        return
    if not found:
        plain.sentence("Nothing here has an interval.")
        return
    size, first, trend = found[0]
    summary = answer = trends_text(scope.sweep, [each for _, _, each in found])
    for change in trend.changes[-1:]:
        plain.headline(answer := f"{first.arm}, {size}: {moved_text(change)}")
        plain.sentence(f"Changed: {changes_text(change.what)}")
    for size, row, possible in ((one, row, each.possible) for one, row, each in found):
        if possible:
            plain.sentence(f"{row.arm}, {size}: {possible_text(possible)}.")
    plain.sentence(summary, "muted")
    arms = list(dict.fromkeys(row.arm for _, row, _ in found))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        size = filters.choose_one("Size", list(dict.fromkeys(one for one, _, _ in found)), "size")
        chosen = [arm for arm in address.asked("arms") if arm in arms] or arms[:ALL_COLOURED]
        st.multiselect("Arms", arms, **address.widget("arms", chosen))
    shown = {row.arm: each for one, row, each in found if one == size and row.arm in chosen}
    if shown:
        info = trend_info(shown, arm_styles(queries.scope_points(scope)[0]))
        draw_chart(draw_points(info), "history", answer)
    rows = []
    for one, row, each in found:
        link = point_link(row.comparison_id, row.environment, row.host)
        moved = [change_text(change) for change in each.changes[-1:]]
        cells = (one, str(len(each.measurements)), *ends_text(each), *(moved or ["–"]))
        rows.append([plain.link(row.arm, link), *(plain.name(cell, 200) for cell in cells)])
    st.html(grid_html("Comparisons", HEADS, rows))
    if shown:
        offer_files(
            lambda: draw_points(info),
            name="history",
            data=info.rows,
            scope_or_sweep=scope.sweep,
        )


if __name__ == "__main__":
    _show()
