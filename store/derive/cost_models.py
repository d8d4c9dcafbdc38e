"""Derived rows: launch and work of a curve along tokens, and the break-even that they predict."""

from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import Row

from store.derive.curve_points import curve_of
from store.rows.row_mapping import finite
from store.schema.tables import COSTS
from sweeps.stats.curves.breakeven import fit_points, predicted
from sweeps.stats.curves.launch_work import launch_work_of
from sweeps.stats.timing import ANALYSIS_VERSION

_SECONDS = {"ms": 1e-3, "s": 1.0}
"""Units of the metrics that launch + work is a model of: times."""


def cost_model_row(rows: Sequence[Row[Any]]) -> Iterator[dict[str, Any]]:
    """The derived columns of the cost model of one curve of times along tokens, if it has a
    point.
    """
    if rows[-1].unit not in _SECONDS:
        return
    curve = curve_of(rows, "tokens")
    points = [point for point in curve.usable() if not point.no_op]
    if not points:
        return
    unit = "GMAC" if all(point.gmacs and point.gmacs_baseline for point in points) else "token"
    if unit == "token":
        points = [
            point.model_copy(update={"gmacs": point.x, "gmacs_baseline": point.x})
            for point in points
        ]
    found = fit_points(points)
    seconds = {row.comparison_id: row.baseline_value * _SECONDS[row.unit] for row in rows}
    columns = {
        "comparison_id": rows[-1].comparison_id,
        "points": len(points),
        "work_unit": unit,
        "verdict": "undetermined" if found is None else "fits" if found.adequate else "misfit",
        "misfit_p": None if found is None else found.misfit_p,
        "analysis_version": ANALYSIS_VERSION,
        **dict.fromkeys(f"{name}{end}" for name in COSTS for end in ("", "_low", "_high")),
        **dict.fromkeys(f"predicted_x{end}" for end in ("", "_low", "_high")),
    }
    if None not in [point.se for point in points]:
        costs = launch_work_of(points, seconds)
        for name, cost in zip(COSTS, costs[:4] if costs else (), strict=False):
            columns |= {
                name: finite(cost.value),
                f"{name}_low": finite(cost.low),
                f"{name}_high": finite(cost.high),
            }
    if found is not None and (place := predicted(found, points)) is not None:
        columns |= {
            "predicted_x": place.x,
            "predicted_x_low": place.low,
            "predicted_x_high": place.high,
        }
    yield columns
