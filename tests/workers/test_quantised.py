"""Linear layers with integer weights: products against dequantised ones, and models of them."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from sweeps.model.condition import Condition, Dtype, Overrides
from sweeps.model.job import Arm, Protocol, Step
from tests.workers.saved_llm import saved, written
from tests.workers.tiny_llms import tiny_llm
from tests.workers.vision_jobs import compared
from workers import methods
from workers.arms.language import build_language
from workers.errors import Unsupported
from workers.models.language import MacCounter, shared_language
from workers.models.quantised import (
    GROUP,
    LAYERS,
    MAX_PACKED_TOKENS,
    Int8Linear,
    QuantisedLinear,
    bytes_per_weight,
    integer_weights,
    quantise,
    quantised_layers,
)
from workers.models.share_weights import clone_shared
from workers.run import run

BOTH: tuple[Dtype, ...] = ("int8", "int4")


def dequantised(layer: QuantisedLinear, integer_OI: Tensor) -> Tensor:
    """The float32 matrix that the integers and scales stand for."""
    if isinstance(layer, Int8Linear):
        return integer_OI.float() * layer.scales.float()[:, None]
    scale_OG, offset_OG = layer.scales.float().transpose(0, 1).unbind(-1)
    wide_OI = (t.repeat_interleave(GROUP, 1) for t in (scale_OG, offset_OG))
    scale_OI, offset_OI = (t[: layer.out_features] for t in wide_OI)
    return (integer_OI - 8) * scale_OI + offset_OI


def integers(layer: QuantisedLinear, weight_OI: Tensor) -> Tensor:
    """Those of int4 are packed: they are computed again from scales and offsets."""
    if isinstance(layer, Int8Linear):
        return layer.values
    scale_OG, offset_OG = layer.scales.float().transpose(0, 1).unbind(-1)
    wide_OI = (t.repeat_interleave(GROUP, 1) for t in (scale_OG, offset_OG))
    scale_OI, offset_OI = (t[: layer.out_features] for t in wide_OI)
    return ((weight_OI - offset_OI) / scale_OI).round().clamp(-8, 7) + 8


@pytest.mark.parametrize("tokens", [1, 3, MAX_PACKED_TOKENS, MAX_PACKED_TOKENS + 1])
@pytest.mark.parametrize("outputs", [37, 96])
@pytest.mark.parametrize("dtype", BOTH)
def test_products_are_those_of_dequantised_weights(dtype: Dtype, outputs: int, tokens: int) -> None:
    """Up to the rounding of bfloat16: of the result twice, of the bias, and of each sum's terms."""
    torch.manual_seed(tokens)
    weight_OI, bias_O = torch.randn(outputs, 192) * 0.1, torch.randn(outputs).bfloat16()
    weight_OI[3], weight_OI[5] = 0.0, 0.07  # no range to divide by
    x = torch.randn(2, tokens, 192).bfloat16()
    layer = LAYERS[dtype](weight_OI, bias_O)
    meant_OI = dequantised(layer, integers(layer, weight_OI))
    with torch.inference_mode():
        found = layer(x).float()
    wanted = x.float() @ meant_OI.t() + bias_O.float()
    terms = x.float().abs() @ meant_OI.abs().t() + bias_O.float().abs()
    assert found.shape == wanted.shape
    assert ((found - wanted).abs() <= 2**-8 * (2 * wanted.abs() + 0.25 * terms) + 1e-6).all()


@pytest.mark.parametrize(("dtype", "steps"), [("int8", 127), ("int4", 7.5)])
def test_weights_are_within_half_a_step(dtype: Dtype, steps: float) -> None:
    weight_OI = torch.randn(64, 128)
    layer = LAYERS[dtype](weight_OI, None)
    error_OI = (dequantised(layer, integers(layer, weight_OI)) - weight_OI).abs()
    groups = 1 if dtype == "int8" else 128 // GROUP
    most_OG = weight_OI.abs().view(64, groups, -1).amax(-1)
    # scales and offsets are rounded to eight bits
    bound_OG = most_OG * (0.5 / steps + 2**-8 * (1 if dtype == "int8" else 2))
    assert (error_OI.view(64, groups, -1) <= bound_OG[..., None]).all()


@pytest.mark.parametrize("architecture", ["gpt2", "phi3"])
@pytest.mark.parametrize("dtype", BOTH)
def test_models(dtype: Dtype, architecture: str) -> None:
    """All matrices become integers, a tied embedding stays; counts and answers are as before."""
    lm = tiny_llm(architecture, torch.bfloat16, tie_word_embeddings=True)
    model: Any = clone_shared(lm.model)
    embedding = model.get_input_embeddings().weight
    quantise(model, dtype)
    assert model.get_input_embeddings().weight is embedding
    assert isinstance(model.get_output_embeddings(), LAYERS[dtype])
    held = sum(part.in_features * part.out_features for part in quantised_layers(model))
    assert held == lm.network.token_macs
    kept = sum(parameter.numel() for parameter in model.parameters())
    assert kept + integer_weights(model) >= sum(each.numel() for each in lm.model.parameters())
    read = {"int8": 1 + 2 * sum(part.out_features for part in quantised_layers(model)) / held}
    assert bytes_per_weight(model) == pytest.approx(read.get(dtype, 0.5 + 4 / GROUP))
    assert MacCounter(model).macs(20, 9) == lm.network.macs(20, 9)
    tokens_BT = torch.arange(2, 60)[None]
    with torch.inference_mode():
        plain, other = (
            made(tokens_BT).logits.float().log_softmax(-1) for made in (lm.model, model)
        )
    kl = (plain.exp() * (plain - other)).sum(-1).mean()
    assert 0 < kl < {"int8": 0.01, "int4": 0.3}[dtype]


def test_what_would_stay_bfloat16_is_refused() -> None:
    """Experts lie in one tensor each kind; int4 needs whole groups."""
    model = clone_shared(tiny_llm("mixtral", torch.bfloat16).model)
    with pytest.raises(Unsupported, match=r"experts\.gate_up_proj belongs to no linear layer"):
        quantise(model, "int8")
    with pytest.raises(Unsupported, match="48 inputs are no multiple of 32"):
        quantise(nn.Sequential(nn.Linear(48, 32)), "int4")


def test_jobs(tmp_path: Path) -> None:
    """Perplexity stands beside bfloat16's; bytes read are those of the integers."""
    place = {
        "model": str(saved(tmp_path / "model", max_position_embeddings=1024)),
        "data": written(tmp_path / "text"),
    }
    arms = tuple(Arm(overrides=Overrides(dtype=each)) for each in ("bfloat16", *BOTH))
    point = Condition(threads=1, weights="pretrained", **place)
    outcome = run(compared("quality", point, *arms))
    assert not outcome.failures
    dense, *found = [{each.name: each.value for each in arm.metrics} for arm in outcome.arms]
    for one, most in zip(found, (0.01, 0.05), strict=True):
        assert one["perplexity"] == pytest.approx(dense["perplexity"], rel=most)
        assert one["perplexity"] != dense["perplexity"]
    sizes = {"prompt_tokens": 16, "new_tokens": 6}
    protocol = Protocol(pairs_min=5, pairs_max=5)
    job = compared("generation", point.model_copy(update=sizes), *arms, protocol=protocol)
    outcome = run(job, pass_seconds=0.05, isolated=False)
    assert not outcome.failures
    assert len({arm.gmacs for arm in outcome.arms}) == 1
    assert len({arm.parameters for arm in outcome.arms}) == 1
    rows = [{each.name: each.value for each in arm.metrics} for arm in outcome.arms]
    moved = [row["achieved_gb_per_s"] * row["tpot"] for row in rows]
    layers = quantised_layers(shared_language(arms[2].condition(point), {}).model)
    held = sum(part.in_features * part.out_features for part in layers)
    assert moved[2] / moved[0] == pytest.approx((0.5 + 4 / GROUP) / 2, rel=0.05)
    assert moved[2] == pytest.approx(held * 0.625e-6, rel=0.05)


@pytest.mark.parametrize("method", ["teal", "adaptivocab"])
def test_methods_that_change_weights_are_refused(tmp_path: Path, method: str) -> None:
    known = methods.all_methods()[method]
    params = known.EXAMPLES[0].model_dump(mode="json")
    step = Step(method=method, version=known.VERSION, params=params)
    point = Condition(model=str(saved(tmp_path / "model")), weights="pretrained", dtype="int8")
    with pytest.raises(Unsupported, match=f"{method} cannot run with dtype int8: it changes weig"):
        build_language(point, Arm(stack=(step,)), {})
