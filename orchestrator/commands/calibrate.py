"""Command `calibrate`: measures how much a speed-up differs between processes of this machine, and
keeps it for later attempts.
"""

import time
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

import typer

from orchestrator import text_table
from orchestrator.commands.options import (
    ANSWERED,
    UNANSWERED,
    Database,
    DeviceOption,
    parse_seconds,
)
from orchestrator.loop.interruption import INTERRUPTED
from orchestrator.plan import planning
from orchestrator.plan.planning import make_plan, require_feasible
from orchestrator.plan.sites import by_device, local_sites
from orchestrator.plan.time_budget import comparison_ids
from store.open.engine import Engine, connect, disposing
from store.rows.location import database_option
from store.write.calibrations import freeze_calibrations
from sweeps.language.expand import Expansion
from sweeps.model.condition import Device
from sweeps.stats.visits import FLOOR

WRITTEN = "budget: 4s, timeout: 5m, rounds: 8"
"""What the shipped sweep file states instead of the options."""
START_S = 7.0
"""What a job takes beside its budget: its process, the models, the warm-up."""
MIN_S = 1.0
"""Of sampling for each job."""


def calibrate(
    *,
    db: Database = None,
    device: DeviceOption = None,
    processes: Annotated[
        int,
        typer.Option(
            min=0,
            help=(
                "Fresh processes for each comparison; 0: estimate from those that the store holds."
            ),
        ),
    ] = 8,
    limit: Annotated[
        str,
        typer.Option("--time", metavar="DURATION", help="About how long it may take, such as 5m."),
    ] = "6m",
) -> None:
    """Run the calibration sweep in fresh processes, estimate the terms, store and print them.

    Each call adds `processes` to those that the store holds; with 0 the terms are estimated from
    those alone.
    """
    raise typer.Exit(calibrate_device(db, device, processes, parse_seconds(limit)))


def calibrate_device(db: str | None, device: Device | None, processes: int, limit_s: float) -> int:
    """The exit code of `calibrate`."""
    sites = local_sites()
    chosen = device or planning.preferred(by_device(sites))
    expansion = expanded(chosen, max(processes, 1), limit_s)
    require_feasible(expansion, sites)
    with disposing(connect(db)) as engine:
        if processes and _measure(engine, expansion):
            typer.secho(
                "stopped before all processes had run; the same command measures more of them",
                fg="yellow",
            )
            return INTERRUPTED
        environments = [environment.environment_id for environment in by_device(sites)[chosen]]
        found = freeze_calibrations(engine, expansion.sweep.name, environments)
    if not found:
        typer.echo("no comparison was measured in two processes or more: nothing is calibrated")
        return UNANSWERED
    for line in text_table.table_lines(_HEADINGS, [_row(chosen, each) for each in found]):
        typer.echo(line)
    typer.echo(
        "Attempts from now on count the last but one column; those measured before keep theirs"
        f" until: breakeven reanalyse{database_option(db)}\nThe same arm twice in a"
        " process should differ by 0: more means that errors within a process are estimated too"
        " small."
    )
    return ANSWERED


def expanded(device: Device, processes: int, limit_s: float) -> Expansion:
    """The shipped sweep with so many processes, in about `limit_s` seconds altogether."""
    path = Path(str(files("sweeps") / "calibration.yaml"))
    text = path.read_text(encoding="utf-8")
    assert WRITTEN in text
    jobs = len({job.condition for job in planning.load_sweep(path, auto=device).jobs})
    budget = max(MIN_S, limit_s / (jobs * processes) - START_S)
    text = text.replace(WRITTEN, f"budget: {budget:.1f}s, timeout: 5m, rounds: {processes}")
    return planning.load_sweep(path, auto=device, text=text)


def _measure(engine: Engine, expansion: Expansion) -> bool:
    """Measure every comparison of the sweep in new processes, whatever is answered. Returns whether
    it was interrupted.
    """
    from orchestrator.cluster.cluster import Cluster  # Ray takes a second to import
    from orchestrator.loop.progress import Display
    from orchestrator.loop.run_loop import run_plan
    from orchestrator.text_table import output

    again = comparison_ids(expansion.jobs)
    plan = make_plan(expansion, engine, local_sites(), again=again)
    console = output()
    console.print(planning.describe_plan(plan))
    began = time.monotonic()
    with Cluster.start(None) as cluster, Display(console) as display:
        interrupted = run_plan(engine, plan, lambda: cluster, display, again).interrupted
    console.print(f"{len(expansion.jobs)} processes in {time.monotonic() - began:.0f} s")
    return interrupted


_HEADINGS = (
    *(
        "device",
        "models by parameters",
        "processes",
        "contrasts",
        "between processes",
        "95 % interval",
    ),
    *("the same arm twice", "used before", "used from now on", "calibration"),
)


def _row(device: Device, found: Mapping[str, Any]) -> Sequence[Any]:
    used_before = found["before"]
    return (
        *(
            device,
            found["size_class"],
            found["processes"],
            found["contrasts"],
            _percent(found["tau"]),
        ),
        f"{_percent(found['tau_low'])} to {_percent(found['tau_high'])}",
        "" if found["null_tau"] is None else _percent(found["null_tau"]),
        f"{_percent(FLOOR.sd)} (default)" if used_before is None else _percent(used_before),
        *(_percent(found["process_sd"]), found["calibration_id"]),
    )


def _percent(value: float) -> str:
    return f"{100 * value:.2f} %"
