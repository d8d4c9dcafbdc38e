"""Entries and surveys that stand in for `workers.run:run`: real functions that a real worker process calls."""

import os
import time

from sweeps.job import Job
from sweeps.outcome import ArmOutcome, Environment, Outcome, Samples
from workers.measure.environment import fingerprint


def noop(job: Job) -> Outcome:
    """An outcome of made-up timings, in no time; the process that made it stands in the readings."""
    started = time.time()
    arms = tuple(
        ArmOutcome(arm=index, gmacs=1.0, gmacs_method=0.0, parameters=1, trainable_parameters=1, batch=1, tokens=4, tokens_final=5, trace=(), threads=1)
        for index in range(len(job.arms))
    )
    columns = tuple(range(len(job.arms)))
    samples = Samples(arms=columns, seconds=((0.001,) * len(columns),) * 30, order=(columns,) * 30, inner=(1,) * len(columns), stopped="half_width")
    device = job.condition.device
    environment = survey_both()[device]
    return Outcome(
        job=job, environment=environment, host="test", started_at=started, ended_at=time.time(), arms=arms, samples=samples, readings={"pid": os.getpid()}
    )


def survey_both() -> dict[str, Environment]:
    """A node that claims to have a GPU, to try placement where there is none."""
    return {"cpu": fingerprint("cpu"), "cuda": Environment(device="cuda", device_name="a GPU for placement only")}
