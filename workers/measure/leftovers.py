"""Leftovers of a job in its process: restored where possible; otherwise the process must be replaced."""

import contextlib
import ctypes
import gc
import math
import os
import random
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import torch

from sweeps.job import Job
from sweeps.outcome import WORKER_UNFIT
from workers.measure.descendants import end, left_running
from workers.measure.environment import read_text
from workers.measure.memory import MIB
from workers.measure.process_state import FLAG, ProcessState

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
"""Models, sizes, data and runtimes of the jobs that this process has run."""


class Leftovers:
    """The process as it was before a job; `clear` is called when the job has ended."""

    def __init__(self, job: Job) -> None:
        own = [arm.condition(job.condition) for arm in job.arms]
        kept = job.condition
        dtypes = frozenset((each.runtime, each.dtype) for each in own)
        self._use = (job.kind, kept.model, kept.weights, kept.data, kept.image_size, dtypes)
        # Every kind sets the threads of its condition, timed ones the normal priority.
        self._state = ProcessState(leave=frozenset({"CPU threads of torch", "niceness"}))
        self._random = random.getstate(), np.random.get_state(), torch.get_rng_state()
        self._children = {child.pid for child in left_running()}
        self._resident, self._allocated = resident(), _allocated()

    def clear(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Restore what can be restored, and kill child processes; returns the `fields` of the job's outcome with what was found.

        The parameters of the model may stay in memory, because the next job often needs the same model.
        """
        changes = self._state.restore()
        random.setstate(self._random[0])
        np.random.set_state(self._random[1])
        torch.set_rng_state(self._random[2])
        end(child for child in left_running() if child.pid not in self._children)
        notes = [f"when the job had ended: {change}" for change in changes]
        readings: dict[str, float] = {}
        if growth := self._growth(max((arm.parameters for arm in fields.get("arms", ())), default=0)):
            readings["memory_growth_mib"] = growth / MIB
            notes.append(f"the job left {growth / MIB:.0f} MiB of memory behind; its process runs no other job")
        if growth or self._state.unfit:
            readings[WORKER_UNFIT] = 1.0
        return {
            **fields,
            "flags": tuple(sorted({*fields.get("flags", ()), *((FLAG,) if changes else ())})),
            "notes": (*fields.get("notes", ()), *notes),
            "system_metrics": {**fields.get("system_metrics", {}), **readings},
        }

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
    pages = read_text("/proc/self/statm").split()
    return int(pages[1]) * os.sysconf("SC_PAGE_SIZE") if pages else 0


def memory_share() -> float:
    """What this process holds of the machine's memory, or of its GPU's if that is more."""
    of_gpu = _allocated() / torch.cuda.mem_get_info()[1] if _allocated() else 0.0
    return max(resident() / _memory(), of_gpu)


def _allocated() -> int:
    return torch.cuda.memory_allocated() if torch.cuda.is_initialized() else 0  # type: ignore[no-untyped-call]


def _memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
