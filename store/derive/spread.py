"""Who computes what a derivation consists of: this process, or a pool of them
(`store/write/analysis_pool.py`) while this one holds the transaction.
"""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from sqlalchemy import Connection

_T = TypeVar("_T")
_R = TypeVar("_R")
Compute = Callable[[Connection, Sequence[_T]], list[_R]]
"""The results of tasks, in their order; the connection reads raw data, which never change."""


class Spread(Protocol):
    """Computes the results of tasks, in their order."""

    def __call__(
        self, compute: Compute[_T, _R], connection: Connection, tasks: Sequence[_T], /
    ) -> list[_R]: ...


def compute_here(compute: Compute[_T, _R], connection: Connection, tasks: Sequence[_T]) -> list[_R]:
    """In this process, within its transaction."""
    return compute(connection, tasks)
