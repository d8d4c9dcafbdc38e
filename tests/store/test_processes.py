"""Several processes on one store, and a process that is killed in the middle of writing."""

import signal
import subprocess
import sys
import time
from pathlib import Path

from sqlalchemy import Engine

from store.open.engine import connect, disposing
from store.write import queue
from tests.store.conftest import a_job, submit, table

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


def test_writers_at_once_of_which_one_is_killed(engine: Engine, path: Path) -> None:
    """Dispatchers share a queue, and one is killed at any moment: what was reported as stored is
    stored and whole, only jobs in flight go back, every job is done once, and no other sees an
    error.
    """
    sweep = submit(engine, [a_job(32, seed=seed) for seed in range(50)])
    killed = dispatcher(path, sweep)
    assert killed.stdout is not None
    printed = [killed.stdout.readline() for _ in range(5)]
    time.sleep(0.037)
    killed.send_signal(signal.SIGKILL)
    rest, _ = killed.communicate()
    promised = {int(row) for row in "".join([*printed, rest]).split()}
    with disposing(connect(str(path))) as again:
        assert table(again, "PRAGMA integrity_check") == [("ok",)]
        stored = {job for (job,) in table(again, "SELECT job FROM attempt")}
        ((whole,),) = table(
            again,
            """SELECT count(*) FROM attempt AS t JOIN sample AS s ON s.attempt = t.id
            JOIN comparison_attempt AS p ON p.attempt = t.id
            JOIN speedup AS v ON v.comparison_id = p.comparison_id
            JOIN job AS j ON j.id = t.job AND j.state = 'done'""",
        )
        assert promised <= stored
        assert whole == len(stored) < 50
        assert queue.recover(again) <= 2
        counts = queue.progress(again, sweep).counts
        assert (counts["running"], counts["waiting"]) == (0, 50 - len(stored))
        others = [dispatcher(path, sweep) for _ in range(2)]
        outputs = [process.communicate() for process in others]
        assert [errors for _, errors in outputs] == ["", ""]
        done = [int(row) for printed, _ in outputs for row in printed.split()]
        assert sorted([*done, *stored]) == list(range(1, 51))
        counted = "SELECT count(*), count(DISTINCT job), max(n) FROM attempt"
        assert table(again, counted) == [(50, 50, 1)]
        assert queue.progress(again, sweep).measured == 50
