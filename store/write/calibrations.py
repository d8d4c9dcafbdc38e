"""Calibrations: what differs between processes or visits, by environment and model size class,
estimated once and then carried by attempts.
"""

import time
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from math import log
from typing import Any

from sqlalchemy import Connection, Engine, Select, bindparam, select, update

from store.derive.effects import same_work
from store.derive.payloads import payload_of
from store.rows.row_mapping import insert_new
from store.rows.transactions import writing
from store.schema.tables import (
    ARM_RESULT,
    ATTEMPT,
    CALIBRATION,
    COMPARISON,
    EFFECT,
    PAIR,
    named,
    same_arm,
)
from store.views.public import TABLES
from sweeps.model.flags import split_flags, wrong
from sweeps.model.identity import digest
from sweeps.model.kinds import KINDS
from sweeps.model.metrics import METRICS
from sweeps.model.outcome import Outcome
from sweeps.stats.calibration import Calibration, fit_process_term, fit_visits, size_class
from sweeps.stats.timing import ANALYSIS_VERSION, Contrast
from sweeps.stats.visits import Spread

Together = tuple[str, str]
"""What contrasts of one process have in common: condition and host."""
ByComparison = Mapping[tuple[str, str], Mapping[str, Contrast]]
"""Contrasts of each process."""
MOVED = 0.05
"""By so little a spread of visits may differ from the one before."""
_SIZED = ATTEMPT.join(ARM_RESULT)
_NEWEST = (
    select(CALIBRATION.c.calibration_id)
    .where(
        CALIBRATION.c.environment == bindparam("environment"),
        CALIBRATION.c.size_class == bindparam("size_class"),
    )
    .order_by(CALIBRATION.c.created_at.desc(), CALIBRATION.c.calibration_id)
    .limit(1)
)
_MEASURED_BY = (
    select(ATTEMPT.c.id, ATTEMPT.c.calibration_id, ARM_RESULT.c.parameters)
    .select_from(_SIZED.join(PAIR))
    .where(
        PAIR.c.comparison_id.in_(bindparam("comparisons", expanding=True)),
        ATTEMPT.c.environment == bindparam("environment"),
    )
    .order_by(ATTEMPT.c.id, ARM_RESULT.c.arm)
)
_CARRY = (
    update(ATTEMPT)
    .where(ATTEMPT.c.id == bindparam("row"))
    .values(calibration_id=bindparam("newest"))
)

_LINK = TABLES["sweep_comparison"]
_SPREADS = (
    select(
        *named(EFFECT, "environment comparison_id metric visits_sd visits_freedom"),
        ARM_RESULT.c.parameters,
    )
    .select_from(
        EFFECT.join(_LINK, _LINK.c.comparison_id == EFFECT.c.comparison_id)
        .join(PAIR, PAIR.c.comparison_id == EFFECT.c.comparison_id)
        .join(ATTEMPT)
        .join(ARM_RESULT, same_arm(ARM_RESULT, PAIR, "baseline"))
    )
    .where(
        _LINK.c.sweep == bindparam("sweep"),
        ATTEMPT.c.environment == EFFECT.c.environment,
        EFFECT.c.verdict.not_in(["quarantined", "insufficient"]),
        EFFECT.c.visits_sd > 0,
    )
    .order_by(EFFECT.c.environment, EFFECT.c.comparison_id, EFFECT.c.metric)
    .distinct()
)


def newest_calibration(connection: Connection, outcome: Outcome, environment: str) -> str | None:
    """The calibration that an attempt with this outcome is recorded with; `None` where its size
    class has none in there.
    """
    if not KINDS[outcome.job.kind].sampled or not outcome.arms:
        return None
    return _newest(connection, environment, outcome.arms[0].parameters)


def recalibrate(connection: Connection, comparisons: Collection[str], environment: str) -> None:
    """Let the attempts at comparisons carry the newest calibration of their environment and size
    class.
    """
    found = connection.execute(
        _MEASURED_BY, {"comparisons": list(comparisons), "environment": environment}
    )
    attempts = {row.id: row for row in reversed(found.all())}  # that of the first arm stays
    newest = {
        size: _newest(connection, environment, size)
        for size in {row.parameters for row in attempts.values()}
    }
    changed = [
        row for row in attempts.values() if newest[row.parameters] not in (None, row.calibration_id)
    ]
    if changed:
        connection.execute(
            _CARRY, [{"row": row.id, "newest": newest[row.parameters]} for row in changed]
        )


def freeze_calibrations(
    engine: Engine, sweep: str, environments: Collection[str]
) -> list[dict[str, Any]]:
    """Estimate the terms from the attempts at the comparisons of the sweep of that name in each
    environment, and store them.

    Returns the columns of each; none of a size class that one process alone measured. Beside them
    stand `before`, the term that new attempts had so far (`None`: the default), and `null_tau`,
    that of the baseline against its own second slot, which is 0 where errors within a process are
    right. What attempts carry does not change.
    """
    with writing(engine) as connection:
        frozen: list[dict[str, Any]] = []
        for environment in sorted(environments):
            by_class: dict[str, list[Any]] = defaultdict(list)
            for row in connection.execute(_repeats(sweep, environment)):
                if not wrong(split_flags(row.flags)):
                    by_class[size_class(row.parameters)].append(row)
            for name, rows in sorted(by_class.items()):
                frozen += _frozen(connection, environment, name, rows)
        return frozen


def _frozen(
    connection: Connection, environment: str, name: str, rows: Sequence[Any]
) -> Iterator[dict[str, Any]]:
    """The columns of a calibration, which is stored unless it is already; nothing where one process
    measured all.
    """
    jobs, nulls = _contrasts(connection, rows)
    found = fit_process_term(
        [[list(processes.values()) for processes in job.values()] for job in jobs.values()]
    )
    if found is not None:
        made_of = {
            "attempts": sorted({row.digest for row in rows}),
            "size_class": name,
            "version": ANALYSIS_VERSION,
        }
        columns = _columns(found, environment, made_of, "processes")
        newest = _newest(connection, environment, rows[0].parameters)
        before = select(CALIBRATION.c.process_sd).where(CALIBRATION.c.calibration_id == newest)
        null = fit_process_term([[list(processes.values())] for processes in nulls.values()])
        beside = {
            "before": connection.execute(before).scalar(),
            "null_tau": None if null is None else null.tau,
        }
        insert_new(connection, CALIBRATION, [columns])
        yield {**columns, **beside}


def freeze_visits(engine: Engine, sweep: str) -> bool:
    """Estimate what visits differ by in each environment, from all comparisons of the sweep of that
    name, and store it. Returns whether some attempts carry another term from now on.

    One within `MOVED` of the newest is not stored, nor one beside a calibration by processes.
    """
    changed = False
    with writing(engine) as connection:
        spreads: dict[tuple[str, str], list[Any]] = defaultdict(list)
        for row in connection.execute(_SPREADS, {"sweep": sweep}):
            spreads[row.environment, size_class(row.parameters)].append(row)
        for (environment, name), rows in spreads.items():
            found = fit_visits([Spread(row.visits_sd, row.visits_freedom) for row in rows])
            of_newest = CALIBRATION.c.calibration_id == _newest(
                connection, environment, rows[0].parameters
            )
            newest = connection.execute(select(CALIBRATION).where(of_newest)).first()
            if found is not None and (newest is None or not _holds(newest, found)):
                made_of = {"spreads": [list(row) for row in rows], "size_class": name}
                columns = _columns(found, environment, made_of, "visits")
                insert_new(connection, CALIBRATION, [columns])
                changed = True
    return changed


def _holds(newest: Any, found: Calibration) -> bool:
    """Whether the newest calibration need not give way to another one of visits."""
    return newest.made_of == "processes" or abs(log(found.used / newest.process_sd)) <= MOVED


def _columns(
    found: Calibration, environment: str, source: Mapping[str, Any], made_of: str
) -> dict[str, Any]:
    return {
        "calibration_id": digest({**source, "environment": environment}),
        "made_of": made_of,
        "environment": environment,
        "size_class": source["size_class"],
        "created_at": time.time(),
        "process_sd": found.used,
        **{field: getattr(found, field) for field in ("tau", "freedom", "processes", "contrasts")},
        "tau_low": found.low,
        "tau_high": found.high,
    }


def _contrasts(
    connection: Connection, rows: Sequence[Any]
) -> tuple[Mapping[Together, ByComparison], ByComparison]:
    """Contrasts by condition and host, by comparison and metric, of each process; and those of
    baselines with themselves.
    """
    data: dict[int, Any] = {}
    jobs: dict[Together, dict[tuple[str, str], dict[str, Contrast]]] = defaultdict(
        lambda: defaultdict(dict)
    )
    nulls: dict[Together, dict[str, Contrast]] = defaultdict(dict)
    for row in rows:
        if row.attempt not in data:
            data[row.attempt] = payload_of(row.kind).load(connection, row.attempt)
        for metric in (METRICS[name] for name in KINDS[row.kind].metrics):
            series = metric.name if metric.series else None
            if series is None or series in data[row.attempt].series:
                rounds, block = data[row.attempt].rounds(series), (row.condition_id, row.host)
                jobs[block][row.comparison_id, metric.name][row.process] = rounds.contrast(
                    row.baseline, row.arm
                )
                if (null := rounds.null(row.baseline)) is not None:
                    nulls[row.condition_id, f"{row.host} {metric.name}"][row.process] = null
    return jobs, nulls


def _newest(connection: Connection, environment: str, parameters: int | None) -> str | None:
    found = connection.execute(
        _NEWEST, {"environment": environment, "size_class": size_class(parameters)}
    ).scalar()
    return None if found is None else str(found)


def _repeats(sweep: str, environment: str) -> Select[Any]:
    """What each process measured of the comparisons of a sweep whose arms do other work than their
    baseline, oldest first.
    """
    link, baseline, arm = (
        TABLES["sweep_comparison"],
        ARM_RESULT.alias("baseline"),
        ARM_RESULT.alias("arm"),
    )
    source = (
        PAIR.join(ATTEMPT)
        .join(COMPARISON)
        .join(link, link.c.comparison_id == PAIR.c.comparison_id)
        .join(baseline, same_arm(baseline, PAIR, "baseline"))
        .join(arm, same_arm(arm, PAIR))
    )
    columns = (
        *named(PAIR, "comparison_id attempt baseline arm"),
        *named(COMPARISON, "condition_id kind"),
        *named(ATTEMPT, "digest process host flags"),
        baseline.c.parameters,
    )
    wanted = (
        PAIR.c.failure.is_(None),
        ~same_work(baseline, arm),
        ATTEMPT.c.process.is_not(None),
        ATTEMPT.c.environment == environment,
    )
    return (
        select(*columns)
        .select_from(source)
        .where(link.c.sweep == sweep, *wanted)
        .order_by(ATTEMPT.c.id)
    )
