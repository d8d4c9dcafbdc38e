"""Curves and strip have one x axis, whichever arm is in colour: equal scales, and grid lines at the
same pixels.
"""

from typing import Any

import pandas as pd
import pytest
import vl_convert

from tests.webapp import stored
from tests.webapp.saved_macs import saving
from tests.webapp.simulated import store_outcomes
from webapp.charts import panels
from webapp.charts.curves import draw_panel, draw_strip
from webapp.display.axis_curves import Axis, curves_along

Rows = tuple[pd.DataFrame, pd.DataFrame]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Rows:
    """Three keep rates at each of two sizes, so that there is a break-even along each axis."""
    path = tmp_path_factory.mktemp("saved") / "saved.db"
    store_outcomes(path, "saved", saving(64, (0.7, 0.6, 0.5)), saving(224, (1.5, 1.2, 0.9)))
    return stored.labelled_speedups("saved", str(path))


@pytest.fixture(scope="module")
def quickstart(filled: str) -> Rows:
    return stored.labelled_speedups("quickstart", filled)


def x_scale(spec: dict[str, Any]) -> dict[str, Any]:
    """The scale of x as Vega draws it."""
    (found,) = [
        scale for scale in vl_convert.vegalite_to_vega(spec)["scales"] if scale["name"] == "x"
    ]
    return {name: found.get(name) for name in ("type", "base", "domain", "zero", "nice")}


def grid(spec: dict[str, Any]) -> list[float]:
    """Pixels of the grid lines of x, from left to right."""

    def upright(node: dict[str, Any], inside: bool) -> list[float]:
        inside = inside or node.get("role") == "axis-grid"
        own = [node["x"]] if inside and "y2" in node and "x2" not in node else []
        return own + [place for child in node.get("items", []) for place in upright(child, inside)]

    return sorted(set(upright(vl_convert.vegalite_to_scenegraph(spec)["scenegraph"], inside=False)))


@pytest.mark.parametrize(
    ("sweep", "axis"),
    [
        ("quickstart", "tokens"),
        ("quickstart", "gmacs"),
        ("saved", "gmacs_saved"),
        ("saved", "tokens"),
    ],
)
def test_one_axis(request: pytest.FixtureRequest, sweep: str, axis: Axis) -> None:
    """With every arm in colour, and with each alone."""
    points, break_evens = request.getfixturevalue(sweep)
    arms = sorted(curves_along(points, break_evens, axis)[0]["arm"].unique())
    banded = 0
    for arm in (None, *arms):
        for view in panels.panel_infos(points, break_evens, axis, selected=arm):
            assert view.strip is not None
            above, below = (part(view).to_dict() for part in (draw_panel, draw_strip))
            banded += any(
                layer["encoding"].get("x2", {}).get("field") == "x_high" for layer in above["layer"]
            )
            assert x_scale(above) == x_scale(below)
            assert x_scale(above)["zero"] is not True
            assert len(grid(above)) >= 2
            assert grid(above) == grid(below)
    assert banded


def test_one_axis_in_a_file(saved: Rows) -> None:
    """What `plot` draws: curves and strip of each panel, below each other, have equal scales."""
    points, break_evens = saved
    (arm,) = curves_along(points, break_evens, "gmacs_saved")[0]["arm"].unique()
    spec = stored.drawn_speedups(points, break_evens, "gmacs_saved", selected=arm).to_dict()
    found = [
        scale
        for scale in vl_convert.vegalite_to_vega(spec)["scales"]
        if scale["name"].endswith("_x")
    ]
    assert len(found) == 4  # two sizes
    kinds = [
        {name: scale.get(name) for name in ("type", "domain", "zero", "nice")} for scale in found
    ]
    assert kinds == [kinds[0]] * 4
