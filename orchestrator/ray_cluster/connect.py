"""Connection to Ray: starts Ray on this machine, or joins a cluster that answers, accepts the token and has our versions."""

import importlib
import logging
import os
import re
import secrets
import socket
from pathlib import Path

from orchestrator.ray_cluster.probe import MODE, Found, probe
from orchestrator.ray_tempdir import Folder
from sweeps.errors import UserError

OBJECT_STORE_BYTES = 100_000_000
"""Jobs and outcomes are a few kilobytes; tensors never travel."""
CONNECT_S = 5.0
HEAD_PORT = 6379
TOKEN, TOKEN_PATH = "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"
_EXPORT = f'export {TOKEN}="$(ssh HEAD ray get-auth-token)", or {TOKEN_PATH}=FILE, with the token of the cluster\'s head'


class ClusterError(UserError):
    """The cluster cannot do what is requested; one line for people."""


def start_ray(address: str | None, folder: Folder | None) -> None:
    """Start or join a Ray cluster, quietly. Raises `ClusterError`."""
    quiet = {
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",  # under `uv run` Ray would build a second environment for its workers
        "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # the next default, without the warning; we hide GPUs from CPU jobs ourselves
    }
    if not address:
        quiet["RAY_worker_niceness"] = "0"  # 15 by default: beside one busy process a forward then takes 30 times as long
        quiet["RAY_memory_monitor_refresh_ms"] = "0"  # it would kill the supervisor, not the worker, and print pages
        if not {MODE, TOKEN, TOKEN_PATH} & os.environ.keys():
            quiet[TOKEN] = secrets.token_hex(32)  # else Ray writes one into the home folder, which may be read-only
    else:
        address, os.environ[MODE] = join(address)
    for key, value in quiet.items():
        os.environ.setdefault(key, value)
    import ray

    local = {
        "address": "local",
        "object_store_memory": OBJECT_STORE_BYTES,
        "include_dashboard": False,
        "_temp_dir": folder and folder.path,
    }
    try:
        ray.init(**(local if not address else {"address": address}), log_to_driver=False, logging_level=logging.ERROR)
    except Exception as error:  # Ray raises plain `Exception` too
        problem = f"the Ray cluster at {address} cannot be joined" if address else "Ray cannot be started here"
        cause = error.__cause__ or error
        first = next(iter(str(cause).strip().splitlines()), type(cause).__name__)
        raise ClusterError(f"{problem}: {first}") from error
    # Ray prints pages of its logs when one of its processes is killed, and has no setting for that
    importlib.import_module("ray._private.worker").__dict__["_worker_logs_enabled"] = False


def join(address: str) -> tuple[str, str]:
    """The cluster at `address` (`host:port`, or `auto` for the one on this machine) as `host:port`, and the token mode it has.

    The mode is a value for `RAY_AUTH_MODE`, which must be set before Ray is imported. Raises `ClusterError`.
    """
    if address != "auto":
        _connect(address)
    mode = os.environ.get(MODE, "").lower()
    if mode not in {"", "disabled", "token"}:
        return _checked(probe(address, mode)), mode
    found = probe(address, "disabled")
    if found.state != "unauthenticated":
        if found.state == "joined" and mode == "token":
            raise ClusterError(f"the Ray cluster at {found.address} uses no token, but {MODE}=token is set here; unset {MODE}")
        return _checked(found), "disabled"
    if mode == "disabled":
        raise ClusterError(f"the Ray cluster at {found.address} requires a token, but {MODE}=disabled is set here; unset {MODE}")
    source = _token_source()
    if source is None:
        raise ClusterError(f"the Ray cluster at {found.address} requires a token and none is here; {_EXPORT}")
    found = probe(found.address, "token")
    if found.state == "unauthenticated":
        raise ClusterError(f"the Ray cluster at {found.address} refuses the token of {source}; {_EXPORT}")
    return _checked(found), "token"


def _token_source() -> str | None:
    """Where Ray takes the token from, in its own order; `None` without one. Raises `ClusterError` for a missing file."""
    if os.environ.get(TOKEN):
        return TOKEN
    if file := os.environ.get(TOKEN_PATH):
        if not Path(file).is_file():
            raise ClusterError(f"{TOKEN_PATH} names {file}, and there is no such file; {_EXPORT}")
        return file
    usual = Path.home() / ".ray" / "auth_token"
    return str(usual) if usual.is_file() else None


def _connect(address: str) -> None:
    """Raise `ClusterError` unless something listens at `host:port`."""
    host, _, port = address.rpartition(":")
    if not host or not re.fullmatch(r"\d+", port) or "/" in host:
        problem = "Ray Client cannot be used, " if address.startswith("ray://") else ""
        raise ClusterError(f"{address!r} is no address of a Ray cluster: {problem}write HEAD:{HEAD_PORT}, or auto on a node of it")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_S).close()
    except (OSError, OverflowError) as error:
        raise ClusterError(f"Ray cannot be reached at {address}: {error}; is `ray start --head` running there?") from error


def _checked(found: Found) -> str:
    match found.state:
        case "joined":
            return found.address
        case "other_version":
            raise ClusterError(f"the Ray cluster at {found.address} {found.detail}; install the same everywhere")
        case "unauthenticated":
            raise ClusterError(f"the Ray cluster at {found.address} refuses to authenticate: {found.detail}")
        case "no_answer":
            raise ClusterError(
                f"what listens at {found.address} does not answer as the head of a Ray cluster; its port is that of "
                f"`ray start --head --port` ({HEAD_PORT} unless set), not the dashboard's or the client's"
            )
        case _:
            raise ClusterError(f"Ray cannot be reached at {found.address}: {found.detail}")
