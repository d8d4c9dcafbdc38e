"""Cleanup of a process after a job: its child processes end, and a process that the job changed for
good must be replaced.
"""

import gc
import math
import random
import time
from collections.abc import Hashable

import numpy as np
import psutil
import torch

from sweeps.model.job import Job
from sweeps.model.outcome import WORKER_UNFIT, Outcome
from workers.measure.descendants import end, running_descendants
from workers.measure.optional import optional, optional_value
from workers.measure.process_state import CHILDREN, FLAG, STATE, ProcessState
from workers.measure.readings import MIB, trim_heap

GROWTH = 128 * MIB
"""A job on a model, data and runtime that the process knows leaves less than this behind."""
FIRST_GROWTH = 2**30
"""The first such job also loads libraries and data, and fills caches of compiled code; the model
comes on top.

The first job of a process has no limit: a CUDA context alone takes gigabytes, in a new process as
well.
"""
MEMORY = "memory of the process"
PARAMETER_BYTES = 4
"""At most."""
MAX_MEMORY_SHARE = 0.5
"""A process that holds this share of the machine's memory is replaced."""

_known: set[tuple[Hashable, ...]] = set()
"""Models, sizes, batches, data and runtimes of the jobs that this process has run."""


class ProcessCleanup:
    """The process as it was before a job; `finish` is called when the job has ended."""

    def __init__(self, job: Job) -> None:
        own = [arm.condition(job.condition) for arm in job.arms]
        kept = job.condition
        dtypes = frozenset((each.runtime, each.dtype) for each in own)
        # Another batch or attention runs other kernels, whose code CUDA loads at their first use.
        self._use = (
            *(job.kind, kept.model, kept.weights, kept.data, kept.image_size),
            *(kept.batch_size, kept.attention, dtypes),
        )
        # Every kind sets the threads of its condition, timed ones the normal priority.
        self._state = ProcessState(leave=frozenset({"CPU threads of torch", "niceness"}))
        self._random = random.getstate(), np.random.get_state(), torch.get_rng_state()
        self._children = optional_value(CHILDREN, running_descendants, None)
        self._resident, self._allocated = optional_value(
            MEMORY, lambda: (resident(), _allocated()), (math.inf, math.inf)
        )

    def finish(self, outcome: Outcome) -> Outcome:
        """Restore settings and kill child processes; returns the outcome with what was
        found.

        The parameters of the model may stay in memory, because the next job often needs the same
        model.
        """
        changes = optional_value(STATE, self._state.restore, [])
        random.setstate(self._random[0])
        np.random.set_state(self._random[1])
        torch.set_rng_state(self._random[2])
        with optional(CHILDREN):
            if self._children is not None:
                end(running_descendants().keys() - self._children.keys())
        notes = [f"when the job had ended: {change.text}" for change in changes]
        readings: dict[str, float] = {}
        parameters = max((arm.parameters or 0 for arm in outcome.arms), default=0)
        if growth := optional_value(MEMORY, lambda: self._growth(parameters), 0):
            readings["memory_growth_mib"] = growth / MIB
            notes.append(
                f"the job left {growth / MIB:.0f} MiB of memory behind; its process runs no"
                " other job"
            )
        if growth or not all(change.restored for change in changes):
            readings[WORKER_UNFIT] = 1.0
        return outcome.model_copy(
            update={
                "flags": tuple(sorted({*outcome.flags, *((FLAG,) if changes else ())})),
                "notes": (*outcome.notes, *notes),
                "system_metrics": outcome.system_metrics | readings,
                "ended_at": time.time(),
            }
        )

    def _growth(self, parameters: int) -> int:
        """Bytes, of the process or on the GPU, that the job left behind and should not have; 0 if
        it did not.
        """
        allowed: float = GROWTH
        # as it was loaded, and once in each dtype
        model = (1 + len(self._use[-1])) * PARAMETER_BYTES * parameters
        if self._use not in _known:
            allowed = FIRST_GROWTH + model if _known else math.inf
            _known.add(self._use)

        def excess() -> int:
            growth = max(resident() - self._resident, _allocated() - self._allocated)
            too_large = resident() > MAX_MEMORY_SHARE * psutil.virtual_memory().total + model
            return growth if growth > allowed or too_large else 0

        if not excess():
            return 0
        gc.collect()
        trim_heap()
        return excess()


def resident() -> int:
    """Bytes of this process in memory."""
    return int(psutil.Process().memory_info().rss)


def memory_share() -> float:
    """What this process holds of the machine's memory, or of its GPU's if that is more."""
    with optional(MEMORY):
        of_gpu = _allocated() / torch.cuda.mem_get_info()[1] if _allocated() else 0.0
        return max(resident() / psutil.virtual_memory().total, of_gpu)
    return 0.0


def _allocated() -> int:
    return torch.cuda.memory_allocated() if torch.cuda.is_initialized() else 0  # type: ignore[no-untyped-call]
