"""The Pareto chart: intervals of both axes, named front, room for names."""

import pandas as pd
import pytest
import vl_convert

from webapp.charts.pareto import Measure, pareto_chart

TIME = Measure("ms", "Time of a forward, ms", scale="log")
LOSS = Measure("worse", "Loss of top-1, points")


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
    layers = pareto_chart(arms(), TIME, LOSS).to_dict()
    kinds = [layer["mark"]["type"] for layer in layers["layer"]]
    assert kinds == ["rule", "rule", "point", "text", "text"]
    rows = [layers["datasets"][layer["data"]["name"]] for layer in layers["layer"]]
    assert [len(each) for each in rows[:3]] == [3, 2, 3]
    assert [row["filled"] == "transparent" for row in rows[2]] == [False, False, True]
    named = {row["arm"] for each in rows[3:] for row in each}
    assert named == {"the unmodified model", "topk keep_rate=0.5", "tome r=8"}
    title = layers["layer"][2]["encoding"]["x"]["axis"]["title"]
    assert title == "Time of a forward, ms (less is better)"
    assert vl_convert.vegalite_to_svg(pareto_chart(arms(), TIME, LOSS).to_dict()).startswith("<svg")


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
    layers = pareto_chart(many, TIME, LOSS).to_dict()
    texts = [layer for layer in layers["layer"] if layer["mark"]["type"] == "text"]
    assert [len(layers["datasets"][layer["data"]["name"]]) for layer in texts] == [1]


def test_nothing_to_draw() -> None:
    """Without an arm that has both figures there is an error that names them."""
    with pytest.raises(
        ValueError, match="no arm has both: Time of a forward, ms; Loss of top-1, points"
    ):
        pareto_chart(arms(worse=[None] * 4), TIME, LOSS)
