"""Tokens, images and MACs as hooks see them on real forwards."""

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from sweeps.model.condition import Condition
from sweeps.model.job import DENSE, Arm, Step
from tests.workers.tiny_vits import SIZE, calm, images, small, small_network
from workers.arms.vision import build_vision
from workers.models.runtime import count_forwards, trace
from workers.models.vision import VisionModel, load_vision

calm = pytest.fixture(autouse=True)(calm)


def built(arm=DENSE, make="plain"):
    return build_vision(
        VisionModel(small(make), small_network(make)), Condition(model=make, image_size=SIZE), arm
    )


@pytest.mark.parametrize(
    ("size", "keep_rate", "gmacs"),
    [(224, 1, 17.56), (448, 1, 78.50), (224, 0.1, 5.552), (448, 0.1, 24.727)],
)
def test_published_macs_of_a_real_model(size, keep_rate, gmacs):
    """DeiT-B takes the MACs that were published, by the counter and by the formula."""
    condition = Condition(model="deit_base_patch16_224", image_size=size, attention="eager")
    with torch.device("meta"):
        loaded = load_vision(condition, torch.device("meta"))
        model = build_vision(
            loaded, condition, Arm(stack=(Step(method="topk", params={"keep_rate": keep_rate}),))
        )
        x = torch.empty(1, 3, size, size)
    seen = trace(model, x)
    with FlopCounterMode(display=False) as counter:
        model(x)
    analytic = loaded.network.macs(size, seen.blocks, seen.final) / 1e9
    assert round(analytic, 2 if keep_rate == 1 else 3) == gmacs
    assert counter.get_total_flops() / 2e9 == pytest.approx(analytic, rel=1e-3)


def test_a_block_that_runs_twice_is_an_error():
    """A model whose blocks do not each run once has no trace."""
    model = built()
    model.blocks.append(model.blocks[0])
    with pytest.raises(ValueError, match="each must run once"):
        trace(model, images())
    with pytest.raises(ValueError, match="has no `blocks`"):
        trace(nn.Linear(1, 1), torch.zeros(1))


@pytest.mark.parametrize(
    "stack",
    [
        (),
        (Step(method="tome", params={"r": 2}),),
        (Step(method="slowed", params={"fraction": 0.01}),),
    ],
)
def test_counts_its_own_forwards_only(stack):
    """Forwards and images of this arm, and none of another's in between."""
    model, other = built(Arm(stack=stack)), built()
    with count_forwards(model) as seen:
        for batch in (1, 2, 3):
            model(images(batch))
            other(images(batch))
    model(images())
    assert (seen.forwards, seen.images) == (3, 6)
