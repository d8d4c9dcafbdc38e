"""Owners of jobs: leases, and what is recovered from dispatchers that died or are silent."""

import os
import subprocess
import sys
import time
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


def test_lease(engine: Engine) -> None:
    """Only the owner of a running job may end its lease."""
    sweep = submit(engine, [a_job()])
    (claimed,) = queue.claim(engine, sweep, owner=ME)
    for end_lease in (
        lambda: record(engine, claimed.row, "other:1:1", an_outcome(claimed.job)),
        lambda: queue.release(engine, claimed.row, "other:1:1"),
        lambda: queue.split(engine, claimed.row, "other:1:1", [claimed.job]),
    ):
        with pytest.raises(
            StoreError, match=f"is held by {ME}; it is no longer running for other:1:1"
        ):
            end_lease()
    queue.release(engine, claimed.row, ME)
    with pytest.raises(StoreError, match="is waiting; it is no longer running for"):
        record(engine, claimed.row, ME, an_outcome(claimed.job))
    with pytest.raises(StoreError, match="job 77 does not exist"):
        queue.release(engine, 77, ME)


def test_outcome_of_another_job(engine: Engine) -> None:
    """An outcome is stored only for the job it is of."""
    sweep = submit(engine, [a_job(32)])
    (claimed,) = queue.claim(engine, sweep, owner=ME)
    with pytest.raises(StoreError, match="has the identity"):
        record(engine, claimed.row, ME, an_outcome(a_job(64)))
    assert states(engine) == ["running"]


def test_recover_from_a_process_that_ended(engine: Engine, path: Path) -> None:
    """Jobs of a process that ended wait again; those of a running one stay with it."""
    sweep = submit(engine, [a_job(32), a_job(64)])
    claim = f"queue.claim(engine.connect({str(path)!r}), {sweep}, owner=owners.owner())"
    program = f"from store.open import engine; from store.rows import owners; from store.write import queue; {claim}"
    subprocess.run([sys.executable, "-c", program], check=True)
    queue.claim(engine, sweep, owner=ME)
    assert states(engine) == ["running", "running"]
    assert queue.recover(engine) == 1
    assert states(engine) == ["waiting", "running"]


def test_a_recycled_process_id_is_no_owner(engine: Engine) -> None:
    """A running process with the owner's id that began at another time is not the owner."""
    sweep = submit(engine, [a_job()])
    host = ME.partition(":")[0]
    queue.claim(engine, sweep, owner=f"{host}:{os.getpid()}:1")
    assert queue.recover(engine) == 1


def test_owners_on_other_hosts_keep_their_jobs_while_they_renew(engine: Engine) -> None:
    """An owner elsewhere loses its jobs only when its lease is old."""
    sweep = submit(engine, [a_job()])
    queue.claim(engine, sweep, owner="elsewhere:1:1")
    with writing(engine) as connection:
        connection.execute(
            text("UPDATE job SET renewed_at = :then"), {"then": time.time() - owners.LEASE_S - 1}
        )
    assert queue.renew(engine, "elsewhere:1:1") == 1
    assert queue.recover(engine) == 0
    with writing(engine) as connection:
        connection.execute(
            text("UPDATE job SET renewed_at = :then"), {"then": time.time() - owners.LEASE_S - 1}
        )
    assert queue.recover(engine) == 1
    assert queue.renew(engine, "elsewhere:1:1") == 0


@pytest.mark.parametrize("shift", [-7200, 7200])
def test_leases_hold_whatever_clock_their_host_has(engine: Engine, path: Path, shift: int) -> None:
    """A host whose clock is two hours off keeps the job that it has just taken, and takes none that
    another one holds.
    """
    sweep = submit(engine, [a_job(32), a_job(64)])
    queue.claim(engine, sweep, owner="here:1:1")
    taken = [sys.executable, "-c", CLAIM, str(path), str(sweep), str(shift)]
    assert subprocess.run(taken, capture_output=True, text=True, check=True).stdout.split() == [
        "1",
        "0",
    ]
    assert queue.recover(engine) == 0
    assert [holder.silent_s < owners.LEASE_S for holder in queue.held(engine, sweep)] == [
        True,
        True,
    ]


def test_only_the_leases_of_the_owner_are_renewed(engine: Engine) -> None:
    """A dead owner's leases stay old, however often another one renews its own, and are taken
    back.
    """
    sweep = submit(engine, [a_job(32), a_job(64)])
    queue.claim(engine, sweep, owner="dead:1:1")
    queue.claim(engine, sweep, owner="living:1:1")
    with writing(engine) as connection:
        connection.execute(
            text("UPDATE job SET renewed_at = renewed_at - :s"), {"s": owners.LEASE_S + 1}
        )
    assert queue.renew(engine, "living:1:1") == 1
    assert queue.recover(engine) == 1
    assert states(engine) == ["waiting", "running"]
