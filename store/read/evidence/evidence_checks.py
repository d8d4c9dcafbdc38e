"""Evidence worked out: the rule behind a verdict, every pair, the running estimate, and what would
show that it is noise.
"""

import json
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from store.derive.sample_store import TimedAttempt, mean_of_attempts, pool_attempts
from store.read.evidence.evidence import PointEvidence, TimedPairs
from sweeps.model.flags import split_flags
from sweeps.stats.evidence import halves, outlying, pair_logs, signs
from sweeps.stats.pooling import SpeedUp, within_process
from sweeps.stats.timing import Contrast
from sweeps.stats.visits import Visit, pool_visits
from sweeps.text.evidence import AttemptChecks, NoiseFinding, RuleLine, noise_findings, rule_lines


class CountCheck(NamedTuple):
    """Two counts of one thing."""

    what: str
    statement: str
    holds: bool | None
    """`None` where there is nothing to compare with."""


def count_checks(evidence: PointEvidence, timed: TimedPairs) -> list[CountCheck]:
    """What must hold of the newest attempt behind the answer, with the numbers of both sides."""
    last = timed.attempts[-1]
    stored = next(each for each in evidence.attempts if each.attempt == last.row.attempt)
    found = []
    for side in ("baseline", "arm"):
        ran, flags = stored.arms[side], split_flags(getattr(stored, f"{side}_flags"))
        if ran:
            found += _of_arm(
                side,
                ran,
                evidence.comparison.condition.batch_size,
                kept="token_trace_mismatch" not in flags,
            )
    device = last.data.event_seconds
    if last.series is None and device is not None:
        beyond = int(np.sum(device > last.table))
        share = (
            f"the device was at work {100 * float(np.median(device / last.table)):.1f} % of the"
            " wall (median)"
        )
        found.append(
            CountCheck(
                "Device time within the wall",
                f"{share}; longer than it in {beyond} of {device.size}",
                beyond == 0,
            )
        )
    equal = (
        "equal counts: the arm does the work of its baseline"
        if last.row.same_work
        else "the arm does other work than its baseline"
    )
    return [*found, CountCheck("Work of both", equal, None)]


def _of_arm(side: str, ran: Mapping[str, Any], requested: int, *, kept: bool) -> list[CountCheck]:
    batch = ran["batch"]
    if ran["tokens_final"] is None:  # of a model in a file
        macs = "not known" if ran["gmacs"] is None else f"{ran['gmacs']:.4g} GMACs of an item"
        return [CountCheck(f"Work, {side}", macs, None)]
    path = ", ".join(
        f"{tokens:,} after {len(list(own))}"
        for tokens, own in groupby(out for _, out in ran["trace"])
    )
    promise = "as the method promises" if kept else "against the promise of the method"
    tokens = f"{ran['tokens']:,} enter, {ran['tokens_final']:,} leave the last block, {promise}"
    macs = (
        f"{ran['gmacs']:.4g} GMACs of the network on these tokens, {ran['gmacs_overhead']:.3g} of"
        " the method itself"
    )
    return [
        CountCheck(
            f"Inputs of a forward, {side}",
            f"{batch} counted, {requested} requested",
            batch == requested,
        ),
        CountCheck(
            f"Tokens, {side}",
            tokens + (f"; tokens after so many blocks each: {path}" if path else ""),
            kept,
        ),
        CountCheck(f"Work, {side}", macs, None),
    ]


MAX_PREFIXES = 24
"""Numbers of rounds at which a running estimate is made, where there are fewer visits."""


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


def worked_rule(timed: TimedPairs) -> list[RuleLine]:
    """The rule behind the verdict by one metric, in numbers."""
    pairs_min = json.loads(timed.attempts[-1].row.protocol)["pairs_min"]
    return rule_lines(timed.pooling, timed.verdict, pairs_min=pairs_min, floor=timed.metric.floor)


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
                each.data.rounds(each.series, warmup_converged=each.warmup_converged).null(
                    each.row.baseline
                ),
                halves(each.table, *sides) if len(logs) > 1 else None,
                signs(logs),
                int(outlying(logs).sum()),
                len(logs),
                readings[each.row.attempt],
            )
        )
    nulls = [
        (each.speedup, each.verdict) for each in evidence.nulls if each.metric == timed.metric.name
    ]
    return noise_findings(checks, timed.pooling, mean_of_attempts(timed.attempts), nulls)


def shown_pairs(timed: TimedPairs) -> list[ShownPair]:
    """Every pair in the order of time."""
    found: list[ShownPair] = []
    for each in timed.attempts:
        logs = _logs(each)
        sides = [_means(each, arm) for arm in (each.row.baseline, each.row.arm)]
        rows = zip(logs.tolist(), outlying(logs).tolist(), *sides, strict=True)
        before = len(found)
        found += [
            ShownPair(before + index, each.row.attempt, index, *row)
            for index, row in enumerate(rows, 1)
        ]
    return found


def running_speedups(timed: TimedPairs) -> list[RunningSpeedUp]:
    """The pooled speed-up as pairs were added, visit by visit, inside each at up to `MAX_PREFIXES`
    places in all.

    The last is the stored one.
    """
    visits = [each.visit for each in timed.attempts]
    turns = [each.row.round for each in timed.attempts]
    most = max(MAX_PREFIXES // len(visits), 1)
    found: list[RunningSpeedUp] = []
    before, newest = 0, timed.attempts[-1]
    for place, (each, visit) in enumerate(zip(timed.attempts, visits, strict=True)):
        rounds = len(visit.arm)
        # those of before it was steady are shown and do not count
        before += len(each.table) - rounds
        for end in sorted({max(1, round(rounds * share / most)) for share in range(1, most + 1)}):
            last = Visit(
                visit.baseline[:end],
                visit.arm[:end],
                None if visit.equal is None else visit.equal[:end],
            )
            so_far = pool_visits(
                [*visits[:place], last], turns[: place + 1], newest.floor, run_sd=newest.run_sd
            ).speedup
            found.append(RunningSpeedUp(before + end, each.row.attempt, so_far))
        before += rounds
    return found


def attempt_speedups(timed: TimedPairs) -> list[tuple[int, SpeedUp]]:
    """Each attempt alone: its speed-up, with the interval that it would have alone."""
    return [(each.row.attempt, pool_attempts([each]).speedup) for each in timed.attempts]


def null_contrasts(timed: TimedPairs) -> list[NullContrast]:
    """Equal columns of every arm that an attempt timed twice in each round."""
    found = []
    for each in timed.attempts:
        fitted = each.data.rounds(each.series, warmup_converged=each.warmup_converged)
        nulls = {arm: fitted.null(arm) for arm in each.data.arms}
        found += [
            NullContrast(each.row.attempt, arm, null, within_process(null, each.row.size))
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
                rows += [
                    {
                        "number": before + place,
                        "attempt": each.row.attempt,
                        "reading": name,
                        "value": value,
                    }
                    for place, value in zip(at, values, strict=True)
                    if place is not None and value is not None
                ]
        before += len(each.table)
    return rows


def pair_rows(evidence: PointEvidence, metric: str) -> list[dict[str, Any]]:
    """Every pair by that metric in the order of time, as rows of a table: all times in seconds, as
    they were measured.

    Columns of an arm that was timed twice in each round are numbered. `place_` columns hold when in
    its round each ran, from 0.
    """
    orders = {each.attempt: each.order for each in evidence.attempts}
    rows: list[dict[str, Any]] = []
    for timed in evidence.timed:
        for each in timed.attempts if timed.metric.name == metric else ():
            sides = {"baseline": each.row.baseline, "arm": each.row.arm}
            columns = {
                side: [at for at, arm in enumerate(each.data.arms) if arm == index]
                for side, index in sides.items()
            }
            names = {
                at: side if len(own) == 1 else f"{side}_{number}"
                for side, own in columns.items()
                for number, at in enumerate(own, 1)
            }
            ratios = np.exp(_logs(each))
            for index, (line, ratio) in enumerate(zip(each.table, ratios, strict=True)):
                order = orders[each.row.attempt][index]
                row = {
                    "attempt": each.row.attempt,
                    "process": each.process,
                    "round": index + 1,
                    "ratio": float(ratio),
                }
                row |= {f"{name}_s": float(line[at]) for at, name in names.items()}
                device = each.data.event_seconds
                if device is not None and each.series is None:
                    row |= {
                        f"{name}_device_s": float(device[index, at]) for at, name in names.items()
                    }
                rows.append(row | {f"place_{name}": order.index(at) for at, name in names.items()})
    return rows


def _logs(each: TimedAttempt) -> Any:
    return pair_logs(each.table, each.data.arms, each.row.baseline, each.row.arm)


def _means(each: TimedAttempt, arm: int) -> list[float]:
    own = [column for column, index in enumerate(each.data.arms) if index == arm]
    return [float(value) for value in np.exp(np.log(each.table[:, own]).mean(axis=1))]
