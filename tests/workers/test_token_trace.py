"""Tokens, images and MACs as hooks see them on real forwards."""

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from sweeps.model.condition import Condition, Overrides
from sweeps.model.job import DENSE, Arm, Step
from sweeps.model.method import BlockTokens
from tests.workers.tiny_vits import MAKES, SIZE, calm, images, small, small_network
from workers.arms.vision import build_vision
from workers.models.runtime import Trace, count_forwards, trace
from workers.models.vision import VisionModel, load_vision

calm = pytest.fixture(autouse=True)(calm)


def built(arm=DENSE, make="plain"):
    return build_vision(
        VisionModel(small(make), small_network(make)), Condition(model=make, image_size=SIZE), arm
    )


@pytest.mark.parametrize("make", MAKES)
def test_the_unmodified_model_keeps_its_tokens(make):
    """The trace of the unmodified model is what its geometry gives."""
    model = built(make=make)
    dense = small_network(make).dense_tokens(SIZE)
    assert trace(model, images(3)) == Trace(batch=3, blocks=dense, final=dense[-1].mlp)


@pytest.mark.parametrize("make", MAKES)
def test_analytic_macs_of_every_make(make):
    """The analytic MACs of the unmodified model are an independent counter's, to 0.1 %."""
    with FlopCounterMode(display=False) as counter:
        built(Arm(overrides=Overrides(attention="eager")), make)(images(1))
    network = small_network(make)
    assert counter.get_total_flops() / 2 == pytest.approx(
        network.macs(SIZE, network.dense_tokens(SIZE)), rel=1e-3
    )


@pytest.mark.parametrize(
    ("size", "keep_rate", "gmacs"),
    [(224, 1, 17.56), (448, 1, 78.50), (224, 0.1, 5.552), (448, 0.1, 24.727)],
)
def test_published_macs_of_a_real_model(size, keep_rate, gmacs):
    """DeiT-B on the meta device sees the tokens and takes the MACs that were published, by the
    counter and by the formula.
    """
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


def test_hooks_are_gone_afterwards():
    """Tracing and counting leave no hook behind, not even when the forward fails."""
    model = built()
    trace(model, images())
    with pytest.raises(AssertionError):
        trace(model, images(1, SIZE + 8))
    with count_forwards(model):
        pass
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in model.modules())


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
    """The count has the forwards and images of this arm, and none of another arm's that runs in
    between.
    """
    model, other = built(Arm(stack=stack)), built()
    with count_forwards(model) as seen:
        for batch in (1, 2, 3):
            model(images(batch))
            other(images(batch))
    model(images())
    assert (seen.forwards, seen.images) == (3, 6)


def test_a_compiled_arm_is_traced_and_counted(monkeypatch):
    """A compiled arm is traced through the model that was compiled, and its calls are counted."""
    compile_ = torch.compile
    monkeypatch.setattr(
        torch, "compile", lambda *args, **kwargs: compile_(*args, backend="eager", **kwargs)
    )
    model = built(
        Arm(stack=(Step(method="tome", params={"r": 2}),), overrides=Overrides(runtime="compile"))
    )
    assert trace(model, images()).blocks == (
        BlockTokens(26, 24),
        BlockTokens(24, 22),
        BlockTokens(22, 20),
        BlockTokens(20, 18),
    )
    with count_forwards(model) as seen:
        model(images(2))
        model(images(2))
    assert (seen.forwards, seen.images) == (2, 4)
