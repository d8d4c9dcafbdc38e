"""Tables of measurements in CSV files from anyone: columns are found by their names and units, numbers in either notation."""

import csv
import re
from collections.abc import Iterable, Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from pydantic import ValidationError

from sweeps.errors import UserError
from sweeps.profile import COUNTERS
from sweeps.references.csv_names import (
    FIELDS,
    PER_BATCH,
    PER_IMAGE,
    PER_TOKEN,
    SHARES,
    TEXTS,
    UNITS_OF,
    counts_tokens,
    field_of,
    name_columns,
    unit_of,
)
from sweeps.references.measurement import WHOLE_FIELDS, LatencyUnit, Measurement
from sweeps.suggestions import did_you_mean

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
EMPTY_CELLS = frozenset({"", "-", "–", "—", "n/a", "na", "nan", "none", "null"})
LONGEST_NUMBER = 40
"""Characters of a number; a longer cell is none."""
LONGEST_TEXT = 1000
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?", re.IGNORECASE)
_CHANGE = re.compile(r"\s*\([-+±][\d.,]+\s*[%x×]?\)$")
"""A change against another row behind a number, as reports add it: `82.39 (-46.6%)`."""
_STATED = re.compile(r"(\b([a-z_]+)=(\d+)\b[\s,;]*)")
_AFTER = re.compile(r"\s*(%|x|×|ms|s|us|µs|μs|ns|img/s|im/s|images/s|gb|mb|gib|mib|g|m|b|gmacs|gflops|pp)$", re.IGNORECASE)


class CsvColumns(NamedTuple):
    """The columns of a file, and how they were understood."""

    values: Mapping[str, "np.ndarray[Any, Any]"]
    """By field: numbers (NaN where a cell is empty) or texts (`None`)."""
    others: Mapping[str, Sequence[str]]
    """Cells of the columns that are no field."""
    length: int
    columns: Mapping[str, str]
    """Field of each column that is one."""
    guessed: tuple[str, ...]
    """Columns that were understood by their names."""
    unknown: tuple[str, ...]
    notes: tuple[str, ...] = ()
    """What was assumed beside: decimal commas, units."""
    latency: LatencyUnit | Literal["per_token"] | None = None
    """What the header of the latency states that it is the time of."""
    items: Literal["images", "tokens"] = "images"
    """What the throughput counts."""

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


def read_csv_rows(path: Path, *, mapping: Mapping[str, str] | None = None, guess: bool = True) -> CsvColumns:
    """The rows of a CSV file whose first line names the columns.

    mapping: the field of a column whose name does not show it, or shows another one; `guess`: understand the others by name.
    Raises `UserError` with file, line and column for what is not a table of measurements.
    """
    return read_cells(path, *_lines(path), mapping=mapping, guess=guess)


def read_cells(
    path: Path,
    header: Sequence[str],
    lines: Sequence[int],
    rows: Sequence[Sequence[str]],
    delimiter: str,
    *,
    mapping: Mapping[str, str] | None = None,
    guess: bool = True,
) -> CsvColumns:
    """The same of a table that was cut into cells; `lines`: where each of the rows stands.

    Raises `UserError` as `read_csv_rows` does.
    """
    cells = dict(zip(header, map(list, zip(*rows, strict=True)), strict=True))
    names = name_columns(path, cells, mapping or {}, guess=guess)
    numeric = [name for name, field in names.fields.items() if field not in TEXTS]
    comma = delimiter != "," and _decimal_commas(cells[name] for name in numeric)
    notes = ["commas in numbers are decimal points"] if comma else []
    notes += [
        f"{name!r} is read as GMACs, as papers count FLOPs"
        for name in names.fields
        if names.fields[name] == "gmacs" and "flop" in name.lower()
    ]
    values: dict[str, np.ndarray[Any, Any]] = {}
    for name, field in names.fields.items():
        if field in TEXTS:
            _longest(path, lines, name, cells[name], LONGEST_TEXT)
            found = _texts(cells[name], "" if field != "setting" or not _is_plain_number(cells[name]) else f"{name} ")
            values[field] = found if field not in values else _joined(values[field], found)
        else:
            values[field] = _numbers(path, lines, name, field, cells[name], comma=comma)
            if field == "top1" and _is_share(name, values[field], cells[name]):
                values[field] = np.round(100 * values[field], 10)
                notes.append(f"{name!r} holds shares, read as per cent")
            _check_range(path, lines, field, values[field])
    values |= _conditions_in_labels(values)
    if not any(field in values and not np.isnan(values[field]).all() for field in MEASURED_FIELDS):
        raise UserError(
            f"{path}: no column is a measurement, such as {', '.join(MEASURED_FIELDS[:4])}; its columns are {', '.join(header)}; "
            "name one with --map COLUMN=FIELD"
        )
    rate = next((name for name, field in names.fields.items() if field == "throughput"), "")
    others = {name: cells[name] for name in names.unknown}
    items: Literal["images", "tokens"] = "tokens" if counts_tokens(rate) else "images"
    unit = _latency_unit(names.fields)
    return CsvColumns(values, others, len(rows), names.fields, names.guessed, names.unknown, tuple(notes), unit, items)


def _conditions_in_labels(values: Mapping[str, "np.ndarray[Any, Any]"]) -> Mapping[str, "np.ndarray[Any, Any]"]:
    """Sizes and batches that each label states, and labels without them: `is=448 bs=8 baseline`."""
    labels = values.get("label")
    if labels is None or None in labels:
        return {}
    stated = [{field_of(key): (int(number), whole) for whole, key, number in _STATED.findall(text)} for text in labels]
    found: dict[str, np.ndarray[Any, Any]] = {}
    for field in ("image_size", "tokens", "batch"):
        if field not in values and all(field in each for each in stated):
            found[field] = np.array([float(each[field][0]) for each in stated])
            labels = np.array(
                [text.replace(each[field][1], "").strip() for text, each in zip(labels, stated, strict=True)], dtype=object
            )
    return {**found, "label": labels} if found else {}


def text_of(path: Path) -> str:
    """The text of a file. Raises `UserError`."""
    try:
        return path.read_bytes().decode("utf-8-sig")
    except IsADirectoryError:
        raise UserError(f"{path} is a folder; name a file") from None
    except FileNotFoundError:
        raise UserError(f"{path}: there is no such file") from None
    except UnicodeDecodeError:
        raise UserError(f"{path} is not UTF-8 text; save it in UTF-8") from None
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from None


def _lines(path: Path) -> tuple[list[str], list[int], list[list[str]], str]:
    """Names of the columns; number and cells of each line below that is not empty; the delimiter."""
    text = text_of(path)
    first = next((line for line in StringIO(text) if line.strip()), None)
    if first is None or "\0" in text:
        raise UserError(
            f"{path} is {'empty' if first is None else 'no text'}; a table of measurements has a line of names, then one per row"
        )
    delimiter = max(",;\t|", key=first.count)
    reader = csv.reader(StringIO(text), delimiter=delimiter, skipinitialspace=True)
    lines, rows = [], []
    try:
        for cells in reader:
            if cells and (cells[0].strip() or any(map(str.strip, cells))):
                lines.append(reader.line_num)
                rows.append(cells)
    except csv.Error as error:
        raise UserError(f"{path}:{reader.line_num}: is no CSV: {error}") from None
    if len(rows) < 2:
        raise UserError(f"{path} has no rows below its header")
    names = [name.strip() for name in rows[0]]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise UserError(f"{path}:{lines[0]}: the column {sorted(twice)[0]!r} stands there twice")
    if all(_NUMBER.fullmatch(name) for name in names):
        raise UserError(f"{path}:{lines[0]}: the first line holds numbers; it must name the columns")
    for line, cells in zip(lines, rows, strict=True):
        if len(cells) != len(names):
            raise UserError(
                f"{path}:{line}: has {len(cells)} cells, the header has {len(names)}; quote cells that hold {delimiter!r}"
            )
    return names, lines[1:], rows[1:], delimiter


def _longest(path: Path, lines: Sequence[int], header: str, cells: Sequence[str], most: int) -> None:
    if max(map(len, cells)) > most:
        place = next(place for place, cell in enumerate(cells) if len(cell) > most)
        raise UserError(
            f"{path}:{lines[place]}: {header[:80]}: a cell of {len(cells[place]):,} characters ({cells[place][:12]}…); "
            f"at most {most}"
        )


def _texts(cells: Sequence[str], before: str) -> "np.ndarray[Any, Any]":
    meant = {cell: f"{before}{cell.strip()}" if cell.strip().lower() not in EMPTY_CELLS - {"none"} else None for cell in set(cells)}
    found = np.empty(len(cells), dtype=object)
    found[:] = [meant[cell] for cell in cells]
    return found


def _joined(first: "np.ndarray[Any, Any]", second: "np.ndarray[Any, Any]") -> "np.ndarray[Any, Any]":
    found = np.empty(len(first), dtype=object)
    found[:] = [
        one if other is None else other if one is None else f"{one}, {other}" for one, other in zip(first, second, strict=True)
    ]
    return found


def _is_plain_number(cells: Sequence[str]) -> bool:
    return all(_NUMBER.fullmatch(cell.strip()) for cell in set(cells) if cell.strip())


def _numbers(
    path: Path, lines: Sequence[int], header: str, field: str, cells: Sequence[str], *, comma: bool
) -> "np.ndarray[Any, Any]":
    """What the cells of a column state in the field's own unit; NaN where nothing is stated."""
    import pandas as pd

    _longest(path, lines, header, cells, LONGEST_NUMBER)
    plain = pd.to_numeric(pd.Series(cells, dtype=object), errors="coerce").to_numpy(dtype=float, na_value=np.nan)
    unit = unit_of(header, field)
    found = plain.copy() if unit == 1 else np.round(plain * unit, 10)
    left: list[int] = np.flatnonzero(~np.isfinite(plain)).tolist()
    meant: dict[str, float] = {}
    for place in left:
        cell = cells[place]
        if cell not in meant:
            empty = cell.strip().lower() in EMPTY_CELLS
            meant[cell] = np.nan if empty else _value(cell.strip(), field, header, comma=comma, where=f"{path}:{lines[place]}")
        found[place] = meant[cell]
    if field in WHOLE_FIELDS:
        broken: list[int] = np.flatnonzero(np.isfinite(found) & (found != np.rint(found))).tolist()
        if broken:
            place = broken[0]
            raise UserError(f"{path}:{lines[place]}: {header}: {cells[place]!r} is no whole number, as {field} must be")
    return found


def _is_share(header: str, values: "np.ndarray[Any, Any]", cells: Sequence[str]) -> bool:
    """Whether accuracies are shares of 1."""
    known = values[np.isfinite(values)]
    percent = "%" in header or any("%" in cell for cell in set(cells))
    return not percent and bool(len(known)) and 0 < known.max() <= 1


def _check_range(path: Path, lines: Sequence[int], field: str, values: "np.ndarray[Any, Any]") -> None:
    """Raise `UserError` where a number is none that the field may have: what the smallest and the largest may be, all may."""
    if np.isnan(values).all():
        return
    for place in (int(np.nanargmin(values)), int(np.nanargmax(values))):
        try:
            measurement_at({field: values}, place)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            problem = first["msg"][0].lower() + first["msg"][1:]
            problem += " (per cent need a % behind the number or the name)" if field in SHARES else ""
            raise UserError(f"{path}:{lines[place]}: {field}: {problem}, not {first['input']:g}") from None


def _latency_unit(columns: Mapping[str, str]) -> LatencyUnit | Literal["per_token"] | None:
    name = next((name for name in columns if columns[name] == "latency_ms"), "")
    if PER_TOKEN.search(name):
        return "per_token"
    return "per_image" if PER_IMAGE.search(name) else "per_batch" if PER_BATCH.search(name) else None


def _decimal_commas(columns: Iterable[Sequence[str]]) -> bool:
    """Whether commas in numbers are decimal points: no number has a point, and one with a comma is no group of thousands."""
    cells = [_AFTER.sub("", cell.strip()) for column in columns for cell in set(column)]
    numbers = [cell for cell in cells if re.fullmatch(r"[-+]?[\d.,]+", cell)]
    if any("." in cell for cell in numbers):
        return False
    return any(re.fullmatch(r"[-+]?\d+,\d+", cell) for cell in numbers)


def _value(cell: str, field: str, header: str, *, comma: bool, where: str) -> float:
    """What a cell states in the field's own unit; a unit behind a number goes before that of the header."""
    plain = _CHANGE.sub("", cell.replace("−", "-")).lstrip("≈~ ")
    behind = _AFTER.search(plain)
    text = _AFTER.sub("", plain)
    if comma:
        text = text.replace(",", ".")
    elif re.fullmatch(r"[-+]?\d{1,3}(,\d{3})+(\.\d+)?", text):
        text = text.replace(",", "")
    if not _NUMBER.fullmatch(text) or not np.isfinite(float(text)):
        raise UserError(f"{where}: {header}: {cell!r} is no number; leave the cell empty where nothing was measured")
    own = UNITS_OF.get(field, {}).get(behind[1].lower()) if behind else None
    if behind and own is None and field in UNITS_OF:
        raise UserError(f"{where}: {header}: {cell!r} is no {field}, whose units are {', '.join(UNITS_OF[field])}")
    unit = unit_of(header, field) if own is None else own
    return float(text) if unit == 1 else round(float(text) * unit, 10)


def parse_mapping(pairs: Iterable[str]) -> dict[str, str]:
    """`["tp=throughput"]` as a mapping. Raises `UserError` for what is no pair of a column and a field."""
    found = {}
    for pair in pairs:
        column, equals, field = pair.rpartition("=")
        if not equals or not column:
            raise UserError(f"--map {pair}: write COLUMN=FIELD, such as tp=throughput")
        if field not in FIELDS:
            raise UserError(f"--map {pair}: unknown field {field!r}{did_you_mean(field, FIELDS)}")
        found[column] = field
    return found
