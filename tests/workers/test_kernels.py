"""The fused selection kernel against tensor code, run by Triton's interpreter on the CPU."""

import os
import subprocess
import sys

import pytest

from tests.workers.tiny_vits import small
from workers.errors import Unsupported
from workers.methods.vision import topk

AGREES = """
import torch
from workers.token_reduction.topk_triton import keep_best_triton
from workers.token_reduction.token_ops import prefix_bonus, select

for batch, tokens, heads, channels, prefix, kept, dtype in (
    (1, 5, 1, 3, 0, 1, torch.float32),
    (2, 26, 3, 48, 1, 7, torch.float32),
    (3, 17, 2, 300, 5, 12, torch.float32),
    (1, 300, 3, 20, 2, 257, torch.float32),
    (2, 33, 3, 16, 1, 8, torch.float16),
):
    torch.manual_seed(tokens)
    x, attention = torch.randn(batch, tokens, channels, dtype=dtype), torch.rand(batch, heads, tokens, tokens)
    weight = (attention / attention.sum(-1, keepdim=True))[:, :, 0]  # strided, as a row of the attention matrix is
    score = weight.mean(1) + prefix_bonus(prefix, tokens - prefix, like=weight)
    expected = select(x, score.topk(prefix + kept).indices)
    assert torch.equal(keep_best_triton(x, weight, prefix, kept), expected), (batch, tokens)
    assert torch.equal(keep_best_triton(x.mT.contiguous().mT, weight, prefix, kept), expected), "strided tokens"

x, equal = torch.arange(12.0).view(1, 12, 1), torch.zeros(1, 2, 12)
assert keep_best_triton(x, equal, 1, 4).flatten().tolist() == [0, 1, 2, 3, 4], "equal scores go by place"
equal[0, 1, 7] = torch.nan
assert keep_best_triton(x, equal, 1, 4).flatten().tolist() == [0, 7, 1, 2, 3], "what is not a number comes first"
print("agrees")
"""


def test_fused_selection_agrees_with_torch():
    """Odd shapes, strided inputs, prefix tokens and half precision: the kernel keeps the tokens that topk keeps, in its order."""
    done = subprocess.run(
        [sys.executable, "-c", AGREES], capture_output=True, text=True, check=False, env=os.environ | {"TRITON_INTERPRET": "1"}
    )
    assert done.stdout.strip() == "agrees", done.stderr


def test_triton_needs_cuda():
    """Asked for on the CPU, the fused implementation is refused with the reason."""
    with pytest.raises(Unsupported, match="triton runs on CUDA devices only, and the model is on cpu"):
        topk.apply(small("plain"), topk.Params(keep_rate=0.5, layers=(1,), implementation="triton"))
