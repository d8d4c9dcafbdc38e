"""Compiled merging of ToMe and hquota against tensor code, and where it cannot run."""

import copy

import pytest
import torch

from sweeps.geometry.vit_catalogue import networks
from sweeps.model.condition import Condition, Overrides
from sweeps.model.job import DENSE, Arm, Job, Pair, Protocol, Step
from tests.workers.tiny_vits import images, small
from workers.errors import Unsupported
from workers.methods import of_modality
from workers.models import cpp_build
from workers.run import run
from workers.token_reduction import token_ops
from workers.token_reduction.hquota_ops import farthest_first_numpy, merge_groups_torch
from workers.token_reduction.token_ops import (
    bipartite_match,
    bipartite_sets,
    merge_matched,
    merge_similar_cpp,
)

MISSING = cpp_build.missing_reason(token_ops.TOME_CPP)
compiled = pytest.mark.skipif(MISSING is not None, reason=f"no compiled kernel here: {MISSING}")


@compiled
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("sized", [False, True])
@pytest.mark.parametrize(
    ("batch", "tokens", "heads", "head_dim", "channels", "prefix", "r"),
    [
        (1, 197, 3, 64, 192, 1, 13),
        (3, 41, 2, 8, 20, 1, 20),
        (2, 26, 1, 5, 3, 2, 11),
        (2, 30, 4, 16, 7, 5, 12),
        (1, 3, 1, 4, 4, 1, 1),
        (1, 9, 1, 4, 4, 0, 0),
    ],
)
def test_compiled_merging_agrees_with_torch(  # noqa: PLR0917
    batch, tokens, heads, head_dim, channels, prefix, r, sized, threads
):
    """The same tokens in the same order, with the same sizes, whatever shape and strides."""
    torch.manual_seed(tokens)
    x = torch.randn(batch, tokens, channels)
    keys = torch.randn(batch, tokens, 3, heads, head_dim).permute(2, 0, 3, 1, 4)[1]
    sizes = torch.randint(1, 5, (batch, tokens, 1)).float() if sized else None
    before, used = x.clone(), torch.get_num_threads()
    expected, expected_sizes = merge_matched(
        x, sizes, bipartite_match(keys.sum(1), bipartite_sets(prefix, tokens, x.device), r)
    )
    torch.set_num_threads(threads)
    try:
        for layout in (keys, keys.mT.contiguous().mT):
            found, found_sizes = merge_similar_cpp(x, layout, sizes, prefix, r)
            torch.testing.assert_close(found, expected)
            torch.testing.assert_close(found_sizes, expected_sizes)
    finally:
        torch.set_num_threads(used)
    assert torch.equal(x, before)


@compiled
@pytest.mark.parametrize(
    ("prefix", "tokens", "kept", "hubs"),
    [(0, 2, 1, 1), (1, 30, 17, 1), (2, 197, 150, 45), (1, 64, 63, 63)],
)
@pytest.mark.parametrize("sized", [False, True])
def test_groups_are_those_of_torch(prefix, tokens, kept, hubs, sized):
    """Farthest-first places are equal, ties too, and merged tokens to rounding."""
    signature = torch.randint(0, 3, (5, tokens, 3)).float() + 0.1
    unit = torch.nn.functional.normalize(signature, dim=-1)
    likeness = unit @ unit.mT
    likeness.diagonal(dim1=1, dim2=2).fill_(float("inf"))
    first = torch.rand(5, tokens).topk(hubs).indices
    order = token_ops.farthest_first_cpp(likeness, first, kept)
    assert torch.equal(order, farthest_first_numpy(likeness, first, kept))
    order = torch.cat((torch.arange(prefix).expand(5, -1), order + prefix), 1)
    target = torch.randint(0, kept, (5, tokens - kept))
    x, size = (
        torch.randn(5, prefix + tokens, 19),
        torch.randint(1, 9, (5, prefix + tokens, 1)).float() if sized else None,
    )
    for found, expected in zip(
        token_ops.merge_groups_cpp(x, size, order, target, prefix),
        merge_groups_torch(x, size, order, target, prefix),
        strict=True,
    ):
        torch.testing.assert_close(found, expected)


@compiled
@pytest.mark.parametrize("name", ["plain", "registers"])
@pytest.mark.parametrize("example", range(len(of_modality("vision")["hquota"].EXAMPLES)))
def test_hquota_computes_the_same_with_compiled_code(name, example):
    """`implementation: native` gives torch's logits for all examples."""
    hquota, model, x = of_modality("vision")["hquota"], small(name), images(2)
    params = hquota.EXAMPLES[example]
    layers = (
        params.layers
        if isinstance(params.layers, str)
        else tuple(each for each in params.layers if each < len(model.blocks))
    )
    by_torch, natively = (
        hquota.apply(model, params.model_copy(update={"implementation": each, "layers": layers}))
        for each in ("torch", "native")
    )
    with torch.inference_mode():
        torch.testing.assert_close(natively(x), by_torch(x), rtol=0, atol=1e-5)


@compiled
@pytest.mark.parametrize(
    ("method", "own", "params", "implementation"),
    [
        ("tome", {}, {}, "native"),
        ("hquota", {}, {"implementation": "torch"}, "torch"),
        ("hquota", {}, {"implementation": "auto"}, "native"),
        ("tome", {"dtype": "bfloat16"}, {}, "torch"),
        ("tome", {"attention": "eager"}, {}, "native"),
    ],
)
def test_the_route_that_runs_is_recorded(method, own, params, implementation):
    """Compiled where it can be, and the outcome names what ran; dense has none."""
    requested = of_modality("vision")[method].Params(r=2, **params).model_dump(mode="json")
    arm = Arm(stack=(Step(method=method, params=requested),), overrides=Overrides(**own))
    protocol = Protocol(pairs_min=2, pairs_max=2, budget_s=0.01)
    condition = Condition(model="test_vit", image_size=64, threads=1)
    outcome = run(
        Job(condition=condition, arms=(DENSE, arm), pairs=(Pair(0, 1),), protocol=protocol),
        pass_seconds=0.01,
    )
    assert not outcome.failures
    assert [each.implementation for each in outcome.arms] == [None, implementation]


@pytest.mark.parametrize(
    ("own", "implementation"),
    [
        ({"device": "cuda"}, "triton"),
        ({"runtime": "compile"}, "torch"),
        ({"dtype": "autocast-float16"}, "torch"),
    ],
)
def test_where_the_compiled_route_cannot_run_auto_is_torch(own, implementation):
    """On a GPU, inside of compiled graphs and under autocast."""
    tome = of_modality("vision")["tome"]
    assert (
        tome.Params(r=2)
        .choose(Condition(model="test_vit", image_size=64, **own), networks()["test_vit"])
        .implementation
        == implementation
    )


@pytest.mark.parametrize(
    ("method", "params", "arm_id"),
    [
        ("dpcknn", {"keep_rate": 0.5}, "9341eae5349e1aea"),
        ("tome", {"r": 13}, "ceaec8eeec503b9f"),
        ("tome", {"r": 13, "implementation": "auto"}, "ceaec8eeec503b9f"),
        ("tome", {"r": 13, "implementation": "native"}, "f0a90dc4621b345b"),
        ("hquota", {"r": 13}, "47d18a1f38725c0b"),
        ("hquota", {"r": 13, "implementation": "auto"}, "47d18a1f38725c0b"),
    ],
)
def test_the_automatic_choice_is_the_default(method, params, arm_id):
    """Golden: not given and `auto` are one arm, and what is not named has its default."""
    requested = of_modality("vision")[method].Params(**params).model_dump(mode="json")
    assert Arm(stack=(Step(method=method, params=requested),)).arm_id == arm_id


@compiled
def test_order_is_whole_where_likeness_is_not_a_number():
    """Places stay inside of the tensor where tokens are not numbers."""
    order = token_ops.farthest_first_cpp(
        torch.full((2, 6, 6), float("nan")), torch.zeros(2, 1, dtype=torch.int64), 3
    )
    assert order.min() >= 0
    assert order.max() < 6


@compiled
def test_other_types_are_refused():
    """Half precision is refused before anything runs, and where autocast introduces it later."""
    tome = of_modality("vision")["tome"]
    with pytest.raises(
        Unsupported,
        match=(
            r"native cannot run here: the compiled kernel takes float32 on a CPU, not"
            r" torch\.bfloat16"
        ),
    ):
        tome.apply(
            copy.deepcopy(small("plain")).bfloat16(), tome.Params(r=3, implementation="native")
        )
    with pytest.raises(Unsupported, match=r"not torch\.float16 on cpu"):
        merge_similar_cpp(torch.randn(1, 5, 4), torch.randn(1, 1, 5, 4).half(), None, 1, 1)
