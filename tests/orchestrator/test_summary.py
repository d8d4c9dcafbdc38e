"""The first screen of a report: every figure in it is that of the store, and there is room for all
of it.
"""

import io
import re
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from orchestrator.report.answers import cautions_of
from orchestrator.report.data import load_report
from orchestrator.report.render import render_table
from orchestrator.report.summary import MAX_ARMS, MAX_CONDITIONS, MAX_SIZES, summary_sections
from store.open.engine import connect
from store.write.submission import NewSweep, submit_sweep
from sweeps.model.condition import Overrides
from sweeps.model.job import Arm
from sweeps.model.outcome import Failure, MetricValue
from sweeps.model.profile import Peaks
from tests.orchestrator import vision_fixtures as vision
from tests.orchestrator.commands import breakeven
from tests.orchestrator.vision_fixtures import report_of
from tests.store.profile_fixtures import a_profile_job, a_profiled_outcome, with_changes
from workers.methods.arm_labels import params_label


def test_the_quickstart_fits_one_screen(stored: Path) -> None:
    """At most 30 lines; those of the table have at most 120 characters, and each break-even stands
    once.
    """
    shown = breakeven("report", "quickstart", folder=stored, COLUMNS="120").stdout.splitlines()
    assert len(shown) <= 30
    start = next(number for number, line in enumerate(shown) if line.startswith("method"))
    table = [line for line in shown[start:] if re.match(r"method|topk|tome|random", line)]
    assert len(table) > 4
    assert max(map(len, table)) <= 120
    assert "--detail" in shown[-1]


def test_cells_are_those_of_the_store(stored: Path) -> None:
    """Each speed-up with the sign of its verdict, by arm and size."""
    report = load_report(str(stored / "breakeven.db"), "quickstart")
    table, *_ = summary_sections(report)
    signs = {
        "faster": "↑",
        "slower": "↓",
        "same": "=",
        "unclear": "?",
        "insufficient": "?",
        "quarantined": "?",
    }
    cells = [
        dict(zip([column.label for column in table.columns], row, strict=True))
        for row in table.cells()
    ]
    found = {row["method"]: row for row in cells}
    main = report.speedups[report.speedups["metric"] == "latency"]
    assert len(main) > 30
    for point in main.itertuples():
        cell = found[params_label(point.method, point.params)][f"{point.tokens:.0f}"]
        assert cell.rstrip("*") == f"{point.speedup:.2f}{signs[str(point.verdict)]}"
    claims = report.break_evens[
        (report.break_evens["axis"] == "tokens") & (report.break_evens["metric"] == "latency")
    ]
    crossing = claims[claims["verdict"] == "crossing"]
    assert len(crossing)
    for row in crossing.itertuples():
        assert any(
            each["break-even, tokens"].startswith(f"{row.x_low:.0f} to {row.x_high:.0f}, likely ")
            for each in cells
        )


def test_an_interval_wider_than_the_value_has_no_digits(stored: Path) -> None:
    """As after three rounds: `> 100` per cent, and not `3.7e+02`."""
    report = load_report(str(stored / "breakeven.db"), "quickstart")
    few = report.speedups.assign(speedup_low=0.05, speedup_high=18.0)
    table, *_ = summary_sections(replace(report, speedups=few))
    column = [column.label for column in table.columns].index("± %")
    assert {row[column] for row in table.cells()} == {"> 100"}


def test_much_is_counted(tmp_path: Path) -> None:
    """Many conditions, arms and sizes: some of each are shown, the others counted."""
    arms = [vision.topk(rate) for rate in vision.RATES]
    outcomes = [
        vision.outcome(vision.job("latency", arms, batch_size=2**power))
        for power in range(MAX_CONDITIONS + 2)
    ]
    shown = list(summary_sections(report_of(tmp_path / "s.db", *outcomes)))
    assert sum(bool(section.rows) for section in shown) == MAX_CONDITIONS
    assert [section.title for section in shown if section.title.startswith("and ")] == [
        "and 2 conditions more: --detail"
    ]
    assert all(
        len(section.rows) <= MAX_ARMS and len(section.columns) <= MAX_SIZES + 4 for section in shown
    )


def test_why_follows_the_screen(tmp_path: Path) -> None:
    """Where the time goes stands below the answer, once, on request."""
    times = [{"device": 20.0, "host": 4.0}, {"device": 12.0, "host": 5.0}]
    shown, profiled = [], with_changes(a_profiled_outcome(a_profile_job(), times))
    for reasons in (False, True):
        console = Console(file=io.StringIO(), width=120)
        console.print(
            render_table(report_of(tmp_path / f"{reasons}.db", profiled), reasons=reasons)
        )
        assert isinstance(console.file, io.StringIO)
        shown.append(console.file.getvalue().count("Why"))
    assert shown == [0, 1]


def test_break_evens_stand_by_runtime(tmp_path: Path) -> None:
    """One row for each runtime, with what it gains over eager and when exporting is repaid: 4 s, of
    which each image saves 10 - 10 / 1.2 ms.
    """
    arms = [*map(vision.topk, vision.RATES[:2]), Arm(overrides=Overrides(runtime="openvino"))]
    plain = vision.job("latency", arms)
    condition = plain.condition.model_copy(update={"runtime": "openvino"})
    other = vision.job("latency", arms[:2]).model_copy(update={"condition": condition})
    measured = vision.outcome(plain.model_copy(update={"warm": True}))
    took = MetricValue(name="seconds_to_compile", value=4.0, unit="s", n=1)
    exported = measured.arms[3].model_copy(update={"metrics": (took,)})
    measured = measured.model_copy(update={"arms": (*measured.arms[:3], exported)})
    shown, *_ = summary_sections(report_of(tmp_path / "s.db", measured, vision.outcome(other)))
    assert shown.title.startswith("break-even in tokens by runtime: digits_vit_64")
    assert [(row[0], *row[-2:]) for row in shown.cells()] == [
        ("eager float32", "-", "-"),
        ("openvino float32", "1.20↑", "2,400"),
    ]


def test_a_baseline_far_below_the_peak_is_named(tmp_path: Path) -> None:
    """40 MFLOP in 10 ms are 4 of 40 GFLOP/s; not where the baseline ran with other settings."""
    arms = [vision.topk(0.2), vision.topk(0.2, runtime="compile")]
    report = report_of(tmp_path / "s.db", vision.outcome(vision.job("latency", arms)))
    place = report.points[0].environment, report.points[0].host
    line = "float32 eager reaches 10 % of this CPU's 40 GFLOP/s"
    for rows, named in (("eager", True), ("compile", False)):
        speedups = report.speedups[report.speedups["runtime"] == rows].assign(runtime="eager")
        (threads,) = set(speedups["threads"])
        peak = Peaks(gflops=40, gb_per_s=1, dtype="float32", threads=threads)
        peaks = {place: {("float32", threads): peak}}
        found = "; ".join(cautions_of(replace(report, speedups=speedups, peaks=peaks)))
        assert (line in found) is named
        assert ("GFLOP/s" in found) is named
    assert "GFLOP/s" not in "; ".join(cautions_of(report))


def test_a_report_without_values_states_that(tmp_path: Path) -> None:
    """What was never run names the command; where every arm failed that stands before the
    reasons.
    """
    requested = vision.job("latency", [vision.topk(0.2)])
    failures = (Failure(arm=1, reason="unsupported", message="not here"),)
    failed = vision.outcome(requested).model_copy(update={"failures": failures, "samples": None})
    engine = connect(str(tmp_path / "empty.db"))
    submit_sweep(engine, NewSweep("sweep", "text", "Pays?"), requested.comparisons(), [])
    engine.dispose()
    for report, line in (
        (
            load_report(str(tmp_path / "empty.db"), "sweep"),
            "nothing is measured yet; this measures",
        ),
        (
            report_of(tmp_path / "failed.db", failed),
            "nothing has a measured value: 1 comparison without a measurement (1 × unsupported)",
        ),
    ):
        assert not report.holds_values
        (*_, notes) = summary_sections(report)
        assert notes.lines[0].text.startswith(line)
