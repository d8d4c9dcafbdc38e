"""Files of a chart: a bundle from which it can be drawn again, without links to pages that a file
does not have.
"""

import io
import json
import zipfile

import pandas as pd
import pytest

from tests.webapp import stored
from tests.webapp.conftest import Open
from webapp import plot
from webapp.charts import panels
from webapp.charts.curves import draw_panel
from webapp.widgets.chart_block import bundle_files, make_bundle, without_links


def test_bundle(filled: str) -> None:
    """Spec, data, SQL and sweep file; the spec is valid alone and holds no link."""
    points, break_evens = stored.labelled_speedups("quickstart", filled)
    (view,) = panels.panel_infos(points, break_evens)
    chart = draw_panel(view, links=True)
    assert "href" in json.dumps(chart.to_dict()["layer"])
    with zipfile.ZipFile(
        io.BytesIO(bundle_files(chart, points, "SELECT 1", "name: quickstart"))
    ) as archive:
        assert sorted(archive.namelist()) == [
            "chart.vl.json",
            "data.csv",
            "query.sql",
            "sweep.yaml",
        ]
        spec = json.loads(archive.read("chart.vl.json"))
        assert "href" not in json.dumps(spec["layer"])
        assert len(pd.read_csv(archive.open("data.csv"))) == len(points)
        assert archive.read("sweep.yaml") == b"name: quickstart"


def test_bundles_of_rows_of_several_sweeps(filled: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page that compares sweeps names none: its bundle has what there is."""
    monkeypatch.setenv("BREAKEVEN_DB", filled)
    points, break_evens = stored.labelled_speedups("quickstart", filled)
    (view,) = panels.panel_infos(points, break_evens)
    for name, found in (
        ("compare", ["chart.vl.json", "data.csv"]),
        ("quickstart", ["chart.vl.json", "data.csv", "sweep.yaml"]),
    ):
        with zipfile.ZipFile(io.BytesIO(make_bundle(draw_panel(view), points, name))) as archive:
            assert sorted(archive.namelist()) == found


def test_pictures(filled: str) -> None:
    """PNG and SVG are drawn of the chart without links."""
    points, break_evens = stored.labelled_speedups("quickstart", filled)
    (view,) = panels.panel_infos(points, break_evens)
    assert plot.render_chart(without_links(draw_panel(view, links=True)), "png").startswith(
        b"\x89PNG"
    )
    assert b"point?id=" not in plot.render_chart(without_links(draw_panel(view, links=True)), "svg")


def test_the_menu_offers_four_files(opened: Open, filled: str) -> None:
    """The page has a button for each file."""
    labels = [
        button.proto.label for button in opened(filled, sweep="quickstart").get("download_button")
    ]
    assert labels == ["PNG", "SVG", "CSV", "Bundle"]
