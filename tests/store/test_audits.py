"""The audit of a stored sweep: its profiles stand among its rows, whether a job or an outside
profiler recorded them.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from store.errors import StoreError
from store.open.engine import Engine, connect
from store.read.audits import measured_sweep
from store.write.record import record_imported
from store.write.submission import NewSweep, submit_sweep
from store.write.traces import StatedTie, TraceFile, record_traces
from sweeps.analysis.audit.report import AuditReport, audit_table, profile_notes
from sweeps.importers.ncu import ncu_profiles, read_ncu
from sweeps.importers.nsys import nsys_profiles
from sweeps.importers.traces import ImportedProfile
from sweeps.model.job import DENSE, Job
from sweeps.model.outcome import MetricValue, Outcome
from tests.fixtures.device_traces import DEVICE_US, a_trace
from tests.fixtures.ncu_tables import CASTS, raw_page
from tests.fixtures.sql_rows import rows
from tests.store.conftest import an_outcome, keep
from tests.store.profile_fixtures import CPU, GPU, Classes, a_profile_job, a_profiled_outcome
from tests.webapp.simulated import job, outcome, store_outcomes, tome, topk, with_medians

GPU_TIMES: list[Classes] = [{"device": 3.8, "launch": 4.2}, {"device": 2.0, "launch": 6.0}]


RULES_OF_RATES = {"throughput_times_latency", "beyond_macs"}


def stored(path: Path, outcome: Outcome) -> Engine:
    """A store with a sweep `trial` and its only outcome."""
    engine = connect(str(path))
    requested = [
        (outcome.job.comparison(pair), outcome.job.content_hashes) for pair in outcome.job.pairs
    ]
    submit_sweep(engine, NewSweep("trial", "text", "What pays?"), requested, [])
    keep(engine, outcome)
    return engine


def profiled(path: Path, times: Sequence[Classes] = GPU_TIMES, **more: Any) -> tuple[Engine, Job]:
    job = a_profile_job(device=more.get("environment", GPU).device)
    outcome = a_profiled_outcome(job, times, **{"environment": GPU, **more})
    # those of the fixture are slower than its forwards
    return stored(path, outcome.model_copy(update={"peaks": ()})), job


def imported(
    engine: Engine, file: str, profiles: tuple[ImportedProfile, ...], job: Job, arm: str = "arm"
) -> None:
    """What an outside profiler recorded of an arm of the job's only comparison."""
    (comparison,) = job.comparison_ids()
    trace = TraceFile(file, hashlib.sha256(file.encode()).hexdigest(), profiles)
    record_imported(
        engine,
        [],
        lambda connection: record_traces(
            connection, [trace], StatedTie(comparison=comparison, arm=arm)
        ),
    )


def audited(engine: Engine) -> AuditReport:
    return audit_table(measured_sweep(engine, "trial", lambda method, _: method))


def found(engine: Engine) -> list[tuple[str, str]]:
    return [(each.severity, each.rule) for each in audited(engine).findings]


def test_profiles_of_a_job_are_rows(tmp_path: Path) -> None:
    """Device time beside the wall of the same forward, as a condition of its own; sound profiles
    are silent.
    """
    engine, _ = profiled(tmp_path / "s.db")
    table = measured_sweep(engine, "trial", lambda method, _: method)
    own = [row for row in table.rows if row.device_ms is not None]
    assert [(row.label, row.device_ms, row.latency_ms, row.batch) for row in own] == [
        ("dense", pytest.approx(3.8), pytest.approx(8.0), 1),
        ("topk", pytest.approx(2.0), pytest.approx(8.0), 1),
    ]
    assert all(row.setting and row.setting.endswith("profile by torch") for row in own)
    assert list(profile_notes(table)) == ["2 profiles among the rows: 2 by torch"]
    assert found(engine) == []


def test_operators_of_a_cpu_stand_beside_the_wall(tmp_path: Path) -> None:
    """Their time as a class of the wall; neither kernels nor rates follow from operators, which the
    profiler lengthens.
    """
    engine, _ = profiled(
        tmp_path / "s.db",
        [{"device": 20.0, "host": 4.0}, {"device": 12.0, "host": 5.0}],
        environment=CPU,
    )
    own = [
        row
        for row in measured_sweep(engine, "trial", lambda method, _: method).rows
        if row.device_ms is not None
    ]
    assert [(row.device_ms, row.latency_ms) for row in own] == [(20, 24), (12, 17)]
    assert all(row.kernel_ms is None and row.gmacs is None for row in own)
    assert found(engine) == []


def test_a_trace_longer_than_the_wall_is_found(tmp_path: Path) -> None:
    """A timeline of nsys with 0.18 ms of kernels in a forward cannot be that of an arm that takes
    0.08 ms.
    """
    engine, job = profiled(
        tmp_path / "s.db", [{"device": 0.05, "launch": 0.03}, {"device": 0.05, "launch": 0.03}]
    )
    assert found(engine) == []
    imported(engine, "trace.sqlite", nsys_profiles(a_trace(4)), job)
    (finding,) = audited(engine).findings
    assert (finding.severity, finding.rule) == ("contradiction", "device_within_wall")
    assert "profile by nsys in trace.sqlite" in finding.sentence
    assert f"busy for {DEVICE_US / 1e3:.3g} ms of a forward that takes 0.08 ms" in finding.sentence
    assert list(profile_notes(measured_sweep(engine, "trial", lambda method, _: method))) == [
        "3 profiles among the rows: 1 by nsys, 2 by torch"
    ]


def test_a_sound_trace_is_silent(tmp_path: Path) -> None:
    """The same timeline beside a wall of 8 ms, of the arm or of its baseline."""
    for side in ("arm", "baseline"):
        engine, job = profiled(tmp_path / f"{side}.db")
        imported(engine, "trace.sqlite", nsys_profiles(a_trace(4)), job, side)
        assert found(engine) == []


def test_a_few_kernels_of_ncu_are_doubted(tmp_path: Path) -> None:
    """Two casts of weights that take a small share of the kernel time do not stand for the
    forward.
    """
    engine, job = profiled(tmp_path / "s.db")
    names = ("cast", "cast", *["gemm"] * 20)
    imported(engine, "whole.sqlite", nsys_profiles(a_trace(4, names)), job)
    casts = [each._replace(name="cast") for each in CASTS[:2]]
    imported(engine, "casts.csv", ncu_profiles(read_ncu(raw_page(casts)), 1), job)
    (finding,) = audited(engine).findings
    assert (finding.severity, finding.rule) == ("doubtful", "profile_coverage")
    assert (
        "2 kernels profiled, which take 9.1 % of the kernel time of a forward" in finding.sentence
    )
    assert "sm_throughput" in finding.sentence
    assert "are about these alone" in finding.sentence


def test_unknown_and_empty_sweeps(tmp_path: Path) -> None:
    """An unknown name is an error that names the nearest; a sweep without a measurement has no
    rows.
    """
    engine = connect(str(tmp_path / "s.db"))
    submit_sweep(engine, NewSweep("trial", "text", "What pays?"), [], [])
    assert measured_sweep(engine, "trial", lambda method, _: method).rows == ()
    with pytest.raises(StoreError, match="did you mean trial"):
        measured_sweep(engine, "trail", lambda method, _: method)


@pytest.mark.parametrize("newest", ["latency", "profile"])
def test_an_arm_that_was_timed_and_profiled(tmp_path: Path, newest: str) -> None:
    """Whichever was recorded last, the view `arm` has both, and the audit reads the times of the
    job that timed it.
    """
    job = a_profile_job()
    profile = a_profiled_outcome(
        job, [{"device": 30.0, "host": 4.0}, {"device": 12.0, "host": 5.0}]
    ).model_copy(update={"peaks": ()})
    latencies = ({"latency": 10.0, "throughput": 100.0}, {"latency": 5.0, "throughput": 200.0})
    timed = with_metrics(
        an_outcome(job.model_copy(update={"kind": "latency"}), speedups=(2.0,), environment=CPU),
        latencies,
    )
    # of the rounds of the profile, on a machine that is slower meanwhile
    slower = ({"latency": 34.0}, {"latency": 17.0})
    outcomes = [with_metrics(profile, slower), timed]
    engine = connect(str(tmp_path / "s.db"))
    requested = [
        (each.job.comparison(pair), each.job.content_hashes)
        for each in outcomes
        for pair in each.job.pairs
    ]
    submit_sweep(engine, NewSweep("trial", "text", "What pays?"), requested, [])
    for each in outcomes if newest == "latency" else reversed(outcomes):
        keep(engine, each)
    seen = rows(engine, "SELECT method, kind, latency_ms FROM arm ORDER BY kind, method")
    assert [tuple(row.values()) for row in seen] == [
        ("dense", "latency", 10.0),
        ("topk", "latency", 5.0),
        ("dense", "profile", 34.0),
        ("topk", "profile", 17.0),
    ]
    table = measured_sweep(engine, "trial", lambda method, _: method)
    assert [
        (row.label, row.latency_ms, row.throughput) for row in table.rows if row.device_ms is None
    ] == [("dense", 10.0, 100.0), ("topk", 5.0, 200.0)]
    assert [row.latency_ms for row in table.rows if row.device_ms is not None] == [34, 17]
    # the MACs of a test are not the model's
    assert {rule for _, rule in found(engine)} <= {"catalogue_macs"}


def test_profiles_of_other_sweeps_are_left_out(tmp_path: Path) -> None:
    """Of a profiled attempt that two sweeps share, each has the profiles that its answers are
    about.
    """
    job = a_profile_job((topk(0.5), tome(0.06)))
    classes: Classes = {"device": 2.0, "launch": 6.0}
    engine = stored(tmp_path / "s.db", a_profiled_outcome(job, [classes] * 3, environment=GPU))
    (comparison,) = [job.comparison(pair) for pair in job.pairs if pair.arm == 1]
    submit_sweep(
        engine, NewSweep("one", "text", "What pays?"), [(comparison, job.content_hashes)], []
    )
    tables = {
        name: measured_sweep(engine, name, lambda method, _: method) for name in ("trial", "one")
    }
    traced = {
        name: sorted(row.label for row in table.rows if row.device_ms)
        for name, table in tables.items()
    }
    assert traced == {"trial": ["dense", "tome", "topk"], "one": ["dense", "topk"]}


def with_metrics(outcome: Outcome, values: Sequence[dict[str, float]]) -> Outcome:
    """The outcome with these figures of its arms, in ms and per second."""
    units = {"latency": "ms", "throughput": "1/s"}
    metrics = [
        tuple(MetricValue(name=name, value=value, unit=units[name]) for name, value in each.items())
        for each in values
    ]
    arms = tuple(
        arm.model_copy(update={"metrics": own})
        for arm, own in zip(outcome.arms, metrics, strict=True)
    )
    return outcome.model_copy(update={"arms": arms})


@pytest.mark.parametrize(
    ("flags", "rules"), [((), {"throughput_times_latency"}), (("contended",), set())]
)
def test_a_busy_machine_is_no_contradiction(
    tmp_path: Path, flags: tuple[str, ...], rules: set[str]
) -> None:
    """Throughput has a pass of its own; beside other programs it may be a quarter of what the
    latency suggests.
    """
    busy = with_metrics(
        outcome(job(64)), [{"latency": 55.1, "throughput": 4.63}] * len(job(64).arms)
    )
    engine = connect(
        store_outcomes(tmp_path / "s.db", "trial", busy.model_copy(update={"flags": flags}))
    )
    report = audited(engine)
    assert {
        each.rule for each in report.findings if each.severity == "contradiction"
    } & RULES_OF_RATES == rules


def test_arms_of_other_sweeps_and_runs_are_left_out(tmp_path: Path) -> None:
    """Of an attempt that several sweeps share, a sweep has the arms that its answers are about; a
    speed-up is that by pairs.
    """
    shared = outcome(job(64, arms=(DENSE, topk(0.5), tome(0.06))))
    engine = connect(store_outcomes(tmp_path / "s.db", "both", with_medians(shared)))
    (comparison,) = [
        each for pair in shared.job.pairs for each in [shared.job.comparison(pair)] if pair.arm == 1
    ]
    submit_sweep(
        engine, NewSweep("one", "text", "What pays?"), [(comparison, shared.job.content_hashes)], []
    )
    tables = {
        name: measured_sweep(engine, name, lambda method, _: method) for name in ("both", "one")
    }
    assert {name: {row.label for row in table.rows} for name, table in tables.items()} == {
        "both": {"dense", "topk", "tome"},
        "one": {"dense", "topk"},
    }
    dense, arm = tables["one"].rows
    assert arm.paired is not None
    slow = dense.model_copy(update={"latency_ms": 100 * (dense.latency_ms or 1)})
    later = tables["one"].model_copy(update={"rows": (slow, arm)})
    assert [each.rule for each in audit_table(later).findings if each.rule == "beyond_macs"] == []
    engine.dispose()
