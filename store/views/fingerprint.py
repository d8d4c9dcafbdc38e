"""The fingerprints that a store carries: whether its views and its tables are those of this
program.
"""

import hashlib
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import Connection, MetaData, column, inspect, select, table

from store.schema.tables import model_metadata
from sweeps.model.flags import FLAGS
from sweeps.model.kinds import KINDS
from sweeps.model.metrics import METRICS

NAME = "store_fingerprint"
"""The view that holds them, in one row with the columns of `Fingerprints`."""
_ROOT = Path(__file__).parents[2]
MADE_FROM = (
    "store/schema/*.py",
    "store/views/*.py",
    "sweeps/model/metrics.py",
    "sweeps/model/profile.py",
    "sweeps/stats/curve.py",
)
"""Files from which tables and views follow; those of `sweeps` have the words that tables and views
are restricted to."""


class Fingerprints(NamedTuple):
    """What the views and tables of a store were made by."""

    views: str
    tables: str


def stored_fingerprints(connection: Connection) -> Fingerprints | None:
    """Those of the store; `None` where it has none."""
    if NAME not in inspect(connection).get_view_names():
        return None
    row: Any = connection.execute(
        select(column("views"), column("tables")).select_from(table(NAME))
    ).one()
    return Fingerprints(row.views, row.tables)


def views_fingerprint() -> str:
    """Changes with the declarations of metrics and kinds, and with the code that makes tables, and
    views of them.

    Without the models, which take a quarter of a second to import: where it is equal, the tables
    are equal too.
    """
    content = b"".join(
        path.read_bytes() for source in MADE_FROM for path in sorted(_ROOT.glob(source))
    )
    return hashlib.sha256(repr((METRICS, KINDS, FLAGS)).encode() + content).hexdigest()


def tables_fingerprint(metadata: MetaData | None = None) -> str:
    """Changes with the DDL of the tables (by default the store's) and their indexes: a digest of it
    in SQLite's words.
    """
    from sqlalchemy.dialects.sqlite import dialect
    from sqlalchemy.schema import CreateIndex, CreateTable

    tables = (metadata or model_metadata()).sorted_tables
    made: list[CreateTable | CreateIndex] = [*map(CreateTable, tables)]
    made += [CreateIndex(index) for each in tables for index in each.indexes]
    ddl = sorted(" ".join(str(each.compile(dialect=dialect())).split()) for each in made)
    return hashlib.sha256("\n".join(ddl).encode()).hexdigest()
