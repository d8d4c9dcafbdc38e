"""Density peaks: the clusters of a case with known answer, the definition followed by loops, and what merging conserves."""

import math

import pytest
import torch

from tests.workers.small import calm
from workers.methods.dpcknn import assign, merge_clusters, squared_distances

calm = pytest.fixture(autouse=True)(calm)


def clusters_by_loops(x, count, neighbours):
    """The definition, token by token: centres in the order of density times peak distance, and the centre of each token."""
    n = len(x)
    distance = [[float((a - b).square().mean()) ** 0.5 for b in x] for a in x]
    nearest = min(neighbours, n - 1)
    others = [sorted(distance[i][j] ** 2 for j in range(n) if j != i) for i in range(n)]
    density = [math.exp(-sum(row[:nearest]) / nearest) for row in others]
    peak = [min((distance[i][j] for j in range(n) if density[j] > density[i]), default=max(distance[i])) for i in range(n)]
    centres = sorted(range(n), key=lambda i: -density[i] * peak[i])[:count]
    return [centres.index(i) if i in centres else min(range(count), key=lambda c: distance[i][centres[c]]) for i in range(n)]


@pytest.mark.parametrize(("count", "neighbours"), [(1, 5), (4, 3), (7, 2), (19, 50)])
def test_clusters_as_defined(count, neighbours):
    """Batched assignment gives every token the cluster that the definition gives it, image by image."""
    x = torch.randn(3, 20, 6, dtype=torch.float64)
    found = assign(squared_distances(x), torch.arange(count)[None], neighbours)
    assert found.tolist() == [clusters_by_loops(image.float(), count, neighbours) for image in x]


def test_finds_separate_groups():
    """Three well separated groups of different sizes are the three clusters."""
    group = torch.tensor([0] * 4 + [1] * 7 + [2] * 9)[torch.randperm(20)]
    x = (torch.eye(3)[group] * 50 + torch.randn(20, 3))[None]
    found = assign(squared_distances(x), torch.arange(3)[None], 3)[0]
    assert ((found[:, None] == found) == (group[:, None] == group)).all()


def test_merging_conserves():
    """Sizes keep their sum and tokens their weighted sum, prefix tokens stay, and every merged token is a mean of its cluster."""
    x, size = torch.randn(2, 23, 5), torch.randint(1, 5, (2, 23, 1)).float()
    size[:, :3] = 1
    out, sizes = merge_clusters(3, 6, 4, like=x)(x, size, None)
    assert out.shape == (2, 9, 5)
    assert torch.equal(sizes.sum(1), size.sum(1))
    torch.testing.assert_close((out * sizes).sum(1), (x * size).sum(1))
    assert torch.equal(out[:, :3], x[:, :3])
    patches = x[:, 3:]
    for image, result in zip(patches, out, strict=True):
        assert (result[3:] <= image.max(0).values + 1e-5).all()
        assert (result[3:] >= image.min(0).values - 1e-5).all()


def test_equal_tokens():
    """Where all tokens are the same no cluster is empty, so that nothing is divided by zero."""
    out, sizes = merge_clusters(1, 6, 5, like=torch.zeros(1))(torch.ones(2, 20, 4), None, None)
    assert torch.equal(out, torch.ones(2, 7, 4))
    assert sizes.min() >= 1
