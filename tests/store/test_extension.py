"""A metric and a kind that only declarations know are recorded, derived and shown without a change in the store."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, inspect, text

from store.engine import connect
from store.record import reanalyse, record
from sweeps.job import Job
from sweeps.kinds import KINDS, KindSpec
from sweeps.metrics import METRICS, MetricSpec
from sweeps.outcome import MetricValue, Outcome

MakeJob = Callable[..., Job]
MakeOutcome = Callable[..., Outcome]


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A metric `toy` that is timed beside latency, a metric `toy_energy` that is read once, and a kind `toy_kind` of the first."""
    spec = dataclasses.replace(METRICS["latency"], name="toy", label="toy", series=True)
    energy = MetricSpec(name="toy_energy", unit="J", label="toy energy")
    latency = dataclasses.replace(KINDS["latency"], metrics=("latency", "toy"))
    kind: KindSpec = dataclasses.replace(KINDS["latency"], name="toy_kind", metrics=("toy",))
    for name, declared in {"toy": spec, "toy_energy": energy}.items():
        monkeypatch.setitem(METRICS, name, declared)
    for name, changed in {"latency": latency, "toy_kind": kind}.items():
        monkeypatch.setitem(KINDS, name, changed)


def rows(engine: Engine, view: str) -> list[dict[str, Any]]:
    with engine.connect() as connection:
        return [dict(row._mapping) for row in connection.execute(text(f"SELECT * FROM {view}"))]


def with_toy(outcome: Outcome) -> Outcome:
    """The outcome with samples of the metric `toy`, in which the arm is twice as fast, and with the energy of each arm."""
    assert outcome.samples is not None
    times = tuple((seconds[0], seconds[0] / 2) for seconds in outcome.samples.seconds)
    samples = outcome.samples.model_copy(update={"series": {"toy": times}})
    energy = MetricValue(name="toy_energy", value=3.0, unit="J")
    arms = tuple(arm.model_copy(update={"metrics": (*arm.metrics, energy)}) for arm in outcome.arms)
    return outcome.model_copy(update={"samples": samples, "arms": arms})


@pytest.mark.parametrize(("kind", "metrics"), [("latency", {"latency", "toy"}), ("toy_kind", {"toy"})])
@pytest.mark.usefixtures("toy")
def test_a_declared_metric_and_kind_are_stored_and_shown(
    *, path: Path, engine: Engine, make_job: MakeJob, make_outcome: MakeOutcome, kind: str, metrics: set[str]
) -> None:
    """The views `effect`, `speedup` and `arm` have them once the store is opened again."""
    engine.dispose()
    again = connect(str(path))
    assert "toy_energy" in {column["name"] for column in inspect(again).get_columns("arm")}
    job = make_job().model_copy(update={"kind": kind})
    assert record(again, None, None, with_toy(make_outcome(job)))
    for view, value in (("effect", "effect"), ("speedup", "speedup")):
        found: dict[str, Any] = {row["metric"]: row for row in rows(again, view)}
        assert set(found) == metrics
        assert found["toy"][value] == pytest.approx(2)
        assert found["toy"]["kind"] == kind
    assert [row["toy_energy"] for row in rows(again, "arm")] == [3.0, 3.0]
    assert reanalyse(again) == 1
    again.dispose()
