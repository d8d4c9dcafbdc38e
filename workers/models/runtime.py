"""Wrappers that run a model in mixed precision, compiled, or captured as a CUDA graph; and token
counts of a model, taken by hooks from the tensors of a forward, for MACs and for throughput.
"""

import itertools
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from types import FunctionType
from typing import Any, cast

import torch
from torch import Tensor, nn

from sweeps.model.method import BlockTokens
from workers.errors import Unsupported

CAPTURE_WARMUP = 3
"""Forwards on a side stream before a capture, so that lazily created workspaces exist (see torch's
documentation)."""


class Wrapped(nn.Module):
    """A model around another, `eager`, whose modules are the ones that the network is made of."""

    def __init__(self, eager: nn.Module) -> None:
        super().__init__()
        self.eager = eager

    def forward(self, x_BCHW: Tensor) -> Tensor:
        return cast(Tensor, self.eager(x_BCHW))


class OneGraph(Wrapped):
    """A model that runs as one graph of one shape: hooks on its modules see only the eager model
    inside it.
    """


class Autocast(Wrapped):
    """Weights in float32, matrix products in float16 (`torch.autocast`). Raises `Unsupported` where
    torch would ignore that.
    """

    def __init__(self, eager: nn.Module) -> None:
        super().__init__(eager)
        device = next(eager.parameters()).device.type
        casts = torch.amp.is_autocast_available(device)
        if casts:
            with warnings.catch_warnings():
                # torch warns where autocast has no effect, which is checked here
                warnings.simplefilter("ignore")
                with torch.autocast(device, dtype=torch.float16):
                    casts = torch.is_autocast_enabled(device)
        if not casts:
            raise Unsupported(f"autocast-float16: this torch casts nothing to float16 on {device}")

    def forward(self, x_BCHW: Tensor) -> Tensor:
        with torch.autocast(x_BCHW.device.type, dtype=torch.float16):
            return super().forward(x_BCHW)


class Compiled(OneGraph):
    """`torch.compile` of the whole model as one graph, for the one shape that it is called with;
    `options` go to torch.compile.

    It compiles on the first call. Torch caches generated code on disk for later arms, jobs and
    processes with the same graph; only tracing is repeated.
    """

    def __init__(self, eager: nn.Module, **options: Any) -> None:
        super().__init__(eager)
        # Not registered as a module: it has the same parameters.
        self.__dict__["compiled"] = torch.compile(
            alone(eager), dynamic=False, fullgraph=True, **options
        )

    def forward(self, x_BCHW: Tensor) -> Tensor:
        return cast(Tensor, self.__dict__["compiled"](x_BCHW))


_NUMBER = itertools.count()


def alone(call: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """`call` with a code object that no other function has.

    torch caches compiled code by code object. Arms that shared timm's would share one cache list,
    be searched in it on every call, and fail beyond its limit.
    """

    def forward(*inputs: Any, **named: Any) -> Tensor:
        return call(*inputs, **named)

    code = forward.__code__.replace(co_name=f"forward_{next(_NUMBER)}")
    return FunctionType(code, forward.__globals__, code.co_name, None, forward.__closure__)


class CudaGraph(OneGraph):
    """The forward captured once, on the first call, and replayed; every input must have the first
    one's shape.

    The input is copied into the graph's own memory, and the result lives there too: the next call
    overwrites it. `compiled`: what is captured is `torch.compile`'s code.
    """

    def __init__(self, eager: nn.Module, *, compiled: bool = False) -> None:
        device = next(eager.parameters()).device
        if device.type != "cuda":
            raise Unsupported(
                f"runtime {'compiled_graph' if compiled else 'cudagraph'} needs a CUDA device, and"
                f" this arm runs on {device.type}"
            )
        super().__init__(eager)
        self.captured: Captured | None = None
        self.compiled = compiled
        # Not registered as a module: it has the same parameters.
        self.__dict__["runs"] = Compiled(eager) if compiled else eager

    def forward(self, x_BCHW: Tensor) -> Tensor:
        if self.captured is None:
            self.input_BCHW = x_BCHW.clone()
            self.captured = Captured(
                lambda: cast(Tensor, self.__dict__["runs"](self.input_BCHW)), x_BCHW.device
            )
        if x_BCHW.shape != self.input_BCHW.shape:
            raise ValueError(
                f"this graph was captured for {tuple(self.input_BCHW.shape)} and cannot run"
                f" {tuple(x_BCHW.shape)}"
            )
        self.input_BCHW.copy_(x_BCHW)
        return self.captured.replay()


class Captured:
    """`call` captured as a CUDA graph; the tensors that it reads and writes must stay where they
    are.

    It runs a few times before the capture; after each run `after_warmup` restores the state.
    """

    def __init__(
        self,
        call: Callable[[], Tensor],
        device: torch.device,
        after_warmup: Callable[[], object] = lambda: None,
    ) -> None:
        side = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream(device))
        with torch.inference_mode(), torch.cuda.stream(side):
            for _ in range(CAPTURE_WARMUP):
                call()
                after_warmup()
        torch.cuda.current_stream(device).wait_stream(side)
        self._graph = torch.cuda.CUDAGraph()
        torch.cuda.synchronize(device)
        torch.cuda.reset_peak_memory_stats(device)
        with torch.inference_mode(), torch.cuda.graph(self._graph):
            self._output = call()
        self.unseen_bytes = torch.cuda.max_memory_allocated(device) - torch.cuda.memory_allocated(
            device
        )
        """What a replay uses beyond what stays allocated: the graph holds it, and the allocator's
        counters do not show it."""

    def replay(self) -> Tensor:
        """What `call` gives now; the next replay overwrites it."""
        self._graph.replay()
        return self._output


@dataclass(frozen=True)
class Trace:
    """Token counts of one forward."""

    batch: int
    """Images that the first block saw."""
    blocks: tuple[BlockTokens, ...]
    """Tokens that entered the attention and the MLP of each block."""
    final: int
    """Tokens that left the last block."""


@dataclass
class Forwards:
    """A running count of forwards and of the images in them."""

    forwards: int = 0
    images: int = 0


def trace(model: nn.Module, x_BCHW: Tensor) -> Trace:
    """The token counts of a forward, as `traced_forward`."""
    return traced_forward(model, x_BCHW)[1]


def traced_forward(model: nn.Module, x_BCHW: Tensor) -> tuple[Tensor, Trace]:
    """Run `model` once on `x_BCHW` and read the token counts off the tensors; its output and these.

    A compiled or captured model is traced through the eager model inside it, which is what was
    compiled or captured. Raises `ValueError` if a block did not run exactly once.
    """
    blocks, parts = _blocks(model), list(map(_parts, _blocks(model)))
    attention: list[torch.Size] = []
    mlp: list[torch.Size] = []
    out: list[torch.Size] = []
    with ExitStack() as hooks:
        for part in parts:
            hooks.enter_context(
                part.attn.proj.register_forward_pre_hook(
                    lambda _, args: attention.append(args[0].shape)
                )
            )
            hooks.enter_context(
                part.mlp.register_forward_pre_hook(lambda _, args: mlp.append(args[0].shape))
            )
        hooks.enter_context(
            blocks[-1].register_forward_hook(
                lambda _, __, result: out.append(
                    (result[0] if isinstance(result, tuple) else result).shape
                )
            )
        )
        runs = model.eager if isinstance(model, OneGraph) else model
        with torch.inference_mode():
            output = runs(x_BCHW)
    if not len(attention) == len(mlp) == len(blocks) or len(out) != 1:
        raise ValueError(
            f"{len(blocks)} blocks ran attention {len(attention)} times and MLPs {len(mlp)} times;"
            " each must run once"
        )
    counts = tuple(
        BlockTokens(before[1], after[1]) for before, after in zip(attention, mlp, strict=True)
    )
    return output, Trace(batch=attention[0][0], blocks=counts, final=out[0][1])


@contextmanager
def count_forwards(model: nn.Module, *, blocks: bool = True) -> Iterator[Forwards]:
    """Count the forwards of `model` and their images by a hook on its first block (on the whole
    model if compiled or captured, or without `blocks`).
    """
    seen = Forwards()

    def count(_: nn.Module, args: tuple[Tensor, ...]) -> None:
        seen.forwards += 1
        seen.images += args[0].shape[0]

    watched = _blocks(model)[0] if blocks and not isinstance(model, OneGraph) else model
    with watched.register_forward_pre_hook(count):
        yield seen


def _parts(block: nn.Module) -> Any:
    """The module of the block that holds its attention and its MLP: itself, or one inside of it."""
    for part in block.modules():
        if hasattr(part, "mlp") and hasattr(getattr(part, "attn", None), "proj"):
            return part
    raise Unsupported(
        f"tokens cannot be counted in a block of {type(block).__name__}: it holds no module with"
        " `attn.proj` and `mlp`, as each block must (docs/methods.md)"
    )


def _blocks(model: nn.Module) -> Any:
    """The blocks of the transformer, whatever is wrapped around it."""
    for part in model.modules():
        if isinstance(blocks := getattr(part, "blocks", None), nn.Sequential | nn.ModuleList):
            return blocks
    raise ValueError(
        f"{type(model).__name__} has no `blocks`, a torch.nn.Sequential or ModuleList of"
        " transformer blocks, to count tokens in"
    )
