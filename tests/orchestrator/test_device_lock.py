"""The host lock of timing jobs on single GPUs, held by real processes: beside each other on
different GPUs, never beside others.
"""

import multiprocessing
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import combinations
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

import pytest

from orchestrator.host.host_lock import Holder, holders, host_lock, host_taken, waits_for
from sweeps.model.condition import Kind

PROCESSES = multiprocessing.get_context("spawn")
WAIT_S = 60.0


def hold(kind: Kind, place: Path, gpu: int | None, held: Event) -> None:
    with host_lock(kind, place, gpu):
        held.set()
        time.sleep(WAIT_S)


@contextmanager
def held_by_another(kind: Kind, place: Path, gpu: int | None) -> Iterator[None]:
    """Another process holds the host for this job, until it is killed."""
    held = PROCESSES.Event()
    process = PROCESSES.Process(target=hold, args=(kind, place, gpu, held))
    process.start()
    try:
        assert held.wait(WAIT_S)
        yield
    finally:
        process.kill()
        process.join()


@pytest.mark.parametrize(
    ("kind", "gpu", "free"),
    [
        ("latency", 0, [("latency", 1), ("generation", 2)]),
        ("accuracy", None, [("accuracy", None), ("quality", None)]),
    ],
)
def test_what_may_run_beside_a_job(
    tmp_path: Path, kind: Kind, gpu: int | None, free: list[tuple[Kind, int | None]]
) -> None:
    """Another GPU's timing beside a GPU's timing, sharing jobs beside each other; and all once the
    process was killed.
    """
    requested: list[tuple[Kind, int | None]] = [
        ("latency", 0),
        ("latency", 1),
        ("generation", 2),
        ("generation", None),
        ("latency", None),
    ]
    requested += [("accuracy", None), ("quality", None)]
    with held_by_another(kind, tmp_path, gpu):
        assert [one for one in requested if not host_taken(one[0], tmp_path, one[1])] == free
    assert not any(host_taken(kind, tmp_path, gpu) for kind, gpu in requested)


def test_what_a_gpu_waits_for_is_named(tmp_path: Path) -> None:
    """The job on the same GPU, and not that on another one."""
    with held_by_another("latency", tmp_path, 0), held_by_another("generation", tmp_path, 1):
        first, second = sorted(holders(tmp_path), key=lambda holder: holder.gpu or 0)
        assert str(second).startswith(
            f"a generation job of {second.user} on GPU 1 (process {second.pid}, since "
        )
        assert f"for a latency job of {first.user} on GPU 0 (process" in waits_for(
            time.time(), tmp_path, 0
        )
        assert "GPU 1" not in waits_for(time.time(), tmp_path, 0)
        assert waits_for(time.time(), tmp_path).count(" on GPU ") == 2
    assert " on GPU " not in str(Holder("latency", "ann", 7, 0.0))


TURNS = 25


def take_turns(place: Path, seed: int, spans: Any) -> None:
    """Jobs of all sorts one after the other; for each what it had and from when until when."""
    choose = random.Random(seed)
    for _ in range(TURNS):
        kind, gpu = choose.choice(
            [("latency", 0), ("latency", 1), ("generation", None), ("accuracy", None)]
        )
        with host_lock(kind, place, gpu):
            began = time.monotonic()
            time.sleep(choose.random() * 0.004)
            ended = time.monotonic()
        spans.put((kind, gpu, began, ended))


def test_many_processes_never_meet_whom_they_must_not(tmp_path: Path) -> None:
    """Five processes with jobs of all sorts: all get their turns, and only those that may overlap
    do.
    """
    queue = PROCESSES.Queue()
    processes = [
        PROCESSES.Process(target=take_turns, args=(tmp_path, seed, queue)) for seed in range(5)
    ]
    for process in processes:
        process.start()
    spans = [queue.get(timeout=WAIT_S) for _ in range(5 * TURNS)]
    for process in processes:
        process.join(WAIT_S)
    met = {
        frozenset([(kind, gpu), (other, another)])
        for (kind, gpu, began, ended), (other, another, start, stop) in combinations(spans, 2)
        if began < stop and start < ended
    }
    assert met == {frozenset([("latency", 0), ("latency", 1)]), frozenset([("accuracy", None)])}
