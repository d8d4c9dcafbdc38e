"""Submitted sweeps: those that wait for a server, the one it runs, and what became of each."""

import json
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import Engine, Row, Update, select, update

from store.errors import StoreError
from store.rows.location import display_name
from store.rows.owners import is_alive, owner
from store.rows.row_mapping import insert_row
from store.rows.transactions import database_time, fetch, fetch_values, writing
from store.schema.tables import SUBMISSION

LOG_CHARACTERS = 20_000
"""Of a log that are kept, the last ones."""
OPEN = ("queued", "running", "paused")
"""States that may end in another."""
_ORDER = (SUBMISSION.c.priority.desc(), SUBMISSION.c.id)


class Submission(NamedTuple):
    """A submitted sweep."""

    id: int
    name: str
    text: str
    options: tuple[str, ...]
    priority: int
    state: str
    why: str
    submitted_by: str
    submitted_at: float
    started_at: float | None
    ended_at: float | None
    log: str


def submit_to_queue(
    engine: Engine, name: str, text: str, options: Sequence[str], *, priority: int, by: str
) -> int:
    """Queue a sweep for a server. Returns its number."""
    columns = {
        "name": name,
        "text": text,
        "options": json.dumps(options),
        "priority": priority,
        "state": "queued",
        "why": "",
        "log": "",
        "submitted_by": by,
        "submitted_at": time.time(),
    }
    with writing(engine) as connection:
        return insert_row(connection, SUBMISSION, columns)


def submissions(engine: Engine, states: Sequence[str] = OPEN) -> list[Submission]:
    """Those in one of these states: running ones first, then as they will run."""
    found = select(SUBMISSION).where(SUBMISSION.c.state.in_(states)).order_by(*_ORDER)
    rows = map(_submission, fetch(engine, found))
    return sorted(rows, key=lambda each: each.state != "running")


def find_submission(engine: Engine, number: int) -> Submission:
    """Raises `StoreError` if there is none."""
    for row in fetch(engine, select(SUBMISSION).where(SUBMISSION.c.id == number)):
        return _submission(row)
    raise StoreError(f"{display_name(engine.url)} has no submission {number}; see: status")


def find_submitted(engine: Engine, given: str) -> Submission:
    """The submission of that number, or the newest one of a sweep of that name, an open one if
    there is one. Raises `StoreError`.
    """
    if given.isdecimal():
        return find_submission(engine, int(given))
    is_open = SUBMISSION.c.state.in_(OPEN)
    newest = select(SUBMISSION.c.id).where(SUBMISSION.c.name == given).limit(1)
    order = is_open.desc(), SUBMISSION.c.id.desc()
    for number in fetch_values(engine, newest.order_by(*order)):
        return find_submission(engine, number)
    raise StoreError(f"{display_name(engine.url)} has no submission of {given}; see: status")


def take_next(engine: Engine, above: int | None = None) -> Submission | None:
    """Mark the first queued submission running for this process; only one of a priority `above`
    that number, if given. Those of servers that have died are queued again before.
    """
    first = select(SUBMISSION).where(SUBMISSION.c.state == "queued").order_by(*_ORDER).limit(1)
    if above is not None:
        first = first.where(SUBMISSION.c.priority > above)
    with writing(engine) as connection:
        now = database_time(connection)
        running = connection.execute(select(SUBMISSION).where(SUBMISSION.c.state == "running"))
        dead = [row.id for row in running if not is_alive(row.owner, now - row.renewed_at)]
        again = {"state": "queued", "owner": None, "why": "its server ended before it did"}
        connection.execute(update(SUBMISSION).where(SUBMISSION.c.id.in_(dead)).values(again))
        found = connection.execute(first).one_or_none()
        if found is None:
            return None
        lease = {"state": "running", "owner": owner(), "renewed_at": now, "why": ""}
        begun = {"started_at": time.time(), "ended_at": None, "log": ""}
        own = update(SUBMISSION).where(SUBMISSION.c.id == found.id)
        connection.execute(own.values(**lease, **begun))
        return _submission(found)


def waits_above(engine: Engine, priority: int) -> bool:
    """Whether a submission of a larger priority is queued."""
    found = select(SUBMISSION.c.id).where(
        SUBMISSION.c.state == "queued", SUBMISSION.c.priority > priority
    )
    return bool(fetch_values(engine, found.limit(1)))


def keep_running(engine: Engine, number: int, log: str) -> bool:
    """Show that the server of a running submission is alive, with the log so far. Returns whether
    it is still to run: false where it was cancelled or paused, or another server has it.
    """
    with writing(engine) as connection:
        alive = {"renewed_at": database_time(connection), "log": log[-LOG_CHARACTERS:]}
        return connection.execute(_mine(number).values(alive)).rowcount == 1


def end_run(engine: Engine, number: int, state: str, why: str, log: str) -> str:
    """Note how a run ended, and return the state. One that was cancelled or paused meanwhile stays
    so, with its log.
    """
    ended = {"ended_at": time.time(), "log": log[-LOG_CHARACTERS:]}
    with writing(engine) as connection:
        changed = connection.execute(
            _mine(number).values(state=state, why=why, owner=None, **ended)
        ).rowcount
        if not changed:
            same = update(SUBMISSION).where(
                SUBMISSION.c.id == number, SUBMISSION.c.owner == owner()
            )
            connection.execute(same.values(owner=None, **ended))
    return find_submission(engine, number).state


def change_state(engine: Engine, number: int, state: str, why: str = "") -> Submission:
    """Cancel, pause or queue an open submission again; a server that runs it ends that within
    seconds.

    Raises `StoreError` where it has ended, or is in this state already.
    """
    before = find_submission(engine, number)
    allowed = ("paused",) if state == "queued" else OPEN
    change = update(SUBMISSION).where(
        SUBMISSION.c.id == number, SUBMISSION.c.state.in_(allowed), SUBMISSION.c.state != state
    )
    with writing(engine) as connection:
        if not connection.execute(change.values(state=state, why=why)).rowcount:
            raise StoreError(f"submission {number} ({before.name}) is {before.state}")
    return find_submission(engine, number)


def _mine(number: int) -> Update:
    return update(SUBMISSION).where(
        SUBMISSION.c.id == number,
        SUBMISSION.c.state == "running",
        SUBMISSION.c.owner == owner(),
    )


def _submission(row: Row[Any]) -> Submission:
    columns = dict(row._mapping)
    return Submission(
        **{name: columns[name] for name in Submission._fields if name != "options"},
        options=tuple(json.loads(row.options)),
    )
