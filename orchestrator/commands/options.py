"""Options and arguments that several commands have, and the exit codes."""

from pathlib import Path
from typing import Annotated, Literal

import typer


def _with_curves(db: str | None) -> str | None:
    # imports SQLAlchemy, which help does not need
    from store.write.queue import derive_before_reading

    return derive_before_reading(db)


Database = Annotated[
    str | None,
    typer.Option(
        "--db",
        envvar="BREAKEVEN_DB",
        help="Database: a file or an SQLAlchemy URL.",
        show_default="breakeven.db",
        callback=_with_curves,
    ),
]
SweepFile = Annotated[
    Path,
    typer.Argument(
        metavar="FILE", help="A sweep in YAML; or the name of one in the store or that ships."
    ),
]
SweepName = Annotated[str, typer.Argument(metavar="NAME", help="Name of a sweep in the store.")]
DeviceOption = Annotated[
    Literal["cpu", "cuda"] | None, typer.Option("--device", help="What `device: auto` stands for.")
]
TableOrJson = Annotated[Literal["table", "json"], typer.Option("--format")]
ANSWERED, UNANSWERED = 0, 1
"""Exit codes."""


def parse_seconds(text: str) -> float:
    """A duration of the command line in seconds: what a sweep file accepts."""
    from sweeps.language.file_schema import stated_seconds

    try:
        found = stated_seconds(text)
    except ValueError as problem:
        raise typer.BadParameter(f"{problem}") from None
    if not found:
        raise typer.BadParameter(f"{text!r} is no time; write 30s, 10m or 1h")
    return found
