"""The part "Why" of a report, from profiles whose reason is known, and the ceiling beside
speed-ups.
"""

import re
from pathlib import Path
from typing import Any

import pytest

from orchestrator.commands.import_files import import_files
from orchestrator.loop.progress import comparison_lines
from orchestrator.plan import time_budget
from orchestrator.report.data import load_report
from orchestrator.report.render import sections
from store.read.curves import with_ceilings
from sweeps.analysis import job_estimate
from sweeps.model.condition import Overrides
from sweeps.model.job import Arm, Protocol, Step
from sweeps.model.profile import IntervalEstimate
from tests.fixtures.device_traces import a_trace
from tests.fixtures.ncu_tables import CASTS, raw_page
from tests.fixtures.nsys_exports import write_nsys
from tests.orchestrator import vision_fixtures as vision
from tests.orchestrator.vision_fixtures import printed, report_of
from tests.store.conftest import an_outcome
from tests.store.profile_fixtures import (
    CPU,
    GPU,
    a_profile_job,
    a_profiled_outcome,
    with_changes,
)

CPU_TIMES: list[Any] = [{"device": 20.0, "host": 4.0}, {"device": 12.0, "host": 5.0}]
GPU_TIMES: list[Any] = [
    {"device": 3.8, "launch": 3.0, "host": 1.2},
    {"device": 2.0, "launch": 4.0, "host": 2.05},
    {"device": 2.0, "launch": 0.5, "host": 0.5},
]


def topk(**overrides: Any) -> Arm:
    return Arm(
        stack=(Step(method="topk", params={"keep_rate": 0.5}),), overrides=Overrides(**overrides)
    )


def test_the_reason_stands_below_the_times(tmp_path: Path) -> None:
    """Classes of both arms side by side, the sentence that follows, and what the machine still
    allows.
    """
    shown = printed(
        report_of(tmp_path / "s.db", with_changes(a_profiled_outcome(a_profile_job(), CPU_TIMES)))
    )
    assert "Why: deit_tiny_patch16_224 (random weights), 224 px (196 tokens), batch 1" in shown
    assert (
        "topk keep_rate=0.5: time in operators fell by 33 % of the wall (32 to 34), Python and"
        " dispatch rose by 4.2 % of the wall (3.2 to 5.2), 25 operator calls were added, the"
        " forward is bound by its operators (71 % of its wall), so wall time fell 29 % (28 to 30)"
        in shown
    )
    assert "-33.3 [-34.3, -32.3]" in shown
    assert "-29.2 [-29.9, -28.5]" in shown
    assert shown.count("with the 99 % interval of each alone") == 1
    assert (
        "dense: 50 of 100 GFLOP/s and 1.5 of 10 GB/s while the device works: arithmetic is the"
        " limit; " in shown
    )
    assert "without its matrix products it would be at most 1.71x as fast" in shown
    assert "compute" in shown
    assert "1.55x at most" in shown
    assert "nothing measured yet" not in shown


def test_flagged_profiles_are_doubted(tmp_path: Path) -> None:
    """Beside the flag stands what it means for the walls."""
    disturbed = a_profiled_outcome(a_profile_job(), CPU_TIMES, flags=["contended"])
    shown = printed(report_of(tmp_path / "s.db", disturbed), "markdown")
    assert "| contended |" in shown
    assert "Flagged arms were disturbed while they were profiled" in shown


def test_rates_of_a_profile_without_precision_are_left_out(tmp_path: Path) -> None:
    """Too few rounds for any interval: no limit of the machine is concluded from such walls."""
    profiled = with_changes(a_profiled_outcome(a_profile_job(), CPU_TIMES))
    bare = [
        profile.model_copy(
            update={
                "speedup": profile.speedup and IntervalEstimate(value=profile.speedup.value),
                "changes": {},
            }
        )
        for profile in profiled.profiles or ()
    ]
    shown = printed(
        report_of(tmp_path / "s.db", profiled.model_copy(update={"profiles": tuple(bare)}))
    )
    assert "profiled in too few rounds for their noise" in shown
    assert "GFLOP/s" not in shown


def test_the_first_lines_state_where_the_time_goes(tmp_path: Path) -> None:
    """Of the baseline that arms are compared with, as shares of its wall."""
    profiled = with_changes(a_profiled_outcome(a_profile_job(), CPU_TIMES))
    timed = an_outcome(
        a_profile_job().model_copy(update={"kind": "latency"}), speedups=(24 / 17,), environment=CPU
    )
    first = next(sections(report_of(tmp_path / "s.db", profiled, timed)))
    assert (
        "where the time of a forward goes, dense: 24 ms at 224 px (196 tokens): operators 83 %,"
        " Python, dispatch 17 %" in [line.text for line in first.lines]
    )


def test_a_slow_profiler_is_a_limit(tmp_path: Path) -> None:
    """Where forwards take 2.3 times as long under it, this is stated; where a fifth longer, it is
    not.
    """
    for slowed, expected in ((1.2, False), (2.3, True)):
        outcome = with_changes(a_profiled_outcome(a_profile_job(), CPU_TIMES), slowed=slowed)
        shown = printed(report_of(tmp_path / f"{slowed}.db", outcome))
        assert ("Under the profiler forwards take up to 2.3 times as long" in shown) is expected


@pytest.mark.parametrize(("runtime", "measured"), [("cudagraph", 1), ("compile", 0)])
def test_a_captured_arm_measures_launch_overhead(
    tmp_path: Path, runtime: str, measured: int
) -> None:
    """Eager and captured in one job: the difference is stated as measured, for the eager arm
    alone. A compiled arm fuses kernels too: it is no measure of that.
    """
    job = a_profile_job([topk(), topk(runtime=runtime)], device="cuda")
    shown = printed(
        report_of(
            tmp_path / "s.db", with_changes(a_profiled_outcome(job, GPU_TIMES, environment=GPU))
        )
    )
    assert "the forward is launch-bound (75 % of its wall), and wall time did not change" in shown
    sentence = (
        "topk keep_rate=0.5: captured as a CUDA graph it takes 3 ms instead of 8.05 ms: 63 % of the"
        " wall (62 to 63) is launch overhead, as measured"
    )
    assert shown.count(sentence) == shown.count("launch overhead") == measured


def test_reached_ceiling_and_promise_stand_side_by_side(tmp_path: Path) -> None:
    """Where an arm that only cuts has the same tokens, its speed-up is the ceiling; others have
    none.
    """
    free = Arm(stack=(Step(method="truncate", params={"keep_rate": 0.2}),))
    report = report_of(
        tmp_path / "s.db",
        vision.outcome(vision.job("latency", [vision.topk(0.2), free, vision.topk(0.6)])),
    )
    ceilings = with_ceilings(report.speedups, "truncate".__eq__).set_index(["method", "params"])[
        "ceiling"
    ]
    assert ceilings["topk", '{"keep_rate":0.2}'] == pytest.approx(1.5)
    assert ceilings["topk", '{"keep_rate":0.6}'] != ceilings["topk", '{"keep_rate":0.6}'], "missing"
    shown = printed(report, "markdown")
    heading = next(
        line
        for line in shown.splitlines()
        if line.startswith("| method") and "cut for nothing" in line
    )
    table = shown[shown.index(heading) :].splitlines()
    columns = [cell.strip() for cell in heading.split("|")]
    (line,) = (line for line in table if line.startswith("| topk keep_rate=0.2"))
    cells = dict(zip(columns, (cell.strip() for cell in line.split("|")), strict=True))
    assert re.fullmatch(r"1\.500x \[1\.3\d\d, 1\.6\d\d\]", cells["cut for nothing [99.5 %]"])
    assert re.fullmatch(r"2\.000x \[1\.8\d\d, 2\.1\d\d\]", cells["reached [99.5 %]"])
    assert cells["MACs promise"] == "5.00x"
    assert re.fullmatch(r"0\.750x \[0\.\d\d\d, 0\.\d\d\d\]", cells["left at most"])
    assert not any(
        line.startswith("| topk keep_rate=0.6") for line in table[: table.index("", 2)]
    ), "it has no ceiling"
    assert "is measured faster than the same tokens cut for nothing, which is impossible" in shown
    assert "the same tokens cut for nothing, which no reduction can beat: 1.500x [" in shown


def test_progress_states_the_reason() -> None:
    """The line of an arm is the sentence on why."""
    (line,) = comparison_lines(with_changes(a_profiled_outcome(a_profile_job(), CPU_TIMES)))
    assert line.plain.startswith("  topk keep_rate=0.5: time in operators fell by 33 %")


def test_the_estimate_counts_the_passes_under_the_profiler() -> None:
    """Longer than the timing alone, by what each arm takes."""
    job = a_profile_job().model_copy(update={"protocol": Protocol(budget_s=10.0)})
    timing = time_budget.job_seconds(job.model_copy(update={"kind": "latency"}))
    assert time_budget.job_seconds(job) == pytest.approx(
        timing + 2 * job_estimate.PROFILING_SECONDS
    )


def test_imported_profiles_state_what_they_cover(tmp_path: Path) -> None:
    """A timeline of nsys stands in the table of its condition, with file, forwards and the share of
    kernel time that it has.
    """
    job = a_profile_job(device="cuda")
    outcome = a_profiled_outcome(job, GPU_TIMES[:2], environment=GPU)
    report_of(tmp_path / "s.db", outcome)
    (comparison_id,) = job.comparison_ids()
    write_nsys(
        tmp_path / "trace.sqlite",
        a_trace(4, marks=(f"breakeven:comparison:{comparison_id}", "breakeven:side:arm")),
    )
    import_files([tmp_path / "trace.sqlite"], db=str(tmp_path / "s.db"))
    shown = printed(load_report(str(tmp_path / "s.db"), "trial"))
    assert (
        "topk keep_rate=0.5: recorded by nsys in trace.sqlite, 4 forwards under the profiler; "
        "share of the arm's kernel time that its kernels take: 100 %" in shown
    )


def test_kernels_of_ncu_have_a_table(tmp_path: Path) -> None:
    """Kernels that were recorded one by one, with their counters, and what share of the arm they
    are.
    """
    job = a_profile_job(device="cuda")
    report_of(tmp_path / "s.db", a_profiled_outcome(job, GPU_TIMES[:2], environment=GPU))
    (comparison_id,) = job.comparison_ids()
    marks = f"breakeven:comparison:{comparison_id} breakeven:side:arm"
    (tmp_path / "report.csv").write_text(raw_page(CASTS, nvtx=marks))
    import_files([tmp_path / "report.csv"], db=str(tmp_path / "s.db"))
    report = load_report(str(tmp_path / "s.db"), "trial")
    shown = printed(report, "markdown")
    assert "Kernels of topk keep_rate=0.5 in report.csv" in shown
    assert "sm throughput, %" in shown
    assert "The share of the arm" in shown
    (section,) = (each for each in sections(report) if each.title.startswith("Kernels of"))
    longest = max(CASTS, key=lambda each: each.ns)
    assert [row.name for row in section.rows] == [
        longest.name,
        next(each.name for each in CASTS if each.name != longest.name),
    ]
    assert section.rows[0].sm_throughput == pytest.approx(longest.sm)
