"""Keeps the patch tokens that the class token attends to most, and fuses the others into one token
(EViT).

Per reducing block the `ceil(keep_rate x patch tokens left)` best stay, in the order of their scores
(as in topk), behind the prefix tokens. The sum of the others, each weighted by its score, is
appended as one token more; from then on it is an ordinary patch token, which counts among those
left and can itself be dropped. As in the authors' code the sum is not divided by the weights' sum.
A fused token that would stand for a single dropped one saves nothing: that one then stays as it is.
The authors' code scales it by its attention even so, which differs where few patches are
there, such as 36 of 96 pixels at keep_rate 0.95.

Of models with rotary embeddings the fused token is where the best of the fused ones was, or with
`rope: mean_position` at the patch nearest to their mean place, weighted as they are. No paper
settles it.
"""

from functools import partial
from typing import TYPE_CHECKING

from sweeps.model.condition import ImageSize
from sweeps.model.method import Network
from workers.token_reduction import FusedKeepParams, KernelParams

if TYPE_CHECKING:
    from timm.models.vision_transformer import VisionTransformer
    from torch import Tensor

    from workers.token_reduction.patch_vit import AttentionState, Reduced, Reduction

PAPER = (
    "Liang et al., Not All Patches are What You Need: Expediting ViTs via Token Reorganizations,"
    " ICLR 2022, arXiv 2202.07800"
)
VERSION = 1
SOLVES = "keep_rate"


class Params(KernelParams, FusedKeepParams):
    """As for topk; the fused token comes on top of the share that is kept."""


tokens, refuses = Params.tokens, Params.score_refusal
NEUTRAL = Params(keep_rate=1)
EXAMPLES = (
    Params(keep_rate=0.5, layers=(1,)),
    Params(keep_rate=0.7, layers=(0, 2, 3)),
    Params(keep_rate=0.1, layers=(1, 2)),
    Params(keep_rate=0.5, layers=(0, 2), align=8),
)


def macs(params: Params, network: Network, image_size: ImageSize) -> int:
    """One row of QK^T and one weighted sum of the tokens in each block that drops some (eager
    attention has the row already).
    """
    of_each = network.heads * network.head_dim + network.width
    return sum(params.entering(network, image_size)) * of_each


def apply(model: "VisionTransformer", params: Params) -> "VisionTransformer":
    """A copy of `model` that keeps the best patch tokens and fuses the rest. Raises `Unsupported`
    as `fit` does, and for `implementation: triton` where that cannot run.
    """
    from workers.token_reduction.patch_vit import fit_stages

    if params.implementation == "triton":
        from workers.token_reduction import fused

        return fused.fit_fused(model, params, partial(fused.keeping, fuse=True))

    like = model.patch_embed.proj.weight
    return fit_stages(
        model,
        params,
        lambda stage: keep_best_and_fuse(stage.prefix, stage.patches, stage.left - 1, like=like),
    )


def keep_best_and_fuse(prefix: int, patches: int, kept: int, *, like: "Tensor") -> "Reduction":
    """Keeps the `prefix` tokens and the `kept` best of `patches`, and appends the rest as one;
    constants are made like `like`.
    """
    import torch

    from workers.token_reduction.token_ops import best_tokens, merged_places, select

    best = best_tokens(prefix, patches, kept, like=like)

    def reduction(
        x_BND: "Tensor", size_BN1: "Tensor | None", attended: "AttentionState"
    ) -> "Reduced":
        score_BN, index_BK = best(attended)
        # With the weights of the kept tokens set to zero, one product fuses the others without
        # gathering them.
        weight_B1N = score_BN.scatter(1, index_BK, 0.0)[:, None]
        fused_B1D = weight_B1N @ x_BND

        def mean(place_BNP: "Tensor") -> "Tensor":
            share_B1N = weight_B1N.float() / weight_B1N.float().sum(-1, keepdim=True)
            return torch.cat((select(place_BNP, index_BK), share_B1N @ place_BNP), 1)

        return (
            torch.cat((select(x_BND, index_BK), fused_B1D.to(x_BND.dtype)), 1),
            size_BN1,
            merged_places(
                attended.place_BNP,
                lambda: torch.cat((index_BK, weight_B1N.argmax(-1)), 1),
                mean,
            ),
        )

    return reduction
