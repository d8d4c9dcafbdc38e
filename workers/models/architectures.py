"""Architectures: where the parts of a causal model are in its transformers module, found by running
it on two tokens.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from itertools import groupby
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn
from transformers.integrations.moe import _default_apply_gate
from transformers.pytorch_utils import Conv1D

from workers.errors import Unsupported
from workers.models.share_weights import clone_shared

_MATRICES = (nn.Linear, Conv1D)
KNOWN_INPUTS = 4
"""Of the matrices of a layer: see `workers.activation_sparsity`."""


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
    head: str
    experts: str = ""
    """`Experts`, whose matrices then are the readers of h3 and h4; empty without any."""
    routers: tuple[str, ...] = ()
    """What else reads h3: modules whose `weight` [experts, width] selects experts."""
    unrotatable: str | None = None
    """Why the stream cannot be rotated by changing weights, or `None`."""

    def watched(self, place: int) -> tuple[str, ...]:
        """Modules whose first arguments are, together, one of the four inputs of all tokens."""
        if self.experts and place > 1:
            return self.routers[:1] if place == 2 and self.routers else self.readers[place]
        return self.readers[place][:1]


class Experts(nn.Module):
    """Experts of a mixture as single matrices, which share the memory of those that transformers
    keeps in one tensor.

    N tokens, M of them sent to one expert, K experts of each token.
    """

    def __init__(self, stacked: Any) -> None:
        super().__init__()
        self.first, self.last = (
            nn.ModuleList(linear(weight_OI.t(), None) for weight_OI in weight_EOI.detach())
            for weight_EOI in (stacked.gate_up_proj, stacked.down_proj)
        )
        self.act_fn = stacked.act_fn
        self.gathered: Callable[[Tensor], AbstractContextManager[Any]] = _as_they_are
        """Entered with the tokens that an expert reads; gives the order in which it reads them."""

    def forward(self, x_ND: Tensor, expert_NK: Tensor, weight_NK: Tensor) -> Tensor:
        """The sum of the selected experts' outputs, weighted: [N, D]."""
        sum_ND = torch.zeros_like(x_ND)
        for index in sorted(set(expert_NK.flatten().tolist())):
            if index == len(self.first):
                continue  # stands for no expert
            token_M, choice_M = (expert_NK == index).nonzero(as_tuple=True)
            with self.gathered(token_M) as order_M:
                token_M, choice_M = token_M[order_M], choice_M[order_M]
                hidden_MI = _default_apply_gate(self, self.first[index](x_ND[token_M]))
                y_MD = self.last[index](hidden_MI) * weight_NK[token_M, choice_M, None]
            sum_ND.index_add_(0, token_M, y_MD.to(sum_ND.dtype))
        return sum_ND


def _as_they_are(_token_M: Tensor) -> AbstractContextManager[Any]:
    return nullcontext(slice(None))


def with_single_experts(model: nn.Module) -> nn.Module:
    """The model, changed in place: `Experts` in place of stacked experts of the common form."""
    for name, module in [*model.named_modules()]:
        if _common_form(module):
            replace(model, name, Experts(module))
    return model


def _common_form(module: Any) -> bool:
    """Whether these are stacked experts, each [gate and up; down], without bias or further norm."""
    return (
        getattr(module, "has_gate", False)
        and module.is_concatenated
        and not (module.is_transposed or module.has_bias or module.has_post_expert_norm)
        and type(module)._apply_gate is _default_apply_gate
        and hasattr(module, "gate_up_proj")
    )


class _Call(NamedTuple):
    """A module with own parameters that ran, and the memory of what it read and wrote."""

    name: str
    module: Any
    source: int
    result: int

    @property
    def parent(self) -> str:
        return self.name.rpartition(".")[0]

    @property
    def kind(self) -> str:
        return f"{self.name} ({type(self.module).__name__})"

    @property
    def dimensions(self) -> int:
        return int(max(parameter.dim() for parameter in self.module.parameters(recurse=False)))


_FOUND: dict[tuple[type, str], ModuleNames] = {}


def module_names(model: Any) -> ModuleNames:
    """The parts of a causal model, found once for each configuration.

    Raises `Unsupported` with the name of the module because of which rows cannot be skipped.
    """
    key = type(model), model.config.to_json_string()
    if key not in _FOUND:
        _FOUND[key] = _find(model)
    return _FOUND[key]


def _find(model: Any) -> ModuleNames:
    model = with_single_experts(clone_shared(model))
    count = model.config.get_text_config(decoder=True).num_hidden_layers
    names = {module: name for name, module in model.named_modules()}
    trunk = names[layers_of(model, count)]
    calls = _calls(model)
    by_layer = [
        [
            call._replace(name=call.name.removeprefix(start))
            for call in calls
            if f"{call.name}.".startswith(start)
        ]
        for start in (f"{trunk}.{index}." for index in range(count))
    ]
    inputs = [_inputs(layer) for layer in by_layer]
    found, *others = [[[call.name for call in group] for group in groups] for groups in inputs]
    for index, other in enumerate(others, 1):
        if other != found:
            lists = (", ".join(group[0] for group in groups) for groups in (other, found))
            raise Unsupported(
                f"layer {index} has other matrices than layer 0: {' instead of '.join(lists)}"
            )
    first, groups = by_layer[0], inputs[0]
    experts, routers = "", cast(tuple[str, ...], ())
    readers = [tuple(group) for group in found]
    if isinstance(module := groups[2][0].module, Experts):
        experts = found[2][0]
        routers = tuple(
            call.name
            for call in first
            if call.source == groups[2][0].source and call.name != experts and call.dimensions == 2
        )
        readers[2:] = [
            tuple(f"{experts}.{part}.{index}" for index in range(len(module.first)))
            for part in ("first", "last")
        ]
    head = names[model.get_output_embeddings()]
    norms = tuple(
        dict.fromkeys(
            call.name
            for place in (0, 2)
            for call in first
            if call.result == groups[place][0].source
        )
    )
    outside = [call for call in calls if not call.name.startswith(f"{trunk}.")]
    source = next(call.source for call in outside if call.name == head)
    final = [call.name for call in outside if call.result == source]
    embeddings = tuple(call.name for call in outside if isinstance(call.module, nn.Embedding))
    partial = ModuleNames(
        trunk, embeddings, "".join(final), norms, tuple(readers), head, experts, routers
    )
    return partial._replace(unrotatable=_unrotatable(partial, first, groups, outside))


def _calls(model: Any) -> list[_Call]:
    """The modules with own parameters, in the order in which they end, on two tokens."""
    found: list[_Call] = []
    kept = []  # the memory of a tensor that is gone may be another's
    experts = tuple(
        f"{name}." for name, module in model.named_modules() if isinstance(module, Experts)
    )
    with ExitStack() as hooks, torch.no_grad():
        for name, module in model.named_modules():
            own = [*module.parameters(recurse=False)]
            if not (own or isinstance(module, Experts)) or name.startswith(experts):
                continue

            def note(
                module: nn.Module,
                given: tuple[Any, ...],
                named: dict[str, Any],
                result: Any,
                name: str = name,
            ) -> None:
                pair = (
                    next(each for each in (*given, *named.values()) if isinstance(each, Tensor)),
                    result if isinstance(result, Tensor) else result[0],
                )
                kept.append(pair)
                memory = (each.untyped_storage().data_ptr() for each in pair)
                found.append(_Call(name, module, *memory))

            hooks.enter_context(module.register_forward_hook(note, with_kwargs=True))
        device = next(model.parameters()).device
        model(torch.zeros((1, 2), dtype=torch.long, device=device), use_cache=False)
    return found


def _inputs(layer: list[_Call]) -> list[list[_Call]]:
    """The matrices of a layer by the input that they read, in order. Raises `Unsupported`."""
    matrices = [call for call in layer if isinstance(call.module, (*_MATRICES, Experts))]
    for call in layer:
        if call in matrices and not (is_matrix(call.module) or type(call.module) is Experts):
            raise Unsupported(f"{call.kind} may multiply in another way than a plain matrix")
        if call not in matrices and call.dimensions > 2:
            raise Unsupported(f"{call.kind} holds matrices that are not read as those of others")
    groups = [[*group] for _, group in groupby(matrices, key=lambda call: call.source)]
    inputs = len(groups) + any(isinstance(call.module, Experts) for call in groups[-1])
    if inputs != KNOWN_INPUTS:
        raise Unsupported(
            f"the matrices of a layer have {inputs} inputs, not the four of attention and MLP:"
            f" {', '.join(group[0].name for group in groups)}"
        )
    return groups


def _unrotatable(
    parts: ModuleNames, layer: list[_Call], groups: list[list[_Call]], outside: list[_Call]
) -> str | None:
    """Why the same output cannot be had from a rotated stream, or `None`.

    Norms commute with a rotation once their gains are fused into the matrices that read them; what
    else acts between the stream and matrices does not. Inside attention and MLP nothing is rotated.
    """
    width = groups[0][0].module.weight.shape[0 if type(groups[0][0].module) is Conv1D else 1]
    known = {*parts.norms, *parts.routers, *(call.name for group in groups for call in group)}
    inner = {groups[place][0].parent for place in (0, 2)}
    written = {call.result for call in (*groups[1], *groups[-1])}
    for call in layer:
        inside = {call.name, call.parent} & inner
        if call.name not in known and (not inside or call.source in written):
            return f"{call.kind} changes what attention or MLP add to the stream"
    for place in (0, 2):
        reader = groups[place][0]
        if not any(call.result == reader.source for call in layer):
            return f"{reader.name} reads what no norm with a gain wrote"
    for call in outside:
        embedded = call.name in parts.embeddings and call.module.weight.shape[-1] == width
        if not embedded and call.name not in {parts.final_norm, parts.head}:
            return f"{call.kind} changes the stream outside of the layers"
    return None if parts.final_norm else f"{parts.head} reads what no norm with a gain wrote"


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


def is_matrix(module: nn.Module) -> bool:
    """Whether a module multiplies by its weight and adds its bias, and does nothing else."""
    # written as `x @ W.T + b`; its module takes seconds to import
    return type(module) in _MATRICES or type(module).__name__ == "FalconLinear"


def matrix_and_bias(module: nn.Module) -> tuple[Tensor, Tensor | None]:
    """The matrix of a linear layer or a `Conv1D` as [inputs, outputs], a view, and its bias. Raises
    `Unsupported` for any other module.
    """
    if not is_matrix(module):
        raise Unsupported(
            f"a matrix is a {type(module).__name__}, which this method cannot change; only one"
            " method of a stack can"
        )
    weight, bias = cast(Any, module).weight.detach(), cast(Any, module).bias
    weight_IO = weight if type(module) is Conv1D else weight.t()
    return weight_IO, None if bias is None else bias.detach()


def linear(weight_IO: Tensor, bias_O: Tensor | None, dense_OI: Tensor | None = None) -> nn.Linear:
    """A `Linear` that uses this tensor, in memory as [inputs, outputs], without a copy.

    On a CPU a bfloat16 one also has `dense_OI`, the same in memory as [outputs, inputs]: oneDNN
    would reorder the weights in each product with several tokens.
    """
    with torch.device("meta"):
        made = nn.Linear(weight_IO.shape[0], weight_IO.shape[1], bias=bias_O is not None)
    made.weight = nn.Parameter(weight_IO.t(), requires_grad=False)
    if bias_O is not None:
        made.bias = nn.Parameter(bias_O, requires_grad=False)
    if weight_IO.device.type == "cpu" and weight_IO.dtype == torch.bfloat16:
        dense_OI = weight_IO.t() if dense_OI is None else dense_OI
        made.register_buffer("dense_OI", dense_OI.contiguous(), persistent=False)
    return made


def replace(root: nn.Module, name: str, part: nn.Module | Tensor) -> None:
    """Replace the module, parameter or buffer `name` of `root`."""
    parent, _, last = name.rpartition(".")
    setattr(root.get_submodule(parent), last, part)
