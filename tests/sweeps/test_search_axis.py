"""The section `search` of a sweep: feasible values on its axis, the questions of a grid, and what
it cannot stand beside.
"""

from itertools import pairwise

import pytest

from sweeps.model.condition import image_shape
from tests.sweeps.conftest import TOPK, Expand, Refusal

MODEL = "defaults: {model: deit_tiny_patch16_224}\n"
BRACKET = "search: {axis: image_size, bracket: [30, 100]}\n"


def test_sizes_are_multiples_of_the_patch(expand: Expand) -> None:
    """The questions are those of a grid on the feasible places: squares, and rectangles one patch
    wider than high.

    Patches are those that all models have in common.
    """
    searched = expand(MODEL + TOPK + BRACKET)
    sizes = [image_shape(job.condition.image_size or 0) for job in searched.jobs]
    assert sizes == [
        (32, 32),
        (32, 48),
        (48, 48),
        (48, 64),
        (64, 64),
        (64, 80),
        (80, 80),
        (80, 96),
        (96, 96),
    ]
    written = ", ".join(f"{{height: {height}, width: {width}}}" for height, width in sizes)
    grid = expand(MODEL + f"axes: {{image_size: [{written}]}}\n" + TOPK)
    assert [job.comparison_ids() for job in searched.jobs] == [
        job.comparison_ids() for job in grid.jobs
    ]
    two = "axes: {model: [deit_tiny_patch16_224, vit_base_patch32_224]}\n"
    both = {image_shape(job.condition.image_size or 0) for job in expand(two + TOPK + BRACKET).jobs}
    assert both == {(32, 32), (32, 64), (64, 64), (64, 96), (96, 96)}


def test_whole_numbers_and_parameters(expand: Expand) -> None:
    """Batch sizes are whole; a parameter has its values in every entry, closer together than the
    factor of the stop.
    """
    batches = expand(
        MODEL + TOPK + "search: {axis: batch_size, bracket: [1, 16], stop: {factor: 2}}\n"
    )
    sizes = [job.condition.batch_size for job in batches.jobs]
    assert sizes == sorted(set(sizes))
    assert (sizes[0], sizes[-1]) == (1, 16)
    threads = expand(MODEL + TOPK + "search: {axis: threads, bracket: [1, 4]}\n")
    assert [job.condition.threads for job in threads.jobs] == [1, 2, 3, 4]
    rates = expand(
        MODEL
        + TOPK
        + "search: {axis: keep_rate, bracket: [0.25, 1], stop: {factor: 2}, max_points: 4}\n"
    )
    found = sorted(
        {arm.stack[0].params["keep_rate"] for job in rates.jobs for arm in job.arms if arm.stack}
    )
    assert (len(found), found[0], found[-1]) == (7, 0.25, 1)
    assert all(right / left < 2 for left, right in pairwise(found))


@pytest.mark.parametrize(
    ("text", "line", "key", "expected"),
    [
        (
            "search: {axis: image_sise, bracket: [32, 64]}\n",
            5,
            "search.axis",
            "did you mean 'image_size'?",
        ),
        (
            "search: {axis: dtype, bracket: [32, 64]}\n",
            5,
            "search.axis",
            "'dtype' is no axis of a search",
        ),
        (
            "search: {axis: image_size, bracket: [64, 32]}\n",
            5,
            "search.bracket",
            "needs the smaller value first",
        ),
        (
            "search: {axis: image_size, bracket: [33, 47]}\n",
            5,
            "search.bracket",
            "holds 0 feasible values of image_size from 33 to 47",
        ),
        (
            "search: {axis: image_size, bracket: [32, 47]}\n",
            5,
            "search.bracket",
            "a search needs two at least",
        ),
        (
            "search: {axis: image_size, brackets: [32, 64]}\n",
            5,
            "search.brackets",
            "did you mean 'bracket'?",
        ),
        (
            "search: {axis: image_size, bracket: [32, 64], stop: {factor: 1}}\n",
            5,
            "search.stop.factor",
            "greater than 1",
        ),
        (
            "search: {axis: image_size, bracket: [32, 64], budget: soon}\n",
            5,
            "search.budget",
            "is no duration",
        ),
        (
            "search: {kind: minimum, axis: image_size, bracket: [32, 64]}\n",
            5,
            "search.kind",
            "breakeven",
        ),
        (BRACKET + "axes: {image_size: [32]}\n", 6, "axes.image_size", "stands under `search` too"),
        (BRACKET + "jobs: {accuracy: {}}\n", 6, "jobs.accuracy", "accuracy has no break-even"),
        (
            BRACKET + "jobs: {latency: {rounds: 2}}\n",
            6,
            "jobs.latency.rounds",
            "a search repeats where it is needed",
        ),
        (BRACKET + "include: [{method: topk}]\n", 6, "include", "adds points to a grid"),
        ("budget: never\n", 5, "budget", "is no duration"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(
    refusal: Refusal, text: str, line: int, key: str, expected: str
) -> None:
    """One message with line, key and what would be right."""
    error = refusal(MODEL + TOPK + text)
    assert (error.line, error.key) == (line, key)
    assert expected in error.problem
