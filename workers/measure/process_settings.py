"""Settings of a process that a method may change: how each is read and restored."""

import functools
import gc
import locale
import os
import signal
import sys
import tracemalloc
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, cast

import torch

RESTORED_SIGNALS = (
    *(signal.SIGALRM, signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD, signal.SIGUSR2),
    *(signal.SIGVTALRM, signal.SIGPROF, signal.SIGPIPE),
)
TORCH_BACKENDS = (
    *("fp32_precision", "cuda.matmul.fp32_precision", "cudnn.conv.fp32_precision", "mkldnn.matmul.fp32_precision"),
    *("cuda.matmul.allow_fp16_reduced_precision_reduction", "cuda.matmul.allow_bf16_reduced_precision_reduction"),
    *("cudnn.enabled", "cudnn.benchmark", "cudnn.deterministic", "mkldnn.enabled", "mkldnn.deterministic"),
)
"""Attributes below `torch.backends`; the precisions of float32 came with torch 2.9."""
SMALLEST = 5e-324
"""The smallest denormal number; times 1 it is 0 where the processor flushes denormals."""


class Setting(NamedTuple):
    """One part of the process' state: its display name, how it is read, and how it is restored.

    `write` is `None` where only a new process helps, and may raise `OSError`, `RuntimeError` or `ValueError` where it fails.
    """

    name: str
    read: Callable[[], Any]
    write: Callable[[Any], object] | None
    sticky: bool = False
    """Whether a part of what was changed stays after `write`, so that the process must be replaced all the same."""


def flushes_denormals() -> bool:
    return SMALLEST * 1.0 == 0


def _backend_attributes() -> Iterator[Setting]:
    """Those of `TORCH_BACKENDS` that this version of torch has."""
    for name in TORCH_BACKENDS:
        *path, last = name.split(".")
        owner = functools.reduce(lambda part, key: getattr(part, key, None), path, cast(Any, torch.backends))
        if hasattr(owner, last):
            yield Setting(f"torch.backends.{name}", partial(getattr, owner, last), partial(setattr, owner, last))


def _sdp(name: str) -> Setting:
    cuda: Any = torch.backends.cuda
    return Setting(f"scaled dot product backend {name}", getattr(cuda, f"{name}_sdp_enabled"), getattr(cuda, f"enable_{name}_sdp"))


def _autocast(device: str) -> Setting:
    def write(value: tuple[bool, torch.dtype]) -> None:
        torch.set_autocast_enabled(device, value[0])
        torch.set_autocast_dtype(device, value[1])

    return Setting(f"autocast on {device}", lambda: (torch.is_autocast_enabled(device), torch.get_autocast_dtype(device)), write)


def _handler(number: signal.Signals) -> Setting:
    def write(value: Any) -> None:
        if value is None:
            raise ValueError("it was set outside Python")
        signal.signal(number, value)

    return Setting(f"handler of {number.name}", lambda: signal.getsignal(number), write)


def _timer(name: str) -> Setting:
    number = getattr(signal, name)
    return Setting(  # the time left runs on, so only the interval is compared, and begins anew
        f"timer {name}", lambda: signal.getitimer(number)[1], lambda interval: signal.setitimer(number, interval, interval)
    )


def _set_collector(value: tuple[bool, tuple[int, int, int]]) -> None:
    (gc.enable if value[0] else gc.disable)()
    gc.set_threshold(*value[1])


def _folder() -> str:
    try:
        return str(Path.cwd())
    except FileNotFoundError:
        return "a folder that was removed"


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _error_filters() -> tuple[Any, ...]:
    return tuple(one for one in warnings.filters if one[0] == "error")


def _drop_error_filters(before: tuple[Any, ...]) -> None:
    kept = [one for one in warnings.filters if one[0] != "error" or one in before]
    warnings.resetwarnings()
    cast("list[Any]", warnings.filters).extend(kept)


def _default_device() -> tuple[str, int]:
    return str(torch.get_default_device()), torch._C._len_torch_function_stack()


SETTINGS: tuple[Setting, ...] = (
    Setting("CPU threads of torch", torch.get_num_threads, torch.set_num_threads),
    Setting("default dtype", torch.get_default_dtype, torch.set_default_dtype),
    Setting("default device", _default_device, lambda _: torch.set_default_device(None)),
    Setting("gradients", torch.is_grad_enabled, torch.set_grad_enabled),
    Setting("anomaly detection", torch.is_anomaly_enabled, torch.set_anomaly_enabled),
    Setting(
        "deterministic algorithms",
        lambda: (torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()),
        lambda value: torch.use_deterministic_algorithms(value[0], warn_only=value[1]),
    ),
    Setting("denormal numbers flushed", flushes_denormals, torch.set_flush_denormal),
    Setting("float32 matmul precision", torch.get_float32_matmul_precision, torch.set_float32_matmul_precision),
    *_backend_attributes(),
    *map(_sdp, ("flash", "mem_efficient", "math", "cudnn")),
    *map(_autocast, ("cpu", "cuda")),
    Setting("garbage collector", lambda: (gc.isenabled(), gc.get_threshold()), _set_collector),
    Setting("thread switch interval", sys.getswitchinterval, sys.setswitchinterval),
    Setting("profiler", sys.getprofile, sys.setprofile),
    Setting("memory tracing", tracemalloc.is_tracing, lambda on: None if on else tracemalloc.stop()),
    Setting("current folder", _folder, os.chdir),
    Setting("umask", _umask, os.umask),
    *map(_handler, RESTORED_SIGNALS),
    *map(_timer, ("ITIMER_REAL", "ITIMER_VIRTUAL", "ITIMER_PROF")),
    Setting("locale", lambda: locale.setlocale(locale.LC_ALL, None), lambda value: locale.setlocale(locale.LC_ALL, value)),
    Setting("niceness", lambda: os.getpriority(os.PRIO_PROCESS, 0), lambda value: os.setpriority(os.PRIO_PROCESS, 0, value)),
    # The cores of the main thread; threads started meanwhile keep theirs, so that the process must be replaced.
    *(
        [Setting("cores allowed", lambda: sorted(os.sched_getaffinity(0)), partial(os.sched_setaffinity, 0), sticky=True)]
        if hasattr(os, "sched_getaffinity")
        else []
    ),
    Setting("warnings that are errors", _error_filters, _drop_error_filters),
    Setting("inter-op threads of torch", torch.get_num_interop_threads, None),
)
