"""Forecast: how long the rest of a run takes, from the durations of its own jobs and the estimates of those still to come."""

import math
from collections.abc import Iterable

from orchestrator.estimate import job_seconds
from sweeps.condition import Kind
from sweeps.job import Job

_Round = tuple[str, int]
"""A comparison id and a round."""


class Forecast:
    """Durations of jobs of each kind as a share of their estimates; times in seconds of any one clock."""

    def __init__(self) -> None:
        self._open: dict[_Round, tuple[Kind, float]] = {}
        self._took: dict[Kind, float] = {}
        self._estimated: dict[Kind, float] = {}
        self.running: dict[Job, float] = {}
        """Jobs that run, and since when."""
        self._elsewhere: set[_Round] = set()
        self._parallel = 1

    def expect(self, jobs: Iterable[Job]) -> None:
        """Replace what is still to come by `jobs`."""
        self._open = {}
        for job in jobs:
            for key in _rounds(job):
                self._open[key] = (job.kind, job_seconds(job) / len(job.pairs))

    def elsewhere(self, jobs: Iterable[Job]) -> None:
        """Replace what other runs measure at present, and this one will not."""
        self._elsewhere = {key for job in jobs for key in _rounds(job)}

    def start(self, job: Job, now: float) -> None:
        """`job`, one of those expected or a part of one, began, or began again after it waited for its host."""
        self.running[job] = now
        self._parallel = max(self._parallel, len(self.running))

    def stop(self, job: Job) -> float | None:
        """`job` waits for its host or ended without an answer: it, or its parts, are still to come. Returns when it began."""
        return self.running.pop(job, None)

    def answer(self, job: Job, now: float, took_s: float | None = None) -> None:
        """`job` was answered, after it was measured for `took_s` seconds (default: since it began)."""
        began = self.running.pop(job, None)
        took_s = now - began if took_s is None and began is not None else took_s
        estimated = sum(self._open.pop(key, (job.kind, 0.0))[1] for key in _rounds(job))
        if took_s is not None:
            self._took[job.kind] = self._took.get(job.kind, 0.0) + took_s
            self._estimated[job.kind] = self._estimated.get(job.kind, 0.0) + estimated

    def left_s(self, now: float) -> float | None:
        """Seconds that the rest takes if jobs go on as those before; `None` before the first has ended."""
        known = math.fsum(self._estimated.values())
        if not known:
            return None
        overall = math.fsum(self._took.values()) / known
        share = {kind: self._took[kind] / estimated for kind, estimated in self._estimated.items() if estimated}
        expected = {key: share.get(kind, overall) * estimated for key, (kind, estimated) in self._open.items()}
        for key in self._elsewhere:
            expected.pop(key, None)
        gone = math.fsum(
            min(now - began, math.fsum(expected.get(key, 0.0) for key in _rounds(job))) for job, began in self.running.items()
        )
        return max(0.0, math.fsum(expected.values()) - gone) / self._parallel


def _rounds(job: Job) -> list[_Round]:
    return [(comparison_id, job.round) for comparison_id in job.comparison_ids()]
