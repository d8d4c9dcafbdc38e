"""The loop of a run: what others leave is finished, what others hold is waited for, and the end is
read from the store.
"""

import io
import os
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Collection, Sequence
from pathlib import Path

import pytest
from rich.console import Console

from orchestrator.cluster.cluster import Cluster
from orchestrator.loop.progress import Display
from orchestrator.loop.run_loop import RunResult, run_plan
from orchestrator.plan import planning
from store.rows import owners
from store.write.record import record
from sweeps.model.job import Job
from tests.orchestrator import worker_entrypoints
from tests.orchestrator.conftest import Store, job
from tests.orchestrator.sites import ELSEWHERE, SITES, claimed_elsewhere, planned

pytestmark = pytest.mark.ray

ROOT = Path(__file__).parents[2]


def run(
    store: Store, jobs: Sequence[Job], cluster: Cluster, again: Collection[str] = ()
) -> tuple[RunResult, str]:
    """Run the sweep; how it ended, and what was printed."""
    shown = io.StringIO()
    with Display(Console(file=shown, width=200)) as display:
        measured = run_plan(
            store.engine, planned(store, SITES, jobs, again=again), lambda: cluster, display, again
        )
    return measured, shown.getvalue()


SCRIPT = """
    import sys
    from orchestrator.cluster.cluster import Cluster
    from rich.console import Console
    from orchestrator.loop.run_loop import run_plan
    from orchestrator.loop.progress import Display
    from tests.orchestrator.conftest import Store, job
    from tests.orchestrator.sites import SITES, planned
    from pathlib import Path

    if __name__ == "__main__":
        store = Store(Path(sys.argv[1]))
        jobs = [job("a", model="slow", image_size=size) for size in range(32, 128, 16)]
        with Cluster.start(entry="tests.orchestrator.worker_entrypoints:run") as cluster, Display(Console()) as display:
            run_plan(store.engine, planned(store, SITES, jobs), lambda: cluster, display)
"""


def test_the_other_run_finishes_what_a_killed_one_held(
    store: Store, cluster: Cluster, tmp_path: Path
) -> None:
    """Two runs of one sweep, one killed with -9 in the middle of a job: the other answers
    everything, that job included.
    """
    script = tmp_path / "other.py"
    script.write_text(textwrap.dedent(SCRIPT))
    jobs = [job("a", model="slow", image_size=size) for size in range(32, 128, 16)]
    command = [sys.executable, str(script), str(store.path)]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        start_new_session=True,
    ) as other:
        assert other.stdout is not None
        starts = (line for line in other.stdout if line.startswith("started on"))
        next(starts)

        def kill() -> None:
            next(starts, "")  # on a busy machine the other run may have taken all that is left
            other.kill()

        killer = threading.Thread(target=kill)
        killer.start()
        measured, _ = run(store, jobs, cluster)
        killer.join()
    assert (measured.plan.jobs, measured.plan.answered) == ((), len(jobs))
    assert store.states() == {"done": len(jobs)}


def test_lease_of_a_dead_host_is_waited_for(store: Store, cluster: Cluster) -> None:
    """A job that a host held when it died is named while its lease lasts, and then measured."""
    jobs = [job("a"), job("b")]
    claimed_elsewhere(store, jobs, silent_s=owners.LEASE_S - 1)
    measured, shown = run(store, jobs, cluster)
    assert (measured.interrupted, measured.plan.jobs, measured.plan.answered) == (False, (), 2)
    assert "waiting: 1 job is being measured by process 17 on elsewhere (last heard of" in shown
    assert store.states() == {"done": 2}


def test_job_of_a_living_run_is_waited_for_and_not_measured_twice(
    store: Store, cluster: Cluster
) -> None:
    """Nothing is left to do here: the run ends when the other one has answered."""
    held, free = job("a"), job("b")
    row = claimed_elsewhere(store, [held, free])

    def answer() -> None:
        while store.states() != {"running": 1, "done": 1}:
            time.sleep(0.05)
        time.sleep(0.6)
        record(store.engine, row, ELSEWHERE, worker_entrypoints.noop(held))

    other = threading.Thread(target=answer)
    other.start()
    measured, shown = run(store, [held, free], cluster)
    other.join()
    assert measured.plan.jobs == ()
    assert shown.count("waiting: 1 job is being measured") == 1
    assert len(store.table("SELECT id FROM attempt")) == 2


def test_an_error_is_tried_once_by_each_run(store: Store, cluster: Cluster) -> None:
    """A failure that is no answer does not keep a run going for ever, and is left at its end."""
    jobs = [job("raise_exit"), job("a")]
    for runs in (1, 2):
        measured, _ = run(store, jobs, cluster)
        assert measured.plan.answered == 1
        assert [left.pairs for left in measured.plan.jobs] == [jobs[0].pairs]
        assert list(measured.plan.errors.values()) == [
            "the worker raised SystemExit: no licence found"
        ]
        failed = store.table(
            "SELECT count(*) AS n FROM comparison_attempt WHERE failure IS NOT NULL"
        )
        assert list(failed["n"]) == [runs]


def test_too_few_pairs_are_left_and_the_next_run_adds_to_them(
    store: Store, cluster: Cluster
) -> None:
    """A job that came back with fewer pairs than were requested is not answered; two runs together
    answer it.
    """
    jobs = [job("a", pairs_min=50)]
    first, shown = run(store, jobs, cluster)
    assert (first.plan.answered, list(first.plan.insufficient.values())) == (0, [30])
    assert "too few pairs" in shown
    second, _ = run(store, jobs, cluster)
    assert (second.plan.answered, second.plan.jobs, second.plan.insufficient) == (1, (), {})
    assert store.table("SELECT pairs, verdict FROM speedup").to_dict("records") == [
        {"pairs": 60, "verdict": "unclear"}
    ]


def test_answers_can_be_measured_again(store: Store, cluster: Cluster) -> None:
    """Requested again, an answered comparison is measured once more, and only that one."""
    jobs = [job("a"), job("b")]
    run(store, jobs, cluster)
    requested = planning.describe_plan(planned(store, SITES, jobs, again=jobs[1].comparison_ids()))
    assert (
        "2 of 2 comparisons are answered in this environment, 1 of them to be measured again; 1 job"
        " left, at most" in requested
    )
    measured, _ = run(store, jobs, cluster, again=jobs[1].comparison_ids())
    assert (measured.plan.jobs, measured.plan.answered) == ((), 2)
    counted = store.table(
        "SELECT c.method, s.pairs FROM speedup AS s JOIN comparison AS c USING (comparison_id)"
        " ORDER BY c.method"
    )
    assert counted.values.tolist() == [["a", 30], ["b", 60]]


def test_result_of_a_lost_lease_is_dropped_and_the_run_goes_on(
    store: Store, cluster: Cluster
) -> None:
    """As after SIGSTOP and SIGCONT: while a job ran another host took it over; its result here is
    dropped with a line.
    """
    jobs = [job("a", model="slow"), job("b", model="slow"), job("c")]

    def steal() -> None:
        while "running" not in store.states():
            time.sleep(0.02)
        with store.engine.begin() as connection:
            connection.exec_driver_sql(
                "UPDATE job SET owner = ?, renewed_at = 0 WHERE state = 'running'", (ELSEWHERE,)
            )

    thief = threading.Thread(target=steal)
    thief.start()
    measured, shown = run(store, jobs, cluster)
    thief.join()
    assert (measured.plan.jobs, measured.plan.answered) == ((), 3)
    assert shown.count("its result is dropped, the run goes on") == 1
    assert "is no longer running for" in shown
    assert len(store.table("SELECT id FROM attempt")) == 3


def test_a_run_without_a_terminal_is_never_silent(
    store: Store, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line when a job starts and ends, and lines between, with the job, its time so far, and what
    the rest will take.
    """
    monkeypatch.setattr("orchestrator.loop.progress.SILENT_S", 0.05)
    monkeypatch.setattr("orchestrator.loop.dispatcher.POLL_S", 0.05)
    _, shown = run(
        store, [job("a", model="slow", image_size=size) for size in (32, 48, 64)], cluster
    )
    lines = shown.splitlines()
    assert sum(line.startswith("started on ") for line in lines) == 3
    between = [line for line in lines if "running slow" in line]
    assert between
    assert any(
        "for 0 s" in line and line.startswith("[1/3]") and "left" in line for line in between
    )
    assert (
        sum(
            line.startswith(f"[{done}/3] slow") and ", took " in line
            for done in (1, 2, 3)
            for line in lines
        )
        == 3
    )
