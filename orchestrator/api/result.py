"""Result of a comparison: what was measured, its verdicts in words and as a table, and the outcomes
that a store records.
"""

import math
import platform
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from sweeps.analysis.compared import DEFAULT_MARGIN, ComparedArm, Judgement, Ratio
from sweeps.errors import did_you_mean
from sweeps.model.condition import Condition, Device
from sweeps.model.flags import VOID
from sweeps.model.identity import digest
from sweeps.model.job import DENSE, Arm, Job, Pair, Protocol, Step
from sweeps.model.metrics import METRICS, SYSTEM_METRICS
from sweeps.model.outcome import ArmOutcome, Environment, MetricValue, Outcome, Samples
from sweeps.stats.timing import median
from sweeps.text.compared import (
    COLUMNS,
    compared_rows,
    compared_sentence,
    flag_sentences,
    null_sentence,
)
from workers.measure.environment import commit
from workers.measure.interleaved import VISIT_WARMUP

if TYPE_CHECKING:
    import pandas as pd

MIN_ROUNDS = 2
"""Of a visit, even if the time is up."""


class ArmSource(NamedTuple):
    """Where an arm is from."""

    name: str
    """Such as `bench.py:step`, or a command."""
    digest: str = ""
    """Of its text in hexadecimal digits, where that is known."""

    @property
    def version(self) -> int:
        """Another text is another version of the arm, whose answers are not those of this one."""
        return int(self.digest[:7] or "1", 16)


class VisitRecord(NamedTuple):
    """What one visit measured."""

    samples: Samples
    """Its `arms` are indices into the names."""
    flags: tuple[str, ...]
    readings: Mapping[str, float]
    started_at: float
    """Seconds since the epoch."""
    ended_at: float

    def times(self, index: int) -> NDArray[np.float64]:
        """Seconds of an arm, shape [rounds, columns]."""
        columns = [column for column, arm in enumerate(self.samples.arms) if arm == index]
        return np.array(self.samples.seconds)[:, columns]


@dataclass(frozen=True, kw_only=True)
class Setup:
    """How arms are compared; times in seconds."""

    time_s: float
    visits: int | None = None
    """`None`: as many as the time allows for, up to `MAX_VISITS`."""
    margin: float = DEFAULT_MARGIN
    controls: Mapping[str, str] = field(default_factory=dict)
    """Arms that must not differ from another one, by name: if one does, or one of the two fails,
    the result is void."""
    seed: str = field(default_factory=lambda: uuid4().hex)
    warmup: int = VISIT_WARMUP
    """Samples of each slot before the rounds of a visit."""
    device: Device = "cpu"
    threads: int = 1
    """CPU threads that the arms use, by which the time of others is known."""
    own_s: Callable[[], float] = time.process_time
    """Reads the CPU time that the arms used."""
    threads_s: Callable[[], Mapping[str, float]] | None = None
    """Reads that of other threads of Python in the processes of the arms; `None`: in this one."""
    clock: Callable[[], float] = time.monotonic
    """By which the time is spent."""
    sources: Mapping[str, ArmSource] = field(default_factory=dict)
    """By name where arms are from, as it is stored; those not given are from their name."""
    values: Mapping[str, float] = field(default_factory=dict)
    """Of the axes, by name, such as the `n` of the inputs."""

    def __post_init__(self) -> None:
        """Raises `ValueError`."""
        if not 0 < self.time_s < math.inf:
            raise ValueError(f"the time must be above 0 s and finite, not {self.time_s!r}")
        if not (isinstance(self.margin, float | int) and 0 < self.margin < 1):
            raise ValueError(f"the margin is a share, such as 0.02 for 2 %, not {self.margin!r}")
        if self.visits is not None and not (isinstance(self.visits, int) and self.visits > 0):
            raise ValueError(f"visits are a whole number from 1 on, or None, not {self.visits!r}")

    def source(self, name: str) -> ArmSource:
        return self.sources.get(name, ArmSource(name))


@dataclass(frozen=True)
class Result:
    """What was measured of some arms against the first one."""

    names: tuple[str, ...]
    """All arms; the first is the baseline."""
    arms: Mapping[str, ComparedArm]
    """By name, without the baseline and without arms that failed."""
    null: Ratio
    """Two copies of the baseline against each other: 1 but for noise and for where copies lie."""
    seconds: Mapping[str, float]
    """Median seconds of one run of each measured arm."""
    failures: Mapping[str, str]
    """By name why an arm could not be measured."""
    setup: Setup
    spent_s: float
    environment: Environment
    visits: tuple[VisitRecord, ...]
    planned: int
    """Visits that the time allowed for; fewer were made where all was decided earlier."""
    void: str = ""
    """Why nothing may be concluded, such as that the control moved; else empty."""
    notes: tuple[str, ...] = ()
    """What was noticed besides, a line each."""

    @property
    def only(self) -> ComparedArm:
        """The arm, where there is one besides the baseline. Raises `ValueError` for several."""
        if len(self.arms) != 1:
            raise ValueError(f"choose one of the arms {', '.join(self.arms)}: result.arms[name]")
        return next(iter(self.arms.values()))

    @property
    def verdict(self) -> Judgement:
        return self.only.verdict

    @property
    def ratio(self) -> float:
        return self.only.ratio

    @property
    def low(self) -> float:
        return self.only.low

    @property
    def high(self) -> float:
        return self.only.high

    @property
    def pairs(self) -> int:
        return self.only.pairs

    @property
    def flags(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(flag for arm in self.arms.values() for flag in arm.flags))

    def save(self, url: str | Path = "breakeven.db", sweep: str | None = None) -> str:
        """Record it in a store, as a sweep whose name is returned. Raises `StoreError`."""
        return save_results([self], url, sweep)

    @property
    def margin(self) -> float:
        return self.setup.margin

    def __str__(self) -> str:
        """A line for each arm, and what casts doubt on them."""
        return "\n".join(
            [
                *(compared_sentence(arm, self.names[0], self.margin) for arm in self.arms.values()),
                *self.doubts(),
            ]
        )

    def doubts(self) -> list[str]:
        """What casts doubt on the figures, and why arms failed, a line each."""
        return [
            *([f"void: {self.void}"] if self.void else []),
            *(f"{name}: {reason}" for name, reason in self.failures.items()),
            *flag_sentences(self.flags),
            *self.notes,
        ]

    def _repr_html_(self) -> str:
        rows = compared_rows(self.arms.values(), self.seconds, self.names[0])
        return html_table(COLUMNS, rows, [null_sentence(self.null, self.names[0]), *self.doubts()])

    @property
    def needed_s(self) -> float | None:
        """Seconds after which all arms should be decided; `None` where they are, or that cannot be
        known.
        """
        return max((arm.needed_s for arm in self.arms.values() if arm.needed_s), default=None)


def html_table(columns: Sequence[str], rows: Iterable[Sequence[str]], lines: Iterable[str]) -> str:
    """A table, and lines below it."""
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    notes = "".join(f"<div>{escape(line)}</div>" for line in lines)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{notes}"


def save_results(
    results: Sequence[Result], url: str | Path = "breakeven.db", sweep: str | None = None
) -> str:
    """Record results of the same arms in a store as a sweep, whose name is returned; by default it
    names the arms. Saving them again changes nothing. Controls are no arms of it. Raises
    `StoreError`.
    """
    results = [_without_controls(each) for each in results]
    # they load SQLAlchemy, which measuring does not need
    from store.open.engine import connect, disposing
    from store.write.record import record_imported
    from store.write.submission import NewSweep, store_arm_labels, submit_sweep

    outcomes, names = [outcome for each in results for outcome in _outcomes(each)], results[0].names
    name = sweep or " vs ".join(reversed(names))
    jobs = {outcome.job.visited_id: outcome.job for outcome in outcomes}
    question = f"Is {' or '.join(names[1:])} faster than {names[0]}?"
    new = NewSweep(name, f"# Compared by breakeven: {question}\n", question)
    labels = zip(outcomes[0].job.arms[1:], names[1:], strict=True)
    with disposing(connect(str(url))) as engine:
        record_imported(engine, outcomes)
        submit_sweep(engine, new, jobs.values(), [])
        store_arm_labels(engine, {arm.arm_id: label for arm, label in labels})
    return name


def _without_controls(result: Result) -> Result:
    """The arms of the user, and their samples alone."""
    controls = result.setup.controls
    names = [result.names[0]]
    names += [name for name in result.names[1:] if name not in {*controls, *controls.values()}]
    indices = {result.names.index(name): place for place, name in enumerate(names)}
    visits = []
    for visit in result.visits:
        samples = visit.samples
        kept = [column for column, arm in enumerate(samples.arms) if arm in indices]
        tables = {"seconds": samples.seconds, "event_seconds": samples.event_seconds or ()}
        columns: dict[str, Any] = {
            name: tuple(tuple(row[column] for column in kept) for row in table) or None
            for name, table in tables.items()
        }
        columns["order"] = tuple(
            tuple(kept.index(column) for column in row if column in kept) for row in samples.order
        )
        columns["arms"] = tuple(indices[samples.arms[column]] for column in kept)
        columns["inner"] = tuple(samples.inner[column] for column in kept)
        visits.append(visit._replace(samples=samples.model_copy(update=columns)))
    return replace(result, names=tuple(names), visits=tuple(visits))


def check_store(url: str | None) -> None:
    """Raises `StoreError` where results cannot be saved."""
    from store.open.engine import connect
    from store.rows.transactions import writing

    engine = connect(url)
    try:
        with writing(engine):
            pass
    finally:
        engine.dispose()


class StoredResults:
    """A store whose public views (docs/views.md) are methods that return data frames:
    `open("breakeven.db").speedup()`.
    """

    def __init__(self, url: str | Path = "breakeven.db") -> None:
        """Raises `StoreError` for what is not a store."""
        from store.open.engine import connect_readonly

        self._engine = connect_readonly(str(url))
        self._engine.dispose()  # each reading opens a connection of its own

    def __dir__(self) -> list[str]:
        from store.views.public import VIEWS

        return sorted(VIEWS)

    def __getattr__(self, name: str) -> "Callable[[], pd.DataFrame]":
        from store.open.engine import disposing
        from store.read.queries import view_rows
        from store.views.public import VIEWS

        if name not in VIEWS:
            raise AttributeError(f"there is no view {name!r}{did_you_mean(name, VIEWS)}")

        def read() -> "pd.DataFrame":
            with disposing(self._engine) as engine:
                return view_rows(engine, name)

        return read


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
        Arm(stack=(Step(method=name, version=source.version),))
        for name, source in zip(result.names[1:], sources[1:], strict=True)
    ]
    job = Job(
        kind="call",
        condition=condition,
        arms=(DENSE, *arms),
        pairs=tuple(Pair(0, index) for index in range(1, len(result.names))),
        protocol=Protocol(
            pairs_min=MIN_ROUNDS,
            budget_s=setup.time_s,
            passes=max(2, result.planned),
        ),
        content_hashes={"model": sources[0].digest},
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
            flags=(*visit.flags, *([VOID] if result.void else [])),
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
