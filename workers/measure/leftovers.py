"""Leftovers of a job in its process: restored where possible; otherwise the process must be replaced."""

import contextlib
import ctypes
import gc
import math
import os
from collections.abc import Hashable
from pathlib import Path
from typing import Any, NamedTuple

import torch

from sweeps.job import Job
from sweeps.outcome import WORKER_UNFIT
from workers.measure.descendants import end, left_running
from workers.measure.process_state import FLAG, RandomState, State

MIB = 2**20
GROWTH = 128 * MIB
"""A job on a model, data and runtime that the process knows leaves less than this behind."""
FIRST_GROWTH = 2**30
"""The first such job also loads libraries and data, and fills caches of compiled code; the model comes on top.

The first job of a process has no limit: a CUDA context alone takes gigabytes, in a new process as well.
"""
PARAMETER_BYTES = 4
"""At most."""
MAX_MEMORY_SHARE = 0.5
"""A process that holds this share of the machine's memory is replaced."""

_known: set[tuple[Hashable, ...]] = set()
"""Models, data and runtimes of the jobs that this process has run."""


class Left(NamedTuple):
    """What was found when a job ended; the fields are those of an outcome."""

    flags: tuple[str, ...]
    notes: tuple[str, ...]
    readings: dict[str, float]

    def added_to(self, found: dict[str, Any]) -> dict[str, Any]:
        """The fields `found` of an outcome, with these."""
        return {
            **found,
            "flags": tuple(sorted({*found.get("flags", ()), *self.flags})),
            "notes": (*found.get("notes", ()), *self.notes),
            "system_metrics": {**found.get("system_metrics", {}), **self.readings},
        }


class Leftovers:
    """The process as it was before a job; `clear` is called when the job has ended."""

    def __init__(self, job: Job) -> None:
        own = [arm.condition(job.condition) for arm in job.arms]
        kept = job.condition
        self._use = (job.kind, kept.model, kept.weights, kept.data, frozenset((each.runtime, each.dtype) for each in own))
        # Every kind sets the threads of its condition.
        self._state, self._random = State(leave=frozenset({"CPU threads of torch"})), RandomState()
        self._children = {child.pid for child in left_running()}
        self._resident, self._allocated = resident(), _allocated()

    def clear(self, parameters: int = 0) -> Left:
        """Restore what can be restored, kill child processes, and report whether the process can be used again.

        `parameters` is the number of the model's; they may stay in memory, because the next job often needs the same model.
        """
        changes = self._state.restore()
        self._random.restore()
        end(child for child in left_running() if child.pid not in self._children)
        notes = [f"when the job had ended: {change}" for change in changes]
        readings: dict[str, float] = {}
        if growth := self._growth(parameters):
            readings["memory_growth_mib"] = growth / MIB
            notes.append(f"the job left {growth / MIB:.0f} MiB of memory behind; its process runs no other job")
        if growth or self._state.unfit:
            readings[WORKER_UNFIT] = 1.0
        return Left((FLAG,) if changes else (), tuple(notes), readings)

    def _growth(self, parameters: int) -> int:
        """Bytes, of the process or on the GPU, that the job left behind and should not have; 0 if it did not."""
        allowed: float = GROWTH
        model = (1 + len(self._use[-1])) * PARAMETER_BYTES * parameters  # as it was loaded, and once in each dtype
        if self._use not in _known:
            allowed = FIRST_GROWTH + model if _known else math.inf
            _known.add(self._use)

        def excess() -> int:
            growth = max(resident() - self._resident, _allocated() - self._allocated)
            return growth if growth > allowed or resident() > MAX_MEMORY_SHARE * _memory() + model else 0

        if not excess():
            return 0
        gc.collect()
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).malloc_trim(0)
        return excess()


def resident() -> int:
    """Bytes of this process in memory; 0 where the system does not provide it."""
    with contextlib.suppress(OSError):
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def _allocated() -> int:
    """Bytes of tensors on the GPU."""
    return torch.cuda.memory_allocated() if torch.cuda.is_initialized() else 0  # type: ignore[no-untyped-call]


def _memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
