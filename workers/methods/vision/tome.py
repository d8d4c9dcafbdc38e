"""Merges the most similar patch tokens, some in every block, between attention and MLP (ToMe).

Per block r tokens of one alternate set are each merged into the most similar token of the other
(cosine of the keys' mean over heads), as a mean weighted by size; later attention adds log(size) to
each key's logits. At most half of the patch tokens are merged in a block; prefix tokens (class,
distillation, registers) never are. Average pooling weights tokens by size, attention pooling does
not.

In models with rotary embeddings (RoPE) keys are compared as attention compares them, turned, and a
merged token is where the token was that the others are merged into; `rope: mean_position` puts it
at the patch nearest to the mean place of its parts, weighted by size. No paper settles it.

`implementation: auto`, the default, takes the compiled implementation (`native`) for float32 on a
CPU where there is a compiler and torch compiles nothing itself, Triton's kernels (`triton`) on
CUDA, and torch's operators otherwise. All give equal tokens to rounding; outcomes name the one that
ran, and attempts of different ones are not pooled.
"""

from typing import TYPE_CHECKING

from sweeps.model.condition import ImageSize
from sweeps.model.method import Network
from workers.token_reduction import CompiledParams, ImplementationField, MergeParams

if TYPE_CHECKING:
    import torch
    from timm.models.vision_transformer import VisionTransformer
    from torch import Tensor

    from workers.token_reduction.patch_vit import AttentionState, Reduced, Reduction, Stage

PAPER = (
    "Bolya, Fu, Dai, Zhang, Feichtenhofer, Hoffman, Token Merging: Your ViT But Faster, ICLR 2023,"
    " arXiv 2210.09461"
)
VERSION = 1
SOLVES = "r"


class Params(CompiledParams, MergeParams):
    """How many are merged, and by which code."""

    implementation: ImplementationField = "auto"


tokens, refuses = Params.tokens, Params.unfit
NEUTRAL = Params(r=0)
EXAMPLES = (
    Params(r=3),
    Params(r=(0, 5, 0, 2)),
    Params(r=4, inflect=-1),
    Params(r_ratio=0.2),
    Params(r=100),
    Params(r=2, prop_attn=False),
    Params(r=3, align=8),
)


def macs(params: Params, network: Network, image_size: ImageSize) -> int:
    """The similarities of one half of the tokens with the other half, in each block that merges."""
    merging = params.entering(network, image_size)
    return sum((count // 2) * (count - count // 2) for count in merging) * network.head_dim


def apply(model: "VisionTransformer", params: Params) -> "VisionTransformer":
    """A copy of `model` that merges tokens.

    `implementation: auto` is by torch's operators, which run anywhere. Raises `Unsupported` as
    `fit` does, and where the implementation that is requested cannot run.
    """
    if params.implementation == "triton":
        from workers.token_reduction import fused

        return fused.fit_fused(
            model, params, fused.merging, proportional=params.prop_attn, by_size=True
        )
    from workers.token_reduction.patch_vit import fit_stages
    from workers.token_reduction.token_ops import check_native

    like, native = model.patch_embed.proj.weight, params.implementation == "native"
    if native:
        check_native(like)
    return fit_stages(
        model,
        params,
        merge_natively if native else lambda stage: merge_similar(stage, like.device),
        proportional=params.prop_attn,
        by_size=True,
    )


def merge_similar(stage: "Stage", device: "torch.device") -> "Reduction":
    """Merges similar patch tokens behind the prefix tokens; constants are on `device`."""
    from workers.token_reduction.token_ops import (
        bipartite_match,
        bipartite_sets,
        merge_matched,
        merged_places,
    )

    _, prefix, patches, left = stage
    sets = bipartite_sets(prefix, prefix + patches, device)

    def reduction(
        x_BND: "Tensor", size_BN1: "Tensor | None", attended: "AttentionState"
    ) -> "Reduced":
        # Sums have the directions of means, and take a quarter less time.
        matching = bipartite_match(attended.k_BHNd.sum(1), sets, patches - left)
        place_BMP = merged_places(
            attended.place_BNP,
            lambda: matching.order_BN[:, : prefix + left],
            lambda place: merge_matched(place, size_BN1, matching)[0],
        )
        return *merge_matched(x_BND, size_BN1, matching), place_BMP

    return reduction


def merge_natively(stage: "Stage") -> "Reduction":
    """As `merge_similar`, by one compiled call."""
    import torch

    from workers.token_reduction.token_ops import merge_similar_cpp, select

    def reduction(
        x_BND: "Tensor", size_BN1: "Tensor | None", attended: "AttentionState"
    ) -> "Reduced":
        given = (attended.k_BHNd, size_BN1, stage.prefix, stage.patches - stage.left)
        place_BNP, width = attended.place_BNP, x_BND.shape[-1]
        if place_BNP is None:
            return *merge_similar_cpp(x_BND, *given), None
        if place_BNP.shape[-1] > 1:  # merged as channels are
            x_BMD, size_BM1 = merge_similar_cpp(torch.cat((x_BND, place_BNP), -1), *given)
            return x_BMD[..., :width], size_BM1, x_BMD[..., width:]
        index_BM = torch.empty(len(x_BND), stage.prefix + stage.left, dtype=torch.int64)
        merged = merge_similar_cpp(x_BND, *given, index_BM=index_BM)
        return *merged, select(place_BNP, index_BM)

    return reduction
