"""Owners of jobs: leases, and what is recovered from dispatchers that died or are silent."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import Engine, text

from store.errors import StoreError
from store.rows import owners
from store.rows.transactions import writing
from store.write import queue
from store.write.record import record
from tests.store.conftest import CLAIM, a_job, an_outcome, states, submit

ME = owners.owner()


def grow_old(engine: Engine) -> None:
    """Let all leases be older than they may be."""
    with writing(engine) as connection:
        old = text("UPDATE job SET renewed_at = renewed_at - :s")
        connection.execute(old, {"s": owners.LEASE_S + 1})


def test_lease(engine: Engine) -> None:
    """Only the owner of a running job may end its lease, with an outcome of that job."""
    sweep = submit(engine, [a_job(32)])
    (claimed,) = queue.claim(engine, sweep, owner=ME)
    for end_lease in (
        lambda: record(engine, claimed.row, "other:1:1", an_outcome(claimed.job)),
        lambda: queue.release(engine, claimed.row, "other:1:1"),
        lambda: queue.split(engine, claimed.row, "other:1:1", [claimed.job]),
    ):
        with pytest.raises(
            StoreError, match=f"held by {ME}; it is no longer running for other:1:1"
        ):
            end_lease()
    with pytest.raises(StoreError, match="has the identity"):
        record(engine, claimed.row, ME, an_outcome(a_job(64)))
    assert states(engine) == ["running"]
    queue.release(engine, claimed.row, ME)
    with pytest.raises(StoreError, match="is waiting; it is no longer running for"):
        record(engine, claimed.row, ME, an_outcome(claimed.job))
    with pytest.raises(StoreError, match="job 77 does not exist"):
        queue.release(engine, 77, ME)


def test_recover_from_a_process_that_ended(engine: Engine, path: Path) -> None:
    """Jobs of a process that ended wait again, as do those of a process that began at another time
    and had the number of one that runs; those of a running one stay with it.
    """
    sweep = submit(engine, [a_job(32), a_job(64), a_job(96)])
    program = (
        "from store.open import engine; from store.rows import owners; from store.write import queue;"
        f"queue.claim(engine.connect({str(path)!r}), {sweep}, owner=owners.owner())"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
    host = ME.partition(":")[0]
    for owner in (f"{host}:{os.getpid()}:1", ME):
        queue.claim(engine, sweep, owner=owner)
    assert states(engine) == ["running"] * 3
    assert queue.recover(engine) == 2
    assert states(engine) == ["waiting", "waiting", "running"]


def test_owners_on_other_hosts_keep_their_jobs_while_they_renew(engine: Engine) -> None:
    """An owner elsewhere loses its jobs only when its lease is old; nobody renews those of
    another.
    """
    sweep = submit(engine, [a_job(32), a_job(64)])
    for owner in ("dead:1:1", "living:1:1"):
        queue.claim(engine, sweep, owner=owner)
    assert queue.recover(engine) == 0
    grow_old(engine)
    assert queue.renew(engine, "living:1:1") == 1
    assert queue.recover(engine) == 1
    assert states(engine) == ["waiting", "running"]
    grow_old(engine)
    assert queue.recover(engine) == 1
    assert queue.renew(engine, "living:1:1") == 0


def test_leases_hold_whatever_clock_their_host_has(engine: Engine, path: Path) -> None:
    """A host whose clock is two hours off keeps the job that it has just taken, and takes none that
    another one holds.
    """
    sweep = submit(engine, [a_job(32), a_job(64)])
    queue.claim(engine, sweep, owner="here:1:1")
    taken = [sys.executable, "-c", CLAIM, str(path), str(sweep), "7200"]
    done = subprocess.run(taken, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1", "0"]
    assert queue.recover(engine) == 0
    assert [holder.silent_s < owners.LEASE_S for holder in queue.held(engine, sweep)] == [True] * 2
