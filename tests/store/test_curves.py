"""Curves of a store: which points count, of times, amounts and functions of the user, along sizes and
along FLOPs saved, and the cost models of launch and work.
"""

from collections.abc import Sequence
from math import exp, log, sqrt
from pathlib import Path
from statistics import mean, stdev
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy import stats
from sqlalchemy import Engine

from store.derive.savings_curves import GMACS_SAVED, SETTING, curves, flat, points_by_line
from store.open.engine import connect, connect_readonly
from store.read.curves import KEY_OF_CURVE, curve_costs
from store.read.queries import sweep_rows
from store.write.reanalysis import reanalyse
from store.write.record import record_imported
from sweeps.model.condition import Condition
from sweeps.model.job import DENSE, Arm, Job, Pair, Step
from sweeps.model.outcome import ArmOutcome, Failure, MetricValue, Outcome, Samples
from sweeps.stats.curve import break_even
from sweeps.stats.pooling import ALPHA
from tests.fixtures.big_outcomes import ARMS, outcome, vision_job
from tests.fixtures.sql_rows import rows
from tests.store.conftest import (
    CPU,
    a_job,
    an_outcome,
    keep,
    seconds_of,
    stored_curve,
    submit,
    table,
    with_arms,
    with_seconds,
)
from tests.webapp import simulated

SIZES = (64, 96, 128, 192)
CURVES = "SELECT host, axis, points, points_missing, verdict FROM break_even"
GAINS = (1.2, 1.3, 1.4, 1.5)


@pytest.mark.parametrize(
    ("speedups", "flags", "expected"),
    [
        (
            GAINS,
            ("contended", "warmup_not_converged", "low_priority", ""),
            ("always", 4, "Along tokens: faster at 16 to 144.", None),
        ),
        (
            (0.7, 1.3, 1.4, 1.5),
            ("token_trace_mismatch", "", "", ""),
            ("always", 3, "Along tokens: faster at 36 to 144.", "16"),
        ),
        (
            GAINS,
            ("thermal_slowdown",) * 4,
            ("unclear", 0, "No points were measured.", "16, 36, 64, 144"),
        ),
        (
            (1.0, 1.0, 1.4, 1.5),
            ("no_effect",) * 4,
            ("no_effect", 4, "removes nothing at 16 to", None),
        ),
        (
            (1.0, 1.0, 1.4, 1.5),
            ("no_effect", "no_effect", "", ""),
            ("always", 2, "removes nothing at 16 to", None),
        ),
    ],
)
def test_points_by_their_flags(
    *,
    engine: Engine,
    speedups: Sequence[float],
    flags: Sequence[str],
    expected: tuple[str, int, str, str | None],
) -> None:
    """A busy neighbour hides no point; a wrong one is left out and named; a method that removes
    nothing at a size neither pays nor loses there.
    """
    submit(engine, map(a_job, SIZES))
    for size, truth, flag in zip(SIZES, speedups, flags, strict=True):
        outcome = an_outcome(a_job(size), speedups=(truth,))
        keep(engine, with_arms(outcome, {}, {"flags": (flag,) if flag else ()}))
    columns = "verdict, points, why, left_out FROM break_even WHERE axis = 'tokens'"
    ((verdict, points, why, left_out),) = table(engine, f"SELECT {columns}")
    assert (verdict, points, left_out) == (expected[0], expected[1], expected[3])
    assert expected[2] in why


def test_points_of_two_hosts_are_not_spliced(engine: Engine) -> None:
    """Points shared out between two hosts are two curves, each of which lacks what the other
    measured; a whole one none.
    """
    truths = dict(zip(SIZES, (0.7, 0.9, 1.2, 1.5), strict=True))
    submit(engine, map(a_job, SIZES))
    for (size, truth), host in zip(truths.items(), "abab", strict=True):
        keep(engine, an_outcome(a_job(size), speedups=(truth,), host=host))
    along = f"{CURVES} WHERE axis <> 'image_size' ORDER BY 1, 2"
    found = [row[:4] for row in table(engine, along)]
    assert found == [(host, axis, 2, 2) for host in "ab" for axis in ("gmacs", "tokens")]
    for size, truth in truths.items():
        keep(engine, an_outcome(a_job(size), speedups=(truth,), host="c"))
    whole = table(engine, along)[-2:]
    assert whole == [("c", axis, 4, 0, "crossing") for axis in ("gmacs", "tokens")]


def test_neither_a_failure_nor_an_old_version_is_a_missing_point(engine: Engine) -> None:
    """A size that ran out of memory is answered, though it is no point; so is what was requested of
    an older version of a method and measured with the new one.
    """
    submit(engine, [a_job(size) for size in (64, 128, 4096)])
    jobs = [a_job(size, version=2) for size in (64, 128, 4096)]
    submit(engine, jobs, text="other")
    lost = Failure(arm=1, reason="out_of_memory", message="too large")
    for job in jobs:
        failures = [lost] if job is jobs[2] else []
        keep(engine, an_outcome(job, failures=failures, host="a"))
    assert {row[2:4] for row in table(engine, CURVES)} == {(2, 0)}
    assert table(engine, "SELECT host FROM failures") == [("a",)]


def test_curves_along_savings_keep_hosts_apart(engine: Engine) -> None:
    """Keep rates shared out between two hosts: a curve for each that has three of them, with the
    number that it lacks.
    """
    jobs = [a_job(keep_rates=(rate,)) for rate in (0.9, 0.7, 0.5, 0.3)]
    submit(engine, jobs)
    for place, (job, host) in enumerate(zip(jobs, "aaab", strict=True)):
        outcome = an_outcome(job, speedups=(0.9 + place / 10,), host=host)
        less = {"gmacs": (outcome.arms[1].gmacs or 0) * (1 - place / 10)}
        keep(engine, with_arms(outcome, {}, less))
    found = table(engine, f"{CURVES} WHERE axis = 'gmacs_saved'")
    assert [row[:4] for row in found] == [("a", "gmacs_saved", 3, 1)]


UNITS = {"peak_rss": "MiB", "energy_per_image": "J"}


def with_metrics(outcome: Outcome, **values: tuple[float, float]) -> Outcome:
    """The outcome had its two arms these values of the metrics."""
    read = [
        [MetricValue(name=name, value=own[arm], unit=UNITS[name]) for name, own in values.items()]
        for arm in (0, 1)
    ]
    return with_arms(outcome, *({"metrics": tuple(own)} for own in read))


def test_peak_memory_has_a_curve_by_one_reading(engine: Engine) -> None:
    """What is repeatable is less, more or the same by the floor of 2 %; the speed-up and its curve
    stay what they are.
    """
    amounts = {64: 550.0, 96: 505.0, 128: 450.0, 192: 400.0}
    submit(engine, map(a_job, amounts))
    for size, arm in amounts.items():
        outcome = an_outcome(a_job(size), speedups=(1.3,))
        keep(engine, with_metrics(outcome, peak_rss=(500.0, arm)))
    wanted = "verdict, effect_low, n, baseline_value FROM effect WHERE metric = 'peak_rss'"
    assert table(engine, f"SELECT {wanted} ORDER BY tokens") == [
        (verdict, None, 1, 500.0) for verdict in ("slower", "same", "faster", "faster")
    ]
    curves = rows(engine, "SELECT * FROM break_even WHERE axis = 'tokens' ORDER BY metric")
    time, memory = curves
    assert (time["metric"], time["verdict"]) == ("latency", "always")
    found = [memory[name] for name in ("verdict", "x_low", "x_high", "direction")]
    assert found == ["crossing", 16, 64, "gains"]
    assert memory["why"] == (
        "Along tokens: more at 16, no different at 36, less at 64 to 144. "
        "Read once, without an interval: 2% counts as no difference."
    )
    assert table(engine, "SELECT DISTINCT metric FROM speedup") == [("latency",)]


@pytest.mark.parametrize("flags", [(), ("thermal_slowdown",)])
def test_energy_needs_several_readings(*, engine: Engine, flags: tuple[str, ...]) -> None:
    """One reading of a counter has an unknown error and no verdict; six attempts have an interval.
    Heat changes what a forward takes, not how much memory it needs.
    """
    verdicts = []
    for n in range(6):
        outcome = an_outcome(a_job(), seed=n, ended_at=1_790_000_000.0 + 100 * n, flags=flags)
        joules = (2.0, 1.6 + 0.01 * (n % 2))
        keep(engine, with_metrics(outcome, energy_per_image=joules, peak_rss=(500.0, 400.0)))
        verdicts.append(dict(table(engine, "SELECT metric, verdict FROM effect")))
    hot = "quarantined" if flags else None
    assert verdicts[0]["energy_per_image"] == (hot or "insufficient")
    assert verdicts[-1] == {
        "latency": hot or "faster",
        "energy_per_image": hot or "faster",
        "peak_rss": "faster",
    }
    energy = "SELECT n, effect, effect_low FROM effect WHERE metric = 'energy_per_image'"
    ((n, effect, low),) = table(engine, energy)
    assert (n, low < effect) == (6, True)
    assert effect == pytest.approx(1.25, rel=0.02)
    logs = [log(2.0 / (1.6 + 0.01 * (n % 2))) for n in range(6)]
    reach = stats.t.ppf(1 - ALPHA / 2, 5) * stdev(logs) / sqrt(6)
    assert low == pytest.approx(exp(mean(logs) - reach))


TIMED_SIZES = (32, 64, 96, 128, 160, 192, 224)
LAUNCH, PER_TOKEN = 1e-3, 20e-6
EXTRA, SAVED = 0.6e-3, 0.4
"""Seconds that the arm costs, whatever the size, and the share of the work that it saves: both are
equal at 75 tokens."""
UNEVEN = (0.7, 0.9, 0.75, 1.0, 1.2, 1.05, 1.3)


@pytest.mark.parametrize("uneven", [False, True])
def test_launch_and_work_of_both_sides(engine: Engine, uneven: bool) -> None:
    """Seconds, seconds per GMAC and the break-even of a curve by launch + work are found, and the
    model fits; speed-ups that go up and down with the size are a misfit.
    """
    submit(engine, map(a_job, TIMED_SIZES), "curve")
    for size, truth in zip(TIMED_SIZES, UNEVEN, strict=True):
        tokens = (size // 16) ** 2
        seconds = LAUNCH + PER_TOKEN * tokens
        arm = LAUNCH + EXTRA + PER_TOKEN * (1 - SAVED) * tokens
        outcome = an_outcome(a_job(size), speedups=(truth if uneven else seconds / arm,))
        measured = seconds_of(outcome)
        outcome = with_seconds(outcome, measured * seconds / measured[0, 0])
        counts = {"gmacs_overhead": 0.0, "tokens": tokens}
        work = [{**counts, "gmacs": tokens * share / 100} for share in (1.0, 1 - SAVED)]
        keep(engine, with_arms(outcome, *work))
    (found,) = rows(engine, "SELECT * FROM cost_model")
    if uneven:
        assert (found["verdict"], found["misfit_p"] < 0.01) == ("misfit", True)
        return
    truth_of = {
        "alpha_baseline": LAUNCH,
        "beta_baseline": 100 * PER_TOKEN,
        "alpha": LAUNCH + EXTRA,
        "beta": 100 * PER_TOKEN,
    }
    for name, value in truth_of.items():
        assert found[f"{name}_low"] <= value <= found[f"{name}_high"]
        assert found[name] == pytest.approx(value, rel=0.2)
    names = ("sweep", "points", "verdict", "work_unit")
    assert [found[name] for name in names] == ["curve", len(TIMED_SIZES), "fits", "GMAC"]
    assert found["misfit_p"] > 0.01
    assert found["predicted_x_low"] < 75 < found["predicted_x_high"]
    (claim,) = rows(engine, "SELECT x, x_low, x_high FROM break_even WHERE axis = 'tokens'")
    assert claim["x_low"] < 75 < claim["x_high"]
    assert claim["x"] == found["predicted_x"]
    assert claim["x_high"] - claim["x_low"] > found["predicted_x_high"] - found["predicted_x_low"]


DENSE_FIXED_S = 0.5e-3
"""Of the simulated machine, besides 17 us for each token."""


def test_the_ratios_hold_the_truth(tmp_path: Path) -> None:
    """The method adds 0.3 ms to what remains of the fixed cost, and saves time as it saves MACs.
    One rule: the costs of the view `cost_model` and their ratios are of one fit. A curve that does
    not fit, is undetermined or has few sizes has none.
    """
    arm = simulated.topk(0.5)
    every = [simulated.outcome(simulated.job(size, arms=(DENSE, arm))) for size in simulated.SIZES]
    engine = connect_readonly(simulated.store_outcomes(tmp_path / "s.db", "trial", *every))
    fits, points = (sweep_rows(engine, "trial", view) for view in ("cost_model", "speedup"))
    ((key, costs),) = curve_costs(engine, fits, points).items()
    assert key == tuple(fits[list(KEY_OF_CURVE)].iloc[0])
    truth = (1 - simulated.SAVED[arm]) + simulated.EXTRA[arm] / DENSE_FIXED_S
    assert costs.fixed is not None
    assert costs.work is not None
    assert costs.fixed.low <= truth <= costs.fixed.high
    assert costs.work.low <= 1 <= costs.work.high
    (row,) = fits.itertuples()
    assert costs.fixed.value == pytest.approx(row.alpha / row.alpha_baseline, rel=1e-6)
    assert costs.work.value == pytest.approx(row.beta / row.beta_baseline, rel=1e-6)
    assert curve_costs(engine, fits.assign(verdict="misfit"), points) == {}
    assert curve_costs(engine, fits.iloc[:0], points) == {}
    few = points[points["tokens"] >= points["tokens"].nlargest(2).min()]
    assert curve_costs(engine, fits, few) == {}
    engine.dispose()


LENGTHS = (64, 256, 1024, 4096)
SPEEDUPS = (0.8, 0.9, 1.2, 1.6)
FAST = Arm(stack=(Step(method="fast.py:apply"),))


def a_call(n: int, **values: float) -> Job:
    """One function beside another, at a size `n`."""
    condition = Condition(model="slow.py:build", values={"n": n, **values}, x_axis=("n",))
    return Job(kind="call", condition=condition, arms=(DENSE, FAST), pairs=(Pair(0, 1),))


def called(job: Job, speedup: float, **counts: Any) -> Outcome:
    """What a worker reports of functions, whose MACs are unknown."""
    n = dict(job.condition.values or ())["n"]
    noise = np.exp(0.01 * np.random.default_rng(0).standard_normal((40, 2)))
    seconds = 1e-4 * n / np.array([1, speedup]) * noise
    arms = [ArmOutcome(arm=arm, batch=1, tokens=int(n), threads=2, **counts) for arm in (0, 1)]
    samples = Samples(
        arms=(0, 1),
        seconds=tuple(map(tuple, seconds.tolist())),
        order=((0, 1),) * 40,
        inner=(1, 1),
        stopped="half_width",
    )
    return Outcome(
        job=job,
        environment=CPU,
        host="here",
        started_at=1_790_000_000.0,
        ended_at=1_790_000_010.0,
        arms=tuple(arms),
        samples=samples,
    )


def record_calls(engine: Engine, jobs: Sequence[Job], speedups: Sequence[float] = SPEEDUPS) -> None:
    submit(engine, jobs)
    for job, speedup in zip(jobs, speedups, strict=True):
        keep(engine, called(job, speedup))


def test_a_curve_of_functions_crosses_along_a_free_axis(engine: Engine) -> None:
    """The points stand at the values of the axis, which has its name, and no MACs are invented."""
    record_calls(engine, [a_call(n) for n in LENGTHS])
    points = rows(engine, "SELECT * FROM speedup ORDER BY tokens")
    places = [(row["tokens"], row["axis_values"], row["x_axis"]) for row in points]
    assert places == [(n, f'{{"n":{n}}}', "n") for n in LENGTHS]
    unknown = ("gmacs", "gmacs_baseline", "gmacs_total", "speedup_macs", "realised_share")
    assert {row[name] for row in points for name in unknown} == {None}
    assert [round(row["speedup"], 1) for row in points] == list(SPEEDUPS)
    (curve,) = rows(engine, "SELECT * FROM break_even")
    names = ("axis", "x_axis", "points", "x_low", "x_high", "direction")
    assert [curve[name] for name in names] == ["tokens", "n", 4, 256, 1024, "gains"]


def test_what_does_not_vary_along_the_curve_parts_curves(engine: Engine) -> None:
    """Another value of a second axis is another curve and another panel."""
    jobs = [a_call(n, density=density) for density in (0.1, 0.5) for n in LENGTHS]
    record_calls(engine, jobs, SPEEDUPS * 2)
    curves = rows(engine, "SELECT * FROM break_even ORDER BY fixed_values")
    assert [row["fixed_values"] for row in curves] == ['{"density":0.1}', '{"density":0.5}']
    assert len({row["panel_id"] for row in curves}) == 2


def test_equal_counts_that_nobody_knows_are_no_equal_work() -> None:
    """Two functions are not held for replicates of each other; with counts they would be."""
    job = a_call(64)
    assert not called(job, 1.0).same_work(Pair(0, 1))
    counts = {"gmacs": 1.0, "gmacs_overhead": 0.0, "tokens_final": 1, "parameters": 7}
    assert called(job, 1.0, **counts).same_work(Pair(0, 1))


ALONG_SAVED = "SELECT * FROM break_even WHERE axis = 'gmacs_saved'"
RATES = (0.9, 0.7, 0.4)
CROSSING = (0.8, 0.9, 1.4)


def with_macs(outcome: Outcome, shares: Sequence[float]) -> Outcome:
    """The outcome had its arms these shares of the baseline's GMACs, their own work included."""
    whole, own = outcome.arms[0].gmacs, outcome.arms[1].gmacs_overhead
    assert whole is not None
    assert own is not None
    return with_arms(outcome, {}, *({"gmacs": whole * share - own} for share in shares))


def record_shares(
    engine: Engine, jobs: Sequence[Job], speedups: Sequence[float], shares: Sequence[float]
) -> None:
    submit(engine, jobs, "saved")
    for job in jobs:
        keep(engine, with_macs(an_outcome(job, speedups=speedups), shares))


def test_the_view_equals_break_even(engine: Engine) -> None:
    """Three keep rates at one size are a curve along the share saved, computed by
    sweeps.stats.curve.
    """
    record_shares(engine, [a_job(keep_rates=RATES)], CROSSING, (1.02, 0.8, 0.5))
    curve = stored_curve(
        engine, "gmacs_saved", lambda row: 1 - row["gmacs_total"] / row["gmacs_baseline"]
    )
    (crossing,) = break_even(curve).crossings
    (found,) = rows(engine, ALONG_SAVED)
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
    record_shares(engine, [a_job(keep_rates=rates)], (1.1,) * len(rates), shares)
    assert len(rows(engine, ALONG_SAVED)) == expected


def test_each_condition_has_its_curve(engine: Engine) -> None:
    """Sizes and batches are never mixed, and what comes later joins its own curve."""
    jobs = [a_job(size, RATES, batch_size=batch) for size, batch in ((64, 1), (96, 1), (64, 8))]
    record_shares(engine, jobs, CROSSING, (0.95, 0.8, 0.5))
    assert [row["points"] for row in rows(engine, ALONG_SAVED)] == [3, 3, 3]
    assert len({row["curve_id"] for row in rows(engine, ALONG_SAVED)}) == 3
    more = a_job(64, keep_rates=(0.2,))
    submit(engine, [jobs[0], more], "saved", "text 2")
    keep(engine, with_macs(an_outcome(more, speedups=(2,)), (0.3,)))
    assert [row["points"] for row in rows(engine, ALONG_SAVED)] == [4]


def test_a_parameter_is_an_axis_itself(engine: Engine) -> None:
    """Along the values of the parameter the same points cross at its own unit, whatever they
    save.
    """
    record_shares(engine, [a_job(keep_rates=RATES)], CROSSING, (0.9, 0.9, 0.9))
    columns = "verdict, varied_parameter, direction, x_low, x_high"
    found = table(engine, f"SELECT {columns} FROM break_even WHERE axis = 'parameter'")
    assert found == [("crossing", "keep_rate", "loses", 0.4, 0.7)]
    assert rows(engine, ALONG_SAVED) == []


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


class PointRow(NamedTuple):
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
    points: list[Any] = [PointRow(params, place / 100) for place, params in enumerate(written)]
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


def test_an_import_derives_the_curves_of_outcomes_one_by_one(tmp_path: Path) -> None:
    """Curves are derived when all points are there, to the same rows."""
    sizes = [(size, batch) for size in (32, 64, 96) for batch in (1, 4, 16)]
    jobs = [vision_job("latency", size, ARMS[:16:5], batch_size=batch) for size, batch in sizes]
    outcomes = [outcome(job, number) for number, job in enumerate(jobs)]

    def rows(name: str, parts: list[list[Any]]) -> list[list[str]]:
        engine = connect(str(tmp_path / name))
        submit(engine, jobs)
        for part in parts:
            record_imported(engine, part)
        tables = ("break_even_row", "cost_model_row")
        found = [sorted(map(repr, table(engine, f"SELECT * FROM {of}"))) for of in tables]
        engine.dispose()
        return found

    whole = rows("whole.db", [outcomes])
    assert all(whole)
    assert whole == rows("parts.db", [[one] for one in outcomes])
