"""Sites of a cluster with two environments: plans for them, jobs that they claim, and the curves
that come of it.
"""

import platform
from collections.abc import Collection, Sequence
from typing import Any

from orchestrator.plan import planning
from orchestrator.plan.planning import Plan
from orchestrator.plan.sites import Site
from store.open.engine import Engine
from store.rows import owners
from store.write import queue
from store.write.record import record
from sweeps.language.expand import Expansion
from sweeps.language.file_schema import Sweep
from sweeps.language.yaml_reader import Document
from sweeps.model.job import Job
from sweeps.model.outcome import Environment
from tests.orchestrator import worker_entrypoints
from tests.orchestrator.conftest import Store
from tests.store.conftest import a_job, an_outcome

LIBRARIES = {
    name: Environment(device="cpu", device_name=name, facts={"torch": name})
    for name in ("old", "new")
}
SIZES = (64, 96, 128, 160)
SITES = [Site(platform.node(), {"cpu": worker_entrypoints.ENVIRONMENTS["cpu"]})]
"""This machine, with the environment that the test workers report."""
ELSEWHERE = "elsewhere:17:4711"
"""A process on another host."""


def site(host: str, environment: str = "old", **labels: str) -> Site:
    return Site(host, {"cpu": LIBRARIES[environment]}, labels)


A, B = site("a", "old", zone="here"), site("b", "new", zone="there")


def jobs(
    sizes: Sequence[int] = SIZES,
    models: Sequence[str] = ("deit_tiny_patch16_224", "deit_small_patch16_224"),
) -> list[Job]:
    """One curve for each model."""
    made = [a_job(size) for size in sizes]
    return [
        job.model_copy(update={"condition": job.condition.model_copy(update={"model": model})})
        for job in made
        for model in models
    ]


def planned(
    store: Store,
    sites: Collection[Site],
    requested: Sequence[Job] | None = None,
    resources: Any = None,
    **more: Any,
) -> Plan:
    requested = requested or jobs()
    document = Document(
        "sweep.yaml",
        "text",
        {"schema": 1, "name": "sweep", **({"resources": resources} if resources else {})},
        {},
        {},
    )
    sweep = Sweep.model_validate(document.root)
    comparisons = tuple(comparison for job in requested for comparison in job.comparisons())
    points: dict[str, Any] = {"points": len(requested), "excluded": 0, "duplicates": 0}
    expansion = Expansion(sweep, document, tuple(requested), comparisons, written={}, **points)
    return planning.make_plan(expansion, store.engine, sites, **more)


def measure(
    engine: Engine,
    sweep: int,
    at: Site,
    *,
    limit: int = 1,
    demands: Any = None,
    owner: str | None = None,
) -> int:
    """Let a site claim jobs and record their outcomes one by one; returns how many it found."""
    offer = at.offer("cpu", demands or {})
    owner = owner or owners.owner()
    for count in range(limit):
        claimed = queue.claim(engine, sweep, owner=owner, offer=offer)
        if not claimed:
            return count
        job = claimed[0].job
        speedups = (1.5,) * len(job.pairs)
        record(
            engine,
            claimed[0].row,
            owner,
            an_outcome(job, speedups=speedups, environment=at.environments["cpu"], host=at.host),
        )
    return limit


def shared_out(engine: Engine, sweep: int, sites: Sequence[Site], **more: Any) -> None:
    """Let the sites take turns until none finds a job."""
    while sum(measure(engine, sweep, each, **more) for each in sites):
        pass


def curves(store: Store) -> list[tuple[str, str, int, int]]:
    """Model, host, points and points that are missing, of each curve along tokens."""
    of_time = "axis = 'tokens' AND metric = 'latency'"
    sql = (
        f"SELECT model, host, points, points_missing FROM break_even WHERE {of_time} ORDER BY"
        " model, host"
    )
    return [
        (model.split("_")[1], *rest) for model, *rest in store.table(sql).itertuples(index=False)
    ]


def claimed_elsewhere(store: Store, jobs: Sequence[Job], silent_s: float = 0.0) -> int:
    """Submit `jobs` and let a process on another host hold the first, last heard of `silent_s` ago.
    Returns the job's row.
    """
    (held,) = queue.claim(store.engine, store.submit(jobs), owner=ELSEWHERE)
    with store.engine.begin() as connection:
        connection.exec_driver_sql(
            "UPDATE job SET renewed_at = renewed_at - ? WHERE id = ?", (silent_s, held.row)
        )
    return held.row
