"""Terminal: where commands print for people."""

from rich.console import Console

UNCUT = 10_000
"""Cells of a line in a file or a pipe: wider than any table, so that neither a heading nor a cell
is cut or folded."""


def output() -> Console:
    """The console for people; what goes to a file or a pipe has the width that it needs."""
    console = Console()
    return console if console.is_terminal else Console(width=UNCUT)
