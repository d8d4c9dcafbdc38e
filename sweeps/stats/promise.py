"""What saved MACs promise of a speed-up, and how much of it arrives."""

from math import log

from sweeps.model.metrics import SPEED_FLOOR


def macs_speedup(gmacs_baseline: float | None, gmacs: float | None) -> float | None:
    """The speed-up if time went with MACs; `gmacs` are those of the arm, its method's own included.
    `None` if one is not known.
    """
    return gmacs_baseline / gmacs if gmacs_baseline and gmacs else None


def realised_share(speedup: float | None, promise: float | None) -> float | None:
    """The log speed-up over the log of what the MACs promise: 1 is all of the promised saving,
    below 0 the arm is slower.

    `None` where one of them is not known, and where the promise is within 2 % of no change, since
    the share would be noise.
    """
    if not speedup or not promise or speedup <= 0 or promise <= 0:
        return None
    return (
        None if 1 / (1 + SPEED_FLOOR) <= promise <= 1 + SPEED_FLOOR else log(speedup) / log(promise)
    )
