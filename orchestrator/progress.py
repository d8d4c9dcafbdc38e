"""Progress: what a running sweep shows, as a bar on a terminal and as plain lines elsewhere."""

import time
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Self

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from orchestrator.dispatcher import Event
from orchestrator.forecast import Forecast
from orchestrator.planning import duration
from orchestrator.report.section import style_of
from store.queue import LeaseHolder
from sweeps.job import Job, Pair
from sweeps.labels import BITS, SPEEDUP, TOP1, Conclusion, conclude
from sweeps.outcome import Outcome
from sweeps.stats import text_stats
from sweeps.stats.classification import compare
from sweeps.stats.timing import Estimate, speedup, verdict
from workers.methods.arm_labels import arm_label

SILENT_S = 30.0
"""Without a terminal, something is printed at least this often."""


class Display:
    """Observer of a run: what starts and ends, the time left, and the verdicts of each job as it is answered."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._comparisons = self._done = 0
        self._forecast = Forecast()
        self._running: dict[Job, float] = {}
        self._waiting: dict[Job, float] = {}
        """Jobs that wait for their host, and since when."""
        self._waited: set[Job] = set()
        self._elsewhere = 0
        self._named: list[str] = []
        self._printed = time.monotonic()
        self._bar = Progress(
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

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._bar.stop()

    def expect(self, jobs: Sequence[Job]) -> None:
        """Jobs that are still to come, in place of those expected before."""
        self._comparisons = self._done + sum(len(job.pairs) for job in jobs)
        self._forecast.expect(jobs)
        self._bar.update(self._task, total=self._comparisons)

    def elsewhere(self, jobs: Sequence[Job]) -> None:
        """Jobs that other runs measure at present, which this one does not."""
        self._elsewhere = len(jobs)
        self._forecast.elsewhere(jobs)

    def __call__(self, event: Event) -> None:
        """Show one event; this is the observer that `dispatch` calls."""
        now = time.monotonic()
        if event.what in {"started", "suspected"}:
            self._running[event.job] = now
            self._forecast.start(event.job, now)
            self._bar.update(self._task, description=_place(event.job))
        if event.what == "waiting" and (since := self._running.pop(event.job, None)) is not None:
            self._waiting[event.job] = since
            self._waited.add(event.job)
            self._forecast.wait(event.job)
            self._bar.update(self._task, description=f"waiting for its host: {_place(event.job)}")
        if event.what == "begun" and self._waiting.pop(event.job, None) is not None:
            self._running[event.job] = now
            self._forecast.start(event.job, now)
            self._bar.update(self._task, description=_place(event.job))
        if event.what == "started" and not self._console.is_terminal:
            self._say(Text(f"started on {event.node.host}: {_place(event.job)}, {_counted(len(event.job.pairs))}", style="dim"))
        elif event.what == "answered" and event.outcome is not None:
            self._done += len(event.job.pairs)
            took_s = now - self._running.pop(event.job, now)
            if event.job in self._waited:  # that it began is seen late or not at all
                took_s = event.outcome.ended_at - event.outcome.started_at
            self._forget(event.job)
            self._forecast.answer(event.job, now, took_s)
            self._bar.update(self._task, completed=self._done, left=self._left(now))
            self._say(self._heading(event.outcome, took_s))
            for line in lines(event.outcome):
                self._say(line)
        elif event.message:
            if event.what in {"retried", "split", "dropped"}:
                self._forget(event.job)
                self._forecast.end(event.job)
            doing = {
                "retried": "trying again",
                "split": "splitting the job to find the arm",
                "suspected": "trying its baseline alone",
                "waiting": "it begins when it has the machine",
                "dropped": "its result is dropped, the run goes on",
            }
            self._say(Text(f"{_place(event.job)}: {event.message}; {doing.get(event.what, event.what)}", style="yellow"))

    def tick(self) -> None:
        """Show that the run goes on; called about twice a second."""
        now = time.monotonic()
        self._bar.update(self._task, left=self._left(now))
        if self._console.is_terminal or now - self._printed < SILENT_S or not (self._running or self._waiting):
            return
        states = (("measuring ", self._running), ("waiting for its host: ", self._waiting))
        listed = [
            f"{state}{'; '.join(f'{_place(job)}, for {duration(now - since)}' for job, since in jobs.items())}"
            for state, jobs in states
            if jobs
        ]
        parts = (f"[{self._done}/{self._comparisons}] {'; '.join(listed)}", self._left(now))
        self._say(Text(", ".join(filter(None, parts)), style="dim"))

    def waiting(self, holders: Sequence[LeaseHolder]) -> None:
        """Show who else measures the rest: at once, and as often as anything is printed."""
        now = time.monotonic()
        names = [holder.owner for holder in holders]
        if names != self._named or now - self._printed >= SILENT_S:
            self._named = names
            for holder in holders:
                self._say(Text(f"waiting: {holder}", style="yellow"))

    def _left(self, now: float) -> str:
        left = self._forecast.left_s(now)
        held = "1 job is" if self._elsewhere == 1 else f"{self._elsewhere} jobs are"
        own = f"about {duration(left)} left" if left else ""
        return ", ".join(filter(None, (own, f"{held} measured by other runs" if self._elsewhere else "")))

    def _forget(self, job: Job) -> None:
        self._running.pop(job, None)
        self._waiting.pop(job, None)
        self._waited.discard(job)

    def _heading(self, outcome: Outcome, took_s: float) -> Text:
        text = Text(f"[{self._done}/{self._comparisons}] {_place(outcome.job)}", style="bold")
        if not self._console.is_terminal:
            left = self._left(time.monotonic())
            text.append(f", took {duration(took_s)}{left and f', {left}'}", style="dim")
        if outcome.flags:
            text.append(f"  flagged: {', '.join(outcome.flags)}", style="yellow")
        for note in outcome.notes:
            text.append(f"\n  {note}", style="yellow")
        return text

    def _say(self, text: Text) -> None:
        self._printed = time.monotonic()
        self._bar.console.print(text, soft_wrap=True)


def _counted(comparisons: int) -> str:
    return "1 comparison" if comparisons == 1 else f"{comparisons} comparisons"


def lines(outcome: Outcome) -> Iterator[Text]:
    """One line for each comparison of an outcome: what it says of speed or accuracy, or why it says nothing."""
    failures = {failure.arm: failure for failure in outcome.failures}
    several = len({pair.baseline for pair in outcome.job.pairs}) > 1
    judge = {"accuracy": _accuracies, "generation": _generations, "quality": _qualities}.get(outcome.job.kind, _speedups)
    said = judge(outcome)
    for pair in outcome.job.pairs:
        arm, baseline = outcome.job.arms[pair.arm], outcome.job.arms[pair.baseline]
        name = f"  {arm_label(arm)}" + (f" against {arm_label(baseline)}" if several else "")
        failure = next((failures[index] for index in (pair.arm, pair.baseline, None) if index in failures), None)
        if failure is not None or pair not in said:
            yield Text(f"{name}: {f'{failure.reason}: {failure.message}' if failure else 'no samples'}", style="red")
        else:
            words, judged = said[pair]
            yield Text(f"{name}: {words} {judged}", style=style_of(judged))


def _speedups(outcome: Outcome) -> dict[Pair, tuple[str, str]]:
    """Speed-up and verdict of each pair that was timed."""
    estimates = {} if outcome.samples is None else _estimates(outcome, outcome.samples.seconds)
    return {pair: (found.numbers, found.word) for pair, found in ((pair, _speed(outcome, one)) for pair, one in estimates.items())}


def _generations(outcome: Outcome) -> dict[Pair, tuple[str, str]]:
    """Speed-ups of each pair by all metrics, and the verdict of the last, which is that of the whole run's characters."""
    found: dict[Pair, tuple[str, str]] = {}
    for metric, seconds in (outcome.samples.series if outcome.samples else {}).items():
        for pair, estimate in _estimates(outcome, seconds).items():
            before = f"{found[pair][0]}, " if pair in found else ""
            ratio = _speed(outcome, estimate)
            found[pair] = f"{before}{metric} {ratio.numbers}", ratio.word
    return found


def _speed(outcome: Outcome, estimate: Estimate) -> Conclusion:
    judged = verdict(estimate, pairs_min=outcome.job.protocol.pairs_min)
    return conclude(SPEEDUP, estimate.value, estimate.low or None, estimate.high, verdict=judged)


def _estimates(outcome: Outcome, rounds: Sequence[Sequence[float]]) -> dict[Pair, Estimate]:
    """The speed-up of each pair whose arms have times, shape [rounds, arms]."""
    seconds = np.asarray(rounds)
    column = {} if outcome.samples is None else {arm: index for index, arm in enumerate(outcome.samples.arms)}
    timed = [pair for pair in outcome.job.pairs if {pair.arm, pair.baseline} <= set(column)]
    return {pair: speedup(seconds[:, column[pair.baseline]], seconds[:, column[pair.arm]]) for pair in timed}


def _qualities(outcome: Outcome) -> dict[Pair, tuple[str, str]]:
    """Bits per byte, their change and the verdict of each pair that was scored."""
    found: dict[Pair, tuple[str, str]] = {}
    for pair in outcome.job.pairs:
        if outcome.text_scores is not None and all(text_stats.scored(outcome.text_scores, arm) for arm in pair):
            compared = text_stats.compare(outcome.text_scores, pair.baseline, pair.arm)
            change = conclude(BITS, *compared.change[:3], verdict=compared.verdict())
            levels = f"{compared.bits_per_byte_baseline:.4f} > {compared.bits_per_byte:.4f} bits per byte"
            found[pair] = f"{levels}, change {change.numbers}", change.word
    return found


def _accuracies(outcome: Outcome) -> dict[Pair, tuple[str, str]]:
    """Top-1, its drop and the verdict of each pair that was evaluated."""
    evaluation = outcome.predictions
    seen = {images.arm for images in evaluation.arms} if evaluation else set()
    found: dict[Pair, tuple[str, str]] = {}
    for pair in outcome.job.pairs:
        if evaluation is not None and {pair.baseline, pair.arm} <= seen:
            agreement = compare(evaluation, pair.baseline, pair.arm)
            dropped = conclude(TOP1, *agreement.drop[:3], verdict=agreement.verdict())
            top1 = f"top-1 {agreement.top1_baseline.value:.2f} > {agreement.top1.value:.2f} %"
            found[pair] = f"{top1}, drop {dropped.numbers} points", dropped.word
    return found


def _place(job: Job) -> str:
    condition = job.condition
    turn = f", round {job.round + 1}" if job.protocol.rounds > 1 else ""
    if job.kind == "accuracy":
        spoilt = f", {condition.corruption} {condition.severity}" if condition.corruption else ""
        return f"{condition.model} {condition.image_size} px, accuracy on {condition.data}{spoilt}, {condition.device}"
    if job.kind == "generation":
        size = f"{condition.prompt_tokens} + {condition.new_tokens} tokens"
        return f"{condition.model} {size}, batch {condition.batch_size}, {condition.device}{turn}"
    if job.kind == "quality":
        return f"{condition.model}, quality on {condition.data}, {condition.device}"
    return f"{condition.model} {condition.image_size} px, batch {condition.batch_size}, {condition.device}{turn}"
