"""A chart on a page: at full width, its points linked to their evidence, and its files made when
they are requested.
"""

import json
from collections.abc import Callable
from functools import partial
from io import BytesIO
from zipfile import ZIP_DEFLATED, ZipFile

import altair as alt
import pandas as pd
import streamlit as st

from webapp import plot, queries
from webapp.charts.points import PointsInfo, draw_points, omit_empty_rows, without_links
from webapp.display.texts import typeset
from webapp.plot import Chart
from webapp.queries import Scope
from webapp.widgets import address
from webapp.widgets.tables import linked_table


def show_chart(
    shown: Chart | PointsInfo,
    name: str,
    data: pd.DataFrame,
    scope_or_sweep: Scope | str,
    conclusion: str,
) -> None:
    """Draws a chart, which assistive technology reads as its `conclusion`; its points as a table,
    and a menu that offers it as PNG, SVG, CSV and as a bundle (Vega-Lite spec, data, SQL, sweep
    file).

    `name` begins the names of files and distinguishes the charts of a page. `data` are the rows for
    CSV and bundle, whose SQL is that of the speed-ups of a scope. A text instead of a scope is the
    name of a sweep, or of a page whose rows are of several sweeps: its bundle has no sweep file.
    Concatenated charts keep their own width: build those of a page from single or layered charts.
    """
    chart = draw_points(shown) if isinstance(shown, PointsInfo) else shown
    draw_chart(chart, name, conclusion)
    offer_files(lambda: chart, name=name, data=data, scope_or_sweep=scope_or_sweep)


def draw_chart(chart: Chart, name: str, conclusion: str) -> None:
    """The chart alone, which assistive technology reads as its `conclusion`."""
    # Tests validate every chart; validating it again in each run takes longer than drawing it.
    drawn = chart.copy(deep=False)
    object.__setattr__(drawn, "to_dict", partial(drawn.to_dict, validate=False))
    drawn.description = typeset(conclusion)
    omit_empty_rows(drawn)
    st.altair_chart(
        drawn,
        width="stretch" if isinstance(chart, alt.Chart | alt.LayerChart) else "content",
        key=f"chart-{name}",
    )


def offer_files(
    draw: Callable[[], Chart], *, name: str, data: pd.DataFrame, scope_or_sweep: Scope | str
) -> None:
    """The menu and the table of `show_chart` alone, for a chart that files hold in another form
    than the page.
    """
    sweep = scope_or_sweep if isinstance(scope_or_sweep, str) else scope_or_sweep.sweep
    stem = f"{sweep}-{name}"

    files: dict[str, tuple[Callable[[], bytes], str]] = {
        "PNG": (lambda: plot.render_chart(draw(), "png"), "image/png"),
        "SVG": (lambda: plot.render_chart(draw(), "svg"), "image/svg+xml"),
        "CSV": (lambda: data.to_csv(index=False).encode(), "text/csv"),
        "Bundle": (lambda: make_bundle(draw(), data, scope_or_sweep), "application/zip"),
    }
    with st.popover("Files", icon=":material/download:", type="tertiary", key=f"files-{name}"):
        st.caption("Bundle: Vega-Lite spec, data, SQL and sweep file")
        for label, (make, mime) in files.items():
            ending = "zip" if label == "Bundle" else label.lower()
            st.download_button(
                label,
                make,
                f"{stem}.{ending}",
                mime,
                key=f"{label}-{name}",
                on_click="ignore",
                width="stretch",
            )
    _points_below(data, name)


@st.fragment
def _points_below(data: pd.DataFrame, name: str) -> None:
    """The table, which is made once it is opened."""
    shown = address.one_of(key := f"table-{name}", ("true",), None) is not None
    with st.expander("Points as a table", **address.widget(key, shown)):
        if shown:
            linked_table(data)


def make_bundle(chart: Chart, data: pd.DataFrame, scope_or_sweep: Scope | str) -> bytes:
    """The bundle of `show_chart`."""
    sweep = scope_or_sweep if isinstance(scope_or_sweep, str) else scope_or_sweep.sweep
    known = any(row["name"] == sweep for row in queries.measured_sweeps())
    sql = "" if isinstance(scope_or_sweep, str) else queries.scope_sql(scope_or_sweep)
    return bundle_files(chart, data, sql, queries.find_sweep(sweep)["text"] if known else "")


def bundle_files(chart: Chart, data: pd.DataFrame, sql: str, sweep_file: str) -> bytes:
    """A zip of `chart.vl.json`, `data.csv`, `query.sql` and `sweep.yaml`; of the last two where
    there is a text.
    """
    with alt.data_transformers.enable("default", max_rows=None):
        spec = without_links(chart.to_dict())
    texts = {
        "chart.vl.json": json.dumps(spec, indent=1),
        "data.csv": data.to_csv(index=False),
        "query.sql": sql and f"{sql}\n",
        "sweep.yaml": sweep_file,
    }
    made = BytesIO()
    with ZipFile(made, "w", ZIP_DEFLATED) as archive:
        for name, text in texts.items():
            if text:
                archive.writestr(name, text)
    return made.getvalue()
