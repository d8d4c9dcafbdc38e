"""Evidence worked out: the rule behind a verdict, every pair, the running estimate, and what would show that it is noise."""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from store.derive.sample_store import TimedAttempt, mean_of_attempts, pool_attempts
from store.evidence import PointEvidence, TimedPairs
from store.row_mapping import timestamp
from sweeps.noise_findings import AttemptChecks, NoiseFinding, noise_findings
from sweeps.stats.noise_checks import MOST_PREFIXES, halves, outlying, pair_logs, running_contrasts, signs
from sweeps.stats.pooling import ProcessTerm, SpeedUp, pool
from sweeps.stats.two_way import Contrast
from sweeps.verdict_rule import RuleLine, WorkedAttempt, rule_lines


class ShownPair(NamedTuple):
    """One pair of an attempt."""

    number: int
    """From 1 over all attempts, in the order of time."""
    attempt: int
    round: int
    log: float
    """Of baseline over arm."""
    outlying: bool
    baseline_s: float
    """Geometric mean of the baseline's columns in this round, as `arm_s`."""
    arm_s: float


class RunningSpeedUp(NamedTuple):
    """The speed-up by the pairs up to one of them."""

    number: int
    attempt: int
    found: SpeedUp


class NullContrast(NamedTuple):
    """Two equal columns of one arm of an attempt, by the errors within its process."""

    attempt: int
    arm: int
    contrast: Contrast
    found: SpeedUp
    """The same with an interval, by these errors alone."""


def worked_rule(evidence: PointEvidence, timed: TimedPairs) -> list[RuleLine]:
    """The rule behind the verdict by one metric, in numbers."""
    worked = [
        WorkedAttempt(each.row.attempt, each.process, len(each.table), each.contrast, each.settled) for each in timed.attempts
    ]
    pairs_min = json.loads(timed.attempts[-1].row.protocol)["pairs_min"]
    dates = {key: f"made {timestamp(row['created_at'])[:10]}" for key, row in evidence.calibrations.items()}
    return rule_lines(worked, timed.pooling, timed.verdict, pairs_min=pairs_min, floor=timed.metric.floor, calibrated=dates)


def findings(evidence: PointEvidence, timed: TimedPairs) -> list[NoiseFinding]:
    """What would show that the speed-up by one metric is noise."""
    readings = {each.attempt: each.readings for each in evidence.attempts}
    checks = []
    for each in timed.attempts:
        logs = _logs(each)
        sides = (each.data.arms, each.row.baseline, each.row.arm)
        checks.append(
            AttemptChecks(
                each.row.attempt,
                each.data.rounds(each.series, settled=each.settled).null(each.row.baseline),
                halves(each.table, *sides) if len(logs) > 1 else None,
                signs(logs),
                int(outlying(logs).sum()),
                len(logs),
                readings[each.row.attempt],
            )
        )
    nulls = [(each.speedup, each.verdict) for each in evidence.nulls if each.metric == timed.metric.name]
    return noise_findings(checks, timed.pooling, mean_of_attempts(timed.attempts), nulls)


def shown_pairs(timed: TimedPairs) -> list[ShownPair]:
    """Every pair in the order of time."""
    found: list[ShownPair] = []
    for each in timed.attempts:
        logs = _logs(each)
        sides = [_means(each, arm) for arm in (each.row.baseline, each.row.arm)]
        rows = zip(logs.tolist(), outlying(logs).tolist(), *sides, strict=True)
        before = len(found)
        found += [ShownPair(before + index, each.row.attempt, index, *row) for index, row in enumerate(rows, 1)]
    return found


def running_speedups(timed: TimedPairs) -> list[RunningSpeedUp]:
    """The pooled speed-up as pairs were added, attempt by attempt; the last is the stored one."""
    found: list[RunningSpeedUp] = []
    before, most = 0, max(MOST_PREFIXES // len(timed.attempts), 4)
    for place, each in enumerate(timed.attempts):
        if timed.pooling.visited is not None:
            so_far = pool_attempts(timed.attempts[: place + 1]).found
            found.append(RunningSpeedUp(so_far.pairs, each.row.attempt, so_far))
            continue
        sides = (each.data.arms, each.row.baseline, each.row.arm)
        for rounds, contrast in running_contrasts(each.table, *sides, settled=each.settled, most=most):
            pooling = pool_attempts([*timed.attempts[:place], each._replace(contrast=contrast)])
            found.append(RunningSpeedUp(before + rounds, each.row.attempt, pooling.found))
        before += len(each.table)
    return found


def attempt_speedups(timed: TimedPairs) -> list[tuple[int, SpeedUp]]:
    """Each attempt by itself: its speed-up, with the interval that it would have alone."""
    return [(each.row.attempt, pool([[each.contrast]], each.row.size, [each.term])) for each in timed.attempts]


def null_contrasts(timed: TimedPairs) -> list[NullContrast]:
    """Equal columns of every arm that an attempt timed twice in each round."""
    found = []
    for each in timed.attempts:
        fitted = each.data.rounds(each.series, settled=each.settled)
        nulls = {arm: fitted.null(arm) for arm in each.data.arms}
        exact = ProcessTerm(0.0)
        found += [
            NullContrast(each.row.attempt, arm, null, pool([[null]], each.row.size, [exact]))
            for arm, null in nulls.items()
            if null is not None
        ]
    return found


def readings_by_pair(evidence: PointEvidence, timed: TimedPairs) -> list[dict[str, Any]]:
    """Readings of the machine beside the pairs, by the names of `system_metrics.RATES`.

    Rows with `number`, that of the pair before, `attempt`, `reading` and `value`.
    """
    series = {each.attempt: each.series for each in evidence.attempts}
    rows, before = [], 0
    for each in timed.attempts:
        columns = series[each.row.attempt]
        at: Sequence[float | None] = columns.get("rounds", ())
        for name, values in columns.items():
            if name not in {"rounds", "seconds"}:
                known = [(place, value) for place, value in zip(at, values, strict=True) if place is not None and value is not None]
                rows += [
                    {"number": before + place, "attempt": each.row.attempt, "reading": name, "value": value}
                    for place, value in known
                ]
        before += len(each.table)
    return rows


def pair_rows(evidence: PointEvidence, metric: str) -> list[dict[str, Any]]:
    """Every pair by that metric in the order of time, as rows of a table: all times in seconds, as they were measured.

    Columns of an arm that was timed twice in each round are numbered. `place_` columns hold when in its round each ran, from 0.
    """
    orders = {each.attempt: each.order for each in evidence.attempts}
    rows: list[dict[str, Any]] = []
    for timed in evidence.timed:
        for each in timed.attempts if timed.metric.name == metric else ():
            sides = {"baseline": each.row.baseline, "arm": each.row.arm}
            columns = {side: [at for at, arm in enumerate(each.data.arms) if arm == index] for side, index in sides.items()}
            names = {
                at: side if len(own) == 1 else f"{side}_{number}"
                for side, own in columns.items()
                for number, at in enumerate(own, 1)
            }
            ratios = np.exp(_logs(each))
            for index, (line, ratio) in enumerate(zip(each.table, ratios, strict=True)):
                ran = {column: place for place, column in enumerate(orders[each.row.attempt][index])}
                row = {"attempt": each.row.attempt, "process": each.process, "round": index + 1, "ratio": float(ratio)}
                row |= {f"{name}_s": float(line[at]) for at, name in names.items()}
                device = each.data.event_seconds
                if device is not None and each.series is None:
                    row |= {f"{name}_device_s": float(device[index, at]) for at, name in names.items()}
                rows.append(row | {f"place_{name}": ran[at] for at, name in names.items()})
    return rows


def _logs(each: TimedAttempt) -> Any:
    return pair_logs(each.table, each.data.arms, each.row.baseline, each.row.arm)


def _means(each: TimedAttempt, arm: int) -> list[float]:
    own = [column for column, index in enumerate(each.data.arms) if index == arm]
    return [float(value) for value in np.exp(np.log(each.table[:, own]).mean(axis=1))]
