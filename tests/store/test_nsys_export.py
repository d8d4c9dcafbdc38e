"""Exports of nsys in three generations of tables give the same timeline; what is no export, damaged
or empty is named.
"""

import sqlite3
import tracemalloc
from collections.abc import Callable
from contextlib import closing, nullcontext
from pathlib import Path

import pytest

from store.read.nsys_export import read_nsys
from sweeps.importers.nsys import nsys_profiles
from sweeps.importers.traces import DeviceActivity, TraceError
from tests.fixtures.device_traces import KERNELS, PROCESS, a_trace
from tests.fixtures.nsys_exports import GENERATIONS, Generation, write_nsys, write_tables
from tests.fixtures.published_traces import CAPTURE_2025, TWO_PROCESSES, write_capture

MARKS = ("breakeven:comparison:0123456789abcdef", "breakeven:arm:1", "block 0")
COPIES = (
    DeviceActivity("memcpy DtoD", "memcpy", 500, 900, 0, PROCESS, 901, 2048),
    DeviceActivity("memcpy HtoD", "memcpy", 900, 950, 0, PROCESS, 902, 64),
    DeviceActivity("memset", "memset", 1000, 1100, 0, PROCESS, 903, 256),
)


@pytest.mark.parametrize("generation", GENERATIONS)
def test_generations_give_the_same_timeline(tmp_path: Path, generation: Generation) -> None:
    """Kernels, copies, memsets, calls and ranges come back as they were, whatever the columns are
    called.
    """
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
        "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, shortName INT); CREATE TABLE"
        " StringIds (id INT, value TEXT)",
        rows=[
            ("INSERT INTO StringIds VALUES (?, ?)", (5, "gemm")),
            ("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, ?)", (10, 20, 5)),
            ("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, ?)", (0, 0, 5)),
            ("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, ?)", (30, 40, 6)),
        ],
    )
    found = read_nsys(path)
    assert [(run.name, run.start, run.end) for run in found.runs] == [
        ("gemm", 10, 20),
        ("a kernel without a name", 30, 40),
    ]
    assert (found.calls, found.ranges, found.device_names, found.version) == ((), (), (), "")


def test_whole_graphs(tmp_path: Path) -> None:
    """Launches of CUDA graphs stand in a table of their own, and are known not to be kernels."""
    path = write_nsys(tmp_path / "trace.sqlite", a_trace(1))
    changed(
        path,
        "CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INT, end INT, deviceId INT,"
        " correlationId INT, graphId INT)",
        "INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (900000, 990000, 2147483647, 77,"
        " 4294967299)",
    )
    (graph,) = [run for run in read_nsys(path).runs if run.whole_graph]
    assert (graph.name, graph.activity, graph.device, graph.correlation) == (
        "CUDA graph 3",
        "kernel",
        None,
        77,
    )


def a_store(path: Path) -> Path:
    return write_tables(path, "CREATE TABLE sweep (id INT); CREATE TABLE attempt (id INT)")


def without_kernels(path: Path) -> Path:
    return changed(write_nsys(path, a_trace(1)), "DROP TABLE CUPTI_ACTIVITY_KIND_KERNEL")


def with_empty_kernels(path: Path) -> Path:
    return changed(write_nsys(path, a_trace(1)), "DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL")


def without_names(path: Path) -> Path:
    return write_tables(
        path,
        "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, grid INT); CREATE TABLE"
        " StringIds (id INT, value TEXT)",
    )


def without_ends(path: Path) -> Path:
    return write_tables(
        path, "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, duration INT, name TEXT)"
    )


def with_words_as_times(path: Path) -> Path:
    return changed(
        write_nsys(path, a_trace(1)), "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET start = 'soon'"
    )


def as_view(path: Path) -> Path:
    return write_tables(
        path, "CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS SELECT 1 AS start, 2 AS end, 'k' AS name"
    )


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


def with_words_as_processes(path: Path) -> Path:
    return changed(
        write_nsys(path, a_trace(1)), "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET globalPid = 'mine'"
    )


def with_a_name_of_50_mb(path: Path) -> Path:
    return changed(
        write_nsys(path, a_trace(1)),
        "UPDATE StringIds SET value = printf('%.*c', 50000000, 'x') WHERE value = 'gemm'",
    )


def with_a_text_of_50_mb(path: Path) -> Path:
    return changed(
        write_nsys(path, a_trace(1)),
        "INSERT INTO StringIds VALUES (999, printf('%.*c', 50000000, 'x'))",
    )


WRONG: dict[str, tuple[Callable[[Path], Path], str]] = {
    "a store": (
        a_store,
        (
            r"no export of nsys: expected the tables CUPTI_ACTIVITY_KIND_KERNEL and StringIds,"
            r" found attempt, sweep"
        ),
    ),
    "a view": (as_view, "no export of nsys: .* found no table"),
    "no table of kernels": (
        without_kernels,
        "holds no kernels: expected the table CUPTI_ACTIVITY_KIND_KERNEL, found .*NVTX",
    ),
    "no kernels": (with_empty_kernels, "table CUPTI_ACTIVITY_KIND_KERNEL has no rows with times"),
    "no names": (
        without_names,
        "none of the columns demangledName, shortName, name, mangledName; found start, end, grid",
    ),
    "no ends": (
        without_ends,
        "table CUPTI_ACTIVITY_KIND_KERNEL has no column end; found start, duration, name",
    ),
    "words as times": (
        with_words_as_times,
        "CUPTI_ACTIVITY_KIND_KERNEL holds 'soon' as a time; expected whole nanoseconds",
    ),
    "words as processes": (
        with_words_as_processes,
        "KERNEL holds 'mine' as globalPid; expected a whole number",
    ),
    "a name of 50 MB": (with_a_name_of_50_mb, "a name of more than 1,000,000 bytes"),
    "cut off": (cut_off, r"it is cut off: [\d,]+ of [\d,]+ bytes are left"),
    "a heading alone": (a_heading_alone, "it is cut off: 36 bytes are left"),
    "overwritten": (overwritten, "SQLite cannot read it .*damaged or cut off"),
}


@pytest.mark.parametrize(("make", "message"), WRONG.values(), ids=WRONG)
def test_wrong_files(tmp_path: Path, make: Callable[[Path], Path], message: str) -> None:
    """Each wrong file is an error that names what was found and what was expected; the file stays
    as it was.
    """
    path = make(tmp_path / "trace.sqlite")
    before = path.read_bytes()
    with pytest.raises(TraceError, match=message):
        read_nsys(path)
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["trace.sqlite"]


@pytest.mark.parametrize(
    ("make", "refused"), [(with_a_name_of_50_mb, True), (with_a_text_of_50_mb, False)]
)
def test_large_texts_take_no_memory(
    tmp_path: Path, make: Callable[[Path], Path], refused: bool
) -> None:
    """Neither a name that is refused nor what the traced program printed, which names nothing, is
    held in memory.
    """
    path = make(tmp_path / "trace.sqlite")
    tracemalloc.start()
    try:
        with pytest.raises(TraceError) if refused else nullcontext():
            assert len(read_nsys(path).runs) == len(KERNELS)
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("generation", GENERATIONS)
def test_rows_that_stand_there_twice(tmp_path: Path, generation: Generation) -> None:
    """Rows that repeat others in every column change no number; equal kernels at one moment on two
    streams are two.
    """
    path = write_nsys(tmp_path / "trace.sqlite", a_trace(3), generation)
    once = read_nsys(path)
    for name in ("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS"):
        changed(path, f"INSERT INTO {name} SELECT * FROM {name}")
    twice = read_nsys(path)
    assert (twice.runs, twice.ranges, twice.repeated) == (once.runs, once.ranges, len(once.runs))
    (one,), (other,) = nsys_profiles(once), nsys_profiles(twice)
    assert (one.profile, one.kernels, one.kernels_in_file) == (
        other.profile,
        other.kernels,
        other.kernels_in_file,
    )
    assert len(other.notes) == len(one.notes) + 1
    changed(path, "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET streamId = 1 WHERE rowid > 54")
    assert len(read_nsys(path).runs) == 2 * len(once.runs)


def test_published_export_of_two_processes(tmp_path: Path) -> None:
    """Each kernel has the call of its own process: of five the two that the range started, one of
    which runs after it.
    """
    trace = read_nsys(write_capture(tmp_path / "trace.sqlite", TWO_PROCESSES))
    assert len(trace.runs) == 5
    (found,) = nsys_profiles(trace)
    assert [
        (each.name, each.count, round(1e9 * each.seconds)) for each in found.profile.activities
    ] == [("_ZouterK", 1, 1000), ("_ZinnerK", 1, 100)]
    assert (found.profile.forwards, found.kernels, found.kernels_in_file) == (1, 2, 5)
    assert found.profile.profiled_wall_s == pytest.approx(7e-6)


def test_published_export_without_correlation_ids(tmp_path: Path) -> None:
    """Kernels that no call can be found of are read, and need the number of forwards."""
    trace = read_nsys(write_capture(tmp_path / "trace.sqlite", CAPTURE_2025))
    assert [(run.name, run.start, run.end) for run in trace.runs] == [
        ("matmul_kernel", 0, 200),
        ("matmul_kernel", 500, 800),
    ]
    with pytest.raises(TraceError, match="--forwards K"):
        nsys_profiles(trace)
    assert nsys_profiles(trace, 1)[0].profile.times == pytest.approx({"device": 500e-9})
