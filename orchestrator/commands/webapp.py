"""Commands of the web app, `plot` and `app`: both start `python -m webapp`."""

import os
import sys
from pathlib import Path
from typing import Annotated, Literal, NoReturn

import typer

from orchestrator.commands.options import Database, SweepName


def plot(
    name: SweepName,
    *,
    out: Annotated[
        Path,
        typer.Option(
            "--out", "-o", metavar="FILE", help="The file to write: .png, .svg, .pdf or .html."
        ),
    ],
    axis: Annotated[
        Literal["tokens", "gmacs", "gmacs_saved", "both"],
        typer.Option(help="What to draw against; both: tokens and gmacs."),
    ] = "tokens",
    metric: Annotated[
        str | None,
        typer.Option(
            help=(
                "latency; ttft, tpot or time_per_char for language models. Default: latency or"
                " time_per_char."
            )
        ),
    ] = None,
    flagged: Annotated[bool, typer.Option("--flagged", help="Draw flagged points too.")] = False,
    references: Annotated[
        bool,
        typer.Option(
            "--references",
            help="Draw published points of the same models too (import --reference).",
        ),
    ] = False,
    db: Database = None,
) -> None:
    """Draw the speed-ups of a sweep into a file."""
    switches = {"--flagged": flagged, "--references": references}
    chosen = [
        "--axis",
        axis,
        *(["--metric", metric] if metric else []),
        *(each for each, on in switches.items() if on),
    ]
    become_webapp(["plot", *chosen, f"--out={out}", "--", name], db)


def open_app(
    *,
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port to listen on.")] = 8501,
    host: Annotated[
        str,
        typer.Option(help="Address to listen on; others than localhost let other machines read."),
    ] = "localhost",
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Do not open a browser window.")
    ] = False,
    db: Database = None,
) -> None:
    """Open the web app on this machine."""
    become_webapp(
        ["app", f"--port={port}", f"--host={host}", *(["--no-browser"] if no_browser else [])], db
    )


def become_webapp(arguments: list[str], db: str | None) -> NoReturn:
    """Run a command of the web app, which this package does not import, instead of this
    process.
    """
    environment = {**os.environ, **({"BREAKEVEN_DB": db} if db else {})}
    os.execve(sys.executable, [sys.executable, "-P", "-m", "webapp", *arguments], environment)  # noqa: S606 - no shell is wanted
