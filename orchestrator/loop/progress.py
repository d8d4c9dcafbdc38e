"""Progress: what a running sweep shows, as a bar on a terminal and as plain lines elsewhere."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Self

import numpy as np
from rich.console import Console, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from orchestrator.loop.dispatcher import Event, EventType
from orchestrator.report.section import style_of
from store.write.queue import LeaseHolder
from sweeps.analysis.labels import BITS, SPEEDUP, TOP1, Conclusion, conclude
from sweeps.model.flags import quarantine_reasons, warmup_converged
from sweeps.model.job import Job, Pair
from sweeps.model.kinds import KINDS, Payload
from sweeps.model.outcome import WAITED_S, Outcome
from sweeps.number_format import count, duration
from sweeps.stats.quality import compare_predictions, compare_texts, scored
from sweeps.stats.visits import Visit, pool_visits
from sweeps.text.condition_text import job_label
from sweeps.text.effects import effect_word
from sweeps.text.explanation import explain_wall
from workers.methods.arm_labels import arm_label

_Result = tuple[str, Conclusion | None] | None
"""Of a pair: its numbers as text, and the conclusion whose word follows them, if there is one;
`None` if it was not measured."""


def comparison_lines(
    outcome: Outcome, stated: set[tuple[str, str]] | None = None
) -> Iterator[Text]:
    """One line for each comparison of an outcome: its numbers and verdict, or why there are none.

    Of one of several visits the failures alone: it has too few rounds for a verdict of its own.
    `stated` holds arms with the reasons of earlier lines, which are left out, and gets those of
    these lines.
    """
    failures = {failure.arm: failure for failure in outcome.failures}
    several = len({pair.baseline for pair in outcome.job.pairs}) > 1
    result_of = RESULTS[KINDS[outcome.job.kind].payload]
    for pair in outcome.job.pairs:
        arm, baseline = outcome.job.arms[pair.arm], outcome.job.arms[pair.baseline]
        label = f"  {arm_label(arm)}" + (f" against {arm_label(baseline)}" if several else "")
        failure = next(
            (failures[index] for index in (pair.arm, pair.baseline, None) if index in failures),
            None,
        )
        if failure is not None:
            if stated is None or (label, failure.reason) not in stated:
                yield Text(f"{label}: {failure.reason}: {failure.message}", style="red")
            if stated is not None:
                stated.add((label, failure.reason))
        elif (result := result_of(outcome, pair)) is None:
            yield Text(f"{label}: no samples", style="red")
        elif outcome.job.protocol.passes == 1:
            numbers, conclusion = result
            word = "" if conclusion is None else effect_word(conclusion)
            yield Text(f"{label}: {numbers} {word}".rstrip(), style=style_of(word))


def _speedups(outcome: Outcome, pair: Pair) -> _Result:
    """Speed-ups by every metric, and the conclusion on the first metric of the kind."""
    samples, metrics = outcome.samples, KINDS[outcome.job.kind].metrics
    if samples is None or not set(pair) <= set(samples.arms):
        return None
    series: Mapping[str, Sequence[Sequence[float]]] = samples.series or {
        metrics[0]: samples.seconds
    }
    ratios = {}
    for metric in (name for name in metrics if name in series):
        table = np.asarray(series[metric])[
            0 if warmup_converged(outcome.flags) else len(series[metric]) // 2 :
        ]
        sides = (table[:, np.asarray(samples.arms) == arm] for arm in pair)
        ratio = pool_visits([Visit(*sides)], [0]).speedup
        slowed = quarantine_reasons(outcome.flags)
        fewest = outcome.job.protocol.pairs_min
        word = "quarantined" if slowed else ratio.verdict(pairs_min=fewest)
        ratios[metric] = conclude(
            SPEEDUP,
            ratio.value,
            ratio.low or None,
            ratio.high,
            verdict=word,
            pairs=(ratio.pairs, fewest),
        )
    texts = [
        f"{metric} {ratio.numbers}" if len(metrics) > 1 else ratio.numbers
        for metric, ratio in ratios.items()
    ]
    return ", ".join(texts), next(iter(ratios.values()))


def _top1_drop(outcome: Outcome, pair: Pair) -> _Result:
    predictions = outcome.predictions
    if predictions is None or not set(pair) <= {images.arm for images in predictions.arms}:
        return None
    compared = compare_predictions(predictions, pair.baseline, pair.arm)
    drop = conclude(TOP1, *compared.drop[:3], verdict=compared.verdict())
    return (
        (
            f"top-1 {compared.top1_baseline.value:.2f} → {compared.top1.value:.2f} %, drop"
            f" {drop.numbers} points"
        ),
        drop,
    )


def _text_change(outcome: Outcome, pair: Pair) -> _Result:
    scores = outcome.text_scores
    if scores is None or not all(scored(scores, arm) for arm in pair):
        return None
    compared = compare_texts(scores, pair.baseline, pair.arm)
    change = conclude(BITS, *compared.change[:3], verdict=compared.verdict())
    levels = f"{compared.bits_per_byte_baseline:.4f} → {compared.bits_per_byte:.4f} bits per byte"
    return f"{levels}, change {change.numbers}", change


def _reasons(outcome: Outcome, pair: Pair) -> _Result:
    """Why the arm takes as long as it does, phase by phase."""
    profiles = {(profile.arm, profile.phase): profile for profile in outcome.profiles or ()}
    found = [
        explain_wall(profiles[pair.baseline, phase], profile, outcome.job.condition.device)
        for (arm, phase), profile in profiles.items()
        if arm == pair.arm and (pair.baseline, phase) in profiles
    ]
    return ("; ".join(each or "no classes of time" for each in found), None) if found else None


RESULTS: Mapping[Payload, Callable[[Outcome, Pair], _Result]] = {
    "samples": _speedups,
    "predictions": _top1_drop,
    "text_scores": _text_change,
    "profiles": _reasons,
}
"""How the raw data of each payload are compared."""


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
        self._failed: set[tuple[str, str]] = set()
        """Arms of visits with the reasons that were printed."""
        self._named: list[str] = []
        self._claimed: Sequence[str] = ()
        """The claims that were printed last."""
        self._printed = time.monotonic()
        self._bar = _Bar(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("measurements"),
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

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def expect(self, jobs: Sequence[Job]) -> None:
        """Jobs that are still to come, instead of those expected before."""
        self._comparisons = self._done + sum(len(job.pairs) for job in jobs)
        self._visits_left = Counter(job.round for job in jobs if job.protocol.passes > 1)
        self._bar.update(self._task, total=self._comparisons)

    def curves(self, lines: Sequence[str]) -> None:
        """Show what can be claimed of each curve so far, on a terminal."""
        self._bar.curves = lines

    def end_round(self) -> None:
        """Without a terminal, one line on the claims that this round of measurements changed."""
        changed = [line for line in self._bar.curves if line not in self._claimed]
        self._claimed = self._bar.curves
        if changed and not self._console.is_terminal:
            more = f"; and {count(len(changed) - 1, 'more curve')}" if len(changed) > 1 else ""
            self._print(Text(f"  so far: {changed[0]}{more}", style="dim"))

    def advance(self, doing: str, done: int, total: int) -> None:
        """Show how many comparisons are done of work that is no job."""
        self._bar.update(self._task, description=doing, completed=done, total=total)
        if not self._console.is_terminal and time.monotonic() - self._printed >= SILENT_S:
            self._print(Text(f"[{done}/{total}] {doing}", style="dim"))

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
            self._wait_line(f"{job_label(event.job)}: {event.message}")
        if event.what == "begun" and self._waiting.pop(event.job, None) is not None:
            self._begin(event.job, now)
        plain = not self._console.is_terminal
        if event.what == "started" and plain and event.job.protocol.passes == 1:
            text = f"started on {event.node.host}: {job_label(event.job)}"
            text += f", {count(len(event.job.pairs), 'comparison')}"
            if event.job.condition.weights == "trained":
                text += "; its model is trained first, unless it is cached"
            self._print(Text(text, style="dim"))
        elif event.outcome is not None:
            self._show_outcome(event.job, event.outcome, now)
        elif event.message and (plain or event.what != "waiting"):
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
        for line in comparison_lines(outcome, self._failed if job.protocol.passes > 1 else None):
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
        listed = []
        for state, jobs in (
            ("running ", self._running),
            ("waiting for its host: ", self._waiting),
        ):
            named = [f"{job_label(job)}, for {duration(now - jobs[job])}" for job in jobs]
            listed += [state + "; ".join(named)] if named else []
        parts = (f"[{self._done}/{self._comparisons}] {'; '.join(listed)}", self._left_words(now))
        self._print(Text(", ".join(filter(None, parts)), style="dim"))

    def waiting(self, holders: Sequence[LeaseHolder]) -> None:
        """Show which other runs measure the rest: at once, and as often as anything is printed."""
        now = time.monotonic()
        names = [holder.owner for holder in holders]
        if names != self._named or now - self._printed >= SILENT_S:
            self._named = names
            if not self._console.is_terminal:
                for holder in holders:
                    self._print(Text(f"waiting: {holder}", style="yellow"))
        self._wait_line("; ".join(map(str, holders)))

    def _wait_line(self, text: str) -> None:
        """Show what is waited for in the line of the bar, which the next look rewrites."""
        self._bar.update(self._task, description=f"waiting: {text}")

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
