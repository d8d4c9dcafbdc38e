"""Run loop: plan, submit, dispatch and wait for other runs until the plan has nothing left that can be answered."""

import time
from collections.abc import Callable, Collection
from typing import Any, NamedTuple

from orchestrator.dispatcher import Event, dispatch
from orchestrator.interruption import stop_requested
from orchestrator.planning import Plan, make_plan, require_feasible, submit_plan
from orchestrator.progress import Display
from orchestrator.ray_cluster.cluster import Cluster
from orchestrator.ray_cluster.connect import ClusterError
from orchestrator.sites import Site, demand_text
from store import queue
from store.answers import Round, environments_since
from store.engine import Engine
from store.placement import Offer, Place

WAIT_S = 0.5
"""How often a run that waits for other dispatchers checks the queue."""
ELSEWHERE_S = 5.0
"""How often a run that measures checks which jobs other dispatchers have."""
MAX_ENVIRONMENTS = 8
"""Of one host during one run: a GPU and a CPU that both change their libraries thrice."""


class RunResult(NamedTuple):
    """How a run ended."""

    plan: Plan
    """Made at the end: what it has left is not answered."""
    interrupted: bool


def run_plan(
    engine: Engine, plan: Plan, cluster: Callable[[], Cluster], display: Display, again: Collection[str] = ()
) -> RunResult:
    """Measure what `plan` has left, plan again against the store, and so on until nothing is left that this run may try.

    A round of a comparison that came back is not tried twice by one run, whatever its result; so the loop ends. Jobs that
    another dispatcher holds are waited for, and measured here if it dies. `cluster` is called whenever jobs wait. `again` names
    comparisons to be measured although they are answered.
    """
    expansion, began = plan.expansion, time.time()
    sites: Collection[Site] = plan.sites
    seen: set[str] = set()
    tried: dict[Place, set[Round]] = {}

    def observe(event: Event) -> None:
        if event.what == "answered" and event.outcome is not None:
            rounds = {(comparison_id, event.job.round) for comparison_id in event.job.comparison_ids()}
            here = event.node.place(event.job.condition.device)
            for place in {Place(event.outcome.environment.environment_id, event.outcome.host), here}:
                tried.setdefault(place, set()).update(rounds)
            if sum(place.host == here.host for place in tried) > MAX_ENVIRONMENTS:
                raise ClusterError(f"{here.host} reports a new environment again and again; is something being installed there?")
        display(event)

    def planned(**more: Any) -> Plan:
        return make_plan(expansion, engine, sites, seen=seen | environments_since(engine, expansion.sweep.name, began), **more)

    interrupted = False
    while plan.jobs and not interrupted:
        display.expect(plan.jobs)
        sweep = submit_plan(engine, plan)
        tick = _ticking(engine, sweep, display)
        while not interrupted and ((waiting := queue.waiting(engine, sweep, offers(sites, plan))) or queue.held(engine, sweep)):
            if waiting:
                nodes = cluster()
                summary = dispatch(engine, sweep, nodes, retry=expansion.sweep.retry, observer=observe, tick=tick)
                interrupted = summary.interrupted
                seen |= _environments(sites)
                sites = nodes.nodes()
                seen |= _environments(sites)
            else:
                interrupted = _wait_for_others(engine, sweep, display, offers(sites, plan))
        if not interrupted:
            require_feasible(expansion, sites)  # nodes may have died
        plan = planned(again=again, tried=tried)
    return RunResult(planned(), interrupted)


def _ticking(engine: Engine, sweep: int, display: Display) -> Callable[[], None]:
    """The tick of a dispatch, which also shows what other dispatchers have of the sweep."""
    looked = time.monotonic()
    display.elsewhere(queue.held_jobs(engine, sweep))

    def tick() -> None:
        nonlocal looked
        if time.monotonic() - looked >= ELSEWHERE_S:
            looked = time.monotonic()
            display.elsewhere(queue.held_jobs(engine, sweep))
        display.tick()

    return tick


def offers(sites: Collection[Site], plan: Plan) -> list[Offer]:
    """What the sites can run of a plan."""
    demands = {demand_text(demand): demand for demand in plan.expansion.sweep.demands}
    return [site.offer(device, demands) for site in sites for device in site.environments]


def _environments(sites: Collection[Site]) -> set[str]:
    """Those of the sites, by their ids: what a node answered counts after it has left."""
    return {found.environment_id for site in sites for found in site.environments.values()}


def _wait_for_others(engine: Engine, sweep: int, display: Display, here: Collection[Offer]) -> bool:
    """Wait until no other dispatcher holds jobs of the sweep, or one of its jobs waits for us. Returns whether to stop instead."""
    with stop_requested() as stopped:
        while not stopped() and (holders := queue.held(engine, sweep)) and not queue.waiting(engine, sweep, here):
            display.waiting(holders)
            time.sleep(WAIT_S)
            queue.recover(engine)
        return stopped()
