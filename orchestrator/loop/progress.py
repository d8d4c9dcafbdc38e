"""Progress: what a running sweep shows, as a bar on a terminal and as plain lines elsewhere."""

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Self

from rich.console import Console, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from orchestrator.loop.dispatcher import Event, EventType
from orchestrator.loop.outcome_lines import comparison_lines, job_label
from store.write.queue import LeaseHolder
from sweeps.model.job import Job
from sweeps.model.outcome import WAITED_S, Outcome
from sweeps.number_format import count, duration

SILENT_S = 30.0
"""Without a terminal, something is printed at least this often."""
CONSEQUENCES: Mapping[EventType, str] = {
    "retried": "trying again",
    "split": "splitting the job to find the arm",
    "baseline_check": "trying its baseline alone",
    "waiting": "it begins when it has the machine",
    "taken": "this run waits for it no longer",
    "dropped": "its result is dropped, the run goes on",
}
"""What follows an event with a message."""


class _Bar(Progress):
    """The bar, and below it a line for each curve."""

    curves: Sequence[str] = ()

    def get_renderables(self) -> Iterable[RenderableType]:
        yield from super().get_renderables()
        yield from (
            Text(f"  {line}", style="dim", no_wrap=True, overflow="ellipsis")
            for line in self.curves
        )


class Display:
    """Observer of a run: what starts and ends, the time left, and the verdicts of each job as it is
    answered.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._comparisons = self._done = 0
        self._left: tuple[float, float] | None = None
        """Seconds left, and when that was known."""
        self._running: dict[Job, float] = {}
        """Jobs that run, and since when."""
        self._waiting: dict[Job, float] = {}
        """Jobs that wait for their host, and since when."""
        self._waited: set[Job] = set()
        self._elsewhere = 0
        self._visits_left: Counter[int] = Counter()
        """Jobs that are still to be visited, by pass."""
        self._flagged: Counter[str] = Counter()
        """Visits of this pass by their flags."""
        self._named: list[str] = []
        self._printed = time.monotonic()
        self._bar = _Bar(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("comparisons"),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
            console=console,
            disable=not console.is_terminal,
            transient=True,
        )
        self._task = self._bar.add_task("starting", total=None, left="")

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.stop()

    def expect(self, jobs: Sequence[Job]) -> None:
        """Jobs that are still to come, instead of those expected before."""
        self._comparisons = self._done + sum(len(job.pairs) for job in jobs)
        self._visits_left = Counter(job.round for job in jobs if job.protocol.passes > 1)
        self._bar.update(self._task, total=self._comparisons)

    def curves(self, lines: Sequence[str]) -> None:
        """Show what can be claimed of each curve so far; without a terminal what has changed."""
        for line in lines if not self._console.is_terminal else ():
            if line not in self._bar.curves:
                self._print(Text(f"  so far: {line}", style="dim"))
        self._bar.curves = lines

    def elsewhere(self, jobs: Sequence[Job]) -> None:
        """Jobs that other runs measure at present, which this one does not."""
        self._elsewhere = len(jobs)

    def left(self, seconds: float | None) -> None:
        """What `store.read.runs.seconds_left` has found now."""
        self._left = None if seconds is None else (seconds, time.monotonic())

    def __call__(self, event: Event) -> None:
        """Show one event; this is the observer that `dispatch` calls."""
        now = time.monotonic()
        if event.what in {"started", "baseline_check"}:
            self._begin(event.job, now)
        if event.what == "waiting" and (since := self._running.pop(event.job, None)) is not None:
            self._waiting[event.job] = since
            self._waited.add(event.job)
            self._bar.update(
                self._task, description=f"waiting for its host: {job_label(event.job)}"
            )
        if event.what == "begun" and self._waiting.pop(event.job, None) is not None:
            self._begin(event.job, now)
        if (
            event.what == "started"
            and not self._console.is_terminal
            and event.job.protocol.passes == 1
        ):
            comparisons = count(len(event.job.pairs), "comparison")
            training = (
                "; its model is trained first, unless it is cached"
                if event.job.condition.weights == "trained"
                else ""
            )
            self._print(
                Text(
                    f"started on {event.node.host}: {job_label(event.job)},"
                    f" {comparisons}{training}",
                    style="dim",
                )
            )
        elif event.what == "answered" and event.outcome is not None:
            self._show_outcome(event.job, event.outcome, now)
        elif event.message:
            if event.what in {"retried", "split", "taken", "dropped"}:
                self._forget(event.job)
            text = (
                f"{job_label(event.job)}: {event.message};"
                f" {CONSEQUENCES.get(event.what, event.what)}"
            )
            self._print(Text(text, style="yellow"))

    def _begin(self, job: Job, now: float) -> None:
        self._running[job] = now
        self._bar.update(self._task, description=job_label(job))

    def _show_outcome(self, job: Job, outcome: Outcome, now: float) -> None:
        self._done += len(job.pairs)
        took_s = now - self._running.get(job, now)
        if job in self._waited:  # its start is seen late or not at all
            took_s = outcome.ended_at - outcome.started_at
        self._forget(job)
        self._bar.update(self._task, completed=self._done, left=self._left_words(now))
        if job.protocol.passes == 1:
            self._print(self._heading(outcome, took_s))
        for line in comparison_lines(outcome):
            self._print(line)
        if job.protocol.passes > 1:
            self._show_visit(job, outcome)

    def _show_visit(self, job: Job, outcome: Outcome) -> None:
        """Print the notes of a visit, and after the last one of a pass a line for all."""
        self._visits_left[job.round] -= 1
        self._flagged.update(outcome.flags)
        for note in outcome.notes:
            self._print(Text(f"{job_label(job)}: {note}", style="yellow"))
        if self._visits_left[job.round]:
            return
        text = Text(
            f"[{self._done}/{self._comparisons}] pass {job.round + 1} of {job.protocol.passes}",
            style="bold",
        )
        if (left := self._left_words(time.monotonic())) and not self._console.is_terminal:
            text.append(f", {left}", style="dim")
        if self._flagged:
            named = ", ".join(
                f"{flag} ({count(visits, 'visit')})"
                for flag, visits in sorted(self._flagged.items())
            )
            text.append(f"  flagged: {named}", style="yellow")
        self._flagged.clear()
        self._print(text)

    def tick(self) -> None:
        """Show that the run goes on; called about twice a second."""
        now = time.monotonic()
        self._bar.update(self._task, left=self._left_words(now))
        if (
            self._console.is_terminal
            or now - self._printed < SILENT_S
            or not (self._running or self._waiting)
        ):
            return
        states = (("running ", self._running), ("waiting for its host: ", self._waiting))
        listed = [
            f"{state}{'; '.join(_for_how_long(job, now - since) for job, since in jobs.items())}"
            for state, jobs in states
            if jobs
        ]
        parts = (f"[{self._done}/{self._comparisons}] {'; '.join(listed)}", self._left_words(now))
        self._print(Text(", ".join(filter(None, parts)), style="dim"))

    def waiting(self, holders: Sequence[LeaseHolder]) -> None:
        """Show which other runs measure the rest: at once, and as often as anything is printed."""
        now = time.monotonic()
        names = [holder.owner for holder in holders]
        if names != self._named or now - self._printed >= SILENT_S:
            self._named = names
            for holder in holders:
                self._print(Text(f"waiting: {holder}", style="yellow"))

    def _left_words(self, now: float) -> str:
        left = 0.0 if self._left is None else max(0.0, self._left[0] - (now - self._left[1]))
        held = f"{count(self._elsewhere, 'job')} {'is' if self._elsewhere == 1 else 'are'}"
        own = f"about {duration(left)} left" if left else ""
        return ", ".join(
            filter(None, (own, f"{held} measured by other runs" if self._elsewhere else ""))
        )

    def _forget(self, job: Job) -> None:
        self._running.pop(job, None)
        self._waiting.pop(job, None)
        self._waited.discard(job)

    def _heading(self, outcome: Outcome, took_s: float) -> Text:
        text = Text(f"[{self._done}/{self._comparisons}] {job_label(outcome.job)}", style="bold")
        if not self._console.is_terminal:
            left = self._left_words(time.monotonic())
            text.append(f", took {duration(took_s)}{left and f', {left}'}", style="dim")
        if (waited_s := outcome.system_metrics.get(WAITED_S, 0)) > 0:
            text.append(
                f"  waited {waited_s:.1f} s for other processes to free the cores", style="dim"
            )
        if outcome.flags:
            text.append(f"  flagged: {', '.join(outcome.flags)}", style="yellow")
        for note in outcome.notes:
            text.append(f"\n  {note}", style="yellow")
        return text

    def _print(self, text: Text) -> None:
        self._printed = time.monotonic()
        self._bar.console.print(text, soft_wrap=True)


def _for_how_long(job: Job, seconds: float) -> str:
    return f"{job_label(job)}, for {duration(seconds)}"
