"""Schedules: how many tokens a rule keeps or merges in each block; arithmetic that planning can do without torch."""

import math
from collections.abc import Mapping, Sequence

from pydantic import Field, field_validator

from sweeps.method import BlockTokens, Network, Params

ROUNDING = 9
"""Decimals kept before rounding up or down, so that 0.55 of 100 tokens is 55 and not, by floating point, 56."""


class KeepParams(Params):
    """Parameters of methods that keep a share of the patch tokens in some of the blocks."""

    keep_rate: float = Field(gt=0, le=1, description="share of the patch tokens left that each reducing block keeps")
    layers: tuple[int, ...] = Field(
        default=(3, 6, 9), min_length=1, description="blocks that reduce, counted from 0: after their attention, before their MLP"
    )

    @field_validator("layers")
    @classmethod
    def _ordered(cls, layers: tuple[int, ...]) -> tuple[int, ...]:
        if min(layers) < 0 or len(set(layers)) < len(layers):
            raise ValueError(f"layers {list(layers)} must be different blocks, counted from 0")
        return tuple(sorted(layers))

    def kept(self, patches: int) -> Mapping[int, int]:
        """Patch tokens that leave each reducing block when `patches` enter the first: each time `ceil(keep_rate x tokens left)`."""
        left = {}
        for layer in self.layers:
            patches = left[layer] = math.ceil(round(self.keep_rate * patches, ROUNDING))
        return left

    def tokens(self, network: Network, image_size: int) -> tuple[BlockTokens, ...]:
        """Tokens in each block, the prefix tokens being kept always."""
        patches = network.patch_tokens(image_size)
        kept = self.kept(patches)
        removed, left = [], patches
        for layer in range(network.depth):
            removed.append(left - kept.get(layer, left))
            left = kept.get(layer, left)
        return removing(removed, patches + network.prefix_tokens)

    def too_deep(self, network: Network) -> str | None:
        """Why `layers` do not fit the network, or `None`."""
        if self.layers[-1] < network.depth:
            return None
        return f"layers name block {self.layers[-1]}, but {network.name} has the blocks 0 to {network.depth - 1}"


def removing(removed: Sequence[int], tokens: int) -> tuple[BlockTokens, ...]:
    """Tokens in each block when `tokens` enter the first and block i removes `removed[i]` after its attention."""
    trace = []
    for count in removed:
        trace.append(BlockTokens(tokens, tokens - count))
        tokens -= count
    return tuple(trace)
