"""Copies of a model on shared weights, so that arms that run interleaved in one process do not multiply memory."""

import copy
from typing import TypeVar

from torch import nn

M = TypeVar("M", bound=nn.Module)


def clone_shared(model: M) -> M:
    """A copy of the model whose modules can be changed independently, with the same parameter and buffer tensors."""
    shared = {id(tensor): tensor for tensor in (*model.parameters(), *model.buffers())}
    return copy.deepcopy(model, shared)
