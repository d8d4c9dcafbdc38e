"""The unmodified model, but building it or its forward pass changes the process and does not put
back what it changed.
"""

import copy
import gc
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from sweeps.model import method
from sweeps.model.method import BlockTokens, Network

if TYPE_CHECKING:
    from torch import nn

PAPER = "none: a failure"
VERSION = 1
DAEMON = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        open(sys.argv[1], "a").write(f"{os.getpid()}\\n")
        time.sleep(600)
    os._exit(0)
os.wait()
"""
"""A process that leaves its parent, its group and its session; it adds its number to a file."""
KEPT: list[Any] = []
CALLS: list[None] = []


class Params(method.Params):
    what: Literal[
        "threads",
        "dtype",
        "gradients",
        "settings",
        "surroundings",
        "modes",
        "process",
        "child",
        "daemon",
        "thread",
        "memory",
        "log",
        "linear",
        "clock",
        "attention",
        "hook",
        "weights",
        "late weights",
    ]
    when: Literal["building", "forward"] = "building"
    file: str = ""
    """Where a daemon notes its process number."""


def tokens(params: Params, network: Network, image_size: int) -> tuple[BlockTokens, ...]:
    return network.dense_tokens(image_size)


def macs(params: Params, network: Network, image_size: int) -> int:
    return 0


def refuses(params: Params, network: Network) -> str | None:
    return None


def _replace(owner: object, name: str, value: object) -> None:
    setattr(owner, name, value)


def _slow_hook(*_: object) -> None:
    time.sleep(0.001)


def _late(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, 2 ms later."""

    def call(*inputs: Any, **more: Any) -> Any:
        time.sleep(0.002)
        return function(*inputs, **more)

    return call


def apply(model: "nn.Module", params: Params) -> "nn.Module":
    if params.when == "building":
        disturb(params, model)
    twin = copy.copy(model)
    twin._forward_pre_hooks, twin._forward_hooks = (
        copy.copy(model._forward_pre_hooks),
        copy.copy(model._forward_hooks),
    )
    if params.when == "forward":
        twin.register_forward_pre_hook(lambda *_: disturb(params, twin))
    return twin


def disturb(params: Params, model: "nn.Module") -> None:  # noqa: PLR0912 - one for each fault
    """Change what `params.what` names, for ever."""
    import torch

    match params.what:
        case "threads":
            torch.set_num_threads(7)
        case "dtype":
            torch.set_default_dtype(torch.float64)
        case "gradients":
            torch.set_grad_enabled(True)
        case "settings":
            torch.set_float32_matmul_precision("medium")
            torch.backends.cudnn.benchmark = True
            torch.backends.cuda.enable_flash_sdp(False)
        case "surroundings":
            os.chdir("/")
            os.environ["UNTIDY"] = "1"
        case "modes":
            torch.use_deterministic_algorithms(True)
            torch.set_autocast_enabled("cpu", True)
        case "process":
            os.umask(0)
            signal.signal(signal.SIGALRM, signal.SIG_IGN)
            signal.setitimer(signal.ITIMER_PROF, 1000, 1000)
            gc.set_threshold(1)
        case "child":
            os.spawnlp(os.P_NOWAIT, "sleep", "sleep", "600")
        case "daemon":
            subprocess.run([sys.executable, "-c", DAEMON, params.file], check=True)
            while not Path(params.file).exists():
                time.sleep(0.01)
        case "thread":
            threading.Thread(target=time.sleep, args=(600,), name="untidy").start()
        case "memory":
            KEPT.append(bytearray(b"x") * 190_000_000)
        case "linear":
            kept = torch.nn.functional.linear
            _replace(torch.nn.functional, "linear", _late(kept))
        case "clock":
            clock = time.perf_counter
            _replace(time, "perf_counter", lambda: 2 * clock())
        case "attention":
            from timm.layers import Attention

            forward = Attention.forward
            _replace(Attention, "forward", _late(forward))
        case "hook":
            torch.nn.modules.module.register_module_forward_hook(_slow_hook)
        case "weights":
            model.get_parameter("blocks.0.attn.qkv.weight")[0, 0] += 1
        case "late weights":
            CALLS.append(None)
            if len(CALLS) == 12:
                model.get_parameter("blocks.0.attn.qkv.weight")[0, 0] += 1
        case "log":
            print("endless output " * 1000)
