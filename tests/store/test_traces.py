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
from tests.store.conftest import a_job, an_outcome, table

TABLES = ("profile_row", "profile_time_row", "kernel_row")
(COMPARISON,) = a_job().comparison_ids()


def marks(arm: int) -> tuple[str, ...]:
    side = ("baseline", "arm")[arm]
    values = {"comparison": COMPARISON, "side": side, "arm": arm}
    return tuple(f"breakeven:{name}:{value}" for name, value in values.items())


def timeline(trace: DeviceTrace) -> TraceFile:
    digest = hashlib.sha256(repr(trace).encode()).hexdigest()
    return TraceFile("trace.sqlite", digest, nsys_profiles(trace))


def kernels_of(names: Sequence[str], nvtx: str = "", forwards: int | None = None) -> TraceFile:
    page = raw_page([Launch(name, 1000, 50.0, 60.5, 70.0, 10.0, 20.0) for name in names], nvtx=nvtx)
    digest = hashlib.sha256(page.encode()).hexdigest()
    return TraceFile("report.csv", digest, ncu_profiles(read_ncu(page), forwards))


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


@pytest.mark.usefixtures("outcome")
@pytest.mark.parametrize(("arm", "side", "label"), [(0, "baseline", "dense"), (1, "arm", "topk")])
def test_marks_tie_a_trace_to_its_arm(engine: Engine, arm: int, side: str, label: str) -> None:
    """A trace with marks is tied to the comparison and the arm that they name, and has its id, so
    that a page pairs it with the arm that it is compared with; a second import changes nothing.
    """
    trace = timeline(a_trace(4, marks=marks(arm)))
    (first,) = stored(engine, trace)
    assert (first.state, first.tie[:2], first.kernel_time_share) == (
        "imported",
        (COMPARISON, side),
        (1.0,),
    )
    assert (first.tie.label or "").startswith(label)
    # on another device than that of the comparison
    assert first.tie.notes == (
        "it was recorded on Imaginary GPU, the comparison was measured on Imaginary CPU: do not"
        " compare their times",
    )
    before = everything(engine)
    (row,) = before[0]
    expected = {"tool": "nsys", "arm": arm, "forwards": 4, "launches": 18, "file": "trace.sqlite"}
    assert expected.items() <= row.items()
    classes = {"device", "launch", "sync", "host", "idle"}
    assert {each["time_class"] for each in before[1]} == classes
    assert len(before[2]) == len(set(KERNELS))
    (of,) = table(engine, f"SELECT {side if arm else 'baseline'}_id FROM comparison")
    assert table(engine, "SELECT DISTINCT arm_id FROM profile") == [of]
    (second,) = stored(engine, trace)
    assert second.state == "known"
    assert everything(engine) == before


@pytest.mark.usefixtures("outcome")
def test_stated_comparison(engine: Engine) -> None:
    """A trace without marks is tied to the comparison whose id, or its beginning, is stated, and to
    the stated arm of it.
    """
    (found,) = stored(engine, timeline(a_trace(4)), comparison=COMPARISON[:6], arm="baseline")
    assert found.tie[:2] == (COMPARISON, "baseline")
    (found,) = stored(engine, timeline(a_trace(5)), comparison=COMPARISON, arm="topk")
    assert str(found.tie).startswith(f"the arm of comparison {COMPARISON}: topk")


@pytest.mark.usefixtures("outcome")
def test_untied_until_more_is_stated(engine: Engine) -> None:
    """Without marks and statement it is stored with a note; stated later, it is replaced, and stays
    tied when imported again.
    """
    trace = timeline(a_trace(4))
    (first,) = stored(engine, trace, arm="my arm")
    assert (first.state, first.tie[:3]) == ("imported", (None, None, "my arm"))
    assert "--comparison ID --arm baseline|arm ties it" in first.tie.notes[0]
    assert stored(engine, trace)[0].state == "known"
    (tied,) = stored(engine, trace, comparison=COMPARISON, arm="arm")
    assert (tied.state, tied.tie.side) == ("replaced", "arm")
    (again,) = stored(engine, trace)
    assert (again.state, again.tie[:2]) == ("known", (COMPARISON, "arm"))
    assert len(everything(engine)[0]) == 1


def test_marks_of_a_comparison_that_comes_later(engine: Engine) -> None:
    """The comparison in the marks is kept although the store does not hold it; the arm has its name
    once the outcome is there.
    """
    trace = timeline(a_trace(4, marks=marks(1)))
    (first,) = stored(engine, trace)
    assert first.tie[:3] == (COMPARISON, "arm", None)
    assert "the store does not hold comparison" in first.tie.notes[0]
    (second,) = stored(engine, trace, outcomes=[an_outcome(a_job())])
    assert second.state == "replaced"
    assert (second.tie.label or "").startswith("topk")


@pytest.mark.usefixtures("outcome")
def test_contradictions(engine: Engine) -> None:
    """What contradicts marks or store is an error that names both, and nothing is stored, neither
    of other traces nor of outcomes beside it.
    """
    marked, bare = timeline(a_trace(4, marks=marks(1))), timeline(a_trace(4))
    foreign = timeline(a_trace(4, marks=("breakeven:comparison:00", "breakeven:side:arm")))
    own, disagrees = {"comparison": COMPARISON}, "disagrees with the mark"
    for trace, request, message in (
        (bare, {"comparison": "zz"}, "--comparison zz is no comparison in the store; .*query"),
        (foreign, own, f"--comparison {COMPARISON} {disagrees}s .* which name 00"),
        (marked, {"arm": "baseline"}, f"--arm baseline {disagrees} in the file: it shows the arm"),
        (bare, own, f"which arm of comparison {COMPARISON} it shows is not known; add --arm base"),
        (bare, own | {"arm": "tome"}, "--arm tome: the comparison has the baseline dense and the"),
    ):
        with pytest.raises(StoreError, match=message):
            stored(engine, marked, trace, outcomes=[an_outcome(a_job(64))], **request)
    assert everything(engine) == [[], [], []]
    assert table(engine, "SELECT count(*) FROM attempt") == [(1,)]
    with pytest.raises(TraceError, match="name the arms 0, 1; a file holds one arm"):
        timeline(a_trace(4, marks=("breakeven:arm:0", "breakeven:arm:1")))


@pytest.mark.usefixtures("outcome")
def test_share_that_kernels_cover(engine: Engine) -> None:
    """Kernels of ncu cover a share that a timeline of the same arm shows; until there is one it is
    not known. The views have both.
    """
    report = kernels_of(["gemm", "gemm", "softmax"], " ".join(marks(1)))
    assert stored(engine, report)[0].kernel_time_share == (None,)
    (of_baseline,) = stored(engine, timeline(a_trace(4, marks=marks(0))))
    assert of_baseline.tie.side == "baseline"
    assert stored(engine, report)[0].state == "known"
    timed, counted = stored(engine, report, timeline(a_trace(5, marks=marks(1))))
    assert (timed.trace.file, counted.trace.file) == ("trace.sqlite", "report.csv")
    assert (counted.state, counted.kernel_time_share) == (
        "replaced",
        (pytest.approx(3 / len(KERNELS)),),
    )
    shares = table(engine, "SELECT kernel_time_share FROM profile_row WHERE tool = 'ncu'")
    assert shares == [(pytest.approx(3 / 18),)]
    assert stored(engine, report)[0].state == "known"
    times = "SELECT time_class, ms FROM profile WHERE tool = 'nsys' AND side = 'arm'"
    expected = {"device": 0.18, "launch": 0.041, "sync": 0.004, "host": 0.003, "idle": 0}
    assert dict(table(engine, times)) == pytest.approx(expected, abs=1e-9)
    gemm = "tool, count, comparison_id FROM kernel WHERE name = 'gemm' AND side = 'arm'"
    found = table(engine, f"SELECT {gemm} ORDER BY tool")
    assert found == [("ncu", 2, COMPARISON), ("nsys", 3, COMPARISON)]


def test_stated_forwards_of_kernels(engine: Engine) -> None:
    """Another stated number of forwards replaces what was stored; none stated leaves it."""
    names = ["gemm", "add"]
    assert stored(engine, kernels_of(names))[0].state == "imported"
    assert stored(engine, kernels_of(names, forwards=2), forwards=2)[0].state == "replaced"
    assert stored(engine, kernels_of(names))[0].state == "known"
    assert table(engine, "SELECT forwards FROM profile_row") == [(2,)]
