"""Settings of a process that a method may change: how each is read, and how those that change a
time are restored.
"""

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

WATCHED_SIGNALS = (
    *(signal.SIGALRM, signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD, signal.SIGUSR2),
    *(signal.SIGVTALRM, signal.SIGPROF, signal.SIGPIPE),
)
WATCHED_TIMERS = ("ITIMER_REAL", "ITIMER_VIRTUAL", "ITIMER_PROF")
TORCH_BACKENDS = (
    *(
        "fp32_precision",
        "cuda.matmul.fp32_precision",
        "cudnn.conv.fp32_precision",
        "mkldnn.matmul.fp32_precision",
    ),
    "cuda.matmul.allow_fp16_reduced_precision_reduction",
    "cuda.matmul.allow_bf16_reduced_precision_reduction",
    *(
        "cudnn.enabled",
        "cudnn.benchmark",
        "cudnn.deterministic",
        "mkldnn.enabled",
        "mkldnn.deterministic",
    ),
)
"""Attributes below `torch.backends`; the precisions of float32 came with torch 2.9."""
SMALLEST = 5e-324
"""The smallest denormal number; times 1 it is 0 where the processor flushes denormals."""


class Setting(NamedTuple):
    """One part of the process' state: its display name, how it is read, and how it is restored."""

    name: str
    read: Callable[[], Any]
    write: Callable[[Any], object] | None = None
    """May raise `OSError`, `RuntimeError`, `TypeError` or `ValueError`."""


def flushes_denormals() -> bool:
    return SMALLEST * 1.0 == 0


def _backend_attributes() -> Iterator[Setting]:
    """Those of `TORCH_BACKENDS` that this version of torch has."""
    for name in TORCH_BACKENDS:
        *path, last = name.split(".")
        backends = cast(Any, torch.backends)
        owner = functools.reduce(lambda part, key: getattr(part, key, None), path, backends)
        if hasattr(owner, last):
            read, write = partial(getattr, owner, last), partial(setattr, owner, last)
            yield Setting(f"torch.backends.{name}", read, write)


def _sdp(name: str) -> Setting:
    cuda: Any = torch.backends.cuda
    read, write = getattr(cuda, f"{name}_sdp_enabled"), getattr(cuda, f"enable_{name}_sdp")
    return Setting(f"scaled dot product backend {name}", read, write)


def _autocast(device: str) -> tuple[bool, torch.dtype]:
    return torch.is_autocast_enabled(device), torch.get_autocast_dtype(device)


def _folder() -> str:
    try:
        return str(Path.cwd())
    except FileNotFoundError:
        return "a folder that was removed"


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _interval(timer: str) -> float:
    """Not the time left, which runs on."""
    return signal.getitimer(getattr(signal, timer))[1]


RESTORED: tuple[Setting, ...] = (
    Setting("CPU threads of torch", torch.get_num_threads, torch.set_num_threads),
    Setting("default dtype", torch.get_default_dtype, torch.set_default_dtype),
    Setting("gradients", torch.is_grad_enabled, torch.set_grad_enabled),
    Setting("denormal numbers flushed", flushes_denormals, torch.set_flush_denormal),
    Setting(
        "float32 matmul precision",
        torch.get_float32_matmul_precision,
        torch.set_float32_matmul_precision,
    ),
    *_backend_attributes(),
    *map(_sdp, ("flash", "mem_efficient", "math", "cudnn")),
    Setting("current folder", _folder, os.chdir),
)
"""What changes the time of a forward, and is set by one call."""
COMPARED: tuple[Setting, ...] = (
    Setting(
        "deterministic algorithms",
        lambda: (
            torch.are_deterministic_algorithms_enabled(),
            torch.is_deterministic_algorithms_warn_only_enabled(),
        ),
    ),
    *(Setting(f"autocast on {device}", partial(_autocast, device)) for device in ("cpu", "cuda")),
    Setting(
        "default device",
        lambda: (str(torch.get_default_device()), torch._C._len_torch_function_stack()),
    ),
    Setting("anomaly detection", torch.is_anomaly_enabled),
    Setting("inter-op threads of torch", torch.get_num_interop_threads),
    Setting("garbage collector", lambda: (gc.isenabled(), gc.get_threshold())),
    Setting("thread switch interval", sys.getswitchinterval),
    Setting("profiler", sys.getprofile),
    Setting("memory tracing", tracemalloc.is_tracing),
    Setting("umask", _umask, os.umask),
    *(
        Setting(
            f"handler of {each.name}", partial(signal.getsignal, each), partial(signal.signal, each)
        )
        for each in WATCHED_SIGNALS
    ),
    *(Setting(f"timer {name}", partial(_interval, name)) for name in WATCHED_TIMERS),
    Setting("locale", partial(locale.setlocale, locale.LC_ALL, None)),
    Setting(
        "niceness",
        partial(os.getpriority, os.PRIO_PROCESS, 0),
        partial(os.setpriority, os.PRIO_PROCESS, 0),
    ),
    Setting(
        "warnings that are errors", lambda: [one for one in warnings.filters if one[0] == "error"]
    ),
    *(
        [
            Setting(
                "cores allowed", partial(os.sched_getaffinity, 0), partial(os.sched_setaffinity, 0)
            )
        ]
        if hasattr(os, "sched_getaffinity")
        else []
    ),
)
"""Everything else: the arm that changes one is measured apart, and its process runs no other job.

Restored all the same is what that process would pass on to the processes that it starts.
"""
SETTINGS = (*RESTORED, *COMPARED)
