"""Tokens cut for nothing: the first ones stay, as many as another method's schedule leaves; no
reduction can be faster.

The ceiling of what token counts can give on a machine: nothing is scored, matched or gathered, and
the rest of a block is that of a reducing method. Which tokens stay means nothing, so that no
accuracy is claimed of it.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field, model_validator

from sweeps.model.condition import ImageSize
from sweeps.model.method import BlockTokens, Network, Purpose
from workers.token_reduction import (
    AlignField,
    CountedKeepParams,
    FusedKeepParams,
    KernelParams,
    MergeParams,
    OrderedBlocks,
    ScheduleParams,
    TokenCount,
    one_amount,
)

if TYPE_CHECKING:
    from timm.models.vision_transformer import VisionTransformer

    from workers.token_reduction.patch_vit import Reduction

PAPER = "none: a control"
VERSION = 1


class Params(KernelParams):
    """The schedule: a share kept in some blocks, or tokens that leave in every block, as methods
    take it that choose tokens.
    """

    amounts: ClassVar[Mapping[str, Any]] = {"keep_rate": 1, "r": 0, "r_ratio": 0}
    purpose: ClassVar[Purpose] = "ceiling"
    keep_rate: float | None = Field(
        default=None,
        gt=0,
        le=1,
        description="share of the patch tokens left that each reducing block keeps",
    )
    layers: OrderedBlocks | None = Field(
        default=None,
        description="with keep_rate: blocks that reduce, counted from 0; 3, 6 and 9 if not given",
    )
    r: TokenCount | tuple[TokenCount, ...] | None = Field(
        default=None,
        description=(
            "tokens that leave in every block, or {per_block: […]} with a number for each block"
        ),
    )
    r_ratio: float | None = Field(
        default=None,
        ge=0,
        le=0.5,
        description="share of the patch tokens present that leaves in each block",
    )
    align: AlignField = None
    fused: Literal[True] | None = Field(
        default=None,
        description=(
            "with keep_rate: one token more stays in each reducing block, as where the others are"
            " fused"
        ),
    )

    counts: Literal["image"] | None = Field(
        default=None,
        description="with keep_rate: image counts shares of the image's patch tokens, as in topk",
    )

    @model_validator(mode="after")
    def _one_schedule(self) -> "Params":
        one_amount(keep_rate=self.keep_rate, r=self.r, r_ratio=self.r_ratio)
        if self.fused and self.keep_rate is None:
            raise ValueError("fused belongs to keep_rate; methods that merge append nothing")
        if self.counts and (self.keep_rate is None or self.fused):
            raise ValueError("counts belongs to keep_rate, and to methods that fuse nothing")
        if self.layers is not None and self.keep_rate is None:
            raise ValueError("layers belong to keep_rate; r and r_ratio are of every block")
        return self

    @property
    def schedule(self) -> ScheduleParams:
        """The parameters of a method with the same counts."""
        if self.keep_rate is None:
            return MergeParams(r=self.r, r_ratio=self.r_ratio, align=self.align)
        given: dict[str, Any] = {"keep_rate": self.keep_rate, "align": self.align}
        if self.layers is not None:
            given["layers"] = self.layers
        return (
            FusedKeepParams(**given)
            if self.fused
            else CountedKeepParams(**given, counts=self.counts)
        )


NEUTRAL = Params(keep_rate=1)
EXAMPLES = (
    Params(keep_rate=0.5, layers=(1,)),
    Params(keep_rate=0.1, layers=(1, 2)),
    Params(r=3),
    Params(r=(0, 5, 0, 2)),
    Params(r_ratio=0.2, align=8),
    Params(keep_rate=0.5, layers=(1,), fused=True),
    Params(keep_rate=0.7, layers=(0, 2, 3), counts="image"),
)


def tokens(params: Params, network: Network, image_size: ImageSize) -> tuple[BlockTokens, ...]:
    return params.schedule.tokens(network, image_size)


def macs(params: Params, network: Network, image_size: ImageSize) -> int:  # noqa: ARG001 - cutting multiplies nothing
    return 0


def refuses(params: Params, network: Network) -> str | None:
    return params.schedule.unfit(network)


def apply(model: "VisionTransformer", params: Params) -> "VisionTransformer":
    """A copy of `model` that keeps the first tokens. Raises `Unsupported` as `fit` does, and for
    `implementation: triton` where that cannot run.
    """
    from workers.token_reduction.patch_vit import fit_stages

    if params.implementation == "triton":
        from workers.token_reduction import fused

        return fused.fit_fused(
            model, params.schedule, lambda stage: fused.gathering(stage.prefix + stage.left)
        )
    return fit_stages(model, params.schedule, lambda stage: truncation(stage.prefix + stage.left))


def truncation(left: int) -> "Reduction":
    """Keeps the first `left` tokens, prefix tokens included."""
    return lambda x_BND, size_BN1, attended: (
        x_BND[:, :left],
        size_BN1,
        None if attended.place_BNP is None else attended.place_BNP[:, :left],
    )
