"""The points of a sweep: values of axes, what moves together, and what rules take out or extra
points add.
"""

import hashlib
import itertools
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeps.language.condition_parser import Logspace, Range, expand_values
from sweeps.language.yaml_reader import read
from sweeps.model.condition import Condition
from tests.sweeps.conftest import GRID, MODEL, TOPK, Expand, Refusal, arms


def values(text: str, annotation: Any = float) -> list[Any]:
    """The values of an axis of this type, written as `text`."""
    document = read("x.yaml", f"a: {text}")
    return [
        choice.value for choice in expand_values(document.at("a"), document.root["a"], annotation)
    ]


# ---- axes ----


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("[1, 2]", [1, 2]),
        ("{range: {start: 1, stop: 7, step: 3}}", [1, 4, 7]),
        ("{range: {start: 1, stop: 6, step: 3}}", [1, 4]),
        ("{range: {start: 3, stop: 1, step: -1}}", [3, 2, 1]),
        ("{range: {start: 0.1, stop: 0.5, step: 0.1}}", [0.1, 0.2, 0.3, 0.4, 0.5]),
        ("{linspace: {start: 32, stop: 224, num: 4, multiple_of: 16}}", [32, 96, 160, 224]),
        ("{logspace: {start: 1, stop: 64}}", [1, 2, 4, 8, 16, 32, 64]),
        ("{logspace: {start: 1, stop: 70, base: 4}}", [1, 4, 16, 64]),
        ("{logspace: {start: 8, stop: 1, num: 4}}", [8, 4, 2, 1]),
        ("{logspace: {start: 32, stop: 224, num: 5, multiple_of: 16}}", [32, 48, 80, 144, 224]),
    ],
)
def test_series(written: str, expected: list[float]) -> None:
    """Ranges include a stop that is hit, spaces include both ends, and no rounding error shows."""
    assert values(written) == expected


def test_points_of_integer_fields_are_whole() -> None:
    """Computed points are rounded where the field takes integers, and floats where it takes
    fractions.
    """
    written = "{logspace: {start: 1, stop: 10, num: 3}}"
    assert str(values(written, int)) == "[1, 3, 10]"
    assert values(written)[1] == 3.16227766017


@given(st.integers(-1000, 1000), st.integers(-1000, 1000), st.integers(-50, 50).filter(bool))
def test_a_range_is_that_of_python_with_its_stop(start: int, stop: int, step: int) -> None:
    """For integers the language's range is Python's with an inclusive stop."""
    assert Range(start=start, stop=stop, step=step).values() == list(
        range(start, stop + (1 if step > 0 else -1), step)
    )


@given(st.floats(1e-3, 1e6), st.floats(1e-3, 1e6), st.integers(2, 50))
def test_a_logspace_keeps_its_ends_and_its_ratio(start: float, stop: float, num: int) -> None:
    """Both ends are hit, and neighbours differ by one factor."""
    points = Logspace(start=start, stop=stop, num=num).values()
    assert (len(points), points[0], points[-1]) == (num, start, stop)
    ratios = [math.log(after / before) for before, after in itertools.pairwise(points)]
    assert max(ratios) - min(ratios) < 1e-9


def test_weights_have_shorthands(expand: Expand, tmp_path: Path) -> None:
    """`pretrained: true` is `weights: pretrained`, and a checkpoint's content goes into the
    identity of answers.
    """
    assert (
        expand(MODEL + "axes: {pretrained: [true, false]}\n" + TOPK).jobs[0].condition.weights
        == "pretrained"
    )
    path = tmp_path / "model.pt"
    path.write_bytes(b"weights")
    job = expand(MODEL + f"axes: {{checkpoint: {path}}}\n" + TOPK).jobs[0]
    assert (job.condition.weights, job.content_hashes) == (
        str(path),
        {"weights": hashlib.sha256(b"weights").hexdigest()},
    )
    path.write_bytes(b"others")
    other = expand(MODEL + f"axes: {{weights: {path}}}\n" + TOPK).jobs[0]
    assert other.comparisons()[0].question_id == job.comparisons()[0].question_id
    assert other.comparison_ids() != job.comparison_ids()


# ---- zip, exclude, include ----


def test_axes_can_move_together(expand: Expand) -> None:
    """A group crosses with the other axes, but not within itself."""
    axes = "axes: {image_size: [32, 64], batch_size: [8, 2], seed: [1, 2]}\n"
    jobs = expand(f"{MODEL}{axes}{TOPK}zip: [[image_size, batch_size]]\n").jobs
    points = [
        (job.condition.image_size, job.condition.batch_size, job.condition.seed) for job in jobs
    ]
    assert points == [(32, 8, 1), (32, 8, 2), (64, 2, 1), (64, 2, 2)]


def test_a_parameter_can_move_with_an_axis(expand: Expand) -> None:
    """A fixed r scaled with the image size: one value of r per size."""
    text = (
        MODEL + "axes: {image_size: [32, 64, 96]}\nmethods: [{method: tome, r: [1, 4, 9]}, topk]\n"
    )
    expansion = expand(text + "zip: [[image_size, tome.r]]\n")
    assert [arms(expansion, job)[1] for job in range(3)] == ["tome(r=1)", "tome(r=4)", "tome(r=9)"]
    assert len(expansion.comparisons) == 6


def test_parameters_of_one_entry_can_move_together(expand: Expand) -> None:
    """Within an entry, and within a stack, grouped parameters do not multiply."""
    text = (
        MODEL
        + "methods: [{stack: [{method: topk, keep_rate: [0.5, 0.7]}, {method: tome, r_ratio: [0.1,"
        " 0.2]}]}]\n"
    )
    expansion = expand(text + "zip: [[topk.keep_rate, tome.r_ratio]]\n")
    stacks = [arm.stack for arm in expansion.jobs[0].arms[1:]]
    pairs = [(topk.params["keep_rate"], tome.params["r_ratio"]) for topk, tome in stacks]
    assert pairs == [(0.5, 0.1), (0.7, 0.2)]
    assert len(expand(text).comparisons) == 4


@pytest.mark.parametrize(
    ("rule", "excluded"),
    [
        ("{image_size: 64}", 3),
        ("{image_size: {in: [32, 96]}}", 6),
        ("{image_size: {gt: 32, lt: 96}}", 3),
        ("{tokens: {ge: 16}}", 6),
        ("{method: {ne: topk}}", 3),
        ("{method: {re: ^to.e$}}", 3),
        ("{keep_rate: {ge: 0}}", 6),
        ("{r: {ne: 3}}", 3),
        ("{r: 4.0}", 3),
        ("{layers: [3, 6, 9], keep_rate: {lt: 0.6}, image_size: 32}", 1),
        ("{method: tome, keep_rate: 0.5}", 0),
        ("{replicate: 0, image_size: 32}", 3),
    ],
)
def test_rules_take_arms_out(expand: Expand, rule: str, excluded: int) -> None:
    """All keys of a rule must match; a parameter that an arm does not have never does."""
    expansion = expand(GRID + f"exclude: [{rule}]\n")
    assert expansion.excluded == excluded
    assert len(expansion.comparisons) == 9 - excluded


def test_a_rule_sees_what_the_arm_overrides(expand: Expand) -> None:
    """Rules look at the condition as the arm runs it, and at every step of a stack."""
    text = (
        MODEL + "methods: [{method: topk, runtime: [eager, compile]}, {stack: [tome, {method: topk,"
        " keep_rate: 0.1}]}]\n"
    )
    assert len(expand(text + "exclude: [{runtime: compile}]\n").comparisons) == 2
    assert len(expand(text + "exclude: [{method: topk, keep_rate: {lt: 0.5}}]\n").comparisons) == 2
    assert len(expand(text + "exclude: [{method: tome+topk}]\n").comparisons) == 2


def test_an_impossible_size_may_be_excluded(expand: Expand, refusal: Refusal) -> None:
    """A size that one model's patch does not divide is no error where a rule takes it out, and is
    one elsewhere.
    """
    text = (
        "axes:\n  model: [deit_tiny_patch16_224, vit_base_patch32_224]\n  image_size: [32,\n   "
        " 48]\n" + TOPK
    )
    error = refusal(text)
    assert (error.line, error.key) == (6, "axes.image_size[1]")
    assert (
        "image_size 48 is not a multiple of vit_base_patch32_224's patch size 32; near by: 32 or 64"
        in error.problem
    )
    assert expand(text + "exclude: [{model: {re: patch32}, image_size: 48}]\n").points == 3


def test_extra_points_are_not_filtered(expand: Expand) -> None:
    """An included point takes the rest from `defaults`, and no rule touches it."""
    text = (
        GRID
        + "exclude: [{image_size: {ge: 0}}]\ninclude: [{image_size: 224, batch_size: 8, method:"
        " topk, keep_rate: 0.1}]\n"
    )
    expansion = expand(text)
    assert len(expansion.jobs) == 1
    assert expansion.jobs[0].condition == Condition(
        model="deit_tiny_patch16_224", image_size=224, batch_size=8
    )
    assert arms(expansion) == ["dense", "topk(keep_rate=0.1, layers=[3,6,9])"]
