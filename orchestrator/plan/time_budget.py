"""Time budget: how long jobs take at most, the time that a run may measure, which jobs fit into it,
and a first pass that leaves some of it.
"""

import functools
import math
import time
from collections.abc import Collection, Iterable, Mapping

from orchestrator.plan.sites import Site, environment_ids
from store.open.engine import Engine
from store.read.current_effects import first_run_s, measured_s
from sweeps.analysis.job_estimate import (
    GMACS_PER_SECOND,
    START_SECONDS,
    compiling_seconds,
    estimated_seconds,
    llm_geometry,
)
from sweeps.language.expand import Expansion
from sweeps.model.condition import Device
from sweeps.model.job import Job, Step
from sweeps.model.kinds import KINDS
from sweeps.number_format import duration
from workers.measure.counters import energy_problem
from workers.methods import all_methods

TRAINING_SECONDS: Mapping[str, float] = {"tiny_lm": 480.0}
"""What training a model on demand may take; counted once for each model, since whether it is cached
is not checked here."""
OTHER_TRAINING_SECONDS = 150.0
MAKING_SECONDS = 10.0
"""What a method computes from a text and caches (rotations, thresholds, a vocabulary), besides the
passes of the model over it."""


def comparison_ids(jobs: Iterable[Job]) -> set[str]:
    """The comparisons of some jobs."""
    return {comparison_id for job in jobs for comparison_id in job.comparison_ids()}


def upper_bound_seconds(
    jobs: Iterable[Job], gmacs_per_second: Mapping[Device, float] | None = None
) -> float:
    """Upper estimate in seconds, one job after the other; what is made once and kept counts as not
    there yet. `gmacs_per_second` holds measured rates, see `job_seconds`.
    """
    rates = gmacs_per_second or {}
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
        if step.method in all_methods()  # of a file that is not installed
    }
    seconds = (job_seconds(job, rates.get(job.condition.device)) for job in jobs)
    return START_SECONDS + math.fsum(seconds) + training + math.fsum(made.values())


def job_seconds(job: Job, gmacs_per_second: float | None = None) -> float:
    """Upper estimate for one job on nodes like this machine, where the unmodified model reaches so
    many GMACs per second (default: a stated rate, see `sweeps.analysis.job_estimate`).
    """
    return estimated_seconds(job, energy=_reads_energy(), gmacs_per_second=gmacs_per_second)


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


PASS_SHARE = 0.6
"""Of a limited time, what the first pass may take at most; the rest is spent where it buys most."""
MIN_SHARE = 0.1
"""Of a job's `budget` that is left to it at least, however many jobs there are."""


class TimeBudget:
    """Wall time for measuring in seconds, from the first dispatch on; without a limit everything
    fits.
    """

    def __init__(self, limit_s: float = math.inf) -> None:
        self.limit_s = limit_s
        self.starts = 0
        """Jobs that were started."""
        self._began: float | None = None
        self._running: dict[Job, float] = {}
        self._took_s, self._estimated_s = 0.0, START_SECONDS  # the first job waits for its worker

    def begin(self) -> None:
        """Let the time run, unless it does."""
        if self._began is None:
            self._began = time.monotonic()

    @property
    def left_s(self) -> float:
        return self.limit_s - (0.0 if self._began is None else time.monotonic() - self._began)

    def admits(self, job: Job) -> bool:
        """Whether the job ends in time, if it takes as long as those before did by the same
        estimate.
        """
        return self._expected_s(job) <= self.left_s

    def fitted(self, job: Job) -> Job:
        """The job with so much less `budget` that it ends in time, if it would not and may be
        shortened so far.
        """
        over_s = self._expected_s(job) - self.left_s
        if over_s <= 0 or not KINDS[job.kind].timed or job.protocol.passes > 1:
            return job
        budget_s = job.protocol.budget_s
        return _with_budget(job, max(MIN_SHARE * budget_s, budget_s - over_s / self._share))

    def _expected_s(self, job: Job) -> float:
        """What compiling takes at most is an estimate of its own, which slow jobs before do not
        raise.
        """
        compiling_s = compiling_seconds(job)
        return self._share * (job_seconds(job) - compiling_s) + min(1.0, self._share) * compiling_s

    @property
    def _share(self) -> float:
        return self._took_s / self._estimated_s if self._took_s else 1.0

    def start(self, job: Job) -> None:
        self.starts += 1
        self._running[job] = time.monotonic()

    def end(self, job: Job) -> None:
        """`job` was answered; its time counts for the estimate of others."""
        if (began := self._running.pop(job, None)) is not None:
            self._took_s += time.monotonic() - began
            self._estimated_s += job_seconds(job)


def shortened(jobs: Collection[Job], limit_s: float) -> tuple[Job, ...]:
    """The jobs with so much less `budget` that one pass of all takes `PASS_SHARE` of `limit_s`, if
    it would take longer.

    Jobs in several passes stay as they are: whatever time there is makes a whole curve, with fewer
    passes. What no shorter `budget` can save, such as compiling, takes half of that at most: else
    it would leave no time to measure. Depends on the jobs and the limit alone, so that an
    interrupted pass goes on under the same protocol.
    """
    timed = [job for job in jobs if KINDS[job.kind].timed and job.protocol.passes == 1]
    whole, budgets = (
        math.fsum(map(job_seconds, jobs)),
        math.fsum(job.protocol.budget_s for job in timed),
    )
    if whole <= PASS_SHARE * limit_s or not budgets:
        return tuple(jobs)
    beside = min(whole - budgets, PASS_SHARE * limit_s / 2)
    share = min(1.0, max(MIN_SHARE, (PASS_SHARE * limit_s - beside) / budgets))
    return tuple(
        _with_budget(job, share * job.protocol.budget_s) if job in timed else job for job in jobs
    )


def _with_budget(job: Job, budget_s: float) -> Job:
    return job.model_copy(
        update={"protocol": job.protocol.model_copy(update={"budget_s": budget_s})}
    )


def whole_limit_s(expansion: Expansion, time_s: float | None = None) -> float | None:
    """The time that the first pass and all that follows may take: as requested here, else by the
    sweep; `None` without a limit.
    """
    sweep = expansion.sweep
    limits = [time_s] if time_s else [sweep.budget, sweep.search.budget if sweep.search else None]
    return min((limit for limit in limits if limit is not None), default=None)


def limit_s_of(
    expansion: Expansion,
    engine: Engine,
    sites: Collection[Site],
    *,
    more: bool,
    time_s: float | None,
) -> float | None:
    """How long this run may measure; `None`: as long as one pass takes.

    Of the sweep's own limit what was measured before is subtracted, unless `more` is requested:
    then the limit counts anew, and without one it is as long as the first attempts at these
    comparisons took, and enough for any job of them.
    """
    whole = whole_limit_s(expansion, time_s)
    environments = environment_ids(sites)
    if whole is not None and not more and time_s is None:
        return max(0.0, whole - measured_s(engine, expansion.sweep.name, environments) / len(sites))
    if more and whole is None:
        ids = comparison_ids(expansion.jobs)
        longest = START_SECONDS + max(map(job_seconds, expansion.jobs), default=0.0)
        return max(first_run_s(engine, ids, environments) / len(sites), longest)
    return whole


def limit_text(limit_s: float) -> str:
    if limit_s <= 0:
        return (
            "the time of the sweep is used up; `--refine`, or `--time 10m` on the command line,"
            " measures on"
        )
    return (
        f"measuring for {duration(limit_s)} at most, waits for a host that another run has included"
    )
