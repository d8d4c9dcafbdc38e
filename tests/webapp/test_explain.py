"""The page Explain: the reasons of a profiled sweep, of one without a profile, the audit, and what
is not known.
"""

import re
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from orchestrator.report.data import load_report
from orchestrator.report.why import why_sections
from store.open.engine import connect_readonly
from store.read.audits import audit_of_sweep
from store.read.profiling import CLASSES_OF_TIME, ProfiledCondition, explain_profiles
from store.read.queries import sweep_rows
from sweeps.analysis.rows import CostModelRow
from sweeps.model.profile import Peaks
from tests.webapp import stored
from tests.webapp.conftest import Open
from tests.webapp.explained_store import TIMES, explained_store, import_impossible_trace
from tests.webapp.page_elements import charts, page_text
from tests.webapp.quality_stores import language_store
from webapp.charts.explain import (
    CLASS_COLORS,
    MAX_ACTIVITIES,
    activity_chart,
    activity_rows,
    cost_info,
    roofline_info,
    wall_chart,
)
from webapp.charts.points import draw_points
from webapp.display import texts
from webapp.screens import explain
from workers.methods.arm_labels import params_label

PAGE = "screens/explain.py"
TOPK = "topk keep_rate=0.5"


@pytest.fixture(scope="module")
def profiled(tmp_path_factory: pytest.TempPathFactory) -> str:
    return explained_store(tmp_path_factory.mktemp("explained") / "explain.db")


def conditions(url: str) -> list[ProfiledCondition]:
    engine = connect_readonly(url)
    profiles, effects = (sweep_rows(engine, "explained", view) for view in ("profile", "effect"))
    engine.dispose()
    return explain_profiles(profiles, effects, params_label)


def sides(url: str) -> list[explain.Sides]:
    found = conditions(url)
    by_label = {arm.label: arm.row.arm_id for each in found for arm in each.arms}
    return explain.sides_of(found, by_label[TOPK], by_label["dense"])


def test_the_reasons_are_those_of_the_report(opened: Open, profiled: str) -> None:
    """Every sentence of the report on an arm stands on its page, word for word."""
    page = opened(profiled, PAGE, sweep="explained", arm=TOPK, more="In words")
    words = unescape(page_text(page))
    lines = [
        line.text
        for section in why_sections(load_report(profiled, "explained"))
        for line in section.lines
    ]
    own = [line.partition(": ")[2] for line in lines if line.startswith(f"{TOPK}: ")]
    assert len(own) == 2
    assert all(f"{texts.typeset(text)}." in words for text in own)
    assert "At 64 px (16 tokens): " in words
    assert "At 224 px (196 tokens): " in words
    assert "profile: {}" not in words


def test_what_needs_a_reason_comes_first(opened: Open, profiled: str, filled: str) -> None:
    """The arm that falls short most, the largest size at which it does not pay; a size of the
    address is shown instead, with the operators of its profile; an unknown arm is reported.
    """
    app = opened(profiled, PAGE, sweep="explained", arm=TOPK)
    assert app.select_slider(key="size").value == "16"
    assert "64 px (16 tokens): totals" in page_text(app)
    words = page_text(opened(profiled, PAGE, sweep="explained", arm=TOPK, size="196"))
    assert "224 px (196 tokens): totals" in words
    app = opened(filled, PAGE, sweep="quickstart", arm="tomme")
    assert app.selectbox(key="arm").value == "tome r_ratio=0.02"
    assert "The address has arm=tomme, which is not known here; " in page_text(app)


def test_a_profile_explains_where_it_agrees_with_the_timing(tmp_path: Path) -> None:
    """Steps are the classes of time where differences have intervals; else those of the cost
    model, or one rest; the last one ends at the time that was measured.
    """
    for rounds in (False, True):
        url = explained_store(tmp_path / f"{rounds}.db", rounds=rounds)
        points, _ = stored.labelled_speedups("explained", url)
        own = points[points["arm"] == TOPK].sort_values("tokens")
        for row in texts.point_rows(explain.add_promises(own)):
            steps = explain.steps_of(row, sides(url), None)
            kinds = [step.kind for step in steps]
            assert kinds[:2] == ["baseline", "promise"]
            assert ("class" in kinds) == rounds
            assert steps[-1].end == row.arm_ms
            assert steps[-2].end == pytest.approx(row.arm_ms, rel=0.005)
            few = replace(row, verdict="insufficient")
            assert explain.steps_of(few, sides(url), None) == []


def test_without_a_profile_what_is_known_is_labelled(opened: Open, filled: str) -> None:
    """Promise and reach, the method's own work, the fit with its misfit and both break-evens; and
    the lines that profile it.
    """
    query = {"sweep": "quickstart", "arm": "tome r_ratio=0.02"}
    words = page_text(opened(filled, PAGE, **query, more="In words"))
    assert "At 224 px (196 tokens): 0.8" in words
    assert "the method itself adds 0.0013 GMACs, 0.1 % of the baseline" in words
    assert "is not known without a profile" in words
    assert "add the method truncate with the same counts" in words
    app = opened(filled, PAGE, **query, more="Cost model")
    assert "Fixed cost: " in page_text(app)
    assert any("jobs:\n  profile: {}<" in each.proto.body for each in app.get("html"))
    labels = charts(app)[0]["layer"][0]["encoding"]["y"]["scale"]["domain"]
    assert {"fixed cost added (model)", "measured"} <= set(labels)


def test_the_badge_lists_doubts_about_this_arm_alone(opened: Open, tmp_path: Path) -> None:
    """An imported trace that cannot be true is found on the arm that it is of, and no other."""
    url = explained_store(tmp_path / "s.db")
    import_impossible_trace(url)
    engine = connect_readonly(url)
    report = audit_of_sweep(engine, "explained", params_label)
    engine.dispose()
    for arm in ("tome r_ratio=0.06", TOPK):
        words = page_text(opened(url, PAGE, sweep="explained", arm=arm))
        own = [each for each in report.findings if arm in each.arms]
        assert words.count("To settle it: ") == len(own)
        shown = [each.rule for each in report.findings if f"{each.severity}: {each.rule} " in words]
        assert sorted(shown) == sorted(each.rule for each in own)
        assert ("contradiction: device_within_wall" in words) == (arm == TOPK)
        assert f"{len(report.findings) - len(own)} finding" in words


def test_parts_add_up_to_the_wall(profiled: str) -> None:
    """Classes of baseline and arm side by side, one pair for each size, smallest first; of three
    arms under the roof the two that are compared are named.
    """
    found = sides(profiled)
    parts = explain.wall_parts(found)
    assert list(dict.fromkeys(parts["place"])) == ["64 px (16 tokens)", "224 px (196 tokens)"]
    sums = parts.groupby(["place", "side"])["ms"].sum()
    assert sums["224 px (196 tokens)", "arm"] == pytest.approx(sum(TIMES[224][1].values()))
    assert list(parts["wall_ms"].unique()) == pytest.approx([0.8, 0.9, 3.6, 2.4])
    bars, _, totals = layers(wall_chart(parts))
    order = [
        f"{place}, {side}" for place in parts["place"].unique() for side in ("baseline", "arm")
    ]
    assert bars["encoding"]["y"]["scale"]["domain"] == order
    assert len(totals["rows"]) == 4
    names = {name for names in CLASSES_OF_TIME.values() for name in names.values()}
    assert names <= set(CLASS_COLORS)
    points = explain.roofline_points(found[-1])
    roles = {"dense": "baseline", TOPK: "arm", "tome r_ratio=0.06": "other arm"}
    assert dict(zip(points["label"], points["side"], strict=True)) == roles
    assert points[["gflops", "gb_per_s"]].notna().all().all()


def test_promise_and_ceiling_stand_beside_the_points() -> None:
    """The promise follows from MACs, the ceiling from an arm that only cuts and leaves the same
    tokens, unless it is wrong or has too few pairs.
    """
    macs = {"gmacs": 0.6, "gmacs_baseline": 1.2, "gmacs_total": 0.6}
    rows = [
        {"method": method, "tokens": 196, "tokens_final": 99, "speedup": ratio, **macs}
        for method, ratio in (("topk", 1.4), ("truncate", 1.7))
    ]
    ends = {"speedup_low": [1.3, 1.6], "speedup_high": [1.5, 1.8]}
    known = ["ceiling", "ceiling_low", "ceiling_high"]
    points = stored.point_frame(*rows).drop(columns=[*known, "ceiling_id"])
    points = points.assign(batch_size=1, arm=["topk", "truncate"], verdict="faster", **ends)
    found = explain.add_promises(points)
    assert list(found["promised"]) == [2.0, 2.0]
    assert found[known].to_numpy().tolist() == [[1.7, 1.6, 1.8]] * 2
    assert explain.most_surprising(found) == "topk"
    for wrong in ({"verdict": ["faster", "insufficient"]}, {"flags": ["", "thermal_slowdown"]}):
        assert explain.add_promises(points.assign(**wrong))[known].isna().all(axis=None)


NAN = float("nan")
TEXTS = (
    *("environment", "device", "device_name", "model", "weights", "dtype", "attention", "kind"),
    *("method", "params", "baseline", "baseline_id", "host", "metric", "curve_id", "verdict"),
)
COSTS = CostModelRow(
    **dict.fromkeys(TEXTS, "") | {"metric": "latency"},
    points=3,
    work_unit="GMAC",
    alpha=0.005,
    alpha_baseline=0.004,
    beta=0.016,
    beta_baseline=0.015,
)


def layers(chart: Any) -> list[dict[str, Any]]:
    spec = chart.to_dict()
    rows = [layer | {"rows": spec["datasets"][layer["data"]["name"]]} for layer in spec["layer"]]
    assert spec.get("height") is not None
    return rows


def test_points_outside_of_the_fit_are_hollow_and_no_line_reaches_them() -> None:
    """The lines span the points that count."""
    rows = [
        (side, work, 5.0, f"{work} px", work > 0.1)
        for work in (0.05, 0.2, 1.0)
        for side in ("baseline", "arm")
    ]
    points = pd.DataFrame(rows, columns=["side", "work", "ms", "size", "in_fit"])
    info = cost_info(points, COSTS)
    joined, line = info.lines
    assert set(joined.rows["line"]) == {"0.05 px", "0.2 px", "1.0 px"}
    assert line.rows["work"].min() == pytest.approx(0.2)
    assert list(info.rows["hollow"]) == [True, True, False, False, False, False]
    *_, full, hollow = layers(draw_points(info))
    assert (hollow["mark"]["filled"], full["mark"]["filled"]) == (False, True)
    assert len(cost_info(points, replace(COSTS, alpha=None)).lines) == 1


def test_the_roof_is_where_the_peaks_meet() -> None:
    """Its ridge lies at their ratio, and points above it stay in the picture."""
    row = {
        "label": "dense",
        "side": "baseline",
        "name": "baseline",
        "gflops": 50.0,
        "gb_per_s": 2.0,
        "limit": "neither",
    }
    peaks = Peaks(gflops=100, gb_per_s=10, dtype="float32")
    info = roofline_info(pd.DataFrame([row]), peaks)
    (roof,) = info.lines
    places = zip(roof.rows["intensity"], roof.rows["gflops"], strict=True)
    assert set(places) >= {(10.0, 100.0), (50.0, 100.0)}
    assert list(info.rows["intensity"]) == [25]
    _, marks, *texts = layers(draw_points(info))
    assert marks["encoding"]["shape"]["scale"]["range"] == ["square"]
    assert [each["rows"][0]["text"] for each in texts] == [
        "baseline",
        "100 GFLOP/s, measured",
        "10 GB/s, measured",
    ]
    with pytest.raises(ValueError, match="both known"):
        roofline_info(pd.DataFrame([{**row, "gb_per_s": NAN}]), peaks)


def test_kernels_with_the_largest_differences() -> None:
    """At most so many, longer ones first, long names shortened beside the bar and whole in the
    hover text.
    """
    names = [f"kernel_{number}" for number in range(20)] + ["x" * 200, "x" * 100]
    frame = pd.DataFrame(
        {"name": names, "difference_ms": range(-11, 11), "baseline_ms": 1.0, "arm_ms": 2.0}
    )
    rows = activity_rows(frame.assign(baseline_count=1, arm_count=1))
    assert rows["label"].nunique() == len(rows) == MAX_ACTIVITIES
    assert rows["label"].str.len().max() < 60
    assert rows["difference_ms"].iloc[0] == 10
    assert set(rows["name"]) >= {"x" * 200, "x" * 100}
    bars, _ = layers(activity_chart(rows))
    assert bars["encoding"]["y"]["scale"]["domain"] == list(rows["label"])


def test_an_unclear_point_has_no_headline_of_two_medians(opened: Open, filled: str) -> None:
    """Its interval stands there instead, and that it allows no answer."""
    query = {"sweep": "quickstart", "arm": "tome r_ratio=0.06", "size": "100"}
    words = page_text(opened(filled, PAGE, **query))
    assert re.search(r"tome r_ratio=0\.06: cannot tell, \d\.\d+× \[\d.*?\], ", words)
    assert not re.search(r"tome r_ratio=0\.06: [\d.]+ → [\d.]+ ms", words)
    clear = page_text(opened(filled, PAGE, **query | {"arm": "topk keep_rate=0.5"}))
    assert re.search(r"topk keep_rate=0\.5: [\d.]+ → [\d.]+ ms, promised", clear)


def test_times_are_named_by_their_metric(opened: Open, filled: str, tmp_path: Path) -> None:
    """A time per character is no time of a forward."""
    lengths = language_store(tmp_path / "lengths.db")
    for url, sweep, title in (
        (lengths, "lengths", "Time per character, ms"),
        (filled, "quickstart", "Latency, ms"),
    ):
        specs = str(charts(opened(url, PAGE, sweep=sweep, more="Cost model")))
        assert title in specs
        assert "of a forward, ms" not in specs
