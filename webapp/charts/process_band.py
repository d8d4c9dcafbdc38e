"""Band around 1 that what differs between processes alone makes of one process' interval, and where its width comes from."""

from math import exp, inf
from typing import Any, NamedTuple

import altair as alt
import pandas as pd

from sweeps.number_format import age, is_missing
from sweeps.stats.pooling import ProcessTerm, process_half_width

BLUE = "#3f7fbf"
OPACITY = 0.13
UNCALIBRATED = "stated default, not measured on this machine; measured by: breakeven calibrate"


class ProcessBand(NamedTuple):
    """The band of some points: half its width as a logarithm, and where the term between processes comes from."""

    half_width: float
    source: str

    @property
    def note(self) -> str:
        """For people, such as `Blue: what differs between processes alone, ±4.3 % (stated default).`"""
        return f"Blue: what differs between processes alone, ±{100 * (exp(self.half_width) - 1):.2g} % ({self.source})."

    def chart(self) -> alt.Chart:
        """The band as a chart with the columns `process_low` and `process_high`."""
        ends = {"process_low": [exp(-self.half_width)], "process_high": [exp(self.half_width)]}
        made: alt.Chart = alt.Chart(pd.DataFrame(ends)).mark_rect(color=BLUE, opacity=OPACITY, clip=True)
        return made


TERM = ("process_sd", "process_freedom", "calibration_id", "calibrated_at")
"""Columns that a band rests on."""


def process_band(points: pd.DataFrame) -> ProcessBand | None:
    """The widest band of some rows of `webapp.queries.labelled_speedups`; `None` where no term is stored beside them."""
    newest = pd.to_datetime(points["measured_at"], utc=True).max()
    known = points.dropna(subset=["process_sd"])
    terms = known.drop_duplicates([name for name in TERM if name in known])  # many points have the same
    return max((_band(row, newest) for row in terms.itertuples()), default=None)


def _band(row: Any, newest: pd.Timestamp) -> ProcessBand:
    freedom: Any = getattr(row, "process_freedom", None)
    calibrated_at: Any = getattr(row, "calibrated_at", None)
    half_width = process_half_width(ProcessTerm(row.process_sd, inf if is_missing(freedom) else freedom))
    if is_missing(row.calibration_id):
        return ProcessBand(half_width, UNCALIBRATED)
    if is_missing(calibrated_at):
        return ProcessBand(half_width, f"calibration {row.calibration_id}")
    made = pd.Timestamp(calibrated_at, unit="s", tz="UTC")
    before = (newest - made).total_seconds()
    distance = f"{age(abs(before))} {'before' if before >= 0 else 'after'} the newest point"
    return ProcessBand(half_width, f"calibrated {made:%Y-%m-%d}, {distance}")
