"""ToMe's matching and merging on a CPU in one compiled call.

Shapes: B images, N tokens, M of them left, D channels, H heads, d channels of a head.
"""

import ctypes
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from workers.kernels.native import NotBuilt, library
from workers.models import Unsupported

SOURCE = Path(__file__).with_name("merging.cpp")
WIDEST_HEAD = 1024
_POINTER, _COUNT = ctypes.c_void_p, ctypes.c_int64
_ARGUMENTS = (_POINTER, _POINTER, *(_COUNT,) * 3, *(_POINTER,) * 3, *(_COUNT,) * 7, ctypes.c_int)


def missing() -> str | None:
    """Why there is no compiled code on this machine; `None` where there is. Compiles it where that was not done before."""
    try:
        _function()
    except NotBuilt as reason:
        return str(reason)
    return None


def available(like: Tensor) -> str | None:
    """Why tokens like this tensor cannot be merged here; `None` where they can."""
    return missing() or _unfit(like)


def merge_similar(x_BND: Tensor, k_BHNd: Tensor, size_BN1: Tensor | None, prefix: int, r: int) -> tuple[Tensor, Tensor]:
    """The tokens after merging and their sizes, [B, M, D] and [B, M, 1]: `tokens.merge` by `tokens.match` on the sum of the keys.

    `r` is at most half of the tokens behind the `prefix` ones. Raises `NotBuilt`, and `Unsupported` for what is not float32 on a
    CPU.
    """
    (B, N, D), (_, H, _, d) = x_BND.shape, k_BHNd.shape
    for tensor in (x_BND, k_BHNd):
        if tensor.dtype != torch.float32 or not tensor.is_cpu:
            raise Unsupported(_unfit(tensor))
    if d > WIDEST_HEAD:
        raise Unsupported(f"the compiled kernel takes heads of up to {WIDEST_HEAD} channels, not {d}")
    x_BND = x_BND.contiguous()
    batch, head, token, channel = k_BHNd.stride()
    if channel != 1:
        k_BHNd = k_BHNd.contiguous()
        batch, head, token, _ = k_BHNd.stride()
    if size_BN1 is not None:
        size_BN1 = size_BN1.contiguous()
    left_BMD, size_BM1 = torch.empty(B, N - r, D), torch.empty(B, N - r, 1)
    _function()(
        x_BND.data_ptr(),
        k_BHNd.data_ptr(),
        *(batch, head, token),
        None if size_BN1 is None else size_BN1.data_ptr(),
        left_BMD.data_ptr(),
        size_BM1.data_ptr(),
        *(B, N, D, H, d, prefix, r),
        torch.get_num_threads(),
    )
    return left_BMD, size_BM1


def _unfit(tensor: Tensor) -> str | None:
    if tensor.dtype == torch.float32 and tensor.device.type == "cpu":
        return None
    return f"the compiled kernel takes float32 on a CPU, not {tensor.dtype} on {tensor.device.type}"


@cache
def _function() -> Any:
    found = library(SOURCE).merge_similar
    found.restype, found.argtypes = None, _ARGUMENTS
    return found
