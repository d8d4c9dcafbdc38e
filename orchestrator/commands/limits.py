"""Limits: how long a run may measure, by the command line, the sweep, and what was measured
before.
"""

from collections.abc import Collection

from orchestrator.plan.estimate import job_seconds
from orchestrator.plan.sites import Site
from store.open.engine import Engine
from sweeps.analysis.job_estimate import START_SECONDS
from sweeps.language.expand import Expansion
from sweeps.number_format import duration


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
    from store.read.current_effects import first_run_s, measured_s

    whole = whole_limit_s(expansion, time_s)
    environments = {found.environment_id for site in sites for found in site.environments.values()}
    if whole is not None and not more and time_s is None:
        return max(0.0, whole - measured_s(engine, expansion.sweep.name, environments) / len(sites))
    if more and whole is None:
        ids = {key for job in expansion.jobs for key in job.comparison_ids()}
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
