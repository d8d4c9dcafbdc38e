"""What is given to others of a store: rows of the public views that belong to chosen sweeps, with
aliases of its hosts, and a small SQLite file with a table for each view.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from sqlalchemy import (
    Column,
    ColumnElement,
    Engine,
    Index,
    Integer,
    MetaData,
    Select,
    Table,
    create_engine,
    or_,
    select,
)

from store.open.engine import disposing
from store.rows.frames import read_frame
from store.rows.samples import stored_samples, unpack_samples
from store.rows.transactions import fetch, reading
from store.schema.tables import ATTEMPT, PAIR, SAMPLE
from store.views.public import TABLES

if TYPE_CHECKING:
    import pandas as pd

SampleDetail = Literal["none", "summary", "all"]
"""What is given of raw times: nothing, quantiles of each arm in each attempt, or every one."""
DETAILS = get_args(SampleDetail)
NOT_GIVEN = ("system_metrics",)
"""Columns that tell about the machine beyond its environment."""
KEYS = ("comparison_id", "sweep", "method", "attempt")
"""Columns with an index in each table that has them."""
OF_PROFILES = ("profile", "kernel")
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


def host_aliases(engine: Engine) -> dict[str, str]:
    """An alias for each host: `machine-` and the beginning of the digest of its first attempt, so
    that it does not change as the store grows and no two stores name two hosts alike.
    """
    rows = select(ATTEMPT.c.host, ATTEMPT.c.digest).order_by(ATTEMPT.c.started_at, ATTEMPT.c.digest)
    aliases: dict[str, str] = {}
    for host, digest in fetch(engine, rows):
        aliases.setdefault(host, f"machine-{digest[:6]}")
    return aliases


def public_frames(
    engine: Engine, sweeps: Iterable[str], samples: SampleDetail = "none"
) -> "dict[str, pd.DataFrame]":
    """The rows of each public view that belong to the newest revisions of these sweeps, ordered by
    their columns; with `samples` the frame of that name too. Whole numbers may be missing.
    """
    links = TABLES["sweep_comparison"]
    linked = select(links.c.comparison_id).where(links.c.sweep.in_(sorted(sweeps)))
    attempts = select(PAIR.c.attempt).where(PAIR.c.comparison_id.in_(linked))
    frames = {}
    for name, view in TABLES.items():
        if "sweep" in view.c:
            own: list[ColumnElement[bool]] = [view.c.sweep.in_(sorted(sweeps))]
        elif name in OF_PROFILES:
            own = [or_(view.c.attempt.in_(attempts), view.c.comparison_id.in_(linked))]
        elif "comparison_id" in view.c:
            own = [view.c.comparison_id.in_(linked)]
        else:
            own = [view.c.attempt.in_(attempts)] if "attempt" in view.c else []
        shown = [column for column in view.c if column.name not in NOT_GIVEN]
        frame = read_frame(engine, select(*shown).where(*own).order_by(*shown))
        whole = [column.name for column in shown if isinstance(column.type, Integer)]
        frames[name] = frame.astype(dict.fromkeys(whole, "Int64"))
    if samples != "none":
        rows = (
            select(SAMPLE.c.attempt)
            .where(SAMPLE.c.attempt.in_(attempts))
            .order_by(SAMPLE.c.attempt)
        )
        frames["sample"] = _samples(engine, rows, summary=samples == "summary")
    return frames


def _samples(engine: Engine, rows: Select[tuple[object, ...]], *, summary: bool) -> "pd.DataFrame":
    """`attempt`, `arm` and `metric` (`wall`: of the whole run) with `round` and `ms` of every time,
    or the `count`, mean and quantiles of these.
    """
    import numpy as np
    import pandas as pd

    parts = []
    with reading(engine) as connection:
        for row in connection.execute(rows):
            samples = stored_samples(connection, row.attempt)
            assert samples is not None
            found = unpack_samples(*samples)
            for metric, table in {"wall": found.seconds, **found.series}.items():
                times = {"arm": np.tile(found.arms, len(table)), "ms": 1e3 * table.ravel()}
                rounds = np.repeat(np.arange(len(table)), len(found.arms)) + 1
                key = {"attempt": row.attempt, "metric": metric}
                parts.append(pd.DataFrame({**times, "round": rounds}).assign(**key))
    columns = ["attempt", "metric", "arm", "round", "ms"]
    every = pd.concat(parts or [pd.DataFrame(columns=columns)], ignore_index=True)[columns]
    if not parts or not summary:
        return every
    grouped = every.groupby(columns[:3])["ms"]
    return grouped.describe(percentiles=list(QUANTILES)).add_prefix("ms_").reset_index()


def write_public_store(path: Path, frames: "Mapping[str, pd.DataFrame]") -> None:
    """Write the frames as tables of a new SQLite file at `path`, with an index for each of `KEYS`.
    Equal frames make equal files.
    """
    with (
        disposing(create_engine(f"sqlite:///{path}")) as engine,
        engine.begin() as connection,
    ):
        for name, frame in frames.items():
            frame.to_sql(name, connection, index=False)
            keys = [key for key in KEYS if key in frame]
            table = Table(name, MetaData(), *(Column(key) for key in keys))
            for key in keys:
                Index(f"ix_{name}_{key}", table.c[key]).create(connection)
