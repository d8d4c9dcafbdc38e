"""Timings: how they are stored, and compared by attempts that are pooled."""

import json
from collections.abc import Sequence
from math import exp, inf
from typing import Any, NamedTuple

import numpy as np
from sqlalchemy import Connection, bindparam, select
from sqlmodel import SQLModel

from store.derive.payload_store import Figures, Load, PayloadStore, StoredPair, measured_pairs, quarantined, trusted_pairs
from store.row_mapping import finite
from store.sample_codec import Times, Timings, pack_samples, pack_series, timings, unpack_samples
from store.tables.planned import core
from store.tables.results import SampleRow, SampleSeriesRow
from sweeps.flags import settled, split_flags
from sweeps.metrics import METRICS, MetricSpec
from sweeps.outcome import Outcome
from sweeps.stats import timing
from sweeps.stats.mean_times import mean_contrast, mean_disagrees
from sweeps.stats.noise_checks import pair_logs
from sweeps.stats.pooling import Pooling, ProcessTerm, SpeedUp, Verdict, pool_stepwise, stated_term
from sweeps.stats.two_way import Contrast
from sweeps.stats.visits import FLOOR_SD, Visit, pool_visits

_SAMPLE, _SAMPLE_SERIES = core(SampleRow), core(SampleSeriesRow)
_SAMPLES = select(_SAMPLE).where(_SAMPLE.c.attempt == bindparam("attempt"))
_SERIES = select(_SAMPLE_SERIES.c.metric, _SAMPLE_SERIES.c.seconds).where(_SAMPLE_SERIES.c.attempt == bindparam("attempt"))


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
        used = _of_one_route(trusted_pairs(pairs))
        return _of_one_route(measured_pairs(pairs)) if short_of_pairs(used) else used

    def compare(self, used: Sequence[StoredPair], load: Load[Timings]) -> Figures:
        for spec in (METRICS[name] for name in self.kind.metrics):
            if not all(_series(load(row.attempt), spec) for row in used):
                continue  # one new token has no time per output token after the first
            attempts = [timed_attempt(row, load(row.attempt), spec) for row in used]
            on_device = [] if spec.series else [each.data.on_device(each.row.arm) for each in attempts]
            device_times = [times for times in on_device if times is not None]
            pooling = pool_attempts(attempts)
            found, mean = pooling.found, mean_of_attempts(attempts)
            flags = {
                "runs_disagree": pooling.disagree,
                "mean_disagrees": mean_disagrees(mean, found),
                "slow_state": pooling.visited is not None and pooling.visited.state == "slow",
            }
            yield (
                spec,
                {
                    "baseline_value": _median_ms([each.times(each.row.baseline) for each in attempts]),
                    "arm_value": _median_ms([each.times(each.row.arm) for each in attempts]),
                    "device_value": _median_ms(device_times) if device_times else None,
                    "effect": found.value,
                    "effect_low": found.low or None,  # 0 and infinity stand for too few pairs
                    "effect_high": finite(found.high),
                    "effect_se": finite(found.se),
                    "effect_freedom": found.freedom,
                    "ratio_of_means": exp(mean.effect),
                    "process_sd": None if pooling.visited else max(part.term.sd for part in pooling.parts),
                    "calibration_id": attempts[-1].term.calibration_id,
                    "process_loads": json.dumps(dict(zip(by_process(attempts), found.loads, strict=True))) if found.loads else None,
                    "n": found.pairs,
                    "rounds": found.looks,
                    "verdict": stored_verdict(used, found),
                    "host_speed": pooling.visited and pooling.visited.host_speed,
                    "flags": ",".join(name for name, raised in flags.items() if raised),
                },
            )


class TimedAttempt(NamedTuple):
    """What one attempt contributes to a comparison by one metric."""

    row: StoredPair
    data: Timings
    series: str | None
    """Of `data`, that holds the metric; `None`: the wall times."""
    contrast: Contrast
    """Log speed-up by this attempt alone, errors within its process."""
    term: ProcessTerm

    @property
    def is_visit(self) -> bool:
        """Whether it is one of several short ones, whose differences are estimated in place of stated."""
        return passes(self.row) > 1

    @property
    def visit(self) -> Visit:
        columns = np.asarray(self.data.arms)
        return Visit(self.table[:, columns == self.row.baseline], self.table[:, columns == self.row.arm])

    @property
    def floor_sd(self) -> float:
        return FLOOR_SD if self.row.calibration_id is None else float(self.row.process_sd)

    @property
    def process(self) -> str:
        return self.row.process or f"attempt {self.row.attempt}"

    @property
    def settled(self) -> bool:
        return settled(split_flags(self.row.flags))

    def times(self, arm: int) -> Times:
        """The times of an arm in seconds, shape [samples]."""
        return self.data.of(arm, self.series)

    @property
    def table(self) -> Times:
        """The times of all columns in seconds, shape [rounds, columns]."""
        return self.data.seconds if self.series is None else self.data.series[self.series]


def timed_attempt(row: StoredPair, data: Timings, spec: MetricSpec) -> TimedAttempt:
    """The contribution of an attempt by the metric, whose samples it has."""
    series = spec.name if spec.series else None
    if passes(row) > 1:
        logs = pair_logs(data.seconds if series is None else data.series[series], data.arms, row.baseline, row.arm)
        contrast = Contrast(float(np.median(logs)), inf, 1.0)
    else:
        contrast = data.rounds(series, settled=settled(split_flags(row.flags))).contrast(row.baseline, row.arm)
    return TimedAttempt(row, data, series, contrast, _term(row))


def passes(row: StoredPair) -> int:
    """How many visits to its job the protocol of an attempt plans."""
    return int(json.loads(row.protocol).get("passes", 1))


def by_process(attempts: Sequence[TimedAttempt]) -> dict[str, list[TimedAttempt]]:
    """The attempts of each process, in the order of their first ones."""
    found: dict[str, list[TimedAttempt]] = {}
    for each in attempts:
        found.setdefault(each.process, []).append(each)
    return found


def pool_attempts(attempts: Sequence[TimedAttempt]) -> Pooling:
    """The speed-up of the attempts with its steps; a process has the term of its newest attempt."""
    if any(each.is_visit for each in attempts):
        return pool_visits([each.visit for each in attempts], [each.row.round for each in attempts], attempts[-1].floor_sd)
    processes = by_process(attempts).values()
    contrasts = [[each.contrast for each in own] for own in processes]
    return pool_stepwise(contrasts, sum(each.row.size for each in attempts), [own[-1].term for own in processes])


def mean_of_attempts(attempts: Sequence[TimedAttempt]) -> Contrast:
    """Log ratio of mean times over all rounds, without the earlier half where warm-up had not converged."""
    sides = []
    for each in attempts:
        table, arms = each.table[0 if each.settled else len(each.table) // 2 :], np.asarray(each.data.arms)
        sides.append((table[:, arms == each.row.baseline], table[:, arms == each.row.arm]))
    return mean_contrast(sides)


def _term(row: StoredPair) -> ProcessTerm:
    """What differs between processes, by the calibration that the attempt carries where the arm does other work."""
    if row.same_work or row.calibration_id is None:
        return stated_term(same_work=row.same_work)
    return ProcessTerm(row.process_sd, row.freedom, row.calibration_id)


def _series(data: Timings, spec: MetricSpec) -> bool:
    """Whether timings hold samples of a metric."""
    return not spec.series or spec.name in data.series


def _median_ms(times: Sequence[Any]) -> float:
    return 1e3 * timing.median(np.concatenate(times)).value


def _of_one_route(rows: list[StoredPair]) -> list[StoredPair]:
    return [row for row in rows if (row.baseline_route, row.route) == (rows[-1].baseline_route, rows[-1].route)]


def stored_verdict(used: Sequence[StoredPair], found: SpeedUp) -> Verdict:
    """That of the interval, unless the machine was slowed in all attempts or there are too few pairs."""
    return "quarantined" if quarantined(used) else "insufficient" if short_of_pairs(used) else found.verdict()


def short_of_pairs(measured: Sequence[StoredPair]) -> bool:
    """Whether some round has fewer pairs than the protocol of the newest attempt requests."""
    pairs: dict[int, int] = {}
    for row in measured:
        pairs[row.round] = pairs.get(row.round, 0) + row.size
    return any(reached < json.loads(measured[-1].protocol)["pairs_min"] for reached in pairs.values())
