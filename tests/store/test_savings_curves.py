"""Break-even in FLOPs saved: curves along which one parameter moves while the work stays the
same.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import pytest
from sqlalchemy import Engine

from store.derive.savings_curves import GMACS_SAVED, SETTING, curves, flat, points_by_line
from store.write.reanalysis import reanalyse
from sweeps.model.job import Job
from sweeps.model.outcome import Outcome
from sweeps.stats.curve import break_even
from tests.fixtures.sql_rows import rows
from tests.store.conftest import a_job, an_outcome, keep, stored_curve, submit, table, with_arms

SAVED = "SELECT * FROM break_even WHERE axis = 'gmacs_saved'"
RATES = (0.9, 0.7, 0.4)
CROSSING = (0.8, 0.9, 1.4)


def with_macs(outcome: Outcome, shares: Sequence[float]) -> Outcome:
    """The outcome had its arms these shares of the baseline's GMACs, their own work included."""
    whole, own = outcome.arms[0].gmacs, outcome.arms[1].gmacs_overhead
    assert whole is not None
    assert own is not None
    return with_arms(outcome, {}, *({"gmacs": whole * share - own} for share in shares))


def store(
    engine: Engine, jobs: Sequence[Job], speedups: Sequence[float], shares: Sequence[float]
) -> None:
    submit(engine, jobs, "saved")
    for job in jobs:
        keep(engine, with_macs(an_outcome(job, speedups=speedups), shares))


def test_the_view_equals_break_even(engine: Engine) -> None:
    """Three keep rates at one size are a curve along the share saved, computed by
    sweeps.stats.curve.
    """
    store(engine, [a_job(keep_rates=RATES)], CROSSING, (1.02, 0.8, 0.5))
    curve = stored_curve(
        engine, "gmacs_saved", lambda row: 1 - row["gmacs_total"] / row["gmacs_baseline"]
    )
    (crossing,) = break_even(curve).crossings
    (found,) = rows(engine, SAVED)
    of = ["x", "x_low", "x_high", "direction", "varied_parameter", "verdict", "points", "x_last"]
    ends = map(pytest.approx, (crossing.low, crossing.high))
    expected = [crossing.x, *ends, "gains", "keep_rate", "crossing", 3, pytest.approx(0.5)]
    assert [found[name] for name in of] == expected
    assert [found["x_low"], found["x_high"]] == pytest.approx([0.2, 0.5])
    along = "SELECT DISTINCT varied_parameter FROM break_even WHERE axis = 'tokens'"
    assert table(engine, along) == [(None,)]


@pytest.mark.parametrize(
    ("rates", "shares", "expected"),
    [((0.5, 0.7), (0.4, 0.6), 0), ((0.5, 0.6, 0.7), (0.4, 0.4, 0.6), 0)],
)
def test_a_parameter_must_vary(
    *, engine: Engine, rates: Sequence[float], shares: Sequence[float], expected: int
) -> None:
    """Two settings, as in the quickstart, or three of which two save equally much, are no curve."""
    store(engine, [a_job(keep_rates=rates)], (1.1,) * len(rates), shares)
    assert len(rows(engine, SAVED)) == expected


def test_an_arm_that_saves_nothing_is_a_point(engine: Engine) -> None:
    """A share of 0 lies on the curve, where it may be the end at which the method pays."""
    store(engine, [a_job(keep_rates=RATES)], (1.4, 1.2, 0.8), (1.0, 0.8, 0.5))
    (found,) = rows(engine, SAVED)
    places = [found[name] for name in ("points", "verdict", "x_low", "x_high")]
    assert places == [3, "crossing", *map(pytest.approx, (0.2, 0.5))]
    assert found["why"] == "Along the share of GMACs saved: faster at 0 % to 20 %, slower at 50 %."


def test_each_condition_has_its_curve(engine: Engine) -> None:
    """Sizes and batches are never mixed, and what comes later joins its own curve."""
    jobs = [a_job(size, RATES, batch_size=batch) for size, batch in ((64, 1), (96, 1), (64, 8))]
    store(engine, jobs, CROSSING, (0.95, 0.8, 0.5))
    assert [row["points"] for row in rows(engine, SAVED)] == [3, 3, 3]
    assert len({row["curve_id"] for row in rows(engine, SAVED)}) == 3
    more = a_job(64, keep_rates=(0.2,))
    submit(engine, [jobs[0], more], "saved", "text 2")
    keep(engine, with_macs(an_outcome(more, speedups=(2,)), (0.3,)))
    assert [row["points"] for row in rows(engine, SAVED)] == [4]


def test_a_parameter_is_an_axis_itself(engine: Engine) -> None:
    """Along the values of the parameter the same points cross at its own unit, whatever they
    save.
    """
    store(engine, [a_job(keep_rates=RATES)], CROSSING, (0.9, 0.9, 0.9))
    columns = "verdict, varied_parameter, direction, x_low, x_high"
    found = table(engine, f"SELECT {columns} FROM break_even WHERE axis = 'parameter'")
    assert found == [("crossing", "keep_rate", "loses", 0.4, 0.7)]
    assert rows(engine, SAVED) == []


@pytest.mark.parametrize("field", ["batch_size", "threads"])
def test_a_number_of_the_condition_is_an_axis(*, engine: Engine, field: str) -> None:
    """Three batch sizes, or numbers of threads, at one size are a curve for each arm; two are
    none.
    """
    jobs = [a_job(64, keep_rates=(0.5, 0.7), **{field: value}) for value in (1, 2, 4)]
    submit(engine, jobs)
    columns = "verdict, x_low, x_high, points, points_missing, varied_parameter"
    along = f"SELECT {columns} FROM break_even WHERE axis = :axis ORDER BY params"
    for job, speedups in zip(jobs, ((0.7, 1.1), (0.8, 1.2), (1.3, 1.3)), strict=True):
        assert table(engine, along, axis=field) == []
        threads = {"threads": job.condition.threads or 2}
        keep(engine, with_arms(an_outcome(job, speedups=speedups), *[threads] * 3))
    expected = [("crossing", 2, 4, 3, 0, None), ("always", None, None, 3, 0, None)]
    assert table(engine, along, axis=field) == expected
    everything = "SELECT * FROM break_even ORDER BY curve_id, axis"
    before = rows(engine, everything)
    reanalyse(engine)
    assert rows(engine, everything) == before


class Row(NamedTuple):
    params: str
    gmacs_saved: float
    sweep: int = 1

    def __getattr__(self, name: str) -> Any:
        if name in ("gmacs_baseline", "ran_threads", "batch_size"):
            return 1
        if name in (*SETTING, "metric", "host", "comparison_id"):
            return "same"
        raise AttributeError(name)


def test_curves_differ_in_whatever_else_differs() -> None:
    """One curve for each parameter that moves alone; lists and words are no positions; equal others
    stay together.
    """
    written = [
        f'{{"keep_rate":{rate},"layers":{layers},"mode":"{mode}","tau":{tau}}}'
        for layers, mode, tau, rates in (
            ("[3]", "a", 1, (0.2, 0.4, 0.6)),
            ("[3,6]", "a", 1, (0.2, 0.4, 0.6)),
            ("[3]", "b", 1, (0.2, 0.4)),
            ("[3]", "c", 1, (0.5,)),
            ("[3]", "c", 2, (0.5,)),
            ("[3]", "c", 3, (0.5,)),
        )
        for rate in rates
    ]
    points: list[Any] = [Row(params, place / 100) for place, params in enumerate(written)]
    found = list(curves(points_by_line(points, {"same"})))
    saved = [curve for curve in found if curve.axis == GMACS_SAVED]
    varied = [(curve.line.varied_parameter, len(curve.points)) for curve in saved]
    assert varied == [("keep_rate", 3), ("keep_rate", 3), ("tau", 3)]
    assert len({curve.line.curve_id("latency") for curve in saved}) == 3
    places = [curve.places for curve in found if curve.axis == "parameter"]
    assert places == [[0.2, 0.4, 0.6], [0.2, 0.4, 0.6], [1, 2, 3]]


def test_parameters_inside_others_have_dotted_names() -> None:
    """A budget's number and the parameters of a stack's steps can move too."""
    budget = {"budget": {"gmacs": 2.7}, "layers": [1, 2]}
    assert flat(budget) == {"budget.gmacs": 2.7, "layers": [1, 2]}
    stack = flat([{"method": "topk", "keep_rate": 0.5}, {"method": "tome"}])
    assert stack == {"0.method": "topk", "0.keep_rate": 0.5, "1.method": "tome"}
