"""Time left: how long the rest of a sweep takes, from the durations of its jobs that ended and the
estimates of all.
"""

import math
from collections.abc import Collection, Iterable
from typing import NamedTuple


class EndedJob(NamedTuple):
    """A job that was answered: its kind, its estimate (`sweeps.analysis.job_estimate`), and what it
    took, in seconds.
    """

    kind: str
    estimated_s: float
    took_s: float


class OpenJob(NamedTuple):
    """A job without an answer: its kind, its estimate in seconds, and whether it runs."""

    kind: str
    estimated_s: float
    runs: bool


def time_left(
    ended: Iterable[EndedJob], rest: Collection[OpenJob], *, since_s: float, starting: int = 0
) -> float | None:
    """Seconds until `rest` is measured, if its jobs take the same share of their estimates as those
    of their kind that ended.

    As many are taken to run side by side as run now, and `starting` more, which begin at once. What
    has run is taken off: at most `since_s`, the seconds since a job last ended. `None` before the
    first has ended, and where nothing is left.
    """
    took: dict[str, float] = {}
    estimated: dict[str, float] = {}
    for job in ended:
        took[job.kind] = took.get(job.kind, 0.0) + job.took_s
        estimated[job.kind] = estimated.get(job.kind, 0.0) + job.estimated_s
    if not (known := math.fsum(estimated.values())) or not rest:
        return None
    overall = math.fsum(took.values()) / known
    share = {kind: took[kind] / seconds for kind, seconds in estimated.items() if seconds}
    expected = [job.estimated_s * share.get(job.kind, overall) for job in rest]
    gone = [min(since_s, seconds) for job, seconds in zip(rest, expected, strict=True) if job.runs]
    beside = min(len(rest), max(1, len(gone) + starting))
    return (math.fsum(expected) - math.fsum(gone)) / beside
