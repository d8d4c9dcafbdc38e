"""The server of a queue of sweeps: takes the first one, runs it by `breakeven run` in a process of
its own, and stops it where a more urgent one waits.
"""

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from tempfile import TemporaryFile
from typing import IO, NamedTuple, TypeVar

from orchestrator.loop.interruption import INTERRUPTED, stop_requested
from store.errors import StoreError, StoreOutageError
from store.open.engine import Engine
from store.read.runs import failure_classes
from store.write import submissions
from store.write.submissions import LOG_CHARACTERS, Submission

T = TypeVar("T")
LOOK_S = 1.0
"""How often the server looks for submissions, and at the one that it runs."""
SIGN_S = 5.0
"""How often it writes a sign of life and the log into the store."""
END_S = 60.0
"""A run that has not stopped by then is killed; its jobs are recovered."""
SAME_FAILURES = 10
"""Comparisons that fail alike in one run before it is stopped."""
REPEATED = frozenset({"error", "timeout"})
"""Reasons of failures that are no property of the arm: the others are answers."""
REFUSED = 2
"""Exit code of a run whose sweep is wrong."""


class Ended(NamedTuple):
    """How the run of a submission ended."""

    state: str
    why: str = ""


class Server(NamedTuple):
    """What takes sweeps from a queue."""

    engine: Engine
    arguments: Sequence[str]
    """Of `breakeven run`, beside the file and what a submission states: store, cluster."""
    show: Callable[[str], None]
    """Prints a line."""
    notify: str | None = None
    """A command that is run when a sweep ends, with BREAKEVEN_SWEEP, BREAKEVEN_SUBMISSION,
    BREAKEVEN_STATE and BREAKEVEN_WHY in its environment."""

    def serve(self, *, until_empty: bool = False) -> int:
        """Run what is queued until interrupted, or until nothing is. Returns the exit code."""
        with stop_requested() as stopped:
            while not stopped():
                taken = self._patient(lambda: submissions.take_next(self.engine), stopped)
                if taken is not None:
                    self._run(taken, stopped)
                elif until_empty:
                    return 0
                else:
                    time.sleep(LOOK_S)
        return INTERRUPTED

    def _patient(self, act: Callable[[], T], stopped: Callable[[], bool]) -> T | None:
        """What `act` returns, once the store can be reached; `None` where the server is stopped
        before.
        """
        shown = False
        while True:
            try:
                return act()
            except StoreOutageError as outage:
                if stopped():
                    return None
                if not shown:
                    self.show(f"{outage}; trying again until it is back")
                shown = True
                time.sleep(SIGN_S)

    def _run(self, taken: Submission, stopped: Callable[[], bool]) -> None:
        self.show(f"{taken.id} {taken.name}: started, priority {taken.priority}")
        run = (sys.executable, "-m", "orchestrator", "run", taken.name)
        options = ("--submission", str(taken.id), *taken.options, *self.arguments)
        with TemporaryFile() as output:
            with _process([*run, *options], output) as process:
                ended = self._watch(taken, process, output, stopped)
            log = _tail(output)
        why = ended.why or _last_line(log)
        note = partial(submissions.end_run, self.engine, taken.id, ended.state, why, log)
        state = self._patient(note, lambda: False)
        self.show(f"{taken.id} {taken.name}: {state}{f', {why}' if why else ''}")
        if self.notify and state != "queued":
            facts = {
                "SWEEP": taken.name,
                "SUBMISSION": str(taken.id),
                "STATE": str(state),
                "WHY": why,
            }
            _notify(self.notify, {f"BREAKEVEN_{name}": value for name, value in facts.items()})

    def _watch(
        self,
        taken: Submission,
        process: "subprocess.Popen[bytes]",
        output: IO[bytes],
        stopped: Callable[[], bool],
    ) -> Ended:
        """Wait for the run, and stop it where it is not to go on."""
        failures = self._patient(lambda: self._failures(taken.name), stopped) or {}
        signed, away = 0.0, False
        stop: Ended | None = None
        while process.poll() is None:
            time.sleep(LOOK_S)
            if stopped():
                stop = stop or Ended("queued", "its server was stopped")
            try:
                if time.monotonic() - signed >= SIGN_S:
                    signed = time.monotonic()
                    if not submissions.keep_running(self.engine, taken.id, _tail(output)):
                        stop = stop or Ended("cancelled", "on request")  # or paused
                    stop = stop or self._broken(taken.name, failures)
                if submissions.waits_above(self.engine, taken.priority):
                    stop = stop or Ended("queued", "a more urgent sweep came first")
            except StoreOutageError:
                away = True
            if stop is not None and process.poll() is None:
                _end(process)
        if stop is not None:
            return stop
        code = process.returncode
        if code == 0:
            return Ended("answered")
        if code in (INTERRUPTED, -signal.SIGTERM) or (away and code != REFUSED):
            return Ended("queued", "it was interrupted" if not away else "the store was away")
        return Ended("refused" if code == REFUSED else "unanswered")

    def _failures(self, name: str) -> Mapping[tuple[str, str], int]:
        """Numbers of comparisons of the sweep by reason and message of their failure."""
        try:
            found = failure_classes(self.engine, name)
        except StoreOutageError:
            raise
        except StoreError:
            return {}  # the sweep is not in the store yet
        return {(each.reason, each.message): each.comparisons for each in found}

    def _broken(self, name: str, before: Mapping[tuple[str, str], int]) -> Ended | None:
        """What pauses a sweep that fails the same way again and again."""
        for (reason, message), number in self._failures(name).items():
            new = number - before.get((reason, message), 0)
            if reason in REPEATED and new >= SAME_FAILURES:
                return Ended("paused", f"{new} comparisons failed alike: {reason}: {message}")
        return None


@contextmanager
def _process(command: Sequence[str], output: IO[bytes]) -> "Iterator[subprocess.Popen[bytes]]":
    """A run in a session of its own, so that Ctrl-C reaches the server alone; it is stopped with
    the block.
    """
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            _end(process)


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Stop a run, which gives its jobs back to the queue."""
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _tail(output: IO[bytes]) -> str:
    """The end of what was printed; the position of the writer does not move."""
    size = os.fstat(output.fileno()).st_size
    start = max(0, size - LOG_CHARACTERS)
    return os.pread(output.fileno(), LOG_CHARACTERS, start).decode(errors="replace")


def _last_line(log: str) -> str:
    return next((line for line in reversed(log.splitlines()) if line.strip()), "")


def _notify(command: str, facts: Mapping[str, str]) -> None:
    subprocess.run(shlex.split(command), env=os.environ | facts, check=False)
