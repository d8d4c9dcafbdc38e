"""Several processes on one store, and a process that is killed in the middle of writing."""

import signal
import subprocess
import sys
import time
from pathlib import Path

from sqlalchemy import Engine, text

from store.open.engine import connect
from store.write import queue
from store.write.submission import NewSweep, submit_sweep
from sweeps.model.job import Job
from tests.store.conftest import a_job

DISPATCHER = """
import sys
sys.path[:0] = [{root!r}]
from tests.store.conftest import an_outcome
from store.open import engine as stores
from store.rows import owners
from store.write import queue, record

engine, me = stores.connect({path!r}), owners.owner()
while claimed := queue.claim(engine, {sweep}, owner=me, limit=2):
    for job in claimed:
        record.record(engine, job.row, me, an_outcome(job.job, seed=job.row))
        print(job.row, flush=True)
"""


def dispatcher(path: Path, sweep: int) -> "subprocess.Popen[str]":
    """A process that answers the sweep's jobs and prints the row of each one that is stored."""
    program = DISPATCHER.format(root=str(Path(__file__).parents[2]), path=str(path), sweep=sweep)
    return subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def jobs(count: int) -> list[Job]:
    plain = a_job(32)
    return [
        plain.model_copy(update={"condition": plain.condition.model_copy(update={"seed": seed})})
        for seed in range(count)
    ]


def submit(engine: Engine, planned: list[Job]) -> int:
    return submit_sweep(engine, NewSweep("sweep", "text", "?"), planned, planned)


def test_two_writers_at_once(engine: Engine, path: Path) -> None:
    """Two dispatchers share a queue: every job is done once, none is lost, and neither sees an
    error.
    """
    sweep = submit(engine, jobs(30))
    processes = [dispatcher(path, sweep) for _ in range(2)]
    outputs = [process.communicate() for process in processes]
    assert [errors for _, errors in outputs] == ["", ""]
    done = [int(row) for printed, _ in outputs for row in printed.split()]
    assert len(done) == len(set(done)) == 30
    with engine.connect() as connection:
        assert connection.execute(
            text("SELECT count(*), count(DISTINCT job), max(n) FROM attempt")
        ).one() == (30, 30, 1)
    assert queue.progress(engine, sweep).measured == 30


def test_kill_minus_nine(engine: Engine, path: Path) -> None:
    """Killed at any moment: what was reported as stored is stored and whole, only jobs in flight go
    back, and all get done.
    """
    sweep = submit(engine, jobs(50))
    process = dispatcher(path, sweep)
    assert process.stdout is not None
    printed = [process.stdout.readline() for _ in range(5)]
    time.sleep(0.037)
    process.send_signal(signal.SIGKILL)
    rest, _ = process.communicate()
    promised = {int(row) for row in "".join([*printed, rest]).split()}
    again = connect(str(path))
    with again.connect() as connection:
        assert connection.execute(text("PRAGMA integrity_check")).scalar() == "ok"
        stored = set(connection.execute(text("SELECT job FROM attempt")).scalars())
        whole = connection.execute(
            text(
                """SELECT count(*) FROM attempt AS t JOIN sample AS s ON s.attempt = t.id
                   JOIN comparison_attempt AS p ON p.attempt = t.id
                   JOIN speedup AS v ON v.comparison_id = p.comparison_id JOIN job AS j ON j.id = t.job AND j.state = 'done'"""
            )
        ).scalar()
    assert promised <= stored
    assert whole == len(stored) < 50
    assert queue.recover(again) <= 2
    counts = queue.progress(again, sweep).counts
    assert (counts["running"], counts["waiting"]) == (0, 50 - len(stored))
    assert dispatcher(path, sweep).communicate()[1] == ""
    with again.connect() as connection:
        assert connection.execute(
            text("SELECT count(*), count(DISTINCT job) FROM attempt")
        ).one() == (50, 50)
