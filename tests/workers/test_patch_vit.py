"""How methods are fitted into blocks: what does nothing changes nothing, and a reduction is handed
what it is promised.
"""

import pytest
import torch

from tests.workers.tiny_vits import calm, images, small
from workers.token_reduction import patch_vit
from workers.token_reduction.patch_vit import (
    attend,
    attention_before,
    attention_matrix,
    fit,
    project,
)
from workers.token_reduction.token_ops import class_token_attention

calm = pytest.fixture(autouse=True)(calm)


@pytest.mark.parametrize("make", ["plain", "normed", "map"])
def test_attention_before(make):
    """Matrix, keys and parts computed alone are those of the attention itself."""
    attn, x = small(make).blocks[1].attn, torch.randn(2, 9, 48)
    attn.fused_attn = False
    _, attended = attend(attn, x, None)
    matrix, keys = attention_before(attn, x)
    torch.testing.assert_close(matrix, attended.attention_BHNN)
    torch.testing.assert_close(keys, attended.k_BHNd)
    torch.testing.assert_close(project(attn, x, slice(2, 3))[0], attended.v_BHNd)


@pytest.mark.parametrize("cache_bytes", [0, 1 << 20])
@pytest.mark.parametrize("sized", [False, True])
def test_inflow_image_by_image(monkeypatch, cache_bytes, sized):
    """Output is that of fused attention, inflow the column sums, in parts or at once."""
    B, H, N, d = 5, 3, 7, 16
    q, k, v = torch.randn(B, N, 3, H, d).permute(2, 0, 3, 1, 4).unbind(0)
    bias = torch.rand(B, 1, 1, N) if sized else None
    monkeypatch.setattr(patch_vit, "CACHE_BYTES", cache_bytes)
    y, inflow = patch_vit.attend_with_inflow(q, k, v, 0.25, bias)
    torch.testing.assert_close(
        y, torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=bias)
    )
    matrix = attention_matrix(q, k, 0.25, bias).tolist()
    expected = [
        [[sum(matrix[b][h][i][j] for i in range(N)) for j in range(N)] for h in range(H)]
        for b in range(B)
    ]
    torch.testing.assert_close(inflow, torch.tensor(expected))


def test_what_a_reduction_is_handed():
    """Inflow only where requested; what attention read and returned are the block's own."""
    block, seen = small("registers").blocks[2], []

    def look(x, size, attended):
        seen.append((x, attended))
        return x, size, None

    came_in = []
    block_in = (
        small("registers")
        .blocks[2]
        .register_forward_pre_hook(lambda _, args: came_in.append(args[0]))
    )
    small("registers")(images())
    block_in.remove()
    fit(small("registers"), {2: look}, inflow=True)(images())
    fit(small("registers"), {2: look})(images())
    (x, attended), (_, fused) = seen
    assert fused.attention_BHNN is None
    assert fused.inflow_BHN is None
    assert attended.inflow_BHN.shape == (2, 3, 30)
    torch.testing.assert_close(attended.inflow_BHN.sum(-1), torch.full((2, 3), 30.0))
    torch.testing.assert_close(attended.read_BND, block.norm1(came_in[0]))
    torch.testing.assert_close(attended.added_BND, block.ls1(block.attn(attended.read_BND)))
    torch.testing.assert_close(x - attended.added_BND, came_in[0])


@pytest.mark.parametrize("inflow", [False, True])
@pytest.mark.parametrize("make", ["plain", "eva02"])
def test_class_token_attention_in_proportion_to_sizes(make, inflow):
    """Of fused attention it is the row that the attention with token sizes has."""
    seen = {}

    def merge(x, size, attended):
        sizes = torch.arange(1.0, x.shape[1]).expand(2, -1)[..., None]
        return (
            x[:, :-1],
            sizes,
            attended.place_BNP if make == "plain" else attended.place_BNP[:, :-1],
        )

    def look(x, size, attended):
        seen[attended.attention_BHNN is None] = class_token_attention(attended)
        return x, size, attended.place_BNP

    for fused in (True, False):
        model = fit(small(make), {0: merge, 2: look}, proportional=True, inflow=fused and inflow)
        for part in model.modules():
            if hasattr(part, "fused_attn"):
                part.fused_attn = fused
        model(images())
    torch.testing.assert_close(seen[True], seen[False], rtol=0, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_matrix_is_that_of_the_formula(dtype):
    """Scale and bias inside of the product give the softmax, whatever the strides."""
    q, k, _ = torch.randn(2, 7, 3, 3, 8, dtype=dtype).permute(2, 0, 3, 1, 4)
    bias = torch.rand(2, 1, 1, 7, dtype=dtype)
    expected = ((q.double() * 0.3) @ k.double().mT + bias.double()).softmax(-1)
    tolerance = 1e-6 if dtype == torch.float32 else 2e-2
    torch.testing.assert_close(
        attention_matrix(q, k, 0.3, bias).double(), expected, rtol=0, atol=tolerance
    )
