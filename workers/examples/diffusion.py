"""A small diffusion transformer, and as an arm the same with similar tokens merged in each block
(Bolya and Hoffman, CVPR workshops 2023, arXiv 2303.17604: merged before, unmerged after).
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from workers.token_reduction.token_ops import bipartite_match, bipartite_sets, merge_matched, select

PATCH, CHANNELS = 2, 4
check = None
"""Merging changes what the model gives."""


class Block(nn.Module):
    """Attention and MLP, shifted, scaled and gated by the embedding of the time step."""

    merged = 0.0
    """Share of the tokens that are merged into others while the block runs."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(width, elementwise_affine=False)
        self.modulate = nn.Linear(width, 6 * width)
        self.qkv, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def residual(self, x_BND: Tensor, time_BD: Tensor) -> Tensor:
        """What the block adds to its tokens."""
        shift, scale, gate, shift2, scale2, gate2 = self.modulate(time_BD)[:, None].chunk(6, -1)
        h_BND = self.norm(x_BND) * (1 + scale) + shift
        qkv_3BHNd = self.qkv(h_BND).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        y_BHNd = scaled_dot_product_attention(*qkv_3BHNd)
        attended_BND = gate * self.project(y_BHNd.transpose(1, 2).flatten(2))
        h_BND = self.norm(x_BND + attended_BND) * (1 + scale2) + shift2
        added: Tensor = attended_BND + gate2 * self.mlp(h_BND)
        return added

    def forward(self, x_BND: Tensor, time_BD: Tensor) -> Tensor:
        tokens = x_BND.shape[1]
        r = int(self.merged * tokens)
        if not r:
            return x_BND + self.residual(x_BND, time_BD)
        matching = bipartite_match(x_BND, bipartite_sets(0, tokens, x_BND.device), r)
        small_BMD, _ = merge_matched(x_BND, None, matching)
        left, target_BR = tokens - r, matching.target_BR
        kept_BM = torch.arange(left, device=x_BND.device).expand(len(x_BND), -1)
        places = torch.cat((kept_BM, left - matching.targets + target_BR), 1)
        place_BN = torch.empty_like(places).scatter_(1, matching.order_BN, places)
        return x_BND + select(self.residual(small_BMD, time_BD), place_BN)


class DiffusionTransformer(nn.Module):
    """The noise in latent images [B, channels, H, W] at time steps [B]: of the same shape."""

    def __init__(self, width: int, depth: int, heads: int) -> None:
        super().__init__()
        self.embed = nn.Conv2d(CHANNELS, width, PATCH, PATCH)
        self.time = nn.Linear(1, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(depth))
        self.head = nn.Linear(width, CHANNELS * PATCH**2)

    def forward(self, x_BCHW: Tensor, step_B: Tensor) -> Tensor:
        grid_BDhw = self.embed(x_BCHW)
        x_BND, time_BD = grid_BDhw.flatten(2).mT, self.time(step_B[:, None])
        for block in self.blocks:
            x_BND = block(x_BND, time_BD)
        pixels = self.head(x_BND).mT.unflatten(2, grid_BDhw.shape[2:])
        return nn.functional.pixel_shuffle(pixels, PATCH)


def build(features: int = 192, depth: int = 4, heads: int = 6) -> DiffusionTransformer:
    """The model, with random weights; `width` is that of its images."""
    return DiffusionTransformer(features, depth, heads)


def inputs(height: int, width: int, batch_size: int) -> tuple[Tensor, Tensor]:
    """Latent images and time steps."""
    return torch.randn(batch_size, CHANNELS, height, width), torch.rand(batch_size)


def tokens(height: int, width: int) -> int:
    """Tokens of an image."""
    return height // PATCH * (width // PATCH)


def merge(model: DiffusionTransformer, share: float) -> DiffusionTransformer:
    """Merges this share of the tokens in each block, at most half."""
    for block in model.modules():
        if isinstance(block, Block):
            block.merged = share
    return model
