"""Estimate: how long the jobs of a plan take at most, with what is trained and made for them."""

import functools
import math
from collections.abc import Iterable, Mapping

from sweeps.analysis.job_estimate import (
    GMACS_PER_SECOND,
    START_SECONDS,
    estimated_seconds,
    llm_geometry,
)
from sweeps.model.job import Job, Step
from workers.measure.counters import energy_problem
from workers.methods import all_methods

TRAINING_SECONDS: Mapping[str, float] = {"tiny_lm": 480.0}
"""What training a model on demand may take; counted once for each model, since whether it is cached
is not checked here."""
OTHER_TRAINING_SECONDS = 150.0
MAKING_SECONDS = 10.0
"""What a method computes from a text and caches (rotations, thresholds, a vocabulary), besides the
passes of the model over it."""


def upper_bound_seconds(jobs: Iterable[Job]) -> float:
    """Upper estimate in seconds, one job after the other; what is made once and kept counts as not
    there yet.
    """
    jobs = list(jobs)
    if not jobs:
        return 0.0
    trained = {job.condition.model for job in jobs if job.condition.weights == "trained"}
    training = math.fsum(TRAINING_SECONDS.get(model, OTHER_TRAINING_SECONDS) for model in trained)
    made = {
        (job.condition.model, job.condition.device, str(step)): _making(step, job)
        for job in jobs
        if job.condition.image_size is None  # methods of vision models make nothing
        for arm in job.arms
        for step in arm.stack
    }
    return START_SECONDS + math.fsum(map(job_seconds, jobs)) + training + math.fsum(made.values())


def job_seconds(job: Job) -> float:
    """Upper estimate for one job on nodes like this machine."""
    return estimated_seconds(job, energy=_reads_energy())


@functools.cache
def _reads_energy() -> bool:
    """Whether this machine offers the energy of its CPU, for which nodes like it measure each arm
    on its own for a while.
    """
    return not energy_problem()


def _making(step: Step, job: Job) -> float:
    """What a method makes before an arm can run with it."""
    network = llm_geometry(job.condition.model)
    params = all_methods()[step.method].Params.model_validate(step.params)
    macs = None if network is None else params.preparation_macs(network)
    return (
        0.0
        if macs is None
        else MAKING_SECONDS + macs / 1e9 / GMACS_PER_SECOND[job.condition.device]
    )
