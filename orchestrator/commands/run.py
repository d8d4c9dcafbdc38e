"""Commands that read a sweep file: run it or plan it."""

import json
import shlex
from collections.abc import Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import typer

from orchestrator.loop.outcome_lines import job_label
from orchestrator.loop.time_budget import limit_s_of, limit_text, whole_limit_s
from orchestrator.plan import planning
from orchestrator.plan.estimate import job_seconds
from orchestrator.plan.planning import Plan, make_plan, require_feasible
from orchestrator.plan.preview import preview
from orchestrator.plan.sites import Site, by_device, local_sites, places_of
from orchestrator.plan.sweep_source import command_options, existing_store, find_source
from store.open.engine import Engine, connect
from store.read.answers import Doubt, doubted
from store.write import queue
from sweeps.language.expand import Expansion
from sweeps.model.condition import Device
from sweeps.model.job import Job
from sweeps.number_format import count, duration
from workers.methods.arm_labels import arm_label

if TYPE_CHECKING:
    from rich.console import Console

    from orchestrator.cluster.cluster import Cluster

MAX_SKIPPED = 6
"""Jobs that are named at the end of a run that did not measure them."""
ANSWERED, UNANSWERED, INTERRUPTED = 0, 1, 130
"""Exit codes."""

Again = Literal["all"] | Doubt
"""Comparisons to be measured although they are answered: all of a sweep, or those whose answers may
be doubted."""


def run_sweep(
    file: Path,
    *,
    db: str | None,
    ray_address: str | None,
    device: Device | None,
    again: Again | None = None,
    more: bool = False,
    time_s: float | None = None,
    wait_s: float = inf,
) -> int:
    """Measure what is left of the sweep, and what is requested `again`, and print its report.
    Returns the exit code.

    more: add pairs to what is unclear or insufficient. time_s: measure for that long at most, in
    place of the sweep's `budget`. wait_s: wait for hosts and jobs that other runs have for that
    long at most.
    """
    from orchestrator.loop.progress import Display
    from orchestrator.loop.refinement import Refinement
    from orchestrator.loop.run_loop import run_plan
    from orchestrator.loop.time_budget import TimeBudget
    from orchestrator.terminal import output

    console = output()
    source = find_source(file, db)
    # a wrong file is refused before anything is started
    planning.load_sweep(source.path, text=source.text, auto=device or "cpu")
    with ExitStack() as stack:
        started: list[Cluster] = [stack.enter_context(_cluster(ray_address))] if ray_address else []

        def cluster() -> "Cluster":
            if not started:
                started.append(stack.enter_context(_cluster(None)))
            return started[0]

        sites: Collection[Site] = cluster().nodes() if ray_address else local_sites()
        load = partial(
            planning.load_sweep,
            source.path,
            text=source.text,
            auto=device or planning.preferred(by_device(sites)),
        )
        expansion = load()
        requested = _comparison_ids(expansion)  # sizes that `--refine` adds owe no answer
        _warn(preview(expansion).warnings)
        require_feasible(expansion, sites)
        engine = connect(db)
        # the last connection that is closed writes SQLite's log into the file itself
        stack.callback(engine.dispose)
        limit_s = limit_s_of(expansion, engine, sites, more=more, time_s=time_s)
        finer = load(between=True) if more else None
        refinement = Refinement(expansion, engine, finer) if limit_s is not None else None
        if refinement is not None:
            expansion = refinement.requested(whole_limit_s(expansion, time_s) or inf)
        repeated = _repeated(expansion, engine, sites, again)
        plan = make_plan(expansion, engine, sites, again=repeated)
        console.print(planning.describe_plan(plan, stale=plan.stale(engine)), markup=False)
        if refinement is not None and limit_s is not None:
            console.print(
                "\n".join(filter(None, (refinement.described(), limit_text(limit_s)))),
                highlight=False,
            )
        sweep = planning.submit_plan(engine, plan)

        interrupted = taken = False
        if plan.jobs or refinement is not None:
            time_budget = TimeBudget(limit_s or 0.0) if refinement else None
            try:
                with Display(console) as display:
                    plan, interrupted, taken = run_plan(
                        engine,
                        plan,
                        cluster,
                        display,
                        repeated,
                        time_budget=time_budget,
                        refinement=refinement,
                        wait_s=wait_s,
                    )
            except Exception:
                if not started or started[0].nodes():
                    raise
                _show_stop(console, engine, sweep, "the last node was lost,", "red")
                return UNANSWERED
        if interrupted:
            _show_stop(console, engine, sweep, "stopped")
            return INTERRUPTED
        if taken:
            _show_stop(
                console,
                engine,
                sweep,
                "another run has the host or the jobs, and this one waits no longer:",
            )
    sweep_text = f"{shlex.quote(str(file))}{command_options(db, device, ray_address)}"
    _show_report(console, db, expansion.sweep.name, sweep_text)  # `conclude_run` prints the rest
    with _disposed(engine):
        return conclude_run(console, engine, plan, sweep_text, requested if more else None)


@contextmanager
def _disposed(engine: Engine) -> Iterator[None]:
    """Closes the engine's connections afterwards."""
    try:
        yield
    finally:
        engine.dispose()


def _show_report(console: "Console", db: str | None, name: str, sweep_text: str) -> None:
    from orchestrator.report.data import load_report
    from orchestrator.report.next_steps import flag_steps
    from orchestrator.report.render import render_table

    console.print()
    report = load_report(db, name)
    console.print(render_table(report, flag_steps(report, sweep_text)))


def _show_stop(
    console: "Console", engine: Engine, sweep: int, why: str, style: str = "yellow"
) -> None:
    left = count(queue.progress(engine, sweep).unfinished, "job")
    console.print(f"{why} with {left} left; the same command goes on from here", style=style)


def _repeated(
    expansion: Expansion, engine: Engine, sites: Collection[Site], again: Again | None
) -> set[str]:
    """The comparisons that are measured `again`."""
    if again is None:
        return set()
    ids = _comparison_ids(expansion)
    return ids if again == "all" else ids & _doubted(engine, sites, again)


def _comparison_ids(of: Expansion | Plan) -> set[str]:
    return {comparison_id for job in of.jobs for comparison_id in job.comparison_ids()}


def _doubted(engine: Engine, sites: Collection[Site], doubt: Doubt) -> set[str]:
    return doubted(
        engine,
        doubt,
        [found.environment_id for site in sites for found in site.environments.values()],
    )


def _cluster(address: str | None, *, err: bool = False) -> "Cluster":
    """Start Ray or join a cluster; `err`: what happens there is printed on stderr."""
    from orchestrator.cluster.cluster import Cluster  # Ray takes a second to import

    typer.secho(
        f"connecting to Ray at {address} …" if address else "starting Ray …", dim=True, err=err
    )
    return Cluster.start(address, notify=lambda line: typer.secho(line, fg="yellow", err=err))


def conclude_run(
    console: "Console",
    engine: Engine,
    plan: Plan,
    sweep: str,
    requested: Collection[str] | None = None,
) -> int:
    """Print what is not answered and why, and which answers are unclear. Returns the exit code.

    `sweep` is what follows `breakeven run` in the commands that are printed. Of `requested`
    comparisons alone an answer is expected, by default of all that are planned.
    """
    command, left = f"breakeven run {sweep}", _comparison_ids(plan)
    if requested is not None:
        left &= set(requested)
    # a limit of the sweep may be used up
    again = command if whole_limit_s(plan.expansion) is None else f"{command} --refine"

    def show(comparisons: Collection[str], text: str, style: str = "red") -> None:
        if comparisons:
            verb = "is" if len(comparisons) == 1 else "are"
            console.print(f"{count(len(comparisons), 'comparison')} {verb} {text}", style=style)

    unclear = (
        _comparison_ids(plan.expansion) & _doubted(engine, plan.sites, "unclear")
    ) - plan.insufficient.keys()
    show(unclear, f"answered, but unclear; this adds pairs to them: {command} --refine", "yellow")
    short, failed = (
        left & plan.insufficient.keys(),
        (left & plan.errors.keys()) - plan.insufficient.keys(),
    )
    fewest = min((plan.insufficient[comparison_id] for comparison_id in short), default=0)
    show(
        short,
        "insufficient: time was up before the pairs that `pairs: min` requires (as few as"
        f" {fewest}); a larger `budget` of these jobs in the sweep gives more at once; this adds"
        f" pairs to them: {again}",
    )
    slowed = (left & plan.quarantined.keys()) - short - failed
    by = sorted({flag for comparison_id in slowed for flag in plan.quarantined[comparison_id]})
    show(
        slowed,
        f"quarantined: measured only while the machine was slowed ({', '.join(by)}), so that there"
        f" is no verdict; when that is over, this measures them again: {command}",
    )
    why = plan.errors[min(failed)] if failed else ""
    show(failed, f"not answered: failed with an error ({why}); this tries again: {again}")
    rest = left - short - failed - slowed
    show(rest, f"not answered; this measures them: {again}")
    skipped = [skipped_line(job) for job in plan.jobs if not rest.isdisjoint(job.comparison_ids())]
    for line in skipped[:MAX_SKIPPED]:
        console.print(f"  {line}", style="red", markup=False, highlight=False)
    if len(skipped) > MAX_SKIPPED:
        console.print(f"  and {count(len(skipped) - MAX_SKIPPED, 'more job')}", style="red")
    return UNANSWERED if left else ANSWERED


def skipped_line(job: Job) -> str:
    """A job that was not measured: its condition and arms, and how long it may take."""
    arms = ", ".join(arm_label(job.arms[pair.arm]) for pair in job.pairs)
    runtime = f", {job.condition.runtime}" if job.compiled else ""
    return f"{job_label(job)}{runtime}: {arms}; takes at most {duration(job_seconds(job))}"


def show_plan(
    file: Path,
    *,
    db: str | None,
    jobs: Path | None,
    form: Literal["table", "json"],
    device: Device | None,
    ray_address: str | None = None,
) -> None:
    """Print what a run would do, here or on a cluster; write the jobs that are left as JSON if a
    folder is given.
    """
    sites: Collection[Site]
    if ray_address is None:
        sites = local_sites()
    else:
        with _cluster(ray_address, err=True) as cluster:
            sites = cluster.nodes()
    source = find_source(file, db)
    load = partial(
        planning.load_sweep,
        source.path,
        text=source.text,
        auto=device or planning.preferred(by_device(sites)),
    )
    expansion = load()
    require_feasible(expansion, sites, devices=False)
    engine, searched = existing_store(db), ""
    limit_s, grid = whole_limit_s(expansion), expansion.sweep.search is None
    if limit_s is not None or (
        engine is not None and grid and "image_size" in expansion.sweep.axes
    ):
        from orchestrator.loop.refinement import Refinement

        refinement = Refinement(expansion, engine, load(between=True))
        expansion = refinement.requested(inf if limit_s is None else limit_s)
        searched = refinement.described() or refinement.added(places_of(sites))
    plan, shown = make_plan(expansion, engine, sites), preview(expansion)
    stale = {} if engine is None else plan.stale(engine)
    if form == "json":
        typer.echo(json.dumps(planning.plan_as_dict(plan, shown, stale), indent=1))
    else:
        typer.echo("\n".join(filter(None, (planning.describe_plan(plan, shown, stale), searched))))
    _warn(shown.warnings)
    if jobs is not None:
        paths = planning.write_jobs(plan.jobs, jobs)
        how = f"python -m workers.run {shlex.quote(str(jobs))} --out outcomes"
        typer.echo(f"{len(paths)} job files in {jobs}; run them with: {how}", err=form == "json")


def _warn(warnings: Iterable[str]) -> None:
    for warning in warnings:
        typer.echo(f"warning: {warning}", err=True)
