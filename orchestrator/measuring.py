"""Measuring: plan, submit, dispatch and wait for others, again and again, until the plan has nothing left that can be answered."""

import time
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from orchestrator import planning
from orchestrator.cluster import Cluster
from orchestrator.dispatching import Event, dispatch
from orchestrator.interruption import stop_requested
from orchestrator.planning import Plan
from orchestrator.progress import Display
from orchestrator.submission import submit
from store import queue
from store.connection import Engine
from sweeps.job import Device
from sweeps.outcome import Environment

Environments = Mapping[Device, Collection[Environment]]
LOOK_S = 0.5
"""How often a run that waits for other dispatchers looks at the queue."""


class Measured(NamedTuple):
    """How a run ended."""

    plan: Plan
    """Made at the end: what it has left is not answered."""
    interrupted: bool


def measure(engine: Engine, plan: Plan, cluster: Callable[[], Cluster], display: Display, again: Collection[str] = ()) -> Measured:
    """Measure what `plan` has left, plan anew against the store, and so on until nothing is left that this run may try.

    A round of a comparison that came back is not tried twice by one run, whatever became of it; so the loop ends. Jobs that
    another dispatcher holds are waited for, and measured here if it dies. `cluster` is called whenever jobs wait. `again` names
    comparisons to be measured although they are answered.
    """
    expansion, environments = plan.expansion, plan.environments
    tried: set[tuple[str, int]] = set()

    def observe(event: Event) -> None:
        if event.what == "answered":
            tried.update((comparison_id, event.job.round) for comparison_id in event.job.comparison_ids())
        display(event)

    interrupted = False
    while plan.jobs and not interrupted:
        display.expect(plan.jobs)
        sweep = submit(engine, plan)
        while not interrupted and (queue.waiting(engine, sweep) or queue.held(engine, sweep)):
            if queue.waiting(engine, sweep):
                nodes = cluster()
                summary = dispatch(engine, sweep, nodes, retry=expansion.sweep.retry, observer=observe, tick=display.tick)
                interrupted = summary.interrupted
                environments = _with(environments, nodes)
            else:
                interrupted = _wait_for_others(engine, sweep, display)
        plan = planning.plan(expansion, engine, environments, again=again, tried=tried)
    return Measured(planning.plan(expansion, engine, environments), interrupted)


def _with(environments: Environments, cluster: Cluster) -> Environments:
    """The environments, and those of nodes that have joined meanwhile: what they answered counts."""
    every = {device: {each.environment_id: each for each in found} for device, found in environments.items()}
    for node in cluster.nodes():
        for device, environment in node.environments.items():
            every.setdefault(device, {})[environment.environment_id] = environment
    return {device: tuple(found.values()) for device, found in every.items()}


def _wait_for_others(engine: Engine, sweep: int, display: Display) -> bool:
    """Wait until no other dispatcher holds jobs of the sweep, or one of its jobs waits for us. Returns whether to stop instead."""
    with stop_requested() as stopped:
        while not stopped() and (holders := queue.held(engine, sweep)) and not queue.waiting(engine, sweep):
            display.waiting(holders)
            time.sleep(LOOK_S)
            queue.recover(engine)
        return stopped()
