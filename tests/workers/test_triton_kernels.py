"""The Triton kernels against tensor code, run by Triton's interpreter on the CPU, in one process
for all.
"""

import json
import os
import subprocess
import sys

import pytest

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


PROGRAMS = {"split-K": SPLIT_K}


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
