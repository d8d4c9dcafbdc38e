"""EViT: which tokens stay, what the fused token is, and how it is counted."""

import pytest
import torch

from sweeps.geometry.vit_catalogue import networks
from tests.workers.tiny_vits import calm
from workers.methods.vision.evit import Params, keep_best_and_fuse, macs, tokens
from workers.token_reduction.patch_vit import AttentionState

calm = pytest.fixture(autouse=True)(calm)
DEIT_B = networks()["deit_base_patch16_224"]


def attended(batch, count, heads=3, width=8):
    """What a block's attention leaves, at random: the matrix is formed here, so that it can be
    looked at.
    """
    q, k, v = torch.randn(3, batch, heads, count, width).unbind(0)
    attention = (q @ k.mT * width**-0.5).softmax(-1)
    x = torch.randn(batch, count, heads * width)
    return AttentionState(q, k, attention, width**-0.5, v, x, x)


@pytest.mark.parametrize("fused_attention", [True, False])
@pytest.mark.parametrize(("prefix", "kept"), [(1, 4), (2, 1), (5, 9)])
def test_fuses_what_it_drops(prefix, kept, fused_attention):
    """The best tokens by class attention in order, then the rest summed by their attention."""
    seen, x = attended(2, 16), torch.randn(2, 16, 24)
    given = seen._replace(attention_BHNN=None) if fused_attention else seen
    out, size, _ = keep_best_and_fuse(prefix, 16 - prefix, kept, like=x)(x, None, given)
    assert size is None
    for image, row, result in zip(x, seen.attention_BHNN[:, :, 0].mean(1), out, strict=True):
        patches = sorted(range(prefix, 16), key=lambda place: -float(row[place]))
        fused = sum(image[place] * row[place] for place in patches[kept:])
        torch.testing.assert_close(
            result, torch.stack([*image[:prefix], *image[patches[:kept]], fused])
        )


def test_counts_the_fused_token():
    """keep_rate 0.1 at blocks 3, 6, 9 of DeiT-B leaves 22, 5, 3 tokens with the fused one."""
    stages = Params(keep_rate=0.1)
    assert [block.mlp for block in tokens(stages, DEIT_B, 224)] == [197] * 3 + [22] * 3 + [
        5
    ] * 3 + [3] * 3
    assert macs(stages, DEIT_B, 224) == (197 + 22 + 5) * (768 + 768)


def test_published_macs():
    """DeiT-S at keep rates 0.7 and 0.5 takes the 3.0 and 2.3 GMACs of the authors' table."""
    deit_s = networks()["deit_small_patch16_224"]
    for keep_rate, published in ((0.7, 3.0), (0.5, 2.3)):
        requested = Params(keep_rate=keep_rate)
        total = deit_s.macs(224, tokens(requested, deit_s, 224)) + macs(requested, deit_s, 224)
        assert round(total / 1e9, 1) == published


def test_no_fused_token_for_a_single_one():
    """Dropping one token changes nothing; aligned counts have the fused token among them."""
    assert dict(Params(keep_rate=0.95, layers=(0,)).left(4, 20)) == {}
    assert dict(Params(keep_rate=0.9, layers=(0,)).left(4, 20)) == {0: 19}
    assert dict(Params(keep_rate=0.5, layers=(0, 1), align=8).left(4, 25, 1)) == {0: 15}
