"""Profiles and peaks on their way into the store and back: of attempts, of imported files, of
`breakeven doctor`.
"""

import time
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any

from sqlalchemy import Connection, Engine, Row, Table, select

from store.rows.row_mapping import environment_row, insert_into, insert_new
from store.rows.transactions import fetch, writing
from store.schema.tables import ENVIRONMENT, KERNEL, PEAK, PROFILE, PROFILE_TIME, named
from sweeps.model.identity import canonical, digest_of
from sweeps.model.outcome import Environment
from sweeps.model.profile import COUNTERS, Activities, ArmProfile, IntervalEstimate, Peaks

_BOUNDED = ("speedup", "profiled_speedup")
"""Fields of a profile with an interval: three columns of `profile_row`."""
_OWN = tuple(name for name in ArmProfile.model_fields if name in PROFILE.c and name not in _BOUNDED)
"""Fields of a profile that are columns of `profile_row`."""
_ENDS = ("", "_low", "_high")
_OF_ACTIVITY = tuple(name for name in Activities.model_fields if name != "counters")


def profile_rows(
    profile: ArmProfile, origin: str, **columns: str | float | None
) -> Iterator[tuple[Table, dict[str, Any]]]:
    """The rows of one profile, that of `profile_row` first; `origin` identifies the outcome or file
    that it is from.

    `columns` are further columns of `profile_row`. Raises `ValueError` for a counter that is not in
    `sweeps.model.profile.COUNTERS`.
    """
    profile_id = digest_of(
        f'{{"origin":{canonical(origin)},"profile":{profile.model_dump_json()}}}'
    )
    own = {name: getattr(profile, name) for name in _OWN}
    for name in _BOUNDED:
        own |= _ends(name, getattr(profile, name))
    yield (
        PROFILE,
        {**dict.fromkeys(PROFILE.c.keys()), **own, **columns, "profile_id": profile_id},
    )
    key = {"profile_id": profile_id, "attempt": None}
    for time_class, seconds in profile.times.items():
        change = _ends("change", profile.changes.get(time_class))
        yield PROFILE_TIME, {**key, "time_class": time_class, "seconds": seconds, **change}
    for rank, each in enumerate(profile.activities):
        if other := sorted(set(each.counters) - set(COUNTERS)):
            raise ValueError(f"{other[0]!r} is no counter; known are {', '.join(COUNTERS)}")
        activity = {name: getattr(each, name) for name in _OF_ACTIVITY}
        yield (
            KERNEL,
            {**key, "rank": rank, **activity, **dict.fromkeys(COUNTERS), **each.counters},
        )


def _ends(name: str, found: IntervalEstimate | None) -> dict[str, float | None]:
    """The columns of a figure with its interval."""
    values = (None, None, None) if found is None else (found.value, found.low, found.high)
    return {f"{name}{end}": value for end, value in zip(_ENDS, values, strict=True)}


def interval_estimate(
    value: float | None, low: float | None, high: float | None
) -> IntervalEstimate | None:
    """A figure and its interval; `None` where it is NULL."""
    return None if value is None else IntervalEstimate(value=value, low=low, high=high)


def record_profiles(
    connection: Connection,
    profiles: Iterable[ArmProfile],
    *,
    digest: str,
    **tied: str | None,
) -> int:
    """Store the profiles of an imported file, within the caller's write transaction. Returns how
    many were new.

    `digest` is the SHA-256 of the file: what was imported before is left as it is. `tied` are
    columns of `profile_row` that state which arm the file shows; all profiles show the same.
    """
    known = set(
        connection.execute(select(PROFILE.c.profile_id).where(PROFILE.c.digest == digest)).scalars()
    )
    common = {**tied, "digest": digest, "source": "imported", "recorded_at": time.time()}
    rows: dict[Table, list[dict[str, Any]]] = {}
    for profile in profiles:
        for table, row in profile_rows(profile, digest, **common):
            if row["profile_id"] not in known:
                rows.setdefault(table, []).append(row)
    for table in (PROFILE, PROFILE_TIME, KERNEL):
        if table in rows:
            connection.execute(insert_into(table), rows[table])
    return len(rows.get(PROFILE, ()))


def load_profiles(connection: Connection, attempt: int) -> tuple[ArmProfile, ...]:
    """The profiles of an attempt, as they were recorded, by arm and phase."""
    found, times, kernels = (
        connection.execute(
            select(table).where(table.c.attempt == attempt).order_by(*named(table, order))
        ).all()
        for table, order in (
            (PROFILE, "arm phase"),
            (PROFILE_TIME, "profile_id"),
            (KERNEL, "profile_id rank"),
        )
    )
    times_of, kernels_of = _by_profile(times), _by_profile(kernels)
    return tuple(
        ArmProfile(
            **{name: getattr(row, name) for name in _OWN},
            speedup=interval_estimate(row.speedup, row.speedup_low, row.speedup_high),
            profiled_speedup=interval_estimate(
                row.profiled_speedup, row.profiled_speedup_low, row.profiled_speedup_high
            ),
            times={each.time_class: each.seconds for each in times_of.get(row.profile_id, ())},
            changes={
                each.time_class: change
                for each in times_of.get(row.profile_id, ())
                if (change := interval_estimate(each.change, each.change_low, each.change_high))
            },
            activities=tuple(_activities(each) for each in kernels_of.get(row.profile_id, ())),
        )
        for row in found
    )


def _by_profile(rows: Iterable[Any]) -> dict[str, list[Any]]:
    return {key: list(own) for key, own in groupby(rows, key=lambda row: str(row.profile_id))}


def _activities(row: Row[Any]) -> Activities:
    counters = {name: value for name in COUNTERS if (value := getattr(row, name)) is not None}
    return Activities(**{name: getattr(row, name) for name in _OF_ACTIVITY}, counters=counters)


def record_peaks(
    connection: Connection,
    environment: Mapping[str, Any],
    host: str,
    peaks: Iterable[Peaks],
    attempt: int | None = None,
) -> None:
    """Store what was measured on a host in an environment, within the caller's write transaction.

    `environment` is a row as `store.rows.row_mapping.environment_row` makes it, inserted where it
    is new; `attempt` is that of the profile job that measured the peaks.
    """
    insert_new(connection, ENVIRONMENT, [environment])
    common = {
        "environment": environment["environment_id"],
        "host": host,
        "attempt": attempt,
        "measured_at": time.time(),
    }
    rows = [{**common, **dict(peak)} for peak in peaks]
    if rows:
        connection.execute(insert_into(PEAK), rows)


def keep_peaks(engine: Engine, environment: Environment, host: str, peaks: Iterable[Peaks]) -> None:
    """Store what was measured on a host beside any job, in a transaction of its own."""
    with writing(engine) as connection:
        record_peaks(connection, environment_row(environment), host, peaks)


def best_peaks(
    engine: Engine, environment: str, host: str
) -> dict[tuple[str, int | None], tuple[Peaks, float]]:
    """The best rates of a host in an environment, by dtype and threads, each with when it was
    measured last (since the epoch).

    A measurement at a moment under load takes nothing from what the machine reached at another.
    """
    here = select(PEAK).where(PEAK.c.environment == environment, PEAK.c.host == host)
    found: dict[tuple[str, int | None], tuple[Peaks, float]] = {}
    for row in fetch(engine, here.order_by(PEAK.c.measured_at, PEAK.c.id)):
        key = (row.dtype, row.threads)
        best = found[key][0] if key in found else row
        rates = {
            name: max(getattr(row, name), getattr(best, name)) for name in ("gflops", "gb_per_s")
        }
        kernel = row.kernel if row.gflops >= best.gflops else best.kernel
        found[key] = (
            Peaks(dtype=row.dtype, threads=row.threads, kernel=kernel, **rates),
            float(row.measured_at),
        )
    return found
