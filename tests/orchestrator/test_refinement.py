"""What `--refine` measures of a grid: sizes inside the brackets of its claims, on curves whose
truth is known.
"""

from collections.abc import Callable, Iterable
from itertools import count
from math import exp

from sqlalchemy import Engine

from orchestrator.loop.refinement import Refinement, tokens_of
from orchestrator.plan.planning import load_sweep, make_plan, submit_plan
from orchestrator.plan.sites import Site, places_of
from orchestrator.report.data import load_report
from orchestrator.report.render import render_markdown
from store.write.record import record
from sweeps.model.condition import Rectangle
from sweeps.model.job import Job
from sweeps.model.outcome import Outcome
from tests.fixtures.simulated_curves import between, reduced, work
from tests.fixtures.sql_rows import rows
from tests.orchestrator.conftest import Store
from tests.store.conftest import CPU, an_outcome

SITES = [Site("here", {"cpu": CPU})]
SWEEP = """\
schema: 1
name: grid
defaults: {device: cpu, model: deit_tiny_patch16_224}
axes: {image_size: [32, 64, 96, 224]}
methods: [{method: topk, keep_rate: [0.5, 0.7]}]
jobs: {latency: {}, profile: {}}
"""
WIDE = Rectangle(height=64, width=80)
Truth = Callable[[float], float]
STEEP = between((4, -2.4), (22.3, 0.0), (196, 2.4))
"""Pays from 22.3 tokens on."""
BRACKETS = """
SELECT params, x_low, x_high, points, points_missing FROM break_even
WHERE axis = 'tokens' AND metric = 'latency' ORDER BY params
"""


class Sweeping:
    """A sweep whose arms are as fast as `truths` (log speed-ups by tokens), with little noise."""

    def __init__(self, engine: Engine, text: str, *truths: Truth) -> None:
        self.engine, self.text, self.truths, self.seed = engine, text, truths, count()
        self.submit(self.refinement)

    @property
    def refinement(self) -> Refinement:
        """As `--refine` makes it anew from the store."""
        own, finer = (
            load_sweep("grid.yaml", auto="cpu", text=self.text, between=more)
            for more in (False, True)
        )
        return Refinement(own, self.engine, finer)

    def submit(self, refinement: Refinement, only: Iterable[str] | None = None) -> list[Job]:
        """Measure what is left, or these comparisons alone; the jobs of it."""
        ids = None if only is None else set(only)
        plan = make_plan(refinement.requested(), self.engine, SITES, again=ids or (), only=ids)
        submit_plan(self.engine, plan)
        for job in plan.jobs:
            if job.kind == "latency":
                record(self.engine, None, None, self.outcome(job))
        return list(plan.jobs)

    def outcome(self, job: Job) -> Outcome:
        rates = [0.5, 0.7]
        arms = [rates.index(arm.stack[0].params["keep_rate"]) for arm in job.arms[1:]]
        speedups = [exp(self.truths[arm](tokens_of(job.condition))) for arm in arms]
        seed = next(self.seed)
        at = 1e9 + seed
        outcome = an_outcome(job, speedups=speedups, pairs=200, noise=0.005, seed=seed, ended_at=at)
        macs = [work(outcome.arms[0].tokens), *(reduced(arm.tokens) for arm in outcome.arms[1:])]
        counted = [
            arm.model_copy(update={"gmacs": own, "gmacs_overhead": 0.0})
            for arm, own in zip(outcome.arms, macs, strict=True)
        ]
        return outcome.model_copy(update={"arms": tuple(counted)})

    def step(self) -> list[Job]:
        """One step of a run with `--refine`."""
        refinement = self.refinement
        if not (ids := refinement.next(places_of(SITES), 1)):
            return []
        refinement.choose(ids)
        return self.submit(refinement, ids)


def test_sizes_are_added_inside_a_bracket(store: Store) -> None:
    """A bracket of 16 to 36 tokens ends as 20 to 25: the square first, then a rectangle, for the
    arm whose bracket it is.
    """
    sweeping = Sweeping(store.engine, SWEEP, STEEP, lambda _: -0.2)
    first, never = rows(store.engine, BRACKETS)
    assert (first["x_low"], first["x_high"], never["x_low"]) == (16, 36, None)
    assert sweeping.refinement.added(places_of(SITES)).endswith(": 80 px (25 tokens)")

    steps = [sweeping.step() for _ in range(3)]

    (square,), (wide,), left = steps
    assert (square.condition.image_size, wide.condition.image_size, left) == (80, WIDE, [])
    assert {(job.kind, len(job.pairs)) for job in (square, wide)} == {("latency", 1)}
    found, never = rows(store.engine, BRACKETS)
    assert (found["x_low"], found["x_high"], found["points"], never["points"]) == (20, 25, 6, 4)
    assert found["points_missing"] == never["points_missing"] == 0
    assert sweeping.refinement.added(places_of(SITES)) == ""
    assert "GMACs are stated" not in render_markdown(load_report(str(store.path), "grid"))

    again = sweeping.refinement.requested()
    # latency and profile of two arms at four sizes, and what was added
    assert len(again.comparisons) == 2 * 4 * 2 + 2
    assert again.points == 6


def test_sizes_of_a_zip_group_stay(store: Store) -> None:
    """Where each size has its own batch nothing is added."""
    text = (
        SWEEP.replace("96, 224]", "96, 224], batch_size: [8, 4, 2, 1]")
        + "zip: [[image_size, batch_size]]\n"
    )
    assert Sweeping(store.engine, text, STEEP, STEEP).refinement.added(places_of(SITES)) == ""


def test_a_plan_counts_what_rules_take_out_of_the_grid_alone(store: Store) -> None:
    """Not of the sizes that might be added."""
    text = SWEEP + "exclude: [{method: topk, keep_rate: 0.7}]\n"
    refinement = Sweeping(store.engine, text, STEEP, STEEP).refinement
    assert refinement.finer is not None
    assert refinement.finer.excluded > 4
    for found in (refinement.expansion, refinement.requested()):
        assert (found.excluded, found.duplicates, found.points) == (4, 0, 4)
