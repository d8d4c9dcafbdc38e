"""Roofline: MACs and bytes of torch's operators, which limit of the machine holds for an arm, and
how much faster it could be without its matrix products.
"""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, Literal, NamedTuple

from sweeps.model.profile import ArmProfile, Peaks

Shapes = Sequence[Any]
"""Of the inputs in order: sizes of a tensor, nothing for what is none, and for a list of tensors
the sizes of each."""
INDEX_BYTES = 8
"""Of an index, which torch keeps as int64."""

_DISPATCH = """
    view _unsafe_view reshape flatten unflatten transpose t permute expand expand_as as_strided
    slice select narrow unsqueeze squeeze unbind chunk split split_with_sizes unfold movedim
    swapaxes mT numpy_T detach detach_ alias _reshape_alias view_as lift_fresh empty empty_like
    empty_strided new_empty resize_ resolve_conj resolve_neg to _to_copy contiguous item
    _local_scalar_dense is_nonzero linear matmul layer_norm group_norm softmax log_softmax
    scaled_dot_product_attention conv2d conv1d convolution _convolution dropout embedding
    embedding_renorm_ meshgrid ones zeros new_ones new_zeros full arange rms_norm result_type
    broadcast_tensors clone relu relu_ mean ones_like zeros_like zero_ argsort masked_fill stack
"""
DISPATCH = frozenset(f"aten::{name}" for name in _DISPATCH.split())
"""Operators that only make views, allocate, or call others that do the work: their own time is
overhead of the host."""
_ELEMENTWISE = """
    add add_ sub sub_ mul mul_ div div_ gelu silu silu_ sigmoid tanh exp exp_ log rsqrt sqrt neg
    cos sin pow abs where clamp clamp_min clamp_min_ masked_fill_ maximum minimum eq ne lt le gt
    ge bitwise_and bitwise_or logical_not copy_ addcmul addcdiv lerp square reciprocal
"""
_ROW_BY_ROW = "_softmax _log_softmax native_layer_norm _fused_rms_norm cumsum flip"
_OF_THE_FIRST = "sum amax max argmax linalg_vector_norm norm fill_ uniform_ normal_"
_INDEXED = "sort topk gather take_along_dim"
_ATTENTION = "_scaled_dot_product"


class Work(NamedTuple):
    """What one call of an operator does; `None` where shapes do not determine it."""

    macs: int | None = None
    bytes_moved: int | None = None


def operator_work(name: str, shapes: Shapes, itemsize: int) -> Work:
    """MACs, and bytes read and written once each, of an operator by its name and the shapes of its
    inputs.

    `itemsize` is that of the numbers. A cache may keep bytes from reaching memory, and strides may
    move more. Attention counts each pair of query and key, masked or not; a convolution counts as
    one whose stride is its kernel, as in a patch embedding.
    """
    tensors: list[Sequence[int]] = [
        shape for shape in shapes if shape and isinstance(shape[0], int)
    ]
    kind = name.removeprefix("aten::")
    if name in DISPATCH:
        return Work()
    if kind == "cat":
        listed = [
            shape
            for each in shapes
            if isinstance(each, list | tuple)
            for shape in each
            if not isinstance(shape, int)
        ]
        return Work(None, 2 * itemsize * sum(map(prod, listed)) or None)
    product = next(
        (
            found
            for rule in _PRODUCTS
            if len(tensors) > 1 and (found := rule(kind, tensors)) is not None
        ),
        None,
    )
    if product is not None:
        return Work(product[0], product[1] * itemsize)
    sizes = [prod(shape) for shape in tensors]
    moved = next((count for names, count in _MOVED if kind in names), None)
    return Work(None, moved(sizes, itemsize)) if sizes and moved is not None else Work()


def _elementwise(sizes: Sequence[int], itemsize: int) -> int:
    """All inputs are read, and the largest is written."""
    return (sum(sizes) + max(sizes)) * itemsize


def _in_place(sizes: Sequence[int], itemsize: int) -> int:
    """Among the inputs is what is written: it counts once."""
    return sum(sizes) * itemsize


def _by_row(sizes: Sequence[int], itemsize: int) -> int:
    """All inputs are read, and the first is written."""
    return (sum(sizes) + sizes[0]) * itemsize


def _first(sizes: Sequence[int], itemsize: int) -> int:
    """The first input is read or written, and little else."""
    return sizes[0] * itemsize


def _with_indices(sizes: Sequence[int], itemsize: int) -> int:
    """Numbers are read and written with an index each: those of the second input where there are
    two, which is the index.
    """
    return sizes[1 if len(sizes) > 1 else 0] * (2 * itemsize + INDEX_BYTES)


_NAMES = frozenset(_ELEMENTWISE.split())
_MOVED: tuple[tuple[frozenset[str], Callable[[Sequence[int], int], int]], ...] = (
    (frozenset(name for name in _NAMES if name.endswith("_")), _in_place),
    (_NAMES, _elementwise),
    (frozenset(_ROW_BY_ROW.split()), _by_row),
    (frozenset(_OF_THE_FIRST.split()), _first),
    (frozenset(_INDEXED.split()), _with_indices),
)
"""Bytes moved by the sizes of the inputs, for the names of operators without products."""
_Product = tuple[int, int] | None
"""MACs, and elements read and written; `None` for another operator."""


def _matrices(kind: str, shapes: Sequence[Sequence[int]]) -> _Product:
    left, right = shapes[-2:]
    if (
        kind not in {"mm", "addmm", "bmm", "baddbmm", "_addmm_activation"}
        or len(left) not in (2, 3)
        or len(left) != len(right)
    ):
        return None
    batch, rows, inner, columns = (left[0] if len(left) == 3 else 1), left[-2], left[-1], right[-1]
    return batch * rows * inner * columns, sum(map(prod, shapes)) + batch * rows * columns


def _linear(kind: str, shapes: Sequence[Sequence[int]]) -> _Product:
    if (
        kind not in {"mkldnn_linear", "_mkldnn_linear", "_mkl_linear"}
        and "linear_pointwise" not in kind
    ):
        return None
    rows, weight = prod(shapes[0][:-1]), shapes[1]
    return rows * prod(weight), sum(map(prod, shapes[:2])) + rows * weight[0]


def _vector(kind: str, shapes: Sequence[Sequence[int]]) -> _Product:
    return (prod(shapes[-2]), sum(map(prod, shapes))) if kind in {"mv", "dot", "addmv"} else None


def _convolution(kind: str, shapes: Sequence[Sequence[int]]) -> _Product:
    image, weight = shapes[:2]
    if not ("convolution" in kind or "conv2d" in kind) or len(image) != 4 or len(weight) != 4:
        return None
    places = image[0] * (image[2] // weight[2]) * (image[3] // weight[3])
    return places * prod(weight), prod(image) + prod(weight) + places * weight[0]


def _attention(kind: str, shapes: Sequence[Sequence[int]]) -> _Product:
    if not kind.startswith(_ATTENTION) or len(shapes) < 3:
        return None
    query, key, value = shapes[:3]
    pairs = prod(query[:-1]) * key[-2]
    return pairs * (query[-1] + value[-1]), sum(map(prod, shapes)) + prod(query[:-1]) * value[-1]


_PRODUCTS: tuple[Callable[[str, Sequence[Sequence[int]]], _Product], ...] = (
    _matrices,
    _linear,
    _vector,
    _convolution,
    _attention,
)


Limit = Literal["host", "compute", "memory", "neither"]
_HALF = 0.5
"""A limit holds from this share on: of the wall for the host, of a peak while the device works for
the others."""


class Roofline(NamedTuple):
    """Where an arm stands on a machine; `None` where it is not known."""

    limit: Limit
    gflops: float | None
    """1e9 floating-point operations per second while the device works, two per MAC."""
    gb_per_s: float | None
    """1e9 bytes per second meanwhile."""
    compute_share: float | None
    """`gflops` as a share of the peak."""
    memory_share: float | None
    device_share: float
    """Of the wall."""
    ceiling: float | None
    """Speed-up at most if all matrix products took no time; everything else stays."""


def roofline(
    profile: ArmProfile,
    peaks: Peaks | None,
    *,
    gmacs: float | None,
    bytes_moved: float | None,
    products: float | None,
) -> Roofline | None:
    """Which limit holds for a profiled arm; `None` without its wall and classes of time.

    `products` is the share of device time that matrix products take. Bytes are counted once per
    operator, so that what a cache keeps makes `memory_share` too large, above 1 in the extreme.
    """
    wall_s, device_s = profile.wall_s, profile.times.get("device")
    if not wall_s or not device_s:
        return None
    gflops = None if gmacs is None else 2 * gmacs / device_s
    gb_per_s = None if bytes_moved is None else bytes_moved / 1e9 / device_s
    compute = None if gflops is None or peaks is None else gflops / peaks.gflops
    memory = None if gb_per_s is None or peaks is None else gb_per_s / peaks.gb_per_s
    limit: Limit = "neither"
    if 1 - device_s / wall_s >= _HALF:
        limit = "host"
    elif max(compute or 0.0, memory or 0.0) >= _HALF:
        limit = "compute" if (compute or 0.0) >= (memory or 0.0) else "memory"
    left = None if products is None else wall_s - products * device_s
    ceiling = None if left is None or left <= 0 else wall_s / left
    return Roofline(limit, gflops, gb_per_s, compute, memory, device_s / wall_s, ceiling)
