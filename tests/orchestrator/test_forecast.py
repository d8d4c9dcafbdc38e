"""The time left, from the durations of a run's own jobs."""

import pytest

from orchestrator.estimate import job_seconds
from orchestrator.forecast import Forecast
from tests.orchestrator.conftest import job


def test_durations_scale_the_estimates_of_the_rest() -> None:
    """Jobs that take half of their estimate make the rest half as long; what has run of the present one is taken off."""
    jobs = [job("a", image_size=size, budget_s=budget) for size, budget in ((32, 10.0), (48, 10.0), (64, 20.0))]
    forecast = Forecast()
    forecast.expect(jobs)
    assert forecast.left_s(0.0) is None
    forecast.start(jobs[0], 0.0)
    forecast.answer(jobs[0], job_seconds(jobs[0]) / 2)
    rest = (job_seconds(jobs[1]) + job_seconds(jobs[2])) / 2
    assert forecast.left_s(100.0) == pytest.approx(rest)
    forecast.start(jobs[1], 100.0)
    assert forecast.left_s(103.0) == pytest.approx(rest - 3)
    assert forecast.left_s(999.0) == pytest.approx(job_seconds(jobs[2]) / 2)


def test_jobs_side_by_side_and_parts_of_jobs() -> None:
    """Two jobs at a time halve the rest; a job that was split is still to come until its parts are answered."""
    jobs = [job("a", "b", image_size=size) for size in (32, 48, 64)]
    forecast = Forecast()
    forecast.expect(jobs)
    for one in jobs[:2]:
        forecast.start(one, 0.0)
    forecast.answer(jobs[0], 8.0)
    forecast.stop(jobs[1])
    assert forecast.left_s(8.0) == pytest.approx(8.0)
    for pair in jobs[1].pairs:
        part = jobs[1].only([pair])
        forecast.start(part, 8.0)
        forecast.answer(part, 12.0)
    assert forecast.left_s(12.0) == pytest.approx(4.0)


def test_time_spent_waiting_is_no_duration() -> None:
    """A job that waited counts with the time it was measured, and what it waits is not taken off the rest."""
    jobs = [job("a", image_size=size, budget_s=10.0) for size in (32, 48, 64)]
    forecast = Forecast()
    forecast.expect(jobs)
    forecast.start(jobs[0], 0.0)
    forecast.stop(jobs[0])
    forecast.start(jobs[0], 60.0)
    forecast.answer(jobs[0], 68.0)
    assert forecast.left_s(68.0) == pytest.approx(8 * (job_seconds(jobs[1]) + job_seconds(jobs[2])) / job_seconds(jobs[0]))
    before = forecast.left_s(68.0)
    forecast.start(jobs[1], 68.0)
    forecast.stop(jobs[1])
    assert forecast.left_s(100.0) == before
    forecast.answer(jobs[1], 108.0, took_s=8.0)
    assert forecast.left_s(108.0) == pytest.approx(8 * job_seconds(jobs[2]) / job_seconds(jobs[0]))


def test_jobs_of_other_runs_are_not_left() -> None:
    """What another run measures counts for nothing while it holds it, and is still to come when it lets go."""
    jobs = [job("a", image_size=size) for size in (32, 48)]
    forecast = Forecast()
    forecast.expect(jobs)
    forecast.start(jobs[0], 0.0)
    forecast.answer(jobs[0], 8.0)
    forecast.elsewhere(jobs[1:])
    assert forecast.left_s(8.0) == 0.0
    forecast.elsewhere([])
    assert forecast.left_s(8.0) == pytest.approx(8 * job_seconds(jobs[1]) / job_seconds(jobs[0]))
