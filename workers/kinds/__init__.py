"""Job kinds: one file each, named like the kind, with one function `answer(job, **options) -> KindResult`."""

from typing import NamedTuple

from sweeps.outcome import ArmOutcome, Failure, Samples
from sweeps.predictions import Evaluation
from sweeps.text_scores import Scores


class KindResult(NamedTuple):
    """What a kind finds out about a job; the fields are those of `Outcome`."""

    arms: tuple[ArmOutcome, ...] = ()
    failures: tuple[Failure, ...] = ()
    samples: Samples | None = None
    evaluation: Evaluation | None = None
    scores: Scores | None = None
    readings: dict[str, float] = {}  # noqa: RUF012 - a named tuple's default, never changed
    flags: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
