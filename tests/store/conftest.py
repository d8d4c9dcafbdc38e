"""A real SQLite store for each test, and outcomes as a worker would hand them back, made from simulated timings."""

import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import Engine

from store.connection import connect
from sweeps.job import Arm, Condition, Job, Pair, Protocol, Step
from sweeps.method import BlockTokens
from sweeps.outcome import ArmOutcome, Environment, Failure, Metric, Outcome, Samples

MakeJob = Callable[..., Job]
MakeOutcome = Callable[..., Outcome]

CPU = Environment(device="cpu", device_name="Imaginary CPU", facts={"cores": "2", "torch": "2.0"})


def a_job(image_size: int = 224, keep_rates: Sequence[float] = (0.5,), protocol: Protocol | None = None, version: int = 1) -> Job:
    """A block of dense and one topk arm for each keep rate."""
    arms = [
        Arm(stack=(Step(method="topk", params={"keep_rate": rate, "layers": [3, 6, 9]}, version=version),)) for rate in keep_rates
    ]
    return Job(
        condition=Condition(model="deit_tiny_patch16_224", image_size=image_size),
        arms=(Arm(), *arms),
        pairs=tuple(Pair(0, index + 1) for index in range(len(arms))),
        protocol=protocol or Protocol(),
    )


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
) -> Outcome:
    """What a worker would say of `job` had its arms these true speed-ups over the first one; failed arms have no samples."""
    random = np.random.default_rng(seed)
    failed = {failure.arm for failure in failures}
    ran = () if None in failed else tuple(index for index in range(len(job.arms)) if index not in failed)
    true = np.array([0.010, *(0.010 / speedup for speedup in speedups)])[list(ran)]
    seconds = true * np.exp(noise * random.standard_normal((pairs, len(ran))))
    tokens = (job.condition.image_size // 16) ** 2
    return Outcome(
        job=job,
        environment=environment,
        host="here",
        started_at=ended_at - 10,
        ended_at=ended_at,
        arms=tuple(
            ArmOutcome(
                arm=index,
                gmacs=tokens / (100 if index == 0 else 150),
                gmacs_method=0.0 if index == 0 else 0.001,
                parameters=5_717_416,
                trainable_parameters=5_717_416,
                batch=1,
                tokens=tokens,
                tokens_final=tokens + 1,
                trace=(BlockTokens(tokens + 1, tokens + 1),),
                threads=2,
                metrics=(Metric(name="peak_rss", value=512.0 + index, unit="MiB"),),
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
        readings={"load": 0.5},
        flags=tuple(flags),
        commit="0123abc",
    )


@pytest.fixture
def make_job() -> MakeJob:
    return a_job


@pytest.fixture
def make_outcome() -> MakeOutcome:
    return an_outcome


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
