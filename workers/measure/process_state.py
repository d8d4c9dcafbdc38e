"""Process state that a method may change: compared and restored after every arm and every job."""

import contextlib
import gc
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import nn

from workers.measure.descendants import left_running
from workers.measure.process_settings import SETTINGS, flushes_denormals
from workers.measure.timer import SampleTime, Stopwatch, TimedStep

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
"""Beginnings of environment variables that torch and transformers set for themselves when a part of theirs is first used."""


class Changes:
    """What the arms of a job changed in the process, by arm (`None`: the arm is not known)."""

    def __init__(self, shared: Callable[[], list[str]] = list, *, at_end: bool = False) -> None:
        """`shared` gives a text for each change of what all arms of the process run on: functions, weights.

        With `at_end` that is looked at after all arms and not after each: where these very arms changed nothing before.
        """
        self._shared, self._at_end = shared, at_end
        self.shared_by: list[int | None] = []
        """The arms that changed such."""
        self.found: dict[int | None, list[str]] = {}
        self.threads: dict[int, int] = {}
        """CPU threads that an arm's samples ran with, where they differ from the requested ones."""

    @contextlib.contextmanager
    def watched(self, arm: int | None, doing: str, *, shared: bool = True) -> Iterator[None]:
        """Restore what the block changes, and record it for `arm`; `doing` completes "while …".

        Without `shared` what all arms run on is not looked at, which takes longer than reading an item.
        """
        before = ProcessState()
        try:
            yield
        finally:
            self.note(arm, before.restore(), doing)
            if shared:
                self.look(arm, doing)

    def look(self, arm: int | None, doing: str) -> None:
        """Record for `arm` what of all arms was changed."""
        if arm is not None and self._at_end:
            return
        if changes := self._shared():
            self.shared_by.append(arm)
            self.note(arm, changes, doing)

    @contextlib.contextmanager
    def timed(
        self, clock: Stopwatch, steps: Mapping[int, tuple[int, str]], leave: Callable[[], None] = lambda: None
    ) -> Iterator[Stopwatch]:
        """`clock` with a look at the process after each sample; `steps` holds the arm and its name by the `id` of its step.

        The first sample of an arm is followed by a look at everything; every later one by a look at what makes other arms
        faster or slower, outside the time that is taken. What else was changed shows at the end. `leave` is called after a look
        at everything, and may raise.
        """
        before, seen = ProcessState(), set[int]()
        quick = _quick()

        def timing(step: TimedStep, inner: int) -> SampleTime:
            try:
                return clock(step, inner)
            finally:
                if id(step) not in seen or _quick() != quick:
                    seen.add(id(step))
                    arm, name = steps[id(step)]
                    if (now := torch.get_num_threads()) != quick[0]:
                        self.threads[arm] = now
                    self.note(arm, before.restore(), f"timing {name}")
                    self.look(arm, f"timing {name}")
                    leave()

        try:
            yield timing
        finally:
            self.note(None, before.restore(), "timing the arms")
            self.look(None, "timing the arms")

    def note(self, arm: int | None, changes: list[str], doing: str) -> None:
        lines = self.found.setdefault(arm, []) if changes else []
        lines += [line for line in (f"while {doing}: {change}" for change in changes) if line not in lines]

    def flags(self, arm: int | None) -> tuple[str, ...]:
        """The flag of an arm, or with `None` of the whole job."""
        return (FLAG,) if self.found.get(arm) or (arm is None and self.shared_by) else ()

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(line for lines in self.found.values() for line in lines)


class ProcessState:
    """The state of the process when this was made."""

    def __init__(self, *, leave: frozenset[str] = frozenset()) -> None:
        self._settings = [setting for setting in SETTINGS if setting.name not in leave]
        self._values = [setting.read() for setting in self._settings]
        self._variables = dict(os.environ)
        self._children = {child.pid for child in left_running()}
        self._threads = _threads()
        self.unfit = False
        """Whether a change was found that only a new process undoes."""

    def restore(self) -> list[str]:
        """The differences since then, a text for each; each is restored where possible and reported once."""
        found = []
        for place, (setting, before) in enumerate(zip(self._settings, self._values, strict=True)):
            now = setting.read()
            if now == before:
                continue
            text = f"{setting.name} changed from {_shown(before)} to {_shown(now)}"
            self.unfit |= setting.sticky or setting.write is None
            try:
                if setting.write is not None:
                    setting.write(before)
            except (OSError, RuntimeError, ValueError) as error:
                self.unfit = True
                text += f" and cannot be restored ({error})"
            self._values[place] = setting.read()
            found.append(text)
        found += self._variables_changed()
        if new := [child for child in left_running() if child.pid not in self._children]:
            self._children |= {child.pid for child in new}
            found.append(f"child processes were left running: {', '.join(map(str, new))}")
        threads = _threads()
        if begun := threads - self._threads:
            self._threads = threads
            self.unfit = True
            found.append(f"threads were left running: {', '.join(sorted(thread.name for thread in begun))}")
        return found

    def _variables_changed(self) -> list[str]:
        now = dict(os.environ)
        if now == self._variables:
            return []
        names = {name for name in now.keys() | self._variables.keys() if now.get(name) != self._variables.get(name)}
        for name in names & self._variables.keys():
            os.environ[name] = self._variables[name]
        ours = sorted(name for name in names if not name.startswith(BENIGN_VARIABLES) or name in self._variables)
        for name in set(ours) - self._variables.keys():
            del os.environ[name]
        self._variables = dict(os.environ)
        return [f"environment variables were changed: {', '.join(ours)}"] if ours else []


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
    """Living threads that keep a process from ending, without those of executors, which wait for work and are ended at exit."""
    return {
        thread
        for thread in threading.enumerate()
        if not thread.daemon
        and thread is not threading.main_thread()
        and getattr(getattr(thread, "_target", None), "__module__", "") != "concurrent.futures.thread"
    }


def _shown(value: object) -> str:
    text = getattr(value, "__qualname__", None) or str(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
