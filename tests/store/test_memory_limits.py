"""Arms that no longer fit into memory: read from a store as points of their curves."""

from store.open.engine import Engine
from store.read.queries import sweep_rows
from store.rows.frames import rows_of
from sweeps.analysis.memory_limits import memory_limits
from sweeps.analysis.rows import FailureRow, SpeedupRow
from sweeps.model.outcome import Failure
from tests.store.conftest import a_job, an_outcome, keep, submit

FULL = Failure(arm=2, reason="out_of_memory", message="no memory")


def found(engine: Engine) -> list[tuple[str, float | None, bool]]:
    failures = rows_of(sweep_rows(engine, "sweep", "failures"), FailureRow)
    points = rows_of(sweep_rows(engine, "sweep", "speedup"), SpeedupRow)
    return [
        (each.row.params, each.row.image_size, each.from_here_on)
        for each in memory_limits(failures, points).values()
    ]


def test_the_smallest_size_that_does_not_fit(engine: Engine) -> None:
    """From there on while nothing larger was measured; at that size alone where something was.
    Other failures are none.
    """
    rates = (0.5, 0.9)
    jobs = [a_job(size, rates) for size in (64, 96, 128, 160)]
    submit(engine, jobs)
    speedups = {"speedups": (1.5, 1.2)}
    wrong = Failure(arm=1, reason="error", message="the method's own")
    for job, failures in zip(jobs, ((), (FULL,), (FULL, wrong), ()), strict=True):
        if job is not jobs[3]:
            keep(engine, an_outcome(job, failures=failures, **speedups))
    ((params, size, from_here_on),) = found(engine)
    assert "0.9" in params
    assert (size, from_here_on) == (96, True)
    keep(engine, an_outcome(jobs[3], **speedups))
    assert found(engine) == [(params, 96, False)]
