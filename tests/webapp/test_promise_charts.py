"""The page Promise, its chart and its break-even map on a simulated store whose truth is known."""

import re

import pandas as pd
import pytest
import vl_convert

from sweeps.stats.pooling import realised_of
from sweeps.text.reasons import realised_headline
from tests.webapp import stored
from tests.webapp.conftest import Open
from tests.webapp.page_elements import page_text
from webapp.charts.points import draw_points
from webapp.charts.promise import break_even_map, promise_info
from webapp.display import texts
from webapp.queries import sweep_break_evens
from webapp.screens.promise import axes_of, in_scope, label_curves, map_frame, values_of

PAGE = "screens/promise.py"


def test_promise_against_speedup(filled: str) -> None:
    """Every point lies at its promise; the diagonal and the half-way line span the chart; hover
    texts name the share.
    """
    points, _ = stored.labelled_speedups("quickstart", filled)
    points = texts.with_words(points)
    row = points[points["tokens"] == 196].set_index("arm").loc["topk keep_rate=0.5"]
    assert row["speedup_macs"] == pytest.approx(1 / (0.58 + 0.001), rel=1e-3)
    assert 0 < row["realised_share"] < 1
    info = promise_info(points.assign(href="point?id=1"))
    names = {name for each in info.texts for name in each.rows["text"]}
    lines = {"all of the promise", "half of it", "nothing"}
    assert names - {f"{tokens}" for tokens in points["tokens"]} == lines
    assert {"4", "196"} <= names
    spec = draw_points(info).to_dict()
    (joined,) = (layer for layer in spec["layer"] if "strokeDash" in layer["encoding"])
    assert joined["encoding"]["order"]["field"] == "tokens"
    marks = next(layer for layer in spec["layer"] if layer["mark"]["type"] == "point")
    assert len(spec["datasets"][marks["data"]["name"]]) == len(points)
    assert marks["encoding"]["href"]["field"] == "href"
    assert {marks["encoding"][axis]["scale"]["type"] for axis in "xy"} == {"log"}
    with pytest.raises(ValueError, match="the MACs of these arms are not known"):
        promise_info(points.assign(speedup_macs=None))


def test_map_of_arms_and_batches(filled: str) -> None:
    """A cell for each arm and batch, with the words of its break-even, darker where it pays
    earlier.
    """
    found, axes = (
        stored.read(filled, sweep_break_evens, "batches", "latency"),
        ("batch_size", "arm"),
    )
    assert axes_of(found)[:3] == ["arm", "method", "batch_size"]
    fixed = {"model": "deit_small_patch16_224", "batch_size": 1}
    curves = label_curves(in_scope(found, fixed, axes), axes)
    cells = map_frame(curves, *axes)
    columns, rows = (values_of(curves, axis) for axis in axes)
    assert (columns, len(rows)) == (["1", "2"], 5)
    by = cells.set_index(["column", "row"])
    assert set(by.index) == {(one, other) for one in columns for other in rows}
    assert by.loc[("1", "tome r_ratio=0.02"), "text"] == "not shown to pay"
    assert by.loc[("1", "topk keep_rate=0.7"), "text"] == "16 to 64"
    assert by["fill"].str.startswith("#").all()
    spec = break_even_map(cells, columns, rows, ("Batch", "Arm")).to_dict()
    assert vl_convert.vegalite_to_svg(spec).startswith("<svg")
    assert set(in_scope(found, fixed, ("arm", "arm"))["batch_size"]) == {1}


def test_an_axis_leaves_the_labels_of_arms() -> None:
    """With runtimes along an axis, an arm that overrides its runtime is the same arm as the one
    that does not.
    """
    condition = {
        "method": "topk",
        "baseline": "dense",
        "baseline_id": "d",
        "dtype": "float32",
        "attention": "sdpa",
        "kv_cache": None,
    }
    rows = [
        condition | {"params": '{"keep_rate":0.5}', "runtime": "eager"},
        condition | {"params": '{"keep_rate":0.5,"runtime":"compile"}', "runtime": "compile"},
    ]
    labelled = label_curves(pd.DataFrame(rows), ("runtime", "arm"))
    assert set(labelled["arm"]) == {"topk keep_rate=0.5"}
    assert list(labelled["runtime"]) == ["eager", "compile"]
    assert len(set(label_curves(pd.DataFrame(rows), ("dtype", "arm"))["arm"])) == 2


def test_shares_and_map(opened: Open, filled: str) -> None:
    """A sentence for each method, with the points that it rests on; two charts: the promise and the
    map.
    """
    page = opened(filled, PAGE, sweep="quickstart")
    words = page_text(page)
    assert "random (control): " in words
    assert "of the promised saving arrives at the median (" in words
    assert "tome: none of the promised saving arrives at the median" in words
    headline = re.compile(
        r"topk (\d+) % \((\d+) % to (\d+) %\), tome .* of the promised saving arrives "
    )
    shares = headline.search(words)
    assert shares is not None
    assert f"topk: {shares[1]} % of" in words
    assert int(shares[2]) < int(shares[1]) < int(shares[3])
    assert len(page.get("vega_lite_chart")) == 2
    assert not page.exception


def test_a_headline_needs_an_interval() -> None:
    """Of a method whose interval holds none of the saving too, nothing stands in the headline; an
    interval is the median of the ends of those of the points.
    """
    sure = realised_of([0.4, 0.6, 0.9], [(0.3, 0.5), (0.5, 0.7), (0.8, 1.0)])
    wide = realised_of([1.89], [(-2.0, 4.5)])
    assert realised_headline({"topk": sure, "larosa": wide}) == (
        "topk 60 % (50 % to 70 %) of the promised saving arrives"
    )
    cannot = "Cannot tell whether any of the promised saving arrives"
    assert realised_headline({"larosa": wide}) == cannot
    assert realised_headline({"larosa": realised_of([0.5])}) == cannot
    lost = realised_of([-3.0], [(-4.0, -2.0)])
    assert realised_headline({"tome": lost}).startswith("tome below -100 % (below -100 %) of the")


def test_axes_of_the_map_are_in_the_address(opened: Open, filled: str) -> None:
    """Rows and columns are chosen among what varies in the sweep, and a link keeps them; with panels
    by batch there is a chart of the promise for each, and one map.
    """
    page = opened(filled, PAGE, sweep="batches", panels="batch", down="Method", across="Arm")
    rows, columns = (page.selectbox(key=key) for key in ("down", "across"))
    assert rows.options == ["Arm", "Method", "Batch"]
    assert (rows.value, columns.value) == ("Method", "Arm")
    assert len(page.get("vega_lite_chart")) == 3
    assert "Batch: 2" in page_text(page)
    rows.set_value("Batch").run()
    assert page.selectbox(key="across").options == ["Arm", "Method"]
