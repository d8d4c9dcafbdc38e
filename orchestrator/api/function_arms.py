"""Functions of files as arms: they run in processes of their own, in which the user's folder comes
first, so that a module there may have any name.
"""

import base64
import copy
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Self, cast

import numpy as np

from orchestrator.api.commands import Arms, FailedError, MeasuredProcess
from orchestrator.api.comparison import ArmFailedError, Slot
from orchestrator.api.result import ArmSource
from sweeps.errors import UserError
from sweeps.model.identity import digest
from sweeps.text.compared import short_time
from workers.measure.results import NotComparableError, first_difference
from workers.measure.timer import SampleTime

Values = Mapping[str, float]
LOAD_S = 300.0
"""What starting a process and importing an arm's libraries may take, beside the time limit."""


class FunctionOf(NamedTuple):
    """A function of a file."""

    file: Path
    name: str


class FunctionArm(NamedTuple):
    """A function, the maker of its arguments, and where it runs."""

    label: str
    function: FunctionOf
    inputs: FunctionOf | None
    python: str
    root: Path | None = None
    """Of the user's work tree; `None` where this is no other revision of it."""
    tree: Path | None = None
    """Where the revision is."""
    folder: Path | None = None
    """Current folder; by default this process's."""
    group: str = ""
    """Arms of one group must return the same."""

    @property
    def shared(self) -> tuple[object, ...]:
        """Equal for arms that may run in one process."""
        return self.function.file.parent, self.tree, self.python


def parse_function(text: str) -> FunctionOf:
    """`FILE:NAME`. Raises `UserError`."""
    file, _, name = text.rpartition(":")
    if not file or not name or not file.endswith(".py"):
        raise UserError(f"{text!r} names no function; write FILE.py:NAME")
    return FunctionOf(Path(file).absolute(), name)


class _Loaded(NamedTuple):
    """A function in its process."""

    label: str
    process: MeasuredProcess
    number: int
    """Of those in its process."""


class FunctionArms(Arms):
    """Arms in fresh processes for each visit, unless these take long to load."""

    def __init__(
        self,
        arms: Sequence[FunctionArm],
        fresh_s: float,
        timeout_s: float,
        *,
        check: bool,
        fresh_inputs: bool = False,
    ) -> None:
        """`fresh_s` is what loading may take for processes to be fresh in each visit; with
        `fresh_inputs` each call has inputs of its own.
        """
        self.names = [arm.label for arm in arms]
        self._arms, self._timeout_s, self._check = arms, timeout_s, check
        self._fresh_s, self._fresh_inputs = fresh_s, fresh_inputs
        self.cached: set[str] = set()
        self._values: Values = {}
        self._processes: list[MeasuredProcess] = []
        self._loaded: list[_Loaded] = []
        self._loads_s: list[float] = []
        self._failed: dict[str, str] = {}
        self._apart = False
        """Whether each slot has a process, as a file cannot be loaded twice in one."""
        self._checked = False
        self._fault = ""

    def at(self, values: Values) -> Self:
        """The same at a place of the axes, in the same processes."""
        place = copy.copy(self)
        place._values, place.cached = values, set()
        return place

    def slots(self) -> list[Slot]:
        """What times each function, twice; before the first visit results are compared. Raises
        `ArmFailedError`.
        """
        if not self._loaded or self._loads_s[0] <= self._fresh_s:
            self._load()
        processes = {id(arm.process): arm for arm in self._loaded}.values()
        for arm in processes:
            arm.process.send(do="build", values=self._values)
        for arm in processes:
            self._receive(arm.process, arm.label)
        if not self._checked:
            self.verify(self.names)
            self._checked = True
            for arm in self._loaded if self._arms[0].tree else ():
                arm.process.send(do="foreign")
                files = cast(dict[str, str], self._receive(arm.process, arm.label))
                for module, file in sorted(files.items())[:1]:
                    self._fault = (
                        f"{arm.label} imports {module} from {file}, not from its revision: let"
                        " --setup install it in each tree, or put its folder on PYTHONPATH"
                    )
        loaded = iter(self._loaded)
        return [
            partial(self._refuse, name)
            if name in self._failed
            else partial(self._time, next(loaded))
            for name in 2 * self.names
        ]

    def verify(self, names: Sequence[str]) -> None:
        """Compare results with that of the first arm of the group. Raises `ArmFailedError`."""
        when = " after the timed rounds" if self._checked else ""
        groups = {arm.label: arm.group for arm in self._arms}
        expected: dict[str, tuple[str, object]] = {}
        for arm in self._loaded if self._check else ():
            if arm.label not in names:
                continue
            data = self._ask(arm, "result")
            try:
                result = restored(data)
                first, old = expected.setdefault(groups[arm.label], (arm.label, result))
                fault = first_difference(old, result) or ""
                fault = fault and f"is not that of {first}: {fault}"
            except NotComparableError as error:
                fault = str(error)
            if fault:
                raise self._failure(
                    arm.label,
                    f"its result{when} {fault} (--no-check: compare them all the same)",
                )

    def _load(self) -> None:
        """Two slots of each arm: of one folder in one process, else each in its own; all start at
        once. What is loaded first may lie better: the first one, and the last one, are of another
        arm in every second visit.
        """
        self.close()
        began = time.monotonic()
        arms = [arm for arm in self._arms if arm.label not in self._failed]
        arms = arms[::-1] + arms if len(self._loads_s) % 2 else arms + arms[::-1]
        together = len({arm.shared for arm in arms}) == 1 and not self._apart
        groups = [arms] if together else [[arm] for arm in arms]
        started = []
        for group in groups:
            process = MeasuredProcess("functions", (group[0].python,), group[0].folder)
            self._processes.append(process)
            started.append(process)
            _send_loading(process, group)
        for process, group in zip(started, groups, strict=True):
            first = group[0]
            self._receive(process, first.label, LOAD_S)
            for index, arm in enumerate(group):
                try:
                    self._receive(process, arm.label, LOAD_S)
                except ArmFailedError:
                    if index == 0:
                        raise
                    del self._failed[arm.label]
                    self._apart = True
                    self._load()
                    return
                self._loaded.append(_Loaded(arm.label, process, index))
        half = len(self._loaded) // 2
        for slots in (slice(half), slice(half, None)):
            self._loaded[slots] = sorted(
                self._loaded[slots], key=lambda arm: self.names.index(arm.label)
            )
        self._loads_s.append(time.monotonic() - began)

    def _refuse(self, label: str, _: int) -> SampleTime:
        raise ArmFailedError(label, self._failed[label])

    def _failure(self, label: str, reason: str) -> ArmFailedError:
        self._failed[label] = reason
        self._loaded.clear()
        return ArmFailedError(label, reason)

    def _ask(self, arm: _Loaded, what: str) -> object:
        """What a method of `Functions` replies for an arm. Raises `ArmFailedError`."""
        arm.process.send(do=what, index=arm.number)
        return self._receive(arm.process, arm.label)

    def _time(self, arm: _Loaded, inner: int) -> SampleTime:
        arm.process.send(do="time", index=arm.number, inner=inner, fresh=self._fresh_inputs)
        taken, cached = cast(tuple[list[float], bool], self._receive(arm.process, arm.label))
        if cached:
            self.cached.add(arm.label)
        return SampleTime(*taken)

    def _receive(self, process: MeasuredProcess, label: str, more_s: float = 0.0) -> object:
        try:
            return process.receive(self._timeout_s + more_s)
        except FailedError as failed:
            raise self._failure(label, str(failed)) from None

    def own_s(self) -> float:
        """CPU time of this process and of those of the arms, in seconds."""
        return time.process_time() + sum(process.cpu_s for process in self._processes)

    def threads_s(self) -> Mapping[str, float]:
        """See `Arms`; after the last reply of each process."""
        return {key: s for each in self._processes for key, s in each.threads_s.items()}

    def sources(self) -> Mapping[str, ArmSource]:
        """The arms with a hash of their files, by name."""
        files = {arm.label: arm.function.file for arm in self._arms}
        return {
            label: ArmSource(label, digest(file.read_text(encoding="utf-8")))
            for label, file in files.items()
            if file.is_file()
        }

    def fault(self) -> str:
        """Why nothing may be concluded; empty if something may."""
        return self._fault

    def notes(self) -> Iterator[str]:
        """What a reader must know of how they ran."""
        yield "Garbage is collected between the samples, not while functions are timed"
        for label in sorted(self.cached):
            yield f"{label} returned one object again, far quicker than at its first call"
        if self._loads_s[0] <= self._fresh_s:
            yield "Functions run in fresh processes for each visit, one at a time"
        else:
            yield (
                f"Loading takes {short_time(self._loads_s[0])}, so that processes stay for all"
                " visits: by how much processes differ is not in the interval"
            )

    def close(self) -> None:
        """End the processes."""
        self._loaded.clear()
        for process in self._processes:
            process.close()


def _send_loading(process: MeasuredProcess, arms: Sequence[FunctionArm]) -> None:
    """The requests that load the functions of a process."""
    first = arms[0]
    slots = [
        [(str(each.file), each.name) for each in (arm.function, arm.inputs) if each is not None]
        for arm in arms
    ]
    folders = [str(Path(file).parent) for slot in slots for file, _ in slot]
    tree = [] if first.tree is None else [str(first.tree)]
    process.send(
        do="search", folders=folders + tree, root=_text(first.root), tree=_text(first.tree)
    )
    for slot in slots:
        process.send(do="load", functions=slot)


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)


def default_python() -> str:
    """The interpreter of the active environment, else this one."""
    active = Path(os.environ.get("VIRTUAL_ENV", "")) / "bin" / "python"
    return str(active) if "VIRTUAL_ENV" in os.environ and active.exists() else sys.executable


class _Array(NamedTuple):
    """An array that another process sent."""

    values: np.ndarray[Any, Any]
    dtype: str
    """As it was there, such as `torch.bfloat16`."""

    def __array__(self, dtype: object = None, copy: object = None) -> np.ndarray[Any, Any]:
        return self.values


def restored(data: Any) -> object:
    """A result from what `measured_functions.plain` made of it."""
    kind, *parts = data
    if kind == "array":
        stored, shape, values, dtype = parts
        return _Array(np.frombuffer(base64.b64decode(values), stored).reshape(shape), dtype)
    if kind == "list":
        return [restored(each) for each in parts[0]]
    if kind == "dict":
        return {name: restored(each) for name, each in parts[0]}
    if kind == "refused":
        raise NotComparableError(f"holds a {parts[0]}, which has no comparison")
    return base64.b64decode(parts[0]) if kind == "bytes" else parts[0]
