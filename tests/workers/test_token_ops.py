"""Scores, selection, matching and merging against the plainest code that does the same."""

import pytest
import torch

from tests.workers.tiny_vits import calm
from workers.token_reduction.patch_vit import AttentionState
from workers.token_reduction.token_ops import (
    bipartite_match,
    bipartite_sets,
    class_token_attention,
    merge_matched,
    select,
)

calm = pytest.fixture(autouse=True)(calm)


def merged_by_loops(x, size, metric, prefix, r):
    """Token merging of one image as section 3 of the paper describes it, pair by pair: lists of
    tokens and of sizes.
    """
    unit = [row / row.norm() for row in metric]
    places = range(prefix, len(x))
    a, b = ([place for place in places if place % 2 == parity] for parity in (0, 1))
    best = {
        source: max((float(unit[source] @ unit[target]), target) for target in b) for source in a
    }
    gone = sorted(a, key=lambda source: -best[source][0])[:r]
    parts = {
        place: [place] for place in (*range(prefix), *(each for each in a if each not in gone), *b)
    }
    for source in gone:
        parts[best[source][1]].append(source)
    sizes = [sum(size[each] for each in group) for group in parts.values()]
    tokens = [
        sum(x[each] * size[each] for each in group) / total
        for group, total in zip(parts.values(), sizes, strict=True)
    ]
    return torch.stack(tokens), torch.stack(sizes)


@pytest.mark.parametrize("prefix", [0, 1, 2, 5])
@pytest.mark.parametrize("tokens", [20, 21])
def test_merges_as_in_the_paper(prefix, tokens):
    """Batched matching and merging do what loops over tokens do, sizes carried on."""
    x, metric = torch.randn(3, tokens, 4), torch.randn(3, tokens, 8)
    size, plain = None, torch.ones(3, tokens, 1)
    for r in (1, (tokens - prefix - 1) // 2):
        expected = [
            merged_by_loops(*each, prefix, r) for each in zip(x, plain, metric, strict=True)
        ]
        x, size = merge_matched(
            x, size, bipartite_match(metric, bipartite_sets(prefix, x.shape[1], x.device), r)
        )
        plain = torch.stack([sizes for _, sizes in expected])
        torch.testing.assert_close(x, torch.stack([each for each, _ in expected]))
        torch.testing.assert_close(size, plain)
        assert torch.equal(size.sum(1), torch.full((3, 1), tokens))
        metric = torch.randn(3, x.shape[1], 8)


def test_scores_are_a_row_of_the_attention_matrix():
    """The class token's row, computed alone, is the first row of the whole matrix."""
    q, k = torch.randn(2, 3, 3, 11, 8).unbind(0)
    whole = (q @ k.mT * 0.3).softmax(-1)
    torch.testing.assert_close(
        class_token_attention(AttentionState(q, k, None, 0.3, k, k, k)), whole[:, :, 0]
    )


@pytest.mark.parametrize("batch", [1, 4])
def test_selects_in_the_order_of_the_index(batch):
    """Each image gives the tokens that its own row of the index names, also from a strided view."""
    x = torch.randn(batch, 30, 5)[:, ::2]
    index = torch.stack([torch.randperm(15)[:6] for _ in range(batch)])
    expected = torch.stack(
        [torch.stack([image[place] for place in row]) for image, row in zip(x, index, strict=True)]
    )
    assert torch.equal(select(x, index), expected)
