"""The unmodified model, but building it or its forward pass changes the process and does not put back what it changed."""

import copy
import gc
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from sweeps import method
from sweeps.method import BlockTokens, Network

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


class Params(method.Params):
    what: Literal["threads", "dtype", "gradients", "settings", "process", "child", "daemon", "thread", "memory", "log"]
    when: Literal["building", "forward"] = "building"
    file: str = ""
    """Where a daemon notes its process number."""


def tokens(params: Params, network: Network, image_size: int) -> tuple[BlockTokens, ...]:
    return network.dense_tokens(image_size)


def macs(params: Params, network: Network, image_size: int) -> int:
    return 0


def refuses(params: Params, network: Network) -> str | None:
    return None


def apply(model: "nn.Module", params: Params) -> "nn.Module":
    if params.when == "building":
        disturb(params)
    twin = copy.copy(model)
    twin._forward_pre_hooks, twin._forward_hooks = copy.copy(model._forward_pre_hooks), copy.copy(model._forward_hooks)
    if params.when == "forward":
        twin.register_forward_pre_hook(lambda *_: disturb(params))
    return twin


def disturb(params: Params) -> None:
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
            torch.use_deterministic_algorithms(True)
            torch.set_float32_matmul_precision("medium")
            torch.backends.cudnn.benchmark = True
            torch.backends.cuda.enable_flash_sdp(False)
            torch.set_autocast_enabled("cpu", True)
        case "process":
            os.chdir("/")
            os.environ["UNTIDY"] = "1"
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
        case "log":
            print("endless output " * 1000)
