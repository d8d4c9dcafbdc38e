"""Density peaks: the clusters of a case with known answer, the definition followed by loops, and
what merging conserves.
"""

import math

import pytest
import torch

from sweeps.geometry.vit_catalogue import networks
from tests.workers.tiny_vits import calm, images, small
from workers.methods import of_modality
from workers.methods.vision.dpcknn import assign, merge_clusters, squared_distances
from workers.token_reduction.patch_vit import AttentionState

calm = pytest.fixture(autouse=True)(calm)
PLACELESS = AttentionState(*[torch.empty(0)] * 3, 1.0, *[torch.empty(0)] * 3)


def clusters_by_loops(x, count, neighbours, *, own):
    """The definition, token by token: centres in the order of density times peak distance, and the
    centre of each token; with `own`, as in TCFormer's code, a token is a neighbour of itself.
    """
    n = len(x)
    distance = [[float((a - b).square().mean()) ** 0.5 for b in x] for a in x]
    nearest = min(neighbours, n - (not own))
    squares = [sorted(distance[i][j] ** 2 for j in range(n) if own or j != i) for i in range(n)]
    density = [math.exp(-sum(row[:nearest]) / nearest) for row in squares]
    largest = max(map(max, distance))
    peak = [
        min(
            (distance[i][j] for j in range(n) if density[j] > density[i]),
            default=largest if own else max(distance[i]),
        )
        for i in range(n)
    ]
    centres = sorted(range(n), key=lambda i: -density[i] * peak[i])[:count]
    return [
        centres.index(i)
        if i in centres
        else min(range(count), key=lambda c: distance[i][centres[c]])
        for i in range(n)
    ]


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize(("count", "neighbours"), [(1, 5), (4, 3), (7, 4), (10, 5), (19, 50)])
def test_clusters_as_defined(count, neighbours, own):
    """Batched assignment gives the clusters of the definition, and of the authors' code."""
    x = torch.randn(4, 20, 6, dtype=torch.float64)
    found, _ = assign(squared_distances(x), torch.arange(count)[None], neighbours, own=own)
    assert found.tolist() == [
        clusters_by_loops(image.float(), count, neighbours, own=own) for image in x
    ]


def test_merging_conserves():
    """Sizes and weighted sums are kept, prefixes stay, merged tokens are means of their cluster."""
    x, size = torch.randn(2, 23, 5), torch.randint(1, 5, (2, 23, 1)).float()
    size[:, :3] = 1
    out, sizes, _ = merge_clusters(3, 6, 4, like=x)(x, size, PLACELESS)
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
    equal = merge_clusters(1, 6, 5, like=torch.zeros(1))
    out, sizes, _ = equal(torch.ones(2, 20, 4), None, PLACELESS)
    assert torch.equal(out, torch.ones(2, 7, 4))
    assert sizes.min() >= 1


def test_the_authors_counts_and_means():
    """`counts: image` rounds down shares of all tokens; `means: plain` carries no sizes."""
    dpcknn = of_modality("vision")["dpcknn"]
    network = networks()["deit_small_patch16_224"]
    ours = dpcknn.Params(keep_rate=0.7)
    theirs = dpcknn.Params(keep_rate=0.7, counts="image", means="plain", prop_attn=False)
    assert list(ours.left(12, 196).values()) == [138, 97, 68]
    assert list(theirs.left(12, 196).values()) == [137, 96, 67]
    assert dpcknn.tokens(theirs, network, 224)[-1].mlp == 68
    with pytest.raises(ValueError, match="prop_attn: false"):
        dpcknn.Params(keep_rate=0.7, means="plain")
    x, size = torch.randn(2, 21, 8), torch.randint(1, 9, (2, 21, 1)).float()
    plain = dpcknn.merge_clusters(1, 5, 5, like=x, sized=False)
    merged, sizes, _ = plain(x, None, PLACELESS)
    assert sizes is None
    sized = dpcknn.merge_clusters(1, 5, 5, like=x)
    counted, counts, _ = sized(x, torch.ones_like(size), PLACELESS)
    torch.testing.assert_close(merged, counted)
    assert counts.sum() == 42


def test_density_of_the_code_differs_and_reaches_the_model():
    """The authors' density makes other clusters than the papers', in the method as well."""
    dpcknn, pictures = of_modality("vision")["dpcknn"], images(16)
    ours, theirs = (
        dpcknn.apply(
            small("plain"), dpcknn.Params(keep_rate=0.4, layers=(1,), neighbours=3, density=density)
        )(pictures)
        for density in (None, "code")
    )
    assert not torch.allclose(ours, theirs, atol=1e-4)
    with pytest.raises(ValueError, match="neighbours"):
        dpcknn.Params(keep_rate=0.4, neighbours=1, density="code")
