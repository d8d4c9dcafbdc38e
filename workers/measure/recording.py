"""Recordings by torch.profiler: marked forwards, the operators and kernels in them, and what the
host did meanwhile.
"""

import functools
import re
import time
from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch.profiler import ProfilerActivity, profile, record_function

from sweeps.model.condition import Device
from sweeps.model.profile import Activity, Phase
from sweeps.stats.profiles import DeviceRun, OperatorRun, Span
from sweeps.stats.roofline import Work, operator_work

MARK = "breakeven:"
"""Before the phase in the name of a mark, and before the name of compiled code that is no operator
of torch."""
CALL = "breakeven::"
_RUNTIME = re.compile(r"cu(da)?[A-Z]\w*")
"""Names of CUDA's runtime and driver calls."""
_WAIT = re.compile(r"Synchronize|^cudaMemcpy$")
_MEMORY = "[memory]"
_US, _NS = 1e-6, 1e-9
LOOP, LOOPS = 500, 5
"""Calls of a tiny operator in a loop, and loops, by which the profiler's own time is measured."""


class MarkedForward(NamedTuple):
    """A marked forward: from before its first call until the device is done."""

    phase: Phase
    start: float
    end: float


class Allocation(NamedTuple):
    """Memory that was allocated."""

    at: float
    size: int
    """Bytes."""


@dataclass
class TorchRecording:
    """What a recording holds; times in seconds by one clock."""

    windows: list[MarkedForward] = field(default_factory=list)
    operators: list[tuple[OperatorRun, Work]] = field(default_factory=list)
    """Operators of the thread that ran the forwards, and compiled code called like one."""
    runs: list[tuple[DeviceRun, Activity]] = field(default_factory=list)
    """Kernels, copies and memsets of a GPU."""
    kernel_work: list[tuple[str, float, Work]] = field(default_factory=list)
    """Of operators whose work is known: each kernel, when its operator started, and its share of
    the work by its time."""
    syncs: list[Span] = field(default_factory=list)
    allocations: list[Allocation] = field(default_factory=list)


class Recording:
    """A profiler that records until it is stopped; marks are set by `open` and `close`.

    `details` records shapes and allocations too, which slows the host further: times are taken from
    recordings without.
    """

    def __init__(self, device: Device, *, details: bool = False) -> None:
        self._bare = device == "cpu" and not details
        self.opened = 0
        """Marks set so far."""
        activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if device == "cuda" else [])]
        self._profile: Any = profile(
            activities=activities, record_shapes=details, profile_memory=details
        )
        self._mark: Any = None
        self._running = False

    def __enter__(self) -> "Recording":
        self._profile.start()
        self._running = True
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def open(self, phase: Phase) -> None:
        """End the marked forward before, and begin one."""
        self.close()
        self._mark = record_function(f"{MARK}{phase}")
        self._mark.__enter__()
        self.opened += 1

    def close(self) -> None:
        """End the marked forward, if there is one."""
        if self._mark is not None:
            self._mark.__exit__(None, None, None)
            self._mark = None

    def stop(self) -> None:
        """End marks and recording; nothing more is recorded."""
        if self._running:
            self.close()
            self._profile.stop()
            self._running = False

    def read(self, itemsize: int) -> TorchRecording:
        """What was recorded, once it is stopped; `itemsize` is that of the arm's numbers in
        bytes.
        """
        results = self._profile.profiler.kineto_results
        if self._bare:
            return read_operators(results.events())
        found = read_events(self._profile.events(), itemsize)
        start_ns = results.trace_start_ns()
        for event in results.events():
            if event.name() == _MEMORY and event.nbytes() > 0:
                found.allocations.append(
                    Allocation((event.start_ns() - start_ns) * 1e-9, event.nbytes())
                )
        return found


@functools.cache
def overhead_s() -> float:
    """Seconds that recording one operator adds to a forward on this machine's host: the least of
    some loops of a tiny operator.
    """
    number = torch.zeros(1)

    def loop() -> float:
        began = time.perf_counter()
        for _ in range(LOOP):
            number.add_(1)
        return time.perf_counter() - began

    bare = min(loop() for _ in range(LOOPS))
    with Recording("cpu"):
        recorded = min(loop() for _ in range(LOOPS))
    return max(0.0, recorded - bare) / LOOP


def called(name: str) -> AbstractContextManager[object]:
    """A mark around compiled code that is no operator of torch."""
    return record_function(f"{CALL}{name}")


def read_operators(events: Iterable[Any]) -> TorchRecording:
    """Marks and operators of kineto's own events of a CPU, without shapes: faster than
    `read_events`, which needs torch's tree.

    What runs inside an operator on the same thread is no time of its own. Times in seconds from the
    first event.
    """
    spans = sorted(
        (event.start_ns(), -event.end_ns(), event.name(), event.start_thread_id())
        for event in events
        if not event.is_async()
    )
    found, first = TorchRecording(), spans[0][0] if spans else 0
    threads = {thread for _, _, name, thread in spans if _is_mark(name)}
    around: list[tuple[int, list[int]]] = []
    """Ends of the events around the next one, and of each its time without that of those inside."""
    timed: list[tuple[str, int, list[int]]] = []
    for start, negative_end, name, thread in spans:
        if thread not in threads:
            continue
        while around and around[-1][0] <= start:
            around.pop()
        own_ns = [-negative_end - start]
        if around:
            around[-1][1][0] -= own_ns[0]
        around.append((-negative_end, own_ns))
        if _is_mark(name):
            found.windows.append(
                MarkedForward(
                    name.removeprefix(MARK), (start - first) * _NS, (-negative_end - first) * _NS
                )
            )
        elif name.startswith(CALL) or not name.startswith("["):
            timed.append((name, start, own_ns))
    found.operators = [
        (OperatorRun(name, (at - first) * _NS, max(0, own[0]) * _NS), Work())
        for name, at, own in timed
    ]
    return found


def _is_mark(name: str) -> bool:
    return name.startswith(MARK) and not name.startswith(CALL)


def read_events(events: Iterable[Any], itemsize: int) -> TorchRecording:
    """The events of torch (`torch.autograd.profiler_util.FunctionEvent`, times in microseconds) by
    what they are.
    """
    found, started = TorchRecording(), dict[int, float]()
    device, operators = list[Any](), list[Any]()
    thread: Any = None
    for event in events:
        name = event.name
        if event.device_type.name != "CPU":
            if not name.startswith(MARK) and not getattr(event, "is_user_annotation", False):
                device.append(event)
        elif name.startswith(CALL):
            operators.append(event)
        elif name.startswith(MARK):
            thread = event.thread
            found.windows.append(MarkedForward(name.removeprefix(MARK), *_span(event)))
        elif _RUNTIME.fullmatch(name):
            started[event.id] = event.time_range.start * _US
            if _WAIT.search(name):
                found.syncs.append(_span(event))
        elif not event.is_async and name != _MEMORY and not name.startswith("["):
            operators.append(event)
    for event in operators:
        if event.thread == thread:
            work = operator_work(
                event.name,
                getattr(event, "structured_input_shapes", None) or event.input_shapes or (),
                itemsize,
            )
            own_s = max(0.0, event.self_cpu_time_total * _US)
            found.operators.append(
                (OperatorRun(event.name, event.time_range.start * _US, own_s), work)
            )
            found.kernel_work += _shared(event, work)
    for event in device:
        start, end = _span(event)
        found.runs.append(
            (DeviceRun(event.name, start, end, started.get(event.id)), _activity(event.name))
        )
    found.windows.sort(key=lambda window: window.start)
    return found


def _span(event: Any) -> Span:
    return event.time_range.start * _US, event.time_range.end * _US


def _activity(name: str) -> Activity:
    """What runs on the device, by its name in a trace of kineto."""
    return (
        "memcpy"
        if name.startswith("Memcpy")
        else "memset"
        if name.startswith("Memset")
        else "kernel"
    )


def _shared(event: Any, work: Work) -> list[tuple[str, float, Work]]:
    """The work of an operator given to the kernels that it launched itself, in proportion to their
    time.
    """
    total = sum(kernel.duration for kernel in event.kernels)
    if not total or work == Work():
        return []

    def part(amount: int | None, share: float) -> int | None:
        return None if amount is None else round(share * amount)

    at = event.time_range.start * _US
    return [
        (kernel.name, at, Work(*(part(amount, kernel.duration / total) for amount in work)))
        for kernel in event.kernels
        if kernel.duration
    ]
