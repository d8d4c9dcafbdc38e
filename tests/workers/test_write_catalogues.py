"""The generated catalogue against timm itself."""

import json

import pytest
import torch

from sweeps.geometry.vit_catalogue import FILE, networks
from sweeps.model.condition import Condition
from tests.catalogues import candidates, catalogue, plain_geometry, written
from workers.models.vision import load_vision


@pytest.mark.parametrize(
    "name",
    [
        "deit_tiny_patch16_224",
        "deit_small_distilled_patch16_224",
        "deit3_small_patch16_224",
        "vit_small_patch14_reg4_dinov2",
        "vit_base_patch32_siglip_256",
        "vit_little_patch16_reg4_gap_256",
    ],
)
def test_a_line_is_what_timm_builds(name):
    """The line of a model is the geometry of the model that timm builds."""
    assert networks()[name] == plain_geometry(name)


def test_other_parts_are_left_out():
    """Models of other blocks, attention or embeddings are not in the catalogue."""
    assert plain_geometry("vit_base_patch16_rpn_224") is None
    assert "vit_base_patch16_rpn_224" not in networks()
    assert set(networks()) < set(candidates())


def test_one_model_per_line_and_sorted():
    """The file reads well in a diff: sorted, one model per line, and rewriting it changes
    nothing.
    """
    text = FILE.read_text(encoding="utf-8")
    assert list(json.loads(text)) == sorted(networks())
    assert len(text.splitlines()) == len(networks()) + 2
    assert (
        written({name: known.model_dump(exclude={"name"}) for name, known in networks().items()})
        == text
    )


@pytest.mark.slow
def test_the_catalogue_is_current():
    """Generating the catalogue anew gives the file."""
    assert catalogue() == FILE.read_text(encoding="utf-8")


@pytest.mark.slow
def test_every_model_takes_another_size():
    """Every model of the catalogue is built at another image size than its own, and has the
    position embeddings for it.
    """
    for name, network in networks().items():
        size = 3 * network.patch
        with torch.device("meta"):
            model = load_vision(Condition(model=name, image_size=size), torch.device("meta")).model
        assert model.patch_embed.grid_size == (3, 3), name
