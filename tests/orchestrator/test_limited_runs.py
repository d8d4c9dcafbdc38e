"""Runs of limited time: what does not fit is left and the rest goes on; a taken host is waited for
as long as may be.
"""

import io
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import inf

import pytest
from rich.console import Console

from orchestrator.cluster.cluster import Cluster
from orchestrator.host.host_lock import host_lock
from orchestrator.loop.progress import Display
from orchestrator.loop.refinement import Refinement
from orchestrator.loop.run_loop import RunResult, run_plan
from orchestrator.plan.time_budget import TimeBudget
from sweeps.model.job import Job
from tests.orchestrator.conftest import Store, job
from tests.orchestrator.sites import SITES, claimed_elsewhere, planned


class TimesLeft(Display):
    """Keeps what it was given as the time left."""

    def __init__(self) -> None:
        super().__init__(Console(file=io.StringIO()))
        self.seen: list[float] = []

    def left(self, seconds: float | None) -> None:
        self.seen += [] if seconds is None else [seconds]
        super().left(seconds)


def limited(
    store: Store, jobs: Sequence[Job], cluster: Cluster, limit_s: float = inf, wait_s: float = inf
) -> tuple[RunResult, list[float]]:
    """A run with a time limit, as `--time` makes it; how it ended, and the times left that it
    showed.
    """
    plan = planned(store, SITES, jobs)
    refinement = Refinement(plan.expansion, store.engine) if limit_s < inf else None
    with TimesLeft() as display:
        result = run_plan(
            store.engine,
            plan,
            lambda: cluster,
            display,
            time_budget=TimeBudget(limit_s),
            refinement=refinement,
            wait_s=wait_s,
        )
    return result, display.seen


@contextmanager
def taken_host() -> Iterator[None]:
    """Another thread has the host, as a job of another run."""
    inside, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with host_lock("latency"):
            inside.set()
            leave.wait(120)

    holder = threading.Thread(target=hold)
    holder.start()
    assert inside.wait(60)
    try:
        yield
    finally:
        leave.set()
        holder.join()


@pytest.mark.ray
def test_time_that_is_left_goes_to_too_few_pairs(store: Store, cluster: Cluster) -> None:
    """One job does not fit into the time: the other one, which came back with too few pairs, is
    measured until it is clear.
    """
    jobs = [job("a", pairs_min=50), job("b", image_size=64, budget_s=1e8, timeout_s=2e8)]
    result, _ = limited(store, jobs, cluster, limit_s=90.0)
    assert (result.plan.answered, result.plan.insufficient) == (1, {})
    assert [left.pairs for left in result.plan.jobs] == [jobs[1].pairs]
    (pairs,) = store.table("SELECT pairs FROM speedup")["pairs"].tolist()
    assert pairs >= 60
    assert store.table("SELECT verdict FROM speedup")["verdict"].tolist() == ["same"]


def test_a_refined_job_is_shortened_to_the_time_left() -> None:
    """A job whose whole budget does not fit any more gets what is left, instead of nothing."""
    time_budget = TimeBudget(20.0)
    long = job("a", budget_s=100.0, timeout_s=200.0)
    assert not time_budget.admits(long)
    shorter = time_budget.fitted(long)
    assert time_budget.admits(shorter)
    assert 10.0 <= shorter.protocol.budget_s < 20.0
    assert time_budget.fitted(job("a", budget_s=1.0)).protocol.budget_s == 1.0


@pytest.mark.ray
def test_the_time_left_never_exceeds_the_limit(store: Store, cluster: Cluster) -> None:
    """However long all jobs would take."""
    jobs = [job("a", model="slow", image_size=size, budget_s=0.1) for size in range(32, 992, 16)]
    result, shown = limited(store, jobs, cluster, limit_s=4.0)
    assert result.plan.jobs
    assert shown
    assert max(shown) <= 4.0


@pytest.mark.ray
@pytest.mark.parametrize(("limit_s", "wait_s"), [(inf, 0.2), (4.0, inf)])
def test_a_taken_host_is_waited_for_as_long_as_may_be(
    store: Store,
    cluster: Cluster,
    limit_s: float,
    wait_s: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With `--wait` and `--time` a run ends though another one keeps the host; its job
    goes back to the queue.
    """
    monkeypatch.setattr("orchestrator.cluster.cluster.WAITS_S", 0.02)
    monkeypatch.setattr("orchestrator.loop.dispatcher.POLL_S", 0.02)
    jobs = [job("a", budget_s=0.1)]
    with taken_host():
        result, _ = limited(store, jobs, cluster, limit_s=limit_s, wait_s=wait_s)
    assert (result.taken, result.interrupted, len(result.plan.jobs)) == (True, False, 1)
    assert store.states() == {"waiting": 1}
    result, _ = limited(store, jobs, cluster)
    assert (result.taken, result.plan.jobs) == (False, ())


@pytest.mark.ray
def test_a_job_of_another_run_is_waited_for_as_long_as_may_be(
    store: Store, cluster: Cluster
) -> None:
    """The same for a job that another run of the sweep holds."""
    held = [job("a")]
    claimed_elsewhere(store, held)
    result, _ = limited(store, held, cluster, wait_s=0.5)
    assert (result.taken, len(result.plan.jobs)) == (True, 1)
