"""Errors of a job, and time limits: an alarm that interrupts a job at its time-out."""

import contextlib
import importlib
import signal
import threading
from collections.abc import Iterator
from typing import Any


class Unsupported(Exception):  # noqa: N818 - a fact about a model, a method or a device: it becomes the failure row `unsupported`
    """The requested combination cannot run on this model or device; the message is the reason that
    the result gives.
    """


class DataError(ValueError):
    """The requested data cannot be evaluated; the message names the reason and what to do."""


class NotANumberError(Exception):
    """The logits of the model are not all finite."""


class WrongResultError(Exception):
    """An arm returns something else than its baseline."""


class TimedOut(BaseException):
    """The job's time is up; no `Exception`, so that no library's `except Exception` swallows it."""


class CompilationTimedOut(TimedOut):
    """The time of an arm's compilation is up; the job's own did not run meanwhile and goes on."""


class TimingTimedOut(Exception):  # noqa: N818 - reads like `TimedOut`, but is an error of the job that the next run tries again
    """The job's time was up while its arms ran in turns: which of them ran then is chance."""


@contextlib.contextmanager
def alarm(seconds: float) -> Iterator[None]:
    """Raise `TimedOut` in the main thread after `seconds`, and again after each further `seconds`,
    until the block ends.

    An outer alarm is paused meanwhile: time with a limit of its own does not count against the
    whole.

    It repeats, so that after an arm that hung the other arms get as long. Code that never returns
    to the interpreter is not interrupted: only killing the process ends that.
    """

    def ring(*_: object) -> None:
        raise TimedOut(f"still running after {seconds:g} s")

    before = signal.signal(signal.SIGALRM, ring)
    outer = signal.setitimer(signal.ITIMER_REAL, seconds, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        signal.setitimer(signal.ITIMER_REAL, *outer)


@contextlib.contextmanager
def compiling(limit_s: float) -> Iterator[None]:
    """The first call of a compiled arm, ended by `CompilationTimedOut` after `limit_s`; only in the
    main thread can it be ended.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    with alarm(limit_s):
        try:
            yield
        except TimedOut as error:
            raise CompilationTimedOut(
                f"not compiled after {limit_s:g} s (compile_timeout)"
            ) from error


def extra_library(name: str) -> Any:
    """The module of a package that the extra `runtimes` installs. Raises `Unsupported`."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise Unsupported(f"{name} is not installed: uv sync --extra runtimes") from error
