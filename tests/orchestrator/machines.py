"""Ray nodes as `ray start` makes them, several on this machine, each in a process group of its own
that ends with its block.

`ray stop` would end every Ray of this user, so it is never called.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.orchestrator.commands import ROOT

START_S = 60.0
RAY = Path(sys.executable).with_name("ray")
QUIET = (
    "--disable-usage-stats",
    "--object-store-memory",
    "80000000",
    "--dashboard-agent-listen-port",
    "0",
    "--no-monitor",
    "--include-log-monitor=false",
)
FEW = {"RAY_prestart_worker_first_driver": "0"}
"""No process for each core before there is an actor."""


def free_port() -> int:
    """A port that nothing listens on; not one of those that Ray's workers use (10002 to 19999)."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextmanager
def head(*options: str, home: Path, port: int | None = None, **variables: str) -> Iterator[str]:
    """The address of a head started by `ray start --head`, whose home folder holds the token if
    there is one.
    """
    port = port or free_port()
    command = ["--head", "--port", str(port), "--include-dashboard=false", *options]
    with started(*command, home=home, **variables):
        yield f"127.0.0.1:{port}"


@contextmanager
def started(*options: str, home: Path, **variables: str) -> Iterator["subprocess.Popen[bytes]"]:
    """A node as `ray start OPTIONS` starts it; killed with all its processes when the block
    ends.
    """
    # a socket's path has at most 107 characters
    folder = Path(tempfile.mkdtemp(prefix="bk-ray-", dir="/tmp"))
    if "--head" in options:
        options = (*options, "--temp-dir", str(folder))
    environment = {key: value for key, value in os.environ.items() if not key.startswith("RAY_")}
    log = (folder / "start.log").open("wb")
    process = subprocess.Popen(
        [RAY, "start", "--block", *QUIET, *options],
        env={**environment, "HOME": str(home), "TMPDIR": "/tmp", **FEW, **variables},
        cwd=home,
        stdout=log,
        stderr=log,
        start_new_session=True,
    )
    try:
        until = time.monotonic() + START_S
        while b"Ray runtime started" not in (text := (folder / "start.log").read_bytes()):
            assert process.poll() is None, text.decode()
            assert time.monotonic() < until, text.decode()
            time.sleep(0.1)
        yield process
    finally:
        kill(process)
        log.close()
        shutil.rmtree(folder, ignore_errors=True)


def clean_environment(home: Path) -> dict[str, str]:
    """Of a program that uses this checkout and `home`, and knows nothing of a Ray that an earlier
    test started in this process.
    """
    kept = {key: value for key, value in os.environ.items() if not key.startswith("RAY_")}
    return {**kept, "PYTHONPATH": str(ROOT), "HOME": str(home)}


def kill(process: "subprocess.Popen[bytes]") -> None:
    """End a node as a power cut would."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
