"""Shared weights: models kept loaded for later jobs, and copies of them on the same tensors."""

import copy
import functools
import weakref
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

import torch
from torch import nn

from sweeps.model.condition import QUANTISED, Condition, Dtype
from sweeps.model.identity import canonical
from sweeps.model.job import Job
from workers.measure.process_cleanup import memory_share

M = TypeVar("M", bound=nn.Module)
_L = TypeVar("_L")
MODELS_KEPT = 64
MEMORY_SHARE = 0.4
"""Of the machine's or the GPU's memory: with more in use, what was kept is dropped before another
model is loaded."""
DTYPES: Mapping[Dtype, torch.dtype] = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
    "autocast-float16": torch.float32,
    "int8": torch.float32,
}
"""The type in which a vision model is loaded, and of its input."""


def loaded_dtype(condition: Condition) -> torch.dtype:
    """The type in which the condition's model is loaded, and of what its products read."""
    language = condition.image_size is None
    return torch.bfloat16 if language and condition.dtype in QUANTISED else DTYPES[condition.dtype]


_GUARDED: "weakref.WeakKeyDictionary[nn.Module, dict[str, int]]" = weakref.WeakKeyDictionary()
"""Models on whose weights arms are built, with the checksums that they had before any arm."""
_WORD_BYTES = 8


_CAST: "weakref.WeakKeyDictionary[nn.Module, dict[torch.dtype, Any]]" = weakref.WeakKeyDictionary()
"""Copies of loaded models in other dtypes: one of each, however many arms run on it."""


def cast_shared(model: M, dtype: torch.dtype) -> M:
    """The model with its parameters and buffers in this dtype: itself, or the one copy that all
    arms share.
    """
    if dtype == torch.float32:
        return model
    copies = _CAST.setdefault(model, {})
    if dtype not in copies:
        with torch.inference_mode(mode=False):  # its tensors could not be exported
            copies[dtype] = copy.deepcopy(model).to(dtype)
    return cast(M, copies[dtype])


def guard(model: nn.Module) -> None:
    """Remember the parameters and buffers of a model on whose weights arms are built, as they are
    now or at an earlier call.
    """
    if model not in _GUARDED:
        _GUARDED[model] = checksums(model)


def restored_weights() -> list[str]:
    """A text for each model that was written to since `guard`; it is not used again, since what it
    held is lost.
    """
    found = []
    for model, before in list(_GUARDED.items()):
        now = checksums(model)
        if changed := [name for name in before if now.get(name) != before[name]]:
            found.append(
                f"{len(changed)} of {len(before)} shared weights and buffers were written to, such"
                f" as {changed[0]}"
            )
            del _GUARDED[model]
            drop_kept()
    return found


def checksums(model: nn.Module) -> dict[str, int]:
    """A number for each parameter and buffer that changes with its bytes; all are read once, about
    as fast as memory is.
    """
    parts = (model.named_parameters(), model.named_buffers())
    tensors = {name: tensor for part in parts for name, tensor in part if not tensor.is_meta}
    with torch.inference_mode():
        sums = [_checksum(tensor) for tensor in tensors.values()]
        # one transfer from a GPU
        return dict(zip(tensors, torch.stack(sums).tolist() if sums else (), strict=True))


def _checksum(tensor: torch.Tensor) -> torch.Tensor:
    """Sums of blocks of the bytes as integers of 8 bytes, weighted by odd numbers in their order,
    modulo 2^64.
    """
    flat = tensor.detach().contiguous().view(-1).view(torch.uint8)
    if flat.data_ptr() % _WORD_BYTES:
        flat = flat.clone()
    whole = len(flat) // _WORD_BYTES * _WORD_BYTES
    words, rest = flat[:whole].view(torch.int64), flat[whole:].to(torch.int64)
    totals = words.view(-1, 1024).sum(1) if len(words) % 1024 == 0 else words
    # odd ones, by which no bit of a block is multiplied out of the 64
    places = 2 * torch.arange(len(totals), device=flat.device) + 1
    last = torch.arange(7, 7 + len(rest), device=flat.device)
    return (totals * places).sum() + (rest * last).sum()


def clone_shared(model: M) -> M:
    """A copy of the model whose modules can be changed independently, with the same parameter and
    buffer tensors.
    """
    shared = {id(tensor): tensor for tensor in (*model.parameters(), *model.buffers())}
    return cast(M, _clone(model, cast(dict[int, Any], shared)))


def _clone(module: nn.Module, copied: dict[int, Any]) -> nn.Module:
    """As `copy.deepcopy`, which spends most of its time on the dozen empty dictionaries of every
    module; `copied` is its memo.
    """
    kind = type(module)
    if (
        id(module) in copied
        or hasattr(kind, "__deepcopy__")
        or kind.__reduce_ex__ is not object.__reduce_ex__
    ):
        return copy.deepcopy(module, copied)
    made = kind.__new__(kind)
    copied[id(module)] = made
    for name, value in vars(module).items():
        if name == "_modules":
            made.__dict__[name] = {
                key: None if part is None else _clone(part, copied) for key, part in value.items()
            }
        elif type(value) in (dict, OrderedDict) and not value:
            made.__dict__[name] = type(value)()
        else:
            made.__dict__[name] = copy.deepcopy(value, copied)
    return made


def load_shared(
    load: Callable[[Condition], _L],
    condition: Condition,
    content_hashes: Mapping[str, str],
    **more: Any,
) -> _L:
    """What `load` returns for the condition's model, weights, device and seed and the fields in
    `more`, kept for later jobs.
    """
    fields = {name: getattr(condition, name) for name in ("model", "weights", "device", "seed")}
    loaded: _L = kept_models(load, Condition(**fields, **more), canonical(content_hashes))
    return loaded


@functools.lru_cache(maxsize=MODELS_KEPT)
def kept_models(load: Callable[[Condition], Any], condition: Condition, content_hashes: str) -> Any:  # noqa: ARG001 - other content, other model
    if memory_share() > MEMORY_SHARE:
        drop_kept()
    return load(condition)


_KEPT_ARMS: dict[str, Any] = {}
"""Compiled and captured arms of the jobs that a process visits several times, by what they were
made for."""


def kept_arm(job: Job, index: int, make: Callable[[], _L]) -> _L:
    """What `make` returns for arm `index` of the job: made once in a process, since compiling takes
    longer than many visits.
    """
    key = canonical([job.arms[index], job.condition, job.content_hashes])
    if key not in _KEPT_ARMS:
        _KEPT_ARMS[key] = make()
    kept: _L = _KEPT_ARMS[key]
    return kept


def drop_kept() -> None:
    """Forget the models that are kept, and what was compiled from them."""
    kept_models.cache_clear()
    _KEPT_ARMS.clear()
