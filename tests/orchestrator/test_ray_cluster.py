import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from orchestrator.cluster.cluster import Cluster
from orchestrator.cluster.connect import ClusterError
from sweeps.model.outcome import Outcome
from tests.orchestrator.conftest import job
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
    """A job can be killed at any time; the next one gets a new worker, with the priority of the
    command: Ray would start it at nice 15, where a busy neighbour takes nearly all of a core from
    what is timed.
    """
    (node,) = cluster.nodes()
    running = cluster.submit(job("hang", timeout_s=100), node)
    assert cluster.wait(0.5) == []
    cluster.kill(running)
    cluster.submit(job("a"), node)
    (finished,) = cluster.wait(20)
    assert isinstance(finished.result, Outcome)
    assert finished.result.system_metrics["nice"] == os.getpriority(os.PRIO_PROCESS, 0)


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
