"""`threads` in a sweep: a number, `cores - 1`, how they wait and are pinned; what is not written
changes no identity.
"""

from itertools import pairwise
from typing import Any

import pytest

from sweeps.model.condition import Condition, image_shape
from sweeps.model.job import DENSE, Comparison
from sweeps.model.kinds import THREAD_FIELDS
from tests.sweeps.conftest import MODEL, TOPK, Expand


def written(expand: Expand, threads: str, rest: str = "") -> list[tuple[Any, ...]]:
    """The fields of the conditions of a sweep with such an axis `threads`."""
    jobs = expand(f"{MODEL}axes: {{image_size: [32], threads: {threads}}}\n{TOPK}{rest}").jobs
    return [tuple(getattr(job.condition, name) for name in THREAD_FIELDS) for job in jobs]


@pytest.mark.parametrize(
    ("threads", "fields"),
    [
        ("2", (2, None, None, None)),
        ("cores", (None, None, None, None)),
        ("cores - 1", (None, 1, None, None)),
        ("cores-2", (None, 2, None, None)),
        ("{count: cores - 1, pin: true}", (None, 1, None, "cores")),
        ("{wait: brief, pin: false}", (None, None, None, None)),
        ("{wait: passive}", (None, None, "passive", None)),
    ],
)
def test_forms(expand: Expand, threads: str, fields: tuple[Any, ...]) -> None:
    """A value of `threads` sets all fields of the condition that are about threads."""
    assert written(expand, threads) == [fields]


def test_values_of_an_axis_are_points(expand: Expand) -> None:
    """A list of any forms gives a point for each; the fields of one value stay together, also in a
    group of `zip`.
    """
    values = "[1, cores - 1, {count: cores, wait: active, pin: true}]"
    fields = [(1, None, None, None), (None, 1, None, None), (None, None, "active", "cores")]
    assert written(expand, values) == fields
    tied = (
        f"{MODEL}axes: {{image_size: [32, 48, 64], threads: {values}}}\nzip: [[image_size,"
        f" threads]]\n{TOPK}"
    )
    assert [
        tuple(getattr(job.condition, name) for name in THREAD_FIELDS) for job in expand(tied).jobs
    ] == fields


def test_an_axis_replaces_the_whole_of_a_default(expand: Expand) -> None:
    """As with any other key: nothing of the default is left beside it."""
    text = "defaults: {model: deit_tiny_patch16_224, threads: {count: cores - 1, wait: active}}\n"
    (plain,) = expand(f"{text}axes: {{image_size: [32]}}\n{TOPK}").jobs
    (replaced,) = expand(f"{text}axes: {{image_size: [32], threads: [2]}}\n{TOPK}").jobs
    assert [getattr(plain.condition, name) for name in THREAD_FIELDS] == [None, 1, "active", None]
    assert [getattr(replaced.condition, name) for name in THREAD_FIELDS] == [2, None, None, None]


def test_an_extra_point_and_a_rule_may_name_them(expand: Expand) -> None:
    """`include` has the same forms; rules test the single fields."""
    include = (
        "include: [{image_size: 64, threads: {count: 1, wait: active}, method: topk, keep_rate:"
        " 0.5}]\n"
    )
    assert written(expand, "[1]", include) == [(1, None, None, None), (1, None, "active", None)]
    exclude = "exclude: [{wait_policy: active}, {spare_cores: 1}]\n"
    assert written(expand, "[2, cores - 1, {wait: active}]", exclude) == [(2, None, None, None)]


def test_the_identities_of_other_ways_are_pinned() -> None:
    """What is stored under them must be found again; accuracy does not depend on them."""
    arm = DENSE.model_copy(update={"replicate": 1})
    plain = Condition(model="m", image_size=32)
    ways = {
        "25621fa02a556b1e": {"spare_cores": 1, "wait_policy": "active", "pinning": "cores"},
        "ad30ec90da9a0e64": {"device": "cuda", "exclusive": "device"},
    }
    for question_id, way in ways.items():
        timed = Comparison(condition=plain.model_copy(update=way), baseline=DENSE, arm=arm)
        assert timed.question_id == question_id
    quality = Comparison(kind="accuracy", condition=plain, baseline=DENSE, arm=arm)
    threads = plain.model_copy(update=ways["25621fa02a556b1e"])
    assert quality.model_copy(update={"condition": threads}).question_id == quality.question_id


def test_threads_on_a_machine() -> None:
    """A number, or all cores but the spare ones, and one at least."""
    assert Condition(model="m", threads=3).threads_on(8) == 3
    assert Condition(model="m").threads_on(8) == 8
    assert Condition(model="m", spare_cores=1).threads_on(8) == 7
    assert Condition(model="m", spare_cores=1).threads_on(1) == 1


# ---- `exclusive` in a sweep ----


def test_some_ways_of_timing_are_no_question_of_accuracy(expand: Expand) -> None:
    """An axis of whole and shared machines, and one of values of inputs, gives a question of timing
    for each and one of accuracy; the first of both is that of sweeps that write nothing.
    """
    asked = "jobs: {latency: {}, accuracy: {}}\n"
    for name, written, other in (
        ("exclusive", "device: [cuda], exclusive: [node, device]", "device"),
        ("inputs", "inputs: [normal, zeros]", "zeros"),
    ):
        axes = f"axes: {{image_size: [32], data: ['imagefolder:x'], {written}}}\n"
        first, second, quality = expand(MODEL + axes + TOPK + asked).jobs
        assert [job.kind for job in (first, second, quality)] == ["latency", "latency", "accuracy"]
        assert [getattr(job.condition, name) for job in (first, second)] == [None, other]
        alone = axes.replace("data: ['imagefolder:x'], ", "").replace(f", {other}]", "]")
        (plain,) = expand(MODEL + alone + TOPK).jobs
        assert plain.comparison_ids() == first.comparison_ids() != second.comparison_ids()
        occupied = ["node", "device" if name == "exclusive" else "node", "shared"]
        assert [job.occupation for job in (first, second, quality)] == occupied


# ---- the section `search` of a sweep ----


MODEL_SEARCH_AXIS = "defaults: {model: deit_tiny_patch16_224}\n"
BRACKET = "search: {axis: image_size, bracket: [30, 100]}\n"


def test_sizes_are_multiples_of_the_patch(expand: Expand) -> None:
    """The questions are those of a grid on the feasible places: squares, and rectangles one patch
    wider than high.

    Patches are those that all models have in common.
    """
    searched = expand(MODEL_SEARCH_AXIS + TOPK + BRACKET)
    sizes = [image_shape(job.condition.image_size or 0) for job in searched.jobs]
    sides = (32, 48, 64, 80, 96)
    assert sizes == sorted([*zip(sides, sides, strict=True), *pairwise(sides)])
    written = ", ".join(f"{{height: {height}, width: {width}}}" for height, width in sizes)
    grid = expand(MODEL_SEARCH_AXIS + f"axes: {{image_size: [{written}]}}\n" + TOPK)
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
        MODEL_SEARCH_AXIS
        + TOPK
        + "search: {axis: batch_size, bracket: [1, 16], stop: {factor: 2}}\n"
    )
    sizes = [job.condition.batch_size for job in batches.jobs]
    assert sizes == sorted(set(sizes))
    assert (sizes[0], sizes[-1]) == (1, 16)
    threads = expand(MODEL_SEARCH_AXIS + TOPK + "search: {axis: threads, bracket: [1, 4]}\n")
    assert [job.condition.threads for job in threads.jobs] == [1, 2, 3, 4]
    rates = expand(
        MODEL_SEARCH_AXIS
        + TOPK
        + "search: {axis: keep_rate, bracket: [0.25, 1], stop: {factor: 2}, max_points: 4}\n"
    )
    found = sorted(
        {arm.stack[0].params["keep_rate"] for job in rates.jobs for arm in job.arms if arm.stack}
    )
    assert (len(found), found[0], found[-1]) == (7, 0.25, 1)
    assert all(right / left < 2 for left, right in pairwise(found))
