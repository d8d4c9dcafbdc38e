"""Merges the most similar patch tokens, some in every block, between attention and MLP (ToMe).

Per block r tokens of one alternate set are each merged into the most similar token of the other (cosine of the keys' mean over
heads), as a mean weighted by size; later attention adds log(size) to each key's logits. At most half of the patch tokens are merged
in a block; prefix tokens (class, distillation, registers) never are. Average pooling weights tokens by size, attention pooling does
not.
"""

import math
from typing import TYPE_CHECKING, Annotated

from pydantic import Field, model_validator

from sweeps import method
from sweeps.method import BlockTokens, Network
from workers.schedules import ROUNDING, removing

if TYPE_CHECKING:
    from timm.models.vision_transformer import VisionTransformer
    from torch import Tensor

    from workers.models.reduction import Attended, Reduction

PAPER = "Bolya, Fu, Dai, Zhang, Feichtenhofer, Hoffman, Token Merging: Your ViT But Faster, ICLR 2023, arXiv 2210.09461"
VERSION = 1
Count = Annotated[int, Field(ge=0)]


class Params(method.Params):
    """How many tokens are merged: exactly one of `r` and `r_ratio`."""

    r: Count | tuple[Count, ...] | None = Field(
        default=None, description="tokens merged in every block, or a list with a number for each block (0 where it ends early)"
    )
    r_ratio: float | None = Field(
        default=None, ge=0, le=0.5, description="share of the patch tokens present that each block merges, rounded down"
    )
    inflect: float | None = Field(
        default=None,
        ge=-1,
        le=1,
        description="makes a single r the mean of a linear ramp over the blocks: from 2r down to 0 at -1, from 0 up to 2r at 1",
    )
    prop_attn: bool = Field(default=True, description="attention in proportion to token sizes")

    @model_validator(mode="after")
    def _one_amount(self) -> "Params":
        if (self.r is None) == (self.r_ratio is None):
            raise ValueError("give either r or r_ratio" + (", not both" if self.r is not None else ""))
        if self.inflect is not None and not isinstance(self.r, int):
            raise ValueError("inflect needs a single r, of which it makes a ramp")
        return self

    def asked(self, depth: int) -> tuple[int, ...]:
        """Tokens to be merged in each of `depth` blocks as asked by `r`, before the cap."""
        if not isinstance(self.r, int):
            return ((self.r or ()) + (0,) * depth)[:depth]
        if self.inflect is None:
            return (self.r,) * depth
        first = int(self.r * (1 - self.inflect))
        step = 2 * (self.r - first) / max(depth - 1, 1)
        return tuple(int(first + step * block) for block in range(depth))

    def merged(self, depth: int, patches: int) -> tuple[int, ...]:
        """Tokens that are merged in each of `depth` blocks when `patches` enter the first: at most half of those present."""
        merged = []
        for r in self.asked(depth):
            share = r if self.r_ratio is None else math.floor(round(self.r_ratio * patches, ROUNDING))
            merged.append(min(share, patches // 2))
            patches -= merged[-1]
        return tuple(merged)


NEUTRAL = Params(r=0)
EXAMPLES = (
    Params(r=3),
    Params(r=(0, 5, 0, 2)),
    Params(r=4, inflect=-1),
    Params(r_ratio=0.2),
    Params(r=100),
    Params(r=2, prop_attn=False),
)


def tokens(params: Params, network: Network, image_size: int) -> tuple[BlockTokens, ...]:
    patches = network.patch_tokens(image_size)
    return removing(params.merged(network.depth, patches), patches + network.prefix_tokens)


def macs(params: Params, network: Network, image_size: int) -> int:
    """The similarities of one half of the tokens with the other half, in each block that merges."""
    merging = [block.attention for block in tokens(params, network, image_size) if block.mlp < block.attention]
    return sum((count // 2) * (count - count // 2) for count in merging) * network.head_dim


def refuses(params: Params, network: Network) -> str | None:
    if isinstance(params.r, tuple) and len(params.r) > network.depth:
        return f"r lists {len(params.r)} blocks, but {network.name} has {network.depth}"
    return None


def apply(model: "VisionTransformer", params: Params) -> "VisionTransformer":
    """A twin of `model` that merges tokens. Raises `Unsupported` as `fit` does."""
    from workers.models.reduction import fit

    merged = params.merged(len(model.blocks), model.patch_embed.num_patches)
    reductions = {block: merge_similar(model.num_prefix_tokens, r) for block, r in enumerate(merged) if r > 0}
    return fit(model, reductions, proportional=params.prop_attn, by_size=True)


def merge_similar(prefix: int, r: int) -> "Reduction":
    """Merges `r` tokens behind the `prefix` tokens."""
    from workers.tokens import match, merge

    def reduction(x_BND: "Tensor", size_BN1: "Tensor | None", attended: "Attended") -> "tuple[Tensor, Tensor | None]":
        return merge(x_BND, size_BN1, match(attended.k_BHNd.mean(1), prefix, r), prefix)

    return reduction
