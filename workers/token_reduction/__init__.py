"""Schedules: how many tokens are kept or merged in each block; computed without torch, for
planning.
"""

import math
import re
from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, cast

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from sweeps.model.condition import Condition, ImageSize
from sweeps.model.identity import FrozenModel
from sweeps.model.method import BlockTokens, LanguageNetwork, Network, Params
from workers import kernels
from workers.errors import Unsupported

TOME_CPP = Path(__file__).with_name("tome.cpp")
"""Of `token_ops`."""
ROUNDING = 9
"""Decimals kept before rounding up or down, so that 0.55 of 100 tokens is 55 and not, by floating
point, 56."""
TokenCount = Annotated[int, Field(ge=0)]
UNSOLVED = "the budget must be solved first, see workers.arms.budget"


class Budget(FrozenModel):
    """The cost limit of one image, the method's own MACs included; `workers.arms.budget` solves the
    parameter for it.
    """

    gmacs: float | None = Field(default=None, gt=0, description="in 1e9 multiply-accumulates")
    gmacs_ratio: float | None = Field(
        default=None,
        gt=0,
        le=1,
        description="as a share of the unmodified model's at the arm's image size",
    )

    @model_validator(mode="before")
    @classmethod
    def _a_number(cls, given: Any) -> Any:
        number = re.fullmatch(r"([0-9.]+) ?(%?)", str(given))
        if number is not None and not isinstance(given, bool):
            value = float(number[1]) / (100 if number[2] else 1)
            name = "gmacs_ratio" if value <= 1 else "gmacs"
            raise ValueError(f"needs a mapping, not a number alone: write {{{name}: {value:g}}}")
        return given

    @model_validator(mode="after")
    def _one_limit(self) -> "Budget":
        if (self.gmacs is None) == (self.gmacs_ratio is None):
            raise ValueError(
                "give either gmacs or gmacs_ratio"
                + (", not both" if self.gmacs is not None else "")
            )
        return self


BudgetField = Annotated[
    Budget | None,
    Field(
        description=(
            "what an image may cost: solves the parameter, as {gmacs: 2.7} or {gmacs_ratio: 0.6}"
        )
    ),
]
AlignField = Annotated[
    int | None,
    Field(
        ge=1,
        le=4096,
        description=(
            "round the tokens that enter the MLP (prefix tokens included) up to a multiple, as far"
            " as there are any"
        ),
    ),
]


ImplementationField = Annotated[
    Literal["auto", "torch", "native", "triton"],
    Field(
        description=(
            "native: by code compiled from C++, float32 on a CPU only; triton: by fused kernels, on"
            " CUDA only; torch: torch's operators; auto (the default): the first of these that can"
            " run"
        )
    ),
]
KernelField = Annotated[
    Literal["torch", "triton"] | None,
    BeforeValidator(lambda given: None if given == "auto" else given),
    Field(
        description=(
            "triton: fused kernels that also add and normalise, on CUDA only; torch: torch's"
            " operators; auto (the default): triton where it can run, else torch"
        )
    ),
]


RopeField = Annotated[
    Literal["destination", "mean_position"] | None,
    AfterValidator(lambda given: None if given == "destination" else given),
    Field(
        description=(
            "of models with rotary embeddings: where a merged token is; destination (the default):"
            " at the token that others are merged into; mean_position: at the patch nearest to the"
            " mean place of its parts"
        )
    ),
]


def ordered_blocks(layers: tuple[int, ...], other: str = "") -> tuple[int, ...]:
    """The blocks in order. Raises `ValueError` unless they are different blocks counted from 0;
    `other` ends the message.
    """
    if not layers or min(layers) < 0 or len(set(layers)) < len(layers):
        raise ValueError(f"layers {list(layers)} must be different blocks, counted from 0{other}")
    return tuple(sorted(layers))


OrderedBlocks = Annotated[tuple[int, ...], Field(min_length=1), AfterValidator(ordered_blocks)]


class CompiledParams(Params):
    """Parameters of methods that both torch's operators and compiled code compute, with equal
    results.
    """

    compiled: ClassVar[tuple[str, ...]] = ("native", "triton")
    """The implementations besides torch's operators."""
    if TYPE_CHECKING:
        implementation: str | None

    def choose(self, condition: Condition, network: Network | LanguageNetwork, /) -> Self:
        """With the implementation that runs under an arm's own condition. Raises `Unsupported`
        where Triton's kernels are requested and cannot run.
        """
        reasons = {
            name: self.uncompiled(name) or _refusals[name](condition, cast(Network, network))
            for name in self.compiled
        }
        if self.implementation in {None, "auto"}:
            able = (name for name, reason in reasons.items() if reason is None)
            return self.model_copy(update={"implementation": next(able, "torch")})
        if self.implementation == "triton" and reasons["triton"] is not None:
            raise Unsupported(f"implementation: triton cannot run here: {reasons['triton']}")
        return self

    def uncompiled(self, _implementation: str, /) -> str | None:
        """Why an implementation does not compute these parameters, or `None`."""
        return None

    def chosen_implementation(self, condition: Condition, network: Network, /) -> str | None:
        chosen = self.choose(condition, network).implementation
        # Torch's operators are named where they are not the usual ones.
        return None if chosen == "torch" and "native" not in self.compiled else chosen

    def eager_only(self, _condition: Condition, /) -> str | None:
        """A compiled kernel can be neither compiled again nor captured."""
        return (
            "its compiled kernel is no operator of torch"
            if self.implementation == "native"
            else None
        )


def _native_refusal(condition: Condition, _network: Network) -> str | None:
    """Why `auto` does not take the code compiled from C++, or `None`."""
    if (condition.device, condition.dtype, condition.runtime) != ("cpu", "float32", "eager"):
        return "it takes float32 on a CPU in eager code"
    from workers.models.cpp_build import missing_reason

    return missing_reason(TOME_CPP)


_refusals = {"native": _native_refusal, "triton": kernels.refusal}


class KernelParams(CompiledParams):
    """As `CompiledParams`, without code compiled from C++."""

    compiled = ("triton",)
    implementation: KernelField = None


class ScheduleParams(Params):
    """Parameters of methods that remove patch tokens in some blocks."""

    at_most_half: ClassVar[bool] = False
    """Whether at most half of the patch tokens present leave a block."""
    if TYPE_CHECKING:
        align: int | None  # each class has its fields in its own order

    @abstractmethod
    def requested(self, depth: int, patches: int) -> Mapping[int, int]:
        """Patch tokens left by each of the blocks that reduce, in order, before `align`. Raises
        `ValueError` before a budget is solved.
        """

    def left(self, depth: int, patches: int, prefix: int = 0) -> dict[int, int]:
        """Patch tokens left by each block that removes some, when `patches` enter the first beside
        `prefix` others.

        `align` does not change what later blocks count from, or a share of less than one tile would
        never take effect. Raises as `requested`.
        """
        left = {}
        for block, count in self.requested(depth, patches).items():
            kept = aligned(count, prefix, self.align)
            if self.at_most_half:
                kept = max(kept, patches - patches // 2)
            if kept < patches:
                left[block] = patches = kept
        return left

    def tokens(self, network: Network, image_size: ImageSize) -> tuple[BlockTokens, ...]:
        """Tokens in each block; prefix tokens are always kept."""
        patches = network.patch_tokens(image_size)
        left = self.left(network.depth, patches, network.prefix_tokens)
        return block_tokens(left, network, image_size)

    def entering(self, network: Network, image_size: ImageSize) -> list[int]:
        """Tokens that enter each block that removes some."""
        return [
            block.attention
            for block in self.tokens(network, image_size)
            if block.mlp < block.attention
        ]

    def unfit(self, network: Network) -> str | None:
        """Why the schedule or the rule of places does not fit the network, or `None`."""
        if getattr(self, "rope", None) is not None and not network.rotary:
            return f"rope is about rotary embeddings, which {network.name} has not"
        if getattr(self, "implementation", None) == "triton" and network.rotary:
            return f"implementation: triton cannot run here: {kernels.ROTARY}"
        return self.geometry_refusal(network)

    @abstractmethod
    def geometry_refusal(self, network: Network) -> str | None:
        """Why the schedule does not fit the network, or `None`."""


class KeepParams(ScheduleParams):
    """Parameters of methods that keep a share of the patch tokens in some blocks: exactly one of
    `keep_rate` and `budget`.
    """

    amounts: ClassVar[Mapping[str, Any]] = {"keep_rate": 1, "budget": None}
    keep_rate: float | None = Field(
        default=None,
        gt=0,
        le=1,
        description=(
            "share of the patch tokens left that each reducing block keeps; or give a budget"
        ),
    )
    layers: OrderedBlocks = Field(
        default=(3, 6, 9),
        description="blocks that reduce, counted from 0: after their attention, before their MLP",
    )
    budget: BudgetField = None
    align: AlignField = None

    @model_validator(mode="after")
    def _one_amount(self) -> "KeepParams":
        one_amount(keep_rate=self.keep_rate, budget=self.budget)
        return self

    def requested(self, depth: int, patches: int) -> Mapping[int, int]:  # noqa: ARG002 - `unfit` compares the layers with it
        if self.keep_rate is None:
            raise ValueError(UNSOLVED)
        counts = {}
        for layer in self.layers:
            counts[layer] = patches = self.stage(self.keep_rate, patches)
        return counts

    def stage(self, keep_rate: float, present: int) -> int:
        """Patch tokens that leave a reducing block when `present` enter it: `ceil(keep_rate x
        present)`.
        """
        return math.ceil(round(keep_rate * present, ROUNDING))

    def geometry_refusal(self, network: Network) -> str | None:
        return beyond(self.layers, network)

    def score_refusal(self, network: Network) -> str | None:
        """As `unfit`, for methods whose score is the attention of the class token."""
        if not network.class_token:
            return f"{network.name} has no class token, whose attention is the score"
        return self.unfit(network)


class FusedKeepParams(KeepParams):
    """Keep parameters of methods that append a fused token to those that they keep."""

    rope: RopeField = None

    def stage(self, keep_rate: float, present: int) -> int:
        """Patch tokens that leave a reducing block, the fused one included."""
        return min(present, super().stage(keep_rate, present) + 1)


class CountedKeepParams(KeepParams):
    """Keep parameters that can count as Haurum et al. (ICCVW 2023) do."""

    counts: Literal["image"] | None = Field(
        default=None,
        description=(
            "image: int(keep_rate^i x the image's patch tokens) at the i-th layer, as the authors"
            " count"
        ),
    )

    def requested(self, depth: int, patches: int) -> Mapping[int, int]:
        """As in `KeepParams`; with `counts: image` of the image's tokens, rounded down, and at
        least one.
        """
        if self.counts is None or self.keep_rate is None:
            return super().requested(depth, patches)
        return {
            layer: max(1, int(round(self.keep_rate**stage * patches, ROUNDING)))
            for stage, layer in enumerate(self.layers, 1)
        }


class MergeParams(ScheduleParams):
    """Parameters of methods that merge tokens in every block: exactly one of `r`, `r_ratio` and
    `budget`.
    """

    amounts: ClassVar[Mapping[str, Any]] = {"r": 0, "r_ratio": 0, "budget": None}
    at_most_half = True
    r: TokenCount | tuple[TokenCount, ...] | None = Field(
        default=None,
        description=(
            "tokens merged in every block, or {per_block: […]} with a number for each block"
        ),
    )
    r_ratio: float | None = Field(
        default=None,
        ge=0,
        le=0.5,
        description="share of the patch tokens present that each block merges, rounded down",
    )
    inflect: float | None = Field(
        default=None,
        ge=-1,
        le=1,
        description=(
            "makes a single r the mean of a linear ramp over the blocks: from 2r down to 0 at -1,"
            " from 0 up to 2r at 1"
        ),
    )
    prop_attn: bool = Field(default=True, description="attention in proportion to token sizes")
    rope: RopeField = None
    budget: BudgetField = None
    align: AlignField = None

    @model_validator(mode="after")
    def _one_amount(self) -> "MergeParams":
        one_amount(r=self.r, r_ratio=self.r_ratio, budget=self.budget)
        if self.inflect is not None and not isinstance(self.r, int) and self.budget is None:
            raise ValueError("inflect needs a single r, of which it makes a ramp")
        return self

    def ramp(self, depth: int) -> tuple[int, ...]:
        """Tokens to be merged in each of `depth` blocks as requested by `r`, before the cap."""
        if not isinstance(self.r, int):
            return ((self.r or ()) + (0,) * depth)[:depth]
        if self.inflect is None:
            return (self.r,) * depth
        first = int(self.r * (1 - self.inflect))
        step = 2 * (self.r - first) / max(depth - 1, 1)
        return tuple(int(first + step * block) for block in range(depth))

    def requested(self, depth: int, patches: int) -> Mapping[int, int]:
        if self.budget is not None:
            raise ValueError(UNSOLVED)
        counts = {}
        for block, r in enumerate(self.ramp(depth)):
            share = (
                r if self.r_ratio is None else math.floor(round(self.r_ratio * patches, ROUNDING))
            )
            counts[block] = patches = patches - min(share, patches // 2)
        return counts

    def solved(self, network: Network, image_size: ImageSize) -> dict[str, float]:
        """`r_capped_blocks`: in how many blocks r was more than half of the patch tokens, so that
        fewer were merged.
        """
        patches, capped = network.patch_tokens(image_size), 0
        left = self.left(network.depth, patches, network.prefix_tokens)
        for block, r in enumerate(self.ramp(network.depth)):
            capped += r > patches // 2
            patches = left.get(block, patches)
        return {"r_capped_blocks": capped} if capped else {}

    def geometry_refusal(self, network: Network) -> str | None:
        if not isinstance(self.r, tuple) or len(self.r) <= network.depth:
            return None
        return f"r lists {len(self.r)} blocks, but {network.name} has {network.depth}"


def one_amount(**amounts: object) -> None:
    """Raise `ValueError` unless exactly one of the parameters that set how much is reduced was
    given.
    """
    given = [name for name, value in amounts.items() if value is not None]
    if len(given) != 1:
        *others, last = amounts
        raise ValueError(
            f"give either {', '.join(others)} or {last}"
            + (f", not both {' and '.join(given)}" if given else "")
        )


def beyond(layers: tuple[int, ...], network: Network) -> str | None:
    """Why the blocks `layers`, in order, do not fit the network, or `None`."""
    if layers[-1] < network.depth:
        return None
    return (
        f"layers name block {layers[-1]}, but {network.name} has the blocks 0 to"
        f" {network.depth - 1}"
    )


def aligned(count: int, prefix: int, align: int | None) -> int:
    """The patch tokens `count` rounded up so that with `prefix` they are a multiple of `align`.

    Prefix tokens count, because they are rows of the same matrices, and the number of rows decides
    whether tiles are full.
    """
    return count if align is None else math.ceil((count + prefix) / align) * align - prefix


def block_tokens(
    left: Mapping[int, int], network: Network, image_size: ImageSize, *, before: bool = False
) -> tuple[BlockTokens, ...]:
    """Tokens in each block when those named in `left` leave so many patch tokens after their
    attention, or `before` it.
    """
    trace, present = [], network.patch_tokens(image_size) + network.prefix_tokens
    for block in range(network.depth):
        entered = present
        if block in left:
            present = left[block] + network.prefix_tokens
        trace.append(BlockTokens(present if before else entered, present))
    return tuple(trace)
