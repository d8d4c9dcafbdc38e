"""Shared weights: models kept loaded for later jobs, and copies of them on the same tensors."""

import copy
import functools
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import torch
from torch import nn

from sweeps.condition import Condition, Dtype
from sweeps.identity import canonical

M = TypeVar("M", bound=nn.Module)
_L = TypeVar("_L")
MODELS_KEPT = 2
DTYPES: Mapping[Dtype, torch.dtype] = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
    "autocast-float16": torch.float32,
}
"""The type of the weights and the input."""


def clone_shared(model: M) -> M:
    """A copy of the model whose modules can be changed independently, with the same parameter and buffer tensors."""
    shared = {id(tensor): tensor for tensor in (*model.parameters(), *model.buffers())}
    return copy.deepcopy(model, shared)


def load_shared(load: Callable[[Condition], _L], condition: Condition, content_hashes: Mapping[str, str], **more: Any) -> _L:
    """What `load` returns for the condition's model, weights, device and seed and the fields in `more`, kept for later jobs."""
    fields = {name: getattr(condition, name) for name in ("model", "weights", "device", "seed")}
    loaded: _L = kept_models(load, Condition(**fields, **more), canonical(content_hashes))
    return loaded


@functools.lru_cache(maxsize=MODELS_KEPT)
def kept_models(load: Callable[[Condition], Any], condition: Condition, content_hashes: str) -> Any:  # noqa: ARG001 - other content, other model
    return load(condition)
