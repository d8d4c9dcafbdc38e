"""On a GPU: captured graphs and Triton kernels give what tensor code gives, and what the allocator
does not show is counted.
"""

from typing import Any

import pytest
import torch

from workers.activation_sparsity.sparse_matvec_triton import multiply
from workers.models.runtime import CudaGraph
from workers.token_reduction.hquota_ops import farthest_first_numpy
from workers.token_reduction.patch_vit import AttentionState
from workers.token_reduction.token_ops import best_tokens, select
from workers.token_reduction.triton_kernels import farthest_first_triton, keep_best_triton

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


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_selection_keeps_what_topk_keeps(dtype: torch.dtype) -> None:
    """Odd shapes and prefix tokens."""
    for batch, tokens, heads, channels, prefix, kept in (
        (1, 5, 1, 3, 0, 1),
        (2, 26, 3, 48, 1, 7),
        (4, 197, 6, 384, 1, 98),
    ):
        x = torch.randn(batch, tokens, channels, device="cuda").to(dtype)
        attention = torch.rand(batch, heads, tokens, tokens, device="cuda")
        attention = attention / attention.sum(-1, keepdim=True)
        best = best_tokens(prefix, tokens - prefix, kept, like=attention)
        _, index = best(AttentionState(x, x, attention, 1.0, x, x, x))
        found = keep_best_triton(x, attention[:, :, 0], prefix, kept)
        torch.testing.assert_close(found, select(x, index))


def test_farthest_first_goes_in_the_order_of_the_steps() -> None:
    """The order that the steps on the CPU give."""
    for batch, tokens, hubs, kept in ((1, 2, 1, 1), (3, 25, 4, 17), (1, 196, 30, 100)):
        unit = torch.nn.functional.normalize(torch.rand(batch, tokens, 6), dim=-1)
        similarity = unit @ unit.mT
        similarity.diagonal(dim1=1, dim2=2).fill_(float("inf"))
        first = torch.rand(batch, tokens).topk(hubs).indices
        found = farthest_first_triton(similarity.cuda(), first.cuda(), kept)
        assert torch.equal(found.cpu(), farthest_first_numpy(similarity, first, kept))


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
