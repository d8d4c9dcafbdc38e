"""Probe of a Ray cluster: its address and versions, read in a process of its own.

`ray.init` retries for half a minute and fills the terminal when an address is wrong, and with an
explicit address it never looks for a token (Ray 2.60). Run as `python -m orchestrator.cluster.probe
ADDRESS`; the caller discards its warnings.
"""

import importlib
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
from typing import Any, Literal, NamedTuple

PROBE_S = 90.0
"""Ray gives up on a head that does not answer after 40 s; importing Ray takes the rest on a busy
machine."""
MODE = "RAY_AUTH_MODE"


class Found(NamedTuple):
    """What answers at an address."""

    state: Literal["joined", "unauthenticated", "other_version", "unreachable", "no_answer"]
    address: str
    """`host:port`, also where `auto` was requested."""
    detail: str = ""


def probe(address: str, mode: str) -> Found:
    """Probe an address with a token mode, in a new process."""
    variables = {**os.environ, MODE: mode}
    command = [sys.executable, "-P", "-m", "orchestrator.cluster.probe", address]
    try:
        done = subprocess.run(
            command, env=variables, capture_output=True, text=True, timeout=PROBE_S, check=False
        )
    except subprocess.TimeoutExpired:
        return Found("no_answer", address)
    try:
        return Found(**json.loads(done.stdout.splitlines()[-1]))
    except (IndexError, ValueError, TypeError):
        lines = done.stderr.strip().splitlines() or [
            f"the probe ended with status {done.returncode}"
        ]
        return Found("unreachable", address, lines[-1])


def _probe_here(address: str) -> Found:
    from ray._private import services, utils
    from ray.exceptions import AuthenticationError, RpcError

    try:
        resolved = services.canonicalize_bootstrap_address_or_die(address)
    except (ConnectionError, ValueError):
        return Found(
            "unreachable", address, "no Ray runs on this machine; start one with: ray start --head"
        )
    raylet: Any = importlib.import_module("ray._raylet")  # its stub file leaves the client out
    try:
        client = raylet.GcsClient(address=resolved)
        written = client.internal_kv_get(b"CLUSTER_METADATA", namespace=b"cluster")
    except AuthenticationError as error:
        return Found("unauthenticated", resolved, error.message)
    except RpcError:
        return Found("no_answer", resolved)
    metadata = json.loads(written) if written else None
    if metadata:
        try:
            utils.check_version_info(metadata, "here")
        except RuntimeError:
            theirs = f"runs Ray {metadata['ray_version']} on Python {metadata['python_version']}"
            ours = f"Ray {importlib.metadata.version('ray')} on Python {platform.python_version()}"
            return Found("other_version", resolved, f"{theirs}, this process {ours}")
    return Found("joined", resolved)


if __name__ == "__main__":
    sys.stdout.write(json.dumps(_probe_here(sys.argv[1])._asdict()) + "\n")
