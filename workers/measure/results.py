"""Results of arms compared: the first place where two differ, in words; and whether a value is on a
GPU. Torch is used only through tensors that are given.
"""

import dataclasses
import types
from collections.abc import Mapping, Sequence, Set
from typing import Any

import numpy as np

from sweeps.number_format import count

RTOL = {
    "float8_e5m2": 0.25,
    "float8_e4m3fn": 0.125,
    "bfloat16": 1.6e-2,
    "float16": 1e-3,
    "float32": 1e-5,
    "complex64": 1e-5,
}
"""Tolerances by dtype, of both results the larger one; also as a share of the largest value, since
sums in another order err by that."""
RTOL_FLOAT64 = 1e-7
MAX_TEXT = 60
LAZY = (types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType, map, filter, zip)


class NotComparableError(TypeError):
    """Results of a type that have no comparison; the message is for people."""


def first_difference(
    old: Any,
    new: Any,
    *,
    rtol: float | None = None,
    atol: float | None = None,
    place: str = "the result",
) -> str | None:
    """The first place where two results differ, with both values; `None` where they are equal.

    Compared are tensors, arrays and what converts to one, numbers, mappings, sequences, sets,
    dataclasses and objects by their attributes. Floating-point numbers differ by more than `rtol`
    times the older value plus `atol`; where not given, `rtol` is that of the dtype and `atol` is
    `rtol` times the largest finite value. NaN equals NaN. Raises `NotComparableError`.
    """
    for value in (old, new):
        if isinstance(value, LAZY):
            raise NotComparableError(
                f"{place} is a {type(value).__name__}, whose work has not run yet: return"
                " list(...) of it"
            )
    if old is new:
        return None
    if _is_array(old) or _is_array(new) or (_has_numbers(old) and _has_numbers(new)):
        return _array_difference(old, new, rtol, atol, place)
    parts = _parts(old), _parts(new)
    if parts[0] is None or parts[1] is None or type(old) is not type(new):
        return _plain_difference(old, new, place)
    if list(parts[0]) != list(parts[1]):
        return f"{place} has {_names(parts[0])} against {_names(parts[1])}"
    for key, value in parts[0].items():
        found = first_difference(value, parts[1][key], rtol=rtol, atol=atol, place=place + key)
        if found is not None:
            return found
    return None


def on_gpu(value: Any) -> bool:
    """Whether a tensor on a GPU is among the parts of a value."""
    if getattr(value, "is_cuda", False) is True:
        return True
    if _is_array(value):
        return False
    return any(map(on_gpu, (_parts(value) or {}).values()))


def _is_array(value: Any) -> bool:
    return hasattr(value, "__array__") and not isinstance(value, type)


def _has_numbers(value: Any) -> bool:
    """Whether it is a number, or a list of nothing else."""
    if isinstance(value, list):
        return all(isinstance(each, int | float | complex) for each in value)
    return isinstance(value, int | float | complex)


def _parts(value: Any) -> dict[str, Any] | None:
    """What a container holds by the place as it is written; `None` for what has no parts."""
    if isinstance(value, str | bytes | bytearray | type | types.FunctionType | types.ModuleType):
        return None
    if isinstance(value, Mapping):
        return {f"[{key!r}]": each for key, each in value.items()}
    if isinstance(value, Set):
        return {f"[{each!r}]": each for each in sorted(value, key=repr)}
    if isinstance(value, Sequence):
        return {f"[{index}]": each for index, each in enumerate(value)}
    if dataclasses.is_dataclass(value):
        return {f".{each.name}": getattr(value, each.name) for each in dataclasses.fields(value)}
    attributes = getattr(value, "__dict__", None)
    return None if attributes is None else {f".{key}": each for key, each in attributes.items()}


def _names(parts: Mapping[str, Any]) -> str:
    if len(parts) > 4:
        return count(len(parts), "part")
    return ", ".join(part.strip(".[]") for part in parts) or "no parts"


def _plain_difference(old: Any, new: Any, place: str) -> str | None:
    """Of values without parts, or of other types."""
    if type(old) is type(new) and not _has_equality(old):
        raise NotComparableError(
            f"{place} is of type {type(old).__name__}, which has no comparison: give"
            " check=function(old, new), or check=None"
        )
    return None if bool(old == new) else f"{place} is {_text(old)} against {_text(new)}"


def _has_equality(value: Any) -> bool:
    """Whether its class, or one above it below `object`, defines equality."""
    return any("__eq__" in vars(each) for each in type(value).__mro__[:-1])


def _array(value: Any) -> np.ndarray[Any, Any]:
    """A tensor (of any device, layout and dtype) or what converts to an array."""
    if hasattr(value, "detach"):
        value = value.detach().cpu().to_dense()
        if _dtype(value).startswith(("bfloat16", "float8")):
            value = value.float()
    return np.asarray(value)


def _dtype(value: Any) -> str:
    return str(getattr(value, "dtype", type(value).__name__)).removeprefix("torch.")


def _array_difference(
    old: Any, new: Any, rtol: float | None, atol: float | None, place: str
) -> str | None:
    try:
        one, other = _array(old), _array(new)
    except (TypeError, ValueError):
        return f"{place} is {_text(old)} against {_text(new)}"
    if one.shape != other.shape:
        return f"{place} has shape {one.shape} against {other.shape}"
    if one.size == 0:
        return None
    if one.dtype.kind in "fc" or other.dtype.kind in "fc":
        dtypes = _dtype(old), _dtype(new)
        rtol = max(RTOL.get(each, RTOL_FLOAT64) for each in dtypes) if rtol is None else rtol
        wide = np.result_type(one.dtype, other.dtype, np.float64)
        one, other = one.astype(wide), other.astype(wide)
        finite = np.abs(one[np.isfinite(one)])
        atol = rtol * float(finite.max(initial=0.0)) if atol is None else atol
        equal = np.isclose(other, one, rtol=rtol, atol=atol, equal_nan=True)
        limit = f" (rtol {rtol:g}, atol {atol:.2g})"
    else:
        equal, limit = one == other, ""
    if equal.all():
        return None
    first = tuple(int(axis[0]) for axis in np.nonzero(~np.atleast_1d(equal)))
    index = str(list(first)) if one.ndim else ""
    values = (_text(np.atleast_1d(each)[first]) for each in (one, other))
    share = f"; {int((~equal).sum()):,} of {equal.size:,} differ" if one.size > 1 else ""
    return f"{place}{index} is {' against '.join(values)}{limit}{share}"


def _text(value: Any) -> str:
    text = repr(value.item() if isinstance(value, np.generic) else value)
    return text if len(text) <= MAX_TEXT else f"{text[: MAX_TEXT - 3]}..."
