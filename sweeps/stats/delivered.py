"""Delivered share: how much of the time saving that saved MACs promise was measured, of a point and of all points of a method."""

from collections.abc import Iterable
from math import log
from statistics import median
from typing import NamedTuple

from sweeps.metrics import SPEED_FLOOR
from sweeps.number_format import count, is_missing


def delivered_share(speedup: float | None, promise: float | None) -> float | None:
    """Log speed-up over the log of the speed-up that MACs promise: 1 is all of it, below 0 the arm is slower.

    `None` where one of the two is not known, and where the promise is within 2 % of nothing, since the share would be noise.
    """
    if speedup is None or promise is None or is_missing(speedup) or is_missing(promise) or promise <= 0 or speedup <= 0:
        return None
    return None if 1 / (1 + SPEED_FLOOR) <= promise <= 1 + SPEED_FLOOR else log(speedup) / log(promise)


class DeliveredShare(NamedTuple):
    """The shares of several points together."""

    median: float
    least: float
    most: float
    points: int
    """Of which a share is known."""

    @property
    def text(self) -> str:
        """`62 % (35 % to 80 %, 24 points)`: the median, the range and what it rests on; of one point its share alone."""
        if self.points == 1:
            return f"{_percent(self.median)} (1 point)"
        return f"{_percent(self.median)} ({_percent(self.least)} to {_percent(self.most)}, {count(self.points, 'point')})"


def delivered_of(shares: Iterable[float | None]) -> DeliveredShare | None:
    """The median and the range of the shares that are known; `None` where none is."""
    known = [share for share in shares if share is not None and not is_missing(share)]
    return DeliveredShare(median(known), min(known), max(known), len(known)) if known else None


def delivered_sentence(name: str, share: DeliveredShare | None) -> str:
    """What arrives of a method's promise, as a sentence that begins with its name."""
    if share is None:
        return f"{name}: its MACs promise nothing that could arrive (within 2 % of none), or are not known."
    rests = f"median of {count(share.points, 'point')}"
    if share.points > 1:
        rests += f", {_percent(share.least)} to {_percent(share.most)}"
    if share.median < 0:
        return f"{name}: nothing of the promised saving arrives, it costs time: {_percent(share.median)} ({rests})."
    return f"{name}: {_percent(share.median)} of the promised saving arrives ({rests})."


def _percent(share: float) -> str:
    """Whole per cent; a bound where more than the whole promise was lost."""
    return "below -100 %" if share < -1 else f"{100 * share + 0.0:.0f} %"
