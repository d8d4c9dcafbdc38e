"""Job kinds: one file each, named like the kind, with one function `run(job, **options) ->
KindResult`.
"""

from typing import NamedTuple

from sweeps.model.outcome import ArmOutcome, Failure, Predictions, Samples, TextScores
from sweeps.model.profile import ArmProfile, Peaks


class KindResult(NamedTuple):
    """What a kind measures of a job; the fields are those of `Outcome`."""

    arms: tuple[ArmOutcome, ...] = ()
    failures: tuple[Failure, ...] = ()
    samples: Samples | None = None
    predictions: Predictions | None = None
    text_scores: TextScores | None = None
    profiles: tuple[ArmProfile, ...] | None = None
    peaks: tuple[Peaks, ...] = ()
    system_metrics: dict[str, float] = {}  # noqa: RUF012 - a named tuple's default, never changed
    system_series: dict[str, tuple[float | None, ...]] | None = None
    flags: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
