"""Drops the patch tokens that the class token attends to least, then merges the least of those left
into the most similar of the others, in each block as many as given (DiffRate).

The schedule is given, as the authors' search finds it for a model and a cost: `prune` and `merge`
list how many tokens each block keeps after dropping and after merging, the class token counted. The
tokens are ranked by the attention of the class token (mean over heads). Those beyond the count of
`merge` are each merged into the most similar one before it (cosine of the tokens), as a plain mean
in which every token counts once. In later attention, which adds log(size) to each key's logits, a
merged token counts by its similarity: its size times the cosine is added to the other's. A sum that
is not positive, which has no logarithm, counts as 1e-6. Other prefix tokens (distillation,
registers) stay, uncounted. Average pooling is weighted by these sizes.

The lists are absolute, for one image size. With `made_for`, the tokens of that size, the shares of
the patch tokens are kept at other sizes, rounded up.

In models with rotary embeddings a merged token is where the token was that others are merged into.
"""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from sweeps.model.condition import ImageSize
from sweeps.model.method import Network
from workers.token_reduction import ROUNDING, AlignField, ScheduleParams, TokenCount

if TYPE_CHECKING:
    from timm.models.vision_transformer import VisionTransformer
    from torch import Tensor

    from workers.token_reduction.patch_vit import AttentionState, Reduced, Reduction, Stage

PAPER = (
    "Chen, Shao, Xu, Lin, Zhang, Chao, Ji, Qiao, Luo, DiffRate: Differentiable Compression Rate for"
    " Efficient Vision Transformers, ICCV 2023, arXiv 2305.17997"
)
VERSION = 1


class Params(ScheduleParams):
    """The tokens that each block keeps."""

    amounts: ClassVar[Mapping[str, Any]] = {"prune": None, "merge": None}
    prune: TokenCount | tuple[TokenCount, ...] | None = Field(
        default=None,
        description="tokens kept after dropping, the class token counted, as {per_block: […]}",
    )
    merge: TokenCount | tuple[TokenCount, ...] | None = Field(
        default=None, description="tokens kept after merging, the class token counted"
    )
    made_for: int | None = Field(
        default=None,
        ge=2,
        description=(
            "tokens of an image for which the lists were made, the class token counted: other image"
            " sizes keep the same shares"
        ),
    )
    align: AlignField = None

    def kept(self, name: str, block: int, image: int, present: int) -> int:
        """Patch tokens that `prune` or `merge` leaves of those present, of `image` at first."""
        listed: int | tuple[int, ...] | None = getattr(self, name)
        if isinstance(listed, tuple):
            listed = listed[block] if block < len(listed) else None
        if listed is None:
            return present
        scale = 1 if self.made_for is None else image / (self.made_for - 1)
        return min(present, max(1, math.ceil(round((listed - 1) * scale, ROUNDING))))

    def requested(self, depth: int, patches: int) -> Mapping[int, int]:
        image, counts = patches, {}
        for block in range(depth):
            patches = self.kept("prune", block, image, patches)
            counts[block] = patches = self.kept("merge", block, image, patches)
        return counts

    def merged(self, network: Network, image_size: ImageSize) -> int:
        """Products of a token with another in all blocks: of those merged with those left."""
        image = patches = network.patch_tokens(image_size)
        products = 0
        for block, left in self.left(network.depth, image, network.prefix_tokens).items():
            dropped = max(left, self.kept("prune", block, image, patches))
            products += (dropped - left) * left
            patches = left
        return products

    def geometry_refusal(self, network: Network) -> str | None:
        if not network.class_token:
            return f"{network.name} has no class token, whose attention is the score"
        longest = max(len(each) for each in (self.prune, self.merge, ()) if isinstance(each, tuple))
        if longest > network.depth:
            return f"{longest} blocks are listed, but {network.name} has {network.depth}"
        return None


tokens, refuses = Params.tokens, Params.unfit
NEUTRAL = Params()
EXAMPLES = (
    Params(prune=(26, 22, 15, 9), merge=(24, 18, 15, 7)),
    Params(prune=(30, 20)),
    Params(merge=(20, 30, 8), align=4),
    Params(prune=(190, 150, 120, 60), merge=(180, 140, 100, 3), made_for=197),
)


def macs(params: Params, network: Network, image_size: ImageSize) -> int:
    """The row of the class token in each block that removes tokens, and the similarities."""
    rows = sum(params.entering(network, image_size)) * network.heads * network.head_dim
    return rows + params.merged(network, image_size) * network.width


def apply(model: "VisionTransformer", params: Params) -> "VisionTransformer":
    """A copy of `model` that drops and merges tokens. Raises `Unsupported` as `fit` does."""
    from workers.token_reduction.patch_vit import fit_stages

    image, like = model.patch_embed.num_patches, model.patch_embed.proj.weight

    def reduce(stage: "Stage") -> "Reduction":
        kept = params.kept("prune", stage.block, image, stage.patches)
        return drop_and_merge(stage, max(kept, stage.left), like=like)

    return fit_stages(model, params, reduce, proportional=True, by_size=True, pruned=True)


def drop_and_merge(stage: "Stage", kept: int, *, like: "Tensor") -> "Reduction":
    """Keeps the `kept` best patch tokens and merges those of them that the stage does not leave."""
    import torch

    from workers.token_reduction.token_ops import best_tokens, select, unit_length

    prefix, left = stage.prefix, stage.prefix + stage.left
    best = best_tokens(prefix, stage.patches, kept, like=like)

    def reduction(
        x_BND: "Tensor", size_BN1: "Tensor | None", attended: "AttentionState"
    ) -> "Reduced":
        index_BK, place_BNP = best(attended)[1], attended.place_BNP
        x_BKD = select(x_BND, index_BK)
        size_BK1 = None if size_BN1 is None else size_BN1.gather(1, index_BK[..., None])
        place_BMP = None if place_BNP is None else select(place_BNP, index_BK[:, :left])
        if prefix + kept == left:
            return x_BKD, size_BK1, place_BMP
        if size_BK1 is None:
            size_BK1 = torch.ones_like(x_BKD[..., :1])
        unit_BKD = unit_length(x_BKD)
        similarity_BRM = unit_BKD[:, left:] @ unit_BKD[:, prefix:left].mT
        cosine_BR, target_BR = similarity_BRM.max(-1)
        target_BR1 = target_BR[..., None] + prefix
        x_BMD, size_BM1 = x_BKD[:, :left], size_BK1[:, :left]
        ones_BR1 = torch.ones_like(x_BKD[:, left:, :1])
        count_BM1 = torch.ones_like(size_BM1).scatter_add(1, target_BR1, ones_BR1)
        sum_BMD = x_BMD.scatter_add(1, target_BR1.expand_as(x_BKD[:, left:]), x_BKD[:, left:])
        added_BR1 = size_BK1[:, left:] * cosine_BR[..., None]
        size_BM1 = size_BM1.scatter_add(1, target_BR1, added_BR1).clamp(min=1e-6)
        return sum_BMD / count_BM1, size_BM1, place_BMP

    return reduction
