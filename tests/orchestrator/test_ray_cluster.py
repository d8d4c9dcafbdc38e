import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from orchestrator.cluster.cluster import Cluster
from orchestrator.cluster.connect import ClusterError
from orchestrator.host.worker_supervisor import WorkerFailure
from sweeps.model.job import Arm, Step
from sweeps.model.outcome import Outcome
from tests.orchestrator.conftest import Store, job
from workers.measure.environment import environment_of

pytestmark = pytest.mark.ray

ROOT = Path(__file__).parents[2]


def ran_elsewhere(script: str, *arguments: object, home: Path, **variables: str) -> list[str]:
    """What a script prints that runs with a Ray and a home folder of its own; standard error
    included.
    """
    file = home / "script.py"
    file.write_text(textwrap.dedent(script))
    done = subprocess.run(
        [sys.executable, str(file), *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "HOME": str(home), **variables},
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout.splitlines()


def test_node_tells_what_it_is(cluster: Cluster) -> None:
    """One node: this machine, its CPU with the fingerprint that workers give, no GPU that Ray was
    not given.
    """
    (node,) = cluster.nodes()
    assert node.devices == ("cpu",)
    assert node.environments["cpu"] == environment_of("cpu")
    assert node.cpus == os.cpu_count()
    with pytest.raises(ClusterError, match=r"no node offers device cuda; there is .+: cpu"):
        cluster.require(["cpu", "cuda"])


def test_killed_job_frees_its_node(cluster: Cluster) -> None:
    """A job can be killed at any time; the next one gets a new worker."""
    (node,) = cluster.nodes()
    running = cluster.submit(job("hang", timeout_s=100), node)
    assert cluster.wait(0.5) == []
    cluster.kill(running)
    cluster.submit(job("a"), node)
    (finished,) = cluster.wait(20)
    assert isinstance(finished.result, Outcome)


def test_workers_have_the_priority_of_the_command(cluster: Cluster) -> None:
    """Ray would start its workers at nice 15, where a busy neighbour takes nearly all of a core
    from what is timed.
    """
    (node,) = cluster.nodes()
    cluster.submit(job("a"), node)
    (finished,) = cluster.wait(20)
    assert isinstance(finished.result, Outcome)
    assert finished.result.system_metrics["nice"] == os.getpriority(os.PRIO_PROCESS, 0)


def test_failure_returns_as_plain_data(cluster: Cluster) -> None:
    """A dead worker is a result like others, with the span in which it had the host."""
    (node,) = cluster.nodes()
    cluster.submit(job("leave"), node)
    (finished,) = cluster.wait(20)
    assert isinstance(finished.result, WorkerFailure)
    assert finished.running.job.arms[1] == Arm(stack=(Step(method="leave"),))
    assert 0 < finished.result.started_at < finished.result.ended_at


def test_local_cluster_leaves_nothing_behind(cluster: Cluster, tmp_path: Path) -> None:
    """A local Ray prints nothing, keeps off the home folder, and removes its files and not a
    running one's. A process that is killed while it surveys its node is started again: no message
    requests an installation there.
    """
    script = """
        from pathlib import Path
        from orchestrator.cluster.cluster import Cluster

        if __name__ == "__main__":
            killed, notes = "tests.orchestrator.worker_entrypoints:killed_once", []
            with Cluster.start(environments=killed, notify=notes.append) as cluster:
                folder = Path(cluster._folder.path)
                print(folder.exists(), len(cluster.nodes()))
            print(folder.exists(), notes)
    """
    assert cluster._folder is not None
    killed = {"BREAKEVEN_TEST": str(tmp_path / "killed")}
    assert ran_elsewhere(script, home=tmp_path, **killed) == ["True 1", "False []"]
    assert {path.name for path in tmp_path.iterdir()} == {"killed", "script.py"}
    assert Path(cluster._folder.path).exists()


@pytest.mark.slow
def test_nodes_work_side_by_side_and_a_dead_ones_jobs_are_kept(
    store: Store, tmp_path: Path
) -> None:
    """CPU and GPU node get work at once; when the GPU node dies the CPU jobs are answered, and what
    is left is reported.
    """
    here = [job("a", model="slow", image_size=size) for size in range(32, 128, 16)]
    there = [
        one.model_copy(update={"condition": one.condition.model_copy(update={"device": "cuda"})})
        for one in here
    ]
    sweep = store.submit([*here, *there])
    script = """
        import os, sys
        os.environ.update(RAY_USAGE_STATS_ENABLED="0", RAY_AUTH_MODE="disabled")
        from ray.cluster_utils import Cluster as Machines
        from orchestrator.cluster.cluster import Cluster
        from orchestrator.cluster.connect import ClusterError
        from orchestrator.loop.dispatcher import dispatch
        from store.open.engine import connect
        from sweeps.language.file_schema import Retry

        if __name__ == "__main__":
            machines = Machines(initialize_head=True, head_node_args={"num_cpus": 1, "num_gpus": 0})
            extra = machines.add_node(num_cpus=1, num_gpus=1)
            seen = []

            def observe(event):
                seen.append(event.what)
                print(event.what, event.job.condition.device, flush=True)
                if seen.count("answered") == 2 and event.what == "started" and event.job.condition.device == "cuda":
                    machines.remove_node(extra, allow_graceful=False)

            names = {
                "entry": "tests.orchestrator.worker_entrypoints:run",
                "environments": "tests.orchestrator.worker_entrypoints:environments_both",
            }
            with Cluster.start(machines.address, **names) as cluster:
                print(sorted(node.devices for node in cluster.nodes()))
                try:
                    dispatch(connect(sys.argv[1]), int(sys.argv[2]), cluster, retry=Retry(), observer=observe)
                except ClusterError as error:
                    print(error)
            machines.shutdown()
    """
    printed = ran_elsewhere(script, store.path, sweep, home=tmp_path)
    assert printed[:3] == ["[('cpu',), ('cpu', 'cuda')]", "started cpu", "started cuda"]
    assert printed.count("answered cpu") == 6
    assert "retried cuda" in printed
    assert printed[-1].startswith("no node offers device cuda; there is")
    states = store.states()
    assert states["done"] == 6 + printed.count("answered cuda")
    assert states == {"done": states["done"], "waiting": 12 - states["done"]}
