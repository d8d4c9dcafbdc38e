"""A real store with simulated timings whose truth is known: topk comes to pay, tome does not, or
drowns in noise.
"""

import random
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median

from store.open.engine import connect
from store.rows.owners import owner
from store.write.queue import claim
from store.write.record import record
from store.write.submission import NewSweep, submit_sweep
from sweeps.model.condition import Condition
from sweeps.model.job import DENSE, Arm, Job, Pair, Step
from sweeps.model.method import BlockTokens
from sweeps.model.outcome import ArmOutcome, Environment, Failure, MetricValue, Outcome, Samples

ENVIRONMENT = Environment(device="cpu", device_name="Simulated CPU", facts={"cores": "2"})
SIZES = (32, 48, 64, 96, 128, 160, 192, 224)
QUESTION = "From how many tokens on does token reduction pay on this machine?"
ROUNDS = 40
FLAGS = {48: ("thermal_slowdown",), 64: ("contended",)}
"""Flags of the quickstart's jobs by size: of one they mark the figures as wrong, of the other as
noisy."""


def topk(keep_rate: float) -> Arm:
    return Arm(
        stack=(
            Step(
                method="topk",
                params={"keep_rate": keep_rate, "layers": [3, 6, 9], "implementation": "torch"},
            ),
        )
    )


def tome(r_ratio: float) -> Arm:
    return Arm(
        stack=(
            Step(
                method="tome",
                params={"r_ratio": r_ratio, "prop_attn": True, "implementation": "auto"},
            ),
        )
    )


RANDOM = Arm(
    stack=(Step(method="random", params={"keep_rate": 0.5, "layers": [3, 6, 9], "seed": 0}),)
)
ARMS = (DENSE, topk(0.5), topk(0.7), tome(0.02), tome(0.06), RANDOM)
SAVED = dict(zip(ARMS, (0.0, 0.42, 0.27, 0.08, 0.2, 0.43), strict=True))
"""Share of the MACs that the arm saves."""
LOST = dict(zip(ARMS, (0.0, 0.0, 0.0, 0.0, 0.18, 0.0), strict=True))
"""Share of the dense time that the arm loses again, whatever the size."""
EXTRA = dict(zip(ARMS, (0.0, 0.3e-3, 0.3e-3, 0.9e-3, 0.0, 0.1e-3), strict=True))
"""Seconds that the arm costs, whatever the size."""
NOISE = dict(zip(ARMS, (0.01, 0.01, 0.01, 0.01, 0.09, 0.01), strict=True))
"""Standard deviation of the arm's times, as a share of them."""


def job(
    size: int,
    model: str = "deit_tiny_patch16_224",
    batch_size: int = 1,
    arms: tuple[Arm, ...] = ARMS,
) -> Job:
    condition = Condition(model=model, image_size=size, batch_size=batch_size, threads=2)
    return Job(
        condition=condition, arms=arms, pairs=tuple(Pair(0, arm) for arm in range(1, len(arms)))
    )


def outcome(
    requested: Job, *, flags: tuple[str, ...] = (), failing: Mapping[Arm, Failure] | None = None
) -> Outcome:
    """What a worker would measure of `requested`: every arm's truth, drift that its rounds share,
    and noise of its own.
    """
    condition, failures = requested.condition, failing or {}
    ran = [index for index, arm in enumerate(requested.arms) if arm not in failures]
    tokens = (condition.image_size // 16) ** 2
    gmacs = 0.0055 * tokens + 4.6e-6 * tokens**2
    dice = random.Random(requested.job_id)  # simulated noise, the same at each run
    dense_s = 0.5e-3 + 17e-6 * tokens * condition.batch_size
    arms = [requested.arms[index] for index in ran]
    truth = [dense_s * (1 - SAVED[arm] + LOST[arm]) + EXTRA[arm] for arm in arms]
    rows = [[dice.gauss(1, 0.03)] * len(ran) for _ in range(ROUNDS)]
    return Outcome(
        job=requested,
        environment=ENVIRONMENT,
        host="simulated",
        started_at=1.79e9 + condition.image_size,
        ended_at=1.79e9 + condition.image_size + 0.5,
        arms=tuple(
            ArmOutcome(
                arm=index,
                gmacs=gmacs * (1 - SAVED[requested.arms[index]]),
                gmacs_overhead=0.001 * gmacs * (requested.arms[index] != DENSE),
                parameters=5_700_000,
                trainable_parameters=5_700_000,
                batch=condition.batch_size,
                tokens=tokens,
                tokens_final=1 + round(tokens * (1 - SAVED[requested.arms[index]])),
                trace=(BlockTokens(tokens + 1, tokens + 1),),
                threads=2,
            )
            for index in ran
        ),
        failures=tuple(failures.values()),
        samples=Samples(
            arms=tuple(ran),
            seconds=tuple(
                tuple(
                    s * drift * max(0.5, dice.gauss(1, NOISE[arm]))
                    for s, drift, arm in zip(truth, row, arms, strict=True)
                )
                for row in rows
            ),
            order=tuple(tuple(range(len(ran))) for _ in rows),
            inner=(1,) * len(ran),
            stopped="half_width",
        ),
        flags=flags,
    )


def store_sweep(
    url: str, name: str, jobs: list[Job], answer: Callable[[Job], Outcome | None]
) -> None:
    """Submits a sweep of these jobs and records the outcomes; `None` leaves a job waiting."""
    engine = connect(url)
    sweep = submit_sweep(engine, NewSweep(name, f"name: {name}", QUESTION), jobs, jobs)
    holder = owner()
    for queued in claim(engine, sweep, owner=holder, limit=len(jobs)):
        found = answer(queued.job)
        if found is not None:
            record(engine, queued.row, holder, found)
    engine.dispose()


def store_outcomes(path: Path, name: str, *outcomes: Outcome) -> str:
    """The path of a store with a sweep of these outcomes, which no queued job answers."""
    engine = connect(str(path))
    requested = [
        (found.job.comparison(Pair(*pair)), found.job.content_hashes)
        for found in outcomes
        for pair in found.job.pairs
    ]
    submit_sweep(engine, NewSweep(name, "text", "What does it take?"), requested, [])
    for found in outcomes:
        record(engine, None, None, found)
    engine.dispose()
    return str(path)


def quickstart_answer(requested: Job) -> Outcome | None:
    """One size is wrong by a flag, one only noisy, one arm fails at the smallest size, and one
    batch of 2 still runs.
    """
    size = requested.condition.image_size
    if requested.condition.batch_size == 2 and size == 224:
        return None
    failing = (
        {
            RANDOM: Failure(
                arm=5, reason="unsupported", message="nothing left to drop below 9 tokens"
            )
        }
        if size == 32
        else None
    )
    return outcome(requested, flags=FLAGS.get(size, ()), failing=failing)


def with_medians(found: Outcome) -> Outcome:
    """The outcome with the times of its arms as a worker states them."""
    assert found.samples is not None
    columns = zip(*found.samples.seconds, strict=True)
    metrics = [
        (MetricValue(name="latency", value=1e3 * median(column), unit="ms"),) for column in columns
    ]
    arms = tuple(
        arm.model_copy(update={"metrics": own})
        for arm, own in zip(found.arms, metrics, strict=True)
    )
    return found.model_copy(update={"arms": arms})
