"""Features of images inside a model: one for each image and block, compared between two models.

Shapes: B images, L blocks, N tokens, D channels.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

MIN_BATCH = 4
"""Images in a batch below which the unbiased estimate of HSIC is not defined."""


class Features(NamedTuple):
    """Of one batch."""

    blocks_LBD: Tensor
    """After each block the class token, or, in models without one, the mean of the patch tokens
    weighted by their sizes."""
    diversity_B: Tensor
    """Mean cosine distance between two of the tokens (prefix tokens included) that leave the last
    block; NaN for a single token."""


@contextmanager
def features(model: nn.Module) -> Iterator[list[Features]]:
    """Collects the features of every forward of `model` in the block, one entry each."""
    trunk: Any = next(
        part for part in model.modules() if isinstance(getattr(part, "blocks", None), nn.Sequential)
    )
    seen: list[Tensor] = []
    found: list[Features] = []

    def look(_: nn.Module, __: object, result: Any) -> None:
        x_BND, size_BN1 = result if isinstance(result, tuple) else (result, None)
        seen.append(feature(x_BND, size_BN1, trunk))
        if len(seen) == len(trunk.blocks):
            found.append(Features(torch.stack(seen), diversity(x_BND)))
            seen.clear()

    with ExitStack() as hooks:
        for block in trunk.blocks:
            hooks.enter_context(block.register_forward_hook(look))
        hooks.callback(seen.clear)
        yield found


def feature(x_BND: Tensor, size_BN1: Tensor | None, trunk: Any) -> Tensor:
    """The image's feature in float32, [B, D]."""
    if trunk.has_class_token:
        return x_BND[:, 0].float()
    x_BND = x_BND[:, trunk.num_prefix_tokens :].float()
    if size_BN1 is None:
        return x_BND.mean(1)
    size_BN1 = size_BN1[:, trunk.num_prefix_tokens :].float()
    return (x_BND * size_BN1).sum(1) / size_BN1.sum(1)


def diversity(x_BND: Tensor) -> Tensor:
    """Mean cosine distance between two different tokens of an image, [B]; NaN where there is one
    token only.
    """
    unit_BND = nn.functional.normalize(x_BND.float(), dim=-1)
    N = x_BND.shape[1]
    cosines_B = unit_BND.sum(1).square().sum(-1) - unit_BND.square().sum((1, 2))
    return 1 - cosines_B / (N * (N - 1)) if N > 1 else torch.full_like(cosines_B, torch.nan)


class FeatureSimilarity:
    """Running comparison of two models' features, block by block, over batches of the same
    images.
    """

    def __init__(self) -> None:
        self.images = 0
        self.angle_L: Tensor | float = 0.0
        self.hsic_3L: Tensor | float = 0.0

    def add(self, one_LBD: Tensor, other_LBD: Tensor) -> None:
        """Add one batch; one of fewer than `MIN_BATCH` images counts for the angle only."""
        one_LBD, other_LBD = one_LBD.double(), other_LBD.double()
        B = one_LBD.shape[1]
        cosine_LB = nn.functional.cosine_similarity(one_LBD, other_LBD, dim=-1).clamp(-1, 1)
        self.angle_L = self.angle_L + cosine_LB.acos().sum(-1).rad2deg()
        self.images += B
        if B >= MIN_BATCH:
            one_LBB, other_LBB = one_LBD @ one_LBD.mT, other_LBD @ other_LBD.mT
            pairs = ((one_LBB, other_LBB), (one_LBB, one_LBB), (other_LBB, other_LBB))
            self.hsic_3L = self.hsic_3L + B * torch.stack([hsic(*pair) for pair in pairs])

    @property
    def angles(self) -> list[float]:
        """Mean angle between the two features of an image after each block, in degrees."""
        return (torch.as_tensor(self.angle_L) / self.images).tolist() if self.images else []

    @property
    def cka(self) -> list[float]:
        """Linear CKA after each block: 1 for features equal but for rotation and scale; empty where
        it is not defined.

        Minibatch CKA: Nguyen, Raghu and Kornblith, ICLR 2021, arXiv 2010.15327, section 3.
        """
        if not isinstance(self.hsic_3L, Tensor):
            return []
        both_L, one_L, other_L = self.hsic_3L
        if not bool(((one_L > 0) & (other_L > 0)).all()):
            return []
        cka: list[float] = (both_L / (one_L * other_L).sqrt()).tolist()
        return cka


def hsic(k_LBB: Tensor, l_LBB: Tensor) -> Tensor:
    """Unbiased estimate of the Hilbert-Schmidt independence criterion of two Gram matrices, [L]; B
    is at least 4.

    Song, Smola, Gretton, Bedo and Borgwardt, Journal of Machine Learning Research 13, 2012, section
    3.2.
    """
    B = k_LBB.shape[-1]
    off_BB = 1 - torch.eye(B, dtype=k_LBB.dtype, device=k_LBB.device)
    k_LBB, l_LBB = k_LBB * off_BB, l_LBB * off_BB
    trace_L = (k_LBB * l_LBB).sum((1, 2))
    sums_L = k_LBB.sum((1, 2)) * l_LBB.sum((1, 2)) / ((B - 1) * (B - 2))
    rows_L = (k_LBB.sum(1) * l_LBB.sum(1)).sum(-1) * 2 / (B - 2)
    return (trace_L + sums_L - rows_L) / (B * (B - 3))
