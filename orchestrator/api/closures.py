"""Data that functions in Python read besides their inputs: what each slot can have copies of."""

import contextlib
import copy
import inspect
from collections.abc import Callable
from itertools import combinations
from types import CellType, FunctionType
from typing import Any

import numpy as np


def own_arrays(function: Callable[..., Any]) -> Callable[..., Any]:
    """A closure with copies of its own of the arrays that it holds, which otherwise lie in one
    place for all visits.

    Any other function as it is, and one whose arrays overlap, for copies would not.
    """
    if not isinstance(function, FunctionType):
        return function
    held = {}
    for place, cell in enumerate(function.__closure__ or ()):
        with contextlib.suppress(ValueError):  # an empty cell
            if hasattr(cell.cell_contents, "__array__"):
                held[place] = cell.cell_contents
    arrays = [each for each in held.values() if isinstance(each, np.ndarray)]
    if not held or any(np.may_share_memory(*pair) for pair in combinations(arrays, 2)):
        return function
    try:
        copies = copy.deepcopy(held)
    except Exception:  # whatever a class of the user raises
        return function
    own = FunctionType(
        *(function.__code__, function.__globals__, function.__name__, function.__defaults__),
        tuple(
            CellType(copies[place]) if place in copies else cell
            for place, cell in enumerate(function.__closure__ or ())
        ),
    )
    own.__kwdefaults__ = function.__kwdefaults__
    return own


def reads_shared_data(function: Callable[..., Any]) -> bool:
    """Whether it reads containers, arrays or tensors that are no input and have no copies
    (`own_arrays`): in its closure, in globals or bound to it.
    """
    values = [getattr(function, "__self__", None), *getattr(function, "args", ())]
    copied = own_arrays(function) is not function
    with contextlib.suppress(TypeError):  # it is not written in Python
        read = inspect.getclosurevars(function)
        values += [
            each for each in read.nonlocals.values() if not (copied and hasattr(each, "__array__"))
        ]
        values += read.globals.values()
    return any(hasattr(value, "__len__") and not isinstance(value, str | type) for value in values)
