"""Exports of nsys in three generations of tables give the same timeline; what is no export, damaged
or empty is named.
"""

import sqlite3
import tracemalloc
from contextlib import closing, nullcontext
from pathlib import Path

import pytest

from store.read.nsys_export import read_nsys
from sweeps.importers.nsys import nsys_profiles
from sweeps.importers.traces import DeviceActivity, TraceError
from tests.fixtures.device_traces import KERNELS, PROCESS, a_trace
from tests.fixtures.nsys_exports import GENERATIONS, Generation, write_nsys, write_tables
from tests.fixtures.published_traces import CAPTURE_2025, TWO_PROCESSES, write_capture

TABLE = "CUPTI_ACTIVITY_KIND_KERNEL"
MARKS = ("breakeven:comparison:0123456789abcdef", "breakeven:arm:1", "block 0")
COPIES = (
    DeviceActivity("memcpy DtoD", "memcpy", 500, 900, 0, PROCESS, 901, 2048),
    DeviceActivity("memcpy HtoD", "memcpy", 900, 950, 0, PROCESS, 902, 64),
    DeviceActivity("memset", "memset", 1000, 1100, 0, PROCESS, 903, 256),
)
LONG = "printf('%.*c', 50000000, 'x')"
A_NAME = f"UPDATE StringIds SET value = {LONG} WHERE value = 'gemm'"
A_TEXT = f"INSERT INTO StringIds VALUES (999, {LONG})"


def changed(path: Path, *statements: str) -> Path:
    """The file after these statements."""
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()
    return path


@pytest.mark.parametrize("generation", GENERATIONS)
def test_generations_give_the_same_timeline(tmp_path: Path, generation: Generation) -> None:
    """Kernels, copies, memsets, calls and ranges come back as they were, whatever the columns are
    called. Rows that repeat others in every column change no number; equal kernels at one moment on
    two streams are two.
    """
    made = a_trace(3, marks=MARKS)
    made = made._replace(runs=(*made.runs, *COPIES))
    path = write_nsys(tmp_path / "trace.sqlite", made, generation)
    once = read_nsys(path)
    assert (once.runs, once.calls, once.ranges) == (made.runs, made.calls, made.ranges)
    assert once.version == ("2025.1 (schema 3.20.0)" if generation == "2025" else "")
    assert once.device_names == (() if generation == "inline" else ("Imaginary GPU",))
    kernels = sum(run.activity == "kernel" for run in once.runs)
    for name in (TABLE, "CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS"):
        changed(path, f"INSERT INTO {name} SELECT * FROM {name}")
    twice = read_nsys(path)
    assert (set(twice.runs), twice.ranges, twice.repeated) == (set(once.runs), once.ranges, kernels)
    (one,), (other,) = nsys_profiles(once), nsys_profiles(twice)
    for of in ("profile", "kernels", "kernels_in_file"):
        assert getattr(one, of) == getattr(other, of)
    assert len(other.notes) == len(one.notes) + 1
    changed(path, f"UPDATE {TABLE} SET streamId = 1 WHERE rowid > {kernels}")
    assert len(read_nsys(path).runs) == len(once.runs) + kernels


def test_tables_and_columns_that_are_not_there(tmp_path: Path) -> None:
    """A trace of kernels alone, without calls, ranges, copies or ids of any kind, is read."""
    kernel = f"INSERT INTO {TABLE} VALUES (?, ?, ?)"
    path = write_tables(
        tmp_path / "bare.sqlite",
        f"CREATE TABLE {TABLE} (start INT, end INT, shortName INT); CREATE TABLE StringIds (id INT,"
        " value TEXT)",
        rows=[
            ("INSERT INTO StringIds VALUES (?, ?)", (5, "gemm")),
            *((kernel, run) for run in ((10, 20, 5), (0, 0, 5), (30, 40, 6))),
        ],
    )
    found = read_nsys(path)
    runs = [(run.name, run.start, run.end) for run in found.runs]
    assert runs == [("gemm", 10, 20), ("a kernel without a name", 30, 40)]
    assert (found.calls, found.ranges, found.device_names, found.version) == ((), (), (), "")


def test_whole_graphs(tmp_path: Path) -> None:
    """Launches of CUDA graphs stand in a table of their own, and are known not to be kernels."""
    of = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
    path = changed(
        write_nsys(tmp_path / "trace.sqlite", a_trace(1)),
        f"CREATE TABLE {of} (start INT, end INT, deviceId INT, correlationId INT, graphId INT)",
        f"INSERT INTO {of} VALUES (900000, 990000, 2147483647, 77, 4294967299)",
    )
    (graph,) = [run for run in read_nsys(path).runs if run.whole_graph]
    found = (graph.name, graph.activity, graph.device, graph.correlation)
    assert found == ("CUDA graph 3", "kernel", None, 77)


PID = PROCESS >> 24 & 0xFFFFFF
TWO_GPUS = (
    "DELETE FROM TARGET_INFO_GPU",
    "INSERT INTO TARGET_INFO_GPU (vmId, id, name) VALUES (0, 0, 'Small GPU'), (0, 1, 'Large GPU')",
)
DEVICES = (
    "CREATE TABLE TARGET_INFO_CUDA_DEVICE (gpuId INT, cudaId INT, pid INT, uuid TEXT,"
    " numMultiprocessors INT)"
)
NAMES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "the only visible device is the second GPU": (
        (*TWO_GPUS, DEVICES, f"INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES (1, 0, {PID}, '', 132)"),
        ("Large GPU",),
    ),
    "another process sees the first GPU": (
        (
            *TWO_GPUS,
            DEVICES,
            f"INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES (0, 0, {PID + 1}, '', 8)",
            f"INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES (1, 0, {PID}, '', 132)",
        ),
        ("Large GPU",),
    ),
    "no process is named": (
        (
            *TWO_GPUS,
            DEVICES,
            "INSERT INTO TARGET_INFO_CUDA_DEVICE (gpuId, cudaId) VALUES (1, 0), (0, 1)",
        ),
        ("Large GPU",),
    ),
    "a copy to the other GPU": (
        (
            *TWO_GPUS,
            DEVICES,
            f"INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES (1, 0, {PID}, '', 132)",
            f"INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES (0, 1, {PID}, '', 8)",
            "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY (start, end, deviceId, contextId, streamId,"
            f" globalPid, bytes, copyKind) VALUES (7, 9, 1, 1, 7, {PROCESS}, 64, 10)",
        ),
        ("Large GPU",),
    ),
    "no table of devices": (TWO_GPUS, ("Large GPU", "Small GPU")),
    "no table of GPUs": (("DROP TABLE TARGET_INFO_GPU", DEVICES), ()),
    "early 2021, by the device's own number": (
        (
            "DROP TABLE TARGET_INFO_GPU",
            "CREATE TABLE TARGET_INFO_CUDA_GPU (deviceId INT, name TEXT)",
            "INSERT INTO TARGET_INFO_CUDA_GPU VALUES (1, 'Large GPU'), (0, 'Small GPU')",
        ),
        ("Small GPU",),
    ),
}
"""What is changed in an export whose kernels ran on CUDA's device 0, and the names of GPUs that are
read."""


@pytest.mark.parametrize(("statements", "names"), NAMES.values(), ids=NAMES)
def test_name_is_that_of_the_gpu_that_ran_the_kernels(
    tmp_path: Path, statements: tuple[str, ...], names: tuple[str, ...]
) -> None:
    """Kernels have CUDA's number of their device, which counts the visible ones of a process; where
    the file does not map it to a GPU, all names are read, and a profile has none.
    """
    path = changed(write_nsys(tmp_path / "trace.sqlite", a_trace(1)), *statements)
    trace = read_nsys(path)
    assert trace.device_names == names
    (found,) = nsys_profiles(trace)
    assert found.device_name == (names[0] if len(names) == 1 else None)


CREATED: dict[str, str] = {
    "CREATE TABLE sweep (id INT); CREATE TABLE attempt (id INT)": (
        f"no export of nsys: expected the tables {TABLE} and StringIds, found attempt, sweep"
    ),
    f"CREATE VIEW {TABLE} AS SELECT 1 AS start, 2 AS end, 'k' AS name": (
        "no export of nsys: .* found no table"
    ),
    f"CREATE TABLE {TABLE} (start INT, end INT, grid INT); CREATE TABLE StringIds (id INT, value TEXT)": (
        "none of the columns demangledName, shortName, name, mangledName; found start, end, grid"
    ),
    f"CREATE TABLE {TABLE} (start INT, duration INT, name TEXT)": (
        f"table {TABLE} has no column end; found start, duration, name"
    ),
}
"""Tables of a file that is no export with kernels, and the message."""
CHANGED: dict[str, str] = {
    f"DROP TABLE {TABLE}": f"holds no kernels: expected the table {TABLE}, found .*NVTX",
    f"DELETE FROM {TABLE}": f"table {TABLE} has no rows with times",
    f"UPDATE {TABLE} SET start = 'soon'": f"{TABLE} holds 'soon' as a time; expected whole nanosec",
    f"UPDATE {TABLE} SET globalPid = 'mine'": "holds 'mine' as globalPid; expected a whole number",
    f"ALTER TABLE {TABLE} RENAME TO {TABLE}_V3": (
        f"schema is unknown: it has the table {TABLE}_V3, expected {TABLE}"
    ),
    "ALTER TABLE NVTX_EVENTS RENAME TO NVTX_EVENTS_V2": (
        "schema is unknown: it has the table NVTX_EVENTS_V2, expected NVTX_EVENTS"
    ),
    "CREATE TABLE KERNEL_V3 (start INT)": "has the table KERNEL_V3, expected .*_KIND_KERNEL",
    A_NAME: "a name of more than 1,000,000 bytes",
}
"""What is changed in an export, and the message."""


def refused(path: Path, message: str) -> None:
    before = path.read_bytes()
    with pytest.raises(TraceError, match=message):
        read_nsys(path)
    assert path.read_bytes() == before
    assert [each.name for each in path.parent.iterdir()] == [path.name]
    path.unlink()


def test_wrong_files(tmp_path: Path) -> None:
    """Each wrong file is an error that names what was found and what was expected; the file stays
    as it was.
    """
    path = tmp_path / "trace.sqlite"
    for script, message in CREATED.items():
        refused(write_tables(path, script), message)
    for statement, message in CHANGED.items():
        refused(changed(write_nsys(path, a_trace(1)), statement), message)
    whole = write_nsys(path, a_trace(40)).read_bytes()
    for content, message in (
        (whole[: len(whole) * 2 // 3], r"it is cut off: [\d,]+ of [\d,]+ bytes are left"),
        (b"SQLite format 3\0" + bytes(20), "it is cut off: 36 bytes are left"),
        (whole[:4096] + b"\xff" * (len(whole) - 4096), "SQLite cannot read it .*damaged or cut of"),
    ):
        path.write_bytes(content)
        refused(path, message)


@pytest.mark.parametrize(("statement", "is_read"), [(A_NAME, False), (A_TEXT, True)])
def test_large_texts_take_no_memory(tmp_path: Path, statement: str, is_read: bool) -> None:
    """Neither a name that is refused nor what the traced program printed, which names nothing, is
    held in memory.
    """
    path = changed(write_nsys(tmp_path / "trace.sqlite", a_trace(1)), statement)
    tracemalloc.start()
    try:
        with nullcontext() if is_read else pytest.raises(TraceError):
            assert len(read_nsys(path).runs) == len(KERNELS)
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()


def test_published_export_of_two_processes(tmp_path: Path) -> None:
    """Each kernel has the call of its own process: of five the two that the range started, one of
    which runs after it.
    """
    trace = read_nsys(write_capture(tmp_path / "trace.sqlite", TWO_PROCESSES))
    assert len(trace.runs) == 5
    (found,) = nsys_profiles(trace)
    kernels = [
        (each.name, each.count, round(1e9 * each.seconds)) for each in found.profile.activities
    ]
    assert kernels == [("_ZouterK", 1, 1000), ("_ZinnerK", 1, 100)]
    assert (found.profile.forwards, found.kernels, found.kernels_in_file) == (1, 2, 5)
    assert found.profile.profiled_wall_s == pytest.approx(7e-6)


def test_published_export_without_correlation_ids(tmp_path: Path) -> None:
    """Kernels that no call can be found of are read, and need the number of forwards."""
    trace = read_nsys(write_capture(tmp_path / "trace.sqlite", CAPTURE_2025))
    runs = [(run.name, run.start, run.end) for run in trace.runs]
    assert runs == [("matmul_kernel", 0, 200), ("matmul_kernel", 500, 800)]
    with pytest.raises(TraceError, match="--forwards K"):
        nsys_profiles(trace)
    assert nsys_profiles(trace, 1)[0].profile.times == pytest.approx({"device": 500e-9})
