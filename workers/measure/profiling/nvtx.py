"""Ranges by which an outside profiler knows an arm's forwards, blocks and reductions; torch's own
profiler sees them too.
"""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn
from torch.profiler import record_function


@contextlib.contextmanager
def named_range(name: str) -> Iterator[None]:
    """A range of this name: of NVTX where there is CUDA, else of torch's profiler alone, which
    costs nothing unless it records.
    """
    nvtx: Any = torch.cuda.nvtx if torch.cuda.is_available() else None
    if nvtx is not None:
        nvtx.range_push(name)
    try:
        with record_function(name):
            yield
    finally:
        if nvtx is not None:
            nvtx.range_pop()


@contextlib.contextmanager
def captured_range() -> Iterator[None]:
    """What nsys (`--capture-range=cudaProfilerApi`) and ncu (`--profile-from-start off`) record;
    without CUDA nothing.
    """
    profiler: Any = torch.cuda.profiler if torch.cuda.is_available() else None
    if profiler is not None:
        profiler.start()
    try:
        yield
    finally:
        if profiler is not None:
            torch.cuda.synchronize()
            profiler.stop()


def name_modules(modules: Iterator[tuple[str, nn.Module]]) -> None:
    """Put the forward of each module into a range of its name, by hooks that stay."""
    for name, module in modules:
        opened: list[Any] = []

        def begin(*_: object, name: str = name, opened: list[Any] = opened) -> None:
            each = named_range(name)
            each.__enter__()
            opened.append(each)

        def end(*_: object, opened: list[Any] = opened) -> None:
            opened.pop().__exit__(None, None, None)

        module.register_forward_pre_hook(begin)
        module.register_forward_hook(end)


def within(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
    """`call` in a range of this name."""

    def ranged(*arguments: Any, **options: Any) -> Any:
        with named_range(name):
            return call(*arguments, **options)

    return ranged
