"""Process state that a method may change: compared after every arm and job, some of it restored."""

import contextlib
import gc
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import torch
from torch import nn

from workers.measure.process.descendants import running_descendants
from workers.measure.process.process_settings import RESTORED, SETTINGS, flushes_denormals
from workers.measure.readings.timer import SampleTime, Stopwatch, TimedStep

FLAG = "state_changed"
BENIGN_VARIABLES = (
    "TORCHINDUCTOR_",
    "_TORCHINDUCTOR_",
    "TRITON_",
    "KINETO_",
    "KMP_",
    "CUDA_MODULE_LOADING",
    "TOKENIZERS_PARALLELISM",
)
"""Beginnings of environment variables that torch and transformers set for themselves when a part of
theirs is first used."""


class Changes:
    """What the arms of a job changed in the process, by arm (`None`: the arm is not known)."""

    def __init__(self, shared: Callable[[], list[str]] = list, *, at_end: bool = False) -> None:
        """`shared` gives a text for each change of what all arms of the process run on: functions,
        weights.

        With `at_end` that is looked at after all arms and not after each: where these very arms
        changed nothing before.
        """
        self._shared, self._at_end = shared, at_end
        self.shared_by: list[int | None] = []
        """The arms that changed such, or what is not restored."""
        self.found: dict[int | None, list[str]] = {}
        self.threads: dict[int, int] = {}
        """CPU threads that an arm's samples ran with, where they differ from the requested ones."""

    @contextlib.contextmanager
    def watched(self, arm: int | None, doing: str, *, shared: bool = True) -> Iterator[None]:
        """Restore what the block changes, and record it for `arm`; `doing` completes "while …".

        Without `shared` what all arms run on is not looked at, which takes longer than reading an
        item.
        """
        before = ProcessState()
        try:
            yield
        finally:
            self._compare(before, arm, doing)
            if shared:
                self.look(arm, doing)

    def _compare(self, before: "ProcessState", arm: int | None, doing: str) -> None:
        changes = before.restore()
        self._note(arm, [change.text for change in changes], doing)
        if not all(change.restored for change in changes):
            self.shared_by.append(arm)

    def look(self, arm: int | None, doing: str) -> None:
        """Record for `arm` what of all arms was changed."""
        if arm is not None and self._at_end:
            return
        if changes := self._shared():
            self.shared_by.append(arm)
            self._note(arm, changes, doing)

    @contextlib.contextmanager
    def timed(
        self,
        clock: Stopwatch,
        steps: Mapping[int, tuple[int, str]],
        leave: Callable[[], None] = lambda: None,
    ) -> Iterator[Stopwatch]:
        """`clock` with a look at the process after each sample; `steps` holds the arm and its name
        by the `id` of its step.

        The first sample of an arm is followed by a look at everything; every later one by a look at
        what makes other arms faster or slower, outside the time that is taken. What else was
        changed shows at the end. `leave` is called after a look at everything, and may raise.
        """
        before, seen = ProcessState(), set[int]()
        quick = _quick()

        def timing(step: TimedStep, inner: int) -> SampleTime:
            nonlocal quick
            try:
                return clock(step, inner)
            finally:
                if id(step) not in seen or _quick() != quick:
                    seen.add(id(step))
                    arm, name = steps[id(step)]
                    if (now := torch.get_num_threads()) != quick[0]:
                        self.threads[arm] = now
                    self._compare(before, arm, f"timing {name}")
                    self.look(arm, f"timing {name}")
                    quick = _quick()  # with what was not restored
                    leave()

        try:
            yield timing
        finally:
            self._compare(before, None, "timing the arms")
            self.look(None, "timing the arms")

    def _note(self, arm: int | None, changes: list[str], doing: str) -> None:
        lines = self.found.setdefault(arm, []) if changes else []
        lines += [
            line for line in (f"while {doing}: {change}" for change in changes) if line not in lines
        ]

    def flags(self, arm: int | None) -> tuple[str, ...]:
        """The flag of an arm, or with `None` of the whole job."""
        return (FLAG,) if self.found.get(arm) or (arm is None and self.shared_by) else ()

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(line for lines in self.found.values() for line in lines)


class Change(NamedTuple):
    """A difference from an earlier state of the process."""

    text: str
    restored: bool
    """Whether the process is as before; else another one is needed."""


class ProcessState:
    """The state of the process when this was made."""

    def __init__(self, *, leave: frozenset[str] = frozenset()) -> None:
        self._settings = [setting for setting in SETTINGS if setting.name not in leave]
        self._values = [setting.read() for setting in self._settings]
        self._variables = dict(os.environ)
        self._children = running_descendants()
        self._threads = _threads()

    def restore(self) -> list[Change]:
        """The differences since then, each reported once.

        Those of `process_settings.RESTORED` and of environment variables are undone.
        """
        found = []
        for place, (setting, before) in enumerate(zip(self._settings, self._values, strict=True)):
            if (now := setting.read()) == before:
                continue
            if setting.write is not None:
                with contextlib.suppress(OSError, RuntimeError, TypeError, ValueError):
                    setting.write(before)
            self._values[place] = setting.read()
            text = f"{setting.name} changed from {_shown(before)} to {_shown(now)}"
            found.append(Change(text, setting in RESTORED and self._values[place] == before))
        if variables := ", ".join(self._restored_variables()):
            found.append(Change(f"environment variables were changed: {variables}", restored=True))
        children, threads = running_descendants(), _threads()
        new = children.keys() - self._children.keys()
        if shown := ", ".join(f"{children[child]} ({child.pid})" for child in new):
            # process_cleanup ends them at the end of the job
            found.append(Change(f"child processes were left running: {shown}", restored=True))
        if begun := ", ".join(sorted(thread.name for thread in threads - self._threads)):
            found.append(Change(f"threads were left running: {begun}", restored=False))
        self._children |= children
        self._threads = threads
        return found

    def _restored_variables(self) -> list[str]:
        """Names of the variables that were changed and are restored.

        Variables that libraries set for themselves for the first time are neither.
        """
        before, now = self._variables, dict(os.environ)
        names = sorted(
            name
            for name in before.keys() | now.keys()
            if before.get(name) != now.get(name)
            and (name in before or not name.startswith(BENIGN_VARIABLES))
        )
        for name in names:
            if name in before:
                os.environ[name] = before[name]
            else:
                del os.environ[name]
        self._variables = dict(os.environ)
        return names


def _quick() -> tuple[Any, ...]:
    """What changes the time of every arm, read in about a microsecond."""
    return (
        torch.get_num_threads(),
        torch.is_grad_enabled(),
        torch.get_default_dtype(),
        torch.are_deterministic_algorithms_enabled(),
        gc.isenabled(),
        flushes_denormals(),
        sys.getprofile(),
        time.perf_counter,
        nn.functional.linear,
        nn.functional.scaled_dot_product_attention,
    )


def _threads() -> set[threading.Thread]:
    """Living threads that keep a process from ending, without those of executors, which wait for
    work and are ended at exit.
    """
    return {
        thread
        for thread in threading.enumerate()
        if not thread.daemon
        and thread is not threading.main_thread()
        and getattr(getattr(thread, "_target", None), "__module__", "")
        != "concurrent.futures.thread"
    }


def _shown(value: object) -> str:
    text = getattr(value, "__qualname__", None) or str(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
