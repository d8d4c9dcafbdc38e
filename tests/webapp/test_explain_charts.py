"""Charts of the page Explain as Vega-Lite: rows, orders, hollow points, and what is refused."""

from dataclasses import replace
from typing import Any

import pandas as pd
import pytest

from sweeps.analysis.rows import CostModelRow
from sweeps.analysis.waterfall import TimeStep
from sweeps.model.profile import Peaks
from sweeps.text.explanation import step_label
from webapp.charts.explain import (
    MAX_ACTIVITIES,
    activity_chart,
    activity_rows,
    cost_info,
    roofline_info,
    waterfall_chart,
    waterfall_rows,
)
from webapp.charts.points import BLUE, ORANGE, SIDE_COLORS, draw_points

NAN = float("nan")
TEXTS = (
    *("environment", "device", "device_name", "model", "weights", "dtype", "attention", "kind"),
    *("method", "params", "baseline", "baseline_id", "host", "metric", "curve_id", "verdict"),
)
COSTS = CostModelRow(
    **dict.fromkeys(TEXTS, ""),
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


def test_a_waterfall_leads_from_one_time_to_the_other() -> None:
    """Savings and losses in their colours, with true signs; the arm in its own."""
    steps = [
        TimeStep("baseline", 0, 4),
        TimeStep("promise", 4, 2),
        TimeStep("class", 2, 3.2, "host"),
        TimeStep("arm", 0, 3.2),
    ]
    found = waterfall_rows(steps, "cpu", "#123456")
    assert list(found["label"]) == [step_label(step, "cpu") for step in steps]
    assert list(found["words"]) == ["4 ms", "−2 ms", "+1.2 ms", "3.2 ms"]
    assert list(found["color"]) == [SIDE_COLORS["baseline"], BLUE, ORANGE, "#123456"]
    assert waterfall_chart(found).to_dict()["layer"][0]["encoding"]["x2"] == {"field": "end"}


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
