"""Timings: how they are stored, and compared by attempts that are pooled; with what all stores of
raw data share.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from math import exp
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from sqlalchemy import Connection, Row, Table

from store.rows.row_mapping import finite
from store.rows.samples import (
    Times,
    Timings,
    pack_samples,
    pack_series,
    stored_samples,
    timings,
    unpack_samples,
)
from store.schema.tables import SAMPLE, SAMPLE_SERIES
from sweeps.model.flags import quarantine_reasons, split_flags, warmup_converged, wrong
from sweeps.model.kinds import KindSpec
from sweeps.model.metrics import METRICS, MetricSpec
from sweeps.model.outcome import Outcome
from sweeps.stats import timing
from sweeps.stats.pooling import SpeedUp, Verdict, mean_contrast, mean_disagrees
from sweeps.stats.timing import Contrast
from sweeps.stats.visits import FLOOR, RUN_SD, SAME_RUN_SD, Pooling, Visit, pool_visits
from sweeps.stats.visits import Spread as VisitSpread

T = TypeVar("T")
StoredPair = Row[Any]
"""What one attempt holds for a comparison: a row of `store.derive.effects.PAIRS`."""
Load = Callable[[int], T]
"""Reads the raw data of an attempt."""
Figures = Iterator[tuple[MetricSpec, dict[str, Any]]]
"""For each metric its columns of `effect_row`."""


_Task = TypeVar("_Task")
_Result = TypeVar("_Result")
Compute = Callable[[Connection, Sequence[_Task]], list[_Result]]
"""The results of tasks, in their order; the connection reads raw data, which never change."""


class Spread(Protocol):
    """Computes the results of tasks, in their order."""

    def __call__(
        self, compute: Compute[_Task, _Result], connection: Connection, tasks: Sequence[_Task], /
    ) -> list[_Result]: ...


def compute_here(
    compute: Compute[_Task, _Result], connection: Connection, tasks: Sequence[_Task]
) -> list[_Result]:
    """In this process, within its transaction."""
    return compute(connection, tasks)


class PayloadStore(ABC, Generic[T]):
    """How one field of `Outcome` with raw data is stored and compared, for a kind of job."""

    analysis_version: int
    """Raised when a derived number may change."""
    table: Table
    """Has a row or more for each attempt with such data."""
    size: str
    """Column of `table` that counts what was measured; of several rows the largest."""

    def __init__(self, kind: KindSpec) -> None:
        self.kind = kind

    @abstractmethod
    def read(self, outcome: Outcome) -> T | None:
        """The raw data of an outcome. Raises `ValueError` if they contradict themselves."""

    @abstractmethod
    def rows(self, outcome: Outcome) -> list[tuple[Table, dict[str, Any]]]:
        """The rows that store them, without the attempt."""

    @abstractmethod
    def load(self, connection: Connection, attempt: int) -> T:
        """What `rows` stored."""

    @abstractmethod
    def missing(self, data: T | None, arm: int) -> str | None:
        """What an outcome holds of an arm instead of a measurement; `None` if it holds one."""

    @abstractmethod
    def used(self, pairs: Sequence[StoredPair]) -> list[StoredPair]:
        """The rows that a comparison is derived from, oldest first; empty where none was
        measured.
        """

    @abstractmethod
    def compare(self, used: Sequence[StoredPair], load: Load[T]) -> Figures:
        """The figures of a comparison."""


def measured_pairs(pairs: Sequence[StoredPair]) -> list[StoredPair]:
    """The rows that hold a measurement; those of quarantined attempts only if there are no
    others.
    """
    measured = [row for row in pairs if row.failure is None]
    return [row for row in measured if not quarantine_reasons(split_flags(row.flags))] or measured


def trusted_pairs(pairs: Sequence[StoredPair]) -> list[StoredPair]:
    """The rows whose measurement no flag marks as wrong; all of `measured_pairs` if there are no
    others.
    """
    measured = measured_pairs(pairs)
    columns = ("flags", "baseline_flags", "arm_flags")
    return [
        row
        for row in measured
        if not any(wrong(split_flags(getattr(row, name))) for name in columns)
    ] or measured


def quarantined(used: Sequence[StoredPair]) -> bool:
    """Whether all that a comparison is derived from was measured while the machine was slowed, so
    that it has no verdict.
    """
    return all(quarantine_reasons(split_flags(row.flags)) for row in used)


class SampleStore(PayloadStore[Timings]):
    """Timings in interleaved rounds: attempts on one host are pooled."""

    analysis_version = timing.ANALYSIS_VERSION
    table, size = SAMPLE, "rounds"

    def read(self, outcome: Outcome) -> Timings | None:
        return None if outcome.samples is None else timings(outcome.samples)

    def rows(self, outcome: Outcome) -> list[tuple[Table, dict[str, Any]]]:
        if outcome.samples is None:
            return []
        series = [(SAMPLE_SERIES, columns) for columns in pack_series(outcome.samples)]
        return [(SAMPLE, pack_samples(outcome.samples)), *series]

    def load(self, connection: Connection, attempt: int) -> Timings:
        found = stored_samples(connection, attempt)
        assert found is not None, f"attempt {attempt} counts as timed"
        return unpack_samples(*found)

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
        """Those whose two arms ran with the same implementations as in the newest; right ones alone
        if they have enough pairs.
        """
        used = _of_one_implementation(trusted_pairs(pairs))
        return _of_one_implementation(measured_pairs(pairs)) if short_of_pairs(used) else used

    def timed(
        self, used: Sequence[StoredPair], load: Load[Timings]
    ) -> Iterator[tuple[MetricSpec, list["TimedAttempt"]]]:
        """The attempts by each metric that all of them hold: one new token has no time per output
        token after the first.
        """
        for spec in (METRICS[name] for name in self.kind.metrics):
            if all(_series(load(row.attempt), spec) for row in used):
                series = spec.name if spec.series else None
                yield spec, [TimedAttempt(row, load(row.attempt), series) for row in used]

    def compare(self, used: Sequence[StoredPair], load: Load[Timings]) -> Figures:
        for spec, attempts in self.timed(used, load):
            on_device = (
                [] if spec.series else [each.data.on_device(each.row.arm) for each in attempts]
            )
            device_times = [times for times in on_device if times is not None]
            pooling = pool_attempts(attempts)
            found, slow, mean = pooling.speedup, pooling.slow, mean_of_attempts(attempts)
            flags = {
                "runs_disagree": pooling.disagree,
                "mean_disagrees": mean_disagrees(mean, found),
                "slow_state": pooling.state == "slow",
                "states_differ": pooling.states_differ,
            }
            yield (
                spec,
                {
                    "baseline_value": _median_ms(
                        [each.times(each.row.baseline) for each in attempts]
                    ),
                    "arm_value": _median_ms([each.times(each.row.arm) for each in attempts]),
                    "device_value": _median_ms(device_times) if device_times else None,
                    "effect": found.value,
                    "effect_low": found.low or None,  # 0 and infinity stand for too few pairs
                    "effect_high": finite(found.high),
                    "effect_se": finite(found.se),
                    "effect_freedom": found.freedom,
                    "visits_sd": pooling.between.sd,
                    "visits_freedom": pooling.between.freedom,
                    "effect_slow": slow and slow.value,
                    "effect_slow_low": slow and slow.low,
                    "effect_slow_high": slow and finite(slow.high),
                    "ratio_of_means": exp(mean.effect),
                    "calibration_id": attempts[-1].row.calibration_id,
                    "processes": json.dumps(sorted({each.process for each in attempts})),
                    "n": found.pairs,
                    "rounds": len(attempts),
                    "verdict": stored_verdict(used, found),
                    "host_speed": pooling.host_speed,
                    "flags": ",".join(name for name, raised in flags.items() if raised),
                },
            )


class TimedAttempt(NamedTuple):
    """What one attempt contributes to a comparison by one metric."""

    row: StoredPair
    data: Timings
    series: str | None
    """Of `data`, that holds the metric; `None`: the wall times."""

    @property
    def visit(self) -> Visit:
        """Its rounds; where warm-up had not converged, the later half of them."""
        columns, table = np.asarray(self.data.arms), self.converged_table
        others = sorted(int(arm) for arm in (self.row.equal_arms or "").split(",") if arm)
        equal = [table[:, columns == arm][:, :1] for arm in others]
        baseline, own = (table[:, columns == arm] for arm in (self.row.baseline, self.row.arm))
        return Visit(baseline, own, np.hstack(equal) if equal else None)

    @property
    def floor(self) -> VisitSpread:
        """What visits are assumed to differ by: as calibrated, where the arm does other work than
        its baseline, and unless the visits of other comparisons show less than is assumed.
        """
        if self.row.same_work or self.row.calibration_id is None:
            return FLOOR
        if self.row.floor_made_of == "processes":
            return FLOOR._replace(sd=self.row.floor_process_sd)
        visits = VisitSpread(self.row.floor_process_sd, self.row.floor_freedom)
        return max(visits, FLOOR, key=lambda spread: spread.freedom)

    @property
    def run_sd(self) -> float:
        """What runs are assumed to differ by beyond their visits."""
        return SAME_RUN_SD if self.row.same_work else RUN_SD

    @property
    def process(self) -> str:
        return self.row.process or f"attempt {self.row.attempt}"

    @property
    def warmup_converged(self) -> bool:
        return warmup_converged(split_flags(self.row.flags))

    def times(self, arm: int) -> Times:
        """The times of an arm in seconds, shape [samples]."""
        return self.data.of(arm, self.series)

    @property
    def table(self) -> Times:
        """The times of all columns in seconds, shape [rounds, columns]."""
        return self.data.seconds if self.series is None else self.data.series[self.series]

    @property
    def converged_table(self) -> Times:
        """Of it the later half, where warm-up had not converged."""
        return self.table[0 if self.warmup_converged else len(self.table) // 2 :]


def pool_attempts(attempts: Sequence[TimedAttempt]) -> Pooling:
    """The speed-up of the attempts, each of which is a visit, with its steps."""
    return pool_visits(
        [each.visit for each in attempts],
        [each.row.round for each in attempts],
        attempts[-1].floor,
        run_sd=attempts[-1].run_sd,
    )


def mean_of_attempts(attempts: Sequence[TimedAttempt]) -> Contrast:
    """Log ratio of mean times over all rounds, without the earlier half where warm-up had not
    converged.
    """
    return mean_contrast((each.visit.baseline, each.visit.arm) for each in attempts)


def _series(data: Timings, spec: MetricSpec) -> bool:
    """Whether timings hold samples of a metric."""
    return not spec.series or spec.name in data.series


def _median_ms(times: Sequence[Any]) -> float:
    return 1e3 * timing.median(np.concatenate(times)).value


def _of_one_implementation(rows: list[StoredPair]) -> list[StoredPair]:
    return [
        row
        for row in rows
        if (row.baseline_implementation, row.implementation)
        == (rows[-1].baseline_implementation, rows[-1].implementation)
    ]


def stored_verdict(used: Sequence[StoredPair], found: SpeedUp) -> Verdict:
    """That of the interval, unless the machine was slowed in all attempts or there are too few
    pairs.
    """
    if quarantined(used):
        return "quarantined"
    return "insufficient" if short_of_pairs(used) else found.verdict()


def short_of_pairs(measured: Sequence[StoredPair]) -> bool:
    """Whether some round has fewer pairs than the protocol of the newest attempt requests."""
    pairs: dict[int, int] = {}
    for row in measured:
        pairs[row.round] = pairs.get(row.round, 0) + row.size
    return any(
        reached < json.loads(measured[-1].protocol)["pairs_min"] for reached in pairs.values()
    )
