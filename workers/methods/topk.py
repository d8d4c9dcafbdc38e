"""Keeps the patch tokens that the class token attends to most, in a few blocks, between attention and MLP.

Per reducing block `ceil(keep_rate x patch tokens left)` stay, in the order of their scores, behind the prefix tokens. The score
is the mean over heads of the class token's row of the attention matrix; only that row is computed, so that attention stays fused.
"""

from typing import TYPE_CHECKING

from sweeps.method import BlockTokens, Network
from workers.schedules import KeepParams

if TYPE_CHECKING:
    from timm.models.vision_transformer import VisionTransformer
    from torch import Tensor

    from workers.models.reduction import Attended, Reduction

PAPER = "Haurum et al., Which Tokens to Use? Investigating Token Reduction in Vision Transformers, ICCVW 2023, arXiv 2308.04657"
VERSION = 1
Params = KeepParams
NEUTRAL = Params(keep_rate=1)
EXAMPLES = (Params(keep_rate=0.5, layers=(1,)), Params(keep_rate=0.7, layers=(0, 2, 3)), Params(keep_rate=0.1, layers=(1, 2)))


def tokens(params: KeepParams, network: Network, image_size: int) -> tuple[BlockTokens, ...]:
    return params.tokens(network, image_size)


def macs(params: KeepParams, network: Network, image_size: int) -> int:
    """One row of QK^T in each block that drops tokens (where attention is not fused, its matrix has the row already)."""
    dropping = [block for block in tokens(params, network, image_size) if block.mlp < block.attention]
    return sum(block.attention for block in dropping) * network.heads * network.head_dim


def refuses(params: KeepParams, network: Network) -> str | None:
    if not network.class_token:
        return f"{network.name} has no class token, whose attention is the score"
    return params.too_deep(network)


def apply(model: "VisionTransformer", params: KeepParams) -> "VisionTransformer":
    """A twin of `model` that keeps the patch tokens with the highest scores. Raises `Unsupported` as `fit` does."""
    from workers.models.reduction import fit

    prefix, patches = model.num_prefix_tokens, model.patch_embed.num_patches
    reductions = {}
    for layer, kept in params.kept(patches).items():
        if kept < patches:
            reductions[layer] = keep_best(prefix, patches, kept, like=model.patch_embed.proj.weight)
        patches = kept
    return fit(model, reductions)


def keep_best(prefix: int, patches: int, kept: int, *, like: "Tensor") -> "Reduction":
    """Keeps the `prefix` tokens and the `kept` best of `patches`; constants get the device and type of `like`."""
    from workers.tokens import class_token_scores, select

    # Scores are at most 1: these bonuses put the prefix tokens first, in their order, without a second operator to keep them apart.
    bonus_1N = like.new_tensor([[*range(prefix + 1, 1, -1), *([0] * patches)]])

    def reduction(x_BND: "Tensor", size_BN1: "Tensor | None", attended: "Attended") -> "tuple[Tensor, Tensor | None]":
        q_BHNd, k_BHNd, attention_BHNN, scale = attended
        score_BN = class_token_scores(q_BHNd, k_BHNd, scale) if attention_BHNN is None else attention_BHNN[:, :, 0].mean(1)
        return select(x_BND, (score_BN + bonus_1N).topk(prefix + kept).indices), size_BN1

    return reduction
