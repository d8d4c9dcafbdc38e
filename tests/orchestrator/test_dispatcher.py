import itertools
import json
import os
import re
import signal
import subprocess
import sys
import textwrap
from contextlib import ExitStack
from pathlib import Path

import pytest
from sqlalchemy import text

from orchestrator.cluster.cluster import Cluster
from orchestrator.host.host_lock import host_lock
from orchestrator.loop.dispatcher import Event, dispatch
from store.rows.transactions import writing
from store.write import queue
from store.write.reanalysis import reanalyse
from sweeps.language.file_schema import Retry
from sweeps.model.job import Arm, Step
from tests.orchestrator.conftest import Store, job

pytestmark = pytest.mark.ray

ROOT = Path(__file__).parents[2]
ENOUGH_S = 60.0
"""To stop, which takes seconds on an idle machine."""


def overlaps(spans: list[tuple[float, float]]) -> int:
    """How many spans begin before the one before them has ended."""
    return sum(after[0] < before[1] for before, after in itertools.pairwise(sorted(spans)))


def spans(store: Store) -> list[tuple[float, float]]:
    return list(
        store.table("SELECT started_at, ended_at FROM attempt").itertuples(index=False, name=None)
    )


def test_every_job_is_answered_once_by_one_warm_worker(store: Store, cluster: Cluster) -> None:
    """Five jobs, five attempts, no overlap, one process."""
    sweep = store.submit([job("a", "b", image_size=size) for size in range(32, 112, 16)])
    summary, events = store.dispatch(sweep, cluster)
    assert summary == (10, 0, 0, False)
    assert store.states() == {"done": 5}
    happened = [event.what for event in events if event.what != "waiting"]
    assert happened == ["started", "answered"] * 5, "a job waits where another test has the host"
    assert len({event.outcome.system_metrics["pid"] for event in events if event.outcome}) == 1
    assert len(spans(store)) == 5
    assert overlaps(spans(store)) == 0
    assert store.dispatch(sweep, cluster) == ((0, 0, 0, False), [])


def test_curves_are_whole_when_it_ends(store: Store, cluster: Cluster) -> None:
    """However many outcomes came since they were derived last; also what a killed one left."""
    jobs = [job("a", "b", image_size=size) for size in range(32, 96, 16)]
    store.dispatch(store.submit(jobs), cluster)
    with writing(store.engine) as connection:
        derived = connection.execute(text("DELETE FROM break_even_row RETURNING curve_id")).all()
        ids = json.dumps([key for each in jobs for key in each.comparison_ids()])
        left = "INSERT INTO pending_derivation (analysis, stage, environment, comparisons)"
        connection.execute(
            text(f"{left} SELECT '', 'curves', environment, :ids FROM attempt LIMIT 1"),
            {"ids": ids},
        )
    assert derived
    store.dispatch(store.submit([job("a", image_size=128)]), cluster)
    assert store.table("SELECT * FROM pending_derivation").empty
    curves = store.table("SELECT * FROM break_even_row ORDER BY 1, 2, 3, 4, 5")
    assert set(curves["curve_id"]) >= {row.curve_id for row in derived}
    reanalyse(store.engine)
    assert store.table("SELECT * FROM break_even_row ORDER BY 1, 2, 3, 4, 5").equals(curves)


def test_rounds_get_a_fresh_process_each(store: Store, cluster: Cluster) -> None:
    """Repetitions of a job must not share what a process happens to be."""
    repeated = job("a", rounds=2)
    sweep = store.submit([repeated.model_copy(update={"round": number}) for number in range(2)])
    _, events = store.dispatch(sweep, cluster)
    readings = [event.outcome.system_metrics for event in events if event.outcome]
    assert [reading["calls"] for reading in readings] == [1, 1]
    assert len({reading["pid"] for reading in readings}) == 2


def test_a_worker_is_replaced_after_it_ran_out_of_memory(store: Store, cluster: Cluster) -> None:
    """The next job gets a new process; after a failure that leaves no trace it gets the same."""
    methods = ("unsupported", "out_of_memory", "a")
    sweep = store.submit([job(name, image_size=32 + 16 * n) for n, name in enumerate(methods)])
    _, events = store.dispatch(sweep, cluster)
    found = [event.outcome for event in events if event.outcome]
    assert [len(outcome.failures) for outcome in found] == [1, 1, 0]
    first, second, third = (outcome.system_metrics["pid"] for outcome in found)
    assert first == second != third


def test_a_lease_that_ends_meanwhile_is_taken_over(
    store: Store, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While jobs run here, one of an owner elsewhere that has fallen silent is measured too."""
    monkeypatch.setattr("orchestrator.loop.dispatcher.RENEW_S", 0.1)
    monkeypatch.setattr("orchestrator.loop.dispatcher.POLL_S", 0.05)
    sweep = store.submit([job("a", model="slow", image_size=size) for size in range(32, 112, 16)])
    queue.claim(store.engine, sweep, owner="elsewhere:1:1")

    def silence() -> None:
        with writing(store.engine) as connection:
            connection.execute(text("UPDATE job SET renewed_at = 1 WHERE owner = 'elsewhere:1:1'"))

    dispatch(store.engine, sweep, cluster, retry=Retry(), tick=silence)
    assert store.states() == {"done": 5}


@pytest.mark.parametrize(
    ("failing", "reason", "message"),
    [
        ("segfault", "crash", "the worker died of SIGSEGV while running (2 executions)"),
        ("raise_exit", "error", "the worker raised SystemExit: no licence found"),
    ],
)
def test_failing_arm_is_isolated_and_the_others_are_answered_once(
    store: Store, cluster: Cluster, failing: str, reason: str, message: str
) -> None:
    """A job of four arms is bisected until the failing one is alone; every execution is
    recorded.
    """
    summary, events = store.dispatch(
        store.submit([job("a", "b", failing, "c")]),
        cluster,
    )
    assert summary == (3, 0, 1, False)
    assert store.answers() == {"a": "measured", "b": "measured", "c": "measured", failing: reason}
    assert store.states() == {"split": 2, "done": 2, "failed": 1}
    failures = store.table(
        "SELECT message, count(*) AS n FROM failure WHERE arm IS NOT NULL GROUP BY message"
    )
    assert failures.to_dict("list") == {"message": [message], "n": [1]}
    assert len(spans(store)) == (
        6 if reason == "crash" else 5
    )  # two whole jobs, two parts that are measured, the failing one, which is tried twice
    assert overlaps(spans(store)) == 0
    assert [event.what for event in events].count("split") == 2
    assert "baseline_check" not in [event.what for event in events]


def test_failing_baseline_is_isolated_by_running_it_alone(store: Store, cluster: Cluster) -> None:
    """When every pair fails the baseline runs alone, once; its failure is the reason recorded for
    its arms.
    """
    baseline = Arm(stack=(Step(method="leave"),))
    summary, events = store.dispatch(store.submit([job("a", "b", baseline=baseline)]), cluster)
    assert summary == (0, 0, 2, False)
    failures = store.table(
        "SELECT arm, message FROM failure WHERE arm IS NOT NULL ORDER BY attempt, arm"
    ).values.tolist()
    assert [arm for arm, _ in failures] == [0, 1, 0, 1]
    assert failures[1][1].startswith(
        "not measured: its baseline leave() failed alone: the worker left with exit status 3"
    )
    assert [event.what for event in events].count("baseline_check") == 1


def test_samples_of_a_baseline_that_runs_alone_are_kept(store: Store, cluster: Cluster) -> None:
    """When the only pair fails the run of the baseline alone shows that the arm fails, and is
    stored with the failure.
    """
    summary, events = store.dispatch(store.submit([job("segfault")]), cluster, max_attempts=1)
    assert summary == (0, 0, 1, False)
    assert [event.what for event in events] == ["started", "baseline_check", "answered"]
    outcome = events[-1].outcome
    assert outcome is not None
    assert [measured.arm for measured in outcome.arms] == [0]
    assert [(failure.arm, failure.reason) for failure in outcome.failures] == [(1, "crash")]
    assert "Segmentation fault" in outcome.failures[0].detail
    assert outcome.samples is not None
    assert store.answers() == {"segfault": "crash"}


def test_observer_that_raises_loses_nothing(store: Store, cluster: Cluster) -> None:
    """An error in what shows progress ends the dispatch; what was answered stays, what ran goes
    back to the queue.
    """
    sweep = store.submit([job("a", image_size=size) for size in (32, 48, 64)])

    def observe(event: object, seen: list[object] = []) -> None:  # noqa: B006 - counts its own calls
        seen.append(event)
        if len(seen) == 3:
            raise RuntimeError("the terminal is gone")

    with pytest.raises(RuntimeError, match="the terminal is gone"):
        dispatch(store.engine, sweep, cluster, retry=Retry(), observer=observe)
    assert store.states() == {"done": 1, "waiting": 2}
    assert store.dispatch(sweep, cluster)[0] == (2, 0, 0, False)
    assert len(spans(store)) == 3


SCRIPT = """
    import sys
    from pathlib import Path
    from orchestrator.cluster.cluster import Cluster
    from orchestrator.loop.dispatcher import dispatch
    from store.open.engine import connect
    from sweeps.language.file_schema import Retry

    if __name__ == "__main__":
        with Cluster.start(entry="tests.orchestrator.worker_entrypoints:run") as cluster:
            summary = dispatch(connect(sys.argv[1]), int(sys.argv[2]), cluster, retry=Retry(),
                               observer=lambda event: print(event.what, flush=True))
        print(*summary, flush=True)
"""


def started_elsewhere(store: Store, sweep: int, tmp_path: Path) -> subprocess.Popen[str]:
    """A dispatcher with a Ray of its own in another process, as a user starts it."""
    script = tmp_path / "dispatcher.py"
    script.write_text(textwrap.dedent(SCRIPT))
    return subprocess.Popen(
        [sys.executable, str(script), str(store.path), str(sweep)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        start_new_session=True,
    )


def read_until(process: subprocess.Popen[str], line: str, times: int) -> None:
    assert process.stdout is not None
    for _ in range(times):
        for printed in process.stdout:
            if printed.strip() == line:
                break


def test_accuracy_jobs_share_a_node_and_timing_has_it_alone(store: Store, cluster: Cluster) -> None:
    """With one thread each as many accuracy jobs run at once as there are cores, each in a worker;
    a latency job with none.
    """
    (node,) = cluster.nodes()
    assert node.cpus >= 2
    timed = [job("a", model="slow", image_size=size) for size in (32, 48)]
    condition = timed[0].condition.model_copy(update={"threads": 1})
    evaluated = [
        timed[0].model_copy(
            update={
                "kind": "accuracy",
                "condition": condition.model_copy(update={"image_size": size}),
            }
        )
        for size in range(32, 32 + 16 * (node.cpus + 1), 16)
    ]
    summary, events = store.dispatch(store.submit([timed[0], *evaluated, timed[1]]), cluster)
    assert summary.measured == len(evaluated) + 2
    outcomes = [event.outcome for event in events if event.outcome]
    shared = [(one.started_at, one.ended_at) for one in outcomes if one.job.kind == "accuracy"]
    alone = [(one.started_at, one.ended_at) for one in outcomes if one.job.kind == "latency"]
    most: dict[str, int] = {}
    running: list[str] = []
    for event in events:
        if event.what == "started":
            running.append(event.job.kind)
            most[event.job.kind] = max(most.get(event.job.kind, 0), len(running))
        elif event.what == "answered":
            running.remove(event.job.kind)
    assert most == {"latency": 1, "accuracy": node.cpus}
    assert overlaps(alone) == 0
    assert not any(start < end and begin < stop for start, stop in shared for begin, end in alone)
    assert len({one.system_metrics["pid"] for one in outcomes if one.job.kind == "accuracy"}) > 1
    assert len(outcomes) == len(evaluated) + 2


def test_waiting_for_the_host_and_its_end_are_seen(
    store: Store, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job that waits for another store's timing job is reported with that job's kind and process,
    once more when it has the host, and answered after it.
    """
    monkeypatch.setattr("orchestrator.cluster.cluster.WAITS_S", 0.02)
    monkeypatch.setattr("orchestrator.loop.dispatcher.POLL_S", 0.02)
    sweep = store.submit([job("a", model="slow")])
    events: list[Event] = []
    taken = ExitStack()
    taken.enter_context(host_lock("generation"))

    def observe(event: Event) -> None:
        events.append(event)
        if event.what == "waiting":
            taken.close()

    with taken:
        assert dispatch(store.engine, sweep, cluster, retry=Retry(), observer=observe).measured == 1
    assert [event.what for event in events] == ["started", "waiting", "begun", "answered"]
    assert re.match(
        r"waiting since \d\d:\d\d:\d\d \(\d+ s\) for a generation job of ", events[1].message
    )
    assert f"(process {os.getpid()}, since " in events[1].message


def test_two_stores_share_a_host_and_an_interrupted_dispatcher_resumes(
    store: Store, cluster: Cluster, tmp_path: Path
) -> None:
    """Dispatchers that know nothing of each other take turns job by job. After Ctrl-C, which a
    terminal sends to all processes, the job in flight of one waits again, and Ray prints nothing.
    """
    other = Store(tmp_path / "other.db")
    jobs = [job("a", model="slow", image_size=size) for size in range(32, 352, 16)]
    sweep = other.submit(jobs)
    with started_elsewhere(other, sweep, tmp_path) as process:
        read_until(process, "answered", 1)
        assert store.dispatch(store.submit(jobs[:4]), cluster)[0].measured == 4
        read_until(process, "answered", 1)
        both = spans(store) + spans(other)
        assert overlaps(both) == 0
        assert max(start for start, _ in spans(store)) > min(end for _, end in spans(other))
        os.killpg(process.pid, signal.SIGINT)
        assert process.stdout is not None
        rest = process.stdout.read().split("\n")
        assert process.wait(ENOUGH_S) == 0
    done = other.states()["done"]
    assert rest[-2] == f"{done} 0 0 True"
    assert set(rest[:-2]) <= {"started", "answered", "waiting", "begun"}
    assert other.states() == {"done": done, "waiting": len(jobs) - done}
    assert other.dispatch(sweep, cluster)[0] == (len(jobs) - done, 0, 0, False)
    assert len(spans(other)) == len(jobs)
    assert max(start for start, _ in spans(other)) > min(end for _, end in spans(store))
    assert overlaps(spans(store) + spans(other)) == 0
    other.engine.dispose()
