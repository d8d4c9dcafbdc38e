"""`exclusive: device` from the supervisor and from a dispatcher on a node that claims two GPUs: one
pinned worker for each.
"""

import json
import os
import subprocess
import sys
import textwrap
from itertools import combinations
from pathlib import Path

import pytest

from orchestrator.host.worker_supervisor import WorkerConfig, WorkerFailure, WorkerSupervisor
from sweeps.model.job import Job
from tests.orchestrator.conftest import Store, job
from tests.orchestrator.machines import clean_environment, head

ROOT = Path(__file__).parents[2]
ENTRY = WorkerConfig("tests.orchestrator.worker_entrypoints:noop", path=(str(ROOT),))


def on_gpu(made: Job, alone_on: str | None = "device") -> Job:
    return made.model_copy(
        update={
            "condition": made.condition.model_copy(update={"device": "cuda", "exclusive": alone_on})
        }
    )


def test_worker_is_pinned_for_such_jobs_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each change of what the worker may use needs a new one; all cores are its own again
    afterwards.
    """
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    supervisor = WorkerSupervisor("cuda", ENTRY)
    requested = [on_gpu(job("a"), None), on_gpu(job("a")), on_gpu(job("b")), on_gpu(job("a"), None)]
    found = [
        json.loads(str(supervisor.run(one.model_dump_json(), 60.0, gpus=2))) for one in requested
    ]
    supervisor.stop()
    whole, pinned, again, free = found
    assert whole["cores"] is None
    assert free["cores"] is None
    assert pinned["cores"] == again["cores"]
    assert len(pinned["cores"]) == len(os.sched_getaffinity(0)) // 2
    assert pinned["system_metrics"]["pid"] == again["system_metrics"]["pid"]
    assert len({each["system_metrics"]["pid"] for each in found}) == 3


def test_gpu_without_cores_is_a_failure_that_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is started, and no lock is kept."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    supervisor = WorkerSupervisor("cuda", ENTRY)
    failure = supervisor.run(on_gpu(job("a")).model_dump_json(), 60.0, gpus=4096)
    assert isinstance(failure, WorkerFailure)
    assert failure.kind == "error"
    assert "needs a physical core for each of the 4096 GPUs" in failure.message
    assert supervisor.waiting() is None


SCRIPT = """
    import sys
    from orchestrator.cluster.cluster import Cluster
    from orchestrator.loop.dispatcher import dispatch
    from store.open.engine import connect
    from sweeps.language.file_schema import Retry

    if __name__ == "__main__":
        names = {
            "entry": "tests.orchestrator.worker_entrypoints:slow",
            "environments": "tests.orchestrator.worker_entrypoints:environments_both",
        }
        with Cluster.start(sys.argv[1], **names) as cluster:
            observer = lambda event: print(event.what, event.job.occupation, flush=True)
            print(dispatch(connect(sys.argv[2]), 1, cluster, retry=Retry(), observer=observer).measured)
"""


@pytest.mark.slow
@pytest.mark.ray
def test_two_gpus_are_timed_at_once_and_the_node_alone(store: Store, tmp_path: Path) -> None:
    """Jobs of one sweep: never more than two on GPUs, each on cores of its own; timing of the node,
    and accuracy, with none.
    """
    jobs = [on_gpu(job("a", model="slow", image_size=size)) for size in range(32, 32 + 16 * 8, 16)]
    node = [on_gpu(job("a", model="slow", image_size=size), None) for size in (32, 48)]
    shared = on_gpu(job("a", model="slow"), None).model_copy(update={"kind": "accuracy"})
    store.submit([node[0], *jobs[:4], node[1], shared, *jobs[4:]])
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(SCRIPT))
    with head("--num-cpus", "2", "--num-gpus", "2", home=tmp_path) as address:
        done = subprocess.run(
            [sys.executable, str(script), address, str(store.path)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=clean_environment(tmp_path),
            timeout=120,
            check=False,
        )
    assert done.returncode == 0, done.stdout
    *lines, measured = done.stdout.splitlines()
    assert measured == "11", done.stdout
    running: list[str] = []
    together = set()
    for what, occupation in (
        line.split() for line in lines if line.startswith(("started", "answered"))
    ):
        running.append(occupation) if what == "started" else running.remove(occupation)
        together.add(tuple(running))
    assert together == {(), ("node",), ("device",), ("device", "device"), ("shared",)}
    rows = store.table("SELECT payload, started_at, ended_at FROM attempt").to_dict("records")
    spans = [
        (json.loads(row["payload"]).get("cores"), row["started_at"], row["ended_at"])
        for row in rows
    ]
    pinned = {tuple(cores) for cores, *_ in spans if cores}
    assert len(pinned) == 2
    assert len(set().union(*pinned)) == sum(map(len, pinned))
    for (cores, began, ended), (others, start, stop) in combinations(spans, 2):
        if began < stop and start < ended:
            assert cores
            assert others
            assert not set(cores) & set(others)
    shown = store.table(
        "SELECT exclusive, count(*) AS n, count(DISTINCT curve_id) AS curves FROM speedup GROUP BY"
        " exclusive"
    )
    assert {(row.exclusive, row.n, row.curves) for row in shown.fillna("").itertuples()} == {
        ("", 2, 1),
        ("device", 8, 1),
    }
