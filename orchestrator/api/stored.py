"""Comparisons in a store: saved as a sweep of kind `call`, and the public views as data frames."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from store.open.engine import connect, connect_readonly
from store.read.queries import view_rows
from store.views.public import VIEWS
from store.write.record import record_imported
from store.write.submission import NewSweep, store_arm_labels, submit_sweep
from sweeps.errors import did_you_mean
from sweeps.model.condition import Condition
from sweeps.model.identity import digest
from sweeps.model.job import DENSE, NAMED, Arm, Job, Pair, Protocol, Step
from sweeps.model.metrics import METRICS, SYSTEM_METRICS
from sweeps.model.outcome import ArmOutcome, MetricValue, Outcome
from sweeps.stats.timing import median
from workers.measure.environment import commit

if TYPE_CHECKING:
    import pandas as pd

    from orchestrator.api.comparison import Result, VisitRecord


def save_results(
    results: Sequence[Result], url: str | Path = "breakeven.db", sweep: str | None = None
) -> str:
    """Record results of the same arms as a sweep, whose name is returned; by default it names the
    arms. Saving them again changes nothing. Raises `StoreError`.
    """
    names = results[0].names
    name = sweep or " vs ".join(reversed(names))
    outcomes = [outcome for each in results for outcome in _outcomes(each)]
    jobs = {outcome.job.visited_id: outcome.job for outcome in outcomes}
    engine = connect(str(url))
    record_imported(engine, outcomes)
    question = f"Is {' or '.join(names[1:])} faster than {names[0]}?"
    new = NewSweep(name, f"# Compared by breakeven: {question}\n", question)
    submit_sweep(engine, new, jobs.values(), [])
    labels = zip(outcomes[0].job.arms[1:], names[1:], strict=True)
    store_arm_labels(engine, {arm.arm_id: label for arm, label in labels})
    engine.dispose()
    return name


def _outcomes(result: Result) -> Iterator[Outcome]:
    """What a worker would have reported of each visit."""
    setup = result.setup
    sources = [setup.source(name) for name in result.names]
    condition = Condition(
        model=sources[0].name,
        device=setup.device,
        threads=setup.threads,
        values=dict(setup.values) or None,
        x_axis=tuple(setup.values) or None,
    )
    arms = [
        Arm(stack=(Step(method=name, params={"file": source.name}),))
        for name, source in zip(result.names[1:], sources[1:], strict=True)
    ]
    contents = {f"{NAMED}{source.name}": source.digest for source in sources[1:]}
    job = Job(
        kind="call",
        condition=condition,
        arms=(DENSE, *arms),
        pairs=tuple(Pair(0, index) for index in range(1, len(result.names))),
        protocol=Protocol(
            pairs_min=2,
            budget_s=setup.time_s,
            passes=max(2, result.planned),
        ),
        content_hashes={"model": sources[0].digest, **contents},
    )
    process = digest([setup.seed, result.visits[0].started_at])
    for turn, visit in enumerate(result.visits):
        yield Outcome(
            job=job.model_copy(update={"round": turn}),
            environment=result.environment,
            host=platform.node(),
            started_at=visit.started_at,
            ended_at=visit.ended_at,
            arms=tuple(_arm_outcomes(result, visit)),
            samples=visit.samples,
            system_metrics={
                key: value for key, value in visit.readings.items() if key in SYSTEM_METRICS
            },
            flags=visit.flags,
            process=process,
            commit=commit(),
        )


def _arm_outcomes(result: Result, visit: VisitRecord) -> Iterator[ArmOutcome]:
    size = next(iter(result.setup.values.values()), None)
    for arm in dict.fromkeys(visit.samples.arms):
        time = median(visit.times(arm).ravel())
        latency = METRICS["latency"]
        yield ArmOutcome(
            arm=arm,
            batch=1,
            tokens=int(size) if size is not None and size % 1 == 0 else None,
            threads=result.setup.threads,
            metrics=(
                MetricValue(name=latency.name, value=1e3 * time.value, unit=latency.unit, n=time.n),
            ),
        )


class StoredResults:
    """A store whose public views (docs/views.md) are methods that return data frames:
    `open("breakeven.db").speedup()`.
    """

    def __init__(self, url: str | Path) -> None:
        """Raises `StoreError` for what is not a store."""
        self._engine = connect_readonly(str(url))

    def __dir__(self) -> list[str]:
        return sorted(VIEWS)

    def __getattr__(self, name: str) -> Callable[[], pd.DataFrame]:
        if name not in VIEWS:
            raise AttributeError(f"there is no view {name!r}{did_you_mean(name, VIEWS)}")
        return partial(view_rows, self._engine, name)
