"""The audit of a stored sweep: its profiles stand among its rows, whether a job or an outside
profiler recorded them.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from store.open.engine import Engine, connect, disposing
from store.read.audits import measured_sweep
from store.write.record import record_imported
from store.write.traces import StatedTie, TraceFile, record_traces
from sweeps.analysis.audit.report import AuditReport, audit_table, profile_notes
from sweeps.importers.measurement import MeasurementTable
from sweeps.importers.nsys import nsys_profiles
from sweeps.importers.traces import ImportedProfile
from sweeps.model.job import DENSE, Job
from sweeps.model.outcome import MetricValue, Outcome
from tests.fixtures.device_traces import DEVICE_US, a_trace
from tests.store.conftest import an_outcome, keep, submit, table, with_arms
from tests.store.profile_fixtures import CPU, GPU, Classes, a_profile_job, a_profiled_outcome
from tests.webapp.simulated import job, outcome, store_outcomes, tome, topk, with_medians

GPU_TIMES: list[Classes] = [{"device": 3.8, "launch": 4.2}, {"device": 2.0, "launch": 6.0}]


def profiled(engine: Engine, times: Sequence[Classes] = GPU_TIMES, **more: Any) -> Job:
    """Record a sweep `trial` with its only outcome."""
    job = a_profile_job(device=more.get("environment", GPU).device)
    made = a_profiled_outcome(job, times, **{"environment": GPU, **more})
    submit(engine, [job], "trial")
    # the peaks of the fixture are slower than its forwards
    keep(engine, made.model_copy(update={"peaks": ()}))
    return job


def imported(
    engine: Engine, file: str, profiles: tuple[ImportedProfile, ...], job: Job, arm: str = "arm"
) -> None:
    """What an outside profiler recorded of an arm of the job's only comparison."""
    (comparison,) = job.comparison_ids()
    trace = TraceFile(file, hashlib.sha256(file.encode()).hexdigest(), profiles)
    tie = StatedTie(comparison=comparison, arm=arm)
    record_imported(engine, [], lambda connection: record_traces(connection, [trace], tie))


def measured(engine: Engine, name: str = "trial") -> MeasurementTable:
    return measured_sweep(engine, name, lambda method, _: method)


def audited(engine: Engine) -> AuditReport:
    return audit_table(measured(engine))


def found(engine: Engine) -> list[tuple[str, str]]:
    return [(each.severity, each.rule) for each in audited(engine).findings]


@pytest.mark.parametrize(
    ("environment", "times"),
    [(GPU, GPU_TIMES), (CPU, [{"device": 20.0, "host": 4.0}, {"device": 12.0, "host": 5.0}])],
)
def test_profiles_of_a_job_are_rows(engine: Engine, environment: Any, times: list[Classes]) -> None:
    """Device time beside the wall of the same forward, as a condition of its own; sound profiles
    are silent. Neither kernels nor rates follow from operators of a CPU, which are lengthened.
    """
    profiled(engine, times, environment=environment)
    read = measured(engine)
    own = [row for row in read.rows if row.device_ms is not None]
    assert [(row.label, row.device_ms, row.latency_ms) for row in own] == [
        (label, pytest.approx(of["device"]), pytest.approx(sum(of.values())))
        for label, of in zip(("dense", "topk"), times, strict=True)
    ]
    assert all(row.setting and row.setting.endswith("profile by torch") for row in own)
    assert list(profile_notes(read)) == ["2 profiles among the rows: 2 by torch"]
    if environment is CPU:
        assert all(row.kernel_ms is None and row.gmacs is None for row in own)
    assert found(engine) == []


def test_a_trace_longer_than_the_wall_is_found(engine: Engine) -> None:
    """A timeline of nsys with 0.18 ms of kernels in a forward cannot be that of an arm that takes
    0.08 ms.
    """
    job = profiled(engine, [{"device": 0.05, "launch": 0.03}] * 2)
    assert found(engine) == []
    imported(engine, "trace.sqlite", nsys_profiles(a_trace(4)), job)
    (finding,) = audited(engine).findings
    assert (finding.severity, finding.rule) == ("contradiction", "device_within_wall")
    assert "profile by nsys in trace.sqlite" in finding.sentence
    assert f"busy for {DEVICE_US / 1e3:.3g} ms of a forward that takes 0.08 ms" in finding.sentence
    notes = ["3 profiles among the rows: 1 by nsys, 2 by torch"]
    assert list(profile_notes(measured(engine))) == notes


def with_metrics(outcome: Outcome, values: Sequence[dict[str, float]]) -> Outcome:
    """The outcome with these figures of its arms, in ms and per second."""
    units = {"latency": "ms", "throughput": "1/s"}

    def metrics(own: dict[str, float]) -> tuple[MetricValue, ...]:
        return tuple(MetricValue(name=name, value=own[name], unit=units[name]) for name in own)

    return with_arms(outcome, *({"metrics": metrics(own)} for own in values))


def test_an_arm_that_was_timed_and_profiled(engine: Engine) -> None:
    """Although the profile was recorded last, the view `arm` has both, and the audit reads the times
    of the job that timed it.
    """
    job = a_profile_job()
    classes: list[Classes] = [{"device": 30.0, "host": 4.0}, {"device": 12.0, "host": 5.0}]
    profile = a_profiled_outcome(job, classes).model_copy(update={"peaks": ()})
    timing = job.model_copy(update={"kind": "latency"})
    times = ({"latency": 10.0, "throughput": 100.0}, {"latency": 5.0, "throughput": 200.0})
    # of the rounds of the profile, on a machine that is slower meanwhile
    slower = ({"latency": 34.0}, {"latency": 17.0})
    submit(engine, [job, timing], "trial")
    keep(engine, with_metrics(an_outcome(timing, speedups=(2.0,), environment=CPU), times))
    keep(engine, with_metrics(profile, slower))
    assert table(engine, "SELECT method, kind, latency_ms FROM arm ORDER BY kind, method") == [
        ("dense", "latency", 10.0),
        ("topk", "latency", 5.0),
        ("dense", "profile", 34.0),
        ("topk", "profile", 17.0),
    ]
    read = [(row.device_ms, row.latency_ms, row.throughput) for row in measured(engine).rows]
    assert [row[1:] for row in read if row[0] is None] == [(10.0, 100.0), (5.0, 200.0)]
    assert [row[1] for row in read if row[0] is not None] == [34, 17]
    # the MACs of a test are not the model's
    assert {rule for _, rule in found(engine)} <= {"catalogue_macs"}


@pytest.mark.parametrize("flag", ["", "contended"])
def test_a_busy_machine_is_no_contradiction(tmp_path: Path, flag: str) -> None:
    """Throughput has a pass of its own; beside other programs it may be a quarter of what the
    latency suggests.
    """
    figures = [{"latency": 55.1, "throughput": 4.63}] * len(job(64).arms)
    busy = with_metrics(outcome(job(64)), figures)
    busy = busy.model_copy(update={"flags": (flag,) if flag else ()})
    with disposing(connect(store_outcomes(tmp_path / "s.db", "trial", busy))) as engine:
        of = found(engine)
    assert (("contradiction", "throughput_times_latency") in of) == (not flag)


@pytest.mark.parametrize("kind", ["latency", "profile"])
def test_arms_of_other_sweeps_and_runs_are_left_out(tmp_path: Path, kind: str) -> None:
    """Of an attempt that several sweeps share, a sweep has the arms, or profiles, that its answers
    are about; a speed-up is that by pairs.
    """
    shared = with_medians(outcome(job(64, arms=(DENSE, topk(0.5), tome(0.06)))))
    if kind == "profile":
        profiles = a_profile_job((topk(0.5), tome(0.06)))
        times: list[Classes] = [{"device": 2.0, "launch": 6.0}] * 3
        shared = a_profiled_outcome(profiles, times, environment=GPU)
    engine = connect(store_outcomes(tmp_path / "s.db", "both", shared))
    submit(engine, [shared.job.only(shared.job.pairs[:1])], "one")
    tables = {name: measured(engine, name) for name in ("both", "one")}
    assert {
        name: {row.label for row in read.rows if kind == "latency" or row.device_ms}
        for name, read in tables.items()
    } == {"both": {"dense", "topk", "tome"}, "one": {"dense", "topk"}}
    if kind == "latency":
        dense, arm = tables["one"].rows
        assert arm.paired is not None
        slow = dense.model_copy(update={"latency_ms": 100 * (dense.latency_ms or 1)})
        later = tables["one"].model_copy(update={"rows": (slow, arm)})
        assert "beyond_macs" not in {each.rule for each in audit_table(later).findings}
    engine.dispose()
