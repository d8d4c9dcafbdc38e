"""Functions of a user's files, loaded and timed in `measured_process.py`: each request names a
method of `Functions`. Standard library only.
"""

from __future__ import annotations

import base64
import contextlib
import copy
import dataclasses
import functools
import gc
import importlib.util
import itertools
import json
import os
import random
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from time import perf_counter  # the module's may be replaced by the user's code
from types import ModuleType
from typing import TypeVar

Returned = TypeVar("Returned")
Arguments = tuple[tuple[object, ...], dict[str, object]]
OWN = str(Path(__file__).parent)
LINE = 300
"""Characters of an error's message that are returned."""
DEPTH = 20
"""Of containers in a result."""


def serve_functions(requests: int) -> Iterator[object]:
    """The reply to each request, of which each is a method of `Functions` and its arguments."""
    functions = Functions()
    for line in os.fdopen(requests, encoding="utf-8"):
        do = json.loads(line)
        try:
            yield getattr(functions, do.pop("do"))(**do)
        except Failed as failed:
            yield {"failed": str(failed)}


class Failed(Exception):  # noqa: N818 - reads as what it is
    """The user's code raised, or lacks what is asked for; the message is one line."""


class Functions:
    """The slots of one process, by their index: each has files, functions and arguments of its
    own.
    """

    def __init__(self) -> None:
        self._numbers = itertools.count()
        self._functions: list[list[Callable[..., object]]] = []
        """Of each slot the function, and the one that makes its arguments, if given."""
        self._arguments: list[Arguments] = []
        self._steps: list[Callable[[], object]] = []

    def search(self, folders: list[str], root: str | None, tree: str | None) -> None:
        """Put folders first on the path of imports. Of a `tree` of another revision of `root`,
        what would be imported from there comes from the tree.
        """
        if root is not None and tree is not None:
            sys.path[:] = [_moved(entry, root, Path(tree)) for entry in sys.path]
        sys.path[:0] = dict.fromkeys(folders)

    def load(self, functions: list[tuple[str, str]]) -> None:
        """Load a slot: its function, and the one that makes its arguments, if given, each by file
        and name. The files are loaded anew, so that a slot shares no global with another one.
        """
        modules = {file: _load(Path(file), next(self._numbers)) for file, _ in functions}
        self._functions.append([_attribute(modules[file], file, name) for file, name in functions])

    def foreign(self, root: str) -> list[str]:
        """Files below `root` that were imported."""
        files = {getattr(each, "__file__", None) for each in list(sys.modules.values())}
        return sorted(file for file in files if file and _own(file, root))

    def build(self, values: dict[str, float]) -> None:
        """Make the arguments of each slot at one place of the axes: what its `inputs` returns, a
        tuple of positional or a dict of named ones, or one; without `inputs` the place itself.
        Where `inputs` returns other values at each call, all slots have copies of the first ones.
        """
        self._arguments, self._steps = [], []
        for function, *inputs in self._functions:
            made: Arguments = ((), {**values})
            if inputs:
                made = _made(inputs[0], values)
            if self._arguments and plain(made) != plain(self._arguments[0]):
                made = _called("copying its arguments", lambda: copy.deepcopy(self._arguments[0]))
            self._arguments.append(made)
            self._steps.append(functools.partial(function, *made[0], **made[1]))
        os.dup2(1, 2)  # what the functions print goes nowhere
        gc.collect()

    def result(self, index: int) -> object:
        """What a function returns, as data. Raises where it changes its arguments."""
        before = plain(self._arguments[index])
        result = plain(_called("it", self._steps[index]))
        if plain(self._arguments[index]) != before:
            raise Failed("it changes its arguments, so that the next call would do other work")
        return result

    def time(self, index: int, inner: int) -> tuple[float, float | None]:
        """Seconds per call of `inner` in a row, by the clock and between CUDA events."""
        step = self._steps[index]
        torch = sys.modules.get("torch")
        cuda = torch.cuda if torch is not None and torch.cuda.is_initialized() else None
        gc.disable()
        try:
            return _called("it", functools.partial(_timed, step, inner, cuda))
        finally:
            gc.enable()


def _made(inputs: Callable[..., object], values: dict[str, float]) -> Arguments:
    """The arguments that a function of the user makes, from the same seeds at each call."""
    random.seed(0)
    with contextlib.suppress(KeyError):
        sys.modules["numpy"].random.seed(0)
    with contextlib.suppress(KeyError):
        sys.modules["torch"].manual_seed(0)
    made = _called("the inputs", functools.partial(inputs, **values))
    if made is None:
        raise Failed("--inputs returns nothing: it must return the arguments")
    if isinstance(made, dict):
        return (), made
    return made if isinstance(made, tuple) else (made,), {}


def _timed(
    step: Callable[[], object], inner: int, cuda: ModuleType | None
) -> tuple[float, float | None]:
    repeats = itertools.repeat(None, inner)
    if cuda is None:
        start = perf_counter()
        for _ in repeats:
            step()
        return (perf_counter() - start) / inner, None
    began, ended = (cuda.Event(enable_timing=True) for _ in range(2))
    cuda.synchronize()
    start = perf_counter()
    began.record()
    for _ in repeats:
        step()
    ended.record()
    cuda.synchronize()
    return (perf_counter() - start) / inner, began.elapsed_time(ended) / 1e3 / inner


def _called(what: str, call: Callable[[], Returned]) -> Returned:
    """What a call returns. Raises `Failed`, also where the user's code exits."""
    try:
        return call()
    except (Exception, SystemExit) as error:
        places = traceback.extract_tb(error.__traceback__)
        users = [each for each in places if not each.filename.startswith((OWN, "<"))]
        where = f" ({Path(users[-1].filename).name}:{users[-1].lineno})" if users else ""
        text = f"{type(error).__name__}: {error}".partition("\n")[0][:LINE]
        raise Failed(f"{what} raises {text}{where}") from error


def _load(file: Path, number: int) -> ModuleType:
    """The module of a file, under a name that no import of the user's takes."""
    spec = importlib.util.spec_from_file_location(f"breakeven_arm_{number}_{file.stem}", file)
    if spec is None or spec.loader is None or not file.is_file():
        raise Failed(f"there is no Python file {file.name}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module.__name__] = module  # dataclasses look up their module there
    _called(
        f"{file.name}, when it is imported,", functools.partial(spec.loader.exec_module, module)
    )
    return module


def _attribute(module: ModuleType, file: str, name: str) -> Callable[..., object]:
    found: object = module
    for part in name.split("."):
        found = getattr(found, part, None)
    if not callable(found):
        raise Failed(f"{Path(file).name} has no function {name!r}")
    return found


def _moved(entry: str, root: str, tree: Path) -> str:
    """A folder of the path of imports in another work tree, if it is one of the user's sources."""
    return str(tree / Path(entry).relative_to(root)) if _own(entry, root) else entry


def _own(file: str, root: str) -> bool:
    """Whether it is below `root` and not in an environment there."""
    path = Path(file)
    return (
        path.is_relative_to(root)
        and not path.is_relative_to(sys.prefix)
        and "site-packages" not in path.parts
    )


def plain(value: object, depth: int = 0) -> object:
    """A result as data that JSON holds: a list of its kind and its parts. Arrays and tensors as
    their bytes; of an object of another kind its fields, else only the name of its type.
    """
    if value is None or isinstance(value, (bool, int, float, str)):
        return ["value", value]
    if isinstance(value, (bytes, bytearray)):
        return ["bytes", base64.b64encode(value).decode()]
    if (array := _array(value)) is not None:
        return array
    if isinstance(value, (set, frozenset)):
        value = sorted(value, key=repr)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {each.name: getattr(value, each.name) for each in dataclasses.fields(value)}
    inside = functools.partial(plain, depth=depth + 1)
    if depth < DEPTH and isinstance(value, (list, tuple)):
        return ["list", [inside(each) for each in value]]
    if depth < DEPTH and isinstance(value, Mapping):
        return ["dict", [[repr(key), inside(each)] for key, each in value.items()]]
    return ["value", f"<{type(value).__qualname__}>"]


def _array(value: object) -> object:
    """What NumPy reads as an array of numbers; torch's own dtypes as float32."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        tensor = value.detach().to("cpu")
        value = (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy()
    numpy = sys.modules.get("numpy")
    if numpy is None or not (hasattr(value, "__array__") or isinstance(value, complex)):
        return None
    array = numpy.asarray(value)
    if array.dtype.kind not in "biufc":  # objects, texts, dates
        return plain(array.astype(str).tolist())
    return ["array", array.dtype.str, array.shape, base64.b64encode(array.tobytes()).decode()]
