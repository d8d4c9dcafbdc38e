"""Status of the pairs of an outcome's job: measured, or the failure that prevented it."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from store.derive.payloads import payload_of
from sweeps.model.job import Job, Pair
from sweeps.model.outcome import ANSWERING_FAILURES, Failure, Outcome


class PairStatus(NamedTuple):
    """What an outcome holds for one pair of its job: a measurement, or why there is none."""

    pair: Pair
    failure: Failure | None

    @property
    def answered(self) -> bool:
        return self.failure is None or self.failure.reason in ANSWERING_FAILURES


def pair_statuses(outcome: Outcome, data: Any) -> Iterator[PairStatus]:
    """The status of each pair of the job, in their order; `data` are the raw data of the outcome.

    A pair is measured if both arms have the data of their kind of job. Otherwise the failure of the
    arm, of its baseline, or of the whole job gives the reason; where the worker reported none, that
    itself is an error.
    """
    payload = payload_of(outcome.job.kind)
    by_arm: dict[int | None, Failure] = {}
    for failure in outcome.failures:
        by_arm.setdefault(failure.arm, failure)
    missing = {
        arm: payload.missing(data, arm)
        for arm in {arm for pair in outcome.job.pairs for arm in pair}
    }
    for pair in map(Pair._make, outcome.job.pairs):
        broken = [(index, why) for index in (pair.arm, pair.baseline) if (why := missing[index])]
        if not broken:
            yield PairStatus(pair, None)
            continue
        reported = next(
            (by_arm[index] for index in (*(index for index, _ in broken), None) if index in by_arm),
            None,
        )
        yield PairStatus(pair, reported or _unreported(outcome.job, *broken[0]))


def _unreported(job: Job, arm: int, missing: str) -> Failure:
    return Failure(
        arm=arm,
        reason="error",
        message=f"the outcome holds {missing} for arm {arm}, {job.arms[arm]}",
    )
