"""Draws the figures of docs/gallery.md anew: `python -m tests.gallery STORE…`, with the stores that
hold its sweeps.
"""

import re
import shlex
import sys
from pathlib import Path

from store.open.engine import connect_readonly, disposing
from store.read.queries import stored_sweeps
from webapp.__main__ import main as run_webapp

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "gallery.md"


def figures() -> dict[str, list[str]]:
    """The command of each figure, by its file, without the program's name."""
    lines = re.findall(r"^breakeven (plot .*)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    return {words[words.index("-o") + 1]: words for words in map(shlex.split, lines)}


def main(stores: list[str]) -> None:
    """Draws each figure from the first store that holds its sweep."""
    held = {}
    for url in stores:
        with disposing(connect_readonly(url)) as engine:
            held[url] = set(stored_sweeps(engine))
    for file, (command, name, *options) in figures().items():
        store = next((store for store, names in held.items() if name in names), None)
        if store is None:
            sys.exit(f"{file}: none of the stores holds the sweep {name}")
        if code := run_webapp([command, name, *options, "--db", store]):
            sys.exit(code)


if __name__ == "__main__":
    main(sys.argv[1:])
