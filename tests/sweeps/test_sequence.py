"""Lists always expand; a value that is itself a list or a schedule has its own form."""

from collections.abc import Callable
from typing import Any

import pytest

from sweeps.geometry.vit_catalogue import networks
from sweeps.language.expand import Expansion, expand_file
from sweeps.language.yaml_reader import SweepError
from tests.sweeps.conftest import MODEL
from workers.methods import all_methods

REAL = "schema: 1\nname: trial\ndefaults: {model: deit_tiny_patch16_224, image_size: 224}\n"

Expand = Callable[..., Expansion]
Refusal = Callable[..., SweepError]


def params(expansion: Expansion) -> list[dict[str, Any]]:
    return [arm.stack[0].params for arm in expansion.jobs[0].arms[1:]]


def real(methods: str) -> Expansion:
    """A sweep with the methods that ship."""
    return expand_file(
        "trial.yaml",
        text=f"{REAL}{methods}\n",
        methods=all_methods(),
        networks=networks(),
        auto="cpu",
    )


def test_a_schedule_has_a_form_of_its_own(expand: Expand) -> None:
    """`per_block` lists every block; with `fill: 0` further blocks have none; several stand in a
    list beside numbers.
    """
    full = ", ".join(["3"] * 12)
    text = (
        f"methods: [{{method: tome, r: [8, {{per_block: [{full}]}}, {{per_block: [4, 4], fill:"
        " 0}]}]\n"
    )
    assert [own["r"] for own in params(expand(MODEL + text))] == [8, [3] * 12, [4, 4]]


def test_a_schedule_counts_the_blocks_of_each_model(refusal: Refusal, expand: Expand) -> None:
    """A schedule of another length names the model, its blocks and the length; a rule may take out
    the model that it is not for.
    """
    twelve = "{per_block: [" + ", ".join(["3"] * 12) + "]}"
    error = refusal(MODEL + "methods:\n  - method: tome\n    r: {per_block: [8, 13]}\n")
    assert (error.line, error.key) == (6, "methods[0].r.per_block")
    assert "lists 2 numbers, but deit_tiny_patch16_224 has 12 blocks; give 12" in error.problem
    assert "fill: 0" in error.problem
    both = (
        "defaults: {image_size: 32}\naxes: {model: [deit_tiny_patch16_224,"
        " vit_giant_patch16_224]}\n"
    )
    text = f"{both}methods: [{{method: tome, r: {twelve}}}, {{method: tome, r: 4}}]\n"
    assert "vit_giant_patch16_224 has 40 blocks; give 40" in refusal(text).problem
    rule = f"exclude: [{{model: vit_giant_patch16_224, r: {twelve}}}]\n"
    assert [len(job.pairs) for job in expand(text + rule).jobs] == [2, 1]


def test_a_schedule_of_hquota_counts_its_layers() -> None:
    """Where only some blocks reduce, a schedule has a number for each of these."""
    arms = (
        real("methods: [{method: hquota, r: {per_block: [5, 0, 2]}, layers: {list: [0, 1, 3]}}]")
        .jobs[0]
        .arms
    )
    assert arms[1].stack[0].params["r"] == [5, 0, 2]
    with pytest.raises(SweepError, match=r"has 12 blocks, of which 3 count here; give 3"):
        real("methods: [{method: hquota, r: {per_block: [5, 2]}, layers: early}]")


def test_a_list_value_has_a_form_of_its_own(expand: Expand) -> None:
    """`{list: …}` is one list; a list of lists is several."""
    for written, expected in (
        ("{list: [3, 6, 9]}", [[3, 6, 9]]),
        ("[{list: [3, 6, 9]}, {list: [2, 5]}]", [[3, 6, 9], [2, 5]]),
        ("[[3, 6, 9], [2, 5]]", [[3, 6, 9], [2, 5]]),
    ):
        found = params(expand(MODEL + f"methods: [{{method: topk, layers: {written}}}]\n"))
        assert [own["layers"] for own in found] == expected


def test_rules_take_the_same_forms(expand: Expand, refusal: Refusal) -> None:
    """A rule names a list value by its form; a list for a parameter without lists is refused, for
    it would match nothing.
    """
    text = (
        MODEL + "methods: [{method: topk, layers: [{list: [3]}, {list: [3, 6]}], keep_rate: [0.5,"
        " 0.7]}]\n"
    )
    assert len(params(expand(text + "exclude: [{layers: {list: [3, 6]}}]\n"))) == 2
    assert (
        "did you mean {in: […]}?" in refusal(text + "exclude: [{keep_rate: [0.5, 0.7]}]\n").problem
    )
