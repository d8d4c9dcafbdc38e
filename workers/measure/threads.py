"""CPU threads: set to what a condition asks for before anything is built or timed."""

import contextlib
from collections.abc import Iterator

import torch

from sweeps.job import Condition
from workers.measure.environment import cores


def use_threads(condition: Condition) -> None:
    """Set the CPU threads asked for (default: one per core); said aloud, because Ray and containers preset OMP_NUM_THREADS."""
    torch.set_num_threads(condition.threads or max(1, int(cores())))


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """One CPU thread, for training.

    A second one shortens training on tensors as small as here by a third on a quiet machine, and makes it many times longer where
    other jobs run; and the weights shall not depend on the number of cores.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
