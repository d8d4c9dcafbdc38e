"""Failures of a job: exceptions of its arms become rows, and the other arms go on."""

import contextlib
import gc
import logging
import re
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import torch

from sweeps.model.job import Job
from sweeps.model.outcome import (
    WORKER_UNFIT,
    ArmOutcome,
    Failure,
    FailureReason,
    Predictions,
    Samples,
    TextScores,
)
from sweeps.model.profile import ArmProfile, Peaks
from workers import methods
from workers.arms.prepared import JobArm
from workers.errors import (
    CompilationTimedOut,
    NotANumberError,
    TimedOut,
    TimingTimedOut,
    Unsupported,
    WrongResultError,
)
from workers.measure.interleaved import ArmError
from workers.measure.optional import optional_value
from workers.measure.process_state import FUNCTIONS, Changes, ForwardFunctions
from workers.models.share_weights import restored_weights


class KindResult(NamedTuple):
    """What a kind measures of a job; the fields are those of `Outcome`."""

    arms: tuple[ArmOutcome, ...] = ()
    failures: tuple[Failure, ...] = ()
    samples: Samples | None = None
    predictions: Predictions | None = None
    text_scores: TextScores | None = None
    profiles: tuple[ArmProfile, ...] | None = None
    peaks: tuple[Peaks, ...] = ()
    system_metrics: dict[str, float] = {}  # noqa: RUF012 - a named tuple's default, never changed
    system_series: dict[str, tuple[float | None, ...]] | None = None
    flags: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


_LOG = logging.getLogger(__name__)
_ALLOCATION = re.compile(r"[Tt]ried to allocate ([0-9.]+ ?\w+)")
"""How torch names the size of an allocation that failed, on a CPU and on a GPU."""
TIMEOUT_SHARE = 0.9
"""So much of the job's time-out is used by plan; pairs come first, passes that would reach beyond
are skipped and flagged."""
_REASONS: Mapping[FailureReason, tuple[type[BaseException], ...]] = {
    "timeout": (TimedOut,),
    "unsupported": (Unsupported,),
    "not_a_number": (NotANumberError,),
    "wrong_result": (WrongResultError,),
    "out_of_memory": (MemoryError, torch.OutOfMemoryError),
}
"""The names of failures by their exceptions; any other is an `error`."""
_A = TypeVar("_A")

_SOUND: set[str] = set()
"""Jobs in several visits that this process has visited without a change of what all arms run on."""


class StateChangedError(Exception):
    """One of the arms changed what all arms of the process run on, and the others must be measured
    in another process.
    """

    def __init__(self, arms: tuple[int, ...], notes: tuple[str, ...]) -> None:
        super().__init__(notes[0])
        self.arms, self.notes = arms, notes


class FailureCollector:
    """The failures of a job so far, and when it must end; a failed arm is left out from then on."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.rows: list[Failure] = []
        self.allowed_s = TIMEOUT_SHARE * job.protocol.timeout_s
        self.deadline = time.monotonic() + self.allowed_s
        """Reading of `time.monotonic()`; compiling does not count, and an alarm that rang leaves
        the other arms as long again."""
        before = ForwardFunctions()
        methods.all_methods()  # files of users are imported here, once in a process
        for change in optional_value(FUNCTIONS, before.restore, []):
            _LOG.warning("importing the methods: %s, and is put back", change)
        functions = ForwardFunctions()
        sound = job.protocol.passes > 1 and job.visited_id in _SOUND
        self.changes = Changes(lambda: [*functions.restore(), *restored_weights()], at_end=sound)
        """What the arms changed in the process."""

    @property
    def arms(self) -> frozenset[int | None]:
        """Those that failed."""
        return frozenset(row.arm for row in self.rows)

    @contextlib.contextmanager
    def collect(
        self, arm: int, doing: str, *, timeout: bool = True, shared: bool = True
    ) -> Iterator[None]:
        """Make what the block raises a failure of `arm`, and undo what it changes in the process
        (`shared`: see `Changes.watched`); `doing` completes "while …".

        Without `timeout` a `TimedOut` passes, because which arm that meets is chance.
        """
        try:
            with self.changes.watched(arm, doing, shared=shared):
                yield
        except (Exception, TimedOut) as error:
            if isinstance(error, TimedOut) and not timeout:
                raise
            self.add(arm, error, doing)

    def add(self, arm: int | None, error: BaseException, doing: str) -> None:
        if isinstance(error, TimedOut) and not isinstance(error, CompilationTimedOut):
            self.allow_anew()
        self.rows.append(failure(arm, error, f"while {doing}"))
        # their tensors would stay allocated as long as the exception
        traceback.clear_frames(error.__traceback__)
        gc.collect()
        if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
            torch.cuda.empty_cache()

    def add_in_turn(self, error: ArmError, columns: Sequence[JobArm], verb: str) -> bool:
        """A failure while the arms of `columns` ran in turns: of the arm that ran, and whether it
        is; a time-out is the job's, and open.
        """
        failed, cause = columns[error.column], error.__cause__ or error
        if isinstance(cause, TimedOut):
            cause = TimingTimedOut(f"{cause}, and which arm ran then is chance: no arm is blamed")
            self.add(None, cause, f"{verb} the arms")
            return False
        self.add(failed.index, cause, f"{verb} {failed.arm}")
        return True

    def leave(self) -> None:
        """Raises `StateChangedError` where an arm changed what all run on and others can be
        answered without it.

        An unmodified model changes nothing: where the arm is not known it is one with a method.
        """
        if by := self.changes.shared_by:
            known = tuple({arm for arm in by if arm is not None}) if None not in by else ()
            suspects = known or tuple(index for index, arm in enumerate(self.job.arms) if arm.stack)
            if suspects and self.job.apart(suspects):
                raise StateChangedError(suspects, self.changes.notes)

    def inherit(self, arm: int, baseline: int, name: str) -> None:
        """Fail `arm` because `baseline`, the last one it could be compared with, failed."""
        cause = next(row for row in self.rows if row.arm == baseline)
        message = f"not measured: its baseline {name} failed {cause.message}"
        self.rows.append(cause.model_copy(update={"arm": arm, "message": message}))

    def allow_anew(self) -> None:
        """The alarm rang, and rings again after as long."""
        self.deadline = time.monotonic() + self.allowed_s

    @property
    def left_s(self) -> float:
        """Seconds until the deadline."""
        return self.deadline - time.monotonic()

    @contextlib.contextmanager
    def stopped(self) -> Iterator[None]:
        """Time that does not count, because it has a limit of its own."""
        start = time.monotonic()
        try:
            yield
        finally:
            self.deadline += time.monotonic() - start

    def prepare(self, job: Job, make: Callable[[int], _A]) -> list[_A]:
        """The arms that `make` builds, by their indices in the job."""
        prepared = []
        for index, arm in enumerate(job.arms):
            with (
                self.collect(index, f"preparing {arm}"),
                self.stopped() if index in job.compiled else contextlib.nullcontext(),
            ):
                prepared.append(make(index))
            self.leave()
        return prepared

    def result(
        self, arms: Iterable[ArmOutcome] = (), *, flags: Iterable[str] = (), **fields: Any
    ) -> KindResult:
        """The result of a kind, with the failures so far and what the arms changed in the
        process.
        """
        if self.job.protocol.passes > 1 and not self.changes.shared_by:
            _SOUND.add(self.job.visited_id)
        if self.changes.shared_by:
            fields["system_metrics"] = {**fields.get("system_metrics", {}), WORKER_UNFIT: 1.0}
        marked = [
            arm.model_copy(
                update={
                    "flags": tuple(dict.fromkeys((*arm.flags, *self.changes.flags(arm.arm)))),
                    "threads": self.changes.threads.get(arm.arm, arm.threads),
                }
            )
            for arm in arms
        ]
        return KindResult(
            arms=tuple(marked),
            failures=tuple(self.rows),
            flags=tuple(sorted({*flags, *self.changes.flags(None)})),
            notes=self.changes.notes,
            **fields,
        )


def failure(arm: int | None, error: BaseException, context: str) -> Failure:
    """The row of an error; the message is one line that begins with `context`."""
    reason: FailureReason = next(
        (name for name, kinds in _REASONS.items() if isinstance(error, kinds)), "error"
    )
    text = methods.error_line(error)
    if reason == "out_of_memory" or (reason == "error" and "can't allocate memory" in str(error)):
        reason = "out_of_memory"
        size = _ALLOCATION.search(text)
        text = (
            f"memory ran out{f' at a request for {size[1]} more' if size else ''}; a smaller batch,"
            " input or dtype needs less"
        )
    return Failure(
        arm=arm,
        reason=reason,
        message=f"{context}: {text}",
        detail="".join(traceback.format_exception(error)),
    )
