"""The command line `breakeven`: thin commands; slow imports are made by the command that needs them."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

app = typer.Typer(
    name="breakeven",
    help="From where on does an optimisation that saves FLOPs also save time, on this machine?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 answered, 1 something was not answered (an error, too few pairs), 2 wrong usage or invalid sweep, "
    "130 interrupted.",
)

Database = Annotated[
    str | None,
    typer.Option("--db", envvar="BREAKEVEN_DB", help="Database: a file or an SQLAlchemy URL.", show_default="breakeven.db"),
]
SweepFile = Annotated[Path, typer.Argument(metavar="FILE", help="A sweep in YAML.")]
SweepName = Annotated[str, typer.Argument(metavar="NAME", help="Name of a sweep in the store.")]
DeviceOption = Annotated[str | None, typer.Option("--device", metavar="cpu|cuda", help="What `device: auto` stands for.")]


@app.command("run")
def run_command(
    file: SweepFile,
    *,
    db: Database = None,
    ray_address: Annotated[
        str | None, typer.Option(help="A running Ray cluster, such as host:6379; default: Ray on this machine.")
    ] = None,
    device: DeviceOption = None,
    again: Annotated[bool, typer.Option("--again", help="Measure all comparisons again; attempts add up.")] = False,
    only: Annotated[
        str | None, typer.Option(metavar="all|flagged|unclear|failed", help="With --again: only comparisons with such an answer.")
    ] = None,
) -> None:
    """Measure what the sweep requests and is not answered yet, then report."""
    from orchestrator.commands.run import run_sweep

    if only and not again:
        raise typer.BadParameter("needs --again: without it, only what is not answered is measured", param_hint="--only")
    which = _one_of("--only", only or "all", ("all", "flagged", "unclear", "failed")) if again else None
    raise typer.Exit(run_sweep(file, db=db, ray_address=ray_address, device=_device(device), again=which))


@app.command()
def plan(
    file: SweepFile,
    *,
    db: Database = None,
    jobs: Annotated[Path | None, typer.Option(metavar="DIR", help="Also write each job left to do as JSON into DIR.")] = None,
    form: Annotated[str, typer.Option("--format", metavar="table|json")] = "table",
    device: DeviceOption = None,
    ray_address: Annotated[str | None, typer.Option(help="Plan for a running Ray cluster; default: for this machine.")] = None,
) -> None:
    """Show points, jobs, what is answered already, and how long the rest takes; nothing is stored or started."""
    from orchestrator.commands.run import show_plan

    chosen = _one_of("--format", form, ("table", "json"))
    show_plan(file, db=db, jobs=jobs, form=chosen, device=_device(device), ray_address=ray_address)


@app.command()
def report(
    name: SweepName,
    db: Database = None,
    form: Annotated[str, typer.Option("--format", metavar="table|markdown|json|csv")] = "table",
) -> None:
    """Print speed-ups with intervals, what the MACs promise beside them, and the break-even points."""
    from orchestrator.report.data import load_report
    from orchestrator.report.render import write_report

    write_report(load_report(db, name), _one_of("--format", form, ("table", "markdown", "json", "csv")), _console())


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def plot(context: typer.Context, name: SweepName, db: Database = None) -> None:
    """Draw speed-ups: breakeven plot NAME -o FILE.png|svg|html [--axis tokens|gmacs|gmacs_saved|both] [--metric METRIC]."""
    raise typer.Exit(_webapp(["plot", name, *context.args], db))


@app.command("app", context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def open_app(context: typer.Context, db: Database = None) -> None:
    """Open the Streamlit app on this machine: breakeven app [--port N] [--no-browser]."""
    raise typer.Exit(_webapp(["app", *context.args], db))


@app.command("status")
def list_sweeps(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="One sweep; default: all.")] = None,
    db: Database = None,
) -> None:
    """Show the sweeps in the store: jobs waiting, running, done, failed."""
    from orchestrator.commands.inspect import show_status

    show_status(db, name)


@app.command("methods")
def list_methods(form: Annotated[str, typer.Option("--format", metavar="table|json")] = "table") -> None:
    """List all methods with their parameters and papers, from the code."""
    from orchestrator.commands.inspect import show_methods

    show_methods(_one_of("--format", form, ("table", "json")), _console())


@app.command()
def doctor() -> None:
    """Show what this machine is, what could disturb a measurement, and how noisy its clock ticks are."""
    from orchestrator.commands.doctor import examine

    raise typer.Exit(examine(_console()))


@app.command()
def query(
    sql: Annotated[str, typer.Argument(metavar="SQL", help="One SELECT statement.")],
    db: Database = None,
    form: Annotated[str, typer.Option("--format", metavar="table|csv|json|markdown")] = "table",
    seconds: Annotated[float, typer.Option(min=0.1, help="Time limit.")] = 10.0,
    rows: Annotated[int, typer.Option(min=1, help="Row limit.")] = 10_000,
) -> None:
    """Query the database in SQL, read-only: views speedup, accuracy, quality, language, break_even, failures, metric …"""
    from orchestrator.commands.inspect import show_query

    show_query(db, sql, _one_of("--format", form, ("table", "csv", "json", "markdown")), seconds=seconds, rows=rows)


@app.command("import")
def import_outcomes(
    files: Annotated[
        list[Path], typer.Argument(metavar="OUTCOME...", help="Files that `python -m workers.run` wrote, or folders of them.")
    ],
    db: Database = None,
    sweep: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Link the outcomes to this sweep file, so that report and plot show them.")
    ] = None,
    device: DeviceOption = None,
) -> None:
    """Put outcomes measured elsewhere into the store; importing twice changes nothing."""
    from orchestrator.commands.run import import_files

    raise typer.Exit(import_files(files, db=db, sweep=sweep, device=_device(device)))


@app.command("reanalyse")
def rebuild(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="One sweep; default: everything.")] = None,
    db: Database = None,
) -> None:
    """Rebuild statistics, verdicts and break-even points from the raw samples."""
    from store.engine import connect
    from store.record import reanalyse

    typer.echo(f"{reanalyse(connect(db), name)} comparisons analysed again")


@app.command()
def schema() -> None:
    """Print the JSON Schema of sweep files, for editors (kept in sweeps/schema.json)."""
    from sweeps.parsing.json_schema import schema_text
    from workers import methods

    typer.echo(schema_text(methods.every()), nl=False)


def _console() -> Any:
    from orchestrator.terminal import output

    return output()


def _one_of(option: str, value: str, words: tuple[str, ...]) -> Any:
    if value not in words:
        raise typer.BadParameter(f"{value!r} is none of {', '.join(words)}", param_hint=option)
    return value


def _device(value: str | None) -> Any:
    return None if value is None else _one_of("--device", value, ("cpu", "cuda"))


def _webapp(arguments: list[str], db: str | None) -> int:
    """Run a command of the web app in its own process; Ctrl-C reaches it too, so it is left to end by itself."""
    environment = {**os.environ, **({"BREAKEVEN_DB": db} if db else {})}
    process = subprocess.Popen([sys.executable, "-m", "webapp", *arguments], env=environment)
    previous = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        return process.wait()
    finally:
        signal.signal(signal.SIGINT, previous)


def main() -> NoReturn:
    """Run the command line; one line on stderr and exit code 2 for errors that the user can correct."""
    try:
        app()
    except KeyboardInterrupt:
        typer.echo("breakeven: interrupted", err=True)
        sys.exit(130)
    except Exception as error:
        if not _is_user_error(error):
            raise
        typer.echo(f"breakeven: {error}", err=True)
        sys.exit(2)
    sys.exit(0)


def _is_user_error(error: Exception) -> bool:
    """Whether the error is one of ours with instructions; only loaded modules are checked, since `--help` loads none of them."""
    known = (
        ("sweeps.parsing.yaml_reader", "SweepError"),
        ("store.engine", "StoreError"),
        ("orchestrator.ray_cluster.connect", "ClusterError"),
        ("orchestrator.sites", "InfeasibleError"),
    )
    loaded = [getattr(sys.modules[module], name) for module, name in known if module in sys.modules]
    return isinstance(error, tuple(loaded))
