"""Arms from files of the user: a model or function, built anew for each arm, and what it returns
compared with what the baseline returns. The files travel with the job, and are loaded as modules
under names of their own.
"""

import ast
import copy
import importlib
import inspect
import linecache
import posixpath
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from sweeps.geometry.model_families import CHECK, INPUTS, TOKENS, file_of
from sweeps.model.condition import Condition
from sweeps.model.identity import digest
from sweeps.model.job import Job
from sweeps.model.outcome import ArmOutcome, MetricValue
from workers.arms.prepared import PreparedArm, compile_limit, describe
from workers.errors import WrongResultError
from workers.measure.optional import optional
from workers.measure.results import NotComparableError, first_difference
from workers.measure.samples import metric_value
from workers.measure.timer import synchronise
from workers.models.runtime import alone
from workers.models.share_weights import DTYPES

_PREFIX = "breakeven_own_"


class OwnModules(MetaPathFinder, Loader):
    """The files in one folder of a job as the modules of one package; what they import from this
    folder comes from the package, so that `import store` in them is their own `store.py`.
    """

    def __init__(self, package: str, root: str, files: Mapping[str, str]) -> None:
        self.package = package
        self.files = {
            posixpath.relpath(file, root or "."): (file, text) for file, text in files.items()
        }
        """By their paths from the folder: the path from the sweep, and the text."""

    def place(self, name: str) -> str | None:
        """The file of a module by its name in the package; empty for a folder, `None` for what is
        not there.
        """
        path = name.replace(".", "/")
        for file in (f"{path}.py", f"{path}/__init__.py"):
            if file in self.files:
                return file
        return "" if any(file.startswith(f"{path}/") for file in self.files) else None

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:  # noqa: ARG002 - Python's interface
        if name != self.package and not name.startswith(f"{self.package}."):
            return None
        inner = name[len(self.package) + 1 :]
        file = self.place(inner) if inner else ""
        is_package = file is not None and (not file or file.endswith("/__init__.py"))
        return None if file is None else ModuleSpec(name, self, origin=file, is_package=is_package)

    def exec_module(self, module: ModuleType) -> None:
        file = module.__spec__.origin if module.__spec__ is not None else None
        if not file:
            return
        path, text = self.files[file]
        module.__file__ = path
        # tracebacks, inspect and torch.compile read lines there
        linecache.cache[path] = len(text), None, text.splitlines(keepends=True), path
        tree = ast.fix_missing_locations(_OwnImports(self).visit(ast.parse(text)))
        exec(compile(tree, path, "exec"), module.__dict__)  # noqa: S102 - what the sweep names


class _OwnImports(ast.NodeTransformer):
    """Imports of modules beside the file from the package that these are in."""

    def __init__(self, modules: OwnModules) -> None:
        self.modules = modules

    def _is_own(self, name: str) -> bool:
        return self.modules.place(name.partition(".")[0]) is not None

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.ImportFrom:
        if not node.level and node.module and self._is_own(node.module):
            node.module = f"{self.modules.package}.{node.module}"
        return node

    def visit_Import(self, node: ast.Import) -> list[ast.stmt]:
        found: list[ast.stmt] = []
        for each in node.names:
            if not self._is_own(each.name):
                found.append(ast.Import([each]))
                continue
            full = f"{self.modules.package}.{each.name}"
            found.append(ast.Import([ast.alias(full, each.asname)]))
            if each.asname is None:  # binds the first name alone
                found[-1] = ast.Import([ast.alias(full, "_")])
                top = [ast.alias(each.name.partition(".")[0])]
                found.append(ast.ImportFrom(self.modules.package, top, 0))
        return [ast.copy_location(each, node) for each in found]


def load_own(files: Mapping[str, str], name: str) -> ModuleType:
    """The module of the file of a `code_name`, loaded once. Raises what its code raises."""
    file = file_of(name)
    root = posixpath.dirname(file)
    package = f"{_PREFIX}{digest([root, dict(files)])}"
    if not any(getattr(each, "package", "") == package for each in sys.meta_path):
        sys.meta_path.insert(0, OwnModules(package, root, files))
    path = posixpath.relpath(file, root or ".").removesuffix(".py").replace("/", ".")
    return importlib.import_module(f"{package}.{path}")


def own_function(files: Mapping[str, str], name: str) -> Callable[..., Any]:
    """The function of a `code_name`."""
    function: Callable[..., Any] = getattr(load_own(files, name), name.rpartition(":")[2])
    return function


def call_with(function: Callable[..., Any], known: Mapping[str, Any]) -> Any:
    """What a function returns for those of the values that it has parameters for."""
    taken = inspect.signature(function).parameters
    return function(**{name: value for name, value in known.items() if name in taken})


Call = Callable[..., Any]
CallInputs = tuple[tuple[Any, ...], dict[str, Any]]


class OwnWorkload:
    """The model of a job's file, the input of its calls, and what the file states of them."""

    def __init__(self, job: Job) -> None:
        """Loads the file and builds the model. Raises what the code of the user raises."""
        self.job = job
        condition = job.condition
        self.module = load_own(job.files, condition.model)
        self.known = {**dict(condition), **dict(condition.values or ())}
        self.model = self._build()
        self.inference = isinstance(self.model, nn.Module)
        """Whether gradients are switched off, as for a module; a function may train."""

    def _call(self, name: str) -> Any:
        with torch.random.fork_rng():
            torch.manual_seed(self.job.condition.seed)
            return call_with(getattr(self.module, name), self.known)

    def _build(self) -> Any:
        return self._call(self.job.condition.model.rpartition(":")[2])

    def fresh(self, condition: Condition) -> Any:
        """The model once more, with weights of its own, as an arm's own condition has it."""
        if not isinstance(self.model, nn.Module):
            return self._build()
        with torch.inference_mode(mode=False):
            try:
                model = copy.deepcopy(self.model)
            except RuntimeError:  # of tensors that are computed, as by torch.nn.utils.weight_norm
                model = self._build()
                model.load_state_dict(self.model.state_dict())
            return model.eval().to(condition.device, _dtype(condition))

    @cached_property
    def size(self) -> int | None:
        """What the x axis counts; `None` without one."""
        if (axis := self.job.condition.x_axis) is None:
            return None
        return int(self._call(TOKENS) if axis[0] == TOKENS else self.known[axis[0]])

    @cached_property
    def made(self) -> Any:
        """What `inputs` returns."""
        return self._call(INPUTS)

    def inputs(self, condition: Condition) -> CallInputs:
        """A copy of the input, on the device of an arm's own condition and in its type."""

        def moved(value: Any) -> Any:
            if not isinstance(value, Tensor):
                return copy.deepcopy(value)
            dtype = _dtype(condition) if value.is_floating_point() else None
            return value.detach().to(condition.device, dtype, copy=True)

        if isinstance(self.made, Mapping):
            return (), {name: moved(value) for name, value in self.made.items()}
        several = isinstance(self.made, tuple | list)
        return tuple(map(moved, self.made if several else (self.made,))), {}

    def check_call(self, arm: "OwnArm", result: Any, results: Mapping[int, Any]) -> None:
        """Raises `WrongResultError` where an arm changed its inputs, or returns something else than
        its baselines did at first, or itself without one; `results` has that by arm.
        """
        made = self.inputs(arm.condition)
        if found := first_difference(made, arm.inputs, rtol=0.0, atol=0.0):
            raise WrongResultError(f"it changes its input: {found.replace('result', 'input', 1)}")
        baselines = {pair.baseline for pair in self.job.pairs if pair.arm == arm.index}
        for other in (baselines or {arm.index}) & results.keys():
            self.check(results[other], result)

    def check(self, old: Any, new: Any) -> None:
        """Raises `WrongResultError` where a result differs from that of the baseline by more than
        the file allows.
        """
        check = getattr(self.module, CHECK, {})
        if check is None:
            return
        try:
            if isinstance(check, Mapping):
                found = first_difference(old, new, **check)
            else:
                found = f"{CHECK}(old, new) is False" if check(old, new) is False else None
        except (AssertionError, NotComparableError) as error:
            found = str(error) or f"{CHECK}(old, new) raised {type(error).__name__}"
        if found is not None:
            why = f"it returns something else than its baseline: {found}"
            right = f"state in {file_of(self.job.condition.model)} what is allowed: {CHECK} ="
            raise WrongResultError(f'{why}; {right} {{"rtol": ...}}, or None')


def _dtype(condition: Condition) -> torch.dtype | None:
    """The type that floating-point numbers are cast to; `None` leaves them as they are made."""
    return None if condition.dtype == "float32" else DTYPES[condition.dtype]


@dataclass
class OwnArm(PreparedArm):
    """A model or function of the user with its input."""

    model: Call
    """As it was built, before it was compiled."""
    call: Call
    inputs: CallInputs
    result: Any
    """What the first call returned."""
    size: int | None
    macs: int | None
    """Of a call; `None` of a function."""

    def step(self) -> object:
        args, named = self.inputs
        return self.call(*args, **named)

    def outcome(self) -> ArmOutcome:
        metrics: tuple[MetricValue, ...] = ()
        if self.condition.runtime != "eager":
            metrics = (metric_value("seconds_to_compile", self.first_call_s, n=1),)
        known: dict[str, Any] = {
            "batch": self.condition.batch_size,
            "tokens": self.size,
            "first_call_s": self.first_call_s,
            "metrics": metrics,
        }
        if not isinstance(self.model, nn.Module) or self.macs is None:
            return ArmOutcome(arm=self.index, threads=torch.get_num_threads(), **known)
        gmacs = self.macs / self.condition.batch_size / 1e9
        return describe(self.index, self.model, gmacs=gmacs, gmacs_overhead=0.0, **known)


def prepare_own(job: Job, index: int, workload: OwnWorkload, results: dict[int, Any]) -> OwnArm:
    """Build arm `index` of the job on a fresh copy of the model, run it once and check its result,
    which is added to `results`. Raises `WrongResultError`, and what the code of the user raises.
    """
    arm = job.arms[index]
    condition = arm.condition(job.condition)
    model = workload.fresh(condition)
    for step in arm.stack:
        given = {name: value for name, value in step.params.items() if value is not None}
        model = own_function(job.files, step.method)(model, **given)
    if not callable(model):
        raise TypeError(f"{arm} is a {type(model).__name__}, which cannot be called")
    args, named = inputs = workload.inputs(condition)
    macs = None
    if isinstance(model, nn.Module):
        with optional(f"MACs of {arm}"):
            with FlopCounterMode(display=False) as counter:
                model(*args, **named)
            macs = counter.get_total_flops() // 2 or None
    call = torch.compile(alone(model), dynamic=False) if condition.runtime == "compile" else model
    with compile_limit(job, condition):
        synchronise(condition.device)
        start = time.perf_counter()
        result = call(*args, **named)
        synchronise(condition.device)
        first_call_s = time.perf_counter() - start
    prepared = OwnArm(
        index, arm, condition, first_call_s, model, call, inputs, result, workload.size, macs
    )
    results.pop(index, None)  # of another copy
    workload.check_call(prepared, result, results)
    results[index] = result
    return prepared
