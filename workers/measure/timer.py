"""The stopwatch: resolution of the timer, forwards in one sample, the time of a sample; and calls
of a user's function. Torch is imported for a GPU alone, and nothing else but the standard library:
processes of the user's interpreter load this file (`orchestrator/api/measured_functions.py`).
"""

from __future__ import annotations

import functools
import math
import operator
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from time import perf_counter  # a function of the user may replace that of the module
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from sweeps.model.condition import Device

MIN_SAMPLE_S = 1e-3
MIN_RESOLUTIONS = 10_000
"""A sample is at least this many times as long as the timer's resolution: the reading error stays
below 0.01 %."""

CACHED_RATIO = 10.0
"""How many times as long as later calls the first one takes where results may be cached."""
FRESH_CALLS = 64
"""Inputs that are made at once where each call has its own."""

TimedStep = Callable[[], object]
"""One forward pass; its result is discarded."""


class SampleTime(NamedTuple):
    """Seconds per forward: wall time, and device time between CUDA events (`None` on a CPU)."""

    wall: float
    device: float | None


Stopwatch = Callable[[TimedStep, int], SampleTime]
"""Times a step run that many times in a row."""


@functools.cache
def resolution() -> float:
    """The smallest step, in seconds, by which two readings of the timer differ here (the cost of
    reading it included).
    """
    smallest = math.inf
    for _ in range(2000):
        start = perf_counter()
        while (now := perf_counter()) == start:
            pass
        smallest = min(smallest, now - start)
    return smallest


def inner_loop(forward_s: float) -> int:
    """Forwards that make a sample of at least 1 ms and 10 000 x the timer's resolution, when one
    takes `forward_s` seconds.
    """
    return max(1, math.ceil(max(MIN_SAMPLE_S, MIN_RESOLUTIONS * resolution()) / forward_s))


def stopwatch(device: Device, *, warm: bool = False) -> Stopwatch:
    """With `warm` a step runs once before each sample, outside its time (see `Job.warm`)."""
    timing = _cuda_stopwatch() if device == "cuda" else _cpu_timing

    def warmed(step: TimedStep, inner: int) -> SampleTime:
        step()
        return timing(step, inner)

    return warmed if warm else timing


def synchronise(device: Device) -> None:
    """Wait until `device` has finished all work; nothing to do on a CPU."""
    if device == "cuda":
        import torch

        torch.cuda.synchronize()


def repeat(device: Device, step: TimedStep, seconds: float, fewest: int = 1) -> int:
    """Run a step for so many seconds, and so often at least; returns how often. A GPU is waited for
    after every `fewest`.
    """
    start, runs = perf_counter(), 0
    while runs < fewest or perf_counter() - start < seconds:
        step()
        runs += 1
        if runs % fewest == 0:
            synchronise(device)
    return runs


def _cpu_timing(step: TimedStep, inner: int) -> SampleTime:
    start = perf_counter()
    for _ in range(inner):
        step()
    return SampleTime((perf_counter() - start) / inner, None)


def _cuda_stopwatch() -> Stopwatch:
    import torch

    began, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
    for event in (began, ended):
        event.record()  # an event is created when first recorded, which must not be timed

    def timing(step: TimedStep, inner: int) -> SampleTime:
        torch.cuda.synchronize()
        start = perf_counter()
        began.record()
        for _ in range(inner):
            step()
        ended.record()
        torch.cuda.synchronize()
        wall = perf_counter() - start
        return SampleTime(wall / inner, began.elapsed_time(ended) / 1e3 / inner)

    return timing


FunctionInputs = tuple[Sequence[Any], Mapping[str, Any]]
"""Positional and named arguments."""


def _call_next(calls: list[Callable[[], Any]]) -> None:
    calls.pop()()


class RepeatedCall:
    """Calls of a user's function with the same inputs, of which the first one is timed apart."""

    def __init__(
        self, function: Callable[..., Any], inputs: FunctionInputs, first_s: float = 0.0
    ) -> None:
        """`first_s`: seconds of the slowest first call so far, with other inputs."""
        self.function, self.inputs, self.first_s = function, inputs, first_s
        self._step: TimedStep | None = None

    def __call__(self) -> Any:
        """What the function returns. Where the first result is not there yet, what completes it is
        from then on part of every call.
        """
        if self._step is not None:
            return self._step()
        start, function = perf_counter(), self.function
        result = self._with(self.inputs)()
        if (complete := completion(result)) is not None:
            result = complete(result)
            self.function = lambda *args, **named: complete(function(*args, **named))
        self.first_s = max(self.first_s, perf_counter() - start)
        self._step = self._with(self.inputs)
        return result

    def _with(self, inputs: FunctionInputs) -> TimedStep:
        return functools.partial(self.function, *inputs[0], **inputs[1])

    def time(
        self, clock: Stopwatch, inner: int, make: Callable[[], FunctionInputs] | None = None
    ) -> SampleTime:
        """Seconds per call of `inner` in a row; where `make` is given it makes the inputs of each
        call, outside of the time, which is wall time alone.
        """
        if self._step is None:
            self()
        if make is None:
            return clock(self._step or self, inner)
        wall = 0.0
        for done in range(0, inner, FRESH_CALLS):
            number = min(FRESH_CALLS, inner - done)
            calls = [self._with(make()) for _ in range(number)]
            taken = clock(functools.partial(_call_next, calls), number)
            wall += taken.wall * number
        return SampleTime(wall / inner, None)

    def may_be_cached(self, later_s: float) -> bool:
        """Whether later calls, of `later_s`, are far quicker than the first one was and return the
        same object each time.
        """
        if self.first_s < CACHED_RATIO * later_s:
            return False
        result = self()
        return result is self() and not isinstance(result, (bool, type(None)))


def completion(result: Any) -> Callable[[Any], Any] | None:
    """What does the work of a result that is not there yet: of a generator, a coroutine, a future,
    a collection of dask or arrays of JAX; `None` for any other result.
    """
    complete: Callable[[Any], Any] | None = None
    if isinstance(result, (types.GeneratorType, map, filter, zip)):
        complete = list
    elif hasattr(result, "__await__"):
        complete = _awaited
    elif isinstance(result, types.AsyncGeneratorType):
        complete = _listed
    elif hasattr(result, "__dask_graph__"):
        complete = operator.methodcaller("compute")
    elif hasattr(result, "result") and hasattr(result, "done"):
        complete = operator.methodcaller("result")
    elif (jax := sys.modules.get("jax")) is not None and any(
        hasattr(leaf, "block_until_ready") for leaf in jax.tree_util.tree_leaves(result)
    ):
        complete = jax.block_until_ready
    return complete


def _awaited(result: Any) -> Any:
    # takes time and memory, which most functions do not need
    import asyncio

    loop = result.get_loop() if hasattr(result, "get_loop") else _event_loop()
    around = asyncio._get_running_loop()  # of a notebook, in which this call came
    asyncio._set_running_loop(None)
    try:
        return loop.run_until_complete(result)
    finally:
        asyncio._set_running_loop(around)


def _listed(items: Any) -> Any:
    async def collect() -> list[object]:
        return [item async for item in items]

    return _awaited(collect())


@functools.cache
def _event_loop() -> Any:
    import asyncio

    return asyncio.new_event_loop()
