"""Published tables put into the store: `breakeven import --reference`."""

from collections.abc import Iterable
from pathlib import Path

import typer

from sweeps.importers.references.reference_files import load_reference, shipped_references
from sweeps.number_format import count


def import_published(names: Iterable[Path], *, db: str | None) -> int:
    """Store references by name or path (default: all that ship) as environments `published: …`.
    Returns the exit code.
    """
    from store.open.engine import connect
    from store.write.references import import_references

    sets = [load_reference(str(name)) for name in names] or [
        load_reference(name) for name in shipped_references()
    ]
    changed = import_references(connect(db), sets)
    for each in sets:
        state = "imported" if changed[each.name] else "was in the store already"
        typer.echo(f"{each.name} ({count(len(each.rows), 'row')}) {state}: {each.environment}")
    return 0
