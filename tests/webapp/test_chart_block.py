"""Files of a chart: a bundle from which it can be drawn again, without links to pages that a file
does not have.
"""

import io
import json
import zipfile

import pandas as pd
import pytest

from tests.webapp import stored
from webapp import plot
from webapp.charts import panels
from webapp.charts.curves import draw_panel
from webapp.widgets.chart_block import bundle_files, make_bundle, without_links


def test_files(filled: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spec, data, SQL and sweep file; the spec is valid alone and holds no link, nor do pictures. A
    page that compares sweeps names none: its bundle has what there is.
    """
    monkeypatch.setenv("BREAKEVEN_DB", filled)
    points, break_evens = stored.labelled_speedups("quickstart", filled)
    (view,) = panels.panel_infos(points, break_evens)
    chart = draw_panel(view, links=True)
    assert "href" in json.dumps(chart.to_dict()["layer"])
    made = bundle_files(chart, points, "SELECT 1", "name: quickstart")
    with zipfile.ZipFile(io.BytesIO(made)) as archive:
        spec = json.loads(archive.read("chart.vl.json"))
        assert "href" not in json.dumps(spec["layer"])
        assert len(pd.read_csv(archive.open("data.csv"))) == len(points)
        assert archive.read("query.sql") == b"SELECT 1\n"
        assert archive.read("sweep.yaml") == b"name: quickstart"
    for name, more in (("compare", []), ("quickstart", ["sweep.yaml"])):
        with zipfile.ZipFile(io.BytesIO(make_bundle(chart, points, name))) as archive:
            assert sorted(archive.namelist()) == ["chart.vl.json", "data.csv", *more]
    assert plot.render_chart(without_links(chart), "png").startswith(b"\x89PNG")
    assert b"point?id=" not in plot.render_chart(without_links(chart), "svg")
