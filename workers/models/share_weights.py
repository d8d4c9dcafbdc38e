"""A model in modules of its own on shared weights, so that arms that run interleaved in one process do not multiply memory."""

import copy
from typing import TypeVar

from torch import nn

M = TypeVar("M", bound=nn.Module)


def clone_shared(model: M) -> M:
    """The same model in modules of its own but with the very same parameters and buffers, so that it can be changed alone."""
    shared = {id(tensor): tensor for tensor in (*model.parameters(), *model.buffers())}
    return copy.deepcopy(model, shared)
