"""The generated catalogue against timm itself."""

import json

import pytest
import torch

from sweeps.geometry.vit_catalogue import FILE, networks
from sweeps.model.condition import Condition
from tests.catalogues import (
    BEGIN,
    DOCUMENT,
    Uninitialised,
    candidates,
    catalogue,
    document,
    known_geometry,
    lines,
)
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
        "eva02_tiny_patch14_224",
        "vit_small_patch16_dinov3",
        "vit_pe_core_tiny_patch16_384",
        "vit_small_patch16_rope_mixed_224",
        "swin_tiny_patch4_window7_224",
        "hiera_tiny_224",
        "vit_base_patch16_rpn_224",
    ],
)
def test_a_line_is_what_timm_builds(name):
    """The line of a model is the geometry of the model that timm builds."""
    assert networks()[name] == known_geometry(name)


def test_other_parts_run_dense():
    """Models of other blocks, attention or embeddings have the reason why none of their tokens can
    be removed; convolutional networks are left out.
    """
    assert networks()["vit_base_patch16_rpn_224"].refusal == "blocks of another kind (ResPostBlock)"
    assert networks()["swin_tiny_patch4_window7_224"].refusal == "windowed attention"
    assert "resnet50" not in networks()
    assert set(networks()) <= set(candidates())


def test_counts_that_the_documents_state():
    """As many pretrained names as the issue asks for, and the document is what the script makes."""
    assert f"{BEGIN}\n{document()}<!--" in DOCUMENT.read_text(encoding="utf-8")


def test_one_model_per_line_and_sorted():
    """The file reads well in a diff: sorted, one model per line, and rewriting it changes
    nothing.
    """
    text = FILE.read_text(encoding="utf-8")
    assert list(json.loads(text)) == sorted(networks())
    assert len(text.splitlines()) == len(networks()) + 2
    assert lines(networks()) == text


@pytest.mark.slow
def test_the_catalogue_is_current():
    """Generating the catalogue anew gives the file."""
    assert catalogue() == FILE.read_text(encoding="utf-8")


@pytest.mark.slow
def test_every_model_takes_another_size():
    """Every model of the catalogue is built at another image size than its own, and has the
    position embeddings for it.
    """
    plain = {name: known for name, known in networks().items() if known.refusal is None}
    for name, network in plain.items():
        size = 3 * network.patch
        with Uninitialised(), torch.device("meta"):
            model = load_vision(Condition(model=name, image_size=size), torch.device("meta")).model
        assert model.patch_embed.grid_size == (3, 3), name
