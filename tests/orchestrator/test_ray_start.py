"""`--ray-address` against `ray start --head`: tokens, ports and versions, each wrong one in a line
and within seconds.
"""

import contextlib
import http.server
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from orchestrator.cluster.connect import ClusterError, ClusterOutageError, join
from tests.orchestrator.commands import ROOT, SWEEP, breakeven, in_process
from tests.orchestrator.machines import RAY, free_port, head

pytestmark = pytest.mark.ray

JOIN = """
import sys
from orchestrator.cluster.cluster import Cluster
if __name__ == "__main__":
    with Cluster.start(sys.argv[1], entry="tests.orchestrator.worker_entrypoints:noop") as cluster:
        print(*(device for node in cluster.nodes() for device in node.devices))
"""


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """The address of a head that requires a token, and the home folder that holds it."""
    home = tmp_path_factory.mktemp("home")
    environment = {key: value for key, value in os.environ.items() if not key.startswith("RAY_")}
    subprocess.run(
        [RAY, "get-auth-token", "--generate"],
        env={**environment, "HOME": str(home)},
        capture_output=True,
        check=True,
    )
    with head("--num-cpus", "1", home=home) as address:
        yield address, home


@pytest.fixture(autouse=True)
def _no_variables_of_another_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    """The other tests' Ray, started in this process, has left its token in the environment."""
    for name in [name for name in os.environ if name.startswith("RAY_")]:
        monkeypatch.delenv(name)


def joined(address: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    script = folder / "join.py"
    script.write_text(JOIN)
    return subprocess.run(
        [sys.executable, script, address],
        env={**os.environ, "PYTHONPATH": str(ROOT), "HOME": str(folder), **variables},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., str]:
    """The message of `join` for an address, with a home folder and variables of its own."""

    def refusal(address: str, **variables: str) -> str:
        with monkeypatch.context() as patch:
            for name, value in {"HOME": str(tmp_path), **variables}.items():
                patch.setenv(name, value)
            with pytest.raises(ClusterError) as error:
                join(address)
        return str(error.value)

    return refusal


@pytest.mark.slow
def test_token_is_found_wherever_ray_looks_for_it(
    guarded: tuple[str, Path], tmp_path: Path
) -> None:
    """A head with a token is joined by the file in the home folder, by RAY_AUTH_TOKEN and by
    RAY_AUTH_TOKEN_PATH.
    """
    address, home = guarded
    file = home / ".ray" / "auth_token"
    for variables in (
        {"HOME": str(home)},
        {"RAY_AUTH_TOKEN": file.read_text()},
        {"RAY_AUTH_TOKEN_PATH": str(file)},
    ):
        done = joined(address, tmp_path, **variables)
        assert (done.returncode, done.stdout, done.stderr) == (0, "cpu\n", "")


def test_missing_and_wrong_tokens_are_one_line_that_helps(
    guarded: tuple[str, Path], refused: Callable[..., str], tmp_path: Path
) -> None:
    """Each names the address and what to export; Ray's own 20 warnings and its abort are not
    seen.
    """
    address, home = guarded
    port = address.rpartition(":")[2]
    messages = {
        "refuses the token of RAY_AUTH_TOKEN; export RAY_AUTH_TOKEN=": {"RAY_AUTH_TOKEN": "wrong"},
        "requires a token and none is here; export ": {"RAY_AUTH_MODE": "token"},
        "requires a token, but RAY_AUTH_MODE=disabled is set here; unset RAY_AUTH_MODE": {
            "RAY_AUTH_MODE": "disabled",
            "HOME": str(home),
        },
    }
    for message, variables in messages.items():
        line = refused(address, **variables)
        assert message in line
        assert f":{port} " in line
    (tmp_path / "sweep.yaml").write_text(SWEEP)
    done = in_process(
        "run", "sweep.yaml", "--ray-address", address, folder=tmp_path, HOME=str(tmp_path)
    )
    assert done.returncode == 2, done.stderr
    (line,) = done.stderr.strip().splitlines()
    assert "requires a token and none is here; export RAY_AUTH_TOKEN=" in line
    assert "RAY_AUTH_TOKEN_PATH names /nowhere" in refused(address, RAY_AUTH_TOKEN_PATH="/nowhere")


def test_other_versions_are_named_on_both_sides(
    guarded: tuple[str, Path], refused: Callable[..., str], tmp_path: Path
) -> None:
    """A head of another Ray and Python has them in its metadata, which is replaced here for the
    length of the test.
    """
    address, home = guarded
    script = tmp_path / "metadata.py"
    script.write_text(
        "import sys\nfrom ray._raylet import GcsClient\nclient, key ="
        " GcsClient(address=sys.argv[1]), b'CLUSTER_METADATA'\nprint(client.internal_kv_get(key,"
        " namespace=b'cluster').decode())\nclient.internal_kv_put(key, sys.argv[2].encode(), True,"
        " namespace=b'cluster')\n"
    )

    def replaced(metadata: dict[str, object]) -> dict[str, object]:
        environment = {**os.environ, "HOME": str(home), "RAY_AUTH_MODE": "token"}
        command = [sys.executable, script, address, json.dumps(metadata)]
        former: dict[str, object] = json.loads(
            subprocess.run(command, env=environment, capture_output=True, check=True).stdout
        )
        return former

    former = replaced({"ray_version": "2.9.0", "python_version": "3.10.1"})
    try:
        line = refused(address, HOME=str(home))
    finally:
        replaced(former)
    assert "runs Ray 2.9.0 on Python 3.10.1, this process Ray " in line
    assert line.endswith("install the same everywhere")


@pytest.mark.slow
def test_open_cluster_is_joined_without_a_token(
    refused: Callable[..., str], tmp_path: Path
) -> None:
    """A head without a token takes a driver that has one at home; RAY_AUTH_MODE=token requires one
    and is refused.
    """
    (tmp_path / ".ray").mkdir()
    (tmp_path / ".ray" / "auth_token").write_text("a" * 64)
    with head("--num-cpus", "1", home=tmp_path, RAY_AUTH_MODE="disabled") as address:
        done = joined(address, tmp_path)
        assert (done.returncode, done.stdout, done.stderr) == (0, "cpu\n", "")
        assert "uses no token, but RAY_AUTH_MODE=token is set here" in refused(
            address, RAY_AUTH_MODE="token"
        )


class Silent(http.server.BaseHTTPRequestHandler):
    """A web server that answers no method and prints nothing."""

    def log_message(self, *_: object) -> None:
        pass


def test_ports_that_are_no_head_are_one_line(refused: Callable[..., str]) -> None:
    """Nothing there, a web server there, and what is no address at all."""
    port = free_port()
    assert f"Ray cannot be reached at 127.0.0.1:{port}: " in refused(f"127.0.0.1:{port}")
    assert (
        "'ray://there:10001' is no address of a Ray cluster: Ray Client cannot be used"
        in refused("ray://there:10001")
    )
    assert "is no address of a Ray cluster: write HEAD:6379, or auto" in refused("there")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Silent) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        line = refused(f"127.0.0.1:{server.server_port}")
        server.shutdown()
    assert "does not answer as the head of a Ray cluster" in line


def test_what_stays_silent_is_an_outage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A port that accepts and answers nothing, as a head on a machine that is too busy, is not
    called the wrong port.
    """
    monkeypatch.setattr("orchestrator.cluster.connect.GREETING_S", 0.2)
    monkeypatch.setattr("orchestrator.cluster.connect.PROBE_S", 2.0)
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(ClusterOutageError):
        join(f"127.0.0.1:{silent.getsockname()[1]}")
    (tmp_path / "sweep.yaml").write_text(SWEEP)
    done = in_process(
        "run", "sweep.yaml", "--ray-address", f"127.0.0.1:{free_port()}", folder=tmp_path
    )
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)


def test_ray_that_does_not_start_in_time_is_an_outage(tmp_path: Path) -> None:
    """On a busy machine Ray gives up; the command ends with 1 and a line, and leaves nothing
    behind.
    """
    (tmp_path / "sweep.yaml").write_text(SWEEP)
    done = breakeven("run", "sweep.yaml", folder=tmp_path, RAY_gcs_server_port_wait_time_s="0")
    assert done.returncode == 1
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("daemon", ["gcs_server", "raylet"])
def test_a_daemon_that_dies_while_ray_starts_is_an_outage(tmp_path: Path, daemon: str) -> None:
    """Ray's control server, or its daemon of the node, is killed as soon as it is there: the
    command ends with 1 and a line of ours, without what Ray prints.
    """
    (tmp_path / "sweep.yaml").write_text(SWEEP)
    process = subprocess.Popen(
        [sys.executable, "-m", "orchestrator", "run", "sweep.yaml"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "BREAKEVEN_DB": ""},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    victim = None
    while victim is None:
        assert process.poll() is None
        for child in psutil.Process(process.pid).children(recursive=True):
            with contextlib.suppress(psutil.Error):
                victim = child if child.name() == daemon else victim
        time.sleep(0.005)
    victim.kill()
    output, errors = process.communicate(timeout=200)
    assert process.returncode == 1
    (line,) = errors.splitlines()
    assert line.startswith("breakeven: Ray cannot be started here: ")
    assert line.endswith("run the same command again once it is less so")
    assert output.endswith("starting Ray …\n")


KILLED = """
import os, psutil
from orchestrator.cluster import cluster
from sweeps.errors import OutageError
discover_all = cluster.Discovery.discover_all
def without_gcs(discovery):
    for child in psutil.Process().children(recursive=True):
        if child.name() == "gcs_server":
            child.kill()
    discover_all(discovery)
cluster.Discovery.discover_all = without_gcs
if __name__ == "__main__":
    try:
        cluster.Cluster.start(None)
    except OutageError as error:
        print(error)
"""


@pytest.mark.slow
def test_a_control_server_that_is_lost_before_the_nodes_are_known(tmp_path: Path) -> None:
    """One line of ours, although Ray has started already."""
    (tmp_path / "killed.py").write_text(KILLED)
    done = subprocess.run(
        [sys.executable, "killed.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    (line,) = done.stdout.splitlines()
    assert line.startswith("Ray was lost while it started: ")
