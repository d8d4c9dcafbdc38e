"""A plugin of pytest by which a module of tests fails that leaves a connection to a database open.

Only Python 3.13 warns of connections to SQLite that were never closed. Here each connection of this
process is kept until its module ends, and asked then.
"""

import os
import sqlite3
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import wraps
from typing import Any

import pytest

PATIENCE_S = 5.0
"""How long threads of a module, such as those of Streamlit, may take to end."""
OPENED: list[tuple[Any, str]] = []
"""Connections, each with the test and the line that opened it."""
_connect = sqlite3.connect


@wraps(_connect)
def _noted(*given: Any, **named: Any) -> sqlite3.Connection:
    made: sqlite3.Connection = _connect(*given, **named)
    _note(made)
    return made


def _note(connection: Any, *_: object) -> None:
    if any(connection is noted for noted, _ in OPENED):
        return
    frame = sys._getframe(1)
    lines: list[str] = []
    while frame.f_back is not None and len(lines) < 4:
        frame = frame.f_back
        file = frame.f_code.co_filename
        if "site-packages" not in file and file != __file__ and not file.startswith("<"):
            lines.append(f"{os.path.relpath(file)}:{frame.f_lineno}")
    test = os.environ.get("PYTEST_CURRENT_TEST", "while the tests were collected")
    OPENED.append((connection, f"{test}: {' < '.join(lines)}"))


def _is_open(connection: Any) -> bool:
    if not isinstance(connection, sqlite3.Connection):
        return not connection.closed  # of psycopg
    try:
        return connection.in_transaction in {True, False}
    except sqlite3.ProgrammingError:
        return False


vars(sqlite3)["connect"] = vars(sqlite3.dbapi2)["connect"] = _noted
with suppress(ImportError):  # a bare GPU box has no SQLAlchemy, and so no other database
    from sqlalchemy import event
    from sqlalchemy.pool import Pool

    event.listen(Pool, "connect", _note)


@pytest.fixture(scope="module", autouse=True)
def connections_are_closed() -> Iterator[None]:
    """Fails where a connection is open when all fixtures of the module have ended."""
    yield
    until = time.monotonic() + PATIENCE_S
    while (left := [test for made, test in OPENED if _is_open(made)]) and time.monotonic() < until:
        time.sleep(0.05)
    OPENED.clear()
    if left:
        pytest.fail("\n".join(("connections to a database were left open by", *left)))
