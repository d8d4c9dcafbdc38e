"""Passes: every job of a sweep is visited in turns, each time for a share of its pairs and its
budget.
"""

import pytest

from sweeps.analysis.job_estimate import EndedJob, OpenJob, time_left
from tests.sweeps.conftest import GRID, Expand

PASSES = "jobs: {latency: {pairs: {min: 30, max: 300}, budget: 12s, passes: 12}}\n"


def test_every_job_is_visited_once_in_each_pass(expand: Expand) -> None:
    """Pass after pass, in another order each, with a share of pairs and budget, three pairs at
    least; what is compared is the same.
    """
    once, often = expand(GRID), expand(GRID + PASSES)
    size = len(once.jobs)
    passes = [often.jobs[start : start + size] for start in range(0, len(often.jobs), size)]
    assert len(passes) == 12
    assert {job.comparison_ids() for job in once.jobs} == {
        job.comparison_ids() for job in passes[0]
    }
    for turn, jobs in enumerate(passes):
        assert {job.round for job in jobs} == {turn}
        assert sorted(job.condition.canonical_text for job in jobs) == sorted(
            job.condition.canonical_text for job in once.jobs
        )
    assert len({tuple(job.condition for job in jobs) for jobs in passes}) > min(3, size - 1)
    protocol = often.jobs[0].protocol
    assert (protocol.pairs_min, protocol.pairs_max) == (3, 25)
    assert (protocol.budget_s, protocol.turns) == (1.0, 12)
    assert often.comparisons == once.comparisons
    few = expand(GRID + "jobs: {latency: {pairs: {min: 2, max: 4}, passes: 100}}\n").jobs[0]
    assert (few.protocol.pairs_min, few.protocol.pairs_max) == (3, 3)
    assert [job.job_id for job in expand(GRID + PASSES).jobs] == [job.job_id for job in often.jobs]


# ---- the time left, from the durations of jobs that ended and the estimates of all ----


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
