"""Row-skipping products: y = x @ W for one vector and a matrix stored [inputs, outputs], reading
the rows of active inputs only.

Two routes on a CPU: `cpp`, compiled once per machine, and torch's `embedding_bag`; one on CUDA:
`triton`. Batch-1 decoding is bound by the bytes of the weights; a skipped row is not read.

Shapes: I inputs, O outputs, K active inputs, N vectors.
"""

import ctypes
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self, get_args

import torch
from torch import Tensor, nn

from workers.errors import Unsupported
from workers.models.cpp_build import functions, missing_reason

Route = Literal["cpp", "embedding_bag", "triton"]
ROUTES: tuple[Route, ...] = get_args(Route)
SPARSE_MATVEC_CPP = Path(__file__).with_name("sparse_matvec.cpp")
_SUFFIXES = {torch.float32: "f32", torch.bfloat16: "bf16"}
"""The dtypes that there is compiled code for, with the suffixes of its functions' names."""
_SIGNATURES = {
    "multiply": "TTqTTqTi",
    "multiply_all": "TTqqfqPPPTi>q",
    "select_largest": "TqqTT",
    "select_above": "TqfTT>q",
    "mask_largest": "TqqqTi",
}
_TYPED_SIGNATURES = {
    f"{name}_{suffix}": signature
    for name, signature in _SIGNATURES.items()
    for suffix in _SUFFIXES.values()
}
REPETITIONS = 15
COLD_BYTES = 1 << 26
"""Written before each product that is timed: decoding reads other matrices before it comes back to
one, so that no cache holds its rows."""
MIN_SPEEDUP = 1.25
"""The first route that can run is used unless another is this many times as fast, so that noise
does not separate an arm from its control."""


class Active(NamedTuple):
    """The active inputs, in the order of their indices."""

    index_K: Tensor | None
    """Indices, int32 or int64; `None`: every input."""
    value_K: Tensor
    """float32 where the compiled kernel selected them, else of the vector's dtype."""
    read: int
    """The number of active inputs."""


def compiled(name: str, like: Tensor) -> Callable[..., Any] | None:
    """The compiled function `name` for tensors of this dtype and device, or `None` where there is
    none.
    """
    suffix = _SUFFIXES.get(like.dtype)
    if suffix is None or like.device.type != "cpu" or missing_reason(SPARSE_MATVEC_CPP) is not None:
        return None
    return functions(SPARSE_MATVEC_CPP, _TYPED_SIGNATURES)[f"{name}_{suffix}"]


def largest(x_I: Tensor, kept: int) -> Active:
    """The `kept` inputs of largest magnitude; of equal ones those with the lowest indices, and NaN
    counts as infinity.
    """
    if kept >= len(x_I):
        return everything(x_I)
    select = compiled("select_largest", x_I)
    if select is None:
        index_K = torch.nonzero_static(_among_largest(x_I, kept), size=kept)[:, 0]
        return Active(index_K, x_I[index_K], kept)
    x_I = x_I.contiguous()
    index_K, value_K = torch.empty(kept, dtype=torch.int32), torch.empty(kept)
    select(x_I, len(x_I), kept, index_K, value_K)
    return Active(index_K, value_K, kept)


def above(x_I: Tensor, threshold: float) -> Active:
    """The inputs whose magnitude is above `threshold`, NaN included."""
    select = compiled("select_above", x_I)
    if select is None:
        index_K = (~(x_I.abs() <= threshold)).nonzero()[:, 0]
        return Active(index_K, x_I[index_K], len(index_K))
    x_I = x_I.contiguous()
    index_I, value_I = torch.empty(len(x_I), dtype=torch.int32), torch.empty(len(x_I))
    count = select(x_I, len(x_I), threshold, index_I, value_I)
    return Active(index_I[:count], value_I[:count], count)


def everything(x_I: Tensor) -> Active:
    """Every input, for a dense product by the same code."""
    return Active(None, x_I.contiguous().float() if compiled("multiply", x_I) else x_I, len(x_I))


def mask_largest(x_NI: Tensor, kept: int) -> Tensor:
    """`x_NI` with all but the `kept` inputs of largest magnitude of each vector (see `largest`) set
    to zero.
    """
    if kept >= x_NI.shape[-1]:
        return x_NI
    mask = compiled("mask_largest", x_NI)
    if mask is None:
        return torch.where(_among_largest(x_NI, kept), x_NI, 0)
    x_NI = x_NI.contiguous()
    masked_NI = torch.empty_like(x_NI)
    inputs = x_NI.shape[-1]
    mask(x_NI, x_NI.numel() // inputs, inputs, kept, masked_NI, torch.get_num_threads())
    return masked_NI


def mask_above(x_NI: Tensor, threshold: float) -> Tensor:
    """`x_NI` with all inputs set to zero whose magnitude is not above `threshold`."""
    return torch.where(x_NI.abs() <= threshold, 0, x_NI)


def _among_largest(x_NI: Tensor, kept: int) -> Tensor:
    """Whether each input is among the `kept` of largest magnitude of its vector; `topk` alone
    breaks ties in no defined order.
    """
    rank_NI = x_NI.abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    if not kept:
        return torch.zeros_like(x_NI, dtype=torch.bool)
    least_N1 = rank_NI.topk(kept, dim=-1).values[..., -1:]
    larger_NI, tied_NI = rank_NI > least_N1, rank_NI == least_N1
    room_N1 = kept - larger_NI.sum(-1, keepdim=True)
    return larger_NI | (tied_NI & (tied_NI.cumsum(-1) <= room_N1))


def product(route: Route, active: Active, weight_IO: Tensor, bias_O: Tensor | None) -> Tensor:
    """The active inputs times their rows, and the bias: [O], of the weight's dtype. `weight_IO` is
    contiguous, and on a CPU: on CUDA `workers.kernels.sparse` selects and multiplies.
    """
    return _PRODUCTS[route](active, weight_IO, bias_O)


class Readers:
    """Matrices that read the same vector, on the compiled route: one call selects the inputs and
    computes all products.

    A call from Python takes tens of microseconds, as long as a small product.
    """

    def __init__(self, weights: Sequence[Tensor], biases: Sequence[Tensor | None]) -> None:
        """Matrices stored [I, O], all of one dtype, contiguous."""
        self.weights, self.biases = tuple(weights), tuple(biases)
        self.outputs = [weight_IO.shape[1] for weight_IO in weights]
        call = compiled("multiply_all", weights[0])
        assert call is not None, missing_reason(SPARSE_MATVEC_CPP)
        self._call, self._pointers = call, ctypes.c_void_p * len(weights)
        self._sizes = (ctypes.c_int64 * len(weights))(*self.outputs)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self  # copies of the model share their matrices

    def products(
        self,
        x_I: Tensor,
        kept: int,
        threshold: float | None = None,
        norms_I: Tensor | None = None,
    ) -> tuple[tuple[Tensor, ...], int]:
        """The product [O] with each matrix, and the number of active inputs: the `kept` largest, or
        those above the threshold; each times its own of `norms_I` (float32), if given.
        """
        x_I = x_I.contiguous()
        y = torch.empty(sum(self.outputs), dtype=x_I.dtype)
        read = self._call(
            x_I,
            norms_I,
            len(x_I),
            kept if threshold is None else -1,
            threshold or 0.0,
            len(self.weights),
            self._pointers(*(weight_IO.data_ptr() for weight_IO in self.weights)),
            self._pointers(
                *(None if bias_O is None else bias_O.data_ptr() for bias_O in self.biases)
            ),
            self._sizes,
            y,
            torch.get_num_threads(),
        )
        return torch.split(y, self.outputs), read


def _cpp(active: Active, weight_IO: Tensor, bias_O: Tensor | None) -> Tensor:
    multiply = compiled("multiply", weight_IO)
    assert multiply is not None, missing_reason(SPARSE_MATVEC_CPP)
    value_K = active.value_K.float()
    index_K = None if active.index_K is None else active.index_K.int()
    outputs = weight_IO.shape[1]
    y_O = torch.empty(outputs, dtype=weight_IO.dtype)
    threads = torch.get_num_threads()
    multiply(value_K, index_K, len(value_K), weight_IO, bias_O, outputs, y_O, threads)
    return y_O


def _embedding_bag(active: Active, weight_IO: Tensor, bias_O: Tensor | None) -> Tensor:
    index_K, value_K, _ = active
    if index_K is None:
        index_K = torch.arange(len(value_K), device=value_K.device)
    first_1 = torch.zeros(1, dtype=index_K.dtype, device=index_K.device)  # a bag that may be empty
    value_K = value_K.to(weight_IO.dtype)
    y_O = nn.functional.embedding_bag(
        index_K, weight_IO, first_1, mode="sum", per_sample_weights=value_K
    )[0]
    return y_O if bias_O is None else y_O + bias_O


_PRODUCTS: dict[Route, Callable[[Active, Tensor, Tensor | None], Tensor]] = {
    "cpp": _cpp,
    "embedding_bag": _embedding_bag,
}


def select_route(requested: Route | Literal["auto"], weight_IO: Tensor, kept: int) -> Route:
    """The route for `kept` rows of a matrix: the requested one, or the fastest in a micro-benchmark
    on this matrix.

    Measured once for each shape, dtype, number of kept rows and of threads. Raises `Unsupported`
    for a route that cannot run.
    """
    wanted = ROUTES if requested == "auto" else (requested,)
    reasons = {route: unfit(route, weight_IO) for route in wanted}
    possible = tuple(route for route in wanted if reasons[route] is None)
    if not possible:
        raise Unsupported(
            "; ".join(f"kernel {route}: {reason}" for route, reason in reasons.items())
        )
    if len(possible) == 1:
        return possible[0]
    return _fastest(possible, weight_IO, kept, torch.get_num_threads())


def unfit(route: Route, weight_IO: Tensor) -> str | None:
    """Why a route cannot run with this matrix, or `None`."""
    needed, device = "cuda" if route == "triton" else "cpu", weight_IO.device.type
    if device != needed:
        return f"it runs on {needed} only, and the model is on {device}"
    if route == "triton":
        return None if find_spec("triton") else "triton is not installed"
    if route == "cpp" and compiled("multiply", weight_IO) is None:
        return missing_reason(SPARSE_MATVEC_CPP) or f"it has no code for {weight_IO.dtype}"
    return None


_FOUND: dict[tuple[object, ...], Route] = {}


def _fastest(possible: tuple[Route, ...], weight_IO: Tensor, kept: int, threads: int) -> Route:
    key = (possible, tuple(weight_IO.shape), weight_IO.dtype, kept, threads)
    if key not in _FOUND:
        x_I = torch.linspace(-1, 1, weight_IO.shape[0]).to(weight_IO.dtype)
        active = largest(x_I, kept)
        others = torch.empty(COLD_BYTES, dtype=torch.uint8)
        seconds: dict[Route, float] = dict.fromkeys(possible, float("inf"))
        for _ in range(REPETITIONS):
            for route in possible:
                others.zero_()
                start = time.perf_counter()
                product(route, active, weight_IO, None)
                seconds[route] = min(seconds[route], time.perf_counter() - start)
        first, fastest = possible[0], min(possible, key=seconds.__getitem__)
        _FOUND[key] = fastest if seconds[first] > MIN_SPEEDUP * seconds[fastest] else first
    return _FOUND[key]
