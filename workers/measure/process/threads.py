"""CPU threads and priority of the process that is timed: set before anything is built or timed."""

import contextlib
import os
from collections.abc import Iterator

import torch

from sweeps.model.condition import Condition
from workers.measure.machine.environment import cores


def use_threads(condition: Condition) -> None:
    """Set the requested CPU threads (default: one per core); explicitly, because Ray and containers
    preset OMP_NUM_THREADS.
    """
    torch.set_num_threads(condition.threads_on(int(cores())))


def raise_priority() -> bool:
    """Give this process the normal priority, if it has a lower one; whether it has it, which the
    system may refuse.

    Ray starts its workers at nice 15, where one busy process beside them takes nearly all of a
    core.
    """
    if os.getpriority(os.PRIO_PROCESS, 0) > 0:
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, 0, 0)
    return os.getpriority(os.PRIO_PROCESS, 0) <= 0


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """One CPU thread, for training.

    On tensors this small a second thread saves a third of the time on a quiet machine, and
    multiplies it where other jobs run; and weights must not depend on the number of cores.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
