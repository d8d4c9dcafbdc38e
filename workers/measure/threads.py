"""CPU threads: set to those of the condition before anything is built or timed."""

import contextlib
from collections.abc import Iterator

import torch

from sweeps.job import Condition
from workers.measure.environment import cores


def use_threads(condition: Condition) -> None:
    """Set the requested CPU threads (default: one per core); explicitly, because Ray and containers preset OMP_NUM_THREADS."""
    torch.set_num_threads(condition.threads or max(1, int(cores())))


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """One CPU thread, for training.

    On tensors this small a second thread saves a third of the time on a quiet machine, and multiplies it where other jobs run; and
    weights must not depend on the number of cores.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
