"""The command line `breakeven`: its commands, each in a module that is imported when it is
called.
"""

import os
import pkgutil
import sys
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand

from orchestrator.loop.interruption import INTERRUPTED, signals_interrupt
from sweeps.errors import OutageError, UserError

WEBAPP = "webapp"
"""Place of the commands that `python -m webapp` has."""
COMMANDS: Mapping[str, tuple[str, str]] = {
    "run": ("run:run", "Measure what the sweep requests and is not answered yet, then report."),
    "new": ("new:new", "Write a commented sweep file to begin with."),
    "submit": ("queue:submit", "Queue a sweep for `serve`, with a priority."),
    "serve": ("queue:serve", "Run queued sweeps, the most urgent first, until interrupted."),
    "cancel": ("queue:cancel", "Take a submitted sweep out of the queue."),
    "pause": ("queue:pause", "Keep a submitted sweep from being run."),
    "resume": ("queue:resume", "Queue a paused sweep again."),
    "retry": ("queue:retry", "Queue a stored sweep again, for what failed or is flagged."),
    "logs": ("queue:logs", "Print what the run of a submitted sweep printed."),
    "plan": (
        "run:plan",
        "Show points, jobs, what is answered already, and how long the rest takes; nothing is"
        " stored or started.",
    ),
    "report": (
        "sweeps:report",
        "Print the answer on one screen: speed-ups by size, break-evens, and what to do next; other"
        " formats have all of it.",
    ),
    "status": (
        "sweeps:status",
        "Show the sweeps in the store: jobs waiting, running, done, failed; of one also its"
        " speed-ups so far.",
    ),
    "methods": (
        "catalogue:methods",
        "List all methods with their parameters and papers, from the code.",
    ),
    "compare": (
        "compare:compare",
        "Compare functions, commands or git revisions side by side: a speed-up with its interval,"
        " and an exit code.",
    ),
    "doctor": (
        "doctor:doctor",
        "Show what this machine is, what could disturb a measurement, how noisy it is, and what its"
        " devices reach at best.",
    ),
    "calibrate": (
        "calibrate:calibrate",
        "Measure how much speed-ups differ between processes of this machine; attempts from then on"
        " count that.",
    ),
    "query": (
        "query:query",
        "Query the database in SQL, read-only: views speedup, accuracy, quality, generation,"
        " break_even, failures, metric …",
    ),
    "import": (
        "import_files:import_outcomes",
        "Put outcomes measured elsewhere, profiles of nsys and ncu, or published tables into the"
        " store; twice changes nothing.",
    ),
    "merge": (
        "import_files:merge",
        "Bring sweeps and outcomes of another store into this one; twice changes nothing.",
    ),
    "audit": (
        "audit:audit",
        "Check a table of measurements against identities: batch = throughput x latency, device"
        " time <= wall time, MACs, tokens …",
    ),
    "history": (
        "history:history",
        "How speed-ups moved over days, revisions and versions, and what changed where one fell.",
    ),
    "reanalyse": (
        "sweeps:reanalyse_stored",
        "Rebuild statistics, verdicts and break-even points from the raw samples.",
    ),
    "archive": (
        "sweeps:archive",
        "Move raw samples of old attempts from the store into Parquet files; everything reads them"
        " there.",
    ),
    "schema": (
        "catalogue:schema",
        "Print the JSON Schema of sweep files, for editors (kept in sweeps/schema.json).",
    ),
    "advise": (
        "advise:advise",
        "Which method, parameters and runtime to use for a model, or the unmodified model; nothing"
        " is extrapolated.",
    ),
    "export-policy": (
        "advise:export_policy",
        "Write which arm to use at which sizes, as measured, for sweeps/analysis/policy.py to apply"
        " at run time.",
    ),
    "plot": (WEBAPP, "Draw the speed-ups of a sweep into a file."),
    "publish": (
        WEBAPP,
        "Write results as a folder of pages that any web server shows, without names of hosts,"
        " users or paths.",
    ),
    "app": (WEBAPP, "Open the web app on this machine."),
}
"""Each command with its function in `orchestrator.commands`, or `WEBAPP`, and its help."""

app = typer.Typer(
    name="breakeven",
    help="From where on does an optimisation that saves FLOPs also save time, on this machine?",
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=(
        "Exit codes: 0 answered, 1 something was not answered (an error, too few pairs, an outage),"
        " 2 wrong usage or invalid sweep, 130 interrupted."
    ),
)


class _Command(TyperCommand):
    """A command with its help alone, until it is called."""

    def make_context(
        self, info_name: str | None, args: list[str], *called: Any, **more: Any
    ) -> Any:
        place, text = COMMANDS[self.name or ""]
        if place == WEBAPP and more.get("resilient_parsing"):  # completion, in a shell
            return super().make_context(info_name, args, *called, **more)
        if place == WEBAPP:
            become_webapp([self.name or "", *args])
        alone = typer.Typer(add_completion=False)
        alone.command(help=text)(pkgutil.resolve_name(f"orchestrator.commands.{place}"))
        return typer.main.get_command(alone).make_context(info_name, args, *called, **more)


for name, (_, text) in COMMANDS.items():
    app.command(name, cls=_Command, help=text)(lambda: None)


def _show_version(requested: bool) -> None:
    if requested:
        from orchestrator.host.package_version import source_version

        typer.echo(f"breakeven {source_version()}")
        raise typer.Exit


FIRST = """\
Breakeven: from where on does an optimisation that saves FLOPs also save time, on this machine?

  breakeven run quickstart              a first answer, in a few minutes, without a download
  breakeven new my_sweep.yaml           your own question, as a commented file
  breakeven compare a.py:f b.py:f       any two functions, commands or revisions, side by side

Then: breakeven app. All commands: breakeven --help"""


@app.callback()
def options(
    context: typer.Context,
    *,
    version: Annotated[  # noqa: ARG001 - its callback prints it
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """From where on does an optimisation that saves FLOPs also save time, on this machine?"""
    if context.invoked_subcommand is None:
        typer.echo(FIRST)


def run_command_line() -> int:
    """The exit code of the command; one line on stderr for errors: 2 where the user can correct
    them, 1 for outages. Raises what is no error of the user's.
    """
    try:
        with signals_interrupt():
            app()
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except KeyboardInterrupt:
        typer.echo("breakeven: interrupted", err=True)
        return INTERRUPTED
    except UserError as error:
        typer.echo(f"breakeven: {error}", err=True)
        return 1 if isinstance(error, OutageError) else 2
    return 0


def become_webapp(arguments: Sequence[str]) -> NoReturn:
    """Run a command of the web app, which this package does not import, instead of this
    process.
    """
    os.execv(sys.executable, [sys.executable, "-P", "-m", "webapp", *arguments])  # noqa: S606 - no shell is wanted
