"""Passes: every job of a sweep is visited in turns, each time for a share of its pairs and its
budget.
"""

from tests.sweeps.conftest import GRID, Expand, Refusal

PASSES = "jobs: {latency: {pairs: {min: 30, max: 300}, budget: 12s, passes: 12}}\n"


def test_every_job_is_visited_once_in_each_pass(expand: Expand) -> None:
    """Pass after pass, in another order each, with a share of pairs and budget; what is compared is
    the same.
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
    assert (protocol.pairs_min, protocol.pairs_max, protocol.budget_s, protocol.turns) == (
        3,
        25,
        1.0,
        12,
    )
    assert often.comparisons == once.comparisons
    assert [job.job_id for job in expand(GRID + PASSES).jobs] == [job.job_id for job in often.jobs]


def test_a_visit_has_three_pairs_at_least(expand: Expand) -> None:
    """However many passes there are."""
    protocol = (
        expand(GRID + "jobs: {latency: {pairs: {min: 2, max: 4}, passes: 100}}\n").jobs[0].protocol
    )
    assert (protocol.pairs_min, protocol.pairs_max) == (3, 3)


def test_rounds_and_passes_are_two_ways_to_repeat(refusal: Refusal) -> None:
    """One of them is written."""
    assert "rounds and passes both repeat" in str(
        refusal(GRID + "jobs: {latency: {rounds: 2, passes: 2}}\n")
    )
