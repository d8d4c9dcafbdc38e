"""Rotates the residual stream of a language model by changing its weights, so that what the layers read is in another basis.

Norm gains (and, where a LayerNorm is made an RMSNorm, its mean and bias) go into the matrices around it, as in SliceGPT (Ashkboos
et al., ICLR 2024, arXiv 2401.15024, section 3); then each layer's rotation goes into them too, and between two layers the stream
passes an adapter (LaRoSA, Liu et al., ICML 2025, arXiv 2507.01299, section 4).

Shapes: D width of the stream, I inputs, O outputs, V rows of an embedding. The stream is a row vector h; layer l works on h Q_l.
"""

import weakref
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from sweeps.geometry.llm_geometry import LanguageNetwork
from workers.models import architectures
from workers.models.architectures import ANATOMIES, Anatomy
from workers.models.language import LanguageModel
from workers.models.share_weights import clone_shared

EXACT = torch.float64
"""What weights are folded and rotated in."""


class UnitNorm(nn.Module):
    """RMSNorm without a gain: it commutes with any rotation."""

    def __init__(self, eps: float) -> None:
        super().__init__()
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.rms_norm(x.float(), x.shape[-1:], eps=self.eps).to(x.dtype)


class _Norm:
    """A norm as an RMSNorm without gain, and what the matrices that read it must make up for."""

    def __init__(self, norm: Any) -> None:
        self.centred = isinstance(norm, nn.LayerNorm)
        self.eps = float(norm.eps if self.centred else norm.variance_epsilon)
        self.gain_D = norm.weight.detach().to(EXACT)
        self.shift_D = norm.bias.detach().to(EXACT) if self.centred else None

    def read_by(self, module: nn.Module, rotation_DD: Tensor | None) -> nn.Linear:
        """The matrix that reads the plain RMSNorm of the rotated stream as `module` reads this norm of the stream."""
        weight_IO = architectures.matrix(module)
        bias_O = architectures.offset(module)
        exact_IO = weight_IO.to(EXACT)
        if self.shift_D is not None:
            shift_O = self.shift_D @ exact_IO
            bias_O = (shift_O if bias_O is None else shift_O + bias_O).to(weight_IO.dtype)
        exact_IO = exact_IO * self.gain_D[:, None]
        if rotation_DD is not None:
            exact_IO = rotation_DD.T @ exact_IO
        return architectures.linear(exact_IO.to(weight_IO.dtype).contiguous(), bias_O)


def absorb(model: nn.Module, network: LanguageNetwork, rotations: Sequence[Tensor] | None) -> nn.Module:
    """A copy of `model` that computes the same with unit norms, each layer's stream rotated by its own orthogonal [D, D] matrix.

    `rotations` is `None` for the norms alone. All of its matrices lie in memory as [inputs, outputs]; the head is untied.
    """
    parts = ANATOMIES[network.architecture]
    made = clone_shared(model)
    norms = [[_Norm(layer.get_submodule(name)) for name in parts.norms] for layer in architectures.layers(made, parts)]
    final = _Norm(made.get_submodule(parts.final_norm))
    exact = [] if rotations is None else [turn_DD.to(EXACT) for turn_DD in rotations]
    turns: Sequence[Tensor | None] = exact or [None] * network.layers

    replace = architectures.replace
    head = final.read_by(made.get_submodule(parts.head), turns[-1])
    for name in parts.embeddings:
        embedding: Any = made.get_submodule(name)
        written_VD = _written(embedding.weight.detach(), centred=final.centred, rotation_DD=turns[0])
        embedding.weight = nn.Parameter(written_VD, requires_grad=False)
    for layer, before, turn_DD in zip(architectures.layers(made, parts), norms, turns, strict=True):
        reading, writing = (parts.readers[0], parts.readers[2]), (*parts.readers[1], *parts.readers[3])
        for names, norm in zip(reading, (before[0], before[-1]), strict=True):
            for name in names:
                replace(layer, name, norm.read_by(layer.get_submodule(name), turn_DD))
        for name in writing:
            replace(layer, name, _writer(layer.get_submodule(name), centred=final.centred, rotation_DD=turn_DD))
        for name, norm in zip(parts.norms, before, strict=True):
            replace(layer, name, UnitNorm(norm.eps))
    replace(made, parts.final_norm, UnitNorm(final.eps))
    replace(made, parts.head, head)
    _untie(made)
    adapt(made, parts, exact)
    return made.eval()


def _written(rows_VD: Tensor, *, centred: bool, rotation_DD: Tensor | None) -> Tensor:
    """Rows that are added to the stream, for a stream that is rotated and, where norms subtract the mean, has none."""
    exact_VD = rows_VD.to(EXACT)
    if centred:
        exact_VD = exact_VD - exact_VD.mean(-1, keepdim=True)
    if rotation_DD is not None:
        exact_VD = exact_VD @ rotation_DD
    return exact_VD.to(rows_VD.dtype).contiguous()


def _writer(module: nn.Module, *, centred: bool, rotation_DD: Tensor | None) -> nn.Linear:
    bias_O = architectures.offset(module)
    if bias_O is not None:
        bias_O = _written(bias_O[None], centred=centred, rotation_DD=rotation_DD)[0]
    return architectures.linear(_written(architectures.matrix(module), centred=centred, rotation_DD=rotation_DD), bias_O)


def adapt(model: nn.Module, parts: Anatomy, turns: Sequence[Tensor]) -> None:
    """Put an adapter behind every layer but the last, from its rotation to the next one's; first and last are in the weights."""
    for layer, turn_DD, next_DD in zip(architectures.layers(model, parts), turns[:-1], turns[1:], strict=False):
        like = architectures.matrix(layer.get_submodule(parts.readers[0][0]))
        layer.adapter = architectures.linear((turn_DD.T @ next_DD).to(like).contiguous(), None)
        layer.register_forward_hook(_pass_adapter)


def _pass_adapter(layer: Any, _given: Any, stream: Any) -> Tensor:
    adapted: Tensor = layer.adapter(stream)
    return adapted


def _untie(model: Any) -> None:
    model.config.tie_word_embeddings = False


def lay_out(model: nn.Module, network: LanguageNetwork) -> nn.Module:
    """A copy of `model` that computes the same, the matrices of its layers in memory as [inputs, outputs]."""
    parts = ANATOMIES[network.architecture]
    made = clone_shared(model)
    for layer in architectures.layers(made, parts):
        for names in parts.readers:
            for name in names:
                module = layer.get_submodule(name)
                architectures.replace(
                    layer, name, architectures.linear(architectures.matrix(module).contiguous(), architectures.offset(module))
                )
    return made


_MADE: weakref.WeakValueDictionary[tuple[object, ...], nn.Module] = weakref.WeakValueDictionary()


def shared(speaker: LanguageModel, recipe: str, make: Callable[[], nn.Module]) -> nn.Module:
    """What `make` makes of the speaker's model, one for all who hold it: arms that differ in sparsity alone share weights.

    Weights of the given model are told by identity, and not kept alive.
    """
    tensors = tuple(speaker.model.parameters())
    key = (recipe, speaker.weights_hash, speaker.model.config._attn_implementation, *map(id, tensors))
    model: Any = _MADE.get(key)
    if model is None or any(known() is not tensor for known, tensor in zip(model.made_of, tensors, strict=True)):
        model = _MADE[key] = make()
        model.made_of = tuple(map(weakref.ref, tensors))  # another tensor may get the place in memory of one that is gone
    made: nn.Module = model
    return made
