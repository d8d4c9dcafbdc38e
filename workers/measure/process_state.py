"""Process state that a method may change: settings and functions that all arms use, compared after
every arm and job, some of it restored.
"""

import contextlib
import functools
import gc
import locale
import os
import signal
import sys
import threading
import time
import tracemalloc
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, NamedTuple, cast

import torch
from torch import nn

from sweeps.model.condition import Condition
from workers.measure.descendants import running_descendants
from workers.measure.environment import cores
from workers.measure.optional import optional_value
from workers.measure.timer import SampleTime, Stopwatch, TimedStep


def use_threads(condition: Condition) -> None:
    """Set the requested CPU threads (default: one per core); explicitly, because Ray and containers
    preset OMP_NUM_THREADS.
    """
    torch.set_num_threads(condition.threads_on(int(cores())))


def raise_priority() -> bool:
    """Give this process the normal priority, if it has a lower one; whether it has it, which the
    system may refuse.

    Ray starts its workers at nice 15, where one busy process beside them takes nearly all of a
    core.
    """
    if os.getpriority(os.PRIO_PROCESS, 0) > 0:
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, 0, 0)
    return os.getpriority(os.PRIO_PROCESS, 0) <= 0


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """One CPU thread, for training.

    On tensors this small a second thread saves a third of the time on a quiet machine, and
    multiplies it where other jobs run; and weights must not depend on the number of cores.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


WATCHED_SIGNALS = (
    signal.SIGALRM,
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGCHLD,
    signal.SIGUSR2,
    signal.SIGVTALRM,
    signal.SIGPROF,
    signal.SIGPIPE,
)
WATCHED_TIMERS = ("ITIMER_REAL", "ITIMER_VIRTUAL", "ITIMER_PROF")
TORCH_BACKENDS = (
    "fp32_precision",
    "cuda.matmul.fp32_precision",
    "cudnn.conv.fp32_precision",
    "mkldnn.matmul.fp32_precision",
    "cuda.matmul.allow_fp16_reduced_precision_reduction",
    "cuda.matmul.allow_bf16_reduced_precision_reduction",
    "cudnn.enabled",
    "cudnn.benchmark",
    "cudnn.deterministic",
    "mkldnn.enabled",
    "mkldnn.deterministic",
)
"""Attributes below `torch.backends`; the precisions of float32 came with torch 2.9."""
SMALLEST = 5e-324
"""The smallest denormal number; times 1 it is 0 where the processor flushes denormals."""


class Setting(NamedTuple):
    """One part of the process' state: its display name, how it is read, and how it is restored."""

    name: str
    read: Callable[[], Any]
    write: Callable[[Any], object] | None = None
    """May raise."""


def flushes_denormals() -> bool:
    return SMALLEST * 1.0 == 0


def _backend_attributes() -> Iterator[Setting]:
    """Those of `TORCH_BACKENDS` that this version of torch has."""
    for name in TORCH_BACKENDS:
        *path, last = name.split(".")
        backends = cast(Any, torch.backends)
        owner = functools.reduce(lambda part, key: getattr(part, key, None), path, backends)
        if hasattr(owner, last):
            read, write = partial(getattr, owner, last), partial(setattr, owner, last)
            yield Setting(f"torch.backends.{name}", read, write)


def _sdp(name: str) -> Setting:
    cuda: Any = torch.backends.cuda
    read, write = getattr(cuda, f"{name}_sdp_enabled"), getattr(cuda, f"enable_{name}_sdp")
    return Setting(f"scaled dot product backend {name}", read, write)


def _autocast(device: str) -> tuple[bool, torch.dtype]:
    return torch.is_autocast_enabled(device), torch.get_autocast_dtype(device)


def _folder() -> str:
    try:
        return str(Path.cwd())
    except FileNotFoundError:
        return "a folder that was removed"


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _interval(timer: str) -> float:
    """Not the time left, which runs on."""
    return signal.getitimer(getattr(signal, timer))[1]


RESTORED: tuple[Setting, ...] = (
    Setting("CPU threads of torch", torch.get_num_threads, torch.set_num_threads),
    Setting("default dtype", torch.get_default_dtype, torch.set_default_dtype),
    Setting("gradients", torch.is_grad_enabled, torch.set_grad_enabled),
    Setting("denormal numbers flushed", flushes_denormals, torch.set_flush_denormal),
    Setting(
        "float32 matmul precision",
        torch.get_float32_matmul_precision,
        torch.set_float32_matmul_precision,
    ),
    *_backend_attributes(),
    *map(_sdp, ("flash", "mem_efficient", "math", "cudnn")),
    Setting("current folder", _folder, os.chdir),
)
"""What changes the time of a forward, and is set by one call."""
COMPARED: tuple[Setting, ...] = (
    Setting(
        "deterministic algorithms",
        lambda: (
            torch.are_deterministic_algorithms_enabled(),
            torch.is_deterministic_algorithms_warn_only_enabled(),
        ),
    ),
    *(Setting(f"autocast on {device}", partial(_autocast, device)) for device in ("cpu", "cuda")),
    Setting(
        "default device",
        lambda: (str(torch.get_default_device()), torch._C._len_torch_function_stack()),
    ),
    Setting("anomaly detection", torch.is_anomaly_enabled),
    Setting("inter-op threads of torch", torch.get_num_interop_threads),
    Setting("garbage collector", lambda: (gc.isenabled(), gc.get_threshold())),
    Setting("thread switch interval", sys.getswitchinterval),
    Setting("profiler", sys.getprofile),
    Setting("memory tracing", tracemalloc.is_tracing),
    Setting("umask", _umask, os.umask),
    *(
        Setting(
            f"handler of {each.name}", partial(signal.getsignal, each), partial(signal.signal, each)
        )
        for each in WATCHED_SIGNALS
    ),
    *(Setting(f"timer {name}", partial(_interval, name)) for name in WATCHED_TIMERS),
    Setting("locale", partial(locale.setlocale, locale.LC_ALL, None)),
    Setting(
        "niceness",
        partial(os.getpriority, os.PRIO_PROCESS, 0),
        partial(os.setpriority, os.PRIO_PROCESS, 0),
    ),
    Setting(
        "warnings that are errors", lambda: [one for one in warnings.filters if one[0] == "error"]
    ),
    *(
        [
            Setting(
                "cores allowed", partial(os.sched_getaffinity, 0), partial(os.sched_setaffinity, 0)
            )
        ]
        if hasattr(os, "sched_getaffinity")
        else []
    ),
)
"""Everything else: the arm that changes one is measured apart, and its process runs no other job.

Restored all the same is what that process would pass on to the processes that it starts.
"""
SETTINGS = (*RESTORED, *COMPARED)
STATE, CHILDREN = "state of the process", "child processes"
FUNCTIONS = "functions that all arms use"


WATCHED_MODULES = (
    "builtins",
    "math",
    "time",
    "torch",
    "torch.functional",
    "torch.nn.functional",
    "torch._C._nn",
    "numpy",
)
WATCHED_PACKAGES = (
    "torch.nn.modules",
    "timm.layers",
    "timm.models.vision_transformer",
    "timm.models.deit",
    "transformers.models",
    "transformers.modeling",
    "transformers.cache_utils",
    "transformers.integrations.sdpa_attention",
    "workers.arms",
    "workers.kinds",
    "workers.measure",
    "workers.models",
    "workers.token_reduction",
    "workers.kv_caches",
)
"""Beginnings of the names of modules whose functions, and methods of classes, are looked at."""
_HOOKS = (
    "_global_forward_hooks",
    "_global_forward_pre_hooks",
    "_global_forward_hooks_always_called",
)

_LIBRARIES = tuple(f"{path}/" for path in torch.__path__)


class ForwardFunctions:
    """The functions when this was made."""

    def __init__(self) -> None:
        self._held = optional_value(
            FUNCTIONS, lambda: [(owner, dict(_functions(owner))) for owner in _owners()], []
        )
        self._hooks = optional_value(
            FUNCTIONS, lambda: {name: dict(hooks) for name, hooks in _global_hooks()}, {}
        )

    def restore(self) -> list[str]:
        """A text for each function that was replaced since then; each is put back."""
        found = [text for owner, before in self._held for text in _restored(owner, before)]
        for name, hooks in _global_hooks():
            if dict(hooks) != self._hooks[name]:
                hooks.clear()
                hooks.update(self._hooks[name])
                found.append(f"torch.nn.modules.module.{name} was changed")
        return found


def _owners() -> Iterator[Any]:
    """The modules, and the classes that they define: a method of theirs may be overridden as
    well.
    """
    yield torch.Tensor
    for name, module in list(sys.modules.items()):
        if isinstance(module, ModuleType) and (
            name in WATCHED_MODULES or name.startswith(WATCHED_PACKAGES)
        ):
            yield module
            if name.startswith(WATCHED_PACKAGES):
                yield from (
                    each
                    for each in vars(module).values()
                    if isinstance(each, type) and each.__module__ == name
                )


def _functions(owner: Any) -> Iterator[tuple[str, tuple[Any, Any]]]:
    """Functions by name, each with its code where Python has written it."""
    for name, value in list(vars(owner).items()):
        if callable(value):
            yield name, (value, value.__code__ if type(value) is FunctionType else None)


def _restored(owner: Any, before: Mapping[str, tuple[Any, Any]]) -> Iterator[str]:
    now, is_class = vars(owner), isinstance(owner, type)
    label = f"{owner.__module__}.{owner.__qualname__}" if is_class else owner.__name__
    for name, (value, code) in before.items():
        if now.get(name) is not value:
            # torch.compile replaces functions of torch itself by others, whatever these wrap
            written = getattr(now.get(name), "__code__", None)
            if written is not None and written.co_filename.startswith(_LIBRARIES):
                continue
            setattr(owner, name, value)
        elif code is not None and value.__code__ is not code:
            value.__code__ = code
        else:
            continue
        yield f"{label}.{name} was replaced"
    # what a class gains overrides what it inherits
    gained = [name for name, _ in _functions(owner) if name not in before] if is_class else []
    for name in gained:
        if any(name in vars(parent) for parent in owner.__mro__[1:]):
            delattr(owner, name)
            yield f"{label}.{name} was replaced"


def _global_hooks() -> Iterator[tuple[str, "OrderedDict[int, Callable[..., Any]]"]]:
    """Torch's hooks of every module."""
    module: Any = torch.nn.modules.module
    return ((name, getattr(module, name)) for name in _HOOKS if hasattr(module, name))


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
        changes = optional_value(STATE, before.restore, [])
        self._note(arm, [change.text for change in changes], doing)
        if not all(change.restored for change in changes):
            self.shared_by.append(arm)

    def look(self, arm: int | None, doing: str) -> None:
        """Record for `arm` what of all arms was changed."""
        if arm is not None and self._at_end:
            return
        if changes := optional_value(FUNCTIONS, self._shared, []):
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
        quick = optional_value(STATE, _quick, (torch.get_num_threads(),))

        def timing(step: TimedStep, inner: int) -> SampleTime:
            nonlocal quick
            try:
                return clock(step, inner)
            finally:
                if id(step) not in seen or optional_value(STATE, _quick, quick) != quick:
                    seen.add(id(step))
                    arm, name = steps[id(step)]
                    if (now := torch.get_num_threads()) != quick[0]:
                        self.threads[arm] = now
                    self._compare(before, arm, f"timing {name}")
                    self.look(arm, f"timing {name}")
                    quick = optional_value(STATE, _quick, quick)  # with what was not restored
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
        self._values = list(map(_value, self._settings))
        self._variables = dict(os.environ)
        self._children = optional_value(CHILDREN, running_descendants, {})
        self._threads = optional_value("threads", _threads, set())

    def restore(self) -> list[Change]:
        """The differences since then, each reported once.

        Those of `RESTORED` and of environment variables are undone.
        """
        found = []
        for place, (setting, before) in enumerate(zip(self._settings, self._values, strict=True)):
            if (now := _value(setting)) == before:
                continue
            if setting.write is not None:
                with contextlib.suppress(Exception):
                    setting.write(before)
            self._values[place] = _value(setting)
            text = f"{setting.name} changed from {_shown(before)} to {_shown(now)}"
            found.append(Change(text, setting in RESTORED and self._values[place] == before))
        if variables := ", ".join(self._restored_variables()):
            found.append(Change(f"environment variables were changed: {variables}", restored=True))
        children = optional_value(CHILDREN, running_descendants, self._children)
        threads = optional_value("threads", _threads, self._threads)
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


def _value(setting: Setting) -> Any:
    """Of now; a text where it cannot be read."""
    return optional_value(setting.name, setting.read, "unknown")


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
