"""The generated catalogue against timm itself."""

import pytest

from sweeps.geometry.vit_catalogue import networks
from tests.catalogues import candidates, known_geometry


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
    """Models of other parts have the reason; convolutional networks are left out."""
    assert networks()["vit_base_patch16_rpn_224"].refusal == "blocks of another kind (ResPostBlock)"
    assert networks()["swin_tiny_patch4_window7_224"].refusal == "windowed attention"
    assert "resnet50" not in networks()
    assert set(networks()) <= set(candidates())


@pytest.mark.slow
def test_the_catalogue_is_current():
    """Each eighth model gives its line anew; `python -m tests.catalogues` generates all."""
    found = {name: known_geometry(name) for name in candidates()[::8]}
    made = {name: known for name, known in found.items() if known}
    assert made == {name: known for name, known in networks().items() if name in found}
