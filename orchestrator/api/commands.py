"""Commands as arms of a comparison: how a command line is run, what is observed of it, and the
process in which arms run.
"""

import contextlib
import json
import os
import re
import select
import shlex
import shutil
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Literal, NamedTuple, Self, cast

from orchestrator.api.comparison import ArmFailedError, Slot
from orchestrator.api.measured_process import HEAD_BYTES, Execution, Observation, failure
from orchestrator.api.result import ArmSource
from sweeps.errors import UserError
from sweeps.number_format import count
from sweeps.text.compared import short_time
from workers.measure.threads import wait_variables
from workers.measure.timer import SampleTime

QUOTED = re.compile(r"'[^']*'|\"[^\"$`\\]*\"")
SHELL_SYNTAX = re.compile(r"[|&;<>()$`\\\"'*?\[\]{}~#\n]|^\s*\w+=")
"""What a shell, and not `shlex`, must read, outside simple quotes."""
SHELL = ("/bin/sh", "sh", "-c")
EMPTY = ":"
BUILTINS = frozenset({":", "cd", "eval", "exec", "exit", "ulimit", "umask"})
"""Words that a shell reads itself and that start a command."""
MAX_LINE = 60
"""Characters of a line of output in a message."""
STARTS = 10
"""Starts of a shell that are timed before the first sample of a command that needs one."""


PROGRAM = Path(__file__).with_name("measured_process.py")
CLOSE_S = 10.0
"""Within which it ends after its pipe is closed; then it is killed."""


class FailedError(Exception):
    """What was asked for cannot be done; the message is why, for people."""


class MeasuredProcess:
    """A process of its own that runs commands or functions."""

    def __init__(
        self,
        role: Literal["commands", "functions"],
        python: Sequence[str] = (sys.executable,),
        folder: Path | None = None,
    ) -> None:
        """`python`: the interpreter and its options."""
        self._process = subprocess.Popen(
            [*python, str(PROGRAM), role],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=folder,
            # threads of one that waits do not spin while another is timed
            env=wait_variables("brief") | os.environ,
            start_new_session=True,  # Ctrl-C is for the parent, which closes the pipe
        )
        self._received = b""
        self.cpu_s = 0.0
        """CPU time of the process and those that ended below it, in seconds."""
        self.threads_s: dict[str, float] = {}
        """That of its other threads of Python, by their number in the kernel."""

    def send(self, **request: object) -> None:
        """Send a request; replies come in the order of requests."""
        assert self._process.stdin is not None
        # if it has ended, `receive` raises the reason
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()

    def receive(self, timeout_s: float | None = None) -> object:
        """The next reply. Raises `FailedError`, also after `timeout_s` and where the process
        ended.
        """
        assert self._process.stdout is not None
        file = self._process.stdout.fileno()
        while b"\n" not in self._received:
            if timeout_s is not None and not select.select([file], [], [], timeout_s)[0]:
                raise FailedError(timeout_text(timeout_s))
            if not (data := os.read(file, 2**20)):
                raise FailedError(f"its process ended with {failure(self._process.wait())}")
            self._received += data
        line, _, self._received = self._received.partition(b"\n")
        try:
            answer = json.loads(line)
            self.cpu_s, self.threads_s = answer["cpu_s"], answer["threads_s"]
            reply: object = answer["reply"]
        except (ValueError, TypeError, KeyError):
            raise FailedError("its process sent something that is no reply") from None
        if isinstance(reply, Mapping) and "failed" in reply:
            raise FailedError(str(reply["failed"]))
        return reply

    def close(self) -> None:
        """End it with everything that was started in it."""
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            with contextlib.suppress(BrokenPipeError):
                pipe.close()
        try:
            self._process.wait(CLOSE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def timeout_text(seconds: float) -> str:
    return f"did not end within {short_time(seconds)} (--timeout)"


class Command(NamedTuple):
    """A command line and the program that runs it."""

    text: str
    argv: tuple[str, ...]
    """The program's path, then its arguments from the name on."""
    by_shell: bool


def parse_command(text: str) -> Command:
    """A command, by a shell only where it needs one. Raises `UserError` where it is not found."""
    plain = QUOTED.sub("", text)
    if not text.strip():
        raise UserError("an empty command cannot be compared")
    if SHELL_SYNTAX.search(plain):
        return Command(text, (*SHELL, text), by_shell=True)
    words = shlex.split(text)
    if (path := shutil.which(words[0])) is not None:
        return Command(text, (path, *words), by_shell=False)
    if words[0] in BUILTINS:
        return Command(text, (*SHELL, text), by_shell=True)
    raise UserError(f"{words[0]!r}, the program of {text!r}, is not found in $PATH")


class Usage(NamedTuple):
    """What executions of a command used, typically."""

    user_s: float
    system_s: float
    peak_bytes: int | None
    """Of resident memory, of all its processes at once; `None` where they ended too soon."""


class Arms(ABC):
    """What is compared at one place of the axes; a context manager."""

    names: list[str]
    """The baseline first."""
    cached: Collection[str] = ()
    """Names of arms that seem to keep their results."""

    @abstractmethod
    def slots(self) -> list[Slot]:
        """Of one visit, two for each arm, see `comparison.measure`. Raises `ArmFailedError`."""

    @abstractmethod
    def verify(self, names: Sequence[str]) -> None:
        """Compare results once more, see `Comparison`. Raises `ArmFailedError`."""

    @abstractmethod
    def own_s(self) -> float:
        """CPU time of this process and of what it started, in seconds."""

    def threads_s(self) -> Mapping[str, float]:
        """CPU time of other threads of Python in the processes of the arms, by thread."""
        return {}

    @abstractmethod
    def notes(self) -> Iterator[str]:
        """What a reader must know of how they ran."""

    def fault(self) -> str:
        """Why nothing may be concluded; empty if something may."""
        return ""

    @abstractmethod
    def close(self) -> None:
        """End what was started."""

    def sources(self) -> Mapping[str, ArmSource]:
        """By name where an arm is from, if that is more than its name."""
        return {}

    def usages(self) -> Mapping[str, Usage]:
        """By name, of arms with processes of their own."""
        return {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Commands(Arms):
    """Runs commands in a process of their own."""

    def __init__(
        self, commands: Sequence[Command], prepare: Command | None, timeout_s: float, *, check: bool
    ) -> None:
        self._commands, self._timeout_s, self._check = commands, timeout_s, check
        self.names = [command.text for command in commands]
        self._prepare = None if prepare is None else prepare.argv
        self._process = MeasuredProcess("commands", (sys.executable, "-I", "-S"))
        self._cpu: defaultdict[Command, list[tuple[float, float]]] = defaultdict(list)
        self._peaks: defaultdict[Command, list[int]] = defaultdict(list)
        self._failed: set[str] = set()
        self.shell_starts: list[float] = []
        """Seconds that a shell with an empty command took."""
        self.left: set[str] = set()
        """Commands that left processes running."""

    def slots(self) -> list[Slot]:
        """What times each command, twice; before the first visit outputs are compared. Raises
        `ArmFailedError`.
        """
        if not self._cpu:
            self.verify([name for name in self.names if name not in self._failed])
        return [partial(self.time, command) for command in 2 * [*self._commands]]

    def verify(self, names: Sequence[str]) -> None:
        """Run each command once more and compare their outputs. Raises `ArmFailedError`."""
        first, *others = self._commands
        before = self._observe(first)
        for command in others:
            if command.text not in names:
                continue
            observed = self._observe(command)
            if self._check and observed["digest"] != before["digest"]:
                difference = _difference(before, observed)
                when = " after the timed rounds" if self._cpu else ""
                raise self._failure(
                    command,
                    f"its output{when} is not that of {first.text!r}: {difference}"
                    " (--no-check: compare them all the same)",
                )

    def time(self, command: Command, inner: int) -> SampleTime:
        """Seconds per execution of `inner`; the start of a shell, if it needs one, is not
        counted.
        """
        taken = self._run(command, inner)
        self._cpu[command].append((taken["user"] / inner, taken["system"] / inner))
        seconds = taken["wall"] / inner
        if command.by_shell:
            empty = Command("", (*SHELL, EMPTY), by_shell=True)
            for _ in range(1 if self.shell_starts else STARTS):
                self.shell_starts.append(self._run(empty, 1, prepare=False)["wall"])
            seconds -= min(median(self.shell_starts), 0.9 * seconds)
        return SampleTime(seconds, None)

    def own_s(self) -> float:
        """CPU time of this process and of the commands that ended, in seconds."""
        return time.process_time() + self._process.cpu_s

    def usages(self) -> Mapping[str, Usage]:
        """Medians over the samples so far, by name."""
        found = {}
        for command, times in self._cpu.items():
            users, systems = zip(*times, strict=True)
            peaks = self._peaks[command]
            peak = round(median(peaks)) if peaks else None
            found[command.text] = Usage(median(users), median(systems), peak)
        return found

    def notes(self) -> Iterator[str]:
        """What a reader must know of how they ran."""
        if self.shell_starts:
            shells = " and ".join(repr(each.text) for each in self._commands if each.by_shell)
            yield (
                f"The start of {SHELL[0]}, {1000 * median(self.shell_starts):.2f} ms, is subtracted"
                f" from the wall time of {shells}"
            )
        yield "Output goes to a pipe that is read; after each visit it is compared"
        for text in sorted(self.left):
            yield f"{text!r} left processes running, which were ended after the comparison"

    def close(self) -> None:
        """End the process and what commands left running."""
        self._process.close()

    def _observe(self, command: Command) -> Observation:
        observed = cast(Observation, self._run(command, 1, observe=True))
        if observed["peak"] is not None:
            self._peaks[command].append(observed["peak"])
        if observed["left"]:
            self.left.add(command.text)
        return observed

    def _run(
        self, command: Command, inner: int, *, prepare: bool = True, observe: bool = False
    ) -> Execution:
        try:
            self._process.send(
                command=command.argv,
                prepare=self._prepare if prepare else None,
                inner=inner,
                observe=observe,
                limit_s=self._timeout_s,
            )
            reply = self._process.receive()
        except FailedError as failed:
            raise self._failure(command, str(failed)) from None
        taken = cast(Execution, reply)
        if taken["late"]:
            raise self._failure(command, timeout_text(self._timeout_s))
        if taken["code"] and self._check:
            how = failure(taken["code"], taken["errors"])
            raise self._failure(command, f"fails with {how}")
        return taken

    def _failure(self, command: Command, reason: str) -> ArmFailedError:
        self._failed.add(command.text)
        return ArmFailedError(command.text, reason)


def _difference(one: Observation, other: Observation) -> str:
    """Where the outputs of two commands differ first."""
    lines = [observed["head"].splitlines() for observed in (one, other)]
    for number, pair in enumerate(zip(*lines, strict=False), start=1):
        if pair[0] != pair[1]:
            return f"line {number} is {_shorten(pair[1])} and not {_shorten(pair[0])}"
    if one["bytes"] != other["bytes"]:
        return f"{count(other['bytes'], 'byte')} and not {count(one['bytes'], 'byte')}"
    return f"{count(one['bytes'], 'byte')} that differ after the first {HEAD_BYTES}"


def _shorten(line: str) -> str:
    return repr(line if len(line) <= MAX_LINE else line[:MAX_LINE] + "…")
