"""What a running sweep shows of jobs that wait, and of those that other runs measure."""

import io
import platform
import re

import pytest
from rich.console import Console

from orchestrator.cluster.nodes import Node
from orchestrator.loop.dispatcher import Event
from orchestrator.loop.progress import SILENT_S, Display
from orchestrator.plan.planning import describe_plan
from store.read.runs import run_progress, seconds_left
from store.rows.owners import owner
from store.write import queue
from store.write.record import record
from sweeps.model.outcome import Failure
from sweeps.number_format import duration
from tests.orchestrator import worker_entrypoints
from tests.orchestrator.conftest import Store, job
from tests.orchestrator.sites import SITES, claimed_elsewhere, planned

CPU = {"cpu": worker_entrypoints.ENVIRONMENTS["cpu"]}
NODE = Node(platform.node(), environments=CPU, node_id="1", devices=("cpu",), cpus=2, gpus=0)


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The clock of the display, to be set by the test."""
    clock = [1000.0]
    monkeypatch.setattr("orchestrator.loop.progress.time.monotonic", lambda: clock[0])
    return clock


def test_waiting_for_the_host_is_not_measuring(now: list[float]) -> None:
    """While a job waits the line names that and its time; what it took is the time of the
    measuring.
    """
    shown = io.StringIO()
    requested, later = job("a", image_size=32), job("a", image_size=48)
    with Display(Console(file=shown, width=200)) as display:
        display.expect([requested, later])
        display(Event("started", NODE, requested))
        display(Event("waiting", NODE, requested, message="waiting for a latency job"))
        now[0] += 61
        display.tick()
        assert "waiting for its host: " in shown.getvalue()
        assert "running" not in shown.getvalue()
        display(Event("begun", NODE, requested))
        now[0] += 31
        display.tick()
        assert "[0/2] running" in shown.getvalue()
        assert ", for 31 s" in shown.getvalue()
        result = worker_entrypoints.noop(requested)
        display.left(33.0)
        display(
            Event(
                "answered",
                NODE,
                requested,
                result.model_copy(update={"ended_at": result.started_at + 33}),
            )
        )
        assert ", took 33 s, about 33 s left" in shown.getvalue()


def test_the_time_left_is_that_of_the_page(store: Store, now: list[float]) -> None:
    """Of a sweep that is partly measured the line and the page Runs state one time, which runs down
    until it is known anew.
    """
    shown = io.StringIO()
    jobs = [job("a", image_size=size) for size in (32, 48, 64, 96)]
    row = store.submit(jobs)
    measured, running, *_ = queue.claim(store.engine, row, owner=owner(), limit=2)
    outcome = worker_entrypoints.noop(measured.job)
    record(
        store.engine,
        measured.row,
        owner(),
        outcome.model_copy(update={"ended_at": outcome.started_at + 100}),
    )
    at = outcome.started_at + 130
    (page,) = run_progress(store.engine, now=at)
    assert page.left_s == pytest.approx(270, abs=1)
    with Display(Console(file=shown, width=200)) as display:
        display.expect(jobs)
        display(Event("started", NODE, running.job))
        display.left(seconds_left(store.engine, row, now=at))
        for later in (0, 60):
            now[0] += SILENT_S + later
            display.tick()
            assert f"about {duration(page.left_s - (now[0] - 1000))} left" in shown.getvalue()


def test_jobs_of_other_runs_are_named(store: Store, now: list[float]) -> None:
    """Nothing of this run is left, so there is no time left, but a count of the jobs that others
    measure.
    """
    shown = io.StringIO()
    held, free = job("a"), job("b")
    claimed_elsewhere(store, [held, free])
    with Display(Console(file=shown, width=200)) as display:
        display.expect([held, free])
        display.elsewhere(queue.held_jobs(store.engine, 1))
        display(Event("started", NODE, free))
        now[0] += 8
        display(Event("answered", NODE, free, worker_entrypoints.noop(free)))
    assert ", took 8 s, 1 job is measured by other runs" in shown.getvalue()


def test_a_failure_is_printed_once_for_all_visits(now: list[float]) -> None:
    """Of an arm that fails in each pass and at each size the first line alone is printed, and
    another reason of it in a line of its own.
    """
    shown = io.StringIO()
    with Display(Console(file=shown, width=200)) as display:
        for turn, reason in ((0, "wrong_result"), (1, "wrong_result"), (2, "crash")):
            visit = job("a", passes=3).model_copy(update={"round": turn})
            failure = Failure(arm=1, reason=reason, message=f"at visit {turn}")
            failed = worker_entrypoints.noop(visit).model_copy(update={"failures": (failure,)})
            display(Event("answered", NODE, visit, failed))
    lines = [line for line in shown.getvalue().splitlines() if line.startswith("  a: ")]
    assert lines == ["  a: wrong_result: at visit 0", "  a: crash: at visit 2"]


def test_a_wait_is_one_line_of_a_terminal(store: Store, now: list[float]) -> None:
    """Waits for a host and for other runs are shown in the line of the bar, which is rewritten, and
    print no further lines; in a file they are lines.
    """
    shown = {}
    for terminal in (True, False):
        file, waiting = io.StringIO(), job("a")
        console = Console(file=file, width=200, force_terminal=terminal)
        with Display(console) as display:
            display.expect([waiting])
            display(Event("started", NODE, waiting))
            for pid in range(5):
                display(Event("waiting", NODE, waiting, message=f"process {pid} has the host"))
                display.waiting([queue.LeaseHolder(f"elsewhere:{pid}:1", 1, 2.0)])
                now[0] += 1
        plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", file.getvalue())
        shown[terminal] = [line for line in plain.splitlines() if "begins when" in line]
        assert "waiting: " in plain
    assert [len(shown[terminal]) for terminal in (True, False)] == [0, 5]


def test_the_header_counts_what_the_progress_counts(store: Store) -> None:
    """Of a sweep in passes the plan names how many measurements are left, the bar's total."""
    visits = [
        job("a", "b", image_size=size, passes=3).model_copy(update={"round": turn})
        for turn in range(3)
        for size in (32, 48)
    ]
    plan = planned(store, SITES, visits)
    assert "; 6 jobs left with 12 measurements" in describe_plan(plan)
    with Display(Console(file=io.StringIO())) as display:
        display.expect(plan.jobs)
        assert display._bar.tasks[0].total == 12
    assert "; 2 jobs left" in describe_plan(planned(store, SITES, [job("a"), job("b")]))
