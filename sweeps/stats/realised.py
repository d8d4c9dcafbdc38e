"""Realised share of several points: how much of the saving that MACs promise arrived for a method,
with what it rests on.
"""

from collections.abc import Iterable
from statistics import median
from typing import NamedTuple

from sweeps.number_format import count, is_missing


class RealisedShare(NamedTuple):
    """The shares of several points together."""

    median: float
    least: float
    most: float
    points: int
    """Of which a share is known."""


def realised_of(shares: Iterable[float | None]) -> RealisedShare | None:
    """The median and the range of the shares that are known; `None` where none is."""
    known = [share for share in shares if share is not None and not is_missing(share)]
    return RealisedShare(median(known), min(known), max(known), len(known)) if known else None


def realised_sentence(name: str, share: RealisedShare | None) -> str:
    """What arrives of a method's promise, as a sentence that begins with its name."""
    if share is None:
        return (
            f"{name}: its MACs promise nothing that could arrive (within 2 % of none), or are not"
            " known."
        )
    if share.points == 1:
        return f"{name}: {_percent(share.median)} of the promised saving arrives (1 point)."
    rests = f"{count(share.points, 'point')} from {_percent(share.least)} to {_percent(share.most)}"
    if share.median < 0:
        return (
            f"{name}: none of the promised saving arrives at the median, {_percent(share.median)}"
            f" ({rests})."
        )
    return (
        f"{name}: {_percent(share.median)} of the promised saving arrives at the median ({rests})."
    )


def _percent(share: float) -> str:
    """Whole per cent; a bound where more than the whole promise was lost."""
    return "below -100 %" if share < -1 else f"{100 * share + 0.0:.0f} %"
