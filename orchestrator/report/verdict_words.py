"""Conclusions: those of the rows of the public views, see `sweeps.labels`."""

from typing import Any

from sweeps.labels import BITS, SPEEDUP, TOP1, Conclusion, conclude


def speed(row: Any) -> Conclusion:
    """What a row of the view `speedup` allows to conclude."""
    return conclude(SPEEDUP, row.speedup, row.speedup_low, row.speedup_high, verdict=row.verdict, floor=row.floor)


def drop(row: Any) -> Conclusion:
    """What a row of the view `accuracy` allows to conclude about top-1."""
    return conclude(TOP1, row.top1_drop, row.top1_drop_low, row.top1_drop_high, verdict=row.verdict, floor=row.floor)


def bits(row: Any) -> Conclusion:
    """What a row of the view `quality` allows to conclude about bits per byte."""
    bounds = (row.bits_per_byte_change, row.bits_per_byte_change_low, row.bits_per_byte_change_high)
    return conclude(BITS, *bounds, verdict=row.verdict, floor=row.floor)
