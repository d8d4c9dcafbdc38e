"""Models as people name them in sweeps: hub names, weights tags, checkpoints, and others that are
refused with the true reason.
"""

from pathlib import Path

import pytest

from orchestrator.plan.planning import load_sweep
from sweeps.geometry.vit_catalogue import networks
from sweeps.language.yaml_reader import SweepError
from sweeps.model.condition import Condition

SWEEP = """\
schema: 1
name: names
question: Is the model known by this name?
axes: {{model: {models}}}
methods: [{{method: tome, r: 2}}]
jobs: {{{jobs}}}
"""


def conditions(
    folder: Path, models: str, jobs: str = "latency: {}", more: str = ""
) -> list[Condition]:
    """The conditions that a sweep over these models expands to."""
    file = folder / "sweep.yaml"
    file.write_text(SWEEP.format(models=models, jobs=jobs) + more)
    return [job.condition for job in load_sweep(file, auto="cpu").jobs]


def test_hub_names_and_tags(tmp_path: Path) -> None:
    """`timm/NAME` is NAME, a tag stays part of it, and without an image size each model gets its
    own.
    """
    names = (
        "[timm/vit_base_patch16_224.mae, vit_base_patch16_384,"
        " vit_small_patch16_224.augreg_in21k_ft_in1k]"
    )
    found = {each.model: each.image_size for each in conditions(tmp_path, names)}
    assert found == {
        "vit_base_patch16_224.mae": 224,
        "vit_base_patch16_384": 384,
        "vit_small_patch16_224.augreg_in21k_ft_in1k": 224,
    }
    sized = conditions(tmp_path, "[test_vit]", more="defaults: {image_size: 32}\n")
    assert [each.image_size for each in sized] == [32]


@pytest.mark.parametrize(
    ("model", "problem"),
    [
        ("timm/convnext_tiny.fb_in1k", "convnext_tiny is not supported: convolutional network"),
        (
            "vit_base_patch16_224.mea",
            "vit_base_patch16_224 has no weights with the tag 'mea'; did you mean 'mae'",
        ),
        (
            "vit_base_patch16_244",
            "unknown model 'vit_base_patch16_244'; did you mean 'vit_base_patch16_224'",
        ),
    ],
)
def test_names_that_cannot_be_used(tmp_path: Path, model: str, problem: str) -> None:
    """What is not supported has its reason, what is misspelt its neighbour."""
    with pytest.raises(SweepError, match=problem):
        conditions(tmp_path, f"[{model}]")


@pytest.mark.parametrize(
    "model",
    [
        "org/name/more",
        "no-such-model",
    ],
)
def test_a_wrong_name_lists_no_catalogue(tmp_path: Path, model: str) -> None:
    """A name that is like none is refused with the forms of names, one example each, and no list of
    timm's.
    """
    with pytest.raises(SweepError) as refused:
        conditions(tmp_path, f"['{model}']")
    # the example's name and names that are a part of it
    assert sum(name in str(refused.value) for name in networks()) <= 3
    assert "ORG/NAME" in str(refused.value)


def test_a_head_of_other_classes_is_refused(tmp_path: Path) -> None:
    """A model of 1000 classes on digits is one line at the line of the data, before anything is
    stored or started.
    """
    with pytest.raises(
        SweepError, match="digits has 10 classes, the head of deit_tiny_patch16_224 has 1000"
    ):
        conditions(
            tmp_path, "[deit_tiny_patch16_224]", "accuracy: {}", "defaults: {data: digits}\n"
        )
    assert (
        conditions(tmp_path, "[digits_vit_64]", "accuracy: {}", "defaults: {weights: trained}\n")[
            0
        ].data
        == "digits"
    )
