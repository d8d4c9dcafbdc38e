"""Kernels in what `ncu --csv` prints: raw page (a column per metric), details page (a row per metric), summaries per kernel."""

import csv
import io
import re
from collections.abc import Iterable, Sequence
from math import inf
from typing import NamedTuple

from sweeps.profile import COUNTERS
from sweeps.traces.decimal_mark import DecimalMark, NumberCell, find_mark, parse_number
from sweeps.traces.device_trace import Mark, TraceError, read_marks

METRIC_NAMES = {
    "sm_throughput": (
        "sm__throughput.avg.pct_of_peak_sustained_elapsed",
        "Compute (SM) Throughput",
        "Compute (SM) [%]",
        "SM [%]",
        "SOL SM",
    ),
    "memory_throughput": (
        "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
        "Memory Throughput",
        "Memory [%]",
        "SOL Memory",
    ),
    "achieved_occupancy": ("sm__warps_active.avg.pct_of_peak_sustained_active", "Achieved Occupancy"),
    "l1_hit_rate": ("l1tex__t_sector_hit_rate.pct", "L1/TEX Hit Rate"),
    "l2_hit_rate": ("lts__t_sector_hit_rate.pct", "L2 Hit Rate"),
}
"""Counters by the names that the raw page and versions of the details page have for them."""
DURATION_NAMES = ("gpu__time_duration.sum", "Duration")
DEVICE_NAME = "device__attribute_display_name"
RANGES_OF_RUNNER = "breakeven:"
"""In the column of ranges, which `ncu --nvtx` adds."""
SECONDS_PER_UNIT = {
    **dict.fromkeys(("ns", "nsecond", "nanosecond"), 1e-9),
    **dict.fromkeys(("us", "µs", "μs", "usecond", "microsecond"), 1e-6),
    **dict.fromkeys(("ms", "msecond", "millisecond"), 1e-3),
    **dict.fromkeys(("s", "sec", "second"), 1.0),
}
PERCENT = frozenset({"%", "pct", "percent"})
KERNEL, NAME, UNIT, VALUE = "Kernel Name", "Metric Name", "Metric Unit", "Metric Value"
AVERAGE, RUNS = "Average", "Invocations"
"""Columns of `--print-summary`: a row for each kernel, launch shape and metric, with the mean over so many launches."""
SUMMARY_KEY = ("Block Size", "Grid Size", "Context", "Stream", "Device")
NO_CELL = re.compile(r"==[A-Z]+==")
"""Lines of ncu itself among those of the table."""
HEADING_WITH_UNIT = re.compile(r"(.+__.+?) \[?\(?([^()\[\]]+)\)?\]?")
EXPECTED = "expected what `ncu --csv --page raw` (or `--page details`, or `--print-summary per-kernel`) prints"


class NcuKernel(NamedTuple):
    """One profiled launch of a kernel, or a summary of several."""

    name: str
    seconds: float
    counters: dict[str, float]
    ranges: str = ""
    """Ranges of the runner in which it was launched, where the file has them."""
    runs: int = 1
    """Launches that it stands for, of which all numbers are means."""


class NcuReport(NamedTuple):
    """What a file holds, in the order of launch."""

    kernels: tuple[NcuKernel, ...]
    mark: Mark
    device_name: str | None
    missing: tuple[str, ...]
    """Counters that no kernel has."""


class _Cell(NamedTuple):
    """One metric of one kernel, as text."""

    kernel: int
    metric: str
    unit: str
    text: str


class _Table(NamedTuple):
    """The table in either layout as one list of cells."""

    names: list[str]
    """Kernels by number."""
    ranges: list[str]
    """The ranges of each kernel."""
    cells: list[_Cell]
    numbers: list[NumberCell]
    """All that may be numbers, which decide on the decimal mark."""
    device_name: str | None = None
    runs: Sequence[str] = ()
    """Of a summary the launches of each kernel."""


def read_ncu(text: str) -> NcuReport:
    """The kernels in `text`. Raises `TraceError` that names what was found and what was expected."""
    header, rows = _rows(text)
    table = _long(header, rows) if NAME in header else _wide(header, rows)
    if not table.names:
        raise TraceError("it has the heading of a table of ncu and no kernels below; ncu profiles none that its filters leave out")
    mark = find_mark(table.numbers)
    durations: dict[int, float] = {}
    counters: list[dict[str, float]] = [{} for _ in table.names]
    found: dict[str, None] = {}
    for cell in table.cells:
        found.setdefault(cell.metric)
        if cell.metric in DURATION_NAMES:
            seconds = _value(cell, mark, table)
            if seconds is not None:
                durations.setdefault(cell.kernel, seconds * _seconds(cell))
        elif (counter := _counter(cell)) and (value := _value(cell, mark, table)) is not None:
            counters[cell.kernel].setdefault(counter, value)
    _require(table, durations, counters, list(found))
    runs = [_runs(text, mark) for text in table.runs] or [1] * len(table.names)
    kernels = tuple(
        NcuKernel(name, durations[place], counters[place], table.ranges[place], runs[place])
        for place, name in enumerate(table.names)
    )
    missing = tuple(name for name in COUNTERS if not any(name in each for each in counters))
    return NcuReport(kernels, read_marks([text]), table.device_name, missing)


def _rows(text: str) -> tuple[list[str], list[list[str]]]:
    """The heading and the rows below it, without lines of ncu and of the program in front."""
    lines = [line for line in text.lstrip("\ufeff").splitlines() if not NO_CELL.match(line)]
    for place, line in enumerate(lines):
        if KERNEL not in line:
            continue
        for separator in (",", ";", "\t"):
            header = [cell.strip() for cell in next(csv.reader([line], delimiter=separator))]
            if KERNEL in header:
                below = csv.reader(io.StringIO("\n".join(lines[place + 1 :])), delimiter=separator)
                rows = [row for row in below if any(cell.strip() for cell in row)]
                if "ID" in header or RUNS in header:  # a row that repeats another stands there twice
                    rows = [list(row) for row in dict.fromkeys(map(tuple, rows))]
                _check_widths(header, rows)
                return header, rows
    first = next((line.strip() for line in lines if line.strip()), "")
    found = f"it has no heading with {KERNEL!r}; {EXPECTED}, found {first[:80]!r}"
    raise TraceError(found if first else f"it is empty; {EXPECTED}")


def _check_widths(header: list[str], rows: Sequence[list[str]]) -> None:
    """Raise `TraceError` for rows that are wider than the heading, or end before the last metric; fill up others."""
    needed = next((header.index(name) + 1 for name in (VALUE, AVERAGE) if name in header), len(header))
    for number, row in enumerate(rows, 1):
        if len(row) > len(header) and any(cell.strip() for cell in row[len(header) :]):
            raise TraceError(
                f"row {number} below the heading has {len(row)} cells, the heading {len(header)}: are these decimal commas without "
                "quotation marks? Export it again with LC_ALL=C"
            )
        if len(row) < needed:
            where = f"row {number} below the heading ends after {len(row)} of {needed} cells"
            raise TraceError(f"{where}: the file is cut off; export it again")


def _long(header: list[str], rows: Iterable[list[str]]) -> _Table:
    """The details page and summaries: a row for each metric of each kernel."""
    summary = RUNS in header and VALUE not in header
    value = AVERAGE if summary else VALUE
    lacking = [name for name in (UNIT, value) if name not in header]
    if lacking:
        raise TraceError(f"its heading has {NAME!r} and no {' and no '.join(map(repr, lacking))}; {EXPECTED}")
    place = {name: header.index(name) for name in (KERNEL, NAME, UNIT, value)}
    own = [header.index(name) for name in ("ID", "Process ID", KERNEL, *(SUMMARY_KEY if summary else ())) if name in header]
    runs: list[str] = []
    table = _Table([], [], [], [], runs=runs)
    known: dict[tuple[str, ...], int] = {}
    for row in rows:
        key = tuple(row[index] for index in own)
        if key not in known:
            known[key] = len(table.names)
            table.names.append(row[place[KERNEL]])
            table.ranges.append(_ranges(row))
            runs += [row[header.index(RUNS)]] if summary else []
        metric = row[place[NAME]].strip()
        if metric:
            cell = _Cell(known[key], metric, row[place[UNIT]].strip(), row[place[value]])
            table.cells.append(cell)
            table.numbers.append(NumberCell(cell.text, cell.unit in PERCENT))
    if summary:
        table.numbers.extend(map(NumberCell, runs))
        if len(set(table.cells)) > len({cell[:3] for cell in table.cells}):
            raise TraceError(f"its summary has two values of one metric of one kernel; {EXPECTED}")
    elif "ID" not in header and len(table.cells) > len({cell[:2] for cell in table.cells}):
        raise TraceError(f"its rows have no column 'ID', so that the launches of a kernel cannot be distinguished; {EXPECTED}")
    return table


def _wide(header: list[str], rows: list[list[str]]) -> _Table:
    """The raw page: a column for each metric, with a row of units below the heading."""
    kernel = header.index(KERNEL)
    units = [""] * len(header)
    if rows and not rows[0][kernel].strip():
        units = [cell.strip() for cell in rows.pop(0)]
    columns = []
    for place, heading in enumerate(header):
        split = HEADING_WITH_UNIT.fullmatch(heading)
        metric, unit = split.groups() if split and not units[place] else (heading, units[place])
        if "__" in metric and not metric.startswith("device__attribute"):
            columns.append((place, metric, unit))
    table = _Table([], [], [], [], _device_name(header, rows))
    for number, row in enumerate(rows):
        table.names.append(row[kernel])
        table.ranges.append(_ranges(row))
        values: dict[str, str] = {}
        for place, metric, unit in columns:
            if values.setdefault(metric, row[place]) != row[place] and (metric in DURATION_NAMES or _is_counter(metric)):
                both = f"{values[metric]!r} and {row[place]!r}"
                raise TraceError(f"it has two columns {metric!r} that differ in row {number + 1}: {both}")
            table.cells.append(_Cell(number, metric, unit, row[place]))
            table.numbers.append(NumberCell(row[place], unit in PERCENT))
    return table


def _ranges(row: Sequence[str]) -> str:
    return " ".join(cell for cell in row if RANGES_OF_RUNNER in cell)


def _device_name(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str | None:
    if DEVICE_NAME not in header:
        return None
    names = {row[header.index(DEVICE_NAME)].strip() for row in rows} - {""}
    return names.pop() if len(names) == 1 else None


def _is_counter(metric: str) -> bool:
    return any(metric in names for names in METRIC_NAMES.values())


def _counter(cell: _Cell) -> str | None:
    """The counter that a cell holds. Names such as `Memory Throughput` also stand for bytes per second, which is none."""
    for counter, names in METRIC_NAMES.items():
        if cell.metric in names and (cell.unit in PERCENT or (not cell.unit and "__" in cell.metric)):
            return counter
    return None


def _value(cell: _Cell, mark: DecimalMark, table: _Table) -> float | None:
    try:
        value = parse_number(cell.text, mark)
        wrong = "" if value is None or 0 <= value < inf else f"{cell.text!r} is below zero or infinite"
    except ValueError as error:
        value, wrong = None, str(error)
    if wrong:
        raise TraceError(f"{cell.metric!r} of kernel {cell.kernel + 1} ({table.names[cell.kernel][:60]}): {wrong}")
    return value


def _seconds(cell: _Cell) -> float:
    """The unit of a duration in seconds."""
    unit = cell.unit.strip("[]() ")
    if unit not in SECONDS_PER_UNIT:
        found = repr(cell.unit) if cell.unit else "none (is the row of units below the heading missing?)"
        raise TraceError(f"the unit of {cell.metric!r} is {found}; expected one of {', '.join(SECONDS_PER_UNIT)}")
    return SECONDS_PER_UNIT[unit]


def _runs(text: str, mark: DecimalMark) -> int:
    """How many launches a row of a summary stands for."""
    try:
        found = parse_number(text, mark)
    except ValueError:
        found = None
    if found is None or found != int(found) or not 0 < found < 2**31:
        raise TraceError(f"its column {RUNS!r} holds {text[:40]!r}; expected a whole number of launches")
    return int(found)


def _require(table: _Table, durations: dict[int, float], counters: Iterable[dict[str, float]], found: Sequence[str]) -> None:
    """Raise `TraceError` if there is nothing to weight, or nothing to show."""
    if not any(counters):
        wanted = ", ".join(names[0] for names in METRIC_NAMES.values())
        raise TraceError(f"it has none of the metrics {wanted} (or their names on the details page); found {_shortened(found)}")
    without = [index for index in range(len(table.names)) if index not in durations]
    if without:
        which = "any kernel" if len(without) == len(table.names) else f"kernel {without[0] + 1} ({table.names[without[0]][:60]})"
        names = " or ".join(map(repr, DURATION_NAMES))
        raise TraceError(f"it has no duration of {which}, by which means are weighted: expected {names}, found {_shortened(found)}")


def _shortened(found: Sequence[str]) -> str:
    return ", ".join(found[:8]) + (f" and {len(found) - 8} more" if len(found) > 8 else "") if found else "no metric"
