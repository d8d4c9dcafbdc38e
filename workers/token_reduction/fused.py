"""Reductions by Triton's kernels, in one piece with the addition before and the norm behind them.

Import it only where `kernels.refusal` gives no reason.
"""

from collections.abc import Callable
from typing import cast

from torch import Tensor, nn

from workers import kernels
from workers.errors import Unsupported
from workers.kernels.grouping import merge_farthest
from workers.kernels.reduction import merge_similar
from workers.kernels.selection import gather, keep_best
from workers.models.share_weights import M
from workers.token_reduction import ScheduleParams
from workers.token_reduction.patch_vit import (
    AttentionState,
    FusedReduction,
    Left,
    Stage,
    fit_stages,
)


def fit_fused(
    model: M, params: ScheduleParams, make: Callable[[Stage], FusedReduction], **sizes: bool
) -> M:
    """`fit_stages` with fused reductions. Raises `Unsupported` also where the kernels cannot run on
    the model's device.
    """
    check_device(model)
    return fit_stages(model, params, make, **sizes)


def check_device(model: nn.Module) -> None:
    """Raise `Unsupported` unless Triton's kernels run on the model's device."""
    reason = kernels.device_refusal(next(model.parameters()).device.type)
    if reason is not None:
        raise Unsupported(f"implementation: triton cannot run here: {reason}")


def merging(stage: Stage) -> FusedReduction:
    """Merges similar patch tokens, as ToMe."""
    r = stage.patches - stage.left

    def reduce(
        x_BND: Tensor, size_BN1: Tensor | None, attended: AttentionState, norm: nn.Module
    ) -> Left:
        sizes = None if size_BN1 is None else size_BN1[..., 0].float()
        inputs = (x_BND, attended.added_BND, attended.k_BHNd, sizes)
        merged = merge_similar(*inputs, *_plain(norm, x_BND), stage.prefix, r)
        x_BMD, normed_BMD, size_BM = merged
        return _left(x_BMD, normed_BMD, norm, size_BM[..., None])

    return FusedReduction(reduce)


def grouping(prefix: int, kept: int, hubs: int) -> FusedReduction:
    """Merges the other patch tokens into `hubs` of them and the farthest from these, as hquota."""

    def reduce(
        x_BND: Tensor, size_BN1: Tensor | None, attended: AttentionState, norm: nn.Module
    ) -> Left:
        sizes = None if size_BN1 is None else size_BN1[..., 0].float()
        inputs = (x_BND, attended.added_BND, attended.k_BHNd, attended.inflow_BHN, sizes)
        merged = merge_farthest(*inputs, *_plain(norm, x_BND), prefix, kept, hubs)
        x_BMD, normed_BMD, size_BM = merged
        return _left(x_BMD, normed_BMD, norm, size_BM[..., None])

    return FusedReduction(reduce)


def keeping(stage: Stage, *, fuse: bool) -> FusedReduction:
    """Keeps the patch tokens that the class token attends to most, as TopK; `fuse` makes one token
    of the others, which counts among those left, as EViT.
    """

    def reduce(
        x_BND: Tensor, size_BN1: Tensor | None, attended: AttentionState, norm: nn.Module
    ) -> Left:
        inputs = (x_BND, attended.added_BND, attended.q_BHNd, attended.k_BHNd, attended.scale)
        kept = stage.left - int(fuse)
        x_BMD, normed_BMD = keep_best(*inputs, *_plain(norm, x_BND), stage.prefix, kept, fuse)
        return _left(x_BMD, normed_BMD, norm, size_BN1)

    return FusedReduction(reduce)


def gathering(left: int, index_M: Tensor | None = None) -> FusedReduction:
    """Keeps the tokens at the indices, or the first ones, prefix tokens included."""

    def reduce(
        x_BND: Tensor, size_BN1: Tensor | None, attended: AttentionState, norm: nn.Module
    ) -> Left:
        inputs = (x_BND, attended.added_BND, index_M, left)
        x_BMD, normed_BMD = gather(*inputs, *_plain(norm, x_BND))
        return _left(x_BMD, normed_BMD, norm, size_BN1)

    return FusedReduction(reduce)


def _is_plain(norm: nn.Module) -> bool:
    """Whether the kernels compute it."""
    return isinstance(norm, nn.LayerNorm) and norm.weight is not None and norm.bias is not None


def _plain(norm: nn.Module, like_BND: Tensor) -> tuple[Tensor, Tensor, float]:
    """Weight, bias and eps for a kernel, which of other norms than a LayerNorm are not used."""
    if _is_plain(norm):
        return cast(Tensor, norm.weight), cast(Tensor, norm.bias), cast(float, norm.eps)
    unused_D = like_BND.new_ones(like_BND.shape[-1])
    return unused_D, unused_D, 0.0


def _left(x_BMD: Tensor, normed_BMD: Tensor, norm: nn.Module, size_BM1: Tensor | None) -> Left:
    """With the norm that the kernel did not compute."""
    return Left(x_BMD, normed_BMD if _is_plain(norm) else norm(x_BMD), size_BM1)
