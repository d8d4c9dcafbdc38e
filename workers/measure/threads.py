"""Cores and threads of a process: the share of a host that belongs to one of its GPUs, and OpenMP,
which reads once, with torch, how threads wait and whether they are pinned.

A job with `exclusive: device` runs while others use the host's other GPUs. What a launch-bound
forward takes depends on the cores that launch it, so each GPU has its own cores, the same number
for each.
"""

import contextlib
import os
import sys
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import NamedTuple

import pynvml

from sweeps.model.condition import Condition
from workers.measure.environment import (
    PLACES_VARIABLE,
    SHARE_VARIABLE,
    allowed_cores,
    chosen_by,
    cores,
    gpu,
    spin_turns,
)
from workers.waiting import SPIN_VARIABLE, TURNS_VARIABLE, UNSET, WAIT_VARIABLE

TOPOLOGY = Path("/sys/devices/system/cpu")


class Share(NamedTuple):
    """One GPU of a host and the cores that belong to it."""

    gpu: int
    """Index of the GPU in NVML."""
    cores: tuple[int, ...]
    shares: int
    """Into how many the host is divided."""


def divide_cores(
    allowed: Collection[int], siblings: Mapping[int, Collection[int]], count: int
) -> list[tuple[int, ...]]:
    """`count` disjoint sets of the allowed cores, each of as many physical cores, in their order;
    remaining cores are in none.

    `siblings` has for a core the hardware threads of its physical core, itself included; one
    without an entry stands alone. Raises `ValueError` when there are fewer physical cores than
    sets.
    """
    present = set(allowed)
    physical = sorted(
        {tuple(sorted({core, *siblings.get(core, ())} & present)) for core in present}
    )
    each = len(physical) // count
    if not each:
        raise ValueError(
            f"exclusive: device needs a physical core for each of the {count} GPUs, and jobs may"
            f" use {len(physical)}; allow more cores, or write exclusive: node"
        )
    return [
        tuple(sorted(sum(physical[each * place : each * (place + 1)], ())))
        for place in range(count)
    ]


def thread_siblings(
    allowed: Collection[int], topology: Path = TOPOLOGY
) -> dict[int, tuple[int, ...]]:
    """For each core the hardware threads of its physical core; a core without data from the kernel
    has no entry.
    """
    found = {}
    for core in allowed:
        with contextlib.suppress(OSError, ValueError):
            found[core] = parse_core_list(
                (topology / f"cpu{core}" / "topology" / "thread_siblings_list").read_text()
            )
    return found


def parse_core_list(text: str) -> tuple[int, ...]:
    """The cores in a list as the kernel writes it, such as `0-3,8`. Raises `ValueError`."""
    spans = [part.partition("-") for part in text.strip().split(",")]
    return tuple(
        core for first, _, last in spans for core in range(int(first), int(last or first) + 1)
    )


def share_of_gpu(gpus: int) -> Share:
    """The share of the GPU that `cuda` means in this process, on a host with `gpus` of them where
    NVML gives no number.

    Raises `ValueError` when there is no such GPU, or too few cores.
    """
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0].strip()
    with gpu() as handle:
        if handle is not None:
            whole = handle
            with contextlib.suppress(pynvml.NVMLError):  # of a MIG slice its GPU
                whole = pynvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(handle)
            try:
                place, gpus = pynvml.nvmlDeviceGetIndex(whole), pynvml.nvmlDeviceGetCount()
            except pynvml.NVMLError as error:
                raise ValueError(
                    "exclusive: device needs to know the GPU, and NVML does not provide it:"
                    f" {error}"
                ) from error
        elif visible.isdigit() and int(visible) < gpus:
            place = int(visible)
        else:
            raise ValueError(
                f"exclusive: device needs to know the GPU, and CUDA_VISIBLE_DEVICES={visible} names"
                f" none of {gpus}"
            )
    allowed = os.sched_getaffinity(0)
    return Share(place, divide_cores(allowed, thread_siblings(allowed), gpus)[place], gpus)


def pin(share: Share) -> None:
    """Restrict this process and those that it will start to its share; call it before torch makes
    its threads.
    """
    os.environ[SHARE_VARIABLE] = f"{share.shares}/{cores():g}"
    os.sched_setaffinity(0, share.cores)


def pinned() -> tuple[int, ...] | None:
    """The cores that this process is pinned to, if `pin` was called in it or in one that started
    it.
    """
    return tuple(sorted(allowed_cores())) if os.environ.get(SHARE_VARIABLE) else None


WAYS = ("brief", "passive", "active")
_OTHER_VARIABLES = (
    "GOMP_CPU_AFFINITY",
    "KMP_AFFINITY",
    "KMP_BLOCKTIME",
    "OMP_PROC_BIND",
    "OMP_PLACES",
)
"""Variables by which a user may have set the same."""


class ThreadPolicy(NamedTuple):
    """What holds for all threads of a process from its start to its end."""

    wait: str = "brief"
    pinned: bool = False


def wait_variables(wait: str) -> dict[str, str]:
    """The variables of OpenMP for a way to wait."""
    if wait != "brief":
        return {WAIT_VARIABLE: wait.upper()}
    turns = spin_turns()
    return {} if turns == UNSET else {SPIN_VARIABLE: turns}


def requested_policy(condition: Condition) -> ThreadPolicy:
    """What a condition requests.

    Threads that spin briefly are the default (`waiting.py`): on quiet cores they are as fast as
    those of an unset environment, and beside a busy process steady, where those take up to ten
    times as long now and then. Threads that sleep at once are half again as slow on quiet cores
    (`python -m tests.benchmarks.spins`, `tests.benchmarks.threads`).
    """
    return ThreadPolicy(condition.wait_policy or "brief", condition.pinning is not None)


def present_policy() -> ThreadPolicy | None:
    """What holds in this process, if it was set by `set_policy`, or OpenMP's own variables request
    one of the ways to wait.
    """
    names = {WAIT_VARIABLE, SPIN_VARIABLE} & os.environ.keys()
    found = {name: os.environ[name] for name in names}
    wait = next((way for way in WAYS if wait_variables(way) == found), None)
    pinned = PLACES_VARIABLE in os.environ
    if wait is None or (not pinned and any(name in os.environ for name in _OTHER_VARIABLES)):
        return None
    return ThreadPolicy(wait, pinned)


def set_policy(wanted: ThreadPolicy) -> None:
    """Let the threads of this process wait and be pinned so.

    Raises `RuntimeError` where torch is loaded already, and with it OpenMP with other settings.
    """
    if "torch" not in sys.modules:
        if PLACES_VARIABLE in os.environ:
            # started by a thread that was pinned to one of them
            os.sched_setaffinity(0, allowed_cores())
        variables = policy_variables(wanted, os.environ)
        for name in os.environ.keys() - variables.keys():
            del os.environ[name]
        os.environ |= variables
    elif (found := present_policy()) != wanted:
        raise RuntimeError(
            f"this process was started with {_described(found)}, and the job needs"
            f" {_described(wanted)}; OpenMP reads that once: start a new process, as `breakeven"
            " run` and `python -m workers.run` do, or before torch is loaded set"
            f" {SPIN_VARIABLE}={spin_turns()}"
        )


def policy_variables(wanted: ThreadPolicy, inherited: Mapping[str, str]) -> dict[str, str]:
    """The environment of a process whose threads wait and are pinned so, on the cores that this one
    may use.
    """
    ours = {PLACES_VARIABLE, WAIT_VARIABLE, SPIN_VARIABLE, *_OTHER_VARIABLES}
    kept = {name: value for name, value in inherited.items() if name not in ours}
    kept |= wait_variables(wanted.wait) | {TURNS_VARIABLE: spin_turns()}
    if wanted.pinned:
        cores = physical_first(allowed_cores())
        kept |= {PLACES_VARIABLE: ",".join(map(str, cores)), "OMP_PROC_BIND": "close"}
        kept["OMP_PLACES"] = ",".join(f"{{{core}}}" for core in cores)
    return kept


def pin_main_thread() -> None:
    """Pin this thread to the first of the cores, if threads are pinned, before anything is compared
    with what it was.

    OpenMP does so itself at the first parallel part, and never where there is one thread. It needs
    to be loaded: of the cores that are forbidden when it is, it makes no use.
    """
    if PLACES_VARIABLE in os.environ:
        os.sched_setaffinity(0, allowed_cores()[:1])


def policy_readings() -> dict[str, float]:
    """What held while a job was timed, as system metrics: whether threads that waited kept their
    cores busy, and were pinned; the times by which their turns were chosen.
    """
    if (found := present_policy()) is None:
        return {}
    held = {"threads_spin": float(found.wait == "active"), "threads_pinned": float(found.pinned)}
    if not (times := chosen_by()) or times.problem:
        return held
    return held | {
        "spin_turn_ns": 1e9 * times.turn_s,
        "wake_us": 1e6 * times.wake_s,
        "operator_gap_us": 1e6 * times.gap_s,
    }


def physical_first(cores: tuple[int, ...]) -> tuple[int, ...]:
    """The cores in the order in which threads get them: one of each physical core before a second
    one of any.
    """
    siblings = thread_siblings(cores)
    return tuple(
        sorted(cores, key=lambda core: (sorted(siblings.get(core, (core,))).index(core), core))
    )


def _described(policy: ThreadPolicy | None) -> str:
    if policy is None:
        return (
            f"OpenMP's own settings ({WAIT_VARIABLE}, {SPIN_VARIABLE} or one of"
            f" {', '.join(_OTHER_VARIABLES)})"
        )
    pinned = ", pinned to cores" if policy.pinned else ""
    return f"threads whose wait is {policy.wait}{pinned}"
