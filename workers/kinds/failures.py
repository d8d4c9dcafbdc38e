"""FailureCollector: what went wrong with an arm (or with the whole job), as a Failure row."""

import contextlib
import gc
import re
import time
import traceback
from collections.abc import Iterable, Iterator
from typing import Any

import torch

from sweeps.outcome import ArmOutcome, Failure, FailureReason
from workers.errors import NotANumberError, Unsupported
from workers.kinds import KindResult
from workers.measure.process_state import Changes
from workers.measure.timeout import CompilationTimedOut, TimedOut

_ASKED = re.compile(r"[Tt]ried to allocate ([0-9.]+ ?\w+)")
"""How torch says what it could not get, on a CPU and on a GPU."""


class FailureCollector:
    """The failures of a job so far; a failed arm is not asked again."""

    def __init__(self) -> None:
        self.rows: list[Failure] = []
        self.last_timeout: float | None = None
        """Reading of `time.monotonic()` when the alarm last rang: it leaves the other arms as long again."""
        self.changes = Changes()
        """What the arms changed in the process."""

    @contextlib.contextmanager
    def of(self, arm: int | None, doing: str) -> Iterator[None]:
        """Turn whatever the block raises into a failure of `arm`; `doing` completes "while …" for the message."""
        try:
            yield
        except (Exception, TimedOut) as fault:
            self.add(arm, fault, doing)

    def add(self, arm: int | None, fault: BaseException, doing: str) -> None:
        if isinstance(fault, TimedOut) and not isinstance(fault, CompilationTimedOut):
            self.last_timeout = time.monotonic()
        detail = "".join(traceback.format_exception(fault))
        self.rows.append(Failure(arm=arm, reason=reason(fault), message=f"while {doing}: {told(fault)}", detail=detail))
        traceback.clear_frames(fault.__traceback__)  # their tensors would stay allocated as long as the exception
        gc.collect()
        if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
            torch.cuda.empty_cache()

    def inherit(self, arm: int, baseline: int, name: str) -> None:
        """Fail `arm` because `baseline`, the last one it could be compared with, failed."""
        cause = next(row for row in self.rows if row.arm == baseline)
        message = f"not measured: its baseline {name} failed {cause.message}"
        self.rows.append(Failure(arm=arm, reason=cause.reason, message=message, detail=cause.detail))

    def findings(self, arms: Iterable[ArmOutcome] = (), *, flags: Iterable[str] = (), **fields: Any) -> KindResult:
        """What a kind found, with the failures so far and what the arms changed in the process."""
        marked = []
        for arm in arms:
            new = tuple(dict.fromkeys((*arm.flags, *self.changes.flags(arm.arm))))
            threads = self.changes.threads.get(arm.arm, arm.threads)
            marked.append(arm.model_copy(update={"flags": new, "threads": threads}))
        return KindResult(
            arms=tuple(marked),
            failures=tuple(self.rows),
            flags=tuple(sorted({*flags, *self.changes.flags(None)})),
            notes=self.changes.notes,
            **fields,
        )

    @property
    def arms(self) -> frozenset[int | None]:
        return frozenset(row.arm for row in self.rows)


def told(fault: BaseException) -> str:
    """What happened, in a line."""
    text = str(fault).strip().partition("\n")[0] or type(fault).__name__
    if reason(fault) != "out_of_memory":
        return text
    asked = _ASKED.search(text)
    when = f" when {asked[1]} more were asked for" if asked else ""
    return f"memory ran out{when}; a smaller batch, a smaller input or a smaller dtype needs less"


def reason(fault: BaseException) -> FailureReason:
    """The failure's name; `error` for what nobody foresaw."""
    if isinstance(fault, TimedOut):
        return "timeout"
    if isinstance(fault, Unsupported):
        return "unsupported"
    if isinstance(fault, NotANumberError):
        return "not_a_number"
    if isinstance(fault, MemoryError | torch.OutOfMemoryError) or "can't allocate memory" in str(fault):
        return "out_of_memory"
    return "error"
