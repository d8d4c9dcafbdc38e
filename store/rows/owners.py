"""Owners of leases: processes by host, number and start, and whether they still run."""

import os
import socket
from pathlib import Path

import psutil

LEASE_S = 60.0
"""A running job whose owner on another host has not renewed its lease for so long is taken back."""


def owner() -> str:
    """This process as an owner of leases: `host:pid:start`, where `start` differs for a later
    process with the same pid.
    """
    return f"{_host()}:{os.getpid()}:{_started(os.getpid())}"


def has_ended(owner: str) -> bool:
    """Whether the process that `owner` names is known to have ended: it ran on this host, and runs
    no more.
    """
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
    """When the process began, in seconds since boot; empty if it has ended, reaped or not.

    Both times move alike when the clock is set, and their difference does not.
    """
    try:
        process = psutil.Process(pid)
        if process.status() != psutil.STATUS_ZOMBIE:
            return f"{process.create_time() - psutil.boot_time():.2f}"
    except psutil.NoSuchProcess:
        pass
    return ""
