"""Tables of measurements from anyone: CSV and Markdown, whose columns are found by their names and
units, and references, which are published tables as YAML with their source.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from pydantic import Field, ValidationError

from sweeps.errors import UserError, did_you_mean, unknown_word
from sweeps.importers.measurement import (
    ALL_UNITS,
    BARE_BELOW,
    FIELDS,
    HEADER_UNITS,
    SHARES,
    TEXTS,
    UNIT_NEEDED,
    UNITS_OF,
    WHOLE_FIELDS,
    LatencyUnit,
    Measurement,
    ReferenceSet,
    SourceFacts,
    UnclearUnitError,
    field_of,
    name_columns,
    rate_items,
    unit_factor,
    unit_of,
)
from sweeps.language.yaml_reader import Place, file_text, first_error, read, validated
from sweeps.model.profile import COUNTERS

if TYPE_CHECKING:
    import pandas as pd


_TOO_WIDE = re.compile(r"Expected (\d+) fields in line (\d+), saw (\d+)")
"""The message of pandas about a row that is longer than the first."""


class TableError(ValueError):
    """Text that is no table, and its row, from 1, where that is known."""

    def __init__(self, problem: str, row: int | None = None) -> None:
        super().__init__(problem)
        self.row = row


def parse_cells(text: str, delimiter: str) -> "pd.DataFrame":
    """The cells of a text without the space around them; the index is the number of the line, from
    1.

    The first row holds the names. Empty rows are left out; cells that a row lacks at its end are
    NaN. delimiter: one character, or a regular expression, with which quotation marks have no
    meaning. Raises `TableError` for a row that is longer than the first.
    """
    import pandas as pd

    try:
        cells = pd.read_csv(
            StringIO(text),
            sep=delimiter,
            header=None,
            dtype=str,
            na_filter=False,
            skipinitialspace=True,
            skip_blank_lines=False,
            engine="python",  # the other one fills rows that are cut off with empty cells
        )
    except pd.errors.ParserError as error:
        wide = _TOO_WIDE.search(str(error))
        if wide is None:
            raise TableError(f"is no table: {error}") from None
        raise TableError(f"has {wide[3]} cells, the header has {wide[1]}", int(wide[2])) from None
    cells.index += 1
    stripped: pd.DataFrame = cells.apply(lambda column: column.str.strip())
    return stripped.loc[(stripped.fillna("") != "").any(axis=1)]


MEASURED_FIELDS = (
    "latency_ms",
    "latency_p95_ms",
    "latency_p99_ms",
    "throughput",
    "kernel_ms",
    "device_ms",
    "kernels",
    "top1",
    "perplexity",
    "speedup",
    "latency_change",
    "memory_mb",
    *COUNTERS,
)
"""Fields of which a table must have one, else there is nothing to check."""
EMPTY_CELLS = frozenset({"", "-", "--", "–", "—", "n/a", "n.a.", "na", "nan", "none", "null"})
_FAILED = re.compile("(?i)(.* )?(oom|out of memory|err(or)?|fail(ed|ure)?|timed? ?out|crash(ed)?)")
"""What stands instead of a number where nothing could be measured."""
_UNIT_COLUMN = re.compile(r"(?i)(\w+[ _])?units?")
LONGEST_NUMBER = 40
"""Characters of a number; a longer cell is none."""
LONGEST_TEXT = 1000
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?", re.IGNORECASE)
_CHANGE = re.compile(r"\s*\([-+±][\d.,]+\s*[%x×]?\)$")
"""A change against another row behind a number, as reports add it: `82.39 (-46.6%)`."""
_STATED = re.compile(r"(\b([a-z_]+)=(\d+)\b[\s,;]*)")
_AFTER = re.compile(r"(?i)(?<=[\d.])\s*([a-zµμ%×][a-zµμ%×/. ]*)$")
"""A unit behind a number."""


class CsvColumns(NamedTuple):
    """The columns of a file, and how they were understood."""

    values: Mapping[str, "np.ndarray[Any, Any]"]
    """By field: numbers (NaN where a cell is empty) or texts (`None`)."""
    others: Mapping[str, Sequence[str]]
    """Cells of the columns that are no field."""
    length: int
    columns: Mapping[str, str]
    """Field of each column that is one."""
    unknown: tuple[str, ...]
    notes: tuple[str, ...] = ()
    """What was assumed beside: decimal commas, units."""
    latency: LatencyUnit | Literal["per_token"] | None = None
    """What the header of the latency states that it is the time of."""
    items: Literal["images", "tokens"] = "images"
    """What the throughput counts."""
    unclear: frozenset[str] = frozenset()
    """Fields whose unit is not stated."""
    median: bool = False
    """Whether the latency is stated to be a median."""

    @property
    def rows(self) -> tuple[Measurement, ...]:
        """The rows one by one."""
        return tuple(measurement_at(self.values, place) for place in range(self.length))


def measurement_at(values: Mapping[str, "np.ndarray[Any, Any]"], place: int) -> Measurement:
    """One row of a table in columns."""
    found: dict[str, Any] = {}
    for field, column in values.items():
        value = column[place]
        if value is None or (isinstance(value, float) and np.isnan(value)):
            continue
        if field in COUNTERS:
            found.setdefault("counters", {})[field] = float(value)
        else:
            found[field] = int(value) if field in WHOLE_FIELDS else value
    return Measurement.model_validate(found)


def read_csv_rows(
    path: Path, *, mapping: Mapping[str, str] | None = None, guess: bool = True
) -> CsvColumns:
    """The rows of a CSV file whose first line names the columns.

    mapping: the field of a column whose name does not show it, or shows another one; `guess`:
    understand the others by name. A comma in a number is a decimal point only where `;` separates
    the cells and no number has a point. Raises `UserError` with file, line and column for what is
    not a table of measurements.
    """
    whole = file_text(path)
    text = whole.lstrip("\r\n ")
    if not text or "\0" in text:
        found = "no text" if text else "empty"
        raise UserError(
            f"{path} is {found}; a table of measurements has a line of names, then one per row"
        )
    delimiter = max(",;\t|", key=text.split("\n", 1)[0].count)
    cells = named_cells(path, text, delimiter, whole.count("\n", 0, len(whole) - len(text)))
    if all(map(_NUMBER.fullmatch, cells.columns)):
        raise UserError(f"{path}: its first line holds numbers; it must name the columns")
    present = cells.notna().sum(axis=1)
    if present.min() < len(cells.columns):
        place = int(present.argmin())
        raise UserError(
            f"{path}:{cells.index[place]}: has {present.iloc[place]} cells, the header has"
            f" {len(cells.columns)}"
        )
    return read_cells(path, cells, comma=delimiter == ";", mapping=mapping, guess=guess)


def named_cells(path: Path, text: str, delimiter: str, above: int) -> "pd.DataFrame":
    """The cells of a table below the row of names, by column and by line of the file; `above`:
    lines of the file before `text`.

    Empty rows are left out; cells that a row lacks at its end are NaN. Raises `UserError`.
    """
    try:
        cells = parse_cells(text, delimiter)
    except TableError as error:
        where = path if error.row is None else f"{path}:{above + error.row}"
        raise UserError(f"{where}: {error}; quote or escape separators inside cells") from None
    cells.index += above
    names = cells.iloc[0].tolist()
    twice = sorted(name for name in names if names.count(name) > 1)
    if twice:
        raise UserError(f"{path}:{above + 1}: the column {twice[0]!r} stands there twice")
    if len(cells) < 2:
        raise UserError(f"{path}:{above + 1}: has no rows below its header")
    return cells.iloc[1:].set_axis(names, axis=1)


def read_cells(
    path: Path,
    cells: "pd.DataFrame",
    *,
    comma: bool = False,
    mapping: Mapping[str, str] | None = None,
    guess: bool = True,
) -> CsvColumns:
    """The same of a table in cells; `comma`: commas in numbers are decimal points, unless a number
    has a point.

    Raises `UserError` as `read_csv_rows` does.
    """
    columns = {str(name): column for name, column in cells.items()}
    mapping = mapping or {}
    names = name_columns(path, columns, mapping, guess=guess)
    numeric = [columns[name] for name, field in names.fields.items() if field not in TEXTS]
    written = "".join(cell for column in numeric for cell in column)
    comma = comma and "," in written and "." not in written
    notes = ["commas in numbers are decimal points"] if comma else []
    values: dict[str, np.ndarray[Any, Any]] = {}
    fields, left_out, unclear = dict(names.fields), list(names.unknown), set[str]()
    units: Any = next((columns[name] for name in left_out if _UNIT_COLUMN.fullmatch(name)), None)
    in_column = set() if units is None else {*units.str.lower()} - EMPTY_CELLS
    for name, field in names.fields.items():
        column = columns[name]
        _check_length(path, column, LONGEST_TEXT if field in TEXTS else LONGEST_NUMBER)
        if field in TEXTS:
            found = _texts(column, field)
            values[field] = found if field not in values else _joined(values[field], found)
            continue
        unit = unit_of(name, field)
        factors = {unit_factor(text, field) for text in in_column} - {None}
        if (unit is None and factors) or (field == "throughput" and in_column - ALL_UNITS):
            column = column.mask(column.str[-1:].str.isdigit(), column + " " + units)
        elif field in UNIT_NEEDED and factors - {unit}:
            unit = np.nan
        if name in mapping:
            unit = unit or 1.0
        try:
            values[field], bare = _numbers(path, column, field, unit, comma=comma, notes=notes)
            if bare and np.nanmax(values[field]) >= BARE_BELOW.get(field, 0):
                unclear.add(field)
                notes.append(
                    f"{name!r} has no known unit, such as {next(iter(UNITS_OF[field]))}: only its"
                    f" ratios are compared; --map '{name}={field}' states that of the field"
                )
            if field == "top1" and _is_share(values[field], column):
                values[field] = np.round(100 * values[field], 10)
                notes.append(f"{name!r} holds shares, read as per cent")
            _check_range(path, column, field, values[field])
        except UnclearUnitError as error:
            if field not in (*MEASURED_FIELDS, *UNIT_NEEDED):
                raise
            notes.append(f"{error}: the column is not used")
            left_out.append(name)
            del fields[name]
    names_of = {field: name for name, field in fields.items()}
    if "flop" in names_of.get("gmacs", "").lower() and "gmacs" not in unclear:
        notes.append(f"{names_of['gmacs']!r} is read as GMACs, as papers count FLOPs")
    values |= _conditions_in_labels(values)
    if not any(field in values and not np.isnan(values[field]).all() for field in MEASURED_FIELDS):
        raise UserError(
            f"{path}: no column is a measurement, such as {', '.join(MEASURED_FIELDS[:4])}; its"
            f" columns are {', '.join(columns)}; name one with --map COLUMN=FIELD"
            f"{''.join(f'; {note}' for note in notes)}"
        )
    rate, latency = names_of.get("throughput", ""), names_of.get("latency_ms", "")
    others = {name: columns[name].tolist() for name in left_out}
    items: Literal["images", "tokens"] = "tokens" if rate_items(rate) == "tokens" else "images"
    return CsvColumns(
        values,
        others,
        len(cells),
        fields,
        tuple(left_out),
        tuple(notes),
        next((unit for unit, form in HEADER_UNITS.items() if form.search(latency)), None),
        items,
        frozenset(unclear),
        re.search("(?i)median|p50|50th", latency) is not None,
    )


def _conditions_in_labels(
    values: Mapping[str, "np.ndarray[Any, Any]"],
) -> Mapping[str, "np.ndarray[Any, Any]"]:
    """Sizes and batches that each label states, and labels without them: `is=448 bs=8 baseline`."""
    import pandas as pd

    codes, labels = pd.factorize(values.get("label", np.array([None], dtype=object)))
    if (codes < 0).any():
        return {}
    stated = [
        {field_of(key): (int(number), whole) for whole, key, number in _STATED.findall(text)}
        for text in labels
    ]
    found: dict[str, np.ndarray[Any, Any]] = {}
    for field in ("image_size", "tokens", "batch"):
        if field not in values and all(field in each for each in stated):
            found[field] = np.array([float(each[field][0]) for each in stated])[codes]
            labels = np.array(
                [
                    text.replace(each[field][1], "").strip()
                    for text, each in zip(labels, stated, strict=True)
                ],
                dtype=object,
            )
    return {**found, "label": labels[codes]} if found else {}


def _check_length(path: Path, cells: "pd.Series[str]", most: int) -> None:
    length = cells.str.len()
    if length.max() > most:
        place = int(length.argmax())
        raise UserError(
            f"{path}:{cells.index[place]}: {str(cells.name)[:80]}: a cell of {length.iloc[place]:,}"
            f" characters ({cells.iloc[place][:12]}…); at most {most}"
        )


def _texts(cells: "pd.Series[str]", field: str) -> "np.ndarray[Any, Any]":
    """The texts of a column; a setting in numbers has the column's name in front."""
    import pandas as pd

    codes, texts = pd.factorize(cells)
    numbers = field == "setting" and all(_NUMBER.fullmatch(text) for text in texts if text)
    before = f"{cells.name} " if numbers else ""
    empty = EMPTY_CELLS - {"none"}
    return np.array(
        [None if text.lower() in empty else before + text for text in texts], dtype=object
    )[codes]


def _joined(
    first: "np.ndarray[Any, Any]", second: "np.ndarray[Any, Any]"
) -> "np.ndarray[Any, Any]":
    found = np.empty(len(first), dtype=object)
    found[:] = [
        one if other is None else other if one is None else f"{one}, {other}"
        for one, other in zip(first, second, strict=True)
    ]
    return found


def _numbers(
    path: Path,
    cells: "pd.Series[str]",
    field: str,
    unit: float | None,
    *,
    comma: bool,
    notes: list[str],
) -> "tuple[np.ndarray[Any, Any], bool]":
    """What the cells of a column state in the field's own unit, NaN where nothing is stated; and
    whether there are numbers of which neither the cell nor `unit` states one.

    Raises `UnclearUnitError` for another field's unit, and for one behind some numbers alone.
    """
    import pandas as pd

    header = str(cells.name)
    if np.isnan(unit or 0):
        raise UnclearUnitError(f"{header!r} has a unit that is none of {field}")
    plain = pd.to_numeric(cells, errors="coerce").to_numpy(dtype=float)
    factor = unit or 1.0
    found = plain.copy() if factor == 1 else np.round(plain * factor, 10)
    left = cells[~np.isfinite(plain)]  # cells with units or other marks, each of which is read once
    meant = {
        cell: _value(cell, field, header, factor, comma=comma, where=f"{path}:{line}")
        for line, cell in left.drop_duplicates().items()
    }
    found[~np.isfinite(plain)] = [meant[cell] for cell in left]
    notes += [f"{header!r}: {cell} is a missing value" for cell in meant if _FAILED.fullmatch(cell)]
    marked = {_AFTER.search(cell) is None for cell in meant if np.isfinite(meant[cell])}
    bare = unit is None and (np.isfinite(plain).any() or True in marked)
    if bare and (False in marked) != (field == "latency_change"):
        raise UnclearUnitError(f"{header!r} has numbers without a unit")
    broken = np.isfinite(found) & (found != np.rint(found))
    if field in WHOLE_FIELDS and broken.any():
        place = int(broken.argmax())
        raise UserError(
            f"{path}:{cells.index[place]}: {header}: {cells.iloc[place]!r} is no whole number, as"
            f" {field} must be"
        )
    return found, bare


def _is_share(values: "np.ndarray[Any, Any]", cells: "pd.Series[str]") -> bool:
    """Whether accuracies are shares of 1."""
    known = values[np.isfinite(values)]
    percent = "%" in str(cells.name) or cells.str.contains("%", regex=False).any()
    return not percent and bool(len(known)) and 0 < known.max() <= 1


def _check_range(
    path: Path, cells: "pd.Series[str]", field: str, values: "np.ndarray[Any, Any]"
) -> None:
    """Raise `UserError` where a number is none that the field may have: what the smallest and the
    largest may be, all may.
    """
    if np.isnan(values).all():
        return
    for place in (int(np.nanargmin(values)), int(np.nanargmax(values))):
        try:
            measurement_at({field: values}, place)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            problem = first["msg"][0].lower() + first["msg"][1:]
            problem += (
                " (per cent need a % behind the number or the name)" if field in SHARES else ""
            )
            raise UserError(
                f"{path}:{cells.index[place]}: {field}: {problem}, not {first['input']:g}"
            ) from None


def _value(cell: str, field: str, header: str, unit: float, *, comma: bool, where: str) -> float:
    """What a cell states in the field's own unit; a unit behind a number goes before that of the
    header.
    """
    if cell.lower() in EMPTY_CELLS or _FAILED.fullmatch(cell):
        return np.nan
    plain = _CHANGE.sub("", cell.replace("−", "-")).lstrip("≈~ ")
    behind = _AFTER.search(plain)
    text = _AFTER.sub("", plain)
    if comma:
        text = text.replace(",", ".")
    elif re.fullmatch(r"[-+]?\d{1,3}(,\d{3})+(\.\d+)?", text):
        text = text.replace(",", "")
    if not _NUMBER.fullmatch(text) or not np.isfinite(float(text)):
        right = (
            "write a decimal point"
            if "," in text
            else "leave the cell empty where nothing was measured"
        )
        raise UserError(f"{where}: {header}: {cell!r} is no number; {right}")
    own = unit_factor(behind[1], field) if behind else unit
    if own is None:
        raise UnclearUnitError(
            f"{where}: {header}: {cell!r} is no {field}, whose units are"
            f" {', '.join(UNITS_OF.get(field, ())) or 'images/s (of rates) or none (of counts)'}"
        )
    return float(text) if own == 1 else round(float(text) * own, 10)


def parse_mapping(pairs: Iterable[str]) -> dict[str, str]:
    """`["tp=throughput"]` as a mapping. Raises `UserError` for what is no pair of a column and a
    field.
    """
    found = {}
    for pair in pairs:
        column, equals, field = pair.rpartition("=")
        if not equals or not column:
            raise UserError(f"--map {pair}: write COLUMN=FIELD, such as tp=throughput")
        if field not in FIELDS:
            raise UserError(f"--map {pair}: unknown field {field!r}{did_you_mean(field, FIELDS)}")
        found[column] = field
    return found


_RULE = re.compile(r"\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*")
"""The line between header and rows, which makes lines with pipes a table."""
_BAR = r"(?<!\\)\|"
_MARKUP = re.compile(r"\*\*|__|`")


def read_markdown_tables(
    path: Path, *, mapping: Mapping[str, str] | None = None
) -> Iterator[tuple[int, CsvColumns | UserError]]:
    """The tables of a Markdown file, each with the line of its header; an error for one that has no
    measurements.

    Emphasis and code marks in cells are dropped, cells that are missing at the end of a row are
    empty. `mapping` as in `read_csv_rows`. Raises `UserError` for a file that cannot be read or has
    no table.
    """
    lines = file_text(path).splitlines()
    tables = 0
    for place in range(1, len(lines)):
        if "|" in lines[place] and "|" in lines[place - 1] and _RULE.fullmatch(lines[place]):
            tables += 1
            try:
                yield place, _table_at(path, lines, place, mapping)
            except UserError as error:
                yield place, error
    if not tables:
        raise UserError(
            f"{path} has no table: a line of names, one of dashes, and rows, all with | between"
            " cells"
        )


def _table_at(
    path: Path, lines: list[str], rule: int, mapping: Mapping[str, str] | None
) -> CsvColumns:
    """The table whose line of dashes has this index."""
    end = next(
        (place for place in range(rule + 1, len(lines)) if "|" not in lines[place]), len(lines)
    )
    rows = [lines[rule - 1], "", *lines[rule + 1 : end]]  # the empty row stands for the dashes
    cells = (
        named_cells(path, "\n".join(map(_bare, rows)), _BAR, rule - 1)
        .fillna("")
        .replace(r"\\\|", "|", regex=True)
    )
    cells.columns = cells.columns.str.replace("\\|", "|", regex=False)
    return read_cells(path, cells, mapping=mapping)


def _bare(line: str) -> str:
    """A line without markup and without the bars around it."""
    return _MARKUP.sub("", re.sub(rf"{_BAR}$", "", line.strip().removeprefix("|")))


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
