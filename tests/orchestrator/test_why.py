"""The part "Why" of a report, from profiles whose reason is known, and the ceiling beside speed-ups."""

import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from orchestrator import estimate
from orchestrator.commands.import_files import import_files
from orchestrator.outcome_lines import comparison_lines
from orchestrator.report.data import Report, load_report
from orchestrator.report.render import ReportFormat, write_report
from store.engine import connect
from store.explanations import with_ceilings
from store.record import record
from store.submission import NewSweep, submit_sweep
from sweeps.job import Arm, Overrides, Step
from sweeps.outcome import Outcome
from sweeps.protocol import Protocol
from tests.fixtures.device_traces import a_trace
from tests.fixtures.nsys_exports import write_nsys
from tests.orchestrator import vision_fixtures as vision
from tests.store.profile_fixtures import GPU, NOW, a_profile_job, a_profiled_outcome

CPU_TIMES: list[Any] = [{"device": 20.0, "host": 4.0}, {"device": 12.0, "host": 5.0}]
GPU_TIMES: list[Any] = [
    {"device": 3.8, "launch": 3.0, "host": 1.2},
    {"device": 2.0, "launch": 4.0, "host": 2.05},
    {"device": 2.0, "launch": 0.5, "host": 0.5},
]


def topk(**overrides: Any) -> Arm:
    return Arm(stack=(Step(method="topk", params={"keep_rate": 0.5}),), overrides=Overrides(**overrides))


def report_of(path: Path, *outcomes: Outcome) -> Report:
    """The report of a sweep that requested what the outcomes answer."""
    engine = connect(str(path))
    requested = [(found.job.comparison(pair), found.job.content_hashes) for found in outcomes for pair in found.job.pairs]
    submit_sweep(engine, NewSweep("trial", "text", "What pays?"), requested, [])
    for found in outcomes:
        record(engine, None, None, found)
    engine.dispose()
    return load_report(str(path), "trial")


def text_of(report: Report, form: ReportFormat = "table") -> str:
    console = Console(file=io.StringIO(), width=240)
    write_report(report, form, console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize("form", ["table", "markdown"])
def test_the_reason_stands_below_the_times(tmp_path: Path, form: ReportFormat) -> None:
    """Classes of both arms side by side, the sentence that follows, and what the machine still allows."""
    shown = text_of(report_of(tmp_path / "s.db", a_profiled_outcome(a_profile_job(), CPU_TIMES)), form)
    assert "Why: deit_tiny_patch16_224 (random weights), 224 px, batch 1" in shown
    assert (
        "topk keep_rate=0.5: time in operators fell 40 %, 25 operator calls were added, the forward is bound by its operators, "
        "so wall time fell 29 %"
    ) in shown
    assert "dense: 50 of 100 GFLOP/s and 1.5 of 10 GB/s while the device works: arithmetic is the limit; " in shown
    assert "without its matrix products it would be at most 1.71x as fast" in shown
    assert "compute" in shown
    assert "1.55x at most" in shown
    assert "nothing measured yet" not in shown


def test_flagged_profiles_are_doubted(tmp_path: Path) -> None:
    """Beside the flag stands what it means for the walls."""
    disturbed = a_profiled_outcome(a_profile_job(), CPU_TIMES, flags=["contended"])
    shown = text_of(report_of(tmp_path / "s.db", disturbed), "markdown")
    assert "| contended |" in shown
    assert "Flagged walls are medians of a few disturbed forwards" in shown


def test_the_newest_profile_of_an_arm_counts(tmp_path: Path) -> None:
    """A second attempt replaces the first, table and sentence alike."""
    job = a_profile_job()
    later = a_profiled_outcome(job, [CPU_TIMES[0], {"device": 16.0, "host": 5.0}], ended_at=NOW + 60)
    shown = text_of(report_of(tmp_path / "s.db", a_profiled_outcome(job, CPU_TIMES), later))
    assert "time in operators fell 20 %" in shown
    assert "fell 40 %" not in shown


def test_a_captured_arm_measures_launch_overhead(tmp_path: Path) -> None:
    """Eager and captured in one job: the difference is stated as measured, for the eager arm alone."""
    job = a_profile_job([topk(), topk(runtime="cudagraph")], device="cuda")
    shown = text_of(report_of(tmp_path / "s.db", a_profiled_outcome(job, GPU_TIMES, environment=GPU)))
    assert "device work fell 47 %, 25 launches were added, the forward is launch-bound, so wall time did not fall" in shown
    sentence = "captured as a CUDA graph it takes 3 ms in place of 8.05 ms: 63 % of the wall is launch overhead, as measured"
    assert shown.count(sentence) == 1
    assert f"topk keep_rate=0.5: {sentence}" in shown


def test_a_compiled_arm_is_no_measure_of_launch_overhead(tmp_path: Path) -> None:
    """It fuses kernels too."""
    job = a_profile_job([topk(), topk(runtime="compile")], device="cuda")
    shown = text_of(report_of(tmp_path / "s.db", a_profiled_outcome(job, GPU_TIMES, environment=GPU)))
    assert "launch overhead" not in shown


def test_without_profiles_there_is_no_such_part(tmp_path: Path) -> None:
    """A report of speed-ups alone is as it was."""
    shown = text_of(report_of(tmp_path / "s.db", vision.outcome(vision.job("latency", [vision.topk(0.5)]))))
    assert "Why" not in shown
    assert "cut for nothing" not in shown


def test_reached_ceiling_and_promise_stand_side_by_side(tmp_path: Path) -> None:
    """Where an arm that only cuts has the same tokens, its speed-up is the ceiling; others have none."""
    free = Arm(stack=(Step(method="free", params={"keep_rate": 0.2}),))
    report = report_of(tmp_path / "s.db", vision.outcome(vision.job("latency", [vision.topk(0.2), free, vision.topk(0.6)])))
    ceilings = with_ceilings(report.speedups, "free".__eq__).set_index(["method", "params"])["ceiling"]
    assert ceilings["topk", '{"keep_rate":0.2}'] == pytest.approx(1.5)
    assert ceilings["topk", '{"keep_rate":0.6}'] != ceilings["topk", '{"keep_rate":0.6}'], "missing"
    shown = text_of(report, "markdown")
    (line,) = (line for line in shown.splitlines() if line.startswith("| topk keep_rate=0.2"))
    cells = [cell.strip() for cell in line.split("|")]
    (heading,) = (line for line in shown.splitlines() if line.startswith("| method") and "cut for nothing" in line)
    columns = [cell.strip() for cell in heading.split("|")]
    assert cells[columns.index("cut for nothing")] == "1.50x"
    assert cells[columns.index("MACs promise")] == "5.00x"
    assert cells[columns.index("speed-up [99 %]")].startswith("2.000x")


def test_progress_states_the_reason() -> None:
    """The line of an arm is the sentence on why."""
    (line,) = comparison_lines(a_profiled_outcome(a_profile_job(), CPU_TIMES))
    assert line.plain.startswith("  topk keep_rate=0.5: time in operators fell 40 %")


def test_the_estimate_counts_the_passes_under_the_profiler() -> None:
    """Longer than the timing alone, by what each arm takes."""
    job = a_profile_job().model_copy(update={"protocol": Protocol(budget_s=10.0)})
    timing = estimate.job_seconds(job.model_copy(update={"kind": "latency"}))
    assert estimate.job_seconds(job) == pytest.approx(timing + 2 * estimate.PROFILING_SECONDS)


def test_imported_profiles_state_what_they_cover(tmp_path: Path) -> None:
    """A timeline of nsys stands in the table of its condition, with file, forwards and the share of kernel time that it has."""
    job = a_profile_job(device="cuda")
    outcome = a_profiled_outcome(job, GPU_TIMES[:2], environment=GPU)
    report_of(tmp_path / "s.db", outcome)
    (comparison_id,) = job.comparison_ids()
    write_nsys(tmp_path / "trace.sqlite", a_trace(4, marks=(f"breakeven:comparison:{comparison_id}", "breakeven:side:arm")))
    import_files([tmp_path / "trace.sqlite"], db=str(tmp_path / "s.db"))
    shown = text_of(load_report(str(tmp_path / "s.db"), "trial"))
    assert (
        "topk keep_rate=0.5: recorded by nsys in trace.sqlite, 4 forwards under the profiler; "
        "share of the arm's kernel time that its kernels take: 100 %"
    ) in shown
