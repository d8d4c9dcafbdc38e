"""Payloads: how the raw data of a kind of job are packed, stored, checked, and compared by `sweeps.stats`."""

import json
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

import numpy as np
from pydantic_core import to_json
from sqlalchemy import Connection, Row, bindparam, select
from sqlmodel import SQLModel

from store.row_mapping import finite
from store.sample_codec import Timings, pack_samples, pack_series, timings, unpack_samples
from store.tables.planned import core
from store.tables.results import ImagePredictionsRow, SampleRow, SampleSeriesRow, TextScoresRow
from sweeps.flags import settled, split_flags, wrong
from sweeps.kinds import KINDS, KindSpec, Payload
from sweeps.metrics import METRICS, MetricSpec
from sweeps.outcome import Outcome
from sweeps.predictions import Predictions
from sweeps.predictions import unpack as numbers
from sweeps.stats import classification, text_stats, timing
from sweeps.stats.pooling import ProcessTerm, pool
from sweeps.stats.quality import QUALITY_ANALYSIS_VERSION, Interval
from sweeps.stats.two_way import Contrast
from sweeps.text_scores import TextScores

T = TypeVar("T")
StoredPair = Row[Any]
"""What one attempt holds for a comparison: a row of `store.derive.effects.PAIRS`."""
Load = Callable[[int], T]
"""Reads the raw data of an attempt."""
Figures = Iterator[tuple[MetricSpec, dict[str, Any]]]
"""For each metric its columns of `effect_row`."""


class PayloadStore(ABC, Generic[T]):
    """How one field of `Outcome` with raw data is stored and compared, for a kind of job."""

    analysis_version: int
    """Raised when a derived number may change."""
    table: type[SQLModel]
    """Has a row for each attempt with such data."""
    size: str
    """Column of `table` that counts what was measured."""

    def __init__(self, kind: KindSpec) -> None:
        self.kind = kind

    @abstractmethod
    def read(self, outcome: Outcome) -> T | None:
        """The raw data of an outcome. Raises `ValueError` if they contradict themselves."""

    @abstractmethod
    def rows(self, outcome: Outcome) -> list[tuple[type[SQLModel], dict[str, Any]]]:
        """The rows that store them, without the attempt."""

    @abstractmethod
    def load(self, connection: Connection, attempt: int) -> T:
        """What `rows` stored."""

    @abstractmethod
    def missing(self, data: T | None, arm: int) -> str | None:
        """What an outcome holds of an arm in place of a measurement; `None` if it holds one."""

    @abstractmethod
    def used(self, pairs: Sequence[StoredPair]) -> list[StoredPair]:
        """The rows that a comparison is derived from, oldest first; empty where none was measured."""

    @abstractmethod
    def compare(self, used: Sequence[StoredPair], load: Load[T]) -> Figures:
        """The figures of a comparison."""


class SampleStore(PayloadStore[Timings]):
    """Timings in interleaved rounds: attempts on one host are pooled."""

    analysis_version = timing.ANALYSIS_VERSION
    table, size = SampleRow, "rounds"

    def read(self, outcome: Outcome) -> Timings | None:
        return None if outcome.samples is None else timings(outcome.samples)

    def rows(self, outcome: Outcome) -> list[tuple[type[SQLModel], dict[str, Any]]]:
        if outcome.samples is None:
            return []
        series = [(SampleSeriesRow, columns) for columns in pack_series(outcome.samples)]
        return [(SampleRow, pack_samples(outcome.samples)), *series]

    def load(self, connection: Connection, attempt: int) -> Timings:
        of = {"attempt": attempt}
        return unpack_samples(connection.execute(_SAMPLES, of).one(), connection.execute(_SERIES, of))

    def missing(self, data: Timings | None, arm: int) -> str | None:
        if data is None or arm not in data.arms:
            return "neither samples nor a failure"
        if not any(_series(data, METRICS[name]) for name in self.kind.metrics):
            return "no times by metric"
        for name in (None, *data.series):
            times = data.of(arm, name)
            if not len(times) or not bool(np.all(np.isfinite(times) & (times > 0))):
                return "samples that are not positive and finite"
        return None

    def used(self, pairs: Sequence[StoredPair]) -> list[StoredPair]:
        """Those whose two arms ran with the same implementations as in the newest; right ones alone if they have enough pairs."""
        used = _of_one_route(_trusted(pairs))
        return _of_one_route(_measured(pairs)) if _short(used) else used

    def compare(self, used: Sequence[StoredPair], load: Load[Timings]) -> Figures:
        for spec in (METRICS[name] for name in self.kind.metrics):
            if not all(_series(load(row.attempt), spec) for row in used):
                continue  # one new token has no time per output token after the first
            name = spec.name if spec.series else None
            data = [(row, load(row.attempt)) for row in used]
            on_device = [] if spec.series else [times for row, each in data if (times := each.on_device(row.arm)) is not None]
            processes: dict[str, list[Contrast]] = {}
            terms: dict[str, ProcessTerm] = {}
            for row, each in data:
                contrast = each.rounds(name, settled=settled(split_flags(row.flags))).contrast(row.baseline, row.arm)
                process = row.process or f"attempt {row.attempt}"
                processes.setdefault(process, []).append(contrast)
                terms[process] = _term(row)  # that of its newest attempt
            found = pool(processes.values(), sum(row.size for row in used), list(terms.values()))
            yield (
                spec,
                {
                    "baseline_value": _median_ms([each.of(row.baseline, name) for row, each in data]),
                    "arm_value": _median_ms([each.of(row.arm, name) for row, each in data]),
                    "device_value": _median_ms(on_device) if on_device else None,
                    "effect": found.value,
                    "effect_low": found.low or None,  # 0 and infinity stand for too few pairs
                    "effect_high": finite(found.high),
                    "effect_se": finite(found.se),
                    "effect_freedom": found.freedom,
                    "process_sd": max(term.sd for term in terms.values()),
                    "calibration_id": used[-1].calibration_id,
                    "process_loads": json.dumps(dict(zip(processes, found.loads, strict=True))) if found.loads else None,
                    "n": found.pairs,
                    "verdict": "insufficient" if _short(used) else found.verdict(),
                },
            )


class ItemStore(PayloadStore[T]):
    """Results for each image or text window: attempts are not pooled, since each reads the same items.

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

    def rows(self, outcome: Outcome) -> list[tuple[type[SQLModel], dict[str, Any]]]:
        data: T | None = getattr(outcome, self.field)
        return [] if data is None else [(self.table, {**self.columns(data), "payload": zlib.compress(to_json(data), level=6)})]

    def load(self, connection: Connection, attempt: int) -> T:
        table = core(self.table)
        return self.unpack(connection.execute(select(table.c.payload).where(table.c.attempt == attempt)).scalar_one())

    @classmethod
    def unpack(cls, packed: bytes) -> T:
        """The data in the column `payload`."""
        return cls.model.model_validate_json(zlib.decompress(packed))  # type: ignore[attr-defined, no-any-return]

    def used(self, pairs: Sequence[StoredPair]) -> list[StoredPair]:
        return [max(reversed(trusted), key=lambda row: row.size)] if (trusted := _trusted(pairs)) else []

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
    model, table, size = Predictions, ImagePredictionsRow, "images"
    problem = staticmethod(classification.predictions_problem)

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
        found = classification.compare_predictions(data, baseline, arm)
        drop = found.drop
        change = {"effect": 0 - drop.value, "effect_low": 0 - drop.high, "effect_high": 0 - drop.low}
        single = {
            "margin_change_p05": found.margin_change_p05,
            "mcnemar_p": drop.p,
            "only_baseline_correct": drop.lost,
            "only_arm_correct": drop.gained,
            "unreadable": len(data.unreadable),
        }
        figures: dict[str, dict[str, Any]] = {
            "top1": {"baseline_value": found.top1_baseline.value, **_bounded(found.top1), **change, "verdict": found.verdict()},
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
    model, table, size = TextScores, TextScoresRow, "characters"
    problem = staticmethod(text_stats.scores_problem)

    def columns(self, data: TextScores) -> dict[str, Any]:
        return {
            "windows": data.windows,
            "characters": int(numbers(data.characters, "i4").sum()),
            "complete": data.complete,
            "listing": data.listing,
        }

    def missing(self, data: TextScores | None, arm: int) -> str | None:
        return None if text_stats.scored(data, arm) else "neither a finite score nor a failure"

    def figures(self, data: TextScores, baseline: int, arm: int) -> dict[str, dict[str, Any]]:
        found = text_stats.compare_texts(data, baseline, arm)
        ends = zip(("effect", "effect_low", "effect_high"), found.change[:3], strict=True)
        change = {name: finite(value) for name, value in ends}
        sides = {
            "bits_per_byte": (found.bits_per_byte_baseline, found.bits_per_byte),
            "perplexity": (found.perplexity_baseline, found.perplexity),
            "tokens_scored": (found.tokens_baseline, found.tokens),
        }
        single = {"windows_skipped": found.unscored, "bytes_scored": found.bytes, "characters_scored": found.characters}
        figures: dict[str, dict[str, Any]] = {
            **{name: {"baseline_value": finite(base), "arm_value": finite(own)} for name, (base, own) in sides.items()},
            "top1_agreement": _bounded(found.agreement),
            "kl": _bounded(found.kl),
            **{name: {"arm_value": value} for name, value in single.items()},
        }
        figures["bits_per_byte"] |= {**change, "verdict": found.verdict()}
        return {name: {**columns, "n": found.windows} for name, columns in figures.items()}


STORES: Mapping[Payload, type[PayloadStore[Any]]] = {
    "samples": SampleStore,
    "predictions": PredictionStore,
    "text_scores": TextScoreStore,
}
"""By the payload of a kind."""

_SAMPLE, _SAMPLE_SERIES = core(SampleRow), core(SampleSeriesRow)
_SAMPLES = select(_SAMPLE).where(_SAMPLE.c.attempt == bindparam("attempt"))
_SERIES = select(_SAMPLE_SERIES.c.metric, _SAMPLE_SERIES.c.seconds).where(_SAMPLE_SERIES.c.attempt == bindparam("attempt"))


def payload_of(kind: str) -> PayloadStore[Any]:
    """How the raw data of a kind of job are stored."""
    spec = KINDS[kind]
    return STORES[spec.payload](spec)


def _term(row: StoredPair) -> ProcessTerm:
    """What differs between processes, by the calibration that the attempt carries."""
    return ProcessTerm() if row.calibration_id is None else ProcessTerm(row.process_sd, row.freedom, row.calibration_id)


def _series(data: Timings, spec: MetricSpec) -> bool:
    """Whether timings hold samples of a metric."""
    return not spec.series or spec.name in data.series


def _median_ms(times: Sequence[Any]) -> float:
    return 1e3 * timing.median(np.concatenate(times)).value


def _bounded(interval: Interval | None) -> dict[str, float | None]:
    """A figure and the ends of its interval, which may be missing."""
    if interval is None:
        return {}
    return {"arm_value": interval.value, "arm_low": finite(interval.low), "arm_high": finite(interval.high)}


def _measured(pairs: Sequence[StoredPair]) -> list[StoredPair]:
    return [row for row in pairs if row.failure is None]


def _trusted(pairs: Sequence[StoredPair]) -> list[StoredPair]:
    """The rows whose measurement no flag marks as wrong; all measured ones if there are no others."""
    measured = _measured(pairs)
    columns = ("flags", "baseline_flags", "arm_flags")
    return [row for row in measured if not any(wrong(split_flags(getattr(row, name))) for name in columns)] or measured


def _of_one_route(rows: list[StoredPair]) -> list[StoredPair]:
    return [row for row in rows if (row.baseline_route, row.route) == (rows[-1].baseline_route, rows[-1].route)]


def _short(measured: Sequence[StoredPair]) -> bool:
    """Whether some round has fewer pairs than the protocol of the newest attempt requests."""
    pairs: dict[int, int] = {}
    for row in measured:
        pairs[row.round] = pairs.get(row.round, 0) + row.size
    return any(reached < json.loads(measured[-1].protocol)["pairs_min"] for reached in pairs.values())
