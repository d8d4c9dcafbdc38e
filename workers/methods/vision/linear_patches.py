"""Embeds patches by a matrix product in place of a convolution: equal logits in another time.

Where the stride of the patch embedding is its kernel, each patch is multiplied once by the same
weights, which is a product of matrices. On a GPU in float16 the convolution of a library took 48 us
for one image and 434 for 64 where the product took 6 and 49 (DeiT-S, H200, by hand), which no
reduction of tokens can touch. It is an arm beside the methods, or the first step of a stack.
"""

from typing import TYPE_CHECKING

from sweeps.model import method
from sweeps.model.condition import ImageSize
from sweeps.model.method import BlockTokens, Network

if TYPE_CHECKING:
    from timm.models.vision_transformer import VisionTransformer

PAPER = "none: an identity of linear algebra"
VERSION = 1


class Params(method.Params):
    """There are none."""


NEUTRAL = Params()
EXAMPLES = (Params(),)


def tokens(params: Params, network: Network, image_size: ImageSize) -> tuple[BlockTokens, ...]:  # noqa: ARG001 - all are kept
    return network.dense_tokens(image_size)


def macs(params: Params, network: Network, image_size: ImageSize) -> int:  # noqa: ARG001 - the same as those of the convolution
    return 0


def refuses(params: Params, network: Network) -> str | None:  # noqa: ARG001 - the convolution shows it
    return None


def apply(model: "VisionTransformer", params: Params) -> "VisionTransformer":  # noqa: ARG001 - there are none
    """A copy of `model` that embeds patches by a product. Raises `Unsupported` where patches
    overlap or are not those of one convolution.
    """
    from torch import nn

    from workers.errors import Unsupported
    from workers.models.share_weights import clone_shared
    from workers.models.vision import LinearPatches

    applied = clone_shared(model)
    convolution = getattr(applied.patch_embed, "proj", None)
    if (
        type(convolution) is not nn.Conv2d
        or convolution.stride != convolution.kernel_size
        or convolution.groups != 1
        or any(convolution.padding)
    ):
        raise Unsupported(
            "linear_patches needs a patch embedding of one convolution whose stride is its size"
        )
    applied.patch_embed.proj = LinearPatches(convolution)
    return applied
