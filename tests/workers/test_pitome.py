"""PiToMe: energy by its formula, which tokens are protected, and merging against plain loops."""

import math

import pytest
import torch

from sweeps.geometry.vit_catalogue import networks
from tests.workers.tiny_vits import calm, images, small
from workers.methods.vision import pitome
from workers.methods.vision.pitome import Energy, Params, merge_alike, tokens
from workers.token_reduction.patch_vit import AttentionState

calm = pytest.fixture(autouse=True)(calm)


def cosine(a, b):
    return float(a @ b / (a.norm() * b.norm()))


def energy_by_loops(keys, margin, alpha):
    """Section 3.2 of the paper, token by token."""
    like = [[cosine(a, b) for b in keys] for a in keys]
    return [
        sum(c if c >= margin else alpha * (math.exp(c - margin) - 1) for c in row) / len(row)
        for row in like
    ]


def merged_by_loops(x, size, keys, *, prefix, r, margin, alpha):
    """Merging of one image, pair by pair: the tokens and sizes as lists, prefix, protected and
    merged ones.
    """
    score = energy_by_loops(keys[prefix:], margin, alpha)
    order = [place + prefix for place in sorted(range(len(score)), key=lambda place: -score[place])]
    into = order[1 : 2 * r : 2]
    parts = {place: [place] for place in (*range(prefix), *order[2 * r :], *into)}
    for source in order[: 2 * r : 2]:
        parts[max(into, key=lambda place: cosine(keys[source], keys[place]))].append(source)
    sizes = [sum(size[each] for each in group) for group in parts.values()]
    tokens = [
        sum(x[each] * size[each] for each in group) / total
        for group, total in zip(parts.values(), sizes, strict=True)
    ]
    return torch.stack(tokens), torch.stack(sizes)


def attended(batch, count):
    q, k, v = torch.randn(3, batch, 3, count, 8).unbind(0)
    x = torch.randn(batch, count, 24)
    return AttentionState(q, k, None, 1.0, v, x, x)


@pytest.mark.parametrize(("prefix", "r"), [(0, 1), (1, 4), (2, 9), (5, 7)])
def test_merges_as_in_the_paper(prefix, r):
    """Batched merging does to each image what loops do, with and without sizes."""
    for size in (None, torch.randint(1, 4, (3, 20, 1)).float()):
        x, seen = torch.randn(3, 20, 6), attended(3, 20)
        out, sizes, _ = merge_alike(prefix, r, Energy(0.4, 0.7))(x, size, seen)
        plain = torch.ones(3, 20, 1) if size is None else size
        for image, weights, keys, merged, total in zip(
            x, plain, seen.k_BHNd.mean(1), out, sizes, strict=True
        ):
            expected, expected_sizes = merged_by_loops(
                image, weights, keys, prefix=prefix, r=r, margin=0.4, alpha=0.7
            )
            torch.testing.assert_close(merged, expected)
            torch.testing.assert_close(total, expected_sizes)


def test_the_papers_ratio():
    """Keeping 92.5 % in every block of DeiT-S takes 2.9 to 3.0 GMACs, as in table 5."""
    deit_s = networks()["deit_small_patch16_224"]
    left = [block.mlp - 1 for block in tokens(Params(r_ratio=0.075), deit_s, 224)]
    assert left[:3] == [182, 169, 157]
    assert 2.8 < deit_s.macs(224, tokens(Params(r_ratio=0.075), deit_s, 224)) / 1e9 < 3.1


def published(model, pictures, r):
    """The logits of the authors' DeiT code, restated for one image and one token after the other.

    Energy: mean of ELU(cosine - margin), margin 0.75 (1 - block / depth). In the first half of the
    blocks (rounded up) the tokens in the order of energy are split into even and odd ranks, and the
    r even ones most like an odd one are merged into it; then the 2r with the highest energy alone
    are split so, and all even ones merged. Means are weighted by size, attention is not.
    """
    return torch.stack([published_alone(model, picture, r) for picture in pictures])


def published_alone(model, picture, r):
    x = model._pos_embed(model.patch_embed(picture[None]))[0]
    size, depth = [1.0] * len(x), len(model.blocks)
    for number, block in enumerate(model.blocks):
        tokens, width = x.shape
        q, k, v = block.attn.qkv(block.norm1(x)).view(tokens, 3, 3, width // 3).permute(1, 2, 0, 3)
        weights = ((q @ k.mT) / math.sqrt(width // 3)).softmax(-1)
        x = x + block.attn.proj((weights @ v).transpose(0, 1).reshape(tokens, width))
        keys, margin = k.mean(0), 0.75 - 0.75 * number / depth
        rows = range(1, tokens)
        gap = {(a, b): cosine(keys[a], keys[b]) - margin for a in rows for b in rows}
        energy = {
            a: sum(gap[a, b] if gap[a, b] > 0 else math.exp(gap[a, b]) - 1 for b in rows)
            / len(rows)
            for a in rows
        }
        order = sorted(rows, key=lambda a: -energy[a])
        chosen = order if number < math.ceil(depth / 2) else order[: 2 * r]
        best = {a: max(chosen[1::2], key=lambda b, a=a: gap[a, b]) for a in chosen[::2]}
        merged = sorted(best, key=lambda a: -gap[a, best[a]])[:r]
        total = {a: size[a] * x[a] for a in range(tokens)}
        for a in merged:
            total[best[a]] = total[best[a]] + total.pop(a)
            size[best[a]] += size[a]
        x = torch.stack([total[a] / size[a] for a in total])
        size = [size[a] for a in total]
        x = x + block.mlp(block.norm2(x))
    return model.head(model.norm(x)[0])


@pytest.mark.parametrize("r", [1, 3, 5])
def test_energy_code_is_the_authors_code(r):
    """`energy: code` gives a plain restatement's logits; `paper` does not."""
    model, pictures = small("plain"), images(2)
    found = pitome.apply(model, Params(r=r, energy="code"))(pictures)
    torch.testing.assert_close(found, published(model, pictures, r), rtol=1e-4, atol=1e-5)
    assert not torch.allclose(pitome.apply(model, Params(r=r))(pictures), found, atol=1e-3)


def test_energy_code_sets_what_the_code_sets():
    """Margin and attention come with it unless given; `paper` is as nothing."""
    code = Params(r=2, energy="code")
    assert (code.margin, code.prop_attn) == (0.75, False)
    assert Params.model_validate_json(code.model_dump_json(), strict=True) == code
    own = Params(r=2, energy="code", margin=0.9, prop_attn=True)
    assert (own.margin, own.prop_attn) == (0.9, True)
    assert Params(r=2, energy="paper") == Params(r=2)
    assert (Params(r=2).margin, Params(r=2).prop_attn) == (0.9, True)
