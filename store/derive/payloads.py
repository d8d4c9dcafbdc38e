"""Payloads: for each kind of job how its raw data are stored and compared, and which pairs of an
outcome they answer.
"""

import zlib
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pydantic import TypeAdapter
from pydantic_core import to_json
from sqlalchemy import Connection, Table, select

from store.derive.sample_store import (
    Figures,
    Load,
    PayloadStore,
    SampleStore,
    StoredPair,
    T,
    trusted_pairs,
)
from store.rows.profiles import load_profiles, profile_rows
from store.rows.row_mapping import finite
from store.schema.tables import PREDICTIONS, PROFILE, TEXT_SCORES
from sweeps.model.identity import digest_of
from sweeps.model.job import Job, Pair
from sweeps.model.kinds import KINDS, Payload
from sweeps.model.metrics import METRICS
from sweeps.model.outcome import ANSWERING_FAILURES, Failure, Outcome, Predictions, TextScores
from sweeps.model.outcome import unpack as numbers
from sweeps.model.profile import ArmProfile
from sweeps.stats.quality import (
    QUALITY_ANALYSIS_VERSION,
    Interval,
    compare_predictions,
    compare_texts,
    predictions_problem,
    scored,
    scores_problem,
)


class ItemStore(PayloadStore[T]):
    """Results for each image or text window: attempts are not pooled, since each reads the same
    items.

    Of the unflagged attempts (or of all, if none is) the newest that read most is used.
    """

    model: type[T]
    field: str
    """Of `Outcome`."""
    problem: Callable[[Any], str | None]
    """How data of `model` contradict themselves."""

    @abstractmethod
    def columns(self, data: T) -> dict[str, Any]:
        """Columns of `table` beside attempt and payload."""

    def read(self, outcome: Outcome) -> T | None:
        data: T | None = getattr(outcome, self.field)
        if data is not None and (why := self.problem(data)):
            raise ValueError(f"in its {self.field} {why}")
        return data

    def rows(self, outcome: Outcome) -> list[tuple[Table, dict[str, Any]]]:
        data: T | None = getattr(outcome, self.field)
        return (
            []
            if data is None
            else [
                (
                    self.table,
                    {**self.columns(data), "payload": zlib.compress(to_json(data), level=6)},
                )
            ]
        )

    def load(self, connection: Connection, attempt: int) -> T:
        table = self.table
        return self.unpack(
            connection.execute(
                select(table.c.payload).where(table.c.attempt == attempt)
            ).scalar_one()
        )

    @classmethod
    def unpack(cls, packed: bytes) -> T:
        """The data in the column `payload`."""
        found: T = TypeAdapter(cls.model).validate_json(zlib.decompress(packed))
        return found

    def used(self, pairs: Sequence[StoredPair]) -> list[StoredPair]:
        return (
            [max(reversed(trusted), key=lambda row: row.size)]
            if (trusted := trusted_pairs(pairs))
            else []
        )

    def compare(self, used: Sequence[StoredPair], load: Load[T]) -> Figures:
        (row,) = used
        for name, columns in self.figures(load(row.attempt), row.baseline, row.arm).items():
            yield METRICS[name], columns

    @abstractmethod
    def figures(self, data: T, baseline: int, arm: int) -> dict[str, dict[str, Any]]:
        """By metric the columns of `effect_row`."""


class PredictionStore(ItemStore[Predictions]):
    """Predictions of images."""

    field = "predictions"
    analysis_version = QUALITY_ANALYSIS_VERSION
    model, table, size = Predictions, PREDICTIONS, "images"
    problem = staticmethod(predictions_problem)

    def columns(self, data: Predictions) -> dict[str, Any]:
        return {
            "images": data.images,
            "unreadable": len(data.unreadable),
            "classes": data.classes,
            "listing": data.listing,
        }

    def missing(self, data: Predictions | None, arm: int) -> str | None:
        seen = data is not None and any(images.arm == arm for images in data.arms)
        return None if seen else "neither predictions nor a failure"

    def figures(self, data: Predictions, baseline: int, arm: int) -> dict[str, dict[str, Any]]:
        found = compare_predictions(data, baseline, arm)
        drop = found.drop
        change = {
            "effect": 0 - drop.value,
            "effect_low": 0 - drop.high,
            "effect_high": 0 - drop.low,
        }
        single = {
            "margin_change_p05": found.margin_change_p05,
            "mcnemar_p": drop.p,
            "only_baseline_correct": drop.lost,
            "only_arm_correct": drop.gained,
            "unreadable": len(data.unreadable),
        }
        figures: dict[str, dict[str, Any]] = {
            "top1": {
                "baseline_value": found.top1_baseline.value,
                **_bounded(found.top1),
                **change,
                "verdict": found.verdict(),
            },
            "top5": {"baseline_value": found.top5_baseline, "arm_value": found.top5},
            "kl": _bounded(found.kl),
            "margin_change": _bounded(found.margin_change),
            **{name: {"arm_value": value} for name, value in single.items()},
        }
        return {name: {**columns, "n": found.images} for name, columns in figures.items()}


class TextScoreStore(ItemStore[TextScores]):
    """Likelihoods of text windows."""

    field = "text_scores"
    analysis_version = QUALITY_ANALYSIS_VERSION
    model, table, size = TextScores, TEXT_SCORES, "characters"
    problem = staticmethod(scores_problem)

    def columns(self, data: TextScores) -> dict[str, Any]:
        return {
            "windows": data.windows,
            "characters": int(numbers(data.characters, "i4").sum()),
            "complete": data.complete,
            "listing": data.listing,
        }

    def missing(self, data: TextScores | None, arm: int) -> str | None:
        return None if scored(data, arm) else "neither a finite score nor a failure"

    def figures(self, data: TextScores, baseline: int, arm: int) -> dict[str, dict[str, Any]]:
        found = compare_texts(data, baseline, arm)
        ends = zip(("effect", "effect_low", "effect_high"), found.change[:3], strict=True)
        change = {name: finite(value) for name, value in ends}
        sides = {
            "bits_per_byte": (found.bits_per_byte_baseline, found.bits_per_byte),
            "perplexity": (found.perplexity_baseline, found.perplexity),
            "tokens_scored": (found.tokens_baseline, found.tokens),
        }
        single = {
            "windows_skipped": found.skipped,
            "bytes_scored": found.bytes,
            "characters_scored": found.characters,
        }
        figures: dict[str, dict[str, Any]] = {
            **{
                name: {"baseline_value": finite(base), "arm_value": finite(own)}
                for name, (base, own) in sides.items()
            },
            "top1_agreement": _bounded(found.agreement),
            "kl": _bounded(found.kl),
            **{name: {"arm_value": value} for name, value in single.items()},
        }
        figures["bits_per_byte"] |= {**change, "verdict": found.verdict()}
        return {name: {**columns, "n": found.windows} for name, columns in figures.items()}


def _bounded(interval: Interval | None) -> dict[str, float | None]:
    """A figure and the ends of its interval, which may be missing."""
    if interval is None:
        return {}
    return {
        "arm_value": interval.value,
        "arm_low": finite(interval.low),
        "arm_high": finite(interval.high),
    }


_WALL = "_wall"
"""The metrics of a profile job are `PHASE_wall`."""
_Profiles = tuple[ArmProfile, ...]


class ProfileStore(PayloadStore[_Profiles]):
    """Profiles of the arms, of which the newest attempt counts: they explain times and measure
    none, so that nothing is pooled.
    """

    analysis_version = 1
    table, size = PROFILE, "forwards"

    def read(self, outcome: Outcome) -> _Profiles | None:
        return outcome.profiles

    def rows(self, outcome: Outcome) -> list[tuple[Table, dict[str, Any]]]:
        if not outcome.profiles:
            return []
        origin = digest_of(outcome.model_dump_json())
        return [
            row
            for profile in outcome.profiles
            for row in profile_rows(profile, origin, recorded_at=outcome.ended_at)
        ]

    def load(self, connection: Connection, attempt: int) -> _Profiles:
        return load_profiles(connection, attempt)

    def missing(self, data: _Profiles | None, arm: int) -> str | None:
        seen = {profile.phase for profile in data or () if profile.arm == arm}
        lacking = [name for name in self.kind.metrics if name.removesuffix(_WALL) not in seen]
        return f"no profile of {lacking[0].removesuffix(_WALL)} and no failure" if lacking else None

    def used(self, pairs: Sequence[StoredPair]) -> list[StoredPair]:
        return trusted_pairs(pairs)[-1:]

    def compare(self, used: Sequence[StoredPair], load: Load[_Profiles]) -> Figures:
        (row,) = used
        walls = {(profile.arm, profile.phase): profile.wall_s for profile in load(row.attempt)}
        for name in self.kind.metrics:
            sides = {
                side: _wall_ms(walls, getattr(row, side), name) for side in ("baseline", "arm")
            }
            yield (
                METRICS[name],
                {"baseline_value": sides["baseline"], "arm_value": sides["arm"], "n": row.size},
            )


def _wall_ms(walls: dict[Any, float | None], arm: int, metric: str) -> float | None:
    seconds = walls.get((arm, metric.removesuffix(_WALL)))
    return None if seconds is None else 1e3 * seconds


STORES: Mapping[Payload, type[PayloadStore[Any]]] = {
    "samples": SampleStore,
    "predictions": PredictionStore,
    "text_scores": TextScoreStore,
    "profiles": ProfileStore,
}
"""By the payload of a kind."""


def payload_of(kind: str) -> PayloadStore[Any]:
    """How the raw data of a kind of job are stored."""
    spec = KINDS[kind]
    return STORES[spec.payload](spec)


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
