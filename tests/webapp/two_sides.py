"""A store with two sweeps, environments, revisions and days, whose sides differ as stated here."""

import random
from pathlib import Path

from store.open.engine import connect
from store.write.record import record_imported
from store.write.submission import NewSweep, submit_sweep
from sweeps.model.job import Job
from sweeps.model.outcome import Environment, Outcome
from tests.webapp.simulated import ENVIRONMENT, job, outcome

DAY = 86_400.0
OTHER = Environment(
    device="cpu", device_name="Simulated CPU", facts={"cores": "2", "torch": "2.15"}
)
SLOWED, FACTOR = 2, 1.3
"""In the other environment the arm of this index takes this many times as long: topk
keep_rate=0.7."""


def two_sides_store(path: Path) -> str:
    """Sweep `first` in two revisions, measured in both environments on two days, and sweep `half`
    in bfloat16.
    """
    jobs = [job(size) for size in (64, 96)]
    half = [
        job(size).model_copy(
            update={"condition": job(size).condition.model_copy(update={"dtype": "bfloat16"})}
        )
        for size in (64, 96)
    ]
    engine = connect(str(path))
    for name, text, own in (
        ("first", "name: first", jobs),
        ("first", "name: first # again", jobs),
        ("half", "name: half", half),
    ):
        requested = [
            (comparison, each.content_hashes) for each in own for comparison in each.comparisons()
        ]
        submit_sweep(engine, NewSweep(name, text, "Does it pay?"), requested, [])
    sides = ((jobs, ENVIRONMENT, 0.0), (jobs, OTHER, DAY), (half, ENVIRONMENT, DAY + 100))
    record_imported(
        engine,
        [
            measured(each, side, environment, later)
            for side, (own, environment, later) in enumerate(sides)
            for each in own
        ],
    )
    engine.dispose()
    return str(path)


def measured(requested: Job, side: int, environment: Environment, later: float) -> Outcome:
    found = outcome(requested)
    assert found.samples is not None
    dice = random.Random(f"{side} {requested.job_id}")  # simulated noise, the same at each run
    factors = [
        FACTOR if environment == OTHER and arm == SLOWED else 1.0 for arm in found.samples.arms
    ]
    seconds = tuple(
        tuple(
            time * factor * dice.gauss(1, 0.005) for time, factor in zip(line, factors, strict=True)
        )
        for line in found.samples.seconds
    )
    times = {"started_at": found.started_at + later, "ended_at": found.ended_at + later}
    changed = {"environment": environment, "process": f"{side} {requested.job_id}", **times}
    return found.model_copy(
        update={**changed, "samples": found.samples.model_copy(update={"seconds": seconds})}
    )
