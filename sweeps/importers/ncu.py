"""Kernels in what `ncu --csv` prints: raw page (a column per metric), details page (a row per
metric), summaries per kernel.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sweeps.importers.tables import TableError, parse_cells
from sweeps.importers.traces import (
    FORWARD_RANGE,
    PREFILL_RANGE,
    ImportedProfile,
    Mark,
    TraceError,
    by_phase,
    read_marks,
    weighted_means,
)
from sweeps.model.profile import COUNTERS, Activities, ArmProfile, Phase

if TYPE_CHECKING:
    import pandas as pd


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
    "achieved_occupancy": (
        "sm__warps_active.avg.pct_of_peak_sustained_active",
        "Achieved Occupancy",
    ),
    "l1_hit_rate": ("l1tex__t_sector_hit_rate.pct", "L1/TEX Hit Rate"),
    "l2_hit_rate": ("lts__t_sector_hit_rate.pct", "L2 Hit Rate"),
}
"""Counters by the names that the raw page and versions of the details page have for them."""
DURATION_NAMES = ("gpu__time_duration.sum", "Duration")
_SECONDS = "seconds"
_FIELD_OF = {
    **dict.fromkeys(DURATION_NAMES, _SECONDS),
    **{name: counter for counter, names in METRIC_NAMES.items() for name in names},
}
"""What is read, by the names of metrics."""
DEVICE_NAME = "device__attribute_display_name"
RANGES_OF_RUNNER = "breakeven:"
"""In the column of ranges, which `ncu --nvtx` adds."""
SECONDS_PER_UNIT = {
    **dict.fromkeys(("ns", "nsecond", "nanosecond"), 1e-9),
    **dict.fromkeys(("us", "µs", "μs", "usecond", "microsecond"), 1e-6),
    **dict.fromkeys(("ms", "msecond", "millisecond"), 1e-3),
    **dict.fromkeys(("s", "sec", "second"), 1.0),
}
PERCENT = ("%", "pct", "percent")
NOTHING = ("", "n/a", "na", "nan", "-nan", "inf", "-inf", "(null)", "null", "-")
"""Cells without a number."""
GROUPED = r"\d{1,3}(,\d{3})+(\.\d+)?"
"""A number with groups of thousands, as the locale of the United States writes it."""
LAUNCHES = r"[1-9]\d{0,2}(,?\d{3}){0,2}"
KERNEL, NAME, UNIT, VALUE = "Kernel Name", "Metric Name", "Metric Unit", "Metric Value"
AVERAGE, RUNS = "Average", "Invocations"
"""Columns of `--print-summary`: a row for each kernel, launch shape and metric, with the mean over
so many launches."""
SUMMARY_KEY = ("Block Size", "Grid Size", "Context", "Stream", "Device")
_HEADING = re.compile(r"""(^|[,;\t])\s*"?Kernel Name"?\s*([,;\t]|$)""")
NO_CELL = re.compile(r"==[A-Z]+==")
"""Lines of ncu itself among those of the table."""
HEADING_WITH_UNIT = re.compile(r"(.+__.+?) \[?\(?([^()\[\]]+)\)?\]?")
EXPECTED = (
    "expected what `ncu --csv --page raw` (or `--page details`, or `--print-summary per-kernel`)"
    " prints"
)


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


class _Table(NamedTuple):
    """The table in either layout."""

    launches: "pd.DataFrame"
    """The first row of each kernel."""
    cells: "pd.DataFrame"
    """A row for each metric of each kernel: number of the kernel, metric, unit, text."""
    metrics: list[str]
    """All that the file has."""


def read_ncu(text: str) -> NcuReport:
    """The kernels in `text`. Raises `TraceError` that names what was found and what was
    expected.
    """
    header, rows = _rows(text)
    table = _long(header, rows) if NAME in header else _wide(header, rows)
    if table.launches.empty:
        raise TraceError(
            "it has the heading of a table of ncu and no kernels below; ncu profiles none that its"
            " filters leave out"
        )
    names = table.launches[header.index(KERNEL)].tolist()
    values = _values(table, names)
    stated = [zip(COUNTERS, row, strict=True) for row in values[list(COUNTERS)].to_numpy().tolist()]
    counters = [{name: value for name, value in pairs if np.isfinite(value)} for pairs in stated]
    ranges = [
        " ".join(cell for cell in row if RANGES_OF_RUNNER in cell)
        for row in table.launches.to_numpy()
    ]
    runs = _runs(table.launches[header.index(RUNS)]) if _is_summary(header) else [1] * len(names)
    kernels = tuple(map(NcuKernel, names, values[_SECONDS].tolist(), counters, ranges, runs))
    devices = set(rows[header.index(DEVICE_NAME)]) - {""} if DEVICE_NAME in header else set()
    missing = tuple(name for name in COUNTERS if values[name].isna().all())
    return NcuReport(
        kernels, read_marks([text]), devices.pop() if len(devices) == 1 else None, missing
    )


def _rows(text: str) -> "tuple[list[str], pd.DataFrame]":
    """The heading, and the rows below it by place of the column, without lines of ncu and of the
    program in front.
    """
    lines = [line for line in text.lstrip("\ufeff").splitlines() if not NO_CELL.match(line)]
    start = next((place for place, line in enumerate(lines) if _HEADING.search(line)), None)
    if start is None:
        first = next((line.strip() for line in lines if line.strip()), "")
        found = f"it has no heading with {KERNEL!r}; {EXPECTED}, found {first[:80]!r}"
        raise TraceError(found if first else f"it is empty; {EXPECTED}")
    try:
        cells = parse_cells("\n".join(lines[start:]), max(",;\t", key=lines[start].count))
    except TableError as error:
        if error.row is None:
            raise TraceError(f"the file is cut off ({error}); export it again") from None
        raise TraceError(
            f"row {error.row - 1} below the heading {error}: are these decimal commas without"
            " quotation marks? Export it again with LC_ALL=C"
        ) from None
    header, rows = cells.iloc[0].tolist(), cells.iloc[1:]
    needed = next(
        (header.index(name) + 1 for name in (VALUE, AVERAGE) if name in header), len(header)
    )
    short = rows[needed - 1].isna()
    if short.any():
        place = int(short.argmax())
        where = (
            f"row {place + 1} below the heading ends after {rows.iloc[place].count()} of {needed}"
            " cells"
        )
        raise TraceError(f"{where}: the file is cut off; export it again")
    rows = rows.fillna("")
    return header, rows.drop_duplicates() if "ID" in header or RUNS in header else rows


def _is_summary(header: list[str]) -> bool:
    return RUNS in header and VALUE not in header


def _long(header: list[str], rows: "pd.DataFrame") -> _Table:
    """The details page and summaries: a row for each metric of each kernel."""
    import pandas as pd

    summary = _is_summary(header)
    value = AVERAGE if summary else VALUE
    lacking = [name for name in (UNIT, value) if name not in header]
    if lacking:
        raise TraceError(
            f"its heading has {NAME!r} and no {' and no '.join(map(repr, lacking))}; {EXPECTED}"
        )
    own = [
        header.index(name)
        for name in ("ID", "Process ID", KERNEL, *(SUMMARY_KEY if summary else ()))
        if name in header
    ]
    kernel = rows.groupby(own, sort=False).ngroup()
    columns = {"metric": NAME, "unit": UNIT, "text": value}
    cells = pd.DataFrame(
        {"kernel": kernel, **{column: rows[header.index(name)] for column, name in columns.items()}}
    )
    cells = cells[cells["metric"] != ""]
    if not summary and "ID" not in header and cells.duplicated(["kernel", "metric", "unit"]).any():
        raise TraceError(
            "its rows have no column 'ID', so that the launches of a kernel cannot be"
            f" distinguished; {EXPECTED}"
        )
    return _Table(rows[~kernel.duplicated()], cells, cells["metric"].unique().tolist())


def _wide(header: list[str], rows: "pd.DataFrame") -> _Table:
    """The raw page: a column for each metric, with a row of units below the heading."""
    import pandas as pd

    units = [""] * len(header)
    if len(rows) and not rows[header.index(KERNEL)].iloc[0]:
        units, rows = rows.iloc[0].tolist(), rows.iloc[1:]
    metrics, columns = list[str](), list[pd.DataFrame]()
    for place, heading in enumerate(header):
        split = HEADING_WITH_UNIT.fullmatch(heading)
        metric, unit = split.groups() if split and not units[place] else (heading, units[place])
        metrics += [metric] if "__" in metric and not metric.startswith("device__attribute") else []
        if metric in _FIELD_OF:
            column = pd.DataFrame({"text": rows[place].to_numpy(), "metric": metric, "unit": unit})
            columns.append(column.rename_axis("kernel").reset_index())
    if not columns:
        raise _no_counters(metrics)
    return _Table(rows, pd.concat(columns, ignore_index=True), metrics)


def _values(table: _Table, names: list[str]) -> "pd.DataFrame":
    """Seconds and counters of each kernel, NaN where a counter is not stated."""
    cells = table.cells.assign(field=table.cells["metric"].map(_FIELD_OF))
    is_time = cells["field"] == _SECONDS
    # names such as `Memory Throughput` also stand for bytes per second, which is no counter
    percent = cells["unit"].isin(PERCENT) | (
        (cells["unit"] == "") & cells["metric"].str.contains("__")
    )
    cells = cells[is_time | (cells["field"].notna() & percent)].drop_duplicates()
    twice = cells.loc[cells.duplicated(["kernel", "metric"]), ["kernel", "metric"]]
    for kernel, metric in twice.itertuples(index=False):
        texts = cells.loc[(cells["kernel"] == kernel) & (cells["metric"] == metric), "text"]
        both = " and ".join(map(repr, texts))
        raise TraceError(
            f"it has two values of {metric!r} of kernel {kernel + 1} that differ: {both}"
        )
    cells = cells.assign(value=_numbers(cells, names)).dropna(subset="value")
    times = cells["field"] == _SECONDS
    cells.loc[times, "value"] *= _seconds(cells[times])
    if times.all():
        raise _no_counters(table.metrics)
    first = cells.drop_duplicates(["kernel", "field"])
    values = first.pivot(index="kernel", columns="field", values="value").reindex(
        range(len(names)), columns=[_SECONDS, *COUNTERS]
    )
    without = values.index[values[_SECONDS].isna()]
    if len(without):
        which = (
            "any kernel"
            if len(without) == len(names)
            else f"kernel {without[0] + 1} ({names[without[0]][:60]})"
        )
        known = " or ".join(map(repr, DURATION_NAMES))
        raise TraceError(
            f"it has no duration of {which}, by which means are weighted: expected {known}, found"
            f" {_shortened(table.metrics)}"
        )
    return values


def _numbers(cells: "pd.DataFrame", names: list[str]) -> "pd.Series[float]":
    """The number in each cell, with a decimal point; NaN where a cell has none."""
    import pandas as pd

    # newer versions add what a sum is of: `158 (0: 158)`
    text = cells["text"].str.replace(r" \(.*", "", regex=True)
    nothing = text.str.lower().isin(NOTHING)
    # commas separate thousands in a time alone: a per cent has no thousands, so that its comma is a
    # decimal one
    grouped = (cells["field"] == _SECONDS) & text.str.fullmatch(GROUPED)
    numbers = (
        pd.to_numeric(text.mask(grouped, text.str.replace(",", "")), errors="coerce")
        .astype(float)
        .mask(nothing)
    )
    wrong = ~nothing & ~numbers.between(0, np.inf, inclusive="left")
    if wrong.any():
        place = int(wrong.argmax())
        cell = cells.iloc[place]
        raise TraceError(
            f"{cell['metric']!r} of kernel {cell['kernel'] + 1} ({names[cell['kernel']][:60]}):"
            f" {cell['text']!r} is no finite number from 0 on with a decimal point; export it again"
            " with LC_ALL=C"
        )
    return numbers


def _seconds(times: "pd.DataFrame") -> "pd.Series[float]":
    """The unit of each duration in seconds."""
    seconds = times["unit"].str.strip("[]() ").map(SECONDS_PER_UNIT).astype(float)
    for metric, unit in times.loc[seconds.isna(), ["metric", "unit"]].itertuples(index=False):
        found = repr(unit) if unit else "none (is the row of units below the heading missing?)"
        raise TraceError(
            f"the unit of {metric!r} is {found}; expected one of {', '.join(SECONDS_PER_UNIT)}"
        )
    return seconds


def _runs(texts: "pd.Series[str]") -> list[int]:
    """How many launches each row of a summary stands for."""
    for text in texts[~texts.str.fullmatch(LAUNCHES)]:
        raise TraceError(
            f"its column {RUNS!r} holds {text[:40]!r}; expected a whole number of launches"
        )
    return [int(text.replace(",", "")) for text in texts]


def _no_counters(found: Iterable[str]) -> TraceError:
    wanted = ", ".join(names[0] for names in METRIC_NAMES.values())
    return TraceError(
        f"it has none of the metrics {wanted} (or their names on the details page); found"
        f" {_shortened(list(found))}"
    )


def _shortened(found: list[str]) -> str:
    more = f" and {len(found) - 8} more" if len(found) > 8 else ""
    return f"{', '.join(found[:8])}{more}" if found else "no metric"


ARGUMENTS = re.compile(r"<[^<>]*>|\([^()]*\)")
"""The innermost template arguments or parameters of a name."""
ANONYMOUS = re.compile(r"\(anonymous namespace\)::|<unnamed>::")


def ncu_profiles(report: NcuReport, given: int | None = None) -> tuple[ImportedProfile, ...]:
    """The profiles of the kernels in `report`, one for each phase that its ranges name; `given`:
    forwards as stated.

    ncu runs each kernel alone and again for each group of counters, so that there is no timeline:
    neither wall time nor gaps. Its kernels may be a few of many: `kernel_time_share` is not known
    from the file. Its ranges do not separate forwards, so that without `given` totals are of the
    whole file; the means of counters need no number.
    """
    prompts = [each for each in report.kernels if PREFILL_RANGE in each.ranges]
    steps = [each for each in report.kernels if FORWARD_RANGE in each.ranges]
    return tuple(
        _profile(report, phase, kernels, None if phase == "prefill" else given)
        for phase, kernels in by_phase(prompts, steps, list(report.kernels)).items()
    )


def _profile(
    report: NcuReport, phase: Phase, kernels: Sequence[NcuKernel], given: int | None
) -> ImportedProfile:
    forwards = given or 1
    profile = ArmProfile(
        arm=report.mark.arm or 0,
        tool="ncu",
        phase=phase,
        forwards=forwards,
        launches=_launches(kernels) / forwards,
        activities=_activities(kernels, forwards),
    )
    notes = []
    if given is None:
        notes.append(
            "how many forwards the file holds is not known: counts and seconds are of all of it;"
            " --forwards K divides"
        )
    if report.missing:
        notes.append(
            f"not in the file: {', '.join(name.replace('_', ' ') for name in report.missing)}"
        )
    total = sum(each.seconds * each.runs for each in report.kernels)
    return ImportedProfile(
        profile=profile,
        mark=report.mark,
        device_name=report.device_name,
        source=(
            "ncu, forwards not known" if given is None else f"ncu, forwards by --forwards {given}"
        ),
        kernels=_launches(kernels),
        kernels_in_file=_launches(report.kernels),
        time_share=sum(each.seconds * each.runs for each in kernels) / total if total else None,
        notes=tuple(notes),
    )


def covered_share(profiled: Iterable[Activities], whole: Iterable[Activities]) -> float | None:
    """The share of the kernel time in `whole`, a profile of all kernels of the arm, that the
    kernels in `profiled` stand for.

    Kernels are the same if their names are without arguments; of a name that runs ten times and was
    profiled three times, three tenths of its time count. `None` if `whole` has no kernels, or none
    of those in `profiled`.
    """
    seconds, runs, found = (defaultdict[str, float](float) for _ in range(3))
    for each in whole:
        if each.activity == "kernel":
            seconds[function_name(each.name)] += each.seconds
            runs[function_name(each.name)] += each.count
    for each in profiled:
        found[function_name(each.name)] += each.count
    total, common = sum(seconds.values()), found.keys() & seconds.keys()
    if not common or not total:
        return None
    covered = (min(1.0, found[name] / runs[name]) * seconds[name] for name in common if runs[name])
    return min(1.0, sum(covered) / total)


def function_name(name: str) -> str:
    """The name of a kernel without return type, namespaces, template arguments and parameters."""
    bare = ANONYMOUS.sub("", name)
    while (shorter := ARGUMENTS.sub("", bare)) != bare:
        bare = shorter
    return bare.strip().split(" ")[-1].split("::")[-1] or name


def _launches(kernels: Iterable[NcuKernel]) -> int:
    return sum(each.runs for each in kernels)


def _activities(kernels: Sequence[NcuKernel], forwards: int) -> tuple[Activities, ...]:
    groups: dict[str, list[NcuKernel]] = {}
    for each in kernels:
        groups.setdefault(each.name, []).append(each)
    found = [
        Activities(
            name=name,
            activity="kernel",
            count=_launches(group) / forwards,
            seconds=sum(each.seconds * each.runs for each in group) / forwards,
            counters=weighted_means([(each.seconds * each.runs, each.counters) for each in group]),
        )
        for name, group in groups.items()
    ]
    return tuple(sorted(found, key=lambda each: (-each.seconds, each.name)))
