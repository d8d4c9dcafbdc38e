"""The time left, from the durations of a run's own jobs."""

import pytest

from orchestrator.estimate import seconds
from orchestrator.forecast import Forecast
from tests.orchestrator.conftest import job


def test_durations_scale_the_estimates_of_the_rest() -> None:
    """Jobs that take half of their estimate make the rest half as long; what has run of the present one is taken off."""
    jobs = [job("a", image_size=size, budget_s=budget) for size, budget in ((32, 10.0), (48, 10.0), (64, 20.0))]
    forecast = Forecast()
    forecast.expect(jobs)
    assert forecast.left_s(0.0) is None
    forecast.start(jobs[0], 0.0)
    forecast.answer(jobs[0], seconds(jobs[0]) / 2)
    rest = (seconds(jobs[1]) + seconds(jobs[2])) / 2
    assert forecast.left_s(100.0) == pytest.approx(rest)
    forecast.start(jobs[1], 100.0)
    assert forecast.left_s(103.0) == pytest.approx(rest - 3)
    assert forecast.left_s(999.0) == pytest.approx(seconds(jobs[2]) / 2)


def test_jobs_side_by_side_and_parts_of_jobs() -> None:
    """Two jobs at a time halve the rest; a job that was split is still to come until its parts are answered."""
    jobs = [job("a", "b", image_size=size) for size in (32, 48, 64)]
    forecast = Forecast()
    forecast.expect(jobs)
    for one in jobs[:2]:
        forecast.start(one, 0.0)
    forecast.answer(jobs[0], 8.0)
    forecast.end(jobs[1])
    assert forecast.left_s(8.0) == pytest.approx(8.0)
    for pair in jobs[1].pairs:
        part = jobs[1].only([pair])
        forecast.start(part, 8.0)
        forecast.answer(part, 12.0)
    assert forecast.left_s(12.0) == pytest.approx(4.0)
