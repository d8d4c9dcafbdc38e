"""The compiled functions of `sparse_matvec.cpp`, or why this machine has none."""

import ctypes
import functools
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from workers.models.cpp_build import NotBuilt, Signature, functions

LOG = logging.getLogger(__name__)
SOURCE = Path(__file__).with_name("sparse_matvec.cpp")
SUFFIX = {torch.float32: "f32", torch.bfloat16: "bf16"}
"""The dtypes that the library has code for, with the suffixes of its function names."""

_POINTER, _COUNT = ctypes.c_void_p, ctypes.c_int64
_SIGNATURES: Mapping[str, Signature] = {
    "multiply": (None, (_POINTER, _POINTER, _COUNT, _POINTER, _POINTER, _COUNT, _POINTER, ctypes.c_int)),
    "multiply_all": (
        _COUNT,
        (_POINTER, _COUNT, _COUNT, ctypes.c_float, _COUNT, _POINTER, _POINTER, _POINTER, _POINTER, ctypes.c_int),
    ),
    "select_largest": (None, (_POINTER, _COUNT, _COUNT, _POINTER, _POINTER)),
    "select_above": (_COUNT, (_POINTER, _COUNT, ctypes.c_float, _POINTER, _POINTER)),
    "mask_largest": (None, (_POINTER, _COUNT, _COUNT, _COUNT, _POINTER, ctypes.c_int)),
}


def function(name: str, dtype: torch.dtype) -> Callable[..., Any] | None:
    """The compiled function `name` for tensors of `dtype`, or `None` where there is none; see `missing_reason`."""
    loaded, suffix = _attempt()[0], SUFFIX.get(dtype)
    return None if loaded is None or suffix is None else loaded[f"{name}_{suffix}"]


def missing_reason() -> str | None:
    """Why there is no library on this machine, or `None`."""
    return _attempt()[1]


@functools.cache
def _attempt() -> tuple[Mapping[str, Callable[..., Any]] | None, str | None]:
    names = {f"{name}_{suffix}": types for name, types in _SIGNATURES.items() for suffix in SUFFIX.values()}
    try:
        return functions(SOURCE, names), None
    except NotBuilt as missing:
        LOG.warning("no compiled kernel, torch's own are used: %s", missing)
        return None, str(missing)
