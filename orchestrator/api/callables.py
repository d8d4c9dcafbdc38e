"""Functions compared in this process, with inputs made anew for each visit, results checked against
each other and inputs against change; or in a process of their own, which may raise, end, hang or
print whatever it does: what happens is a line on the arm that ran, and the others are measured
without it.
"""

import contextlib
import copy
import inspect
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, NamedTuple, cast

import psutil

from orchestrator.api.closures import own_arrays, reads_shared_data
from orchestrator.api.comparison import (
    ArmFailedError,
    Comparison,
    Slot,
    check_names,
    failure_text,
)
from orchestrator.api.result import ArmSource, Result, Setup
from sweeps.language.file_schema import stated_seconds
from sweeps.model.condition import Device
from sweeps.model.identity import digest
from sweeps.model.job import MAX_TIMEOUT_S
from workers.errors import TimedOut, alarm
from workers.measure.descendants import end
from workers.measure.interleaved import frozen_heap, random_order
from workers.measure.results import NotComparableError, first_difference, on_gpu
from workers.measure.timer import RepeatedCall, SampleTime, Stopwatch, stopwatch

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
        """A tuple is positional arguments, a dictionary named ones, all else one argument. Raises
        `ValueError` for nothing.
        """
        if made is None:
            raise ValueError("inputs returns nothing: it must return the arguments")
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
        *,
        fresh_inputs: bool = False,
    ) -> None:
        """`mark` is called with the place of the arm that runs next, and -1 after it; with
        `fresh_inputs` each timed call has inputs of its own.
        """
        self.functions, self.inputs, self.values = functions, inputs, values
        self.check, self.mark = check, mark
        self.device: Device = "cpu"
        self.notes: list[str] = []
        self.grown = dict.fromkeys(functions, 0)
        """Bytes by which the process grew while an arm ran."""
        self._clock: Stopwatch = stopwatch("cpu")
        self._failed: dict[str, str] = {}
        self._first_s = dict.fromkeys(functions, 0.0)
        self._make = self._made if fresh_inputs else None
        self.cached: dict[str, None] = {}
        """Arms whose results may be cached."""
        self._visits = 0
        self._visit: tuple[Call, list[RepeatedCall]] = Call((), {}), []
        """What inputs returned, and the calls of each slot."""

    def make(self) -> list[Slot]:
        """A slot for each function, and then a second one for each. Raises `ArmFailedError` once
        for each arm that failed the check.
        """
        for name in list(self._failed):
            raise ArmFailedError(name, self._failed.pop(name))
        made = self._made()
        names = 2 * list(self.functions)
        # what is made first may lie better: it is of another arm in every second visit
        half = list(range(len(self.functions)))
        first, second = (half, half[::-1]) if self._visits % 2 else (half[::-1], half)
        self._visits += 1
        order = [*first, *(len(half) + place for place in second)]
        calls = {place: self._call(names[place], made.copy() or made) for place in order}
        self._visit = made, [calls[place] for place in range(len(names))]
        return [self._slot(name, call) for name, call in zip(names, self._visit[1], strict=True)]

    def verify(self, names: Sequence[str]) -> None:
        """Compare results and inputs once more, after the rounds of a visit. Raises
        `ArmFailedError`.
        """
        if self.check is not None:
            made, calls = self._visit
            pairs = zip(self.functions, calls, strict=False)
            self._compare(
                {name: self._result(name, call, made) for name, call in pairs if name in names},
                " after the timed rounds",
            )

    def run_once(self) -> None:
        """Run each arm for the first time, compare results and inputs, and learn the device. Raises
        `DifferentResultsError`.
        """
        made = self._made()
        results: dict[str, Any] = {}
        for name in self.functions:
            call = made.copy()
            if call is None and self.check is not None and not self.notes:
                self.notes.append("the inputs cannot be copied: all arms share them")
            threads = set(threading.enumerate())
            try:
                results[name] = self._result(name, self._call(name, call or made), made)
            except DifferentResultsError:
                raise
            except ArmFailedError as error:
                self._failed[name] = error.reason
                continue
            begun = {each.name for each in threading.enumerate() if each not in threads}
            if begun:
                self.notes.append(f"{name} leaves threads running: {', '.join(sorted(begun))}")
        if on_gpu([made, results]):
            self.device = "cuda"
            self._clock = stopwatch("cuda")
        self._compare(results)

    def _call(self, name: str, inputs: Call) -> RepeatedCall:
        return RepeatedCall(own_arrays(self.functions[name]), inputs, self._first_s[name])

    def _result(self, name: str, call: RepeatedCall, made: Call) -> Any:
        """What an arm returns. Raises `ArmFailedError`, also where it changes its inputs."""
        try:
            with self._marked(name):
                result = call()
        except (Exception, TimedOut) as error:
            raise ArmFailedError(name, failure_text(error)) from None
        self._first_s[name], inputs = call.first_s, cast(Call, call.inputs)
        if self.check is not None and inputs is not made and (change := inputs.change(made)):
            raise DifferentResultsError(
                name, f"changes its inputs: {change}; let it work on a copy"
            )
        return result

    def _made(self) -> Call:
        return Call((), {}) if self.inputs is None else Call.of(self.inputs(**self.values))

    @contextlib.contextmanager
    def _marked(self, name: str) -> Iterator[None]:
        self.mark([*self.functions].index(name))
        try:
            yield
        finally:
            self.mark(-1)

    def _slot(self, name: str, call: RepeatedCall) -> Slot:
        def run(inner: int) -> SampleTime:
            before = _resident_bytes()
            with self._marked(name):
                taken = call.time(self._clock, inner, self._make)
                if call.may_be_cached(taken.wall):
                    self.cached[name] = None
            self.grown[name] += _resident_bytes() - before
            return taken

        return run

    def _compare(self, results: Mapping[str, Any], when: str = "") -> None:
        """Raises `DifferentResultsError`."""
        baseline = next(iter(self.functions))
        if self.check is None or baseline not in results:
            return
        old = results[baseline]
        if all(result is None for result in results.values()):
            self.notes.append("the arms return nothing: no results were compared")
        for name, new in results.items():
            if name != baseline and (found := _checked(self.check, old, new)):
                raise DifferentResultsError(name, f"differs from {baseline}{when}: {found}")

    def later_notes(self) -> Iterator[str]:
        """What the timed rounds showed."""
        for name in self.cached:
            yield f"{name} returned one object again, far quicker than at its first call"
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
    fresh_inputs: bool
    """Whether each timed call has inputs of its own."""


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
    shared = [
        f"{name} also reads data that cannot be copied: both of its slots share it"
        for name, function in functions.items()
        if reads_shared_data(function)
    ]
    with _as_it_was() as changes, frozen_heap(), _ended_after(request.limit_s):
        for values in request.points:
            calls = Calls(
                functions,
                request.inputs,
                values,
                request.check,
                mark,
                fresh_inputs=request.fresh_inputs,
            )
            calls.run_once()
            setup = replace(request.setup, device=calls.device, values=values, threads=_threads())
            comparison = Comparison(
                list(functions), calls.make, setup, calls.verify, cached=calls.cached
            )
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
        comparison.result([*dict.fromkeys([*shared, *calls.notes, *calls.later_notes(), *changes])])
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
    fresh_inputs: bool,
    **setup: Any,
) -> Request:
    """What `compare` and `curve` measure; `time` is that of all points. Raises `ValueError` and
    `TypeError`.
    """
    if not isinstance(functions, Mapping):
        kind = type(functions).__name__
        raise TypeError(f"functions need names, such as {{'old': f, 'new': g}}, not a {kind}")
    check_names(functions)
    for name, function in [*functions.items(), ("inputs", inputs)]:
        # inputs may be left out where there are no sizes
        if not callable(function) and (function is not None or any(points)):
            raise TypeError(f"{name} is no function but {type(function).__name__}")
    if not (callable(check) or {*(check or ())} <= {"rtol", "atol"}):
        raise ValueError(f"check is a function, None, or has rtol and atol alone, not {check!r}")
    seconds = _seconds(time)
    limit_s = TIMEOUT_SHARE * seconds + TIMEOUT_S if timeout is None else _seconds(timeout)
    about = Setup(
        time_s=seconds / len(points),
        sources={name: _source(function) for name, function in functions.items()},
        **setup,
    )
    return Request(functions, inputs, points, about, check, limit_s, fresh_inputs)


def _seconds(time: str | float) -> float:
    seconds = stated_seconds(time) if isinstance(time, str) else float(time)
    if not 0 < seconds <= MAX_TIMEOUT_S:
        raise ValueError(f"the time must be above 0 s and finite, not {time!r}")
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


GRACE_S = 10.0
"""The process is killed so long after its time-out, which interrupts Python code alone."""
OUTPUT_BYTES = 4096
"""Of what it prints the end is kept,"""
MUCH_OUTPUT = 2**20
"""... and so much is worth a line."""


class WorkerError(RuntimeError):
    """The process could not measure; no arm is known to be the cause."""


class EarlyEnd(NamedTuple):
    """How a process ended without a result."""

    arm: int
    """Place of the arm that ran; -1: none."""
    reason: str


def measure_apart(request: Request, progress: Callable[[float], object]) -> list[Result]:
    """As `measure_points`, in a new process; an arm that ends it is left out in the next one.

    Functions and inputs must be importable by their module, or be such that cloudpickle, where it
    is installed, can send them. Raises as `measure_points`, and `WorkerError`.
    """
    failures: dict[str, str] = {}
    while True:
        names = list(request.functions)
        found = _run(request, progress)
        if not isinstance(found, EarlyEnd):
            return [replace(each, failures={**failures, **each.failures}) for each in found]
        if found.arm < 0:
            raise WorkerError(f"the process that measures ended: {found.reason}")
        name = names[found.arm]
        failures[name] = found.reason
        if found.arm == 0 or len(names) < 3:
            raise ArmFailedError(name, found.reason)
        left = {key: each for key, each in request.functions.items() if key != name}
        request = request._replace(functions=left)


def _run(request: Request, progress: Callable[[float], object]) -> list[Result] | EarlyEnd:
    """Raises what the process raised."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    printed, printing = context.Pipe(duplex=False)
    marker = context.RawValue("i", -1)
    process = context.Process(
        target=_serve, args=(theirs, printing, marker, _pickled(request)), name="breakeven"
    )
    process.start()
    theirs.close()
    printing.close()
    output = _Output(printed)
    deadline = time.monotonic() + request.limit_s + GRACE_S
    try:
        while ours in wait([ours, process.sentinel], max(0.0, deadline - time.monotonic())):
            try:
                kind, content = pickle.loads(ours.recv_bytes())  # noqa: S301 - our own process
            except EOFError:
                break
            if kind == "progress":
                progress(content)
            elif kind == "raised":
                raise content
            else:
                return [replace(each, notes=(*each.notes, *output.notes())) for each in content]
        if time.monotonic() >= deadline:
            return EarlyEnd(marker.value, f"still running after {request.limit_s:g} s")
        process.join()
        return EarlyEnd(marker.value, f"{_exit_text(process.exitcode)}{output.last_line()}")
    finally:
        end(_tree(process.pid))
        process.join()
        output.close()


def _tree(pid: int | None) -> list[psutil.Process]:
    try:
        found = psutil.Process(pid)
        return [found, *found.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


class _Output:
    """Reads what the process prints, so that it never waits, and keeps the end."""

    def __init__(self, pipe: "Connection[Any, Any]") -> None:
        self.size, self.tail = 0, b""
        self._pipe = pipe
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        while text := os.read(self._pipe.fileno(), 2**16):
            self.size += len(text)
            self.tail = (self.tail + text)[-OUTPUT_BYTES:]

    def notes(self) -> list[str]:
        if self.size < MUCH_OUTPUT:
            return []
        return [f"the arms printed {self.size / 2**20:,.0f} MiB, which takes part of their time"]

    def last_line(self) -> str:
        """After a colon; empty without output."""
        self._thread.join(1.0)
        lines = self.tail.decode(errors="replace").strip().splitlines()
        return f": {lines[-1]}" if lines else ""

    def close(self) -> None:
        self._thread.join(1.0)
        self._pipe.close()


def _exit_text(code: int | None) -> str:
    if code is not None and code < 0:
        return f"ended the process by {signal.Signals(-code).name}"
    return f"ended the process with exit status {code}"


def _pickled(request: Request) -> bytes:
    """Raises `WorkerError` for functions that cannot be sent."""
    scripts = "__main__" in {
        getattr(each, "__module__", "") for each in (*request.functions.values(), request.inputs)
    }
    in_file = hasattr(sys.modules["__main__"], "__file__")
    try:
        if not scripts or in_file:
            return pickle.dumps(request)
    except (pickle.PicklingError, AttributeError, TypeError):
        pass
    try:
        import cloudpickle

        return bytes(cloudpickle.dumps(request))
    except Exception as error:  # it is not installed, or whatever a class of the user raises
        raise WorkerError(
            "isolate=True needs functions that a new process can import: move them into a file"
        ) from error


def _serve(
    pipe: "Connection[Any, Any]", printing: "Connection[Any, Any]", marker: Any, request: bytes
) -> None:
    """Measure in the new process and send the results."""
    for stream in (1, 2):
        os.dup2(printing.fileno(), stream)
    printing.close()

    def send(kind: str, content: object) -> None:
        pipe.send_bytes(pickle.dumps((kind, content)))

    def mark(place: int) -> None:
        marker.value = place

    try:
        found = measure_points(pickle.loads(request), lambda share: send("progress", share), mark)  # noqa: S301 - from the process that started this one
    except Exception as error:  # whatever a function of the user raises
        try:
            send("raised", error)
        except (pickle.PicklingError, AttributeError, TypeError):
            send("raised", WorkerError(f"{type(error).__name__}: {error}"))
    else:
        send("done", found)
    pipe.recv_bytes()  # until the other process has read it, and ends this one
