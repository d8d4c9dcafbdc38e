"""A pool of processes that compute what a derivation consists of, while this one holds the
transaction: the rows are those of computing them here.
"""

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import chain
from typing import TypeVar

from sqlalchemy import Connection, Engine

from store.derive.sample_store import Compute, Spread, compute_here
from store.open.engine import connect_readonly, disposing
from store.rows.transactions import reading

_T = TypeVar("_T")
_R = TypeVar("_R")
WORTH_A_POOL = 4000
"""Comparisons: fewer are derived sooner than processes start."""
PARTS = 4
"""Parts per process that tasks are cut into, so that all end at about the same time."""


@contextmanager
def spread_over(engine: Engine, comparisons: int, processes: int | None = None) -> Iterator[Spread]:
    """A pool of so many processes, each with a connection of its own that reads: by default as many
    as there are cores, where there are so many comparisons that it is worth it. Of one process, or
    for a store in memory, `compute_here`.
    """
    processes = processes or ((os.cpu_count() or 1) if comparisons >= WORTH_A_POOL else 1)
    sqlite = engine.dialect.name == "sqlite"
    url = engine.url.database if sqlite else engine.url.render_as_string(hide_password=False)
    if processes < 2 or not url:
        yield compute_here
        return
    # a fork of this process would share its connections; that server imports once for all
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(
        ["store.derive.effects", "store.derive.break_evens", "scipy.stats"]
    )
    with ProcessPoolExecutor(processes, context, _follow_parent) as pool:

        def spread(
            compute: Compute[_T, _R], _connection: Connection, tasks: Sequence[_T]
        ) -> list[_R]:
            size = -(-len(tasks) // (PARTS * processes)) or 1
            parts = [tasks[start : start + size] for start in range(0, len(tasks), size)]
            return list(chain.from_iterable(pool.map(partial(_compute, url, compute), parts)))

        yield spread


def _follow_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """A parent that was killed does not end its pool."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _compute(url: str, compute: Compute[_T, _R], tasks: Sequence[_T]) -> list[_R]:
    with disposing(connect_readonly(url)) as engine, reading(engine) as connection:
        return compute(connection, tasks)
