"""The end of a report: what its words mean, and what to do about answers that are flagged, unclear
or too few.
"""

import dataclasses
from typing import Any

import pytest

from orchestrator.report.answers import (
    cautions_of,
    decisions_of,
    flag_steps,
    legend,
    next_steps_of,
)
from orchestrator.report.data import Report, load_report
from orchestrator.report.render import ReportFormat
from orchestrator.report.section import HINT_WIDTH, hint_lines
from orchestrator.report.summary import summary_sections
from store.open.engine import connect
from store.write.record import record
from store.write.submission import NewSweep, submit_sweep
from tests.orchestrator.vision_fixtures import job, outcome, printed, topk

FORMS: tuple[ReportFormat, ...] = ("table", "markdown")


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """A report of two clear comparisons."""
    path = str(tmp_path_factory.mktemp("steps") / "store.db")
    engine = connect(path)
    found = job("latency", [topk(0.2), topk(0.4)])
    submit_sweep(engine, NewSweep("sweep", "text", "What is next?"), found.comparisons(), [])
    record(engine, None, None, outcome(found))
    engine.dispose()
    return load_report(path, "sweep")


def altered(report: Report, **columns: Any) -> Report:
    """The report with other values in its first speed-up."""
    speedups = report.speedups.copy()
    for name, value in columns.items():
        speedups[name] = speedups[name].astype(object)
        speedups.loc[speedups.index[0], name] = value
    return dataclasses.replace(report, speedups=speedups)


def test_clear_answers_need_nothing(measured: Report) -> None:
    """A report without doubts requests no further pairs; of a promise that did not arrive it names
    what would show the reason.
    """
    assert not list(next_steps_of(measured))
    assert not list(legend(measured))
    (advice,) = decisions_of(measured)
    assert (
        advice
        == "2 arms gained clearly less than their MACs suggest; try `runtime: [eager, compile,"
        " openvino]` under `axes`"
    )
    for form in FORMS:
        assert advice in printed(measured, form).splitlines()[-1]


def test_arms_that_only_lose_are_named(measured: Report) -> None:
    """An arm that is slower wherever it was measured gives way to the unmodified model; one that is
    unclear does not.
    """
    slow = {"verdict": "slower", "speedup": 0.8, "speedup_low": 0.79, "speedup_high": 0.81}
    found = list(decisions_of(altered(measured, **slow)))
    assert (
        found[-1]
        == "use the unmodified model instead of topk keep_rate=0.2: slower wherever it was"
        " measured"
    )
    assert len(list(decisions_of(altered(measured, **{**slow, "verdict": "unclear"})))) == 1
    assert not list(decisions_of(altered(measured, runtime="compile")))


def test_doubtful_answers_name_the_command(measured: Report) -> None:
    """Too few pairs, an unclear speed-up and a busy machine each have their own advice, which names
    the command.
    """
    unclear = {"verdict": "unclear", "speedup": 0.97, "speedup_low": 0.95, "speedup_high": 0.985}
    (advice,) = next_steps_of(altered(measured, verdict="insufficient"), "x.yaml")
    assert (
        advice
        == "1 comparison has too few pairs; the same command adds pairs: breakeven run x.yaml"
    )
    (advice,) = next_steps_of(altered(measured, **unclear), "x.yaml")
    assert advice.endswith(
        "this adds pairs, until they are clear or as precise as the sweep requests: breakeven run"
        " x.yaml --refine"
    )
    (advice,) = next_steps_of(altered(measured, **unclear, flags="contended"), "x.yaml")
    assert advice.startswith("1 comparison has the flag contended: run again when the machine")
    assert advice.endswith(": breakeven run x.yaml --retry-flagged")
    assert list(flag_steps(altered(measured, flags="token_trace_mismatch"))) == [
        "1 comparison has the flag token_trace_mismatch, which workers/README.md explains (Flags)"
    ]


def test_a_contended_run_has_one_hint(measured: Report) -> None:
    """Several flags of a busy machine are one line, and the first screen has no other on it; hints
    are at most 120 wide, and a command stands in one line.
    """
    busy = altered(measured, flags="contended,slow_state,low_priority", host_speed=0.5)
    (step,) = flag_steps(busy, "x.yaml")
    assert step == (
        "1 comparison has the flags contended or low_priority or slow_state: run again when the"
        " machine is quiet: breakeven run x.yaml --retry-flagged"
    )
    assert "measured beside other programs" in " ".join(cautions_of(busy))
    (*_, notes) = summary_sections(busy)
    shown = [line.text for line in notes.lines]
    assert max(map(len, shown)) <= HINT_WIDTH
    assert sum("quiet" in line or "host" in line for line in shown) == 1
    assert any(
        line.startswith("  breakeven run sweep") and line.endswith("--retry-flagged")
        for line in shown
    )


def test_hints_are_wrapped_and_commands_are_not() -> None:
    """A long hint continues on further lines; what is to be copied is never broken."""
    command = "breakeven run " + "x" * 150
    lines = hint_lines(f"{'word ' * 60}end: {command}")
    assert lines[-1] == f"  {command}"
    assert max(map(len, lines[:-1])) <= HINT_WIDTH
    assert " ".join(lines[:-1]) == f"{'word ' * 60}end:"
    assert hint_lines("short: breakeven app") == ["short: breakeven app"]
