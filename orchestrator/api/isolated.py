"""Functions compared in a process of their own, which may raise, end, hang or print whatever it
does: what happens is a line on the arm that ran, and the others are measured without it.
"""

import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from multiprocessing.connection import Connection, wait
from typing import Any, NamedTuple

import psutil

from orchestrator.api.callables import Request, measure_points
from orchestrator.api.comparison import ArmFailedError
from orchestrator.api.result import Result
from workers.measure.descendants import end

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
    except ImportError:
        raise WorkerError(
            "isolate=True needs functions that a new process can import: move them into a file"
        ) from None
    return bytes(cloudpickle.dumps(request))


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
