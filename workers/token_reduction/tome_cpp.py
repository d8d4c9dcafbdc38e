"""Token matching, selection and merging on a CPU in compiled calls.

Shapes: B images, N tokens, M of them left, R merged away, Q of them hubs, D channels, H heads, d
channels of a head.
"""

from pathlib import Path

import torch
from torch import Tensor

from workers.errors import Unsupported
from workers.models.cpp_build import functions, missing_reason

TOME_CPP = Path(__file__).with_name("tome.cpp")
MAX_HEAD_DIM = 1024
_SIGNATURES = {
    "merge_similar": "TTqqqTTTTqqqqqqqi",
    "farthest_first": "TTTqqqqi",
    "merge_groups": "TTTTTTqqqqqi",
}


def merge_similar_cpp(
    x_BND: Tensor,
    k_BHNd: Tensor,
    size_BN1: Tensor | None,
    prefix: int,
    r: int,
    *,
    index_BM: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """The tokens after merging and their sizes, [B, M, D] and [B, M, 1]: `merge_matched` on the sum
    of the keys.

    `r` is at most half of the tokens after the `prefix` ones. `index_BM`, of int64, gets the index
    that each token left had. Raises as `check_native` does.
    """
    (B, N, D), (_, H, _, d) = x_BND.shape, k_BHNd.shape
    check_native(k_BHNd)
    if d > MAX_HEAD_DIM:
        raise Unsupported(
            f"the compiled kernel takes heads of up to {MAX_HEAD_DIM} channels, not {d}"
        )
    if k_BHNd.stride(-1) != 1:
        k_BHNd = k_BHNd.contiguous()
    out_BMD, size_BM1 = torch.empty(B, N - r, D), torch.empty(B, N - r, 1)
    sizes = None if size_BN1 is None else size_BN1.contiguous()
    tensors = (sizes, out_BMD, size_BM1, index_BM)
    strides = k_BHNd.stride()[:3]
    _call("merge_similar", x_BND, k_BHNd, *strides, *tensors, B, N, D, H, d, prefix, r)
    return out_BMD, size_BM1


def farthest_first_cpp(similarity_BNN: Tensor, first_BQ: Tensor, kept: int) -> Tensor:
    """Indices of all tokens, [B, N]: what `hquota_ops.farthest_first` returns. Raises as
    `check_native` does.
    """
    (B, N, _), Q = similarity_BNN.shape, first_BQ.shape[1]
    order_BN = torch.empty(B, N, dtype=torch.int64)
    _call("farthest_first", similarity_BNN, first_BQ.contiguous(), order_BN, B, N, Q, kept)
    return order_BN


def merge_groups_cpp(
    x_BND: Tensor, size_BN1: Tensor | None, order_BN: Tensor, target_BR: Tensor, prefix: int
) -> tuple[Tensor, Tensor]:
    """What `hquota_ops.merge_groups_torch` returns: [B, M, D] and [B, M, 1]. Raises as
    `check_native` does.
    """
    (B, N, D), R = x_BND.shape, target_BR.shape[1]
    out_BMD, size_BM1 = torch.empty(B, N - R, D), torch.empty(B, N - R, 1)
    sizes = None if size_BN1 is None else size_BN1.contiguous()
    groups = (order_BN.contiguous(), target_BR.contiguous())
    _call("merge_groups", x_BND, sizes, *groups, out_BMD, size_BM1, B, N, D, prefix, R)
    return out_BMD, size_BM1


def _call(name: str, first: Tensor, *arguments: Tensor | int | None) -> None:
    """Run a function of `tome.cpp` on all threads, once `first` is a tensor that it takes."""
    check_native(first)
    function = functions(TOME_CPP, _SIGNATURES)[name]
    function(first.contiguous(), *arguments, torch.get_num_threads())


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
