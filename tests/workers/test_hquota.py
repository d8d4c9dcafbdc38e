"""What hquota selects, merges and adjusts, against the plainest code that does the same, and its
schedule.
"""

import math

import pytest
import torch
from torch.nn.functional import normalize

from sweeps.geometry.vit_catalogue import networks
from sweeps.model.method import BlockTokens
from tests.workers.tiny_vits import calm, small
from workers.methods.vision import hquota
from workers.methods.vision.hquota import Params
from workers.token_reduction.hquota_ops import Grouping, MergeAdjustment, adjust, unmerge

calm = pytest.fixture(autouse=True)(calm)
DEIT_S = networks()["deit_small_patch16_224"]
PREFIX, PATCHES, KEPT = 2, 30, 18


def some(quota=0.3, kept=KEPT, sized=True):
    """Random tokens, sizes, inflow and features of two images, and how they are grouped."""
    torch.manual_seed(4)
    x, feature = torch.randn(2, PREFIX + PATCHES, 5), torch.randn(2, PREFIX + PATCHES, 8)
    size = torch.randint(1, 5, (2, PREFIX + PATCHES, 1)).float() if sized else None
    inflow = torch.randn(2, 3, PREFIX + PATCHES, PREFIX + PATCHES).softmax(-1).sum(2)
    groups = Grouping(PREFIX, kept, quota).groups(inflow, size, feature[:, None], x)
    return x, size, inflow, feature, groups


def merge_groups(x, size, groups, adjustment):
    return Grouping(PREFIX, KEPT, 0.3, adjustment=adjustment).merged(x, size, groups)


@pytest.mark.parametrize("sized", [True, False])
def test_merges_as_loops_do(sized):
    """Removed tokens go to the most similar kept one; merged ones are means weighted by size."""
    x, size, _, feature, groups = some(sized=sized)
    out, sizes = merge_groups(x, size, groups, MergeAdjustment())
    size = torch.ones(2, PREFIX + PATCHES, 1) if size is None else size
    for image in range(2):
        order = groups.order_BN[image].tolist()
        unit = normalize(feature[image], dim=-1)
        kept, removed = order[PREFIX : PREFIX + KEPT], order[PREFIX + KEPT :]
        parts = {place: [place] for place in order[: PREFIX + KEPT]}
        for place in removed:
            parts[max(kept, key=lambda target, own=place: float(unit[own] @ unit[target]))].append(
                place
            )
        for row, places in enumerate(parts.values()):
            total = sum(size[image, place] for place in places)
            mean = sum(x[image, place] * size[image, place] for place in places) / total
            torch.testing.assert_close(out[image, row], mean)
            torch.testing.assert_close(sizes[image, row], total)
    assert torch.equal(sizes.sum(1), size.sum(1))
    torch.testing.assert_close((out * sizes).sum(1), (x * size).sum(1))


def test_unmerge_gives_each_token_what_its_group_became():
    """Every token is back at its place, removed ones as their target."""
    x, _, _, _, groups = some(sized=False)
    merged, sizes = merge_groups(x, None, groups, MergeAdjustment())
    back = unmerge(merged, groups, PREFIX)
    for image in range(2):
        order, target = groups.order_BN[image].tolist(), groups.target_BR[image].tolist()
        for row, place in enumerate(order[: PREFIX + KEPT]):
            assert torch.equal(back[image, place], merged[image, row])
        for place, row in zip(order[PREFIX + KEPT :], target, strict=True):
            assert torch.equal(back[image, place], merged[image, PREFIX + row])
    torch.testing.assert_close(back.sum(1), (merged * sizes).sum(1))


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"merge": "v"},
        {"match": "xnorm"},
        {"place": "around"},
        {"place": "around", "merge": "v"},
    ],
)
def test_twins_merge_without_loss(params):
    """Of equal pairs one is kept; with sizes in the attention the class token stays."""
    patches, model = torch.randn(2, 8, 48), small("plain", 32)
    x = torch.cat((torch.randn(2, 1, 48), patches, patches.flip(1)), 1)
    for layers in ((0,), (1,)):
        blocks = hquota.apply(model, Params(r=8, layers=layers, quota=0, **params)).blocks
        torch.testing.assert_close(blocks(x)[:, 0], model.blocks(x)[:, 0], rtol=0, atol=1e-4)


def adjusted(**parts):
    """Merged tokens of `some` adjusted, and what they were adjusted from: (adjusted, merged, sizes,
    alone, similarity).
    """
    x, size, _, _, groups = some()
    out, sizes = merge_groups(x, size, groups, MergeAdjustment())
    alone = torch.stack(
        [image[order] for image, order in zip(x, groups.order_BN[:, PREFIX:], strict=True)]
    )
    kept, kept_sizes = out[:, PREFIX:], sizes[:, PREFIX:]
    both, _ = merge_groups(x, size, groups, MergeAdjustment(**parts))
    result = adjust(kept, kept_sizes, alone, groups.similarity_BRK, MergeAdjustment(**parts))
    assert torch.equal(both[:, PREFIX:], result)
    torch.testing.assert_close(both[:, :PREFIX], x[:, :PREFIX])
    return result, kept, kept_sizes, alone, groups.similarity_BRK


def test_eta_is_the_alpha_of_the_authors_code():
    """A kept token is (1 - alpha) mean + alpha centre, as in kv_merge.py of token_reduction_JM."""
    alpha = 0.15
    x, _, _, _, groups = some(sized=False)
    found, _ = merge_groups(x, None, groups, MergeAdjustment(eta=alpha))
    for image in range(2):
        order, target = groups.order_BN[image].tolist(), groups.target_BR[image].tolist()
        for kept in range(KEPT):
            centre = x[image, order[PREFIX + kept]]
            members = [
                order[PREFIX + KEPT + row] for row, into in enumerate(target) if into == kept
            ]
            mean = torch.stack([centre, *(x[image, place] for place in members)]).mean(0)
            torch.testing.assert_close(
                found[image, PREFIX + kept], (1 - alpha) * mean + alpha * centre, rtol=0, atol=1e-6
            )


def test_push_goes_toward_similar_removed_tokens():
    """By alpha times the cosine toward the most similar removed tokens, at most by its cap."""
    result, merged, sizes, alone, similarity = adjusted(alpha=0.15, beta=0.05, delta=0.5, top_r=2)
    capped = 0
    for image in range(2):
        for kept in range(KEPT):
            near = similarity[image, :, kept].argsort(descending=True)[:2]
            step = 0.15 * max(float(similarity[image, near, kept].mean()), 0)
            cap = 0.05 * math.sqrt(float(sizes[image, kept, 0] / sizes[image].mean()))
            capped += step > cap
            toward = alone[image, KEPT + near].mean(0)
            torch.testing.assert_close(
                result[image, kept], merged[image, kept].lerp(toward, min(step, cap))
            )
    assert 0 < capped < 2 * KEPT


def test_size_normalisation():
    """Re-centring keeps the weighted mean, tau bounds lengths, n weights by size."""
    result, merged, sizes, *_ = adjusted(recentre=True)
    weighted = (merged * sizes).sum(1) / sizes.sum(1)
    torch.testing.assert_close(result.mean(1), weighted)
    torch.testing.assert_close(
        result - result.mean(1, keepdim=True), merged - merged.mean(1, keepdim=True)
    )
    result, merged, *_ = adjusted(tau=1.1)
    limit = 1.1 * merged.norm(dim=-1).mean(1, keepdim=True)
    torch.testing.assert_close(result.norm(dim=-1), torch.minimum(merged.norm(dim=-1), limit))
    result, merged, sizes, *_ = adjusted(temperature=0.5)
    torch.testing.assert_close(result, merged * (sizes / sizes.mean(1, keepdim=True)).sqrt())


def test_schedule_after_the_attention():
    """Early blocks bold, middle careful, last free, and none removes more than half."""
    bold = Params(keep_rate=0.95, early_keep=0.66, last_free=4)
    assert list(bold.left(12, 196).values()) == [130, 86, 57, 55, 53, 51, 49, 47]
    counts = [block.mlp - 1 for block in hquota.tokens(bold, DEIT_S, 224)]
    assert counts == [130, 86, 57, 55, 53, 51, 49, *[47] * 5]
    assert Params(r=20, layers="early").left(12, 196) == {0: 176, 1: 156, 2: 136}
    assert Params(r=(4, 0, 9), layers=(0, 3, 5)).left(12, 196) == {0: 192, 5: 183}
    assert Params(r=100, layers=(2, 1)).left(12, 196) == {1: 98, 2: 49}
    assert Params(r=100, layers=(2, 1)).solved(DEIT_S, 224) == {"r_capped_blocks": 2}
    assert bold.solved(DEIT_S, 224) == {}
    assert Params(r=13, align=64).left(4, 196, 1) == {0: 191}


def test_schedule_around_the_attention():
    """All tokens are back in every block; groups hold while blocks remove as many."""
    params = Params(keep_rate=0.75, place="around", layers=(0, 1, 2, 3, 6, 7))
    left = params.left(12, 196)
    assert left == dict.fromkeys((0, 1, 2, 3, 6, 7), 147)
    assert params.grouping(left) == (0, 3, 6)
    assert Params(r=9, place="around", hold=1).grouping({0: 9, 1: 9}) == (0, 1)
    early = Params(r=9, early_keep=0.68, place="around", hold=12)
    assert early.grouping(early.left(12, 196)) == (0, 3)
    assert hquota.tokens(params, DEIT_S, 224)[3:6] == (
        BlockTokens(148, 197),
        BlockTokens(197, 197),
        BlockTokens(197, 197),
    )


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({}, "give either r, keep_rate or budget"),
        ({"r": 3, "keep_rate": 0.5}, "not both r and keep_rate"),
        ({"r": 3, "layers": (1, 1)}, "must be different blocks"),
        ({"r": 3, "layers": ()}, "must be different blocks"),
        ({"r": 3, "layers": "late"}, "'all' or 'early'"),
        ({"r": 3, "hold": 2}, "hold is for place: around only"),
        ({"r": (3, 2), "layers": (0, 1, 2)}, "r lists 2 numbers for 3 layers"),
        ({"r": (3, 2), "early_keep": 0.66}, "early_keep would overrule"),
        ({"r": 3, "alpha": 0.2}, "less than or equal to 0.15"),
    ],
)
def test_impossible_parameters(params, message):
    """Parameters that mean nothing are refused with the reason."""
    with pytest.raises(ValueError, match=message):
        Params(**params)


def test_an_absolute_clip_is_a_length():
    """With `clip: absolute` no merged token is longer than tau; without it tau is a share."""
    x = torch.randn(2, 6, 4) * torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])[:, None]
    sizes, similarity = torch.ones(2, 6, 1), torch.rand(2, 3, 6)
    alone = torch.randn(2, 9, 4)
    clipped = adjust(x, sizes, alone, similarity, MergeAdjustment(tau=3.0, clip="absolute"))
    long = x.norm(dim=-1) > 3
    assert long.any()
    torch.testing.assert_close(clipped[~long], x[~long])
    torch.testing.assert_close(clipped[long].norm(dim=-1), torch.full((int(long.sum()),), 3.0))
    with pytest.raises(ValueError, match="clip is about tau"):
        Params(r=1, clip="absolute")


def test_layers_that_are_not_there():
    """Layers beyond the model, and more numbers than blocks, are refused with the network's
    name.
    """
    assert "block 12, but deit_small_patch16_224 has the blocks 0 to 11" in hquota.refuses(
        Params(r=1, layers=(3, 12)), DEIT_S
    )
    assert "r lists 13 blocks, but 12 of" in hquota.refuses(Params(r=(1,) * 13), DEIT_S)
    assert "r lists 4 blocks, but 3 of" in hquota.refuses(
        Params(r=(1,) * 4, layers="early"), DEIT_S
    )
