"""Drops patch tokens at random where topk drops by score: the control that shows what scores cost
and are worth.

Which tokens stay is drawn once, when the method is applied, for all images and forwards alike, so
that choosing costs nothing.
"""

from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from sweeps.model.condition import ImageSize
from sweeps.model.method import Network, Purpose
from workers.token_reduction import CountedKeepParams, KernelParams

if TYPE_CHECKING:
    from timm.models.vision_transformer import VisionTransformer
    from torch import Tensor

    from workers.token_reduction.patch_vit import Reduction, Stage

PAPER = "none: a control. Its schedule is that of topk"
VERSION = 1
SOLVES = "keep_rate"


class Params(KernelParams, CountedKeepParams):
    """As for topk, and the seed of the draw."""

    purpose: ClassVar[Purpose] = "control"
    seed: int = Field(default=0, ge=0, lt=2**63, description="seed of the draw")


tokens, refuses = Params.tokens, Params.unfit
NEUTRAL = Params(keep_rate=1)
EXAMPLES = (
    Params(keep_rate=0.5, layers=(1,)),
    Params(keep_rate=0.7, layers=(0, 2, 3), seed=5),
    Params(keep_rate=0.5, layers=(0, 2), align=8),
)


def macs(params: Params, network: Network, image_size: ImageSize) -> int:  # noqa: ARG001 - choosing costs nothing
    return 0


def apply(model: "VisionTransformer", params: Params) -> "VisionTransformer":
    """A copy of `model` that keeps tokens drawn at random. Raises `Unsupported` as `fit` does, and
    for `implementation: triton` where that cannot run.
    """
    import torch

    from workers.token_reduction.patch_vit import fit_stages

    device = model.patch_embed.proj.weight.device
    generator = torch.Generator().manual_seed(params.seed)

    def draw(stage: "Stage") -> "Tensor":
        drawn = torch.randperm(stage.patches, generator=generator)[: stage.left].sort().values
        return torch.cat((torch.arange(stage.prefix), drawn + stage.prefix)).to(device)

    if params.implementation == "triton":
        from workers.token_reduction import fused

        return fused.fit_fused(
            model,
            params,
            lambda stage: fused.gathering(stage.prefix + stage.left, draw(stage)),
        )

    def keep(stage: "Stage") -> "Reduction":
        index_K = draw(stage)
        return lambda x_BND, size_BN1, attended: (
            x_BND.index_select(1, index_K),
            size_BN1,
            None if attended.place_BNP is None else attended.place_BNP[:, index_K],
        )

    return fit_stages(model, params, keep)
