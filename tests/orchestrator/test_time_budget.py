"""The time that a run may take: what still fits, and how much a first pass is shortened."""

import math

import pytest

from orchestrator.plan.time_budget import MIN_SHARE, PASS_SHARE, TimeBudget, job_seconds, shortened
from tests.orchestrator.conftest import job

JOBS = [job("a", image_size=size, budget_s=10.0) for size in range(32, 192, 16)]


def test_a_pass_that_fits_is_left_as_it_is() -> None:
    """Only a pass that would take more than its share of the time is shortened."""
    assert shortened(JOBS, math.inf) == tuple(JOBS)
    assert shortened(JOBS, math.fsum(map(job_seconds, JOBS)) / PASS_SHARE + 1) == tuple(JOBS)


def test_a_longer_pass_takes_its_share_of_the_time() -> None:
    """All jobs lose the same share of their `budget`, and keep a least one; what else they request
    stays, their ids too.
    """
    shorter = shortened(JOBS, 100.0)
    assert math.fsum(map(job_seconds, shorter)) == pytest.approx(60.0)
    assert len({each.protocol.budget_s for each in shorter}) == 1
    assert [each.job_id for each in shorter] == [each.job_id for each in JOBS]
    assert {each.protocol.budget_s for each in shortened(JOBS, 1.0)} == {10.0 * MIN_SHARE}


def test_compiling_leaves_time_to_measure() -> None:
    """What compiling may take does not shrink every budget to the least: no shorter budget could
    make up for it.
    """
    compiled = [
        each.model_copy(
            update={"condition": each.condition.model_copy(update={"runtime": "compile"})}
        )
        for each in JOBS[:2]
    ]
    assert math.fsum(map(job_seconds, compiled)) > 240
    assert {each.protocol.budget_s for each in shortened(compiled, 180.0)} == {10.0}


def test_a_slow_first_job_does_not_raise_what_compiling_takes() -> None:
    """The first job waits for its worker: the next one, whose estimate is mostly that of compiling,
    still fits.
    """
    (compiled,) = [
        JOBS[0].model_copy(
            update={"condition": JOBS[0].condition.model_copy(update={"runtime": "compile"})}
        )
    ]
    time_budget = TimeBudget(180.0)
    time_budget.begin()
    time_budget.start(JOBS[1])
    time_budget._running[JOBS[1]] -= 35.0
    time_budget.end(JOBS[1])
    assert time_budget.admits(compiled)


def test_what_would_end_too_late_is_not_admitted() -> None:
    """By the estimate of a job at first, and nothing fits into no time."""
    assert TimeBudget().admits(JOBS[0])
    assert TimeBudget(job_seconds(JOBS[0]) + 1).admits(JOBS[0])
    assert not TimeBudget(job_seconds(JOBS[0]) - 1).admits(JOBS[0])
    used = TimeBudget(1e-9)
    used.begin()
    assert used.left_s < 0
