"""Attention in chunks of queries against torch's own, along the length of the sequence. About 50
seconds:

    uv run python examples/compare_attention.py
"""

from functools import partial

import torch
from torch.nn.functional import scaled_dot_product_attention

import breakeven

HEADS, WIDTH = 4, 32


def chunked(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, rows: int) -> torch.Tensor:
    """Softmax of the products of `rows` queries at a time; all of shape [1, heads, n, width]."""
    parts = [
        torch.softmax(part @ k.transpose(-2, -1) * WIDTH**-0.5, dim=-1) @ v
        for part in q.split(rows, dim=-2)
    ]
    return torch.cat(parts, dim=-2)


def qkv(n: int) -> tuple[torch.Tensor, ...]:
    torch.manual_seed(0)
    return tuple(torch.randn(1, HEADS, n, WIDTH) for _ in range(3))


if __name__ == "__main__":
    torch.set_num_threads(1)
    with torch.inference_mode():
        curve = breakeven.curve(
            {"chunks of 64": partial(chunked, rows=64), "sdpa": scaled_dot_product_attention},
            inputs=qkv,
            over={"n": [16, 64, 256, 1024]},
            time="50s",
        )
    print(curve)
    print(curve.break_even.verdict)
