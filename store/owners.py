"""Owners of leases: processes by host, number and start, and whether they still run."""

import os
import socket
from pathlib import Path

LEASE_S = 60.0
"""A running job whose owner on another host has not renewed its lease for so long is taken back."""


def owner() -> str:
    """This process as an owner of leases: `host:pid:start`, where `start` differs for a later process with the same pid."""
    return f"{_host()}:{os.getpid()}:{_started(os.getpid())}"


def has_ended(owner: str) -> bool:
    """Whether the process that `owner` names is known to have ended: it ran on this host, and runs no more."""
    host, _, process = owner.partition(":")
    pid, _, started = process.partition(":")
    return host == _host() and pid.isdecimal() and _started(int(pid)) != started


def is_alive(owner: str, silent_s: float) -> bool:
    """Whether `owner` runs on this host, or has renewed its lease recently enough on another."""
    if owner.partition(":")[0] != _host():
        return silent_s <= LEASE_S
    return not has_ended(owner)


def _host() -> str:
    """The host's name, with the name space of its process ids, which are private to a container."""
    try:
        space = Path("/proc/self/ns/pid").readlink().name.strip("pid:[]")
    except OSError:
        return socket.gethostname()
    return f"{socket.gethostname()}/{space}"


def _started(pid: int) -> str:
    """When the process began (clock ticks since boot, from /proc); empty if it has ended, reaped or not.

    On other systems than Linux only whether it runs.
    """
    try:
        state, *rest = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return "" if state in {"Z", "X"} else rest[18]
    except OSError:
        pass
    if Path("/proc/self/stat").exists():
        return ""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return ""
    except PermissionError:
        pass
    return "running"
