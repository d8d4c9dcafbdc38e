"""Submission: a plan put into the store, its sweep with all comparisons and its jobs into the queue."""

from orchestrator.gc_pause import uncollected
from orchestrator.planning import Plan
from store.engine import Engine
from store.submission import NewSweep, submit_sweep


@uncollected()
def submit(engine: Engine, plan: Plan) -> int:
    """Store the sweep, link all its comparisons, and queue what is left. Returns the row of the sweep."""
    sweep = plan.expansion.sweep
    asked = [job for job in plan.expansion.jobs if job.round == 0]
    settings = {"retry": sweep.retry.model_dump(mode="json"), "limits": sweep.limits.model_dump(mode="json")}
    return submit_sweep(engine, NewSweep(sweep.name, plan.expansion.text, sweep.question, settings), asked, plan.wanted, plan.since)
