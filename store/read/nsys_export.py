"""Timelines that `nsys export --type sqlite` writes: the documented tables of 2021 and since, read
without trusting the file.

Tables and columns are those of NVIDIA's "SQLite Export Schema Reference" (2021.5 and later): a
table is there only if it has rows, names are ids of `StringIds` or texts, and columns come and go
between versions, so that only `start` and `end` are required.
"""

import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from sqlalchemy import Connection, Select, column, create_engine, select, table, union
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from store.rows.location import reading_mode
from sweeps.importers.traces import ApiCall, DeviceActivity, DeviceTrace, NvtxRange, TraceError
from sweeps.model.profile import Activity

KERNELS, COPIES, FILLS = (
    "CUPTI_ACTIVITY_KIND_KERNEL",
    "CUPTI_ACTIVITY_KIND_MEMCPY",
    "CUPTI_ACTIVITY_KIND_MEMSET",
)
GRAPHS, CALLS, RANGES = (
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
    "CUPTI_ACTIVITY_KIND_RUNTIME",
    "NVTX_EVENTS",
)
STRINGS = "StringIds"
ANY_OF_NSYS = (
    STRINGS,
    KERNELS,
    COPIES,
    CALLS,
    RANGES,
    "TARGET_INFO_SYSTEM_ENV",
    "PROCESSES",
    "ANALYSIS_DETAILS",
)
KERNEL_NAMES = ("demangledName", "shortName", "name", "mangledName")
"""Columns of a kernel's name, the most telling first."""
NAME_COLUMNS = {KERNELS: KERNEL_NAMES, CALLS: ("nameId", "name"), RANGES: ("textId",)}
"""Columns that hold ids of texts."""
DISTINGUISHING = ("contextId", "streamId", "graphNodeId")
"""Columns that distinguish runs which are equal otherwise; a row that repeats another in these too
stands there twice."""
INTEGERS = {"deviceId", "globalPid", "globalTid", "correlationId", "bytes", "copyKind", "graphId"}
COPY_KINDS = {1: ("HtoD", 1), 2: ("DtoH", 1), 8: ("DtoD", 2), 9: ("HtoH", 0), 10: ("PtoP", 1)}
"""CUPTI's kinds of copies: name, and how often the device's memory moves each byte."""
EXPORT_INFO = ("META_DATA_EXPORT", "EXPORT_META_DATA")
GPUS, DEVICES, OLD_DEVICES = ("TARGET_INFO_GPU", "TARGET_INFO_CUDA_DEVICE", "TARGET_INFO_CUDA_GPU")
"""GPUs of the machine; which of them each process has as which device of CUDA; of early 2021, the
devices of CUDA with their names."""
HOST = 2**31 - 1
"""What CUPTI writes as the device of a graph that begins on the host."""
LONGEST_NAME = 1_000_000
"""Bytes of the longest text that is read: names of kernels are a few kB, what a program printed is
a text too and is not read."""
HOW = "nsys profile --trace=cuda,nvtx -o REPORT …, then nsys export --type sqlite REPORT.nsys-rep"


_Placed = tuple[tuple[Any, ...], DeviceActivity]
"""A run, and what `DISTINGUISHING` has of it."""


class _Export(NamedTuple):
    connection: Connection
    columns: Mapping[str, Sequence[str]]
    """Of each table."""
    strings: Mapping[int, str]

    def rows(self, name: str, *wanted: str) -> Iterator[dict[str, Any]]:
        """The rows of a table with those of the wanted columns that it has; others are `None`."""
        there = [each for each in wanted if each in self.columns.get(name, ())]
        if not there:
            return
        absent = dict.fromkeys(wanted)
        found: Iterable[Any] = self.connection.execute(
            select(*map(column, there)).select_from(table(name))
        )
        for row in found:
            values = {**absent, **dict(zip(there, row, strict=True))}
            for each in INTEGERS & values.keys():
                if not isinstance(values[each], int | None):
                    raise TraceError(
                        f"its table {name} holds {values[each]!r:.40} as {each}; expected a whole"
                        " number"
                    )
            yield values

    def text(self, value: Any) -> str | None:
        """A name, which is an id or the text itself."""
        return self.strings.get(value) if isinstance(value, int) else value


def read_nsys(path: Path) -> DeviceTrace:
    """The timeline in the SQLite file at `path`. Raises `TraceError` that names what was found and
    what was expected.
    """
    _check_whole(path)
    with _opened(path) as connection:
        columns = _tables(connection)
        export = _Export(connection, columns, {})
        if STRINGS in columns:
            export = export._replace(strings=_strings(connection, columns))
        _check_kernels(columns)
        rows = list(_runs(export))
        runs = [run for _, run in dict.fromkeys(rows)]
        if not any(run.activity == "kernel" for run in runs):
            raise TraceError(
                f"its table {KERNELS} has no rows with times: no kernel was recorded; expected"
                f" {HOW}"
            )
        return DeviceTrace(
            runs=tuple(runs),
            repeated=len(rows) - len(runs),
            calls=tuple(_calls(export)),
            ranges=tuple(dict.fromkeys(_ranges(export))),
            device_names=_device_names(export, runs),
            version=_version(export),
        )


def _check_whole(path: Path) -> None:
    """Raise `TraceError` for a file that is shorter than its own heading states."""
    with path.open("rb") as file:
        heading = file.read(100)
    if len(heading) < 100:
        raise TraceError(
            f"it is cut off: {len(heading)} bytes are left, less than the heading of an SQLite"
            " file; export it again"
        )
    page = int.from_bytes(heading[16:18], "big")
    stated = (65536 if page == 1 else page) * int.from_bytes(heading[28:32], "big")
    if heading[24:28] == heading[92:96] and path.stat().st_size < stated:
        raise TraceError(
            f"it is cut off: {path.stat().st_size:,} of {stated:,} bytes are left; copy or export"
            " it again"
        )


@contextmanager
def _opened(path: Path) -> Iterator[Connection]:
    """A connection that can only read, and calls no functions that the file names."""

    def connect() -> sqlite3.Connection:
        opened = sqlite3.connect(
            f"file:{quote(str(path.absolute()))}?mode={reading_mode(path.absolute())}", uri=True
        )
        opened.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST_NAME)
        opened.text_factory = lambda data: data.decode(errors="replace")
        opened.execute("PRAGMA trusted_schema = OFF")
        opened.execute("PRAGMA query_only = ON")
        return opened

    engine = create_engine("sqlite://", creator=connect, poolclass=NullPool)
    try:
        with engine.connect() as connection:  # closed there: the engine keeps none
            yield connection
    except (DBAPIError, sqlite3.Error) as error:
        cause = error.orig if isinstance(error, DBAPIError) and error.orig else error
        if getattr(cause, "sqlite_errorcode", None) == sqlite3.SQLITE_TOOBIG:
            raise TraceError(
                f"it holds a name of more than {LONGEST_NAME:,} bytes; expected {HOW}"
            ) from None
        raise TraceError(
            f"SQLite cannot read it ({cause}): it is damaged or cut off; export it again: {HOW}"
        ) from None


def _tables(connection: Connection) -> dict[str, list[str]]:
    """The columns of each table; views are left out, which may be anything."""
    master = table("sqlite_master", column("name"), column("type"))
    names = (
        connection.execute(select(master.c.name).where(master.c.type == "table")).scalars().all()
    )
    return {
        name: [row[1] for row in connection.exec_driver_sql(f"PRAGMA table_info({_quoted(name)})")]
        for name in names
    }


def _strings(connection: Connection, columns: Mapping[str, Sequence[str]]) -> dict[int, str]:
    """The texts by id that name a kernel, a call or a range."""
    used: list[Select[Any]] = [
        select(column(name)).select_from(table(of))
        for of, names in NAME_COLUMNS.items()
        for name in names
        if name in columns.get(of, ()) and {"id", "value"} <= set(columns[STRINGS])
    ]
    if not used:
        return {}
    texts = table(STRINGS, column("id"), column("value"))
    return {
        row.id: str(row.value)
        for row in connection.execute(select(texts).where(texts.c.id.in_(union(*used))))
    }


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _check_kernels(columns: Mapping[str, Sequence[str]]) -> None:
    """Raise `TraceError` unless these are the tables of an export with kernels."""
    more = f" and {len(columns) - 8} more" if len(columns) > 8 else ""
    found = ", ".join(sorted(columns)[:8]) + more if columns else "no table"
    for name, expected in product(sorted(columns), (*RUNS, CALLS, RANGES, STRINGS)):
        last = expected.removeprefix("CUPTI_ACTIVITY_KIND_")
        if re.fullmatch(rf"(\w+_)?{last}_V\d+", name):
            raise TraceError(
                f"its schema is unknown: it has the table {name}, expected {expected}; import is"
                " tested on the schemas of nsys 2021 to 2025"
            )
    if not any(name in columns for name in ANY_OF_NSYS):
        raise TraceError(
            f"it is no export of nsys: expected the tables {KERNELS} and {STRINGS}, found {found};"
            f" {HOW}"
        )
    if GRAPHS not in columns and KERNELS not in columns:
        raise TraceError(f"it holds no kernels: expected the table {KERNELS}, found {found}; {HOW}")
    for name in (KERNELS, COPIES, FILLS, GRAPHS, CALLS):
        lacking = [
            each for each in ("start", "end") if name in columns and each not in columns[name]
        ]
        if lacking:
            raise TraceError(
                f"its table {name} has no column {' and no '.join(lacking)}; found"
                f" {', '.join(columns[name][:12])}"
            )
    if KERNELS in columns and not any(name in columns[KERNELS] for name in KERNEL_NAMES):
        has = ", ".join(columns[KERNELS][:12])
        raise TraceError(
            f"its table {KERNELS} has none of the columns {', '.join(KERNEL_NAMES)}; found {has}"
        )


def _times(row: Mapping[str, Any], name: str) -> tuple[int, int] | None:
    """Start and end in ns; `None` where they were not recorded, for which CUPTI writes 0."""
    start, end = row["start"], row["end"]
    if start is None or end is None:
        return None
    for each in (start, end):
        if not isinstance(each, int):
            raise TraceError(
                f"its table {name} holds {each!r} as a time; expected whole nanoseconds"
            )
    return (start, end) if end > start else None


RUNS = {
    KERNELS: KERNEL_NAMES,
    GRAPHS: ("graphId",),
    COPIES: ("bytes", "copyKind"),
    FILLS: ("bytes",),
}
"""Tables of what ran on a device, and their columns beyond those that all have."""


def _runs(export: _Export) -> Iterator[_Placed]:
    """Kernels, launches of CUDA graphs where nsys records the graph instead of its kernels, copies
    and fills.
    """
    common = ("start", "end", "deviceId", "globalPid", "correlationId", *DISTINGUISHING)
    for table_name, more in RUNS.items():
        for row in export.rows(table_name, *common, *more):
            times = _times(row, table_name)
            if times is None:
                continue
            name, activity, passes = _described(export, table_name, row)
            moved = None if row.get("bytes") is None else passes * int(row["bytes"])
            device = row["deviceId"] if row["deviceId"] != HOST else None
            process = (row["globalPid"], row["correlationId"])
            run = DeviceActivity(
                name, activity, *times, device, *process, moved, table_name == GRAPHS
            )
            yield tuple(row[each] for each in DISTINGUISHING), run


def _described(
    export: _Export, table_name: str, row: Mapping[str, Any]
) -> tuple[str, Activity, int]:
    """The name of a run, what it is, and how often the device's memory moves each of its bytes."""
    if table_name == KERNELS:
        names = (export.text(row[each]) for each in KERNEL_NAMES)
        return next(filter(None, names), "a kernel without a name"), "kernel", 1
    if table_name == GRAPHS:
        return f"CUDA graph {(row['graphId'] or 0) & 0xFFFFFFFF}", "kernel", 1
    if table_name == FILLS:
        return "memset", "memset", 1
    kind, passes = COPY_KINDS.get(row["copyKind"], (f"kind {row['copyKind']}", 1))
    return f"memcpy {kind}", "memcpy", passes


def _calls(export: _Export) -> Iterator[ApiCall]:
    for row in export.rows(CALLS, "start", "end", "globalTid", "correlationId", "nameId", "name"):
        times = _times(row, CALLS)
        name = export.text(row["nameId"] if row["nameId"] is not None else row["name"])
        if times is not None:
            yield ApiCall(name or "", *times, row["globalTid"], row["correlationId"])


def _ranges(export: _Export) -> Iterator[NvtxRange]:
    """Ranges with an end; marks and ranges that were open when the recording ended have none."""
    for row in export.rows(RANGES, "start", "end", "text", "textId", "globalTid"):
        times = _times(row, RANGES) if row["end"] is not None else None
        name = row["text"] or export.text(row["textId"])
        if times is not None and name:
            yield NvtxRange(str(name), *times, row["globalTid"])


def _version(export: _Export) -> str:
    """`2024.7.1 (schema 3.15.1)`, where the export states it."""
    info = {
        row["name"]: str(row["value"])
        for name in EXPORT_INFO
        for row in export.rows(name, "name", "value")
    }
    product, schema = info.get("EXPORT_PRODUCT_VERSION", ""), info.get("EXPORT_SCHEMA_VERSION", "")
    return f"{product} (schema {schema})".strip() if schema else product


def _device_names(export: _Export, runs: Iterable[DeviceActivity]) -> tuple[str, ...]:
    """The names of the GPUs that ran the kernels. Their devices are those of CUDA, which counts
    what a process may see; without a table that maps these to GPUs, the names of all GPUs.
    """
    used = {(run.process, run.device) for run in runs if run.activity == "kernel"}
    gpus = {row["id"]: row["name"] for row in export.rows(GPUS, "id", "name") if row["name"]}
    mapped = [
        (row["pid"], row["cudaId"], gpus.get(row["gpuId"]))
        for row in export.rows(DEVICES, "pid", "cudaId", "gpuId")
    ]
    for row in export.rows(OLD_DEVICES, "deviceId", "id", "name"):
        own = row["id"] if row["deviceId"] is None else row["deviceId"]
        mapped.append((None, own, row["name"]))
    names = {
        str(name)
        for pid, device, name in mapped
        for process, ran_on in used
        if name and device == ran_on and (not (pid and process) or pid == process >> 24 & 0xFFFFFF)
    }
    return tuple(sorted(names or set(map(str, gpus.values()))))
