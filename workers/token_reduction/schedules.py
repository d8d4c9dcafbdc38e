"""Schedules: how many tokens are kept or merged in each block; computed without torch, for
planning.
"""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from sweeps.model.condition import ImageSize
from sweeps.model.identity import FrozenModel
from sweeps.model.method import BlockTokens, Network, Params

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


class KeepParams(Params):
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
    layers: tuple[int, ...] = Field(
        default=(3, 6, 9),
        min_length=1,
        description="blocks that reduce, counted from 0: after their attention, before their MLP",
    )
    budget: BudgetField = None
    align: AlignField = None

    @model_validator(mode="after")
    def _one_amount(self) -> "KeepParams":
        one_amount(keep_rate=self.keep_rate, budget=self.budget)
        return self

    @field_validator("layers")
    @classmethod
    def _ordered(cls, layers: tuple[int, ...]) -> tuple[int, ...]:
        return ordered_blocks(layers)

    def kept(self, patches: int, prefix: int = 0) -> Mapping[int, int]:
        """Patch tokens that leave each reducing block when `patches` enter the first, beside
        `prefix` others.

        Each time those of `stage`. `align` then rounds these counts up; it does not change what
        later blocks count from, or a share of less than one tile would never take effect. Raises
        `ValueError` before a budget is solved.
        """
        if self.keep_rate is None:
            raise ValueError(UNSOLVED)
        counts, left = [], patches
        for _ in self.layers:
            left = self.stage(self.keep_rate, left)
            counts.append(left)
        return dict(zip(self.layers, aligned(counts, patches, prefix, self.align), strict=True))

    def stage(self, keep_rate: float, present: int) -> int:
        """Patch tokens that leave a reducing block when `present` enter it: `ceil(keep_rate x
        present)`.
        """
        return math.ceil(round(keep_rate * present, ROUNDING))

    def tokens(self, network: Network, image_size: ImageSize) -> tuple[BlockTokens, ...]:
        """Tokens in each block; prefix tokens are always kept."""
        patches = network.patch_tokens(image_size)
        kept = self.kept(patches, network.prefix_tokens)
        removed, left = [], patches
        for layer in range(network.depth):
            removed.append(left - kept.get(layer, left))
            left = kept.get(layer, left)
        return removing(removed, patches + network.prefix_tokens)

    def too_deep(self, network: Network) -> str | None:
        """Why `layers` do not fit the network, or `None`."""
        return beyond(self.layers, network)


class CountedKeepParams(KeepParams):
    """Keep parameters that can count as Haurum et al. (ICCVW 2023) do."""

    counts: Literal["image"] | None = Field(
        default=None,
        description=(
            "image: int(keep_rate^i x the image's patch tokens) at the i-th layer, as the authors"
            " count"
        ),
    )

    def kept(self, patches: int, prefix: int = 0) -> Mapping[int, int]:
        """As in `KeepParams`; with `counts: image` of the image's tokens, rounded down, and at
        least one.
        """
        if self.counts is None or self.keep_rate is None:
            return super().kept(patches, prefix)
        counts = [
            max(1, int(round(self.keep_rate**stage * patches, ROUNDING)))
            for stage in range(1, len(self.layers) + 1)
        ]
        return dict(zip(self.layers, aligned(counts, patches, prefix, self.align), strict=True))


class MergeParams(Params):
    """Parameters of methods that merge tokens in every block: exactly one of `r`, `r_ratio` and
    `budget`.
    """

    amounts: ClassVar[Mapping[str, Any]] = {"r": 0, "r_ratio": 0, "budget": None}
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
    budget: BudgetField = None
    align: AlignField = None

    @model_validator(mode="after")
    def _one_amount(self) -> "MergeParams":
        one_amount(r=self.r, r_ratio=self.r_ratio, budget=self.budget)
        if self.inflect is not None and not isinstance(self.r, int) and self.budget is None:
            raise ValueError("inflect needs a single r, of which it makes a ramp")
        return self

    def requested(self, depth: int) -> tuple[int, ...]:
        """Tokens to be merged in each of `depth` blocks as requested by `r`, before the cap."""
        if not isinstance(self.r, int):
            return ((self.r or ()) + (0,) * depth)[:depth]
        if self.inflect is None:
            return (self.r,) * depth
        first = int(self.r * (1 - self.inflect))
        step = 2 * (self.r - first) / max(depth - 1, 1)
        return tuple(int(first + step * block) for block in range(depth))

    def merged(self, depth: int, patches: int, prefix: int = 0) -> tuple[int, ...]:
        """Tokens that are merged in each of `depth` blocks when `patches` enter the first, beside
        `prefix` others.

        At most half of those present; with `align` a block merges once the merges so far fill a
        tile. Raises `ValueError` before a budget is solved.
        """
        if self.budget is not None:
            raise ValueError(UNSOLVED)
        counts, left = [], patches
        for r in self.requested(depth):
            share = r if self.r_ratio is None else math.floor(round(self.r_ratio * left, ROUNDING))
            left -= min(share, left // 2)
            counts.append(left)
        merged = []
        for count in aligned(counts, patches, prefix, self.align):
            merged.append(min(patches - count, patches // 2))
            patches -= merged[-1]
        return tuple(merged)

    def tokens(self, network: Network, image_size: ImageSize) -> tuple[BlockTokens, ...]:
        """Tokens in each block; prefix tokens are always kept."""
        patches = network.patch_tokens(image_size)
        return removing(
            self.merged(network.depth, patches, network.prefix_tokens),
            patches + network.prefix_tokens,
        )

    def solved(self, network: Network, image_size: ImageSize) -> dict[str, float]:
        """`r_capped_blocks`: in how many blocks r was more than half of the patch tokens, so that
        fewer were merged.
        """
        patches, capped = network.patch_tokens(image_size), 0
        merged = self.merged(network.depth, patches, network.prefix_tokens)
        for r, removed in zip(self.requested(network.depth), merged, strict=True):
            capped += r > patches // 2
            patches -= removed
        return {"r_capped_blocks": capped} if capped else {}

    def too_long(self, network: Network) -> str | None:
        """Why the list `r` does not fit the network, or `None`."""
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


def ordered_blocks(layers: tuple[int, ...], other: str = "") -> tuple[int, ...]:
    """The blocks in order. Raises `ValueError` unless they are different blocks counted from 0;
    `other` ends the message.
    """
    if not layers or min(layers) < 0 or len(set(layers)) < len(layers):
        raise ValueError(f"layers {list(layers)} must be different blocks, counted from 0{other}")
    return tuple(sorted(layers))


def beyond(layers: tuple[int, ...], network: Network) -> str | None:
    """Why the blocks `layers`, in order, do not fit the network, or `None`."""
    if layers[-1] < network.depth:
        return None
    return (
        f"layers name block {layers[-1]}, but {network.name} has the blocks 0 to"
        f" {network.depth - 1}"
    )


def aligned(counts: Sequence[int], patches: int, prefix: int, align: int | None) -> tuple[int, ...]:
    """The patch tokens `counts`, block after block, rounded up so that with `prefix` they are
    multiples of `align`.

    Never fewer than requested, and never more than the `patches` at the beginning or the count
    before. Prefix tokens count, because they are rows of the same matrices, and the number of rows
    decides whether tiles are full.
    """
    if align is None:
        return tuple(counts)
    left = []
    for count in counts:
        patches = min(patches, math.ceil((count + prefix) / align) * align - prefix)
        left.append(patches)
    return tuple(left)


def removing(removed: Sequence[int], tokens: int) -> tuple[BlockTokens, ...]:
    """Tokens in each block when `tokens` enter the first and block i removes `removed[i]` after its
    attention.
    """
    trace = []
    for count in removed:
        trace.append(BlockTokens(tokens, tokens - count))
        tokens -= count
    return tuple(trace)
