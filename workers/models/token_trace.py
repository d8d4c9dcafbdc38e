"""Token counts of a model, taken by hooks from the tensors of a forward, for MACs and for
throughput.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from sweeps.model.method import BlockTokens
from workers.models.runtime import Compiled, CudaGraph


@dataclass(frozen=True)
class Trace:
    """Token counts of one forward."""

    batch: int
    """Images that the first block saw."""
    blocks: tuple[BlockTokens, ...]
    """Tokens that entered the attention and the MLP of each block."""
    final: int
    """Tokens that left the last block."""


@dataclass
class Forwards:
    """A running count of forwards and of the images in them."""

    forwards: int = 0
    images: int = 0


def trace(model: nn.Module, x_BCHW: Tensor) -> Trace:
    """The token counts of a forward, as `traced_forward`."""
    return traced_forward(model, x_BCHW)[1]


def traced_forward(model: nn.Module, x_BCHW: Tensor) -> tuple[Tensor, Trace]:
    """Run `model` once on `x_BCHW` and read the token counts off the tensors; its output and these.

    A compiled or captured model is traced through the eager model inside it, which is what was
    compiled or captured. Raises `ValueError` if a block did not run exactly once.
    """
    blocks = _blocks(model)
    attention: list[torch.Size] = []
    mlp: list[torch.Size] = []
    out: list[torch.Size] = []
    with ExitStack() as hooks:
        for block in blocks:
            hooks.enter_context(
                block.attn.qkv.register_forward_pre_hook(
                    lambda _, args: attention.append(args[0].shape)
                )
            )
            hooks.enter_context(
                block.mlp.register_forward_pre_hook(lambda _, args: mlp.append(args[0].shape))
            )
        hooks.enter_context(
            blocks.register_forward_hook(lambda _, __, result: out.append(result.shape))
        )
        runs = model.eager if isinstance(model, Compiled | CudaGraph) else model
        with torch.inference_mode():
            output = runs(x_BCHW)
    if not len(attention) == len(mlp) == len(blocks) or len(out) != 1:
        raise ValueError(
            f"{len(blocks)} blocks ran attention {len(attention)} times and MLPs {len(mlp)} times;"
            " each must run once"
        )
    counts = tuple(
        BlockTokens(before[1], after[1]) for before, after in zip(attention, mlp, strict=True)
    )
    return output, Trace(batch=attention[0][0], blocks=counts, final=out[0][1])


@contextmanager
def count_forwards(model: nn.Module) -> Iterator[Forwards]:
    """Count the forwards of `model` and their images by a hook on its first block (on the whole
    model if compiled or captured).
    """
    seen = Forwards()

    def count(_: nn.Module, args: tuple[Tensor, ...]) -> None:
        seen.forwards += 1
        seen.images += args[0].shape[0]

    watched = model if isinstance(model, Compiled | CudaGraph) else _blocks(model)[0]
    with watched.register_forward_pre_hook(count):
        yield seen


def _blocks(model: nn.Module) -> Any:
    """The blocks of the transformer, whatever is wrapped around it."""
    for part in model.modules():
        if isinstance(blocks := getattr(part, "blocks", None), nn.Sequential):
            return blocks
    raise ValueError(
        f"{type(model).__name__} has no `blocks`, a torch.nn.Sequential of transformer blocks, to"
        " count tokens in"
    )
