"""Terminal: where commands print for people."""

from rich.console import Console


def output() -> Console:
    """The console for people; tables in files and pipes are not folded to 80 columns."""
    console = Console()
    return console if console.is_terminal else Console(width=240)
