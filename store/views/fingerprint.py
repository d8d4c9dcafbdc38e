"""The fingerprint that a store's views carry: whether they follow today's declarations is read without building them."""

import hashlib
from pathlib import Path

from sqlalchemy import Connection, column, inspect, select, table

from sweeps.flags import FLAGS
from sweeps.kinds import KINDS
from sweeps.metrics import METRICS

NAME = "view_fingerprint"
"""The view that holds it, in its one column `fingerprint`."""


def fingerprint() -> str:
    """Changes with the declarations of metrics and kinds, and with the code that makes views of them."""
    paths = sorted(path for folder in ("tables", "views") for path in (Path(__file__).parents[1] / folder).glob("*.py"))
    return hashlib.sha256(repr((METRICS, KINDS, FLAGS)).encode() + b"".join(path.read_bytes() for path in paths)).hexdigest()


def is_current(connection: Connection) -> bool:
    """Whether the views were created by `fingerprint` of today."""
    if NAME not in inspect(connection).get_view_names():
        return False
    return bool(connection.execute(select(column("fingerprint")).select_from(table(NAME))).scalar_one() == fingerprint())
