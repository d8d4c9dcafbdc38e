"""Running: the commands that read a sweep file: plan it, run it, or take in what was measured of it elsewhere."""

import dataclasses
import json
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import typer
from pydantic import ValidationError

from orchestrator import planning
from orchestrator.preview import preview
from store import queue
from store.connection import Engine, StoreError, connect, connect_readonly, location, sqlite_path
from sweeps.job import Device
from sweeps.outcome import Environment, Outcome
from workers.measure.environment import devices, fingerprint

if TYPE_CHECKING:
    from rich.console import Console

    from orchestrator.cluster import Cluster, Node
    from orchestrator.dispatching import Summary

ANSWERED, UNANSWERED, INTERRUPTED = 0, 1, 130
"""Exit codes."""


def run(file: Path, *, db: str | None, ray_address: str | None, device: Device | None) -> int:
    """Measure what is left of the sweep and print its report. Returns the exit code."""
    from orchestrator.report import read, render
    from orchestrator.terminal import output

    console = output()
    planning.read(file, auto=device or "cpu")  # a wrong file is refused before anything is opened or started
    with ExitStack() as stack:
        cluster = stack.enter_context(_cluster(console, ray_address)) if ray_address else None
        environments = _offered(cluster.nodes()) if cluster else here()
        expansion = planning.read(file, auto=device or planning.preferred(environments))
        warn(preview(expansion).warnings)
        planning.require({job.condition.device for job in expansion.jobs}, environments)
        engine = connect(db)
        plan = planning.plan(expansion, engine, environments)
        console.print(planning.describe(plan))
        sweep = submit(engine, plan)
        if plan.jobs:
            summary = _measure(console, engine, sweep, plan, cluster or stack.enter_context(_cluster(console, None)))
            if summary.interrupted:
                left = queue.progress(engine, sweep).unfinished
                console.print(f"stopped with {left} jobs left; the same command goes on from here", style="yellow")
                return INTERRUPTED
        else:
            summary = None
    console.print()
    console.print(render(read(db, expansion.sweep.name)))
    if summary and summary.unanswered:
        console.print(f"{summary.unanswered} comparisons were not answered; the same command tries them again", style="red")
        return UNANSWERED
    return ANSWERED


def _cluster(console: "Console", address: str | None) -> "Cluster":
    from orchestrator.cluster import Cluster  # Ray takes a second to import

    console.print(f"connecting to Ray at {address} …" if address else "starting Ray …", style="dim")
    return Cluster.start(address, notify=lambda line: console.print(line, style="yellow", markup=False, soft_wrap=True))


def _measure(console: "Console", engine: Engine, sweep: int, plan: planning.Plan, cluster: "Cluster") -> "Summary":
    from orchestrator.dispatching import dispatch
    from orchestrator.progress import Display

    with Display(console, sum(len(job.pairs) for job in plan.jobs)) as display:
        return dispatch(engine, sweep, cluster, retry=plan.expansion.sweep.retry, observer=display)


def submit(engine: Engine, plan: planning.Plan) -> int:
    """Store the sweep, link all its comparisons, and queue what is left. Returns the row of the sweep."""
    sweep = plan.expansion.sweep
    asked = [job for job in plan.expansion.jobs if job.round == 0]
    settings = {"retry": sweep.retry.model_dump(mode="json"), "limits": sweep.limits.model_dump(mode="json")}
    return queue.submit(engine, sweep.name, plan.expansion.text, sweep.question, asked, plan.jobs, settings)


def show_plan(file: Path, *, db: str | None, jobs: Path | None, form: Literal["table", "json"], device: Device | None) -> None:
    """Print what a run would do; write the jobs that are left as JSON if a folder is given."""
    expansion = planning.read(file, auto=device or planning.preferred(devices()))
    path = sqlite_path(location(db))
    engine = connect_readonly(db) if path is None or path.exists() else None
    plan, shown = planning.plan(expansion, engine, here()), preview(expansion)
    if form == "json":
        typer.echo(json.dumps(planning.as_dict(plan, shown), indent=1))
    else:
        typer.echo(planning.describe(plan, shown))
    warn(shown.warnings)
    if jobs is not None:
        paths = planning.write_jobs(plan.jobs, jobs)
        how = f"python -m workers.run {jobs} --out outcomes"
        typer.echo(f"{len(paths)} job files in {jobs}; run them with: {how}", err=form == "json")


def warn(warnings: Iterable[str]) -> None:
    """What a sweep file asks for in vain, a line each on stderr."""
    for warning in warnings:
        typer.echo(f"warning: {warning}", err=True)


def import_files(paths: Iterable[Path], *, db: str | None, sweep: Path | None, device: Device | None) -> int:
    """Store outcomes of `python -m workers.run`, and link them to a sweep if one is given. Returns the exit code."""
    from store.recording import record

    outcomes = [outcome for path in paths for outcome in _outcomes(path)]
    expansion = planning.read(sweep, auto=device or planning.preferred(devices())) if sweep else None
    engine = connect(db)
    fresh = sum(record(engine, None, None, outcome) for outcome in outcomes)
    known = len(outcomes) - fresh
    typer.echo(f"{fresh} outcomes imported" + (f", {known} were in the store already" if known else ""))
    if expansion is not None:
        environments: dict[Device, list[Environment]] = {}
        for outcome in outcomes:
            environments.setdefault(outcome.environment.device, []).append(outcome.environment)
        plan = planning.plan(expansion, engine, environments)
        submit(engine, dataclasses.replace(plan, jobs=()))
        typer.echo(f"linked to sweep {expansion.sweep.name}: {planning.answers(plan)}")
    return ANSWERED


def _outcomes(path: Path) -> Iterator[Outcome]:
    """The outcomes in a file (one JSON object, or one on each line) or in the *.json files of a folder."""
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    if not files:
        raise StoreError(f"{path} holds no *.json files")
    for file in files:
        try:
            text = file.read_text()
            documents = [text] if text.lstrip().startswith("{\n") else text.splitlines()
            yield from (Outcome.model_validate_json(document) for document in documents if document.strip())
        except (OSError, UnicodeDecodeError) as error:
            raise StoreError(f"{file} cannot be read: {error}") from None
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"])) or "the whole"
            raise StoreError(f"{file} is not an outcome of `python -m workers.run`: {place}: {first['msg']}") from None


def here() -> dict[Device, list[Environment]]:
    """The environments of this machine, by device class."""
    return {device: [fingerprint(device)] for device in devices()}


def _offered(nodes: Iterable["Node"]) -> dict[Device, list[Environment]]:
    offered: dict[Device, list[Environment]] = {}
    for node in nodes:
        for device, environment in node.environments.items():
            offered.setdefault(device, []).append(environment)
    return offered
