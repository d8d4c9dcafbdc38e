"""Exports of nsys in three generations of tables give the same timeline; what is no export, damaged or empty is named."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from store.traces.nsys_export import read_nsys
from sweeps.traces.device_trace import DeviceActivity, TraceError
from tests.fixtures.device_traces import PROCESS, a_trace
from tests.fixtures.nsys_exports import GENERATIONS, Generation, write_nsys, write_tables

MARKS = ("breakeven:comparison:0123456789abcdef", "breakeven:arm:1", "block 0")
COPIES = (
    DeviceActivity("memcpy DtoD", "memcpy", 500, 900, 0, PROCESS, 901, 2048),
    DeviceActivity("memcpy HtoD", "memcpy", 900, 950, 0, PROCESS, 902, 64),
    DeviceActivity("memset", "memset", 1000, 1100, 0, PROCESS, 903, 256),
)


@pytest.mark.parametrize("generation", GENERATIONS)
def test_generations_give_the_same_timeline(tmp_path: Path, generation: Generation) -> None:
    """Kernels, copies, memsets, calls and ranges come back as they were, whatever the columns are called."""
    made = a_trace(3, marks=MARKS)
    made = made._replace(runs=(*made.runs, *COPIES))
    found = read_nsys(write_nsys(tmp_path / "trace.sqlite", made, generation))
    assert (found.runs, found.calls, found.ranges) == (made.runs, made.calls, made.ranges)
    assert found.version == ("2025.1 (schema 3.20.0)" if generation == "2025" else "")
    assert found.device_names == (() if generation == "inline" else ("Imaginary GPU",))


def changed(path: Path, *statements: str) -> Path:
    """The file after these statements."""
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()
    return path


def test_tables_and_columns_that_are_not_there(tmp_path: Path) -> None:
    """A trace of kernels alone, without calls, ranges, copies or ids of any kind, is read."""
    path = write_tables(
        tmp_path / "bare.sqlite",
        "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, shortName INT); CREATE TABLE StringIds (id INT, value TEXT)",
        rows=[
            ("INSERT INTO StringIds VALUES (?, ?)", (5, "gemm")),
            ("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, ?)", (10, 20, 5)),
            ("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, ?)", (0, 0, 5)),
            ("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, ?)", (30, 40, 6)),
        ],
    )
    found = read_nsys(path)
    assert [(run.name, run.start, run.end) for run in found.runs] == [("gemm", 10, 20), ("a kernel without a name", 30, 40)]
    assert (found.calls, found.ranges, found.device_names, found.version) == ((), (), (), "")


def test_whole_graphs(tmp_path: Path) -> None:
    """Launches of CUDA graphs stand in a table of their own, and are known not to be kernels."""
    path = write_nsys(tmp_path / "trace.sqlite", a_trace(1))
    changed(
        path,
        "CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INT, end INT, deviceId INT, correlationId INT, graphId INT)",
        "INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (900000, 990000, 2147483647, 77, 4294967299)",
    )
    (graph,) = [run for run in read_nsys(path).runs if run.whole_graph]
    assert (graph.name, graph.activity, graph.device, graph.correlation) == ("CUDA graph 3", "kernel", None, 77)


def a_store(path: Path) -> Path:
    return write_tables(path, "CREATE TABLE sweep (id INT); CREATE TABLE attempt (id INT)")


def without_kernels(path: Path) -> Path:
    return changed(write_nsys(path, a_trace(1)), "DROP TABLE CUPTI_ACTIVITY_KIND_KERNEL")


def with_empty_kernels(path: Path) -> Path:
    return changed(write_nsys(path, a_trace(1)), "DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL")


def without_names(path: Path) -> Path:
    return write_tables(
        path, "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, grid INT); CREATE TABLE StringIds (id INT, value TEXT)"
    )


def without_ends(path: Path) -> Path:
    return write_tables(path, "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, duration INT, name TEXT)")


def with_words_as_times(path: Path) -> Path:
    return changed(write_nsys(path, a_trace(1)), "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET start = 'soon'")


def as_view(path: Path) -> Path:
    return write_tables(path, "CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS SELECT 1 AS start, 2 AS end, 'k' AS name")


def cut_off(path: Path) -> Path:
    whole = write_nsys(path, a_trace(40)).read_bytes()
    path.write_bytes(whole[: len(whole) * 2 // 3])
    return path


def a_heading_alone(path: Path) -> Path:
    path.write_bytes(b"SQLite format 3\0" + bytes(20))
    return path


def overwritten(path: Path) -> Path:
    whole = bytearray(write_nsys(path, a_trace(40)).read_bytes())
    whole[4096 : len(whole)] = b"\xff" * (len(whole) - 4096)
    path.write_bytes(whole)
    return path


WRONG: dict[str, tuple[Callable[[Path], Path], str]] = {
    "a store": (a_store, r"no export of nsys: expected the tables CUPTI_ACTIVITY_KIND_KERNEL and StringIds, found attempt, sweep"),
    "a view": (as_view, "no export of nsys: .* found no table"),
    "no table of kernels": (without_kernels, "holds no kernels: expected the table CUPTI_ACTIVITY_KIND_KERNEL, found .*NVTX"),
    "no kernels": (with_empty_kernels, "table CUPTI_ACTIVITY_KIND_KERNEL has no rows with times"),
    "no names": (without_names, "none of the columns demangledName, shortName, name, mangledName; found start, end, grid"),
    "no ends": (without_ends, "table CUPTI_ACTIVITY_KIND_KERNEL has no column end; found start, duration, name"),
    "words as times": (with_words_as_times, "CUPTI_ACTIVITY_KIND_KERNEL holds 'soon' as a time; expected whole nanoseconds"),
    "cut off": (cut_off, r"it is cut off: [\d,]+ of [\d,]+ bytes are left"),
    "a heading alone": (a_heading_alone, "it is cut off: 36 bytes are left"),
    "overwritten": (overwritten, "SQLite cannot read it .*damaged or cut off"),
}


@pytest.mark.parametrize(("make", "message"), WRONG.values(), ids=WRONG)
def test_wrong_files(tmp_path: Path, make: Callable[[Path], Path], message: str) -> None:
    """Each wrong file is an error that names what was found and what was expected; the file stays as it was."""
    path = make(tmp_path / "trace.sqlite")
    before = path.read_bytes()
    with pytest.raises(TraceError, match=message):
        read_nsys(path)
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["trace.sqlite"]
