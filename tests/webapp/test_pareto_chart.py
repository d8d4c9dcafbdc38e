"""The Pareto chart: intervals of both axes, named front, room for names."""

import pandas as pd
import pytest
import vl_convert

from webapp.charts.points import Measure, draw_points
from webapp.charts.quality import pareto_info

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


def test_names_that_would_cover_each_other_are_left_out() -> None:
    """Of forty arms at one place one is named; the others are in the hover text."""
    many = pd.DataFrame(
        {
            "arm": [f"arm {n}" for n in range(40)],
            "ms": [1.0] * 40,
            "worse": [0.0] * 40,
            "front": [True] * 40,
        }
    )
    assert [len(each.rows) for each in pareto_info(many, TIME, LOSS, colors={}).texts] == [1]


def test_nothing_to_draw() -> None:
    """Without an arm that has both figures there is an error that names them."""
    with pytest.raises(
        ValueError, match="no arm has both: Time of a forward, ms; Loss of top-1, points"
    ):
        pareto_info(arms(worse=[None] * 4), TIME, LOSS, colors={})
