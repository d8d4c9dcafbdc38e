"""Token matching, selection and merging on a CPU in compiled calls.

Shapes: B images, N tokens, M of them left, R merged away, Q of them hubs, D channels, H heads, d
channels of a head.
"""

import ctypes
from pathlib import Path

import torch
from torch import Tensor

from workers.errors import Unsupported
from workers.models.cpp_build import functions, missing_reason

TOME_CPP = Path(__file__).with_name("tome.cpp")
MAX_HEAD_DIM = 1024
_POINTER, _COUNT = ctypes.c_void_p, ctypes.c_int64
_SIGNATURES = {
    "merge_similar": (
        None,
        (_POINTER, _POINTER, *(_COUNT,) * 3, *(_POINTER,) * 3, *(_COUNT,) * 7, ctypes.c_int),
    ),
    "farthest_first": (None, (*(_POINTER,) * 3, *(_COUNT,) * 4, ctypes.c_int)),
    "merge_groups": (None, (*(_POINTER,) * 6, *(_COUNT,) * 5, ctypes.c_int)),
}


def merge_similar_cpp(
    x_BND: Tensor, k_BHNd: Tensor, size_BN1: Tensor | None, prefix: int, r: int
) -> tuple[Tensor, Tensor]:
    """The tokens after merging and their sizes, [B, M, D] and [B, M, 1]: `merge_matched` on the sum
    of the keys.

    `r` is at most half of the tokens after the `prefix` ones. Raises as `check_native` does.
    """
    (B, N, D), (_, H, _, d) = x_BND.shape, k_BHNd.shape
    check_native(x_BND)
    check_native(k_BHNd)
    if d > MAX_HEAD_DIM:
        raise Unsupported(
            f"the compiled kernel takes heads of up to {MAX_HEAD_DIM} channels, not {d}"
        )
    x_BND = x_BND.contiguous()
    batch, head, token, channel = k_BHNd.stride()
    if channel != 1:
        k_BHNd = k_BHNd.contiguous()
        batch, head, token, _ = k_BHNd.stride()
    if size_BN1 is not None:
        size_BN1 = size_BN1.contiguous()
    left_BMD, size_BM1 = torch.empty(B, N - r, D), torch.empty(B, N - r, 1)
    functions(TOME_CPP, _SIGNATURES)["merge_similar"](
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


def farthest_first_cpp(similarity_BNN: Tensor, first_BQ: Tensor, kept: int) -> Tensor:
    """Indices of all tokens, [B, N]: what `hquota_ops.farthest_first` returns. Raises as
    `check_native` does.
    """
    check_native(similarity_BNN)
    similarity_BNN, first_BQ = similarity_BNN.contiguous(), first_BQ.contiguous()
    (B, N, _), Q = similarity_BNN.shape, first_BQ.shape[1]
    order_BN = torch.empty(B, N, dtype=torch.int64)
    pointers = (each.data_ptr() for each in (similarity_BNN, first_BQ, order_BN))
    functions(TOME_CPP, _SIGNATURES)["farthest_first"](
        *pointers, *(B, N, Q, kept), torch.get_num_threads()
    )
    return order_BN


def merge_groups_cpp(
    x_BND: Tensor, size_BN1: Tensor | None, order_BN: Tensor, target_BR: Tensor, prefix: int
) -> tuple[Tensor, Tensor]:
    """What `hquota_ops.merge_groups_torch` returns: [B, M, D] and [B, M, 1]. Raises as
    `check_native` does.
    """
    check_native(x_BND)
    x_BND, order_BN, target_BR = x_BND.contiguous(), order_BN.contiguous(), target_BR.contiguous()
    size_BN1 = None if size_BN1 is None else size_BN1.contiguous()
    (B, N, D), R = x_BND.shape, target_BR.shape[1]
    out_BMD, size_BM1 = torch.empty(B, N - R, D), torch.empty(B, N - R, 1)
    given = (x_BND, size_BN1, order_BN, target_BR, out_BMD, size_BM1)
    pointers = (None if each is None else each.data_ptr() for each in given)
    functions(TOME_CPP, _SIGNATURES)["merge_groups"](
        *pointers, *(B, N, D, prefix, R), torch.get_num_threads()
    )
    return out_BMD, size_BM1


def check_native(like: Tensor) -> None:
    """Raise `Unsupported` unless there is compiled code on this machine, for tensors of this dtype
    and device.
    """
    reason = missing_reason(TOME_CPP)
    if reason is None and (like.dtype, like.device.type) != (torch.float32, "cpu"):
        reason = (
            f"the compiled kernel takes float32 on a CPU, not {like.dtype} on {like.device.type}"
        )
    if reason is not None:
        raise Unsupported(f"implementation: native cannot run here: {reason}")
