"""Derived rows: the effects of every metric of a comparison, computed by `sweeps.stats` from stored
raw data.
"""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import groupby
from math import exp, log
from statistics import mean
from typing import Any, TypeVar

from sqlalchemy import (
    ColumnElement,
    Connection,
    FromClause,
    Row,
    Select,
    String,
    and_,
    bindparam,
    cast,
    delete,
    func,
    select,
)

from store.derive.payloads import STORES, payload_of
from store.derive.sample_store import PayloadStore, Spread, StoredPair, compute_here, quarantined
from store.rows.row_mapping import ARM_CONDITION, insert_into, timestamp
from store.schema.tables import (
    ARM_RESULT,
    ATTEMPT,
    CALIBRATION,
    COMPARISON,
    EFFECT,
    METRIC,
    PAIR,
    REPORTED,
    named,
    same_arm,
)
from sweeps.model.flags import flags_of_attempts, split_flags
from sweeps.model.kinds import KINDS
from sweeps.model.metrics import METRICS, MetricSpec
from sweeps.model.outcome import SAME_COUNTS
from sweeps.stats.pooling import ALPHA, macs_speedup, ratio_verdict, realised_share, serial_reach

_Key = TypeVar("_Key", bound=tuple[str, ...])


def same_work(baseline: FromClause, arm: FromClause) -> ColumnElement[bool]:
    """Whether two rows of `arm_result` have equal counts, where these are known, under equal
    conditions: replicates, controls, methods without effect.
    """
    return and_(
        *(arm.c[name].is_not(None) for name in SAME_COUNTS),
        *(
            baseline.c[name].is_not_distinct_from(arm.c[name])
            for name in (*SAME_COUNTS, *ARM_CONDITION)
        ),
    )


AMOUNTS = tuple(spec for spec in METRICS.values() if spec.compared == "amount")
"""The declared ones; a stored pair has a column of each for the arm, and one for the baseline that
begins with `baseline_`."""


def amount_figures(used: Sequence[Row[Any]]) -> Iterator[tuple[MetricSpec, dict[str, Any]]]:
    """For each amount that attempts read on both sides its columns of `effect_row`.

    One reading has no interval: what is repeatable gets its verdict by the floor alone, the rest is
    `insufficient`. Several have one: from the least to the largest ratio of what is repeatable,
    else by Student's t of blocks of their logarithms. What is not repeatable has no verdict where
    the machine was slowed in all of them.
    """
    for spec in AMOUNTS:
        read = [(getattr(row, f"baseline_{spec.name}"), getattr(row, spec.name)) for row in used]
        sides = [(base, own) for base, own in read if base and own and base > 0 and own > 0]
        if not sides:
            continue
        logs = [log(base / own) for base, own in sides]
        effect, single = mean(logs), len(logs) == 1
        if spec.repeatable:
            low, high = min(logs), max(logs)
        else:
            reach = serial_reach(logs, ALPHA)
            low, high = effect - reach, effect + reach
        verdict: str = ratio_verdict(exp(low), exp(high), spec.floor)
        if not spec.repeatable and (single or quarantined(used)):
            verdict = "quarantined" if quarantined(used) else "insufficient"
        yield (
            spec,
            {
                "baseline_value": mean(base for base, _ in sides),
                "arm_value": mean(own for _, own in sides),
                "effect": exp(effect),
                "effect_low": None if single else exp(low),
                "effect_high": None if single else exp(high),
                "n": len(sides),
                "verdict": verdict,
            },
        )


_NO_FIGURES: Mapping[str, Any] = dict.fromkeys(EFFECT.c.keys())


def _pairs() -> Select[Any]:
    """What each attempt holds for a COMPARISON, oldest first; MACs of the stages of a run are
    metrics of the arm.
    """
    baseline, arm = ARM_RESULT.alias("baseline"), ARM_RESULT.alias("arm")

    def stage_metric(side: str, name: str) -> ColumnElement[Any]:
        here = (
            METRIC.c.attempt == PAIR.c.attempt,
            METRIC.c.arm == PAIR.c[side],
            METRIC.c.metric == name,
        )
        return select(METRIC.c.value).where(*here).scalar_subquery()

    def read_size(payload: type[PayloadStore[Any]]) -> ColumnElement[Any]:
        table = payload.table
        return (
            select(func.max(table.c[payload.size]))
            .where(table.c.attempt == ATTEMPT.c.id)
            .scalar_subquery()
        )

    stages = sorted({spec.stage for spec in METRICS.values() if spec.stage})
    sides = (
        ("gmacs_baseline", "baseline", "gmacs"),
        ("gmacs", "arm", "gmacs"),
        ("gmacs_overhead", "arm", "gmacs_overhead"),
    )
    columns = (
        *named(PAIR, "comparison_id attempt baseline arm failure"),
        *named(COMPARISON, "question_id prompt_tokens"),
        *named(
            ATTEMPT,
            "flags started_at ended_at source host process calibration_id round protocol"
            " project_commit",
        ),
        *(
            CALIBRATION.c[name].label(f"floor_{name}")
            for name in ("process_sd", "freedom", "made_of")
        ),
        func.coalesce(*(read_size(payload) for payload in STORES.values())).label("size"),
        *(
            baseline.c[name].label(f"baseline_{name}")
            for name in ("flags", "tokens", "implementation")
        ),
        baseline.c.gmacs.label("gmacs_baseline"),
        arm.c.flags.label("arm_flags"),
        same_work(baseline, arm).label("same_work"),
        _equal_arms(baseline).label("equal_arms"),
        *named(arm, ("tokens", "tokens_final", "gmacs", "gmacs_overhead", "threads", *REPORTED)),
        *(
            stage_metric(side, f"{name}_{stage}").label(f"{label}_{stage}")
            for stage in stages
            for label, side, name in sides
        ),
        *(stage_metric("arm", spec.name).label(spec.name) for spec in AMOUNTS),
        *(stage_metric("baseline", spec.name).label(f"baseline_{spec.name}") for spec in AMOUNTS),
    )
    source = (
        PAIR.join(COMPARISON)
        .join(ATTEMPT)
        .outerjoin(CALIBRATION)
        .outerjoin(baseline, same_arm(baseline, PAIR, "baseline"))
        .outerjoin(arm, same_arm(arm, PAIR))
    )
    wanted = (
        PAIR.c.comparison_id.in_(bindparam("comparisons", expanding=True)),
        ATTEMPT.c.environment == bindparam("environment"),
        COMPARISON.c.kind == bindparam("kind"),
    )
    return (
        select(*columns)
        .select_from(source)
        .where(*wanted)
        .order_by(PAIR.c.comparison_id, ATTEMPT.c.ended_at, ATTEMPT.c.id)
    )


def _equal_arms(baseline: FromClause) -> ColumnElement[Any]:
    """Numbers of the other arms of the attempt whose methods had no effect, joined by commas; NULL
    without one. Equal counts alone do not suffice: an arm may be slowed on purpose.
    """
    other = ARM_RESULT.alias("other")
    here = (
        other.c.attempt == PAIR.c.attempt,
        other.c.arm.not_in([PAIR.c.baseline, PAIR.c.arm]),
        other.c.flags.contains("no_effect"),
    )
    return (
        select(func.aggregate_strings(cast(other.c.arm, String), ","))
        .where(*here, same_work(baseline, other))
        .scalar_subquery()
    )


_PAIRS = _pairs()
_FORGET = delete(EFFECT).where(
    EFFECT.c.comparison_id.in_(bindparam("comparisons", expanding=True)),
    EFFECT.c.environment == bindparam("environment"),
)


def stored_pairs(
    connection: Connection, comparisons: Collection[str], environment: str, kind: str
) -> Sequence[StoredPair]:
    """What attempts in an environment hold for comparisons of a kind, by comparison, oldest
    first.
    """
    of = {"comparisons": list(comparisons), "environment": environment, "kind": kind}
    return connection.execute(_PAIRS, of).all()


def compare_groups(
    connection: Connection,
    pairs: Iterable[StoredPair],
    kind: str,
    key: Callable[[StoredPair], _Key],
) -> Iterator[tuple[_Key, list[StoredPair], MetricSpec, dict[str, Any]]]:
    """The figures by each metric of groups of stored pairs of a kind, those of equal `key`, with
    the pairs that they rest on; nothing is stored.
    """
    payload = payload_of(kind)
    for place, group in groupby(sorted(pairs, key=key), key):
        used = payload.used(list(group))
        load = cache(partial(payload.load, connection))
        for spec, figures in payload.compare(used, load) if used else ():
            yield place, used, spec, figures


def derive_effects(
    connection: Connection,
    comparisons: Sequence[str],
    environment: str,
    known: Mapping[int, Any] | None = None,
    kinds: Collection[str] = tuple(KINDS),
    *,
    spread: Spread = compute_here,
) -> None:
    """Derive the effects of `comparisons` in `environment`, one set for each host where a metric
    depends on the machine.

    `known` holds by attempt raw data that need not be read again; `kinds` are those of the
    comparisons, where the caller knows them.
    """
    groups: dict[tuple[str, str, str], list[StoredPair]] = {}
    for kind in (KINDS[name] for name in kinds):
        for pair in stored_pairs(connection, comparisons, environment, kind.name):
            key = (kind.name, pair.comparison_id, pair.host if kind.timed else "")
            groups.setdefault(key, []).append(pair)
    # those of one attempt together, whose raw data are then read once
    tasks = sorted(groups.items(), key=lambda task: (task[1][0].attempt, task[0]))
    rows = [
        {**row, "environment": environment}
        for row in spread(partial(_compute_effects, known or {}), connection, tasks)
    ]
    if rows:
        connection.execute(
            _FORGET,
            {
                "comparisons": list({row["comparison_id"] for row in rows}),
                "environment": environment,
            },
        )
        connection.execute(insert_into(EFFECT), rows)


def _compute_effects(
    known: Mapping[int, Any],
    connection: Connection,
    tasks: Sequence[tuple[tuple[str, str, str], Sequence[StoredPair]]],
) -> list[dict[str, Any]]:
    """The rows of comparisons, by kind, identity and host, less their environment."""
    data, rows = dict(known), []
    for (kind, comparison_id, host), pairs in tasks:
        payload = payload_of(kind)

        def load(attempt: int, payload: PayloadStore[Any] = payload) -> Any:
            if attempt not in data:
                data[attempt] = payload.load(connection, attempt)
            return data[attempt]

        same = {"comparison_id": comparison_id, "host": host}
        rows += [{**row, **same} for row in _effects(payload, pairs, load)]
    return rows


def _effects(
    payload: PayloadStore[Any], pairs: Sequence[Row[Any]], load: Callable[[int], Any]
) -> Iterator[dict[str, Any]]:
    """The rows of one comparison: a row for each metric, or with the newest failure if no attempt
    measured it.
    """
    used = payload.used(pairs)
    last = (used or pairs)[-1]
    common = {
        **_NO_FIGURES,
        "question_id": last.question_id,
        "measured_at": timestamp(last.ended_at),
        "source": "measured"
        if any(row.source == "measured" for row in used or pairs)
        else last.source,
        "analysis_version": payload.analysis_version,
        "flags": ",".join(sorted(flags_of_attempts([_flags(row) for row in used]))),
    }
    if not used:
        for name in payload.kind.metrics:
            yield {**common, **_declared(METRICS[name]), "failure": last.failure}
        return
    common |= {
        "threads": last.threads,
        "tokens": last.prompt_tokens
        or (last.tokens if last.baseline_tokens is None else last.baseline_tokens),
        "tokens_final": last.tokens_final,
        "pairs_min": json.loads(last.protocol)["pairs_min"] if payload.kind.timed else None,
        "rounds": len(used),
        "seconds": sum(row.ended_at - row.started_at for row in used),
        **{name: getattr(last, name) for name in REPORTED},
    }
    amounts = amount_figures(used) if payload.kind.timed else ()
    for spec, figures in (*payload.compare(used, load), *amounts):
        stage = f"_{spec.stage}" if spec.stage else ""
        macs = {
            name: getattr(last, f"{name}{stage}")
            for name in ("gmacs_baseline", "gmacs", "gmacs_overhead")
        }
        if any(value is not None for name, value in figures.items() if name != "n"):
            promise = macs_speedup(
                macs["gmacs_baseline"], (macs["gmacs"] or 0.0) + (macs["gmacs_overhead"] or 0.0)
            )
            share = (
                realised_share(figures.get("effect"), promise) if spec.compared == "ratio" else None
            )
            flags = _union((common["flags"], figures.get("flags")))
            yield {
                **common,
                **_declared(spec),
                **macs,
                **figures,
                "realised_share": share,
                "flags": flags,
            }


def _declared(spec: MetricSpec) -> dict[str, Any]:
    """The columns that a metric's declaration holds."""
    return {
        "metric": spec.name,
        "unit": spec.unit,
        "compared": spec.compared,
        "floor": spec.floor if spec.compared else None,
    }


def _flags(row: Row[Any]) -> list[str]:
    """Of an attempt: those of its job, and of both arms."""
    return [
        flag
        for joined in (row.flags, row.baseline_flags, row.arm_flags)
        for flag in split_flags(joined)
    ]


def _union(flags: Iterable[str | None]) -> str:
    """All reasons in some lists joined by commas."""
    return ",".join(sorted({flag for joined in flags if joined for flag in joined.split(",")}))


def union_flags(pairs: Iterable[StoredPair]) -> str:
    """The flags of pairs, joined by commas."""
    return ",".join(sorted({flag for pair in pairs for flag in _flags(pair)}))
