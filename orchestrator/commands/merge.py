"""`breakeven merge`: what another store measured, brought into this one."""

from typing import Annotated

import typer

from orchestrator.commands.options import Database
from store.open.engine import connect, connect_readonly
from store.write.merge import merge_stores
from sweeps.number_format import count


def merge(
    other: Annotated[
        str, typer.Argument(metavar="OTHER.db", help="The store to read; it is not changed.")
    ],
    *,
    db: Database = None,
) -> None:
    """Bring what another store measured into this one."""
    source = connect_readonly(other)
    merged = merge_stores(connect(db), source)
    for sweep in merged.sweeps:
        state = "came" if sweep.new else "was here already"
        if sweep.here != sweep.name:
            state += f" as {sweep.here}, since {sweep.name} is another sweep here"
        typer.echo(f"sweep {sweep.name} {state}")
    came = count(merged.attempts, "attempt")
    typer.echo(f"{came} came from {other}, {merged.known} were here already")
