"""Imported profiles in the store: tied to their comparison, stored once, replaced when more is
stated, all of them or none.
"""

import hashlib
from collections.abc import Sequence
from typing import Any

import pytest
from sqlalchemy import Engine

from store.errors import StoreError
from store.write.record import record_imported
from store.write.traces import RecordedTrace, StatedTie, TraceFile, record_traces
from sweeps.importers.ncu import ncu_profiles, read_ncu
from sweeps.importers.nsys import nsys_profiles
from sweeps.importers.traces import DeviceTrace, TraceError
from sweeps.model.outcome import Outcome
from tests.fixtures.device_traces import KERNELS, a_trace
from tests.fixtures.ncu_tables import Launch, raw_page
from tests.fixtures.sql_rows import rows
from tests.store.conftest import a_job, an_outcome

TABLES = ("profile_row", "profile_time_row", "kernel_row")


def marks(outcome: Outcome, arm: int) -> tuple[str, ...]:
    (comparison_id,) = outcome.job.comparison_ids()
    return (
        f"breakeven:comparison:{comparison_id}",
        f"breakeven:side:{('baseline', 'arm')[arm]}",
        f"breakeven:arm:{arm}",
    )


def timeline(trace: DeviceTrace, forwards: int | None = None) -> TraceFile:
    return TraceFile(
        "trace.sqlite",
        hashlib.sha256(repr(trace).encode()).hexdigest(),
        nsys_profiles(trace, forwards),
    )


def kernels_of(names: Sequence[str], nvtx: str = "", forwards: int | None = None) -> TraceFile:
    page = raw_page([Launch(name, 1000, 50.0, 60.5, 70.0, 10.0, 20.0) for name in names], nvtx=nvtx)
    return TraceFile(
        "report.csv",
        hashlib.sha256(page.encode()).hexdigest(),
        ncu_profiles(read_ncu(page), forwards),
    )


def stored(
    engine: Engine, *traces: TraceFile, outcomes: Sequence[Outcome] = (), **request: Any
) -> list[RecordedTrace]:
    """Import these traces with what the user states of them."""
    found: list[RecordedTrace] = []
    record_imported(
        engine,
        outcomes,
        lambda connection: found.extend(record_traces(connection, traces, StatedTie(**request))),
    )
    return found


def everything(engine: Engine) -> list[list[dict[str, Any]]]:
    return [rows(engine, f"SELECT * FROM {table} ORDER BY 1, 2") for table in TABLES]


@pytest.fixture
def outcome(engine: Engine) -> Outcome:
    """An outcome in the store: topk beside dense."""
    made = an_outcome(a_job())
    record_imported(engine, [made])
    return made


@pytest.mark.parametrize(("arm", "side", "label"), [(0, "baseline", "dense"), (1, "arm", "topk")])
def test_marks_tie_a_trace_to_its_arm(
    engine: Engine, outcome: Outcome, arm: int, side: str, label: str
) -> None:
    """A trace with marks is tied to the comparison and the arm that they name; a second import
    changes nothing.
    """
    trace = timeline(a_trace(4, marks=marks(outcome, arm)))
    (first,) = stored(engine, trace)
    (comparison_id,) = outcome.job.comparison_ids()
    assert (first.state, first.tie.comparison_id, first.tie.side, first.kernel_time_share) == (
        "imported",
        comparison_id,
        side,
        (1.0,),
    )
    assert first.tie.label is not None
    assert first.tie.label.startswith(label)
    before = everything(engine)
    (row,) = before[0]
    assert (row["tool"], row["arm"], row["forwards"], row["launches"], row["file"]) == (
        "nsys",
        arm,
        4,
        18,
        "trace.sqlite",
    )
    assert {each["time_class"] for each in before[1]} == {
        "device",
        "launch",
        "sync",
        "host",
        "idle",
    }
    assert len(before[2]) == len(set(KERNELS))

    (second,) = stored(engine, trace)
    assert second.state == "known"
    assert everything(engine) == before


def test_stated_comparison(engine: Engine, outcome: Outcome) -> None:
    """A trace without marks is tied to the comparison whose id, or its beginning, is stated, and to
    the stated arm of it.
    """
    (comparison_id,) = outcome.job.comparison_ids()
    (found,) = stored(engine, timeline(a_trace(4)), comparison=comparison_id[:6], arm="baseline")
    assert (found.tie.comparison_id, found.tie.side) == (comparison_id, "baseline")
    (found,) = stored(engine, timeline(a_trace(5)), comparison=comparison_id, arm="topk")
    assert found.tie.side == "arm"
    assert str(found.tie).startswith(f"the arm of comparison {comparison_id}: topk")


def test_untied_until_more_is_stated(engine: Engine, outcome: Outcome) -> None:
    """Without marks and statement it is stored with a note; stated later, it is replaced, and stays
    tied when imported again.
    """
    (comparison_id,) = outcome.job.comparison_ids()
    trace = timeline(a_trace(4))
    (first,) = stored(engine, trace, arm="my arm")
    assert (first.state, first.tie.comparison_id, first.tie.label) == ("imported", None, "my arm")
    assert "--comparison ID --arm baseline|arm ties it" in first.tie.notes[0]
    assert stored(engine, trace)[0].state == "known"
    (tied,) = stored(engine, trace, comparison=comparison_id, arm="arm")
    assert (tied.state, tied.tie.side) == ("replaced", "arm")
    (again,) = stored(engine, trace)
    assert (again.state, again.tie.comparison_id, again.tie.side) == ("known", comparison_id, "arm")
    assert len(everything(engine)[0]) == 1


def test_marks_of_a_comparison_that_comes_later(engine: Engine) -> None:
    """The comparison in the marks is kept although the store does not hold it; the arm has its name
    once the outcome is there.
    """
    outcome = an_outcome(a_job())
    trace = timeline(a_trace(4, marks=marks(outcome, 1)))
    (first,) = stored(engine, trace)
    assert first.tie[:3] == (outcome.job.comparison_ids()[0], "arm", None)
    assert "the store does not hold comparison" in first.tie.notes[0]
    (second,) = stored(engine, trace, outcomes=[outcome])
    assert second.state == "replaced"
    assert (second.tie.label or "").startswith("topk")


def test_contradictions(engine: Engine, outcome: Outcome) -> None:
    """What contradicts marks or store is an error that names both, and nothing is stored."""
    (comparison_id,) = outcome.job.comparison_ids()
    marked, bare = timeline(a_trace(4, marks=marks(outcome, 1))), timeline(a_trace(4))
    foreign = timeline(a_trace(4, marks=("breakeven:comparison:00", "breakeven:side:arm")))
    for trace, request, message in (
        (
            bare,
            {"comparison": "zz"},
            "--comparison zz is no comparison in the store; .*breakeven query",
        ),
        (
            foreign,
            {"comparison": comparison_id},
            f"--comparison {comparison_id} disagrees with the marks .* which name 00",
        ),
        (
            marked,
            {"arm": "baseline"},
            "--arm baseline disagrees with the mark in the file: it shows the arm of comparison",
        ),
        (
            bare,
            {"comparison": comparison_id},
            f"which arm of comparison {comparison_id} it shows is not known; add --arm baseline",
        ),
        (
            bare,
            {"comparison": comparison_id, "arm": "tome"},
            "--arm tome: the comparison has the baseline dense and the arm topk",
        ),
    ):
        with pytest.raises(StoreError, match=message):
            stored(engine, trace, **request)
    assert everything(engine) == [[], [], []]


def test_all_or_nothing(engine: Engine) -> None:
    """If one of several traces contradicts itself, neither the others nor the outcomes beside them
    are stored.
    """
    outcome = an_outcome(a_job())
    good, wrong = timeline(a_trace(4, marks=marks(outcome, 1))), timeline(a_trace(5))
    with pytest.raises(StoreError, match="is no comparison in the store"):
        stored(engine, good, wrong, outcomes=[outcome], comparison="zz")
    assert everything(engine) == [[], [], []]
    assert rows(engine, "SELECT * FROM attempt") == []


def test_share_that_kernels_cover(engine: Engine, outcome: Outcome) -> None:
    """Kernels of ncu cover a share that a timeline of the same arm shows; until there is one it is
    not known.
    """
    nvtx = " ".join(marks(outcome, 1))
    report = kernels_of(["gemm", "gemm", "softmax"], nvtx)
    assert stored(engine, report)[0].kernel_time_share == (None,)
    (of_baseline,) = stored(engine, timeline(a_trace(4, marks=marks(outcome, 0))))
    assert of_baseline.tie.side == "baseline"
    assert stored(engine, report)[0].state == "known"

    found = stored(engine, report, timeline(a_trace(5, marks=marks(outcome, 1))))
    assert [each.trace.file for each in found] == ["trace.sqlite", "report.csv"]
    assert found[1].state == "replaced"
    assert found[1].kernel_time_share == (pytest.approx(3 / len(KERNELS)),)
    assert [
        row["kernel_time_share"]
        for row in rows(engine, "SELECT kernel_time_share FROM profile_row WHERE tool = 'ncu'")
    ] == [pytest.approx(3 / 18)]
    assert stored(engine, report)[0].state == "known"


def test_stated_forwards_of_kernels(engine: Engine) -> None:
    """Another stated number of forwards replaces what was stored; none stated leaves it."""
    assert stored(engine, kernels_of(["gemm", "add"]))[0].state == "imported"
    assert (
        stored(engine, kernels_of(["gemm", "add"], forwards=2), forwards=2)[0].state == "replaced"
    )
    assert stored(engine, kernels_of(["gemm", "add"]))[0].state == "known"
    assert [row["forwards"] for row in rows(engine, "SELECT forwards FROM profile_row")] == [2]


def test_another_device_is_noted(engine: Engine, outcome: Outcome) -> None:
    """A trace of another device than that of the comparison is stored with a note."""
    (found,) = stored(engine, timeline(a_trace(4, marks=marks(outcome, 1))))
    assert found.tie.notes == (
        (
            "it was recorded on Imaginary GPU, the comparison was measured on Imaginary CPU: do not"
            " compare their times"
        ),
    )


def test_views_show_imported_profiles(engine: Engine, outcome: Outcome) -> None:
    """The views `profile` and `kernel` have the imported rows with their comparison and tool."""
    stored(
        engine,
        timeline(a_trace(4, marks=marks(outcome, 1))),
        kernels_of(["gemm", "softmax"], " ".join(marks(outcome, 1))),
    )
    times = {
        row["time_class"]: row["ms"]
        for row in rows(engine, "SELECT * FROM profile WHERE tool = 'nsys'")
    }
    assert times == pytest.approx(
        {"device": 0.18, "launch": 0.041, "sync": 0.004, "host": 0.003, "idle": 0}, abs=1e-9
    )
    gemm = rows(engine, "SELECT * FROM kernel WHERE name = 'gemm' ORDER BY tool")
    assert [(row["tool"], row["count"], row["comparison_id"]) for row in gemm] == [
        ("ncu", 1, outcome.job.comparison_ids()[0]),
        ("nsys", 3, outcome.job.comparison_ids()[0]),
    ]


@pytest.mark.parametrize(("side", "place"), [("baseline", 0), ("arm", 1)])
def test_a_file_has_the_id_of_its_arm(
    engine: Engine, outcome: Outcome, side: str, place: int
) -> None:
    """Of the baseline too, so that a page pairs it with the arm that it is compared with."""
    stored(engine, timeline(a_trace(4, marks=marks(outcome, place))), outcomes=[outcome])
    (found,), (of,) = (
        {row["arm_id"] for row in rows(engine, "SELECT arm_id FROM profile WHERE tool = 'nsys'")},
        {
            row["id"]
            for row in rows(
                engine, f"SELECT {side if side == 'arm' else 'baseline'}_id AS id FROM comparison"
            )
        },
    )
    assert found == of


def test_two_arms_in_one_file() -> None:
    """Marks of two arms in one file are refused before anything is stored."""
    with pytest.raises(TraceError, match="name the arms 0, 1; a file holds one arm"):
        timeline(a_trace(4, marks=("breakeven:arm:0", "breakeven:arm:1")))
