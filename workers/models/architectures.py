"""Architectures: where the parts of each described architecture are in its transformers module."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn
from transformers.pytorch_utils import Conv1D

from workers.errors import Unsupported


class ModuleNames(NamedTuple):
    """Names of parts, relative to the model (trunk, head) or to a layer."""

    layers: str
    embeddings: tuple[str, ...]
    """Summed before the first layer."""
    final_norm: str
    norms: tuple[str, ...]
    """The norm before the attention and the one before the MLP, or one norm for both."""
    readers: tuple[tuple[str, ...], ...]
    """For each of the four inputs h1, h2, h3 and h4 (see `workers.activation_sparsity`) the
    matrices that read it."""
    head: str = "lm_head"


_LLAMA = ModuleNames(
    layers="model.layers",
    embeddings=("model.embed_tokens",),
    final_norm="model.norm",
    norms=("input_layernorm", "post_attention_layernorm"),
    readers=(
        ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
        ("self_attn.o_proj",),
        ("mlp.gate_proj", "mlp.up_proj"),
        ("mlp.down_proj",),
    ),
)
MODULE_NAMES: Mapping[str, ModuleNames] = {
    "llama": _LLAMA,
    "qwen2": _LLAMA,
    "mistral": _LLAMA,
    "phi": ModuleNames(
        layers="model.layers",
        embeddings=("model.embed_tokens",),
        final_norm="model.final_layernorm",
        norms=("input_layernorm",),
        readers=(
            ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
            ("self_attn.dense",),
            ("mlp.fc1",),
            ("mlp.fc2",),
        ),
    ),
    "gpt2": ModuleNames(
        layers="transformer.h",
        embeddings=("transformer.wte", "transformer.wpe"),
        final_norm="transformer.ln_f",
        norms=("ln_1", "ln_2"),
        readers=(("attn.c_attn",), ("attn.c_proj",), ("mlp.c_fc",), ("mlp.c_proj",)),
    ),
}


def layers(model: nn.Module, architecture: ModuleNames) -> Iterator[nn.Module]:
    """The layers, first to last."""
    return iter(cast(nn.ModuleList, model.get_submodule(architecture.layers)))


def layers_of(model: nn.Module, count: int) -> Sequence[nn.Module]:
    """The `count` layers of any causal model, first to last. Raises `Unsupported` where no list of
    modules has that length.
    """
    found = [
        part for part in model.modules() if isinstance(part, nn.ModuleList) and len(part) == count
    ]
    if not found:
        raise Unsupported(
            f"{type(model).__name__} has no list of {count} modules, so that its first and last"
            " layer are not known"
        )
    return cast(
        Sequence[nn.Module],
        max(found, key=lambda part: sum(weight.numel() for weight in part.parameters())),
    )


def matrix_and_bias(module: nn.Module) -> tuple[Tensor, Tensor | None]:
    """The matrix of a `Linear` or a `Conv1D` as [inputs, outputs], a view, and its bias. Raises
    `Unsupported` for any other module.
    """
    if type(module) not in (nn.Linear, Conv1D):
        raise Unsupported(
            f"a matrix is a {type(module).__name__}, which this method cannot change; only one"
            " method of a stack can"
        )
    weight, bias = cast(Any, module).weight.detach(), cast(Any, module).bias
    weight_IO = weight.t() if type(module) is nn.Linear else weight
    return weight_IO, None if bias is None else bias.detach()


def linear(weight_IO: Tensor, bias_O: Tensor | None) -> nn.Linear:
    """A `Linear` that uses this tensor, in memory as [inputs, outputs], without a copy."""
    with torch.device("meta"):
        made = nn.Linear(weight_IO.shape[0], weight_IO.shape[1], bias=bias_O is not None)
    made.weight = nn.Parameter(weight_IO.t(), requires_grad=False)
    if bias_O is not None:
        made.bias = nn.Parameter(bias_O, requires_grad=False)
    return made


def replace(root: nn.Module, name: str, part: nn.Module | Tensor) -> None:
    """Replace the module, parameter or buffer `name` of `root`."""
    parent, _, last = name.rpartition(".")
    setattr(root.get_submodule(parent), last, part)
