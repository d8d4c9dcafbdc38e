"""The chart shows what the views hold: scales, marks, panels, and nothing hidden without a
count.
"""

import re
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest
import vl_convert

from store.open.engine import connect
from store.write.record import record
from tests.webapp import stored
from tests.webapp.simulated import job, outcome, store_sweep
from webapp.charts import panels
from webapp.charts.curves import draw_panel, line_ends
from webapp.charts.points import GREY, Measure, draw_points
from webapp.charts.quality import pareto_info
from webapp.charts.scales import (
    FEWEST_ROUND,
    MAX_ROUND,
    Axis,
    Extent,
    ratio_ticks,
    round_ticks,
    x_axis,
)
from webapp.display import arm_style

Frames = tuple[pd.DataFrame, pd.DataFrame]


@pytest.fixture(scope="module")
def quickstart(filled: str) -> Frames:
    return stored.labelled_speedups("quickstart", filled)


class Drawn:
    """A chart as Vega-Lite, and its layers."""

    def __init__(self, *frames: Any, **options: Any) -> None:
        self.spec = stored.drawn_speedups(*frames, **options).to_dict()

    def layers(self, panel: int = 0) -> list[dict[str, Any]]:
        """Those of a panel's curves."""
        found: list[dict[str, Any]] = self.spec["vconcat"][panel]["vconcat"][0]["layer"]
        return found

    def rows(self, layer: dict[str, Any]) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.spec["datasets"][layer["data"]["name"]]
        return found

    def by(self, channel: str, field: str) -> list[dict[str, Any]]:
        """The layers with a field in a channel."""
        return [
            each
            for each in self.layers()
            if each["encoding"].get(channel, {}).get("field") == field
        ]

    def marks(self, panel: int = 0) -> dict[str, Any]:
        """The layer that draws the points."""
        return next(layer for layer in self.layers(panel) if "shape" in layer["encoding"])

    @property
    def points(self) -> list[dict[str, Any]]:
        return self.rows(self.marks())

    @property
    def claims(self) -> list[str]:
        """The lines below the curves, from top to bottom."""
        return [row["words"] for row in self.rows(self.spec["vconcat"][0]["vconcat"][1])]

    @property
    def shapes(self) -> dict[str, float]:
        """Where break-evens are drawn, by their shape."""
        shapes = [each for each in self.layers() if each["mark"].get("shape")]
        return {each["mark"]["shape"]: row["x"] for each in shapes for row in self.rows(each)}

    @property
    def brackets(self) -> set[tuple[float, float]]:
        found = [row for layer in self.by("x2", "x_high") for row in self.rows(layer)]
        return {(row["x_low"], row["x_high"]) for row in found}

    def subtitle(self, panel: int = 0) -> str:
        return " ".join(self.spec["vconcat"][panel]["vconcat"][0]["title"]["subtitle"])


@pytest.mark.parametrize(("axis", "column"), [("tokens", "tokens"), ("gmacs", "gmacs_baseline")])
def test_axes(quickstart: Frames, axis: Axis, column: str) -> None:
    """Tokens and GMACs are logarithmic to base 2, speed-ups logarithmic, with 1 and every point
    inside.
    """
    drawn = Drawn(*quickstart, axis)
    x, y = (drawn.marks()["encoding"][name]["scale"] for name in "xy")
    assert (x["type"], x["base"], y["type"]) == ("log", 2, "log")
    assert y["domain"][0] < 1 < y["domain"][1]
    for row in drawn.points:
        assert row["x"] == row[column]
        assert x["domain"][0] < row["x"] < x["domain"][1]
        ends = [row["speedup_low"], row["speedup"], row["speedup_high"]]
        assert y["domain"][0] < ends[0] <= ends[1] <= ends[2] < y["domain"][1]


def test_points_and_flags(quickstart: Frames) -> None:
    """Points wrong by a flag are hidden with a visible count, and drawn faintly when requested;
    those only noisy are drawn; with nothing else there is a message.
    """
    points, break_evens = quickstart
    flagged = panels.flagged(points)
    assert flagged.sum() == 5
    hidden = Drawn(points, break_evens)
    assert {row["flags"] for row in hidden.points} == {"", "contended"}
    assert len(hidden.points) == len(points) - 5
    assert "5 flagged points hidden" in hidden.subtitle()
    shown = Drawn(points, break_evens, show_flagged=True)
    assert sum(row["distrusted"] for row in shown.points) == 5
    assert shown.marks()["encoding"]["opacity"]["condition"]["test"] == "datum.distrusted"
    assert "hidden" not in shown.subtitle()
    with pytest.raises(ValueError, match="5 measured, 5 of them flagged and hidden"):
        Drawn(points[flagged], break_evens)


def test_one_arm_stands_out(quickstart: Frames) -> None:
    """A selected arm alone has its colour, its name at the end of its line, its break-even as a
    band, and what the MACs promise it, the method's own MACs included.
    """
    arm = "topk keep_rate=0.5"
    drawn = Drawn(*quickstart, selected=arm)
    scale = drawn.marks()["encoding"]["color"]["scale"]
    colors = dict(zip(scale["domain"], scale["range"], strict=True))
    assert [name for name, color in colors.items() if color != GREY] == [arm]
    (ends,) = drawn.by("y", "place")
    (band,) = (each for each in drawn.by("x", "x_low") if each["mark"]["type"] == "rect")
    assert [row.get("label", row["arm"]) for each in (ends, band) for row in drawn.rows(each)] == [
        arm
    ] * 2
    (dotted,) = drawn.by("y", "theory")
    for row in drawn.rows(dotted):
        assert row["theory"] == pytest.approx(row["gmacs_baseline"] / row["gmacs_total"])
        assert round(row["theory"], 2) == 1.72
    assert not Drawn(*quickstart).by("y", "theory")


def test_words_and_floor(quickstart: Frames) -> None:
    """Marks and hover text follow from the words and numbers that the report prints, each word with
    a mark and an entry of its own; what counts as the same is shaded around a rule at 1.
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
    drawn = Drawn(chosen.astype({"speedup": float}), break_evens)
    shape = drawn.marks()["encoding"]["shape"]
    assert {row["word"] for row in drawn.points} == set(bounds)
    assert set(shape["legend"]["values"]) == {"faster", "same", "slower", "unclear", *bounds}
    assert len(set(shape["scale"]["range"])) == len(shape["scale"]["domain"])
    (tip,) = (row for row in drawn.points if row["word"] == "probably faster")
    assert (tip["estimate"], tip["interval"]) == ("1.035×", "[1.001, 1.072]")
    fields = {tip["field"] for tip in drawn.marks()["encoding"]["tooltip"]}
    assert fields >= {"tokens", "baseline_ms", "arm_ms", "estimate", "interval", "reason", "pairs"}
    band, rule = drawn.layers()[:2]
    ends = {"floor_low": pytest.approx(1 / 1.02), "floor_high": pytest.approx(1.02)}
    assert drawn.rows(band) == [ends]
    assert rule["encoding"]["y"]["datum"] == 1


def test_claims_stand_below_the_curves(quickstart: Frames) -> None:
    """Every arm has a line in words; break-evens lie at the foot of the curves with the interval of
    the view.
    """
    points, break_evens = quickstart
    drawn = Drawn(points, break_evens)
    named = [text.split(":")[0] for text in drawn.claims]
    assert set(named) == set(arm_style.arm_styles(arm_style.label_arms(points, break_evens)[0]))
    assert named[0] == "topk keep_rate=0.5"  # best first, and a control last, however fast it is
    assert named[-1] == "random keep_rate=0.5"
    assert "tome r_ratio=0.06: cannot tell" in drawn.claims
    likely = r"topk keep_rate=0\.7: pays at \d+ to \d+ tokens, likely from 3\d"
    assert any(re.fullmatch(likely, text) for text in drawn.claims)
    expected = break_evens[break_evens["axis"] == "tokens"].dropna(subset=["x"])
    assert drawn.brackets == set(zip(expected["x_low"], expected["x_high"], strict=True))
    assert set(drawn.shapes) == {"diamond"}


def test_of_many_arms_the_best_have_points(quickstart: Frames) -> None:
    """All have lines; those that are named have points too, among them the selected one,
    however slow it is.
    """
    points, break_evens = quickstart
    copies = [points.assign(arm=points["arm"] + f", copy {number}") for number in range(5)]
    many = pd.concat(copies, ignore_index=True).assign(against="dense")
    slowest = "tome r_ratio=0.02, copy 4"
    (view,) = panels.panel_infos(
        many, break_evens.iloc[:0].assign(arm="", against=""), selected=slowest
    )
    spec = draw_panel(view).to_dict()
    arms = {
        channel: {
            row["arm"]
            for layer in spec["layer"]
            if channel in layer["encoding"]
            for row in spec["datasets"][layer["data"]["name"]]
        }
        for channel in ("shape", "detail")
    }
    assert len(arms["shape"]) == panels.MAX_NAMED
    assert slowest in arms["shape"]
    assert arms["detail"] == set(many["arm"]) - arms["shape"]
    assert view.notes[-1] == "The 12 best of 25 arms have points and names; 13 more are grey lines."


@pytest.mark.parametrize(
    ("claim", "drawn"),
    [
        ({"verdict": "pays_from", "x_high": 36.0}, {"triangle-left": 36.0}),
        ({"verdict": "pays_up_to", "x_low": 64.0, "direction": "loses"}, {"triangle-right": 64.0}),
        ({"verdict": "crossing", "x": 50.0, "x_low": 36.0, "x_high": 64.0}, {"diamond": 50.0}),
        ({"verdict": "crossing", "x_low": 36.0, "x_high": 64.0}, {}),
    ],
)
def test_bounds_are_arrows(
    quickstart: Frames, claim: dict[str, Any], drawn: dict[str, float]
) -> None:
    """A bound is an arrow to the side where the break-even lies, a bracket a bar."""
    points, break_evens = quickstart
    own = break_evens["arm"].str.startswith("topk keep_rate=0.5")
    chosen = break_evens[own & (break_evens["axis"] == "tokens")]
    known: dict[str, Any] = {"x": np.nan, "x_low": np.nan, "x_high": np.nan, "direction": "gains"}
    found = Drawn(points[points["method"] == "topk"], chosen.assign(**(known | claim)))
    assert found.shapes == drawn
    assert found.brackets == ({(36.0, 64.0)} if claim["verdict"] == "crossing" else set())


def test_panels(filled: str) -> None:
    """Each batch size has a panel of its own, with its own break-evens, and all share the axes."""
    drawn = Drawn(*stored.labelled_speedups("batches", filled))
    assert len(drawn.spec["vconcat"]) == 2
    for panel in (0, 1):
        assert f"batch {panel + 1}" in drawn.subtitle(panel)
        assert "Simulated CPU · float32" in drawn.subtitle(panel)
    first, second = (drawn.marks(panel)["encoding"] for panel in (0, 1))
    # Vega-Lite shares them: with other words in each panel some would have wrong shapes
    assert first["shape"]["scale"] == second["shape"]["scale"]
    assert first["y"]["scale"]["domain"] == second["y"]["scale"]["domain"]
    assert {row["batch_size"] for row in drawn.rows(drawn.marks(1))} == {2}


def test_ticks() -> None:
    """Ticks are the tokens measured, tenths of what is saved, round ratios around 1, or round
    numbers: apart enough to read, and enough for the scale.
    """
    assert x_axis("tokens", pd.Series([196.0, 4.0, 16.0, 16.0])).to_dict()["values"] == [4, 16, 196]
    saved = x_axis("gmacs_saved", pd.Series([-0.05, 0.31]), "Saved").to_dict()
    assert saved["values"] == [-0.1, 0.0, 0.1, 0.2, 0.3, 0.4]
    assert ratio_ticks(Extent(1 / 2.2, 2.2)) == [0.5, 0.7, 0.8, 1.0, 1.2, 1.5, 2]
    for low, high, expected in (
        (0.016, 1.3, [0.02, 0.05, 0.1, 0.2, 0.5, 1]),
        (33, 40, [34, 36, 38, 40]),
        (1e-3, 1e6, [0.001, 0.1, 10, 1000, 1e5]),
        (7.0, 7.0, [7.0]),
    ):
        assert round_ticks(low, high) == pytest.approx(expected)
    for decades in range(1, 9):
        assert FEWEST_ROUND <= len(round_ticks(1.3, 1.3 * 10**decades)) <= MAX_ROUND
    for most in (1.05, 4.0, 80.0):
        ticks = ratio_ticks(Extent(1 / most, most))
        assert 1.0 in ticks
        assert 3 <= len(ticks) <= 15
        assert all(np.log(b / a) >= 2 * np.log(most) / 14 - 1e-9 for a, b in pairwise(ticks))


SIZES = (64, 96, 128, 160, 192)


@pytest.fixture(scope="module")
def two_hosts(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A sweep measured whole on one host, and at three of its five sizes on another."""
    url = str(tmp_path_factory.mktemp("hosts") / "hosts.db")
    store_sweep(url, "hosts", [job(size) for size in SIZES], outcome)
    engine = connect(url)
    for size in SIZES[:3]:
        record(engine, None, None, outcome(job(size)).model_copy(update={"host": "lost"}))
    engine.dispose()
    return url


def test_each_host_has_its_panel(two_hosts: str) -> None:
    """No panel mixes points of two hosts; titles name them, and one host alone goes unnamed."""
    points, break_evens = stored.labelled_speedups("hosts", two_hosts)
    found = list(panels.curve_panels(points, break_evens))
    assert [(panel.about["host"], len(panel.points)) for panel in found] == [
        ("lost", 15),
        ("simulated", 25),
    ]
    assert {frozenset(panel.break_evens["host"]) for panel in found} == {
        frozenset(["lost"]),
        frozenset(["simulated"]),
    }
    titles = [
        str(view["vconcat"][0]["title"]["subtitle"])
        for view in stored.drawn_speedups(points, break_evens).to_dict()["vconcat"]
    ]
    assert ["host lost" in titles[0], "host simulated" in titles[1]] == [True, True]
    alone = stored.drawn_speedups(points[points["host"] == "simulated"], break_evens).to_dict()
    assert "host" not in str(alone["vconcat"][0]["vconcat"][0]["title"])


TIME = Measure("ms", "Time of a forward, ms", "lower", "log")
LOSS = Measure("worse", "Loss of top-1, points", "lower")


def arms(**more: list[object]) -> pd.DataFrame:
    base = {
        "arm": ["the unmodified model", "topk keep_rate=0.5", "tome r=8", "not timed"],
        "ms": [10.0, 6.0, 12.0, None],
        "ms_low": [9.9, 5.8, 11.0, None],
        "ms_high": [10.1, 6.2, 13.0, None],
        "worse": [0.0, 1.2, 0.4, 1.0],
        "worse_low": [0.0, 0.9, None, 0.9],
        "worse_high": [0.0, 1.5, None, 1.1],
        "front": [True, True, False, True],
    }
    return pd.DataFrame(base | more)


def test_points_intervals_and_names() -> None:
    """Arms with both figures are drawn, each interval that is known as a rule; the front is filled;
    of few arms all are named.
    """
    info = pareto_info(arms(), TIME, LOSS, colors={})
    assert [len(each.known_ends(info.rows)) for each in (info.x, info.y)] == [3, 2]
    assert list(info.rows["hollow"]) == [False, False, True]
    named = {name for each in info.texts for name in each.rows["text"]}
    assert named == {"the unmodified model", "topk keep_rate=0.5", "tome r=8"}
    spec = draw_points(info).to_dict()
    kinds = [layer["mark"]["type"] for layer in spec["layer"]]
    assert kinds == ["rule", "rule", "point", "point", "text", "text"]
    title = spec["layer"][2]["encoding"]["x"]["axis"]["title"]
    assert title == "Time of a forward, ms (less is better)"
    assert vl_convert.vegalite_to_svg(spec).startswith("<svg")


def test_ends_of_lines_do_not_overlap() -> None:
    """Names beside lines that end close to each other keep a line's height apart, in the order of
    the ends; a long name is whole, in several lines, of which none is above the chart.
    """
    points = pd.DataFrame({"arm": list("abcd"), "x": 1.0, "speedup": [1.0, 1.001, 1.002, 1.4]})
    span = Extent(0.5, 2.0)
    found = line_ends(points, list("abcd"), span, 300)
    places = np.log(found["place"]) / np.log(4.0) * 300
    assert list(found["arm"]) == list("abcd")
    assert (np.diff(places) >= 14.9).all()
    long = [f"adaptivocab tokens=500 + larosa sparsity=0.{number}" for number in (3, 5)]
    found = line_ends(points.assign(arm=[*"ab", *long], speedup=1.99), ["a", *long], span, 300)
    assert [" ".join(label.split("\n")) for label in found["label"]] == ["a", *long]
    assert [label.count("\n") for label in found["label"]] == [0, 1, 1]
    first, second, third = np.log(found["place"] / 0.5) / np.log(4.0) * 300
    assert third <= 300
    assert (third - second, second - first) == pytest.approx((30, 30))


def test_names_that_would_cover_each_other_are_left_out() -> None:
    """Of forty arms at one place one is named; the others are in the hover text."""
    many = pd.DataFrame({"arm": [f"arm {number}" for number in range(40)]})
    many = many.assign(ms=1.0, worse=0.0, front=True)
    assert [len(each.rows) for each in pareto_info(many, TIME, LOSS, colors={}).texts] == [1]
