"""The host lock: timing alone, other jobs together, no job starves, and who has the host can be
seen.
"""

import multiprocessing
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.host.host_lock import holders, host_lock, host_taken, waits_for
from sweeps.model.condition import Kind

WAIT_S = 60.0


def until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.005)


class Job(threading.Thread):
    """A job that requests the host in a thread, and leaves it when it is let go."""

    def __init__(self, kind: Kind, place: Path, order: list[str], name: str = "") -> None:
        super().__init__(daemon=True)
        self._kind, self._place, self._order, self._called = kind, place, order, name or kind
        self.inside, self._go = threading.Event(), threading.Event()
        self.start()

    def run(self) -> None:
        with host_lock(self._kind, self._place):
            self._order.append(self._called)
            self.inside.set()
            self._go.wait(WAIT_S)

    def let_go(self) -> None:
        self.release()
        self.join(WAIT_S)
        assert not self.is_alive()

    def release(self) -> None:
        """Let it leave the host, now or as soon as it has it."""
        self._go.set()


@pytest.mark.alone
def test_others_share_the_host_and_timing_never(tmp_path: Path) -> None:
    """Accuracy and quality overlap; latency and generation wait for both, and keep all others
    out.
    """
    order: list[str] = []
    sharing = [Job("accuracy", tmp_path, order), Job("quality", tmp_path, order)]
    for one in sharing:
        assert one.inside.wait(WAIT_S)
    assert host_taken("latency", tmp_path)
    assert not host_taken("accuracy", tmp_path)
    timing = Job("latency", tmp_path, order)
    sharing[0].let_go()
    assert not timing.inside.wait(0.1)
    sharing[1].let_go()
    assert timing.inside.wait(WAIT_S)
    late = [Job(kind, tmp_path, order) for kind in ("accuracy", "generation")]
    assert host_taken("accuracy", tmp_path)
    assert not any(one.inside.wait(0.1) for one in late)
    for one in late:
        one.release()  # either may be the first to have the host
    for one in (timing, *late):
        one.let_go()
    assert not host_taken("latency", tmp_path)


def test_waiting_timing_job_goes_before_later_readers(tmp_path: Path) -> None:
    """A stream of overlapping accuracy jobs would starve it under flock alone; and the accuracy
    jobs have their turn after it.
    """
    order: list[str] = []
    first = Job("accuracy", tmp_path, order, "first")
    assert first.inside.wait(WAIT_S)
    timing = Job("latency", tmp_path, order)
    until(lambda: host_taken("accuracy", tmp_path))
    later = Job("accuracy", tmp_path, order, "later")
    assert not later.inside.wait(0.1)
    first.let_go()
    assert timing.inside.wait(WAIT_S)
    time.sleep(0.5)  # the reader is at the gate
    second = Job("latency", tmp_path, order, "second")
    timing.let_go()
    assert later.inside.wait(WAIT_S)
    later.let_go()
    second.let_go()
    assert order == ["first", "latency", "later", "second"]


def hold(place: Path, held: "multiprocessing.synchronize.Event") -> None:
    with host_lock("latency", place):
        held.set()
        time.sleep(600)


def test_holder_is_published_and_forgotten_even_after_a_kill(tmp_path: Path) -> None:
    """Kind, user, process and since when; after SIGKILL neither the lock nor the entry remains."""
    context = multiprocessing.get_context("spawn")
    held = context.Event()
    process = context.Process(target=hold, args=(tmp_path, held))
    process.start()
    assert held.wait(WAIT_S)
    (holder,) = holders(tmp_path)
    assert (holder.kind, holder.pid) == ("latency", process.pid)
    assert time.time() - 60 < holder.since <= time.time()
    message = waits_for(time.time() - 30, tmp_path)
    assert message.startswith("waiting since ")
    assert f" (30 s) for a latency job of {holder.user} (process {process.pid}, since " in message
    process.kill()
    process.join()
    assert holders(tmp_path) == []
    assert not host_taken("latency", tmp_path)


def test_error_inside_leaves_the_lock_and_is_not_swallowed(tmp_path: Path) -> None:
    """An OSError of the job is the job's."""
    with pytest.raises(OSError, match="disk"), host_lock("accuracy", tmp_path):
        raise OSError("the disk is full")
    assert holders(tmp_path) == []
    assert not host_taken("latency", tmp_path)


def test_folder_that_cannot_be_used_hides_the_holder_only(tmp_path: Path) -> None:
    """Another user may have put a file there."""
    (tmp_path / "breakeven.holders").write_text("")
    with host_lock("latency", tmp_path):
        assert host_taken("accuracy", tmp_path)
        assert holders(tmp_path) == []
