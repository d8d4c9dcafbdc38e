"""Sources of sweeps: a file, or by its name a sweep that the store holds or that ships with this
project.
"""

import shlex
from pathlib import Path
from typing import NamedTuple

import typer

from store.errors import NoStoreError
from store.open.engine import Engine, connect_readonly
from store.read.queries import stored_sweeps
from store.rows.location import database_option
from sweeps.errors import did_you_mean
from sweeps.language.yaml_reader import SweepError, shipped_sweeps
from sweeps.model.condition import Device


class SweepSource(NamedTuple):
    """Where a sweep is read."""

    path: Path
    """The file, or the name of `text` in messages."""
    text: str | None = None
    """What is read instead of the file."""


def find_source(given: Path, db: str | None) -> SweepSource:
    """The source that a command line names: a file, NAME.yaml in this folder, a sweep of the store,
    or one that ships.

    Raises `SweepError` for what is none of these.
    """
    if given.is_file():
        return SweepSource(given)
    name, shipped = given.name.removesuffix(".yaml"), shipped_sweeps()
    engine = existing_store(db)
    stored = {} if engine is None else stored_sweeps(engine)
    if str(given) == name:
        if (file := Path(f"{name}.yaml")).is_file():
            return SweepSource(file)
        if name in stored:
            typer.echo(f"{name}: the sweep of this name in the store", err=True)
            return SweepSource(given, stored[name])
        if name in shipped:
            typer.echo(f"{name}: {shipped[name]}", err=True)
            return SweepSource(shipped[name])
    if given.exists():
        return SweepSource(given)  # a folder, a pipe: the reader states what is wrong, or reads it
    raise SweepError(
        str(given), None, "", f"there is no such file{did_you_mean(name, {*stored, *shipped})}"
    )


def command_options(
    db: str | None, device: Device | None = None, ray_address: str | None = None
) -> str:
    """What a command that is printed needs besides, to go on where this one was given; each with a
    space before it.
    """
    given = {"--device": device, "--ray-address": ray_address}
    return database_option(db) + "".join(
        f" {name} {shlex.quote(value)}" for name, value in given.items() if value
    )


def existing_store(db: str | None) -> Engine | None:
    """The store, open for reading; `None` if there is none yet, or nothing in it."""
    try:
        return connect_readonly(db)
    except NoStoreError:
        return None
