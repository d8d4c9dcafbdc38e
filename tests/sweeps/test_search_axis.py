"""The section `search` of a sweep: feasible values on its axis, the questions of a grid, and what
it cannot stand beside.
"""

from itertools import pairwise

from sweeps.model.condition import image_shape
from tests.sweeps.conftest import TOPK, Expand

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
