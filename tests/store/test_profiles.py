"""Profiles in the store: the views have them, and a file is imported once."""

import time
from typing import Any

import pytest
from sqlalchemy import Engine

from store.read.queries import sweep_summaries
from store.rows.profiles import best_peaks, keep_peaks, record_profiles
from store.rows.transactions import writing
from sweeps.model.outcome import Failure
from sweeps.model.profile import Activities, ArmProfile, Peaks
from tests.fixtures.sql_rows import rows
from tests.store.conftest import keep, submit, table
from tests.store.profile_fixtures import (
    CPU,
    NOW,
    a_profile,
    a_profile_job,
    a_profiled_outcome,
    with_changes,
)

TIMES: list[Any] = [{"device": 20.0, "host": 5.0}, {"device": 12.0, "host": 6.0}]


def test_the_view_of_profiles(engine: Engine) -> None:
    """One row for each arm and class of time, with the arm, the machine, its peaks and the sums
    over operators; differences from the baseline with their intervals, of which that has none.
    """
    outcome = a_profiled_outcome(a_profile_job(), TIMES, flags=["contended"])
    keep(engine, with_changes(outcome))
    found = {
        (row["method"], row["time_class"]): row for row in rows(engine, "SELECT * FROM profile")
    }
    assert set(found) == {
        (method, name) for method in ("dense", "topk") for name in ("device", "host")
    }
    row, dense = found["topk", "device"], found["dense", "device"]
    ratio = 25 / 18
    assert {name: row[name] for name in ("ms", "wall_ms", "share", "product_share")} == (
        pytest.approx({"ms": 12.0, "wall_ms": 18.0, "share": 12 / 18, "product_share": 0.5})
    )
    ends = [row[f"{name}{end}"] for name in ("change", "speedup") for end in ("", "_low", "_high")]
    expected = (-0.32, -0.33, -0.31, ratio, ratio / 1.01, ratio * 1.01)
    assert ends == pytest.approx(expected)
    assert {
        "phase": "forward",
        "tool": "torch",
        "launches": 225,
        "forwards": 10,
        "gmacs": 0.5,
        "bytes_moved": 3e7,
        "peak_gflops": 100.0,
        "peak_gb_per_s": 10.0,
        "model": "deit_tiny_patch16_224",
        "image_size": 224,
        "device_name": "Imaginary CPU",
        "host": "here",
        "source": "imported",
        "job_flags": "contended",
        "rounds": 30,
        "baseline_arm_id": dense["arm_id"],
    }.items() <= row.items()
    names = ("change", "speedup", "rounds", "baseline_arm_id")
    assert [dense[name] for name in names] == [None, None, 30, None]


def test_the_view_of_kernels(engine: Engine) -> None:
    """One row for each operator, longest first, with rates where work is known."""
    keep(engine, a_profiled_outcome(a_profile_job(), TIMES))
    columns = "name, count, ms, gflops, gb_per_s, sm_throughput"
    found = table(engine, f"SELECT {columns} FROM kernel WHERE method = 'dense' ORDER BY rank")
    assert found == [
        ("aten::addmm", 48, *map(pytest.approx, (10.0, 100.0, 2.0)), None),
        ("aten::gelu", 12, pytest.approx(10.0), None, pytest.approx(1.0), None),
    ]


def test_walls_stand_beside_each_other(engine: Engine) -> None:
    """The effect of a profile job holds both walls and claims no ratio: a few forwards are no
    measurement of a speed-up. A comparison of it counts as measured, a failed one as a failure.
    """
    job = a_profile_job()
    submit(engine, [job])

    def counts() -> tuple[int, int]:
        (sweep,) = sweep_summaries(engine)
        return sweep["measured"], sweep["failures"]

    assert counts() == (0, 0)
    failed = Failure(arm=1, reason="out_of_memory", message="no")
    keep(engine, a_profiled_outcome(job, TIMES, failures=[failed]))
    assert counts() == (0, 1)
    assert table(engine, "SELECT kind, reason FROM failures") == [("profile", "out_of_memory")]
    assert table(engine, "SELECT DISTINCT method FROM profile") == [("dense",)]
    keep(engine, a_profiled_outcome(job, TIMES, ended_at=NOW + 60))
    assert counts() == (1, 0)
    columns = "metric, unit, compared, effect, verdict, baseline_value, arm_value, n"
    walls = (*map(pytest.approx, (25.0, 18.0)), 10)
    assert table(engine, f"SELECT {columns} FROM effect") == [
        ("forward_wall", "ms", None, None, None, *walls)
    ]
    assert table(engine, "SELECT * FROM speedup") == table(engine, "SELECT * FROM break_even") == []


def imported(engine: Engine, *profiles: ArmProfile, digest: str = "ab", **more: Any) -> int:
    with writing(engine) as connection:
        return record_profiles(connection, profiles, digest=digest, file="trace.sqlite", **more)


def test_a_file_is_imported_once(engine: Engine) -> None:
    """Tied to a comparison it has the arm's columns; again it changes nothing; another file is
    another profile. A trace of the baseline has the condition and no method of the arm. A counter
    that has no column is not dropped silently.
    """
    job = a_profile_job()
    submit(engine, [job])
    kernel = Activities(
        name="gemm", activity="kernel", count=2, seconds=1e-3, counters={"sm_throughput": 61.0}
    )
    profile = a_profile(1, {"device": 2.0, "idle": 1.0}).model_copy(
        update={"tool": "nsys", "activities": (kernel,)}
    )
    tied: dict[str, Any] = {"comparison_id": job.comparison_ids()[0], "device_name": "T4"}
    assert imported(engine, profile, **tied, side="arm") == 1
    assert imported(engine, profile, **tied, side="arm") == 0
    assert imported(engine, profile, digest="cd", label="by hand") == 1
    assert imported(engine, profile, digest="ef", **tied, side="baseline", label="dense") == 1
    columns = "method, model, label, source, file, attempt, device_name"
    found = table(
        engine, f"SELECT {columns} FROM profile WHERE time_class = 'device' ORDER BY method, label"
    )
    of, deit = ("imported", "trace.sqlite", None), "deit_tiny_patch16_224"
    assert found == [
        (None, None, "by hand", *of, None),
        (None, deit, "dense", *of, "T4"),
        ("topk", deit, None, *of, "T4"),
    ]
    assert table(engine, "SELECT sm_throughput FROM kernel") == [(61.0,)] * 3
    unknown = kernel.model_copy(update={"counters": {"warp_speed": 9.0}})
    wrong = ArmProfile(arm=0, tool="ncu", forwards=1, activities=(unknown,))
    with pytest.raises(ValueError, match="'warp_speed' is no counter; known are sm_throughput"):
        imported(engine, wrong, digest="gh")


def test_peaks_are_kept_by_machine(engine: Engine) -> None:
    """The best of each dtype and number of threads, whenever it was measured; those of a profile
    job name it.
    """
    keep(engine, a_profiled_outcome(a_profile_job(), TIMES))
    newer = Peaks(gflops=120.0, gb_per_s=11.0, dtype="float32", threads=2)
    half = newer.model_copy(update={"gflops": 30.0, "dtype": "bfloat16"})
    before = time.time()
    keep_peaks(engine, CPU, "here", [newer, half])
    keep_peaks(engine, CPU, "here", [Peaks(gflops=7.0, gb_per_s=4.2, dtype="float32", threads=2)])
    found = best_peaks(engine, CPU.environment_id, "here")
    assert best_peaks(engine, CPU.environment_id, "elsewhere") == {}
    expected = {("float32", 2): newer, ("bfloat16", 2): half}
    assert {key: peaks for key, (peaks, _) in found.items()} == expected
    assert all(before <= measured_at <= time.time() for _, measured_at in found.values())
    attempts = table(engine, "SELECT attempt FROM peak_row ORDER BY id")
    assert attempts == [(1,), (None,), (None,), (None,)]
