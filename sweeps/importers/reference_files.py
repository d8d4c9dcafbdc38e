"""Reference files: published tables as YAML, strictly read; those that ship by name, others by
path.
"""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from sweeps.errors import UserError, unknown_word
from sweeps.importers.csv_table import read_csv_rows
from sweeps.importers.measurement import (
    Measurement,
    ReferenceSet,
    SourceFacts,
)
from sweeps.language.yaml_reader import Place, first_error, read, validated

SHIPPED = Path(str(files("sweeps") / "references"))
SUFFIXES_OF_REFERENCES = (".yaml", ".yml")


class ReferenceFile(SourceFacts):
    """A reference as it is written: fields that rows have in common stand once."""

    reference: Literal[1]
    """Version of this format; marks the file as a reference."""
    common: Measurement = Measurement()
    """Fields of every row that does not state them itself."""
    by_label: Mapping[str, Measurement] = Field(default_factory=dict)
    """The same for rows with a label."""
    csv: str | None = None
    """A CSV file beside this one that holds the rows."""
    columns: Mapping[str, str] = Field(default_factory=dict)
    """Columns of that file and the fields that they are."""
    rows: tuple[Measurement, ...] = ()


@cache
def shipped_references() -> tuple[str, ...]:
    """Names of the references that ship."""
    return tuple(sorted(path.stem for path in SHIPPED.glob("*.yaml")))


def load_reference(name_or_path: str) -> ReferenceSet:
    """The reference of that name, or in the file at that path.

    Raises `UserError` for an unknown name with the nearest one, and for a wrong file with the file,
    line, key and what is right.
    """
    if name_or_path in shipped_references():
        return read_reference(SHIPPED / f"{name_or_path}.yaml")
    path = Path(name_or_path)
    if path.suffix.lower() not in SUFFIXES_OF_REFERENCES and not path.exists():
        raise UserError(unknown_word("reference", name_or_path, list(shipped_references())))
    return read_reference(path)


def read_reference(path: Path) -> ReferenceSet:
    """The reference in a file. Raises `UserError`."""
    document = read(path, start="reference: 1")
    file = validated(document.at(), ReferenceFile, document.root)
    found = [_row(file, row, document.at("rows", index)) for index, row in enumerate(file.rows)]
    if file.csv is not None:
        table = read_csv_rows(path.parent / file.csv, mapping=dict(file.columns), guess=False)
        found += [_row(file, row, document.at("csv")) for row in table.rows]
    if not found:
        raise document.at().error(
            "holds no measurement; list them under `rows`, or name a file beside it under `csv`"
        )
    for label in sorted(set(file.by_label) - {row.label for row in found}):
        raise document.at("by_label", label).error(f"no row has the label {label!r}")
    known = {name: value for name, value in file if name in ReferenceSet.model_fields}
    return ReferenceSet(**{**known, "name": path.stem, "rows": tuple(found)})


def _row(file: ReferenceFile, row: Measurement, place: Place) -> Measurement:
    """A row with the fields that it has in common with others."""
    label = row.label or file.common.label
    values: dict[str, Any] = {}
    for each in (file.common, file.by_label.get(label, Measurement()), row):
        values |= each.model_dump(exclude_unset=True)
    if not values.get("label"):
        raise (place / "label").error("is missing")
    try:
        return Measurement.model_validate(
            {key: value for key, value in values.items() if value is not None}
        )
    except ValidationError as error:  # what a CSV file holds is checked as it is read
        raise first_error(error, lambda _: place, Measurement) from None
