"""DiffRate against its authors' procedure, written for one image at a time, and its counts."""

import math

import pytest
import torch

from sweeps.geometry.vit_catalogue import networks
from tests.workers.tiny_vits import calm, images, small, small_network
from workers.methods.vision.diffrate import Params, apply, macs, refuses, tokens

calm = pytest.fixture(autouse=True)(calm)
PRUNE, MERGE = (26, 22, 15, 9), (24, 18, 15, 7)
DEIT_S = networks()["deit_small_patch16_224"]
PUBLISHED = {
    "prune": (197, 196, 182, 160, 141, 127, 115, 105, 88, 66, 49, 3),
    "merge": (197, 188, 170, 147, 131, 119, 109, 96, 76, 54, 45, 3),
}
"""The authors' schedule for DeiT-S at 2.7 GMACs."""


def logits_of_one(model, picture):
    """The logits of one image: tokens as a list of rows, each with a size, pruned and merged by
    hand.
    """
    x = list(model._pos_embed(model.patch_embed(picture[None]))[0])
    size = [1.0] * len(x)
    for block, prune, merge in zip(model.blocks, PRUNE, MERGE, strict=True):
        n = len(x)
        read = block.norm1(torch.stack(x))
        q, k, v = block.attn.qkv(read).view(n, 3, 3, 16).unbind(1)
        bias = torch.tensor([math.log(each) for each in size]).double()
        rows = [(q[:, head] @ k[:, head].T / 4 + bias).softmax(-1) for head in range(3)]
        heads = torch.cat([rows[head] @ v[:, head] for head in range(3)], 1)
        x = [one + more for one, more in zip(x, block.attn.proj(heads), strict=True)]
        score = [float(sum(row[0, place] for row in rows)) for place in range(n)]
        order = [0, *sorted(range(1, n), key=lambda place: -score[place])][:prune]
        into = {place: [place] for place in order[:merge]}
        total = {place: size[place] for place in order[:merge]}
        for place in order[merge:]:
            cosine = {
                other: float(torch.cosine_similarity(x[place], x[other], dim=0))
                for other in order[1:merge]
            }
            nearest = max(cosine, key=cosine.__getitem__)
            into[nearest].append(place)
            total[nearest] += size[place] * cosine[nearest]
        x = [torch.stack([x[each] for each in group]).mean(0) for group in into.values()]
        size = list(total.values())
        assert min(size) > 0
        x = [one + block.mlp(block.norm2(one[None]))[0] for one in x]
    return model.head(model.norm(torch.stack(x))[0])


@pytest.mark.parametrize("fused", [True, False])
def test_the_authors_procedure(fused):
    """Logits are equal to 1e-6 in double precision, with fused and with plain attention."""
    model = small("plain")
    model = type(model)(
        img_size=40, patch_size=8, embed_dim=48, depth=4, num_heads=3, num_classes=7
    )
    model.load_state_dict(small("plain").state_dict())
    model = model.double().eval()
    for part in model.modules():
        if hasattr(part, "fused_attn"):
            part.fused_attn = fused
    x = images().double()
    expected = torch.stack([logits_of_one(model, picture) for picture in x])
    found = apply(model, Params(prune=PRUNE, merge=MERGE))(x)
    assert float((expected - model(x)).abs().max()) > 1e-2
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)


def test_published_counts():
    """The authors' schedule leaves its counts and costs the 2.7 GMACs that it was searched for."""
    params = Params(**PUBLISHED)
    blocks = tokens(params, DEIT_S, 224)
    assert [block.mlp for block in blocks] == list(PUBLISHED["merge"])
    assert DEIT_S.macs(224, blocks) / 1e9 == pytest.approx(2.7, abs=0.02)
    rows = 197 + 188 + 170 + 147 + 131 + 119 + 109 + 96 + 76 + 54 + 45
    pairs = zip(PUBLISHED["prune"], PUBLISHED["merge"], strict=True)
    products = sum((pruned - merged) * (merged - 1) for pruned, merged in pairs)
    assert macs(params, DEIT_S, 224) == (rows + products) * 384


def test_other_sizes():
    """Without the size that a schedule was made for, counts are absolute; with it they scale."""
    blocks = tokens(Params(**PUBLISHED), DEIT_S, 448)
    assert [block.mlp for block in blocks][:3] == [197, 188, 170]
    scaled = tokens(Params(**PUBLISHED, made_for=197), DEIT_S, 448)
    assert [block.mlp for block in scaled] == [4 * (count - 1) + 1 for count in PUBLISHED["merge"]]
    tiny = tokens(Params(**PUBLISHED), DEIT_S, 64)
    assert [block.mlp for block in tiny] == [17] * 11 + [3]
    assert macs(Params(prune=100, merge=20), DEIT_S, 64) == 0


def test_distilled_and_refused():
    """The distillation token stays, uncounted; models without a class token are refused."""
    distilled = tokens(Params(prune=PRUNE), small_network("distilled"), 40)
    assert [block.mlp for block in distilled] == [count + 1 for count in PRUNE]
    assert "no class token" in refuses(Params(prune=PRUNE), small_network("average"))
    assert "5 blocks are listed" in refuses(Params(merge=(9,) * 5), small_network("plain"))
    assert refuses(Params(prune=9), small_network("plain")) is None


@pytest.mark.parametrize("make", ["average_with_registers"])
def test_pooled_by_size(make):
    """Average pooling is the mean weighted by sizes, whatever they add up to."""
    fitted = apply(small(make), Params(prune=(20,), merge=(12,)))
    seen = {}
    fitted.blocks[-1].register_forward_hook(lambda _, __, out: seen.update(x=out[0], size=out[1]))
    found = fitted(images())
    x, size = seen["x"][:, 3:], seen["size"][:, 3:]
    pooled = (x * size).sum(1) / size.sum(1)
    assert float((size.sum(1) - 25).abs().min()) > 1
    model = small(make)
    torch.testing.assert_close(found, model.head(model.fc_norm(pooled)), rtol=1e-4, atol=1e-4)
