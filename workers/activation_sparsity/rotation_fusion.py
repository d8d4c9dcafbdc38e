"""Rotates the residual stream of a language model by changing its weights, so that layers read it
in another basis.

Norm gains (and, where a LayerNorm is made an RMSNorm, its mean and bias) are fused into its
neighbours, as in SliceGPT (Ashkboos et al., ICLR 2024, arXiv 2401.15024, section 3); then each
layer's rotation is fused too, with an adapter between two layers (LaRoSA, Liu et al., ICML 2025,
arXiv 2507.01299, section 4).

Shapes: D width of the stream, I inputs, O outputs, V rows of an embedding. The stream is a row
vector h; layer l works on h Q_l.
"""

import weakref
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, cast

import torch
from torch import Tensor, nn

from sweeps.model.method import LanguageNetwork
from workers.errors import Unsupported
from workers.models import architectures
from workers.models.architectures import (
    ModuleNames,
    module_names,
    replace,
    with_single_experts,
)
from workers.models.language import LanguageModel
from workers.models.share_weights import clone_shared

EXACT = torch.float64
"""Precision in which weights are fused."""


class UnitNorm(nn.Module):
    """RMSNorm without a gain: it commutes with any rotation."""

    def __init__(self, eps: float) -> None:
        super().__init__()
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.rms_norm(x.float(), x.shape[-1:], eps=self.eps).to(x.dtype)


class _Norm:
    """A norm as an RMSNorm without gain, with the gain and shift to be fused into the matrices that
    read it.
    """

    def __init__(self, name: str, norm: Any) -> None:
        """Raises `Unsupported` where its outputs are not those of an RMSNorm or a LayerNorm, whose
        gain is the weight, or one more (Gemma).
        """
        self.eps = float(getattr(norm, "eps", 0) or getattr(norm, "variance_epsilon", 0))
        bias = getattr(norm, "bias", None)
        self.shift_D = None if bias is None else bias.detach().to(EXACT)
        x_D = torch.linspace(-1, 3, norm.weight.numel()).to(norm.weight)
        with torch.no_grad():
            wanted_D = norm(x_D[None])[0].to(EXACT)
        for self.centred, one in product((False, True), (0, 1)):
            self.gain_D = norm.weight.detach().to(EXACT) + one
            plain_D = x_D.to(EXACT) - self.centred * x_D.to(EXACT).mean()
            found_D = nn.functional.rms_norm(plain_D, plain_D.shape, self.gain_D, self.eps)
            if torch.allclose(found_D + (0 if bias is None else bias), wanted_D, 0.02, 0.02):
                return
        raise Unsupported(
            f"{name} ({type(norm).__name__}) is no RMSNorm and no LayerNorm, whose gain could be"
            " fused"
        )

    def read_by(self, module: nn.Module, rotation_DD: Tensor | None) -> nn.Linear:
        """The matrix that reads the plain RMSNorm of the rotated stream as `module` reads this norm
        of the stream.
        """
        weight_IO, bias_O = architectures.matrix_and_bias(module)
        exact_IO = weight_IO.to(EXACT)
        if self.shift_D is not None:
            shift_O = self.shift_D @ exact_IO
            bias_O = (shift_O if bias_O is None else shift_O + bias_O).to(weight_IO.dtype)
        exact_IO = exact_IO * self.gain_D[:, None]
        if rotation_DD is not None:
            exact_IO = rotation_DD.T @ exact_IO
        return architectures.linear(exact_IO.to(weight_IO.dtype).contiguous(), bias_O)


def fuse(
    model: nn.Module, network: LanguageNetwork, rotations: Sequence[Tensor] | None
) -> nn.Module:
    """A copy of `model` with the same output and unit norms, each layer's stream rotated by its own
    orthogonal [D, D] matrix.

    `rotations` is `None` for the norms alone. All of its matrices lie in memory as [inputs,
    outputs]; the head is untied. Raises `Unsupported` with the module that forbids it.
    """
    parts = module_names(model)
    if parts.unrotatable is not None:
        raise Unsupported(f"its layers cannot work on a rotated stream: {parts.unrotatable}")
    fused: Any = with_single_experts(clone_shared(model))
    norms = [
        [_Norm(name, layer.get_submodule(name)) for name in parts.norms]
        for layer in architectures.layers(fused, parts)
    ]
    final = _Norm(parts.final_norm, fused.get_submodule(parts.final_norm))
    exact = [] if rotations is None else [rotation_DD.to(EXACT) for rotation_DD in rotations]
    by_layer: Sequence[Tensor | None] = exact or [None] * network.layers

    head = final.read_by(fused.get_submodule(parts.head), by_layer[-1])
    for name in parts.embeddings:
        embedding: Any = fused.get_submodule(name)
        written_VD = _written(embedding.weight.detach(), final.centred, by_layer[0])
        embedding.weight = nn.Parameter(written_VD, requires_grad=False)
    for layer, before, rotation_DD in zip(
        architectures.layers(fused, parts), norms, by_layer, strict=True
    ):
        for place, names in enumerate(parts.readers):
            for name in names:
                module = layer.get_submodule(name)
                if place in (0, 2):
                    made = before[place and -1].read_by(module, rotation_DD)
                else:
                    made = _writer(module, final.centred, rotation_DD)
                replace(layer, name, made)
        for name in parts.routers:
            weight_DO = cast(Tensor, layer.get_submodule(name).weight).detach().t()
            router = before[-1].read_by(architectures.linear(weight_DO, None), rotation_DD)
            if router.bias is not None:
                raise Unsupported(f"{name} cannot take the bias of the norm that it reads")
            replace(layer, f"{name}.weight", router.weight)
        for name, norm in zip(parts.norms, before, strict=True):
            replace(layer, name, UnitNorm(norm.eps))
    replace(fused, parts.final_norm, UnitNorm(final.eps))
    head.weight = nn.Parameter(head.weight.contiguous(), requires_grad=False)
    head._buffers.clear()
    replace(fused, parts.head, head)
    fused.config.tie_word_embeddings = False
    add_adapters(fused, parts, exact)
    return cast(nn.Module, fused.eval())


def _written(rows_VD: Tensor, centred: bool, rotation_DD: Tensor | None) -> Tensor:
    """Rows that are added to the stream, for a stream that is rotated and, where norms subtract the
    mean, has none.
    """
    exact_VD = rows_VD.to(EXACT)
    if centred:
        exact_VD = exact_VD - exact_VD.mean(-1, keepdim=True)
    if rotation_DD is not None:
        exact_VD = exact_VD @ rotation_DD
    return exact_VD.to(rows_VD.dtype).contiguous()


def _writer(module: nn.Module, centred: bool, rotation_DD: Tensor | None) -> nn.Linear:
    weight_IO, bias_O = architectures.matrix_and_bias(module)
    if bias_O is not None:
        bias_O = _written(bias_O[None], centred, rotation_DD)[0]
    return architectures.linear(_written(weight_IO, centred, rotation_DD), bias_O)


def add_adapters(model: nn.Module, parts: ModuleNames, rotations: Sequence[Tensor]) -> None:
    """Add an adapter after every layer but the last, from its rotation to the next one's; first and
    last are in the weights.
    """
    for layer, rotation_DD, next_DD in zip(
        architectures.layers(model, parts), rotations[:-1], rotations[1:], strict=False
    ):
        like, _ = architectures.matrix_and_bias(layer.get_submodule(parts.readers[0][0]))
        layer.adapter = architectures.linear((rotation_DD.T @ next_DD).to(like).contiguous(), None)
        layer.register_forward_hook(_adapt)


def _adapt(layer: Any, _given: object, result: Any) -> Any:
    """Some layers give the stream alone, some a tuple that begins with it."""
    if isinstance(result, tuple):
        return (layer.adapter(result[0]), *result[1:])
    return layer.adapter(result)


def lay_out(model: nn.Module) -> nn.Module:
    """A copy of `model` whose layers have their matrices in memory as [inputs, outputs]."""
    parts = module_names(model)
    made = with_single_experts(clone_shared(model))
    for layer in architectures.layers(made, parts):
        for names in parts.readers:
            for name in names:
                weight_IO, bias_O = architectures.matrix_and_bias(layer.get_submodule(name))
                replace(
                    layer, name, architectures.linear(weight_IO.contiguous(), bias_O, weight_IO.t())
                )
    return made


_DERIVED: weakref.WeakValueDictionary[tuple[object, ...], nn.Module] = weakref.WeakValueDictionary()


def shared(lm: LanguageModel, recipe: str, make: Callable[[], nn.Module]) -> nn.Module:
    """The model that `make` derives from `lm`, the same one while it is in use: arms that differ in
    sparsity alone share weights.

    The key contains the identities of the weights of `lm`, which are not kept alive.
    """
    tensors = tuple(lm.model.parameters())
    key = (recipe, lm.weights_hash, lm.model.config._attn_implementation, *map(id, tensors))
    model: Any = _DERIVED.get(key)
    # a new tensor may have the id of a deleted one
    if model is None or any(
        reference() is not tensor for reference, tensor in zip(model.made_of, tensors, strict=True)
    ):
        model = _DERIVED[key] = make()
        model.made_of = tuple(map(weakref.ref, tensors))
    return cast(nn.Module, model)
