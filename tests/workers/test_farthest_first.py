"""Farthest-first selection: a known answer, the plainest code, and its guarantee."""

import pytest
import torch

from tests.workers.tiny_vits import calm
from workers.token_reduction.hquota_ops import farthest_first

calm = pytest.fixture(autouse=True)(calm)


def similarity(points):
    """Cosines of points [B, N, H] with an infinite diagonal."""
    unit = torch.nn.functional.normalize(points, dim=-1)
    cosines = unit @ unit.mT
    cosines.diagonal(dim1=1, dim2=2).fill_(float("inf"))
    return cosines


def on_a_circle(*degrees):
    """Points of one image at these angles."""
    angle = torch.tensor(degrees).deg2rad()
    return torch.stack((angle.cos(), angle.sin()), -1)[None]


def test_known_answer():
    """On a quarter circle: the other end, the middle, then what is farthest off."""
    near = similarity(on_a_circle(0.0, 10.0, 25.0, 50.0, 90.0))
    assert farthest_first(near, torch.tensor([[0]]), 4).tolist() == [[0, 4, 3, 2, 1]]
    assert farthest_first(near, torch.tensor([[3]]), 3).tolist()[0][:3] == [3, 0, 4]
    assert farthest_first(near, torch.tensor([[4, 1]]), 4).tolist()[0][:4] == [4, 1, 3, 2]
    assert farthest_first(near, torch.tensor([[2, 1]]), 2).tolist()[0][:2] == [2, 1]


def test_each_step_maximises_the_least_distance():
    """Each token chosen is as far from those before as any is, by loops over all distances."""
    points = torch.randn(3, 40, 6)
    order = farthest_first(similarity(points), torch.tensor([[7, 2], [0, 39], [5, 6]]), 25)
    for image, chosen in zip(
        torch.nn.functional.normalize(points, dim=-1), order.tolist(), strict=True
    ):
        apart = torch.cdist(image, image)
        for step in range(2, 25):
            least = [
                min(float(apart[place, other]) for other in chosen[:step]) for place in range(40)
            ]
            assert least[chosen[step]] == pytest.approx(max(least), abs=1e-3)
        assert sorted(chosen) == list(range(40))
