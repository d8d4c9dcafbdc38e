"""The command line `breakeven`: thin commands; slow imports are made by the command that needs
them.
"""

import sys
from math import inf
from pathlib import Path
from typing import Annotated, Literal, NoReturn

import typer

from orchestrator.cli_advice import advise, export_policy
from orchestrator.cli_options import Database, DeviceOption, SweepFile, SweepName
from orchestrator.cli_webapp import open_app, plot
from orchestrator.loop.interruption import signals_interrupt
from sweeps.errors import OutageError, UserError

EXIT_INTERRUPTED = 130
"""Exit code after Ctrl-C, SIGTERM or SIGHUP."""

app = typer.Typer(
    name="breakeven",
    help="From where on does an optimisation that saves FLOPs also save time, on this machine?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=(
        "Exit codes: 0 answered, 1 something was not answered (an error, too few pairs, an outage),"
        " 2 wrong usage or invalid sweep, 130 interrupted."
    ),
)


def _show_version(requested: bool) -> None:
    if requested:
        from orchestrator.host.package_version import source_version

        typer.echo(f"breakeven {source_version()}")
        raise typer.Exit


@app.callback()
def options(
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """From where on does an optimisation that saves FLOPs also save time, on this machine?"""


def _seconds(text: str) -> float:
    """A duration of the command line in seconds: what a sweep file accepts."""
    from sweeps.language.file_schema import stated_seconds

    try:
        found = stated_seconds(text)
    except ValueError as problem:
        raise typer.BadParameter(f"{problem}") from None
    if not found:
        raise typer.BadParameter(f"{text!r} is no time; write 30s, 10m or 1h")
    return found


@app.command("run")
def run_command(
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
    again: Annotated[
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
    more: Annotated[
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
            parser=_seconds,
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
            parser=_seconds,
            metavar="DURATION",
            help="Wait for a host that another run has for so long at most. Default: as needed.",
        ),
    ] = None,
    no_wait: Annotated[
        bool, typer.Option("--no-wait", help="Do not wait for a host that another run has.")
    ] = False,
) -> None:
    """Measure what the sweep requests and is not answered yet, then report."""
    from orchestrator.commands.run import Again, run_sweep

    if only and not again:
        raise typer.BadParameter(
            "needs --remeasure: without it, only what is not answered is measured",
            param_hint="--only",
        )
    if retry_flagged and again:
        raise typer.BadParameter(
            "stands for --remeasure --only flagged: leave out --remeasure",
            param_hint="--retry-flagged",
        )
    if wait and no_wait:
        raise typer.BadParameter(
            "contradicts --wait: leave out one of them", param_hint="--no-wait"
        )
    wait_s = 0.0 if no_wait else wait or inf
    repeated: Again | None = "flagged" if retry_flagged else (only or "all") if again else None
    code = run_sweep(
        file,
        db=db,
        ray_address=ray_address,
        device=device,
        again=repeated,
        more=more,
        time_s=time,
        wait_s=wait_s,
    )
    raise typer.Exit(code)


@app.command()
def plan(
    file: SweepFile,
    *,
    db: Database = None,
    jobs: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Also write each job left to do as JSON into DIR."),
    ] = None,
    form: Annotated[Literal["table", "json"], typer.Option("--format")] = "table",
    device: DeviceOption = None,
    ray_address: Annotated[
        str | None, typer.Option(help="Plan for a running Ray cluster; default: for this machine.")
    ] = None,
) -> None:
    """Show points, jobs, what is answered already, and how long the rest takes; nothing is stored
    or started.
    """
    from orchestrator.commands.run import show_plan

    show_plan(file, db=db, jobs=jobs, form=form, device=device, ray_address=ray_address)


@app.command()
def report(
    name: SweepName,
    db: Database = None,
    form: Annotated[
        Literal["table", "markdown", "html", "latex", "json", "csv"], typer.Option("--format")
    ] = "table",
    *,
    detail: Annotated[
        bool, typer.Option("--detail", help="All points, cost models, memory, audit, flags.")
    ] = False,
    reasons: Annotated[bool, typer.Option("--why", help="Where the time goes, too.")] = False,
) -> None:
    """Print the answer on one screen: speed-ups by size, break-evens, and what to do next; other
    formats have all of it.
    """
    from orchestrator.report.data import load_report
    from orchestrator.report.render import write_report
    from orchestrator.terminal import output

    write_report(load_report(db, name), form, output(), db, detail=detail, reasons=reasons)


@app.command("status")
def list_sweeps(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="One sweep; default: all.")
    ] = None,
    db: Database = None,
) -> None:
    """Show the sweeps in the store: jobs waiting, running, done, failed; of one also its speed-ups
    so far.
    """
    from orchestrator.commands.inspect import show_status

    show_status(db, name)


@app.command("methods")
def list_methods(
    form: Annotated[Literal["table", "json"], typer.Option("--format")] = "table",
) -> None:
    """List all methods with their parameters and papers, from the code."""
    from orchestrator.commands.inspect import show_methods

    show_methods(form)


@app.command()
def doctor(db: Database = None) -> None:
    """Show what this machine is, what could disturb a measurement, how noisy it is, and what its
    devices reach at best.
    """
    from orchestrator.commands.doctor import examine

    raise typer.Exit(examine(db))


@app.command("calibrate")
def calibrate_here(
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
    """Measure how much speed-ups differ between processes of this machine; attempts from then on
    count that.
    """
    from orchestrator.commands.calibrate import calibrate_device

    raise typer.Exit(calibrate_device(db=db, device=device, processes=processes, limit=limit))


@app.command()
def query(
    sql: Annotated[str, typer.Argument(metavar="SQL", help="One SELECT statement.")],
    db: Database = None,
    form: Annotated[
        Literal["table", "csv", "json", "markdown"], typer.Option("--format")
    ] = "table",
    seconds: Annotated[float, typer.Option(min=0.1, help="Time limit.")] = 10.0,
    rows: Annotated[int, typer.Option(min=1, help="Row limit.")] = 10_000,
) -> None:
    """Query the database in SQL, read-only: views speedup, accuracy, quality, generation,
    break_even, failures, metric …
    """
    from orchestrator.commands.query import show_query

    show_query(db, sql, form, seconds=seconds, rows=rows)


@app.command("import")
def import_outcomes(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="FILE...",
            help=(
                "Outcomes of `python -m workers.run`, or folders of them; SQLite files of `nsys"
                " export`; tables of `ncu --csv`; "
                "with --reference names or files."
            ),
        ),
    ] = None,
    *,
    db: Database = None,
    sweep: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Link the outcomes to this sweep file, so that report and plot show them.",
        ),
    ] = None,
    device: DeviceOption = None,
    reference: Annotated[
        bool,
        typer.Option(
            "--reference",
            help=(
                "Published tables, by name or file (default: all that ship), never mixed into what"
                " is measured."
            ),
        ),
    ] = False,
    forwards: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="K", help="Forwards in a profile whose ranges do not show them."
        ),
    ] = None,
    comparison: Annotated[
        str | None,
        typer.Option(metavar="ID", help="The comparison that a profile without marks belongs to."),
    ] = None,
    arm: Annotated[
        str | None,
        typer.Option(
            metavar="LABEL",
            help="Which arm of it: baseline or arm; without --comparison any words.",
        ),
    ] = None,
) -> None:
    """Put outcomes measured elsewhere, profiles of nsys and ncu, or published tables into the
    store; twice changes nothing.
    """
    if reference:
        from orchestrator.commands.import_files import import_published

        raise typer.Exit(import_published(files or (), db=db))
    from orchestrator.commands.import_files import import_files
    from store.write.traces import StatedTie

    if not files:
        raise typer.BadParameter("name the files or folders to import", param_hint="FILE...")
    stated = StatedTie(comparison, arm, forwards)
    raise typer.Exit(import_files(files, db=db, sweep=sweep, device=device, request=stated))


@app.command("audit")
def audit_measurements(
    source: Annotated[
        str,
        typer.Argument(
            metavar="NAME|FILE",
            help="A reference, a sweep of the store, or a CSV or Markdown file.",
        ),
    ],
    *,
    db: Database = None,
    form: Annotated[Literal["table", "markdown", "json"], typer.Option("--format")] = "table",
    mapping: Annotated[
        list[str] | None,
        typer.Option(
            "--map", metavar="COLUMN=FIELD", help="What a CSV column is; others are guessed."
        ),
    ] = None,
    latency: Annotated[
        Literal["per-batch", "per-image"] | None,
        typer.Option(help="What latencies are the time of."),
    ] = None,
    baseline: Annotated[
        str | None, typer.Option(help="Label of the rows of the unmodified model.")
    ] = None,
    break_even: Annotated[
        list[str] | None,
        typer.Option(metavar="AXIS=VALUE", help="A claim of the source, such as tokens=400."),
    ] = None,
    peak_gflops: Annotated[
        float | None,
        typer.Option(min=0, help="1e9 operations per second that the device can reach."),
    ] = None,
    items: Annotated[
        Literal["images", "tokens"] | None, typer.Option(help="What throughputs count.")
    ] = None,
) -> None:
    """Check a table of measurements against identities: batch = throughput x latency, device time
    <= wall time, MACs, tokens …
    """
    from orchestrator.commands.audit import Stated, show_audit

    stated = Stated(mapping or (), latency, baseline, break_even or (), peak_gflops, items)
    raise typer.Exit(show_audit(source, db=db, form=form, stated=stated))


@app.command("reanalyse")
def rebuild(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="One sweep; default: everything.")
    ] = None,
    db: Database = None,
) -> None:
    """Rebuild statistics, verdicts and break-even points from the raw samples."""
    from store.open.engine import connect
    from store.write.record import reanalyse
    from store.write.submission import label_stored_arms
    from workers.methods.arm_labels import params_label

    engine = connect(db)
    typer.echo(f"{reanalyse(engine, name)} comparisons analysed again")
    label_stored_arms(engine, params_label)


@app.command()
def schema() -> None:
    """Print the JSON Schema of sweep files, for editors (kept in sweeps/schema.json)."""
    from sweeps.language.json_schema import schema_text
    from workers import methods

    typer.echo(schema_text(methods.all_methods()), nl=False)


app.command("advise")(advise)
app.command("export-policy")(export_policy)
app.command("plot")(plot)
app.command("app")(open_app)


def main() -> NoReturn:
    """Run the command line and raise `SystemExit`."""
    sys.exit(exit_code())


def exit_code() -> int:
    """Run the command line; one line on stderr for errors: exit code 2 where the user can correct
    them, 1 for outages.
    """
    try:
        with signals_interrupt():
            app()
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else 0
    except KeyboardInterrupt:
        typer.echo("breakeven: interrupted", err=True)
        return EXIT_INTERRUPTED
    except UserError as error:
        typer.echo(f"breakeven: {error}", err=True)
        return 1 if isinstance(error, OutageError) else 2
    return 0
