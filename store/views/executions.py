"""The view of attempts: when and where a job was executed, what the monitors read, and whether it
is quarantined.
"""

from functools import reduce
from typing import Any

from sqlalchemy import ColumnElement, Select, case, func, literal, select

from store.schema.tables import ATTEMPT, ENVIRONMENT
from store.views.columns import named
from sweeps.model.flags import FLAGS


def execution_view() -> Select[Any]:
    """One row for each attempt; `quarantine` holds those of its flags that quarantine it, NULL
    where there is none.
    """
    columns = (
        ATTEMPT.c.id.label("attempt"),
        *named(ATTEMPT, "job_id round process source environment host"),
        *named(ENVIRONMENT, "device device_name"),
        *named(ATTEMPT, "started_at ended_at flags"),
        _quarantine().label("quarantine"),
        *named(ATTEMPT, "calibration_id system_metrics"),
    )
    return select(*columns).join_from(
        ATTEMPT, ENVIRONMENT, ENVIRONMENT.c.environment_id == ATTEMPT.c.environment
    )


def _quarantine() -> ColumnElement[str | None]:
    """The flags that quarantine an attempt, joined by commas."""
    padded = literal(",").concat(ATTEMPT.c.flags).concat(",")
    names = [name for name, flag in FLAGS.items() if flag.quarantine]
    found: list[ColumnElement[str]] = [
        case((padded.contains(f",{name},", autoescape=True), f",{name}"), else_="")
        for name in names
    ]
    joined = reduce(lambda one, other: one.concat(other), found[1:], found[0])
    return func.nullif(func.substr(joined, 2), "")
