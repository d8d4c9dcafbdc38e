"""Norms and rotations absorbed into weights: the same logits on every architecture, and nothing
done to the given model.
"""

import pytest
import torch
from torch import nn

from tests.workers.tiny_llms import CONFIGS, ROTATABLE, VOCABULARY, tiny_llm
from workers.activation_sparsity.calibrate import random_rotations
from workers.activation_sparsity.rotation_fusion import UnitNorm, fuse, lay_out, shared
from workers.errors import Unsupported
from workers.models import architectures
from workers.models.architectures import module_names, with_single_experts
from workers.models.share_weights import clone_shared

IDS = torch.randint(VOCABULARY, (2, 24), generator=torch.Generator().manual_seed(0))


def uneven(architecture, **more):
    """A model whose norms have gains and shifts, and whose stream has a mean."""
    lm = tiny_llm(architecture, **more)
    model, generator = clone_shared(lm.model), torch.Generator().manual_seed(1)
    for module in model.modules():
        if "Norm" in type(module).__name__:
            for name, parameter in module.named_parameters(recurse=False):
                changed = parameter.detach() + 0.5 * torch.randn(
                    parameter.shape, generator=generator
                )
                setattr(module, name, nn.Parameter(changed, requires_grad=False))
        if isinstance(module, nn.Embedding):
            module.weight = nn.Parameter(module.weight.detach() + 0.3, requires_grad=False)
    if model.config.tie_word_embeddings:
        model.tie_weights()
    return lm, model


def logits(model):
    with torch.inference_mode():
        return model(IDS).logits


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("architecture", ROTATABLE)
def test_absorbed_models_agree(architecture, tied):
    """Folded norms alone, and rotations with adapters, change no logit by 1e-4; tied heads are
    cloned; the given model stays.
    """
    lm, model = uneven(architecture, tie_word_embeddings=tied)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    wanted = logits(model)
    assert wanted.std() > 0.1
    for rotations in (None, random_rotations(lm.network)):
        absorbed = fuse(model, lm.network, rotations)
        assert (logits(absorbed) - wanted).abs().max() < 1e-4
        parts = module_names(lm.model)
        head = absorbed.get_submodule(parts.head)
        assert (
            head.weight.data_ptr() != absorbed.get_submodule(parts.embeddings[0]).weight.data_ptr()
        )
        for layer in architectures.layers(absorbed, parts):
            assert all(isinstance(layer.get_submodule(name), UnitNorm) for name in parts.norms)
    assert torch.equal(logits(model), wanted)
    assert before
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())


@pytest.mark.parametrize("architecture", ROTATABLE)
def test_first_and_last_rotation_need_no_adapter(architecture):
    """There is an adapter between any two layers, orthogonal, and none before the first layer or
    behind the last.
    """
    lm = tiny_llm(architecture)
    turns = random_rotations(lm.network)
    absorbed = fuse(lm.model, lm.network, turns)
    *between, last = architectures.layers(absorbed, module_names(lm.model))
    assert len(between) == lm.network.layers - 1
    assert not hasattr(last, "adapter")
    for layer, turn_DD, next_DD in zip(between, turns, turns[1:], strict=False):
        found_DD = architectures.matrix_and_bias(layer.adapter)[0]
        assert torch.allclose(found_DD, turn_DD.T @ next_DD, atol=1e-5)
        assert torch.allclose(found_DD @ found_DD.T, torch.eye(lm.network.width), atol=1e-5)


def test_rotation_changes_what_the_layers_read():
    """The matrices read the stream in the layer's own basis: the rotated model's inputs are the
    folded model's, rotated.
    """
    lm, model = uneven("phi")
    turns, read = random_rotations(lm.network), {}
    for name, absorbed in {
        "folded": fuse(model, lm.network, None),
        "rotated": fuse(model, lm.network, turns),
    }.items():
        for index, layer in enumerate(architectures.layers(absorbed, module_names(lm.model))):
            place = layer.get_submodule("mlp.fc1")
            place.register_forward_pre_hook(
                lambda _, given, key=(name, index): read.__setitem__(key, given[0])
            )
        logits(absorbed)
    for index, turn_DD in enumerate(turns):
        assert torch.allclose(read["rotated", index], read["folded", index] @ turn_DD, atol=1e-4)
        assert not torch.allclose(read["rotated", index], read["folded", index], atol=0.1)


@pytest.mark.parametrize("architecture", CONFIGS)
def test_laid_out_models_are_the_same(architecture):
    """Matrices stored [inputs, outputs] give the same logits; where they are stored so already,
    memory is shared.
    """
    lm = tiny_llm(architecture)
    parts, given = module_names(lm.model), with_single_experts(clone_shared(lm.model))
    made = lay_out(lm.model)
    assert (logits(made) - logits(lm.model)).abs().max() < 1e-5
    for before, after in zip(
        *(architectures.layers(model, parts) for model in (given, made)), strict=True
    ):
        for names in parts.readers:
            for name in names:
                old, new = (
                    architectures.matrix_and_bias(layer.get_submodule(name))[0]
                    for layer in (before, after)
                )
                assert new.is_contiguous()
                assert torch.equal(old, new)
                assert (old.data_ptr() == new.data_ptr()) is (architecture == "gpt2")


def test_half_precision_is_absorbed_in_double():
    """bfloat16 weights stay so, and logits stay as near to the model's as rounding lets them."""
    lm = tiny_llm("llama", torch.bfloat16)
    absorbed = fuse(lm.model, lm.network, random_rotations(lm.network))
    assert {parameter.dtype for parameter in absorbed.parameters()} == {torch.bfloat16}
    wanted = logits(lm.model).float()
    assert (logits(absorbed).float() - wanted).abs().mean() < 0.05 * wanted.abs().mean()


def test_arms_share_what_is_made_once():
    """While one arm holds it, the next gets the same model; another recipe has its own; and nothing
    else keeps it.
    """
    lm, calls = tiny_llm("llama"), []

    def make():
        calls.append(1)
        return clone_shared(lm.model)

    first = shared(lm, "a", make)
    assert shared(lm, "a", make) is first
    assert shared(lm, "b", make) is not first
    del first
    assert shared(lm, "a", make) is not None
    assert len(calls) == 3


def test_unknown_matrices_are_refused():
    """A matrix that another method has replaced is named."""
    with pytest.raises(
        Unsupported, match="a matrix is a Bilinear, which this method cannot change"
    ):
        architectures.matrix_and_bias(nn.Bilinear(2, 2, 2))
