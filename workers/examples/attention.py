"""A layer of attention, and as an arm the same layer whose queries see nearby keys alone."""

import torch
from torch import Tensor, nn
from torch.nn.functional import pad, scaled_dot_product_attention

check = None
"""Queries that see fewer keys give other results: how much other is a question of quality."""


class AttentionLayer(nn.Module):
    """Projections around torch's fused attention: [B, N, D] to [B, N, D]."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def attend(self, q_BHNd: Tensor, k_BHNd: Tensor, v_BHNd: Tensor) -> Tensor:
        return scaled_dot_product_attention(q_BHNd, k_BHNd, v_BHNd)

    def forward(self, x_BND: Tensor) -> Tensor:
        qkv_3BHNd = self.qkv(x_BND).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        y_BHNd = self.attend(*qkv_3BHNd)
        projected: Tensor = self.project(y_BHNd.transpose(1, 2).flatten(2))
        return projected


class ChunkedAttention(AttentionLayer):
    """The same on chunks of the sequence, filled up with zeros: a query sees the keys of its own
    chunk and of the one before it, in the first chunk of the last.
    """

    chunk = 128

    def attend(self, q_BHNd: Tensor, k_BHNd: Tensor, v_BHNd: Tensor) -> Tensor:
        if q_BHNd.shape[2] <= 2 * self.chunk:
            return super().attend(q_BHNd, k_BHNd, v_BHNd)
        own_BCHcd = self.chunks(q_BHNd)
        near = [
            torch.cat((each.roll(1, 1), each), 3) for each in map(self.chunks, (k_BHNd, v_BHNd))
        ]
        y_BCHcd = scaled_dot_product_attention(own_BCHcd, near[0], near[1])
        return y_BCHcd.transpose(1, 2).flatten(2, 3)[:, :, : q_BHNd.shape[2]]

    def chunks(self, x_BHNd: Tensor) -> Tensor:
        """[B, H, N, d] as [B, C, H, c, d]."""
        whole = pad(x_BHNd, (0, 0, 0, -x_BHNd.shape[2] % self.chunk))
        return torch.stack(torch.split(whole, self.chunk, 2), 1)


def build(width: int = 256, heads: int = 4) -> AttentionLayer:
    """The layer, with random weights."""
    return AttentionLayer(width, heads)


def inputs(length: int, batch_size: int, width: int = 256) -> Tensor:
    """Tokens [B, length, width]."""
    return torch.randn(batch_size, length, width)


def chunked(model: AttentionLayer, chunk: int) -> nn.Module:
    """The layer with its weights, in chunks of so many tokens."""
    arm = ChunkedAttention(model.qkv.in_features, model.heads)
    arm.load_state_dict(model.state_dict())
    arm.chunk = chunk
    return arm.eval()
