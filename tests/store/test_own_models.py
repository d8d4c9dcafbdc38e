"""Functions and models of the user in the store: curves along an axis with a free name, and counts
that are not known.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sqlalchemy import Engine

from sweeps.model.condition import Condition
from sweeps.model.job import DENSE, Arm, Job, Pair, Step
from sweeps.model.outcome import ArmOutcome, Outcome, Samples
from tests.fixtures.sql_rows import rows
from tests.store.conftest import CPU, keep, submit

SIZES = (64, 256, 1024, 4096)
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


def store(engine: Engine, jobs: Sequence[Job], speedups: Sequence[float] = SPEEDUPS) -> None:
    submit(engine, jobs)
    for job, speedup in zip(jobs, speedups, strict=True):
        keep(engine, called(job, speedup))


def test_a_curve_of_functions_crosses_along_a_free_axis(engine: Engine) -> None:
    """The points stand at the values of the axis, which has its name, and no MACs are invented."""
    store(engine, [a_call(n) for n in SIZES])
    points = rows(engine, "SELECT * FROM speedup ORDER BY tokens")
    places = [(row["tokens"], row["axis_values"], row["x_axis"]) for row in points]
    assert places == [(n, f'{{"n":{n}}}', "n") for n in SIZES]
    unknown = ("gmacs", "gmacs_baseline", "gmacs_total", "speedup_macs", "realised_share")
    assert {row[name] for row in points for name in unknown} == {None}
    assert [round(row["speedup"], 1) for row in points] == list(SPEEDUPS)
    (curve,) = rows(engine, "SELECT * FROM break_even")
    names = ("axis", "x_axis", "points", "x_low", "x_high", "direction")
    assert [curve[name] for name in names] == ["tokens", "n", 4, 256, 1024, "gains"]


def test_what_does_not_vary_along_the_curve_parts_curves(engine: Engine) -> None:
    """Another value of a second axis is another curve and another panel."""
    jobs = [a_call(n, density=density) for density in (0.1, 0.5) for n in SIZES]
    store(engine, jobs, SPEEDUPS * 2)
    curves = rows(engine, "SELECT * FROM break_even ORDER BY fixed_values")
    assert [row["fixed_values"] for row in curves] == ['{"density":0.1}', '{"density":0.5}']
    assert len({row["panel_id"] for row in curves}) == 2


def test_equal_counts_that_nobody_knows_are_no_equal_work() -> None:
    """Two functions are not held for replicates of each other; with counts they would be."""
    job = a_call(64)
    assert not called(job, 1.0).same_work(Pair(0, 1))
    counts = {"gmacs": 1.0, "gmacs_overhead": 0.0, "tokens_final": 1, "parameters": 7}
    assert called(job, 1.0, **counts).same_work(Pair(0, 1))
