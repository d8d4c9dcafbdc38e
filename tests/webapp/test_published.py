"""Published points beside measured ones: drawn on request, hollow and named, and part of nothing
else.
"""

import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from store.open.engine import connect
from store.write.references import import_references
from sweeps.importers.tables import load_reference
from tests.webapp import stored
from tests.webapp.conftest import Open
from tests.webapp.page_elements import charts, page_text
from webapp import queries
from webapp.__main__ import main
from webapp.charts.panels import bare_model, published_points

TOME = "published: Token Merging: Your ViT But Faster, V100"


@pytest.fixture(scope="module")
def beside(filled: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The filled store with two published tables."""
    url = str(tmp_path_factory.mktemp("published") / "beside.db")
    shutil.copy(filled, url)
    engine = connect(url)
    import_references(engine, [load_reference("tome"), load_reference("tr_edwin")])
    engine.dispose()
    return url


def drawn(frames: tuple[pd.DataFrame, pd.DataFrame], **options: Any) -> list[dict[str, Any]]:
    """The published points of a chart of one panel, each beside its `layer`."""
    spec = stored.drawn_speedups(*frames, **options).to_dict()
    panel = spec["vconcat"][0]
    layers = panel["layer"] if "layer" in panel else panel["vconcat"][0]["layer"]
    return [
        row | {"layer": layer}
        for layer in layers
        if "stroke" in layer["encoding"]
        for row in spec["datasets"][layer["data"]["name"]]
    ]


def test_points_of_the_same_model_are_drawn(beside: str) -> None:
    """On request: of all published points that of DeiT-Tiny stands in its panel at its tokens, as a
    hollow mark with its source; where arms are rows, it has a row of its own.
    """
    frames = points, break_evens = stored.labelled_speedups("quickstart", beside)
    references = stored.read(beside, queries.references)
    assert drawn(frames) == []
    (point,) = drawn(frames, references=references)
    assert (point["published"], point["x"], point["label"]) == (TOME, 196, "ToMe")
    assert point["speedup"] == pytest.approx(3980 / 2558)
    assert point["layer"]["mark"]["filled"] is False
    low, high = point["layer"]["encoding"]["y"]["scale"]["domain"]
    assert low < point["speedup"] < high
    single = points[points["tokens"] == 196], break_evens
    (point,) = drawn(single, references=references, show_flagged=True)
    assert point["row"] == f"{TOME}, ToMe, DeiT trained: 1.556×"
    assert point["row"] in point["layer"]["encoding"]["y"]["scale"]["domain"]


def test_places_along_the_axes(beside: str) -> None:
    """Points without MACs have no place along them; a tag of weights makes no other model."""
    points = stored.labelled_speedups("quickstart", beside)[0]
    found = stored.read(beside, queries.references)
    assert len(published_points(found, points, "tokens")) == 1
    assert published_points(found, points, "gmacs").empty
    base = points.assign(model="deit_base_patch16_224", batch_size=8)
    assert list(published_points(found, base, "gmacs")["x"]) == [78.52]
    assert list(published_points(found, base, "gmacs_saved")["x"]) == [
        pytest.approx(1 - 24.73 / 78.52)
    ]
    assert bare_model("timm/deit_base_patch16_224.fb_in1k") == "deit_base_patch16_224"


def test_plot_draws_them_on_request(
    beside: str, filled: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`--references` puts the source into the file; a store without any names the command that
    imports some, one without the model those that there are.
    """
    out = tmp_path / "x.svg"
    plot = ["plot", "quickstart", "--references", "-o", str(out), "--db"]
    assert main([*plot, beside]) == 0
    assert TOME in out.read_text()
    assert main([*plot, filled]) == 2
    assert "breakeven import --reference" in capsys.readouterr().err
    url = str(shutil.copy(filled, tmp_path / "other.db"))
    engine = connect(url)
    import_references(engine, [load_reference("tr_edwin")])
    engine.dispose()
    assert main([*plot, url]) == 2
    assert "the store holds some of deit_base_patch16_224" in capsys.readouterr().err


def test_the_page_has_a_switch(opened: Open, beside: str, filled: str) -> None:
    """The page offers to show them where there are some, and draws them when it is switched on."""
    app = opened(beside, sweep="quickstart")
    assert app.toggle(key="references").label == "Show 1 published point"
    assert "published" not in str(charts(app))
    app.toggle(key="references").set_value(True).run()
    assert not app.exception
    assert "Hollow: published" in page_text(app)
    assert "published: Token" in str(app.get("vega_lite_chart")[0].proto.datasets)
    assert "published point" not in page_text(opened(filled, sweep="quickstart"))
