"""The chart shows what the views hold: scales, marks, panels, and nothing hidden without a
count.
"""

import re
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.webapp import stored
from webapp.charts import panels
from webapp.charts.curves import draw_panel, line_ends
from webapp.charts.points import GREY
from webapp.charts.scales import Axis, Extent, ratio_ticks, x_axis, y_span
from webapp.display import arm_style


@pytest.fixture(scope="module")
def quickstart(filled: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    return stored.labelled_speedups("quickstart", filled)


@pytest.fixture(scope="module")
def batches(filled: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    return stored.labelled_speedups("batches", filled)


def layers(spec: dict[str, Any], panel: int = 0) -> list[dict[str, Any]]:
    """The layers of a panel's curves."""
    found: list[dict[str, Any]] = spec["vconcat"][panel]["vconcat"][0]["layer"]
    return found


def marks(spec: dict[str, Any], panel: int = 0) -> dict[str, Any]:
    """The layer that draws the points."""
    return next(layer for layer in layers(spec, panel) if "shape" in layer["encoding"])


def claims(spec: dict[str, Any], panel: int = 0) -> list[str]:
    """The lines below the curves of a panel, from top to bottom."""
    return [row["words"] for row in rows(spec, spec["vconcat"][panel]["vconcat"][1])]


def drawn_shapes(spec: dict[str, Any], layers: list[dict[str, Any]]) -> dict[str, float]:
    """Where break-evens are drawn, by their shape."""
    shapes = [each for each in layers if each["mark"].get("shape")]
    return {each["mark"]["shape"]: row["x"] for each in shapes for row in rows(spec, each)}


def rows(spec: dict[str, Any], layer: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = spec["datasets"][layer["data"]["name"]]
    return found


@pytest.mark.parametrize(("axis", "column"), [("tokens", "tokens"), ("gmacs", "gmacs_baseline")])
def test_axes(quickstart: tuple[pd.DataFrame, pd.DataFrame], axis: Axis, column: str) -> None:
    """Tokens and GMACs are logarithmic to base 2, speed-ups logarithmic, with 1 and every point
    inside.
    """
    spec = stored.drawn_speedups(*quickstart, axis).to_dict()
    layer = marks(spec)
    x, y = layer["encoding"]["x"]["scale"], layer["encoding"]["y"]["scale"]
    assert (x["type"], x["base"], y["type"]) == ("log", 2, "log")
    assert y["domain"][0] < 1 < y["domain"][1]
    for row in rows(spec, layer):
        assert row["x"] == row[column]
        assert x["domain"][0] < row["x"] < x["domain"][1]
        assert (
            y["domain"][0]
            < row["speedup_low"]
            <= row["speedup"]
            <= row["speedup_high"]
            < y["domain"][1]
        )


def test_points_and_flags(quickstart: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    """Points wrong by a flag are hidden with a visible count, and drawn faintly when requested;
    those only noisy are drawn.
    """
    points, break_evens = quickstart
    assert set(points["flags"]) == {"", "contended", "thermal_slowdown"}
    flagged = int(panels.flagged(points).sum())
    assert flagged == 5
    hidden = stored.drawn_speedups(points, break_evens).to_dict()
    assert {row["flags"]: row["distrusted"] for row in rows(hidden, marks(hidden))} == {
        "": False,
        "contended": False,
    }
    assert len(rows(hidden, marks(hidden))) == len(points) - flagged
    assert "5 flagged points hidden" in " ".join(
        hidden["vconcat"][0]["vconcat"][0]["title"]["subtitle"]
    )
    shown = stored.drawn_speedups(points, break_evens, show_flagged=True).to_dict()
    assert sum(row["distrusted"] for row in rows(shown, marks(shown))) == flagged
    assert marks(shown)["encoding"]["opacity"]["condition"]["test"] == "datum.distrusted"
    assert "hidden" not in str(shown["vconcat"][0]["vconcat"][0]["title"]["subtitle"])


def test_only_flagged(quickstart: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    """With nothing but flagged points there is no empty picture but a message with the count."""
    points, break_evens = quickstart
    with pytest.raises(ValueError, match="5 measured, 5 of them flagged and hidden"):
        stored.drawn_speedups(points[panels.flagged(points)], break_evens)


def test_theory_is_the_ratio_of_macs(quickstart: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    """The dotted line is what the MACs promise the selected arm, the method's own MACs included."""
    few = stored.drawn_speedups(*quickstart).to_dict()
    assert not [
        layer for layer in layers(few) if layer["encoding"].get("y", {}).get("field") == "theory"
    ]
    spec = stored.drawn_speedups(*quickstart, selected="topk keep_rate=0.5").to_dict()
    dotted = next(
        layer for layer in layers(spec) if layer["encoding"].get("y", {}).get("field") == "theory"
    )
    assert dotted["mark"]["strokeDash"] == [1, 4]
    for row in rows(spec, dotted):
        assert row["theory"] == pytest.approx(row["gmacs_baseline"] / row["gmacs_total"])
    assert {
        round(row["theory"], 2) for row in rows(spec, dotted) if row["arm"] == "topk keep_rate=0.5"
    } == {1.72}


def test_verdicts_and_floor(quickstart: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    """Each word has a mark of its own, the unclear one a ring; what counts as the same is shaded
    around a rule at 1.
    """
    spec = stored.drawn_speedups(*quickstart).to_dict()
    shape = marks(spec)["encoding"]["shape"]
    drawn = {row["word"] for row in rows(spec, marks(spec))}
    assert (
        drawn | {"faster", "same", "slower", "unclear"}
        == set(shape["legend"]["values"])
        <= set(shape["scale"]["domain"])
    )
    assert len(set(shape["scale"]["range"])) == len(shape["scale"]["domain"])
    band, rule = layers(spec)[:2]
    assert rows(spec, band) == [
        {"floor_low": pytest.approx(1 / 1.02), "floor_high": pytest.approx(1.02)}
    ]
    assert rule["encoding"]["y"]["datum"] == 1


def test_legend_has_the_words_of_the_report(quickstart: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    """Marks and hover text follow from the words and numbers that the report prints, with an entry
    for every word drawn.
    """
    points, break_evens = quickstart
    bounds = {
        "probably faster": (1.035, 1.001, 1.072, "unclear"),
        "probably slower": (0.97, 0.95, 0.984, "unclear"),
        "within floor": (1.004, 1.002, 1.006, "same"),
        "too few pairs": (1.5, 1.4, 1.6, "insufficient"),
        "no interval": (1.5, np.nan, np.nan, "unclear"),
    }
    chosen = points[~panels.flagged(points)].head(len(bounds)).copy()
    chosen[["speedup", "speedup_low", "speedup_high", "verdict"]] = pd.DataFrame(
        bounds.values(), index=chosen.index
    )
    spec = stored.drawn_speedups(chosen.astype({"speedup": float}), break_evens).to_dict()
    shape = marks(spec)["encoding"]["shape"]
    drawn = rows(spec, marks(spec))
    assert shape["field"] == "word"
    assert {row["word"] for row in drawn} == set(bounds)
    assert set(shape["legend"]["values"]) == {"faster", "same", "slower", "unclear", *bounds}
    assert (
        len(set(shape["scale"]["range"]))
        == len(shape["scale"]["domain"])
        == len(shape["scale"]["range"])
    )
    (tip,) = (row for row in drawn if row["word"] == "probably faster")
    assert (tip["estimate"], tip["interval"]) == ("1.035×", "[1.001, 1.072]")
    assert "estimate" in {tip["field"] for tip in marks(spec)["encoding"]["tooltip"]}


def test_tooltip_has_every_column(quickstart: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    """Everything known of a point is at hand, both times included."""
    fields = {
        tip["field"]
        for tip in marks(stored.drawn_speedups(*quickstart, show_flagged=True).to_dict())[
            "encoding"
        ]["tooltip"]
    }
    assert fields >= {
        "tokens",
        "image_size",
        "baseline_ms",
        "arm_ms",
        "pairs",
        "word",
        "flags",
        "params",
        "interval",
        "theory",
        "reason",
        "realised_share",
    }


def test_claims_stand_below_the_curves(quickstart: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    """Every arm has a line in words; break-evens lie at the foot of the curves with the interval of
    the view.
    """
    points, break_evens = quickstart
    spec = stored.drawn_speedups(points, break_evens).to_dict()
    words = claims(spec)
    named = [text.split(":")[0] for text in words]
    assert set(named) == set(arm_style.arm_styles(arm_style.label_arms(points, break_evens)[0]))
    assert named[0] == "topk keep_rate=0.5"  # best first, and a control last, however fast it is
    assert named[-1] == "random keep_rate=0.5"
    assert "random keep_rate=0.5: pays at every point measured, 16 to 196 tokens" in words
    assert "tome r_ratio=0.02: not shown to pay at any point measured, 4 to 196 tokens" in words
    assert "tome r_ratio=0.06: cannot tell" in words
    assert any(
        re.fullmatch(r"topk keep_rate=0\.7: pays from \d+ tokens on, likely from 3\d", text)
        for text in words
    )
    expected = break_evens[(break_evens["axis"] == "tokens")].dropna(subset=["x"])
    bars = [
        layer for layer in layers(spec) if layer["encoding"].get("x2", {}).get("field") == "x_high"
    ]
    drawn = {(row["x_low"], row["x"], row["x_high"]) for bar in bars for row in rows(spec, bar)}
    assert drawn == set(zip(expected["x_low"], expected["x"], expected["x_high"], strict=True))
    assert set(drawn_shapes(spec, layers(spec))) == {"diamond"}


def test_one_arm_stands_out(quickstart: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    """A selected arm alone has its colour, its name at the end of its line and its break-even as a
    band; the others are grey.
    """
    spec = stored.drawn_speedups(*quickstart, selected="topk keep_rate=0.7").to_dict()
    scale = marks(spec)["encoding"]["color"]["scale"]
    colors = dict(zip(scale["domain"], scale["range"], strict=True))
    assert [arm for arm, color in colors.items() if color != GREY] == ["topk keep_rate=0.7"]
    (ends,) = [
        layer for layer in layers(spec) if layer["encoding"].get("text", {}).get("field") == "label"
    ]
    assert [row["label"] for row in rows(spec, ends)] == ["topk keep_rate=0.7"]
    (band,) = [
        layer
        for layer in layers(spec)
        if layer["mark"]["type"] == "rect" and "x" in layer["encoding"]
    ]
    assert [row["arm"] for row in rows(spec, band)] == ["topk keep_rate=0.7"]


def test_of_many_arms_the_best_have_points(quickstart: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    """All have lines; those that are named have points too, among them the selected one,
    however slow it is.
    """
    points, break_evens = quickstart
    copies = [points.assign(arm=points["arm"] + f", copy {number}") for number in range(5)]
    many, rows_of = (
        pd.concat(copies, ignore_index=True).assign(against="dense"),
        break_evens.iloc[:0].assign(arm="", against=""),
    )
    slowest = "tome r_ratio=0.02, copy 4"
    (view,) = panels.panel_infos(many, rows_of, selected=slowest)
    spec = draw_panel(view).to_dict()
    (drawn,) = (layer for layer in spec["layer"] if "shape" in layer["encoding"])
    (grey,) = (layer for layer in spec["layer"] if "detail" in layer["encoding"])
    with_points = {row["arm"] for row in spec["datasets"][drawn["data"]["name"]]}
    assert len(with_points) == panels.MAX_NAMED
    assert slowest in with_points
    assert set(drawn["encoding"]["color"]["scale"]["domain"]) == with_points
    assert {row["arm"] for row in spec["datasets"][grey["data"]["name"]]} == set(
        many["arm"]
    ) - with_points
    assert view.notes[-1] == "The 12 best of 25 arms have points and names; 13 more are grey lines."


def test_ends_of_lines_do_not_overlap(quickstart: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    """Names beside lines that end close to each other keep a line's height apart, in the order of
    the ends.
    """
    points = pd.DataFrame({"arm": list("abcd"), "x": 1.0, "speedup": [1.0, 1.001, 1.002, 1.4]})
    span = Extent(0.5, 2.0)
    found = line_ends(points, list("abcd"), span, 300)
    places = np.log(found["place"]) / np.log(4.0) * 300
    assert list(found["arm"]) == list("abcd")
    assert (np.diff(places) >= 14.9).all()


@pytest.mark.parametrize(
    ("claim", "drawn"),
    [
        ({"verdict": "pays_from", "x_high": 36.0}, {"triangle-left": 36.0}),
        ({"verdict": "pays_up_to", "x_low": 64.0, "direction": "loses"}, {"triangle-right": 64.0}),
        ({"verdict": "no_effect", "direction": None}, {}),
        ({"verdict": "crossing", "x": 50.0, "x_low": 36.0, "x_high": 64.0}, {"diamond": 50.0}),
        ({"verdict": "crossing", "x_low": 36.0, "x_high": 64.0}, {}),
    ],
    ids=["pays from", "pays up to", "no effect", "crossing", "neighbouring points"],
)
def test_bounds_are_arrows(
    quickstart: tuple[pd.DataFrame, pd.DataFrame], claim: dict[str, Any], drawn: dict[str, float]
) -> None:
    """A bound is an arrow to the side where the break-even lies, a bracket a bar."""
    points, break_evens = quickstart
    chosen = break_evens[
        break_evens["arm"].str.startswith("topk keep_rate=0.5") & (break_evens["axis"] == "tokens")
    ]
    known: dict[str, Any] = {"x": np.nan, "x_low": np.nan, "x_high": np.nan, "direction": "gains"}
    spec = stored.drawn_speedups(
        points[points["method"] == "topk"], chosen.assign(**(known | claim))
    ).to_dict()
    assert drawn_shapes(spec, layers(spec)) == drawn
    bars = [
        row
        for layer in layers(spec)
        if layer["encoding"].get("x2", {}).get("field") == "x_high"
        for row in rows(spec, layer)
    ]
    assert [(row["x_low"], row["x_high"]) for row in bars] == [(36.0, 64.0)] * (
        claim["verdict"] == "crossing"
    )


def test_panels(batches: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    """Each batch size has a panel of its own, with its own break-evens, and all share the axes."""
    spec = stored.drawn_speedups(*batches).to_dict()
    assert len(spec["vconcat"]) == 2
    titles = [panel["vconcat"][0]["title"]["subtitle"][0] for panel in spec["vconcat"]]
    assert ["batch 1" in titles[0], "batch 2" in titles[1]] == [True, True]
    assert all("Simulated CPU · float32" in title and "random weights" in title for title in titles)
    shapes = [marks(spec, panel)["encoding"]["shape"]["scale"] for panel in (0, 1)]
    # Vega-Lite shares them: with other words in each panel some would have wrong shapes
    assert shapes[0] == shapes[1]
    scales = [marks(spec, panel)["encoding"]["y"]["scale"]["domain"] for panel in (0, 1)]
    assert scales[0] == scales[1]
    assert {row["batch_size"] for row in rows(spec, marks(spec, 1))} == {2}


def test_points_without_an_interval(quickstart: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    """A point with too few pairs for an interval is drawn without a bar; an arm not analysed is
    named so.
    """
    points, break_evens = quickstart
    alone = points[points["method"] == "tome"].assign(speedup_low=np.nan, speedup_high=np.nan)
    spec = stored.drawn_speedups(alone, break_evens.iloc[:0]).to_dict()
    assert not [layer for layer in layers(spec) if layer["mark"]["type"] in {"errorbar", "area"}]
    assert {row["interval"] for row in rows(spec, marks(spec))} == {"–"}
    assert not claims(spec)


def test_ticks() -> None:
    """Ticks are the tokens measured and round ratios around 1, apart enough to read."""
    assert x_axis("tokens", pd.Series([196.0, 4.0, 16.0, 16.0])).to_dict()["values"] == [4, 16, 196]
    assert ratio_ticks(Extent(1 / 2.2, 2.2)) == [0.5, 0.7, 0.8, 1.0, 1.2, 1.5, 2]
    for most in (1.05, 1.3, 4.0, 80.0):
        ticks = ratio_ticks(Extent(1 / most, most))
        assert 1.0 in ticks
        assert 3 <= len(ticks) <= 15
        assert all(np.log(b / a) >= 2 * np.log(most) / 14 - 1e-9 for a, b in pairwise(ticks))


def test_the_span_fits_what_was_measured() -> None:
    """With 1, and little room beside it."""
    low, high = y_span(pd.Series([1.5, 4.0, None]))
    assert 0.85 < low < 0.97
    assert 4 < high < 4.5
