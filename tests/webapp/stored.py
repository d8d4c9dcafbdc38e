"""What the app reads of a store and draws of it, and single points without a store."""

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import altair as alt
import pandas as pd

from webapp import queries
from webapp.charts.curves import speedup_chart
from webapp.charts.panels import panel_infos
from webapp.display.axis_curves import Axis
from webapp.display.texts import PointRow

_Given = ParamSpec("_Given")
_Found = TypeVar("_Found")


def read(
    url: str, function: Callable[_Given, _Found], *given: _Given.args, **named: _Given.kwargs
) -> _Found:
    """The result of a function that reads the store at `url`."""
    with queries.reading(url):
        return function(*given, **named)


def labelled_speedups(sweep: str, url: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    return read(url, queries.labelled_speedups, sweep)


def drawn_speedups(
    points: pd.DataFrame, break_evens: pd.DataFrame, axis: Axis = "tokens", **options: Any
) -> alt.VConcatChart:
    return speedup_chart(panel_infos(points, break_evens, axis, **options))


def a_point(**values: Any) -> PointRow:
    """A row of the view `speedup`, of which only these values matter."""
    texts = (
        *("environment", "device", "device_name", "model", "weights", "dtype", "attention"),
        *("kind", "method", "params", "baseline", "baseline_method", "baseline_id"),
        *("comparison_id", "question_id"),
        *("arm_id", "condition_id", "measured_at", "quality_pair_id"),
        *("flags", "host", "metric", "curve_id"),
    )
    return PointRow(**(dict.fromkeys(texts, "") | values))


def point_frame(*rows: dict[str, Any]) -> pd.DataFrame:
    """Such rows as a frame."""
    return pd.DataFrame([vars(a_point(**row)) for row in rows])
