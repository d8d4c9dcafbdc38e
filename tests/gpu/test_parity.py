"""On a GPU: captured graphs and Triton kernels give what tensor code gives, and what the allocator
does not show is counted.
"""

from typing import Any

import pytest
import torch

from tests.workers.kernel_parity import CHECKS
from workers.activation_sparsity.sparse_matvec_triton import multiply
from workers.models.runtime import CudaGraph

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


@pytest.mark.parametrize("check", CHECKS)
def test_kernels_agree_with_tensor_code(check: str) -> None:
    """What Triton's interpreter is tested for, compiled."""
    torch.manual_seed(0)
    CHECKS[check]()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_split_k_gives_the_sum_of_the_active_rows(dtype: torch.dtype) -> None:
    """With and without an index."""
    for inputs, outputs, kept in ((3, 17, 2), (255, 129, 100), (4096, 11008, 1024)):
        weight, x = (
            torch.randn(inputs, outputs, device="cuda").to(dtype),
            torch.randn(inputs, device="cuda").to(dtype),
        )
        index = x.abs().topk(kept).indices.sort().values
        wanted = x[index].double() @ weight[index].double()
        masked = torch.zeros_like(x).scatter(0, index, x[index])
        for found in (multiply(index, x[index], weight), multiply(None, masked, weight)):
            close = 1e-4 if dtype == torch.float32 else 2e-2
            assert (found.double() - wanted).abs().max() <= close * (1 + wanted.abs().max())
