"""Features of vision models: how alike two are, how far their tokens differ, and which tokens stand
for an image.
"""

from typing import Any

import pytest
import torch

from tests.workers.tiny_vits import small
from workers.kinds.accuracy import FeatureSimilarity, diversity, features
from workers.methods.vision import hquota


def test_diversity_by_hand() -> None:
    """Equal tokens 0, orthogonal 1, opposite 2; of a single token it is not known."""
    equal, orthogonal, opposite = (
        torch.tensor([[1.0, 0], [2, 0]]),
        torch.tensor([[1.0, 0], [0, 3]]),
        torch.tensor([[1.0, 0], [-1, 0]]),
    )
    assert diversity(torch.stack([equal, orthogonal, opposite])).tolist() == pytest.approx(
        [0, 1, 2], abs=1e-6
    )
    assert diversity(torch.ones(2, 1, 4)).isnan().all()


def test_cka_of_known_features() -> None:
    """1 for turned and scaled features, about 0 for unrelated ones; the angle is the angle."""
    torch.manual_seed(0)
    turned, common, right = FeatureSimilarity(), FeatureSimilarity(), FeatureSimilarity()
    rotation = torch.linalg.qr(torch.randn(8, 8, dtype=torch.double))[0]
    for _ in range(20):
        x = torch.randn(1, 32, 8, dtype=torch.double)
        turned.add(x, 3 * x @ rotation)
        common.add(x, torch.randn(1, 32, 8))
        right.add(x, torch.stack([-x[..., 1::2], x[..., ::2]], -1).flatten(-2))
    assert turned.cka == pytest.approx([1])
    assert common.cka == pytest.approx([0], abs=0.02)
    assert right.angles == pytest.approx([90])
    few = FeatureSimilarity()
    few.add(x[:, :3], x[:, :3])
    assert few.cka == []
    assert few.angles == pytest.approx([0], abs=1e-5)


@pytest.mark.parametrize("make", ["average", "eva", "eva02", "dinov3", "rope_mixed"])
@pytest.mark.parametrize("params", [{"r": 3}, {"r": 3, "place": "around"}])
def test_features_of_merged_tokens(make: str, params: dict[str, Any]) -> None:
    """Every block has a feature, whatever it passes on: sizes, places or groups."""
    model = hquota.apply(small(make), hquota.Params.model_validate(params))
    with torch.inference_mode(), features(model) as found:
        model(torch.randn(2, 3, 40, 40))
    (seen,) = found
    assert seen.blocks_LBD.shape == (4, 2, 48)
    assert seen.blocks_LBD.isfinite().all()
