"""Patch embedding by a matrix product: equal logits, and what it refuses."""

import pytest
import torch
from torch import nn

from sweeps.model.condition import ImageSize, Rectangle
from tests.workers.tiny_vits import images, small
from workers.errors import Unsupported
from workers.methods.vision import linear_patches
from workers.models.share_weights import clone_shared


@torch.inference_mode()
@pytest.mark.parametrize("size", [40, Rectangle(height=24, width=64)])
def test_embeddings_are_those_of_the_convolution(size: ImageSize) -> None:
    """Also of images that are no squares; the given model stays as it is."""
    model, x_BCHW = small("plain", image_size=size), images(image_size=size)
    expected = model.patch_embed(x_BCHW)
    applied = linear_patches.apply(model, linear_patches.Params())
    torch.testing.assert_close(applied.patch_embed(x_BCHW), expected, rtol=1e-5, atol=1e-5)
    assert isinstance(model.patch_embed.proj, nn.Conv2d)


def test_overlapping_patches_are_refused() -> None:
    """Each pixel must be in one patch."""
    model = clone_shared(small("plain"))
    model.patch_embed.proj = nn.Conv2d(3, 48, 8, stride=4)
    with pytest.raises(Unsupported, match="one convolution whose stride is its size"):
        linear_patches.apply(model, linear_patches.Params())
