"""Functions that the forwards and the clock of all arms use: whether one was replaced, and their
restoration.
"""

import sys
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from types import FunctionType, ModuleType
from typing import Any

import torch

WATCHED_MODULES = (
    "builtins",
    "math",
    "time",
    "torch",
    "torch.functional",
    "torch.nn.functional",
    "torch._C._nn",
    "numpy",
)
WATCHED_PACKAGES = (
    *("torch.nn.modules", "timm.layers", "timm.models.vision_transformer", "timm.models.deit"),
    *(
        "transformers.models",
        "transformers.modeling",
        "transformers.cache_utils",
        "transformers.integrations.sdpa_attention",
    ),
    *(
        "workers.arms",
        "workers.kinds",
        "workers.measure",
        "workers.models",
        "workers.token_reduction",
        "workers.kv_caches",
    ),
)
"""Beginnings of the names of modules whose functions, and methods of classes, are looked at."""
_HOOKS = (
    "_global_forward_hooks",
    "_global_forward_pre_hooks",
    "_global_forward_hooks_always_called",
)

_LIBRARIES = tuple(f"{path}/" for path in torch.__path__)

Held = Mapping[str, tuple[Any, Any]]
"""Functions by name, each with its code where Python has written it."""


class ForwardFunctions:
    """The functions when this was made."""

    def __init__(self) -> None:
        self._held = [(owner, _functions(owner)) for owner in _owners()]
        self._hooks = {name: dict(hooks) for name, hooks in _global_hooks()}

    def restore(self) -> list[str]:
        """A text for each function that was replaced since then; each is put back."""
        found = [text for owner, before in self._held for text in _restored(owner, before)]
        for name, hooks in _global_hooks():
            if dict(hooks) != self._hooks[name]:
                hooks.clear()
                hooks.update(self._hooks[name])
                found.append(f"torch.nn.modules.module.{name} was changed")
        return found


def _owners() -> Iterator[Any]:
    """The modules, and the classes that they define: a method of theirs may be overridden as
    well.
    """
    yield torch.Tensor
    for name, module in list(sys.modules.items()):
        if isinstance(module, ModuleType) and (
            name in WATCHED_MODULES or name.startswith(WATCHED_PACKAGES)
        ):
            yield module
            if name.startswith(WATCHED_PACKAGES):
                yield from (
                    each
                    for each in vars(module).values()
                    if isinstance(each, type) and each.__module__ == name
                )


def _functions(owner: Any) -> Held:
    return {
        name: (value, _code(value)) for name, value in list(vars(owner).items()) if callable(value)
    }


def _code(value: Any) -> Any:
    return value.__code__ if type(value) is FunctionType else None


def _restored(owner: Any, before: Held) -> Iterator[str]:
    now, of = (
        vars(owner),
        f"{owner.__module__}.{owner.__qualname__}" if isinstance(owner, type) else owner.__name__,
    )
    for name, (value, code) in before.items():
        if now.get(name) is not value:
            if _is_of_library(now.get(name)):  # torch.compile replaces functions of torch itself
                continue
            setattr(owner, name, value)
        elif code is not None and value.__code__ is not code:
            value.__code__ = code
        else:
            continue
        yield f"{of}.{name} was replaced"
    # what a class gains overrides what it inherits
    if isinstance(owner, type) and len(now) > len(before):
        inherited = [
            name
            for name, value in list(now.items())
            if name not in before and callable(value) and _inherits(owner, name)
        ]
        for name in inherited:
            delattr(owner, name)
            yield f"{of}.{name} was replaced"


def _is_of_library(value: Any) -> bool:
    """Whether a function is written in one of the libraries, whatever it wraps."""
    code = getattr(value, "__code__", None)
    return code is not None and code.co_filename.startswith(_LIBRARIES)


def _inherits(owner: type, name: str) -> bool:
    return any(name in vars(parent) for parent in owner.__mro__[1:])


def _global_hooks() -> Iterator[tuple[str, "OrderedDict[int, Callable[..., Any]]"]]:
    """Torch's hooks of every module."""
    module: Any = torch.nn.modules.module
    return ((name, getattr(module, name)) for name in _HOOKS if hasattr(module, name))
