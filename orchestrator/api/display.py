"""How results look in a notebook, and a bar of progress there or on a terminal."""

import sys
from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import Any

BAR = 30
"""Characters of the bar."""


def html_table(columns: Sequence[str], rows: Iterable[Sequence[str]], lines: Iterable[str]) -> str:
    """A table, and lines below it."""
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    notes = "".join(f"<div>{escape(line)}</div>" for line in lines)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{notes}"


def progress_bar() -> Callable[[float], object]:
    """Shows the share that is done, in a notebook or on the terminal of standard error; nothing
    elsewhere.
    """
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if type(shell).__name__ == "ZMQInteractiveShell":
        return _notebook_bar()
    return _terminal_bar if sys.stderr.isatty() else lambda _: None


def _terminal_bar(share: float) -> None:
    filled = round(BAR * share)
    bar = f"\r{'#' * filled}{'.' * (BAR - filled)} {share:4.0%}"
    sys.stderr.write(bar if share < 1 else f"\r{' ' * len(bar)}\r")
    sys.stderr.flush()


def _notebook_bar() -> Callable[[float], object]:
    display: Any = sys.modules["IPython"].display
    shown = display.display(display.HTML(""), display_id=True)

    def show(share: float) -> None:
        bar = f"<progress value='{share:.3f}'></progress> {share:.0%}"
        shown.update(display.HTML(bar if share < 1 else ""))

    return show
