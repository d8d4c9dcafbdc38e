"""A real SQLite store for each test, and outcomes as a worker would hand them back, made from
simulated timings.
"""

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sqlalchemy import Engine, text

from store.open.engine import connect
from store.write import submissions
from store.write.record import record
from store.write.submission import NewSweep, submit_sweep
from sweeps.model.condition import Condition, ImageSize, Kind, image_shape
from sweeps.model.job import Arm, Job, Pair, Protocol, Step
from sweeps.model.method import BlockTokens
from sweeps.model.outcome import (
    ArmImages,
    ArmOutcome,
    Environment,
    Failure,
    MetricValue,
    Outcome,
    PairImages,
    Predictions,
    Samples,
    pack,
)
from sweeps.stats.curve import Curve, Point
from sweeps.stats.pooling import SpeedUp
from sweeps.stats.visits import FLOOR, Spread, Visit, pool_visits
from tests.fixtures.sql_rows import rows

CPU = Environment(device="cpu", device_name="Imaginary CPU", facts={"cores": "2", "torch": "2.0"})
CLAIM = """
import sys, time
real, shift = time.time, float(sys.argv[3])
time.time = lambda: real() + shift
from store.write import queue
from store.open.engine import connect
engine = connect(sys.argv[1])
print(len(queue.claim(engine, int(sys.argv[2]), owner="elsewhere:1:1")), queue.recover(engine))
"""
"""A program that takes a job as a host elsewhere whose clock differs by so many seconds, and takes
back what it may."""


def a_job(
    image_size: ImageSize = 224,
    keep_rates: Sequence[float] = (0.5,),
    protocol: Protocol | None = None,
    version: int = 1,
    kind: Kind = "latency",
    **condition: Any,
) -> Job:
    """A block of dense and one topk arm for each keep rate."""
    arms = [
        Arm(
            stack=(
                Step(
                    method="topk", params={"keep_rate": rate, "layers": [3, 6, 9]}, version=version
                ),
            )
        )
        for rate in keep_rates
    ]
    data = {"data": "digits"} if kind == "accuracy" else {}
    return Job(
        kind=kind,
        condition=Condition(
            model="deit_tiny_patch16_224", image_size=image_size, **data, **condition
        ),
        arms=(Arm(), *arms),
        pairs=tuple(Pair(0, index + 1) for index in range(len(arms))),
        protocol=protocol or Protocol(),
    )


def arms_that_ran(job: Job, failures: Sequence[Failure]) -> tuple[int, ...]:
    """The arms of a job that have results."""
    failed = {failure.arm for failure in failures}
    return tuple(arm for arm in range(len(job.arms)) if not {arm, None} & failed)


def an_outcome(
    job: Job,
    *,
    speedups: Sequence[float] = (1.5,),
    pairs: int = 40,
    noise: float = 0.01,
    seed: int = 0,
    ended_at: float = 1_790_000_000.0,
    failures: Sequence[Failure] = (),
    flags: Sequence[str] = (),
    environment: Environment = CPU,
    host: str = "here",
) -> Outcome:
    """What a worker would report of `job` had its arms these true speed-ups over the first one;
    failed arms have no samples.
    """
    random = np.random.default_rng(seed)
    ran = arms_that_ran(job, failures)
    true = np.array([0.010, *(0.010 / speedup for speedup in speedups)])[list(ran)]
    seconds = true * np.exp(noise * random.standard_normal((pairs, len(ran))))
    tokens = prod(side // 16 for side in image_shape(job.condition.pixels))
    return Outcome(
        job=job,
        environment=environment,
        host=host,
        started_at=ended_at - 10,
        ended_at=ended_at,
        arms=tuple(
            ArmOutcome(
                arm=index,
                gmacs=tokens / (100 if index == 0 else 150),
                gmacs_overhead=0.0 if index == 0 else 0.001,
                parameters=5_717_416,
                trainable_parameters=5_717_416,
                batch=1,
                tokens=tokens,
                tokens_final=tokens + 1,
                trace=(BlockTokens(tokens + 1, tokens + 1),),
                threads=2,
                metrics=(MetricValue(name="rss_before", value=512.0 + index, unit="MiB"),),
            )
            for index in ran
        ),
        failures=tuple(failures),
        samples=Samples(
            arms=ran,
            seconds=tuple(map(tuple, seconds.tolist())),
            order=tuple(tuple(random.permutation(len(ran)).tolist()) for _ in range(pairs)),
            inner=(1,) * len(ran),
            stopped="half_width",
        )
        if ran
        else None,
        system_metrics={"load": 0.5},
        flags=tuple(flags),
        commit="0123abc",
    )


def in_visits(
    job: Job, visits: int = 6, *, seed: int = 0, ended_at: float = 1_790_000_000.0, **more: Any
) -> list[Outcome]:
    """What a worker would report of so many visits to `job` in one run; `more` as for
    `an_outcome`.
    """
    protocol = job.protocol.model_copy(update={"passes": visits})
    turns = [job.model_copy(update={"protocol": protocol, "round": turn}) for turn in range(visits)]
    return [
        an_outcome(one, seed=seed * visits + turn, ended_at=ended_at + turn, **more)
        for turn, one in enumerate(turns)
    ]


def pooled(outcomes: Sequence[Outcome], arm: int = 1, floor: Spread = FLOOR) -> SpeedUp:
    """The speed-up of an arm over the first one by the statistics, from raw samples of attempts,
    oldest first.
    """
    visits = []
    for outcome in outcomes:
        assert outcome.samples is not None
        seconds, columns = np.asarray(outcome.samples.seconds), np.asarray(outcome.samples.arms)
        visits.append(Visit(seconds[:, columns == 0], seconds[:, columns == arm]))
    return pool_visits(visits, [outcome.job.round for outcome in outcomes], floor).speedup


def with_samples(outcome: Outcome, **fields: Any) -> Outcome:
    """The outcome with other fields of its samples, which are not checked."""
    assert outcome.samples is not None
    return outcome.model_copy(update={"samples": outcome.samples.model_copy(update=fields)})


def seconds_of(outcome: Outcome) -> NDArray[np.float64]:
    """The times of an outcome, of shape [rounds, columns]."""
    assert outcome.samples is not None
    return np.array(outcome.samples.seconds)


def with_seconds(outcome: Outcome, seconds: NDArray[np.float64]) -> Outcome:
    return with_samples(outcome, seconds=tuple(map(tuple, seconds.tolist())))


def with_arms(outcome: Outcome, *fields: Mapping[str, Any]) -> Outcome:
    """The outcome with other fields of its arms, in their order."""
    arms = zip(outcome.arms, fields, strict=True)
    return outcome.model_copy(
        update={"arms": tuple(arm.model_copy(update=dict(own)) for arm, own in arms)}
    )


def two_slots(outcome: Outcome, **more: Any) -> Outcome:
    """The outcome of a dense and one other arm, had every round timed the dense one a second time,
    4 % slower than the first.
    """
    seconds = tuple((first, arm, 1.04 * first) for first, arm in seconds_of(outcome).tolist())
    slots = {"arms": (0, 1, 0), "seconds": seconds, "inner": (1, 1, 1), **more}
    slots["order"] = ((2, 0, 1),) * len(seconds)
    samples = Samples.model_validate({**dict(outcome.samples or ()), **slots})
    return outcome.model_copy(update={"samples": samples})


def an_evaluation(
    job: Job,
    *,
    images: int = 1000,
    losses: Sequence[float] = (0.05,),
    seed: int = 0,
    ended_at: float = 1_790_000_000.0,
    failures: Sequence[Failure] = (),
    flags: Sequence[str] = (),
    unreadable: Sequence[str] = (),
) -> Outcome:
    """What a worker would report of an accuracy job did its arms lose these shares of images."""
    random = np.random.default_rng(seed)
    ran = arms_that_ran(job, failures)
    base = random.random(images) < 0.9
    ranks = [np.where(base, 0, random.integers(1, 10, images))]
    ranks += [np.where(random.random(images) < loss, 3, ranks[0]) for loss in losses]
    margins = [np.where(rank == 0, 4.0, -2.0) + random.normal(0, 1, images) for rank in ranks]
    evaluation = Predictions(
        images=images,
        classes=10,
        labels=pack(np.zeros(images), "i2"),
        listing="ab",
        unreadable=tuple(unreadable),
        arms=tuple(
            ArmImages(
                arm=arm,
                predicted=pack(ranks[arm], "i2"),
                rank=pack(ranks[arm], "i2"),
                margin=pack(margins[arm], "f4"),
            )
            for arm in ran
        ),
        pairs=tuple(
            PairImages(
                baseline=pair.baseline, arm=pair.arm, kl=pack(random.lognormal(-3, 1, images), "f4")
            )
            for pair in job.pairs
            if {*pair} <= {*ran}
        ),
    )
    timed = an_outcome(
        job,
        speedups=(1.0,) * (len(job.arms) - 1),
        ended_at=ended_at,
        failures=failures,
        flags=flags,
    )
    return timed.model_copy(update={"samples": None, "predictions": evaluation if ran else None})


def keep(engine: Engine, outcome: Outcome) -> bool:
    """Record an outcome that no queued job requested."""
    return record(engine, None, None, outcome)


def keep_curve(
    engine: Engine, speedups: Mapping[Any, float], name: str = "sweep", **more: Any
) -> list[Job]:
    """Submit a sweep of one arm at several sizes, and record it with these true speed-ups."""
    jobs = [a_job(size) for size in speedups]
    submit(engine, jobs, name)
    for job, truth in zip(jobs, speedups.values(), strict=True):
        keep(engine, an_outcome(job, speedups=(truth,), **more))
    return jobs


def table(engine: Engine, sql: str, **of: Any) -> list[tuple[Any, ...]]:
    """The rows of a query as tuples."""
    return [tuple(row.values()) for row in rows(engine, sql, **of)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "breakeven.db"


@pytest.fixture(scope="session")
def empty_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty store; copying it is quicker than creating it again."""
    path = tmp_path_factory.mktemp("store") / "empty.db"
    connect(str(path)).dispose()
    return path


@pytest.fixture
def engine(path: Path, empty_store: Path) -> Iterator[Engine]:
    """An empty store in a file of its own."""
    shutil.copy(empty_store, path)
    engine = connect(str(path))
    yield engine
    engine.dispose()


def a_sweep(name: str = "sweep", text: str = "text", **settings: Any) -> NewSweep:
    return NewSweep(name, text, "Does it pay?", settings)


def submit(
    engine: Engine,
    jobs: Iterable[Job],
    name: str = "sweep",
    text: str = "text",
    *,
    since: int | None = None,
    settings: Mapping[str, Any] | None = None,
) -> int:
    """A sweep that requests the comparisons of jobs, which are queued. Returns its row."""
    jobs = list(jobs)
    return submit_sweep(engine, a_sweep(name, text, **settings or {}), jobs, jobs, since)


def states(engine: Engine) -> list[str]:
    with engine.connect() as connection:
        return list(connection.execute(text("SELECT state FROM job ORDER BY id")).scalars())


def stored_curve(engine: Engine, axis: str, x: Callable[[dict[str, Any]], float]) -> Curve:
    """The points of the view `speedup`, all of one curve, where `x` finds their place."""
    joined = "speedup AS s JOIN effect_row AS e USING (comparison_id, environment, host, metric)"
    points = [
        Point(
            x=x(row),
            speedup=row["speedup"],
            low=row["speedup_low"],
            high=row["speedup_high"],
            se=row["effect_se"],
            verdict=row["verdict"],
            pairs=row["pairs"],
            gmacs_baseline=row["gmacs_baseline"],
            gmacs=row["gmacs_total"],
        )
        for row in rows(engine, f"SELECT s.*, e.effect_se FROM {joined}")
    ]
    return Curve(axis=axis, points=tuple(points))


def queued(engine: Engine, *priorities: int) -> list[int]:
    """The numbers of new submissions of these priorities, called `sweep 0`, `sweep 1` …"""
    return [
        submissions.submit_to_queue(
            engine, f"sweep {place}", "text", ["--refine"], priority=priority, by="me@here"
        )
        for place, priority in enumerate(priorities)
    ]


def check_order_of_submissions(engine: Engine) -> None:
    """The most urgent first, of equal ones the oldest; each is taken once."""
    low, high, first, second = queued(engine, -1, 7, 0, 0)
    taken = [submissions.take_next(engine) for _ in range(5)]
    assert [each and each.id for each in taken] == [high, first, second, low, None]
    assert {each.state for each in submissions.submissions(engine)} == {"running"}
    assert taken[0] is not None
    assert taken[0].options == ("--refine",)
