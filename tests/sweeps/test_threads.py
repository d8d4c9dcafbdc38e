"""`threads` in a sweep: a number, `cores - 1`, how they wait and are pinned; what is not written
changes no identity.
"""

from typing import Any

import pytest

from sweeps.model.condition import Condition
from sweeps.model.job import DENSE, Comparison
from sweeps.model.kinds import THREAD_FIELDS
from tests.sweeps.conftest import MODEL, TOPK, Expand, Refusal


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
        ("{count: 2, wait: active}", (2, None, "active", None)),
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


def test_defaults_are_the_question_of_sweeps_that_do_not_name_them(expand: Expand) -> None:
    """`cores`, waiting asleep, and not pinned."""
    (plain,) = expand(f"{MODEL}axes: {{image_size: [32]}}\n{TOPK}").comparisons
    (spelled,) = expand(
        f"{MODEL}axes: {{image_size: [32], threads: [{{count: cores, wait: brief, pin:"
        f" false}}]}}\n{TOPK}"
    ).comparisons
    assert spelled.question_id == plain.question_id
    assert not any(name in spelled.condition.canonical_text for name in THREAD_FIELDS)


def test_the_identities_of_other_ways_are_pinned() -> None:
    """What is stored under them must be found again."""
    arm = DENSE.model_copy(update={"replicate": 1})
    condition = Condition(
        model="m", image_size=32, spare_cores=1, wait_policy="active", pinning="cores"
    )
    assert (
        Comparison(condition=condition, baseline=DENSE, arm=arm).question_id == "25621fa02a556b1e"
    )
    plain = Condition(model="m", image_size=32)
    same = {
        Comparison(kind="accuracy", condition=each, baseline=DENSE, arm=arm).question_id
        for each in (plain, condition)
    }
    assert len(same) == 1


def test_threads_on_a_machine() -> None:
    """A number, or all cores but the spare ones, and one at least."""
    assert Condition(model="m", threads=3).threads_on(8) == 3
    assert Condition(model="m").threads_on(8) == 8
    assert Condition(model="m", spare_cores=1).threads_on(8) == 7
    assert Condition(model="m", spare_cores=1).threads_on(1) == 1


def test_the_fields_go_under_threads(refusal: Refusal) -> None:
    """There is one way to write each."""
    error = refusal(f"{MODEL}axes: {{image_size: [32], wait_policy: [active]}}\n{TOPK}")
    assert "is written threads: {count: cores - 1, wait: active, pin: true}" in error.problem
