"""Profiles in the store: nothing is lost, the views have them, and a file is imported once."""

import time
from typing import Any

import pytest
from sqlalchemy import Engine

from store.errors import StoreError
from store.read.queries import sweep_summaries
from store.rows.profiles import best_peaks, keep_peaks, load_profiles, record_profiles
from store.rows.transactions import writing
from store.write.reanalysis import reanalyse
from store.write.submission import NewSweep, submit_sweep
from sweeps.model.outcome import Failure
from sweeps.model.profile import Activities, ArmProfile, Peaks
from tests.fixtures.sql_rows import rows
from tests.store.conftest import keep
from tests.store.profile_fixtures import (
    CPU,
    NOW,
    a_profile,
    a_profile_job,
    a_profiled_outcome,
    with_changes,
)

TIMES: list[Any] = [{"device": 20.0, "host": 5.0}, {"device": 12.0, "host": 6.0}]


def test_nothing_of_a_profile_is_lost(engine: Engine) -> None:
    """An attempt gives back its very profiles, and the same outcome is known again."""
    outcome = a_profiled_outcome(a_profile_job(), TIMES)
    assert keep(engine, outcome)
    assert not keep(engine, outcome)
    with engine.connect() as connection:
        assert load_profiles(connection, 1) == outcome.profiles


def test_differences_are_stored_with_their_intervals(engine: Engine) -> None:
    """The arm has them by class, its baseline has none, and nothing of them is lost."""
    outcome = with_changes(a_profiled_outcome(a_profile_job(), TIMES))
    keep(engine, outcome)
    with engine.connect() as connection:
        assert load_profiles(connection, 1) == outcome.profiles
    found = {
        (row["method"], row["time_class"]): row for row in rows(engine, "SELECT * FROM profile")
    }
    row = found["topk", "device"]
    assert (row["change"], row["change_low"], row["change_high"]) == pytest.approx(
        (-0.32, -0.33, -0.31)
    )
    assert (
        row["speedup"],
        row["speedup_low"],
        row["speedup_high"],
        row["rounds"],
    ) == pytest.approx((25 / 18, 25 / 18 / 1.01, 25 / 18 * 1.01, 30))
    dense = found["dense", "device"]
    assert (dense["change"], dense["speedup"], dense["rounds"], dense["baseline_arm_id"]) == (
        None,
        None,
        30,
        None,
    )
    assert row["baseline_arm_id"] == dense["arm_id"]


def test_the_view_of_profiles(engine: Engine) -> None:
    """One row for each arm and class of time, with the arm, the machine, its peaks and the sums
    over operators.
    """
    keep(engine, a_profiled_outcome(a_profile_job(), TIMES, flags=["contended"]))
    found = {
        (row["method"], row["time_class"]): row for row in rows(engine, "SELECT * FROM profile")
    }
    assert set(found) == {
        (method, name) for method in ("dense", "topk") for name in ("device", "host")
    }
    row = found["topk", "device"]
    assert (row["ms"], row["wall_ms"], row["share"]) == pytest.approx((12.0, 18.0, 12 / 18))
    assert (row["phase"], row["tool"], row["launches"], row["forwards"]) == (
        "forward",
        "torch",
        225,
        10,
    )
    assert (row["gmacs"], row["bytes_moved"], row["product_share"]) == pytest.approx(
        (0.5, 3e7, 0.5)
    )
    assert (row["peak_gflops"], row["peak_gb_per_s"]) == (100.0, 10.0)
    assert (row["model"], row["image_size"], row["device_name"], row["host"]) == (
        "deit_tiny_patch16_224",
        224,
        "Imaginary CPU",
        "here",
    )
    assert (row["source"], row["job_flags"]) == ("imported", "contended")


def test_the_view_of_kernels(engine: Engine) -> None:
    """One row for each operator, longest first, with rates where work is known."""
    keep(engine, a_profiled_outcome(a_profile_job(), TIMES))
    found = rows(engine, "SELECT * FROM kernel WHERE method = 'dense' ORDER BY rank")
    assert [(row["name"], row["count"], row["ms"]) for row in found] == [
        ("aten::addmm", 48, pytest.approx(10.0)),
        ("aten::gelu", 12, pytest.approx(10.0)),
    ]
    assert found[0]["gflops"] == pytest.approx(100.0)
    assert found[0]["gb_per_s"] == pytest.approx(2.0)
    assert found[1]["gflops"] is None
    assert found[0]["sm_throughput"] is None


def test_walls_stand_beside_each_other(engine: Engine) -> None:
    """The effect of a profile job holds both walls and claims no ratio: a few forwards are no
    measurement of a speed-up.
    """
    keep(engine, a_profiled_outcome(a_profile_job(), TIMES))
    (row,) = rows(engine, "SELECT * FROM effect")
    assert (row["metric"], row["unit"], row["compared"], row["effect"], row["verdict"]) == (
        "forward_wall",
        "ms",
        None,
        None,
        None,
    )
    assert (row["baseline_value"], row["arm_value"], row["n"]) == pytest.approx((25.0, 18.0, 10))
    assert rows(engine, "SELECT * FROM speedup") == []
    assert rows(engine, "SELECT * FROM break_even") == []
    assert reanalyse(engine) == 1
    assert len(rows(engine, "SELECT * FROM effect")) == 1


def test_a_failed_arm_is_a_failure(engine: Engine) -> None:
    """Its comparison has the reason, and the baseline's profile stays."""
    failed = Failure(arm=1, reason="out_of_memory", message="no")
    keep(engine, a_profiled_outcome(a_profile_job(), TIMES, failures=[failed]))
    (row,) = rows(engine, "SELECT * FROM failures")
    assert (row["kind"], row["reason"]) == ("profile", "out_of_memory")
    assert {row["method"] for row in rows(engine, "SELECT * FROM profile")} == {"dense"}


def test_a_missing_phase_is_no_answer(engine: Engine) -> None:
    """An outcome that holds neither a profile nor a failure of an arm is an error of the worker."""
    outcome = a_profiled_outcome(a_profile_job(), TIMES)
    keep(engine, outcome.model_copy(update={"profiles": (outcome.profiles or ())[:1]}))
    (row,) = rows(engine, "SELECT * FROM failures")
    assert "no profile of forward" in row["message"]


def imported(engine: Engine, *profiles: ArmProfile, digest: str = "ab", **more: Any) -> int:
    with writing(engine) as connection:
        return record_profiles(connection, profiles, digest=digest, file="trace.sqlite", **more)


def test_a_file_is_imported_once(engine: Engine) -> None:
    """Tied to a comparison it has the arm's columns; again it changes nothing; another file is
    another profile.
    """
    job = a_profile_job()
    submit_sweep(engine, NewSweep("why", "text", "Why?"), [(job.comparisons()[0], {})], [])
    kernel = Activities(
        name="gemm", activity="kernel", count=2, seconds=1e-3, counters={"sm_throughput": 61.0}
    )
    profile = a_profile(1, {"device": 2.0, "idle": 1.0}).model_copy(
        update={"tool": "nsys", "activities": (kernel,)}
    )
    tied: dict[str, Any] = {
        "comparison_id": job.comparison_ids()[0],
        "side": "arm",
        "device_name": "T4",
    }
    assert imported(engine, profile, **tied) == 1
    assert imported(engine, profile, **tied) == 0
    assert imported(engine, profile, digest="cd", label="by hand") == 1
    found = rows(engine, "SELECT * FROM profile WHERE time_class = 'device' ORDER BY method")
    assert [
        (
            row["method"],
            row["label"],
            row["source"],
            row["file"],
            row["attempt"],
            row["device_name"],
        )
        for row in found
    ] == [
        (None, "by hand", "imported", "trace.sqlite", None, None),
        ("topk", None, "imported", "trace.sqlite", None, "T4"),
    ]
    assert [row["sm_throughput"] for row in rows(engine, "SELECT * FROM kernel")] == [61.0, 61.0]


def test_the_baseline_of_a_comparison_is_not_called_the_arm(engine: Engine) -> None:
    """A trace of the baseline has the condition of its comparison and no method of the arm."""
    job = a_profile_job()
    submit_sweep(engine, NewSweep("why", "text", "Why?"), [(job.comparisons()[0], {})], [])
    imported(
        engine,
        a_profile(0, {"device": 2.0}),
        comparison_id=job.comparison_ids()[0],
        side="baseline",
        label="dense",
    )
    (row,) = rows(engine, "SELECT * FROM profile")
    assert (row["method"], row["label"], row["model"]) == (None, "dense", "deit_tiny_patch16_224")


def test_an_unknown_counter_is_refused(engine: Engine) -> None:
    """Counters are columns, and one that has none is not dropped silently."""
    kernel = Activities(
        name="gemm", activity="kernel", count=2, seconds=1e-3, counters={"warp_speed": 9.0}
    )
    with pytest.raises(ValueError, match="'warp_speed' is no counter; known are sm_throughput"):
        imported(engine, ArmProfile(arm=0, tool="ncu", forwards=1, activities=(kernel,)))
    assert rows(engine, "SELECT * FROM kernel") == []


def test_an_unknown_counter_in_an_outcome(engine: Engine) -> None:
    """The outcome is not stored."""
    kernel = Activities(
        name="gemm", activity="kernel", count=2, seconds=1e-3, counters={"warp_speed": 9.0}
    )
    outcome = a_profiled_outcome(a_profile_job(), TIMES)
    profiles = tuple(
        profile.model_copy(update={"activities": (kernel,)}) for profile in outcome.profiles or ()
    )
    with pytest.raises(StoreError, match="warp_speed"):
        keep(engine, outcome.model_copy(update={"profiles": profiles}))


def test_peaks_are_kept_by_machine(engine: Engine) -> None:
    """The best of each dtype and number of threads, whenever it was measured; those of a profile
    job name it.
    """
    keep(engine, a_profiled_outcome(a_profile_job(), TIMES))
    newer = Peaks(gflops=120.0, gb_per_s=11.0, dtype="float32", threads=2)
    half = Peaks(gflops=30.0, gb_per_s=11.0, dtype="bfloat16", threads=2)
    before = time.time()
    keep_peaks(engine, CPU, "here", [newer, half])
    keep_peaks(engine, CPU, "here", [Peaks(gflops=7.0, gb_per_s=4.2, dtype="float32", threads=2)])
    found = best_peaks(engine, CPU.environment_id, "here")
    assert best_peaks(engine, CPU.environment_id, "elsewhere") == {}
    assert {key: peaks for key, (peaks, _) in found.items()} == {
        ("float32", 2): newer,
        ("bfloat16", 2): half,
    }
    assert all(before <= measured_at <= time.time() for _, measured_at in found.values())
    assert [row["attempt"] for row in rows(engine, "SELECT * FROM peak_row ORDER BY id")] == [
        1,
        None,
        None,
        None,
    ]


def test_a_profiled_comparison_counts_as_measured(engine: Engine) -> None:
    """The list of sweeps counts what has an answer, a ratio or not."""
    job = a_profile_job()
    submit_sweep(engine, NewSweep("why", "text", "Why?"), [(job.comparisons()[0], {})], [])
    assert [row["measured"] for row in sweep_summaries(engine)] == [0]
    failed = Failure(arm=1, reason="out_of_memory", message="no")
    keep(engine, a_profiled_outcome(job, TIMES, failures=[failed]))
    assert [(row["measured"], row["failures"]) for row in sweep_summaries(engine)] == [(0, 1)]
    keep(engine, a_profiled_outcome(job, TIMES, ended_at=NOW + 60))
    assert [(row["measured"], row["failures"]) for row in sweep_summaries(engine)] == [(1, 0)]
