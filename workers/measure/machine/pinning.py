"""Pinning: the share of a host's cores that belongs to one of its GPUs, and its assignment to a
worker.

A job with `exclusive: device` runs while others use the host's other GPUs. What a launch-bound
forward takes depends on the cores that launch it, so each GPU has its own cores, the same number
for each.
"""

import contextlib
import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import NamedTuple

import pynvml

from workers.measure.machine.environment import SHARE_VARIABLE, allowed_cores, cores, gpu

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
    if (place := _place()) is None:
        if not visible.isdigit() or int(visible) >= gpus:
            raise ValueError(
                f"exclusive: device needs to know the GPU, and CUDA_VISIBLE_DEVICES={visible} names"
                f" none of {gpus}"
            )
        place = int(visible), gpus
    allowed = os.sched_getaffinity(0)
    return Share(
        place[0], divide_cores(allowed, thread_siblings(allowed), place[1])[place[0]], place[1]
    )


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


def _place() -> tuple[int, int] | None:
    """Index of the GPU that `cuda` means in this process (of a MIG slice, that of its GPU) and how
    many GPUs there are; by NVML.
    """
    with gpu() as handle:
        if handle is None:
            return None
        whole = handle
        with contextlib.suppress(pynvml.NVMLError):
            whole = pynvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(handle)
        try:
            return int(pynvml.nvmlDeviceGetIndex(whole)), int(pynvml.nvmlDeviceGetCount())
        except pynvml.NVMLError as error:
            raise ValueError(
                f"exclusive: device needs to know the GPU, and NVML does not provide it: {error}"
            ) from error
