"""Fates: what an outcome says of each pair of its job, a measurement or why there is none."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from store.sample_codec import Timings
from sweeps.job import Job, Pair
from sweeps.outcome import ANSWERS, Failure, Outcome
from sweeps.stats import text_stats


class Fate(NamedTuple):
    """What an outcome says of one pair of its job: measured, or why not."""

    pair: Pair
    failure: Failure | None

    @property
    def answered(self) -> bool:
        return self.failure is None or self.failure.reason in ANSWERS


def fates(outcome: Outcome, timed: Timings | None) -> Iterator[Fate]:
    """What the outcome says of each pair of its job, in their order.

    A pair is measured if both arms have what their kind of job asks: positive, finite samples (of every metric), answers to the
    images, or finite scores. Otherwise the failure of the arm, of its baseline, or of the whole job tells why; where the worker
    gave none, that itself is an error.
    """
    by_arm: dict[int | None, Failure] = {}
    for failure in outcome.failures:
        by_arm.setdefault(failure.arm, failure)
    for pair in map(Pair._make, outcome.job.pairs):
        broken = [(index, why) for index in (pair.arm, pair.baseline) if (why := _lacking(outcome, timed, index))]
        if not broken:
            yield Fate(pair, None)
            continue
        said = next((by_arm[index] for index in (*(index for index, _ in broken), None) if index in by_arm), None)
        yield Fate(pair, said or _silent(outcome.job, *broken[0]))


def _lacking(outcome: Outcome, timed: Timings | None, arm: int) -> str | None:
    """What an outcome holds of an arm in place of a measurement; `None` if it holds one."""
    if outcome.job.kind == "accuracy":
        seen = outcome.predictions is not None and any(images.arm == arm for images in outcome.predictions.arms)
        return None if seen else "neither answers to images nor a failure"
    if outcome.job.kind == "quality":
        return None if text_stats.scored(outcome.text_scores, arm) else "neither a finite score nor a failure"
    if timed is None or arm not in timed.arms:
        return "neither samples nor a failure"
    if outcome.job.kind == "generation" and not timed.series:
        return "no times by metric"
    for metric in (None, *timed.series):
        times = timed.of(arm, metric)
        if not len(times) or not bool(np.all(np.isfinite(times) & (times > 0))):
            return "samples that are not positive and finite"
    return None


def _silent(job: Job, arm: int, lacking: str) -> Failure:
    return Failure(arm=arm, reason="error", message=f"the outcome holds {lacking} for arm {arm}, {job.arms[arm]}")
