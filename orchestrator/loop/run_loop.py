"""Run loop: plan, submit, dispatch and wait for other runs until the plan has nothing left that can
be answered.
"""

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from functools import partial
from math import inf
from typing import Any, NamedTuple

from orchestrator.cluster.cluster import Cluster
from orchestrator.cluster.connect import ClusterError
from orchestrator.loop.dispatcher import Event, dispatch, failure_reasons
from orchestrator.loop.interruption import stop_requested
from orchestrator.loop.progress import Display
from orchestrator.loop.refinement import Refinement
from orchestrator.plan.planning import Plan, make_plan, require_feasible, submit_plan
from orchestrator.plan.sites import Site, demand_text, environment_ids, places_of
from orchestrator.plan.time_budget import TimeBudget
from store.open.engine import Engine
from store.read.answers import Round, environments_since
from store.read.runs import seconds_left
from store.rows.placement import Capacity, Place
from store.write import queue
from sweeps.language.expand import Expansion

WAIT_S = 0.5
"""How often a run that waits for other dispatchers checks the queue."""
ELSEWHERE_S = 5.0
"""How often a run that measures checks which jobs other dispatchers have, and how long the rest
takes."""
MAX_ENVIRONMENTS = 8
"""Of one host during one run: a GPU and a CPU that both change their libraries thrice."""


class RunResult(NamedTuple):
    """How a run ended."""

    plan: Plan
    """Made at the end: what it has left is not answered."""
    interrupted: bool
    taken: bool = False
    """Whether it ended because it did not wait any longer for what another run has."""


def run_plan(
    engine: Engine,
    plan: Plan,
    cluster: Callable[[], Cluster],
    display: Display,
    again: Collection[str] = (),
    *,
    time_budget: TimeBudget | None = None,
    refinement: Refinement | None = None,
    wait_s: float = inf,
) -> RunResult:
    """Measure what `plan` has left, plan again against the store, and so on until nothing is left
    that this run may try.

    A round of a comparison that came back is not tried twice by one run, whatever its result; so
    the loop ends. Jobs that another dispatcher holds are waited for, and measured here if it dies.
    `cluster` is called whenever jobs wait. `again` names comparisons to be measured although they
    are answered. After that pass comes what `refinement` chooses, one step after the other. No job
    is started that would not end within the `time_budget`. Hosts and jobs that others have are
    waited for at most `wait_s`, and no longer than the time budget lasts.
    """
    run = _Run(
        engine, cluster, display, plan.sites, time_budget or TimeBudget(), refinement, wait_s
    )
    while plan.jobs and not run.stopped and run.measure(plan):
        plan = run.planned(plan.expansion, again=again, tried=run.tried)
    expansion = plan.expansion if refinement is None else run.refine(refinement, plan.expansion)
    return RunResult(run.planned(expansion), run.interrupted, run.taken)


@dataclass
class _Run:
    """The state of `run_plan`."""

    engine: Engine
    cluster: Callable[[], Cluster]
    display: Display
    sites: Collection[Site]
    time_budget: TimeBudget
    refinement: Refinement | None
    wait_s: float
    began: float = field(default_factory=time.time)
    seen: set[str] = field(default_factory=set)
    """Environments of nodes that were there."""
    tried: dict[Place, set[Round]] = field(default_factory=dict)
    """Rounds that came back, by place."""
    failed: set[str] = field(default_factory=set)
    """Comparisons that came back without a measurement."""
    interrupted: bool = False
    taken: bool = False

    @property
    def stopped(self) -> bool:
        """Whether the run was interrupted, its time is over, or what another run has was not waited
        for any longer.
        """
        return self.interrupted or self.taken or self.time_budget.left_s <= 0

    def _may_wait(self, waited_s: float) -> bool:
        return waited_s < self.wait_s and self.time_budget.left_s > 0

    def planned(self, expansion: Expansion, **more: Any) -> Plan:
        seen = self.seen | environments_since(self.engine, expansion.sweep.name, self.began)
        return make_plan(expansion, self.engine, self.sites, seen=seen, **more)

    def measure(self, plan: Plan, repeated: Collection[str] = ()) -> bool:
        """Submit a plan and dispatch until none of its jobs waits here or is held elsewhere.

        Returns whether all could be started: what does not fit into the time is left.
        """
        self.display.expect(plan.jobs)
        sweep = submit_plan(self.engine, plan)
        tick = self._ticking(sweep)
        here = offers(self.sites, plan)
        while not self.stopped and (
            (waiting := queue.waiting(self.engine, sweep, here)) or queue.held(self.engine, sweep)
        ):
            if waiting:
                nodes, starts = self.cluster(), self.time_budget.starts
                self.time_budget.begin()
                summary = dispatch(
                    self.engine,
                    sweep,
                    nodes,
                    retry=plan.expansion.sweep.retry,
                    observer=partial(self._observe, sweep),
                    tick=tick,
                    admits=self.time_budget.admits,
                    may_wait=self._may_wait,
                    repeated=repeated,
                )
                self.interrupted = summary.interrupted
                before, self.sites = self.sites, nodes.nodes()
                # what a node answered counts after it has left
                self.seen |= environment_ids([*before, *self.sites])
                here = offers(self.sites, plan)
                if (
                    not self.stopped
                    and self.time_budget.limit_s < inf
                    and self.time_budget.starts == starts
                ):
                    return False
            else:
                self.time_budget.begin()
                self._wait_for_others(sweep, here)
        self.display.end_round()
        if not self.stopped:
            require_feasible(plan.expansion, self.sites)  # nodes may have died
        return True

    def refine(self, refinement: Refinement, expansion: Expansion) -> Expansion:
        """Measure what `refinement` chooses until it chooses nothing. Returns what is requested by
        then.
        """
        limit_s = self.time_budget.limit_s
        refinement.exhausted_ids |= self.failed
        while not self.stopped and (ids := refinement.next(places_of(self.sites), len(self.sites))):
            repeated = refinement.choose(ids)
            requested = refinement.requested()
            requested = replace(requested, jobs=tuple(map(self.time_budget.fitted, requested.jobs)))
            plan = self.planned(requested, again=ids, only=ids)
            if plan.jobs and not any(map(self.time_budget.admits, plan.jobs)):
                refinement.chosen -= ids - repeated  # a size is added when it is measured
                refinement.exhausted_ids |= ids
                continue
            before = {key for rounds in self.tried.values() for key in rounds}
            self.tried.clear()
            fits = self.measure(plan, repeated)
            back = {comparison_id for rounds in self.tried.values() for comparison_id, _ in rounds}
            refinement.exhausted_ids |= (ids & self.failed) | (
                set() if self.stopped else ids - back
            )
            self.tried.setdefault(Place("", ""), set()).update(before)
            # what does not fit into the time is neither requested nor queued
            if not fits or self.time_budget.left_s <= 0:
                refinement.chosen -= ids - repeated - back
                submit_plan(self.engine, replace(plan, wanted=()))
            expansion = refinement.requested(limit_s)
        return expansion

    def _observe(self, sweep: int, event: Event) -> None:
        here = event.node.place(event.job.condition.device)
        if event.what == "started":
            self.time_budget.start(event.job)
        self.taken |= event.what == "taken"
        if event.outcome is not None:
            self.time_budget.end(event.job)
            rounds = {(key, event.job.round) for key in event.job.comparison_ids()}
            ran = Place(event.outcome.environment.environment_id, event.outcome.host)
            for place in {ran, here}:
                self.tried.setdefault(place, set()).update(rounds)
            reasons = zip(event.job.comparison_ids(), failure_reasons(event.outcome), strict=True)
            self.failed |= {comparison_id for comparison_id, why in reasons if why}
            if sum(place.host == here.host for place in self.tried) > MAX_ENVIRONMENTS:
                raise ClusterError(
                    f"{here.host} reports a new environment again and again; is something being"
                    " installed there?"
                )
            self._show_left(sweep, starting=1)  # the node gets the next job
        self.display(event)
        if event.outcome is not None and self.refinement is not None:
            self.display.curves(list(self.refinement.lines(places_of(self.sites) | {here})))

    def _ticking(self, sweep: int) -> Callable[[], None]:
        """The tick of a dispatch, which also shows what other dispatchers have of the sweep."""
        looked = -ELSEWHERE_S

        def tick() -> None:
            nonlocal looked
            if time.monotonic() - looked >= ELSEWHERE_S:
                looked = time.monotonic()
                self.display.elsewhere(queue.held_jobs(self.engine, sweep))
                self._show_left(sweep)
            self.display.tick()

        return tick

    def _show_left(self, sweep: int, starting: int = 0) -> None:
        left_s = seconds_left(self.engine, sweep, starting=starting)
        self.display.left(
            None if left_s is None else min(left_s, max(0.0, self.time_budget.left_s))
        )

    def _wait_for_others(self, sweep: int, here: Collection[Capacity]) -> None:
        """Wait until no other dispatcher holds jobs of the sweep, or one of its jobs waits for
        us.
        """
        since = time.monotonic()
        with stop_requested() as stopped:
            while (
                not stopped()
                and (holders := queue.held(self.engine, sweep))
                and not queue.waiting(self.engine, sweep, here)
            ):
                self.display.waiting(holders)
                if not self._may_wait(time.monotonic() - since):
                    self.taken = True
                    return
                time.sleep(WAIT_S)
                queue.recover(self.engine)
            self.interrupted = stopped()


def offers(sites: Collection[Site], plan: Plan) -> list[Capacity]:
    """What the sites can run of a plan."""
    demands = {demand_text(demand): demand for demand in plan.expansion.sweep.demands}
    return [site.offer(device, demands) for site in sites for device in site.environments]
