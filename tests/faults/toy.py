"""`breakeven run` whose workers answer in a fraction of a second with made-up times: for campaigns
of kills, not for measuring.

`python -m tests.faults.toy run FILE --db STORE` is the real command with the real Ray, supervisors,
workers and store.
"""

import functools
import platform
import random
import sys
import time
from math import prod
from pathlib import Path

from sweeps.model.condition import image_shape
from sweeps.model.job import Job
from sweeps.model.outcome import ArmOutcome, Outcome, Samples
from workers.measure.environment import environment_of

LONGEST_S = 0.4
SEED = 64
"""Of the conditions that workers of the tests' one Ray answer by `run`."""


def run(job: Job) -> Outcome:
    """Made-up times of 40 pairs, after a tenth of a second to `LONGEST_S`; arms are as fast as the
    baseline at 64 tokens.
    """
    started_at = time.time()
    drawn = random.Random(job.job_id)
    time.sleep(drawn.uniform(0.1, LONGEST_S))
    columns = tuple(range(len(job.arms)))
    rounds = max(40, job.protocol.pairs_min)
    tokens = prod(side // 16 for side in image_shape(job.condition.pixels))
    drawn.seed(started_at)  # attempts differ, and retries too
    steepness = {"dense": 0.0, "random": 0.5}
    speedups = [(tokens / 64) ** steepness.get(arm.method, 0.05) for arm in job.arms]
    seconds = tuple(
        tuple(drawn.uniform(0.0010, 0.0011) / speedups[column] for column in columns)
        for _ in range(rounds)
    )
    return Outcome(
        job=job,
        environment=environment_of(job.condition.device),
        host=platform.node(),
        started_at=started_at,
        ended_at=time.time(),
        arms=tuple(
            ArmOutcome(
                arm=column,
                gmacs=tokens / 100,
                gmacs_overhead=0.0,
                parameters=1,
                trainable_parameters=1,
                batch=1,
                tokens=tokens,
                tokens_final=tokens + 1,
                trace=(),
                threads=1,
            )
            for column in columns
        ),
        samples=Samples(
            arms=columns,
            seconds=seconds,
            order=(columns,) * rounds,
            inner=(1,) * len(columns),
            stopped="half_width",
        ),
    )


def main() -> None:
    """The command line of Breakeven, with `run` above as what workers call."""
    import pytest

    from orchestrator.__main__ import main as command
    from orchestrator.cluster.cluster import Cluster

    root = str(Path(__file__).parents[2])
    if root not in sys.path:
        sys.path.append(root)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            Cluster, "start", functools.partial(Cluster.start, entry="tests.faults.toy:run")
        )
        command()


if __name__ == "__main__":
    main()
