"""Shipped sweeps: the sweep files of this folder, found by name, so that they need no checkout of
the project.
"""

from pathlib import Path


def shipped_sweeps() -> dict[str, Path]:
    """The files by the names of their sweeps."""
    return {path.stem: path for path in sorted(Path(__file__).parent.glob("*.yaml"))}
