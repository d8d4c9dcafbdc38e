"""Functions compared in this process: inputs made anew for each visit, results checked against
each other, inputs against change.
"""

import contextlib
import copy
import inspect
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from orchestrator.api.comparison import ArmFailedError, Comparison, Slot, failure_text
from orchestrator.api.result import ArmSource, Result, Setup
from sweeps.language.file_schema import stated_seconds
from sweeps.model.condition import Device
from sweeps.model.identity import digest
from workers.errors import TimedOut, alarm
from workers.measure.interleaved import frozen_heap, random_order
from workers.measure.results import NotComparableError, first_difference, on_gpu
from workers.measure.timer import SampleTime, Stopwatch, stopwatch

ArmFunctions = Mapping[str, Callable[..., Any]]
Check = Mapping[str, float] | Callable[[Any, Any], object] | None
"""How results are compared: tolerances `rtol` and `atol`, a function of the result of the baseline
and that of the arm, or not at all."""
BY_DTYPE: Check = {}
TIMEOUT_SHARE, TIMEOUT_S = 4.0, 60.0
"""A comparison is ended after this many times its time, and this long."""
LEAK_BYTES = 64 * 2**20
"""By which the process grows during the runs of one arm before there is a note."""
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class DifferentResultsError(ArmFailedError):
    """An arm gives another result than the baseline, or changes its inputs."""


class Call(NamedTuple):
    """The inputs of one call."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    @classmethod
    def of(cls, made: Any) -> "Call":
        """A tuple is positional arguments, a dictionary named ones, all else one argument."""
        if isinstance(made, dict):
            return cls((), made)
        return cls(made if type(made) is tuple else (made,), {})

    def copy(self) -> "Call | None":
        """With inputs of its own; `None` where they cannot be copied."""
        try:
            return copy.deepcopy(self)
        except Exception:  # whatever a class of the user raises
            return None

    def change(self, before: "Call") -> str | None:
        """Which argument is not as before, with both values."""
        for place, (old, new) in enumerate(zip(before.args, self.args, strict=True), start=1):
            if found := _difference(old, new, place=f"argument {place}", rtol=0.0, atol=0.0):
                return found
        for name, old in before.kwargs.items():
            if found := _difference(old, self.kwargs[name], place=name, rtol=0.0, atol=0.0):
                return found
        return None


def _difference(old: Any, new: Any, **options: Any) -> str | None:
    """As `first_difference`; `None` for inputs that have no comparison."""
    with contextlib.suppress(NotComparableError, RecursionError):
        return first_difference(old, new, **options)
    return None


class Calls:
    """The functions at one size: makes the slots of a visit."""

    def __init__(
        self,
        functions: ArmFunctions,
        inputs: Callable[..., Any] | None,
        values: Mapping[str, float],
        check: Check,
        mark: Callable[[int], object] = lambda _: None,
    ) -> None:
        """`mark` is called with the place of the arm that runs next, and -1 after it."""
        self.functions, self.inputs, self.values = functions, inputs, values
        self.check, self.mark = check, mark
        self.device: Device = "cpu"
        self.notes: list[str] = []
        self.grown = dict.fromkeys(functions, 0)
        """Bytes by which the process grew while an arm ran."""
        self._clock: Stopwatch = stopwatch("cpu")
        self._failed: dict[str, str] = {}

    def make(self) -> list[Slot]:
        """A slot for each function and a second one for the first. Raises `ArmFailedError` once for
        each arm that failed the check.
        """
        for name in list(self._failed):
            raise ArmFailedError(name, self._failed.pop(name))
        made = self._made()
        names = [*self.functions, next(iter(self.functions))]
        return [
            self._slot(place % len(self.functions), name, made.copy() or made)
            for place, name in enumerate(names)
        ]

    def run_once(self) -> None:
        """Run each arm for the first time, compare results and inputs, and learn the device. Raises
        `DifferentResultsError`.
        """
        made = self._made()
        results: dict[str, Any] = {}
        for place, (name, function) in enumerate(self.functions.items()):
            call = made.copy()
            if call is None and self.check is not None and not self.notes:
                self.notes.append("the inputs cannot be copied: all arms share them")
            used = call or made
            threads = set(threading.enumerate())
            self.mark(place)
            try:
                results[name] = function(*used.args, **used.kwargs)
            except (Exception, TimedOut) as error:
                self._failed[name] = failure_text(error)
                continue
            finally:
                self.mark(-1)
            begun = {each.name for each in threading.enumerate() if each not in threads}
            if begun:
                self.notes.append(f"{name} leaves threads running: {', '.join(sorted(begun))}")
            if self.check is not None and call is not None and (change := call.change(made)):
                raise DifferentResultsError(
                    name, f"changes its inputs: {change}; let it work on a copy"
                )
        if on_gpu([made, results]):
            self.device = "cuda"
            self._clock = stopwatch("cuda")
        self._compare(results)

    def _made(self) -> Call:
        return Call((), {}) if self.inputs is None else Call.of(self.inputs(**self.values))

    def _slot(self, place: int, name: str, call: Call) -> Slot:
        step = partial(self.functions[name], *call.args, **call.kwargs)

        def run(inner: int) -> SampleTime:
            before = _resident_bytes()
            self.mark(place)
            try:
                return self._clock(step, inner)
            finally:
                self.mark(-1)
                self.grown[name] += _resident_bytes() - before

        return run

    def _compare(self, results: Mapping[str, Any]) -> None:
        """Raises `DifferentResultsError`."""
        baseline = next(iter(self.functions))
        if self.check is None or baseline not in results:
            return
        old = results[baseline]
        if all(result is None for result in results.values()):
            self.notes.append("the arms return nothing: no results were compared")
        for name, new in results.items():
            if name != baseline and (found := _checked(self.check, old, new)):
                raise DifferentResultsError(name, f"differs from {baseline}: {found}")

    def leaks(self) -> Iterator[str]:
        for name, size in self.grown.items():
            if size > LEAK_BYTES:
                yield (
                    f"{name}: the process grew by {size // 2**20:,} MiB while it ran, which may"
                    " slow later runs"
                )


class Request(NamedTuple):
    """A comparison of functions at one or more points."""

    functions: ArmFunctions
    inputs: Callable[..., Any] | None
    points: Sequence[Mapping[str, float]]
    """By name the values that inputs are made with."""
    setup: Setup
    """Its time is that of each point."""
    check: Check
    limit_s: float
    """After which what still runs has failed."""


def measure_points(
    request: Request,
    progress: Callable[[float], object],
    mark: Callable[[int], object] = lambda _: None,
) -> list[Result]:
    """The results of all points, whose visits alternate. Raises `ArmFailedError` and
    `DifferentResultsError`.
    """
    made: list[tuple[Calls, Comparison]] = []
    functions, seed = request.functions, request.setup.seed
    with _as_it_was() as changes, frozen_heap(), _ended_after(request.limit_s):
        for values in request.points:
            calls = Calls(functions, request.inputs, values, request.check, mark)
            calls.run_once()
            setup = replace(request.setup, device=calls.device, values=values, threads=_threads())
            comparison = Comparison(list(functions), calls.make, setup)
            comparison.visit()
            made.append((calls, comparison))
            progress(len(made) / len(request.points) * comparison.share_done)
        turn = 0
        while left := [each for _, each in made if not each.ended]:
            turn += 1
            for place in random_order(len(left), f"{seed}:{turn}"):
                left[place].visit()
                progress(sum(each.share_done for _, each in made) / len(made))
    return [
        comparison.result([*dict.fromkeys([*calls.notes, *calls.leaks(), *changes])])
        for calls, comparison in made
    ]


def request_of(
    functions: ArmFunctions,
    inputs: Callable[..., Any] | None,
    points: Sequence[Mapping[str, float]],
    *,
    time: str | float,
    check: Check,
    timeout: str | float | None,
    **setup: Any,
) -> Request:
    """What `compare` and `curve` measure; `time` is that of all points. Raises `ValueError` and
    `TypeError`.
    """
    for name, function in functions.items():
        if not callable(function):
            raise TypeError(f"{name} is no function but {type(function).__name__}")
    seconds = _seconds(time)
    limit_s = TIMEOUT_SHARE * seconds + TIMEOUT_S if timeout is None else _seconds(timeout)
    about = Setup(
        time_s=seconds / len(points),
        sources={name: _source(function) for name, function in functions.items()},
        **setup,
    )
    return Request(functions, inputs, points, about, check, limit_s)


def _seconds(time: str | float) -> float:
    seconds = stated_seconds(time) if isinstance(time, str) else float(time)
    if not seconds > 0:
        raise ValueError(f"the time must be above 0 s, not {time!r}")
    return seconds


def _threads() -> int:
    """CPU threads of the arms: torch's, where it is loaded."""
    torch = sys.modules.get("torch")
    return int(torch.get_num_threads()) if torch is not None else 1


@contextlib.contextmanager
def _as_it_was() -> Iterator[list[str]]:
    """Restore what the block changes of torch's settings, the environment and the process; the list
    names it.
    """
    changes: list[str] = []
    if "torch" not in sys.modules:
        yield changes
        return
    from workers.measure.process_state import ProcessState

    before = ProcessState()
    try:
        yield changes
    finally:
        changes += [f"while measuring: {change.text}" for change in before.restore()]


@contextlib.contextmanager
def _ended_after(limit_s: float) -> Iterator[None]:
    """Interrupt an arm that runs too long; only the main thread can be."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    with alarm(limit_s):
        yield


def _source(function: Callable[..., Any]) -> ArmSource:
    """Where a function is from, and a hash of its text."""
    bound = ""
    while isinstance(function, partial):
        bound += repr((function.args, function.keywords))
        function = function.func
    function = inspect.unwrap(function)
    name = getattr(function, "__qualname__", type(function).__qualname__)
    try:
        file, text = Path(inspect.getfile(function)).name, inspect.getsource(function)
    except (OSError, TypeError):  # built in, or typed into an interpreter
        file, text = str(getattr(function, "__module__", "")), ""
    return ArmSource(f"{file}:{name}", digest([text, bound]))


def _resident_bytes() -> int:
    """Of this process; 0 where the kernel does not say."""
    try:
        return int(Path("/proc/self/statm").read_bytes().split()[1]) * PAGE_BYTES
    except OSError:
        return 0


def _checked(check: Mapping[str, float] | Callable[[Any, Any], object], old: Any, new: Any) -> str:
    """What is wrong with a result; empty if nothing."""
    if not isinstance(check, Mapping):
        try:
            return "check(old, new) is False" if check(old, new) is False else ""
        except AssertionError as error:
            return str(error) or "check(old, new) raised AssertionError"
    try:
        return first_difference(old, new, rtol=check.get("rtol"), atol=check.get("atol")) or ""
    except (NotComparableError, RecursionError) as error:
        return str(error)
