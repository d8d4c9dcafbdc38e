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
from types import FunctionType, ModuleType
from typing import Any, TypeVar

Returned = TypeVar("Returned")
Arguments = tuple[tuple[object, ...], dict[str, object]]
OWN = str(Path(__file__).parent)
TIMER = Path(__file__).parents[2] / "workers" / "measure" / "timer.py"
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
        self._timer = _load(TIMER, next(self._numbers))
        self._trees = "", Path()
        """The root of the user's work tree, and the tree of the revision."""
        self._functions: list[list[Callable[..., object]]] = []
        """Of each slot the function, and the one that makes its arguments, if given."""
        self._inputs: list[Callable[[], Arguments]] = []
        """Makes other arguments for each slot."""
        self._calls: list[Any] = []

    def search(self, folders: list[str], root: str | None, tree: str | None) -> None:
        """Put folders first on the path of imports. Of a `tree` of another revision of `root`,
        what would be imported from there comes from the tree.
        """
        if root is not None and tree is not None:
            self._trees = root, Path(tree)
            sys.path[:] = [_moved(entry, *self._trees) for entry in sys.path]
        sys.path[:0] = dict.fromkeys(folders)

    def load(self, functions: list[tuple[str, str]]) -> None:
        """Load a slot: its function, and the one that makes its arguments, if given, each by file
        and name. The files are loaded anew, so that a slot shares no global with another one.
        """
        modules = {file: _load(Path(file), next(self._numbers)) for file, _ in functions}
        self._functions.append([_attribute(modules[file], file, name) for file, name in functions])

    def foreign(self) -> dict[str, str]:
        """The files of imported modules, by name, that are not from the tree though it has the
        module.
        """
        root, tree = self._trees
        found = {}
        for name, module in list(sys.modules.items()):
            file, inside = getattr(module, "__file__", None), name.replace(".", "/")
            if not file or Path(file).is_relative_to(tree):
                continue
            places = [f"src/{inside}.py", f"src/{inside}/__init__.py"]
            if _own(file, root):
                places.append(os.path.relpath(file, root))
            if any((tree / place).is_file() for place in places):
                found[name] = file
        return found

    def build(self, values: dict[str, float]) -> None:
        """Make the arguments of each slot at one place of the axes: what its `inputs` returns, a
        tuple of positional or a dict of named ones, or one; without `inputs` the place itself.
        Where `inputs` returns other values at each call, all slots have copies of the first ones.
        """
        self._inputs, self._calls = [], []
        for function, *inputs in self._functions:
            make = functools.partial(_made, inputs, values, itertools.count())
            made = make()
            if self._calls and plain(made) != plain(self._calls[0].inputs):
                first = self._calls[0].inputs
                made = _called("copying its arguments", functools.partial(copy.deepcopy, first))
            self._inputs.append(make)
            self._calls.append(self._timer.RepeatedCall(function, made))
        os.dup2(1, 2)  # what the functions print goes nowhere
        gc.collect()

    def result(self, index: int) -> object:
        """What a function returns, as data. Raises where it changes its arguments."""
        call = self._calls[index]
        before = plain(call.inputs)
        result = plain(_called("it", call))
        if plain(call.inputs) != before:
            raise Failed("it changes its arguments, so that the next call would do other work")
        return result

    def time(
        self, index: int, inner: int, *, fresh: bool
    ) -> tuple[tuple[float, float | None], bool]:
        """Seconds per call of `inner` in a row, by the clock and between CUDA events, and whether
        results may be cached; with `fresh` each call has inputs of its own.
        """
        torch, call = sys.modules.get("torch"), self._calls[index]
        on_gpu = torch is not None and torch.cuda.is_initialized()
        clock = self._timer.stopwatch("cuda" if on_gpu else "cpu")
        make = self._inputs[index] if fresh else None
        gc.disable()
        try:
            taken = _called("it", functools.partial(call.time, clock, inner, make))
            return taken, _called("it", functools.partial(call.may_be_cached, taken[0]))
        finally:
            gc.enable()


def _made(
    inputs: list[Callable[..., object]], values: dict[str, float], seeds: Iterator[int]
) -> Arguments:
    """The arguments that a function of the user makes, from the next seed; without one `values`."""
    if not inputs:
        return (), {**values}
    seed = next(seeds)
    random.seed(seed)
    with contextlib.suppress(KeyError):
        sys.modules["numpy"].random.seed(seed)
    with contextlib.suppress(KeyError):
        sys.modules["torch"].manual_seed(seed)
    made = _called("the inputs", functools.partial(inputs[0], **values))
    if made is None:
        raise Failed("--inputs returns nothing: it must return the arguments")
    if isinstance(made, dict):
        return (), made
    return made if isinstance(made, tuple) else (made,), {}


def _called(what: str, call: Callable[[], Returned]) -> Returned:
    """What a call returns. Raises `Failed`, also where the user's code exits."""
    try:
        return call()
    except (Exception, SystemExit) as error:
        places = traceback.extract_tb(error.__traceback__)
        ours = (OWN, str(TIMER), "<")
        users = [each for each in places if not each.filename.startswith(ours)]
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


def plain(value: object) -> object:
    """A result as data that JSON holds: a list of its kind and its parts. Arrays and tensors as
    their bytes; of an object its attributes, or what it prints where it can be compared; of another
    one that it is refused, by the name of its type.
    """
    try:
        return _plain(value, 0)
    except RecursionError:
        return ["refused", f"{type(value).__qualname__}, nested deeper than {DEPTH}"]


def _plain(value: object, depth: int) -> object:
    if depth > DEPTH:
        raise RecursionError
    if (array := _array(value)) is not None:
        return array
    if isinstance(value, (set, frozenset)):
        value = sorted(value, key=repr)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {each.name: getattr(value, each.name) for each in dataclasses.fields(value)}
    elif hasattr(value, "__dict__") and not isinstance(
        value, (type, FunctionType, ModuleType, Mapping, list, tuple)
    ):
        value = {"its type": type(value).__qualname__, **vars(value)}
    inside, kind = functools.partial(_plain, depth=depth + 1), type(value)
    if isinstance(value, (bytes, bytearray)):
        found: list[object] = ["bytes", base64.b64encode(value).decode()]
    elif isinstance(value, (list, tuple)):
        found = ["list", [inside(each) for each in value]]
    elif isinstance(value, Mapping):
        found = ["dict", [[repr(key), inside(each)] for key, each in value.items()]]
    elif value is None or isinstance(value, (bool, int, float, str, type)):
        found = ["value", value.__qualname__ if isinstance(value, type) else value]
    elif object.__eq__ is kind.__eq__ or object.__repr__ is kind.__repr__:
        found = ["refused", kind.__qualname__]
    else:
        found = ["value", repr(value)]
    return found


def _array(value: object) -> object:
    """What NumPy reads as an array of numbers; torch's own dtypes as float32."""
    torch, dtype = sys.modules.get("torch"), str(getattr(value, "dtype", type(value).__name__))
    if torch is not None and isinstance(value, torch.Tensor):
        tensor = value.detach().to("cpu")
        tensor = tensor.to_dense() if tensor.layout != torch.strided else tensor
        try:
            value = tensor.numpy()
        except TypeError:  # a dtype that NumPy lacks
            value = tensor.float().numpy()
    numpy = sys.modules.get("numpy")
    if numpy is None or not (hasattr(value, "__array__") or isinstance(value, complex)):
        return None
    array = numpy.asarray(value)
    if array.dtype.kind not in "biufc":  # objects, texts, dates
        return _plain(array.astype(str).tolist(), 0)
    data = base64.b64encode(array.tobytes()).decode()
    return ["array", array.dtype.str, array.shape, data, dtype]
