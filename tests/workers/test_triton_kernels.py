"""The Triton kernels against tensor code, run by Triton's interpreter on the CPU, in one process
for all.
"""

import json
import os
import subprocess
import sys

import pytest

SELECTION = """
import torch
from workers.token_reduction.patch_vit import AttentionState
from workers.token_reduction.triton_kernels import keep_best_triton
from workers.token_reduction.token_ops import best_tokens, select

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
    best = best_tokens(prefix, tokens - prefix, kept, like=weight)
    expected = select(x, best(AttentionState(x, x, attention / attention.sum(-1, keepdim=True), 1.0, x, x, x))[1])
    assert torch.equal(keep_best_triton(x, weight, prefix, kept), expected), (batch, tokens)
    assert torch.equal(keep_best_triton(x.mT.contiguous().mT, weight, prefix, kept), expected), "strided tokens"

x, equal = torch.arange(12.0).view(1, 12, 1), torch.zeros(1, 2, 12)
assert keep_best_triton(x, equal, 1, 4).flatten().tolist() == [0, 1, 2, 3, 4], "equal scores go by place"
equal[0, 1, 7] = torch.nan
assert keep_best_triton(x, equal, 1, 4).flatten().tolist() == [0, 7, 1, 2, 3], "what is not a number comes first"
"""

FARTHEST_FIRST = """
import torch
from workers.token_reduction.hquota_ops import farthest_first_numpy
from workers.token_reduction.triton_kernels import farthest_first_triton

for batch, tokens, hubs, kept in ((1, 2, 1, 1), (3, 25, 4, 17), (2, 64, 1, 63), (1, 196, 30, 100), (2, 130, 65, 65)):
    unit = torch.nn.functional.normalize(torch.rand(batch, tokens, 6), dim=-1)
    similarity = unit @ unit.mT
    similarity.diagonal(dim1=1, dim2=2).fill_(float("inf"))
    first = torch.rand(batch, tokens).topk(hubs).indices
    fused, steps = farthest_first_triton(similarity, first, kept), farthest_first_numpy(similarity, first, kept)
    assert torch.equal(fused, steps), (batch, tokens, hubs, kept)
"""

SPLIT_K = """
import torch
from workers.activation_sparsity.sparse_matvec_triton import multiply

for inputs, outputs, kept, dtype in (
    (1, 1, 1, torch.float32),
    (3, 17, 2, torch.float32),
    (255, 129, 100, torch.float32),
    (300, 255, 64, torch.bfloat16),
    (70, 300, 65, torch.float16),
):
    torch.manual_seed(inputs)
    weight, x = torch.randn(inputs, outputs).to(dtype), torch.randn(inputs).to(dtype)
    index = x.abs().topk(kept).indices.sort().values
    wanted = x[index].double() @ weight[index].double()
    masked = torch.zeros_like(x).scatter(0, index, x[index])
    narrow = multiply(index.int(), x[index].float(), weight)
    for found in (multiply(index, x[index], weight), narrow, multiply(None, masked, weight)):
        assert found.dtype == dtype
        close = 1e-4 if dtype == torch.float32 else 1e-2
        assert (found.double() - wanted).abs().max() <= close * (1 + wanted.abs().max()), (inputs, outputs, kept)

weight = torch.full((40, 8), torch.nan)
weight[7] = 2.0
only = torch.zeros(40).scatter(0, torch.tensor([7]), 3.0)
assert multiply(None, only, weight).tolist() == [6.0] * 8, "rows of inputs that are zero must not be read"
assert multiply(None, torch.full((40,), torch.nan), torch.ones(40, 8)).isnan().all(), "what is not a number must show"
"""

ALL = """
import json, sys, traceback
failures = {}
for name, code in json.load(sys.stdin).items():
    try:
        exec(code, {})
    except BaseException:
        failures[name] = traceback.format_exc()
print(json.dumps(failures))
"""


PROGRAMS = {"selection": SELECTION, "farthest first": FARTHEST_FIRST, "split-K": SPLIT_K}


@pytest.fixture(scope="module")
def failures() -> dict[str, str]:
    """By name, the tracebacks of the programs that failed where `TRITON_INTERPRET` was set before
    Triton was imported.
    """
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", ALL],
        input=json.dumps(PROGRAMS),
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"TRITON_INTERPRET": "1"},
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, str] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("program", PROGRAMS)
def test_kernels_agree_with_tensor_code(failures: dict[str, str], program: str) -> None:
    """Order of topk and of the steps, sums of active rows, whatever shape and type."""
    assert program not in failures, failures[program]
