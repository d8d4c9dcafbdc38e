"""Commands that read a sweep file: run it or plan it."""

import json
import shlex
from collections.abc import Collection, Iterable
from contextlib import ExitStack
from functools import partial
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from orchestrator.commands.options import (
    ANSWERED,
    UNANSWERED,
    Database,
    DeviceOption,
    SweepFile,
    TableOrJson,
    parse_seconds,
)
from orchestrator.loop.interruption import INTERRUPTED
from orchestrator.plan import planning
from orchestrator.plan.planning import (
    Plan,
    SweepSource,
    command_options,
    existing_store,
    find_source,
    make_plan,
    require_feasible,
)
from orchestrator.plan.preview import preview
from orchestrator.plan.sites import (
    InfeasibleError,
    Site,
    by_device,
    environment_ids,
    local_sites,
    places_of,
)
from orchestrator.plan.time_budget import (
    TimeBudget,
    comparison_ids,
    job_seconds,
    limit_s_of,
    limit_text,
    whole_limit_s,
)
from store.open.engine import Engine, connect, connect_readonly, disposing
from store.read.answers import Doubt, doubted
from store.read.queries import find_sweep
from store.read.runs import failure_classes
from store.write import queue
from store.write.calibrations import freeze_visits
from store.write.reanalysis import reanalyse
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

Again = Literal["all"] | Doubt
"""Comparisons to be measured although they are answered: all of a sweep, or those whose answers may
be doubted."""


def run(
    file: SweepFile,
    *,
    db: Database = None,
    ray_address: Annotated[
        str | None,
        typer.Option(
            help="A running Ray cluster, such as host:6379; default: Ray on this machine."
        ),
    ] = None,
    device: DeviceOption = None,
    remeasure: Annotated[
        bool, typer.Option("--remeasure", help="Measure all comparisons again; attempts add up.")
    ] = False,
    only: Annotated[
        Literal["all", "flagged", "unclear", "failed"] | None,
        typer.Option(help="With --remeasure: only comparisons with such an answer."),
    ] = None,
    retry_flagged: Annotated[
        bool,
        typer.Option(
            "--retry-flagged",
            help="Measure quarantined and flagged answers again: --remeasure --only flagged.",
        ),
    ] = False,
    refine: Annotated[
        bool,
        typer.Option(
            "--refine",
            help=(
                "Add pairs to what is unclear or insufficient, until it is answered, precise, or"
                " time is up."
            ),
        ),
    ] = False,
    time: Annotated[
        float | None,
        typer.Option(
            parser=parse_seconds,
            metavar="DURATION",
            help=(
                "Measure for so long at most, such as 10m: one pass of everything, then what"
                " narrows unresolved curves most. "
                "Waits for a host count. Default: the sweep's `budget`; with --refine as long as"
                " its first run."
            ),
        ),
    ] = None,
    wait: Annotated[
        float | None,
        typer.Option(
            parser=parse_seconds,
            metavar="DURATION",
            help="Wait for a host that another run has for so long at most. Default: as needed.",
        ),
    ] = None,
    no_wait: Annotated[
        bool, typer.Option("--no-wait", help="Do not wait for a host that another run has.")
    ] = False,
    submission: Annotated[int | None, typer.Option(hidden=True)] = None,  # by `serve`
) -> None:
    """Measure what the sweep requests and is not answered yet, then report."""
    if only and not remeasure:
        raise typer.BadParameter(
            "needs --remeasure: without it, only what is not answered is measured",
            param_hint="--only",
        )
    if retry_flagged and remeasure:
        raise typer.BadParameter(
            "stands for --remeasure --only flagged: leave out --remeasure",
            param_hint="--retry-flagged",
        )
    if wait and no_wait:
        raise typer.BadParameter(
            "contradicts --wait: leave out one of them", param_hint="--no-wait"
        )
    again: Again | None = "flagged" if retry_flagged else None
    code = run_sweep(
        file,
        db=db,
        ray_address=ray_address,
        device=device,
        again=(only or "all") if remeasure else again,
        more=refine,
        time_s=time,
        wait_s=0.0 if no_wait else wait or inf,
        submission=submission,
    )
    raise typer.Exit(code)


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
    submission: int | None = None,
) -> int:
    """Measure what is left of the sweep, and what is requested `again`, and print its report.
    Returns the exit code.

    more: add pairs to what is unclear or insufficient. time_s: measure for that long at most, in
    place of the sweep's `budget`. wait_s: wait for hosts and jobs that other runs have for that
    long at most. submission: the number of the submission that has the sweep's text.
    """
    from orchestrator.loop.progress import Display
    from orchestrator.loop.refinement import Refinement
    from orchestrator.loop.run_loop import RunResult, run_plan
    from orchestrator.text_table import output

    console = output()
    source = find_source(file, db) if submission is None else _submitted(file, db, submission)
    source.load(auto=device or "cpu")  # a wrong file is refused before anything is started
    with ExitStack() as stack:
        started: list[Cluster] = [stack.enter_context(_cluster(ray_address))] if ray_address else []

        def cluster() -> "Cluster":
            if not started:
                started.append(stack.enter_context(_cluster(None)))
            return started[0]

        sites: Collection[Site] = cluster().nodes() if ray_address else local_sites()
        auto = device or planning.preferred(by_device(sites))
        expansion = source.load(auto=auto)
        requested = comparison_ids(expansion.jobs)  # sizes that `--refine` adds owe no answer
        require_feasible(expansion, sites)
        _warn((*preview(expansion).warnings, *planning.local_warnings(expansion, sites)))
        # the last connection that is closed writes SQLite's log into the file itself
        engine = stack.enter_context(disposing(connect(db)))
        limit_s = limit_s_of(expansion, engine, sites, more=more, time_s=time_s)
        refinement, time_budget = None, None
        if limit_s is not None:
            finer = source.load(auto=auto, between=True) if more else None
            refinement, time_budget = Refinement(expansion, engine, finer), TimeBudget(limit_s)
            expansion = refinement.requested(whole_limit_s(expansion, time_s) or inf)
        repeated = _repeated(expansion, engine, sites, again)
        left = make_plan(expansion, engine, sites, again=repeated)
        console.print(planning.describe_plan(left, stale=left.stale(engine)), markup=False)
        if refinement is not None and limit_s is not None:
            console.print(
                "\n".join(filter(None, (refinement.described(), limit_text(limit_s)))),
                highlight=False,
            )
        show_stop = partial(_show_stop, console, engine, planning.submit_plan(engine, left))
        result = RunResult(left, interrupted=False)
        if left.jobs or refinement is not None:
            try:
                with Display(console) as display:
                    result = run_plan(
                        engine,
                        left,
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
                show_stop("the last node was lost,", "red")
                return UNANSWERED
        if result.interrupted:
            show_stop("stopped")
            return INTERRUPTED
        if freeze_visits(engine, expansion.sweep.name):
            reanalyse(engine, expansion.sweep.name)
        if result.taken:
            show_stop("another run has the host or the jobs, and this one waits no longer:")
    sweep_text = f"{shlex.quote(str(file))}{command_options(db, device, ray_address)}"
    _show_report(console, db, expansion.sweep.name, sweep_text)  # `conclude_run` prints the rest
    with disposing(engine):
        return conclude_run(console, engine, result.plan, sweep_text, requested if more else None)


def _submitted(file: Path, db: str | None, submission: int) -> SweepSource:
    from store.write.submissions import find_submission

    with disposing(connect_readonly(db)) as engine:
        return SweepSource(file, find_submission(engine, submission).text)


def _show_report(console: "Console", db: str | None, name: str, sweep_text: str) -> None:
    from orchestrator.report.answers import flag_steps
    from orchestrator.report.data import load_report
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
    ids = comparison_ids(expansion.jobs)
    return ids if again == "all" else ids & _doubted(engine, sites, again)


def _doubted(engine: Engine, sites: Collection[Site], doubt: Doubt) -> set[str]:
    return doubted(engine, doubt, environment_ids(sites))


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
    command, left = f"breakeven run {sweep}", plan.left_ids
    if requested is not None:
        left &= set(requested)
    # a limit of the sweep may be used up
    again = command if whole_limit_s(plan.expansion) is None else f"{command} --refine"
    unclear = comparison_ids(plan.expansion.jobs) & _doubted(engine, plan.sites, "unclear")
    short = left & plan.insufficient.keys()
    failed = (left & plan.errors.keys()) - short
    slowed = (left & plan.quarantined.keys()) - short - failed
    rest = left - short - failed - slowed
    fewest = min((plan.insufficient[key] for key in short), default=0)
    flags = ", ".join(sorted({flag for key in slowed for flag in plan.quarantined[key]}))
    why = plan.errors[min(failed)] if failed else ""
    row = find_sweep(engine, plan.expansion.sweep.name)["id"]
    nothing_measured = not queue.progress(engine, row).measured
    for comparisons, text, style in (
        (
            unclear - plan.insufficient.keys(),
            f"answered, but unclear; this adds pairs to them: {command} --refine",
            "yellow",
        ),
        (
            short,
            "insufficient: time was up before the pairs that `pairs: min` requires (as few as"
            f" {fewest}); a larger `budget` of these jobs in the sweep gives more at once; this"
            f" adds pairs to them: {again}",
            "red",
        ),
        (
            slowed,
            f"quarantined: measured only while the machine was slowed ({flags}), so that there is"
            f" no verdict; when that is over, this measures them again: {command}",
            "red",
        ),
        (failed, f"not answered: failed ({why}); this tries again: {again}", "red"),
        (rest, f"not answered; this measures them: {again}", "red"),
    ):
        if comparisons:
            verb = "is" if len(comparisons) == 1 else "are"
            _print_hint(console, f"{count(len(comparisons), 'comparison')} {verb} {text}", style)
    skipped = [skipped_line(job) for job in plan.jobs if not rest.isdisjoint(job.comparison_ids())]
    for line in skipped[:MAX_SKIPPED]:
        _print_hint(console, line, "red", "  ")
    if len(skipped) > MAX_SKIPPED:
        console.print(f"  and {count(len(skipped) - MAX_SKIPPED, 'more job')}", style="red")
    if nothing_measured:
        reasons = [
            f": {failure.reason}: {failure.message}"
            for failure in failure_classes(engine, plan.expansion.sweep.name)
            if not why  # else it stands in the line on what failed
        ]
        line = f"no comparison of this sweep has a measured value{''.join(reasons[:1])}"
        _print_hint(console, line, "red")
    return UNANSWERED if left or nothing_measured else ANSWERED


def _print_hint(console: "Console", hint: str, style: str, indent: str = "") -> None:
    """A line of at most 120 characters, and the rest of it below; a command stays whole."""
    from orchestrator.report.section import hint_lines

    for number, line in enumerate(hint_lines(hint)):
        before = indent + "  " * (number > 0 and not line.startswith("  "))
        console.print(before + line, style=style, markup=False, highlight=False, soft_wrap=True)


def skipped_line(job: Job) -> str:
    """A job that was not measured: its condition and arms, and how long it may take."""
    from sweeps.text.condition_text import job_label

    arms = ", ".join(arm_label(job.arms[pair.arm]) for pair in job.pairs)
    runtime = f", {job.condition.runtime}" if job.compiled else ""
    return f"{job_label(job)}{runtime}: {arms}; takes at most {duration(job_seconds(job))}"


def plan(
    file: SweepFile,
    *,
    db: Database = None,
    jobs: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Also write each job left to do as JSON into DIR."),
    ] = None,
    form: TableOrJson = "table",
    device: DeviceOption = None,
    ray_address: Annotated[
        str | None, typer.Option(help="Plan for a running Ray cluster; default: for this machine.")
    ] = None,
) -> None:
    """Print what a run would do, here or on a cluster; write the jobs that are left as JSON if a
    folder is given.
    """
    sites: Collection[Site] = () if ray_address else local_sites()
    if ray_address:
        with _cluster(ray_address, err=True) as cluster:
            sites = cluster.nodes()
    auto = device or planning.preferred(by_device(sites))
    source = find_source(file, db)
    expansion = source.load(auto=auto)
    require_feasible(expansion, sites, devices=False)
    searched = ""
    with existing_store(db) as engine:
        limit_s, grid = whole_limit_s(expansion), expansion.sweep.search is None
        if limit_s is not None or (
            engine is not None and grid and "image_size" in expansion.sweep.axes
        ):
            from orchestrator.loop.refinement import Refinement

            refinement = Refinement(expansion, engine, source.load(auto=auto, between=True))
            expansion = refinement.requested(inf if limit_s is None else limit_s)
            searched = refinement.described() or refinement.added(places_of(sites))
        left = make_plan(expansion, engine, sites)
        stale = {} if engine is None else left.stale(engine)
    shown = preview(expansion)
    if form == "json":
        typer.echo(json.dumps(planning.plan_as_dict(left, shown, stale), indent=1))
    else:
        typer.echo("\n".join(filter(None, (planning.describe_plan(left, shown, stale), searched))))
    try:
        require_feasible(expansion, sites)
    except InfeasibleError as refusal:
        if jobs is None:
            typer.echo(f"`run` refuses this here: {refusal}", err=True)
    else:
        _warn(planning.local_warnings(expansion, sites))
    _warn(shown.warnings)
    if jobs is not None:
        paths = planning.write_jobs(left.jobs, jobs)
        how = f"python -m workers.run {shlex.quote(str(jobs))} --out outcomes"
        written = f"{count(len(paths), 'job file')} in {jobs}"
        typer.echo(f"{written}; run with: {how}", err=form == "json")


def _warn(warnings: Iterable[str]) -> None:
    for warning in warnings:
        typer.echo(f"warning: {warning}", err=True)
