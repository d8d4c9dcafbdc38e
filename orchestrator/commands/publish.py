"""`breakeven publish`: starts `python -m webapp publish`."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from orchestrator.commands.options import Database
from orchestrator.commands.webapp import become_webapp


def publish(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="The folder to write; made where it is missing.")
    ],
    *,
    sweep: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Only this sweep; may be given several times."),
    ] = None,
    samples: Annotated[
        Literal["none", "summary", "all"],
        typer.Option(help="Raw times in the database: none, quantiles of each arm, or all."),
    ] = "none",
    address: Annotated[
        str,
        typer.Option(metavar="URL", help="Where the folder will be found, for feed.json."),
    ] = "",
    db: Database = None,
) -> None:
    """Write results as a folder of pages."""
    chosen = [f"--sweep={name}" for name in sweep or ()]
    options = [*chosen, f"--samples={samples}", f"--address={address}"]
    become_webapp(["publish", *options, "--", str(folder)], db)
