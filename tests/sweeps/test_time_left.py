"""The time left, from the durations of jobs that ended and the estimates of all."""

import pytest

from sweeps.analysis.job_estimate import EndedJob, OpenJob, time_left


def test_durations_scale_the_estimates_of_the_rest() -> None:
    """Jobs that take half of their estimate make the rest half as long; what has run of the present
    one is taken off.
    """
    ended, rest = (
        [EndedJob("latency", 10.0, 5.0)],
        [OpenJob("latency", 20.0, runs=True), OpenJob("latency", 40.0, runs=False)],
    )
    assert time_left([], rest, since_s=0.0) is None
    assert time_left(ended, [], since_s=0.0) is None
    assert time_left(ended, rest, since_s=0.0) == pytest.approx(30.0)
    assert time_left(ended, rest, since_s=3.0) == pytest.approx(27.0)
    assert time_left(ended, rest, since_s=999.0) == pytest.approx(20.0)


def test_each_kind_has_its_own_share() -> None:
    """Profiles that take three times their estimate change nothing of timing; a kind without any
    takes the share of all.
    """
    ended = [EndedJob("latency", 10.0, 5.0), EndedJob("profile", 10.0, 30.0)]
    for kind, seconds in (("latency", 10.0), ("profile", 60.0), ("accuracy", 35.0)):
        assert time_left(ended, [OpenJob(kind, 20.0, runs=False)], since_s=0.0) == pytest.approx(
            seconds
        )


def test_jobs_side_by_side_share_the_rest() -> None:
    """Two jobs at a time halve it, also where one of both is about to begin; no more run than are
    left.
    """
    ended, waiting = [EndedJob("latency", 10.0, 10.0)], OpenJob("latency", 8.0, runs=False)
    one = OpenJob("latency", 8.0, runs=True)
    assert time_left(ended, [one, one, waiting], since_s=0.0) == pytest.approx(12.0)
    assert time_left(ended, [one, waiting, waiting], since_s=0.0, starting=1) == pytest.approx(12.0)
    assert time_left(ended, [one], since_s=0.0, starting=1) == pytest.approx(8.0)
    assert time_left(ended, [one, one, waiting], since_s=2.0) == pytest.approx(10.0)
