"""On a GPU: captured graphs and Triton kernels give what tensor code gives, and what the allocator
does not show is counted.
"""

import json
import os
import subprocess
import sys
from typing import Any

import pytest
import torch

from tests.workers.kernel_parity import CHECKS
from workers.kernels.sparse import multiply_active
from workers.models.runtime import Captured, CudaGraph

pytestmark = pytest.mark.skipif(
    not torch.cuda.is_available(), reason="needs a GPU: captured graphs and Triton kernels"
)


def network() -> Any:
    torch.manual_seed(0)
    layers = (
        torch.nn.Flatten(),
        torch.nn.Linear(3 * 32 * 32, 4096),
        torch.nn.GELU(),
        torch.nn.Linear(4096, 10),
    )
    return torch.nn.Sequential(*layers).cuda().eval()


@torch.inference_mode()
def test_a_captured_forward_gives_what_an_eager_one_gives() -> None:
    """For the input of the capture and for others; the memory inside the graph is counted."""
    eager, inputs = network(), torch.randn(3, 256, 3, 32, 32, device="cuda")
    graph = CudaGraph(eager)
    for x_BCHW in inputs:
        torch.testing.assert_close(graph(x_BCHW).clone(), eager(x_BCHW), rtol=1e-4, atol=1e-4)
    assert graph.captured is not None
    assert graph.captured.unseen_bytes >= 256 * 4096 * 4


@pytest.fixture(scope="module")
def failures() -> dict[str, str]:
    """By name, the tracebacks of the checks that failed."""
    command = [sys.executable, "-m", "tests.workers.kernel_parity", str(os.cpu_count())]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    failed: dict[str, str] = json.loads(done.stdout)
    return failed


@pytest.mark.parametrize("check", CHECKS)
def test_kernels_agree_with_tensor_code(failures: dict[str, str], check: str) -> None:
    """What Triton's interpreter is tested for, compiled."""
    assert check not in failures, failures[check]


@torch.inference_mode()
def test_captured_products_give_what_eager_ones_give() -> None:
    """A threshold that changes in memory changes what a replay reads; it counts each replay."""
    weight = torch.randn(4096, 11008, device="cuda", dtype=torch.float16)
    x = torch.randn(1, 4096, device="cuda", dtype=torch.float16)
    limit = torch.zeros(1, device="cuda")
    arrived = torch.zeros(86, dtype=torch.int32, device="cuda")
    totals = torch.zeros(3, dtype=torch.int64, device="cuda")
    captured = Captured(lambda: multiply_active(x, weight, limit, None, arrived, totals), x.device)
    for threshold in (0.0, 0.7, 2.0):
        limit.fill_(threshold)
        totals.zero_()
        active = x.float().abs() > threshold
        expected = torch.where(active, x, 0).double() @ weight.double()
        close = 2e-2 * (1 + expected.abs().max())
        assert (captured.replay().double() - expected).abs().max() <= close
        assert totals.tolist() == [int(active.sum()) * 11008, 4096 * 11008, 1]
