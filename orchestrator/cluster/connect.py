"""Connection to Ray: starts Ray on this machine, or joins a cluster that answers, accepts the token
and has our versions.

A cluster is probed in a process of its own, `python -m orchestrator.cluster.connect ADDRESS`:
`ray.init` retries for half a minute and fills the terminal when an address is wrong, and with an
explicit address it never looks for a token (Ray 2.60).

The files of our own Ray lie in one parent folder per user, which no other user can write. What
killed runs left there is removed: only what carries our marker ever is.
"""

import contextlib
import fcntl
import importlib
import importlib.metadata
import json
import logging
import os
import platform
import re
import secrets
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

from store.rows.owners import has_ended, owner
from sweeps.errors import OutageError, UserError
from workers.measure.descendants import end, writing_below

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
    command = [sys.executable, "-P", "-m", "orchestrator.cluster.connect", address]
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


SOCKET_FOLDER = Path("/tmp")  # noqa: S108 - a socket's path has at most 107 characters, which TMPDIR may use up
_VARIABLE = "RAY_TMPDIR"
LONGEST = 43
"""Characters of a folder's path: Ray appends 64 to name its sockets."""
PREFIX = "ray-"
MARKER = ".breakeven-owner"


class Folder:
    """The files of a Ray of our own: gone when it ends, or at our next start if it was killed."""

    def __init__(self) -> None:
        """Raises `OSError`, whose text names what is wrong with the place, if it cannot be used."""
        parent = _parent()
        for old in parent.glob(f"{PREFIX}*"):
            _remove_if_abandoned(old)
        self.path = tempfile.mkdtemp(prefix=PREFIX, dir=parent)
        try:
            self._file = _mark(Path(self.path))
        except OSError:
            shutil.rmtree(self.path, ignore_errors=True)
            raise

    def end_processes(self) -> None:
        """Kill the processes that still write here: Ray's agents outlive a raylet or GCS that was
        killed, some for minutes.
        """
        end(writing_below(Path(self.path)))

    def remove(self) -> None:
        with contextlib.suppress(OSError):
            _remove(Path(self.path))
        os.close(self._file)


def _parent() -> Path:
    """The folder of this user, made if it is not there."""
    place = Path(os.environ.get(_VARIABLE) or SOCKET_FOLDER)
    parent = place / f"breakeven-{os.geteuid()}"
    if len(str(parent / f"{PREFIX}12345678")) > LONGEST:
        raise OSError(
            f"{place} is too long a path for the sockets of Ray; name a shorter one with"
            f" {_VARIABLE}"
        )
    with contextlib.suppress(FileExistsError):
        parent.mkdir(mode=0o700)
    found = parent.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise OSError(
            f"{parent} is not a folder of this user; remove it, or name another place with"
            f" {_VARIABLE}"
        )
    if stat.S_IMODE(found.st_mode) & 0o077:
        parent.chmod(0o700)
    return parent


def _mark(folder: Path) -> int:
    """Put the marker into the folder, which names this process and is locked until it ends. Returns
    the open file.
    """
    unfinished = folder / f"{MARKER}.new"
    file = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    fcntl.flock(file, fcntl.LOCK_EX)
    os.write(file, owner().encode())
    unfinished.rename(folder / MARKER)  # never there without its lock
    return file


def _remove_if_abandoned(folder: Path) -> None:
    """Remove a folder with our marker whose process is known to have ended, and end the rest of its
    Ray; leave all others.
    """
    with contextlib.suppress(OSError), _locked(folder / MARKER) as text:
        if has_ended(text):
            end(writing_below(folder))
            _remove(folder)


def _remove(folder: Path) -> None:
    """Remove a folder of ours, the marker last: where processes of a killed Ray still write, the
    next start removes the rest.
    """
    for entry in folder.iterdir():
        if entry.name == MARKER:
            continue
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry, ignore_errors=True)
        else:
            entry.unlink(missing_ok=True)
    if [entry.name for entry in folder.iterdir()] in ([], [MARKER]):
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _locked(marker: Path) -> Iterator[str]:
    """The text of a marker, which is ours and not locked by another process. Raises `OSError`
    otherwise.
    """
    file = os.open(marker, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        if os.fstat(file).st_uid != os.geteuid() or stat.S_ISLNK(marker.parent.lstat().st_mode):
            raise OSError(f"{marker} is not ours")
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield os.read(file, 1000).decode(errors="replace")
    finally:
        os.close(file)


OBJECT_STORE_BYTES = 100_000_000
"""Jobs and outcomes are a few kilobytes; tensors never travel."""
CONNECT_S = 5.0
HEAD_PORT = 6379
GREETING_S = 5.0
_SETTINGS_FRAME = 4
"""The kind of frame that a server of HTTP/2 sends first."""
TOKEN, TOKEN_PATH = "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"
_PORT = f"`ray start --head --port` ({HEAD_PORT} unless set), not the dashboard's or the client's"
_LATER = "if the machine is busy, run the same command again once it is less so"
_EXPORT = (
    f'export {TOKEN}="$(ssh HEAD ray get-auth-token)", or {TOKEN_PATH}=FILE, with the token of the'
    " cluster's head"
)


class ClusterError(UserError):
    """The cluster cannot do what is requested; one line for people."""


class ClusterOutageError(ClusterError, OutageError):
    """The cluster, or what is needed of it, is away or too busy."""


def start_ray(address: str | None, folder: Folder | None) -> None:
    """Start or join a Ray cluster, quietly. Raises `ClusterError`."""
    quiet = {
        "RAY_USAGE_STATS_ENABLED": "0",
        # under `uv run` Ray would build a second environment for its workers
        "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
        # the next default, without the warning; we hide GPUs from CPU jobs ourselves
        "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    }
    if not address:
        # 15 by default: beside one busy process a forward then takes 30 times as long
        quiet["RAY_worker_niceness"] = "0"
        # it would kill the supervisor, not the worker, and print pages
        quiet["RAY_memory_monitor_refresh_ms"] = "0"
        # a process for each core, of which one gets a supervisor
        quiet["RAY_prestart_worker_first_driver"] = "0"
        if not {MODE, TOKEN, TOKEN_PATH} & os.environ.keys():
            # else Ray writes one into the home folder, which may be read-only
            quiet[TOKEN] = secrets.token_hex(32)
    else:
        address, os.environ[MODE] = join(address)
    for key, value in quiet.items():
        os.environ.setdefault(key, value)
    import ray

    # None of this is a setting of Ray: its handler of SIGTERM, which interrupts a run, ends the
    # process with another exit code, or is lost in what it interrupts; where a process of its own
    # is killed it prints pages of logs; and its dashboard, autoscaler and log monitor take half of
    # its CPU time, also beside what is timed.
    private: Any = importlib.import_module("ray._private")
    private.utils.set_sigterm_handler = lambda _: None
    private.worker._worker_logs_enabled = False
    if "2.60." in ray.__version__:  # another may start them in another way
        private.services.start_api_server = lambda *_, **__: (None, None)
        private.parameter.RayParams = partial(
            private.parameter.RayParams, no_monitor=True, include_log_monitor=False
        )
    local = {
        "address": "local",
        "object_store_memory": OBJECT_STORE_BYTES,
        "include_dashboard": False,
        "_temp_dir": folder and folder.path,
    }
    try:
        # Ray puts the current folder on the path of its workers, before all others: a user's
        # packages would hide ours there, and ours those of a node that shares our disk.
        with contextlib.chdir(os.sep), _without_stderr():
            ray.init(
                **(local if not address else {"address": address}),
                log_to_driver=False,
                logging_level=logging.ERROR,
            )
    except Exception as error:  # Ray raises plain `Exception` too
        problem = (
            f"the Ray cluster at {address} cannot be joined"
            if address
            else "Ray cannot be started here"
        )
        raise outage(problem, error) from error


@contextlib.contextmanager
def _without_stderr() -> Iterator[None]:
    """Ray's C++ prints a line for each call that a process of its own does not answer, and another
    one where its log level is set.
    """
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def outage(problem: str, error: Exception) -> ClusterOutageError:
    """The problem with the first line of Ray's own error, and when to try again."""
    cause = error.__cause__ or error
    first = next(iter(str(cause).strip().splitlines()), type(cause).__name__)
    return ClusterOutageError(f"{problem}: {first.rstrip('.')}; {_LATER}")


def join(address: str) -> tuple[str, str]:
    """The cluster at `address` (`host:port`, or `auto` for the one on this machine) as `host:port`,
    and the token mode it has.

    The mode is a value for `RAY_AUTH_MODE`, which must be set before Ray is imported. Raises
    `ClusterError`.
    """
    if address != "auto":
        _connect(address)
    mode = os.environ.get(MODE, "").lower()
    if mode not in {"", "disabled", "token"}:
        return _checked(probe(address, mode)), mode
    found = probe(address, "disabled")
    if found.state != "unauthenticated":
        if found.state == "joined" and mode == "token":
            raise ClusterError(
                f"the Ray cluster at {found.address} uses no token, but {MODE}=token is set here;"
                f" unset {MODE}"
            )
        return _checked(found), "disabled"
    if mode == "disabled":
        raise ClusterError(
            f"the Ray cluster at {found.address} requires a token, but {MODE}=disabled is set here;"
            f" unset {MODE}"
        )
    source = _token_source()
    if source is None:
        raise ClusterError(
            f"the Ray cluster at {found.address} requires a token and none is here; {_EXPORT}"
        )
    found = probe(found.address, "token")
    if found.state == "unauthenticated":
        raise ClusterError(
            f"the Ray cluster at {found.address} refuses the token of {source}; {_EXPORT}"
        )
    return _checked(found), "token"


def _token_source() -> str | None:
    """Where Ray takes the token from, in its own order; `None` without one. Raises `ClusterError`
    for a missing file.
    """
    if os.environ.get(TOKEN):
        return TOKEN
    if file := os.environ.get(TOKEN_PATH):
        if not Path(file).is_file():
            raise ClusterError(f"{TOKEN_PATH} names {file}, and there is no such file; {_EXPORT}")
        return file
    usual = Path.home() / ".ray" / "auth_token"
    return str(usual) if usual.is_file() else None


def _connect(address: str) -> None:
    """Raise `ClusterError` unless something listens at `host:port` that speaks as Ray does."""
    host, _, port = address.rpartition(":")
    if not host or not re.fullmatch(r"\d+", port) or "/" in host:
        problem = "Ray Client cannot be used, " if address.startswith("ray://") else ""
        raise ClusterError(
            f"{address!r} is no address of a Ray cluster: {problem}write HEAD:{HEAD_PORT}, or auto"
            " on a node of it"
        )
    try:
        with socket.create_connection(
            (host.strip("[]"), int(port)), timeout=CONNECT_S
        ) as connection:
            answers = os.environ.get("RAY_USE_TLS", "0") != "0" or _greeted(connection)
    except (OSError, OverflowError) as error:
        raise ClusterOutageError(
            f"Ray cannot be reached at {address}: {error}; is `ray start --head` running there?"
        ) from error
    if not answers:
        raise ClusterError(
            f"what listens at {address} does not answer as the head of a Ray cluster; its port is"
            f" that of {_PORT}"
        )


def _greeted(connection: socket.socket) -> bool:
    """Whether a server answers as gRPC does: HTTP/2 without a question. One that stays silent may
    be busy.
    """
    connection.settimeout(GREETING_S)
    connection.sendall(
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, _SETTINGS_FRAME, 0, 0, 0, 0, 0])
    )
    answer = b""
    try:
        while len(answer) < 4 and (more := connection.recv(9)):
            answer += more
    except TimeoutError:
        return True
    except OSError:
        return False
    return len(answer) > 3 and answer[3] == _SETTINGS_FRAME


def _checked(found: Found) -> str:
    match found.state:
        case "joined":
            return found.address
        case "other_version":
            raise ClusterError(
                f"the Ray cluster at {found.address} {found.detail}; install the same everywhere"
            )
        case "unauthenticated":
            raise ClusterError(
                f"the Ray cluster at {found.address} refuses to authenticate: {found.detail}"
            )
        case "no_answer":
            raise ClusterOutageError(
                f"the Ray cluster at {found.address} has not answered; {_LATER}; otherwise check"
                f" that its port is that of {_PORT}"
            )
        case _:
            raise ClusterOutageError(f"Ray cannot be reached at {found.address}: {found.detail}")


if __name__ == "__main__":
    sys.stdout.write(json.dumps(_probe_here(sys.argv[1])._asdict()) + "\n")
