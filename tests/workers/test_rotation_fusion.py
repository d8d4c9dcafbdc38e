"""Norms and rotations absorbed into weights: the same logits on every architecture, and nothing
done to the given model.
"""

import pytest
import torch
from torch import nn

from tests.workers.tiny_llms import ARCHITECTURES, ROTATABLE, VOCABULARY, tiny_llm
from workers.activation_sparsity.calibrate import random_rotations
from workers.activation_sparsity.rotation_fusion import UnitNorm, fuse, lay_out, shared
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


@pytest.mark.parametrize(
    ("architecture", "tied"),
    [*((name, False) for name in ROTATABLE), ("llama", True), ("gpt2", True)],
)
def test_absorbed_models_agree(architecture, tied):
    """Folded norms and rotations change no logit by 1e-4; tied heads are cloned."""
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


@pytest.mark.parametrize("architecture", [*ARCHITECTURES, "phi3", "mixtral"])
def test_laid_out_models_are_the_same(architecture):
    """Matrices stored [inputs, outputs] give the same logits, shared where stored so."""
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


def test_arms_share_what_is_made_once():
    """While an arm holds it the next gets the same model; nothing else keeps it."""
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
