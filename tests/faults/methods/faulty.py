"""The unmodified model, but its forward pass fails: what a method of a user may do to a worker."""

import copy
import ctypes
from typing import TYPE_CHECKING, Any, Literal

from sweeps.model import method
from sweeps.model.method import BlockTokens, Network

if TYPE_CHECKING:
    from torch import nn

PAPER = "none: a failure"
VERSION = 1


class Params(method.Params):
    what: Literal["segfault", "hang", "hog", "raise", "nan"]


def tokens(params: Params, network: Network, image_size: int) -> tuple[BlockTokens, ...]:
    return network.dense_tokens(image_size)


def macs(params: Params, network: Network, image_size: int) -> int:
    return 0


def refuses(params: Params, network: Network) -> str | None:
    return None


def apply(model: "nn.Module", params: Params) -> "nn.Module":
    import torch

    def commit(*_: Any) -> Any:
        match params.what:
            case "segfault":
                ctypes.string_at(0)
            case "hang":
                ctypes.PyDLL(None).sleep(1000)  # keeps the interpreter lock
            case "hog":
                held = []
                while True:
                    held.append(torch.ones(25_000_000))
            case "raise":
                raise RuntimeError("the method's own mistake")
        return None

    def spoil(_module: Any, _inputs: Any, logits: torch.Tensor) -> torch.Tensor:
        return logits * torch.nan

    twin = copy.copy(model)
    twin._forward_pre_hooks, twin._forward_hooks = (
        copy.copy(model._forward_pre_hooks),
        copy.copy(model._forward_hooks),
    )
    if params.what == "nan":
        twin.register_forward_hook(spoil)
    else:
        twin.register_forward_pre_hook(commit)
    return twin
