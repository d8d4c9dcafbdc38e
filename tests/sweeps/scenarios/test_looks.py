"""Further runs of a sweep: an answer is looked at after each, and runs differ."""

import numpy as np
import pytest

from sweeps.stats.visits import RUN_SD, Visit, pool_visits
from tests.fixtures.machine_states import plain_visit

RUNS = 20


def looks(
    rng: np.random.Generator, runs: int, visits: int, run_sd: float
) -> list[tuple[float, float]]:
    """The error and the half-width after each run."""
    made: list[Visit] = []
    found = []
    for run_off in rng.normal(0, run_sd, runs):
        made += [
            plain_visit(rng, 0.0, 4, 0.005, off=off) for off in rng.normal(run_off, 0.004, visits)
        ]
        turns = [turn for _ in range(len(made) // visits) for turn in range(visits)]
        speedup = pool_visits(made, turns).speedup
        found.append((abs(speedup.log), speedup.half_width))
    return found


@pytest.mark.parametrize(("visits", "run_sd"), [(4, 0.0), (4, RUN_SD), (1, 0.0)])
def test_of_twenty_looks_none_misses(visits: int, run_sd: float) -> None:
    """In 99 of 100 comparisons; before, 3.3 % had a miss, with a visit a look 6 %."""
    rng, repeats = np.random.default_rng(6), 150
    missed = sum(
        any(error > half_width for error, half_width in looks(rng, RUNS, visits, run_sd))
        for _ in range(repeats)
    )
    assert missed <= 0.02 * repeats


@pytest.mark.parametrize(("run_sd", "most"), [(0.003, 0.01), (0.005, 0.01), (0.01, 0.12)])
def test_runs_that_differ(run_sd: float, most: float) -> None:
    """The interval holds their common mean from the first run on: before, 28 to 58 % of looks
    missed it. Of runs that differ by 1 %, two and a half times what is assumed, one alone misses in
    1 of 10.
    """
    rng, repeats = np.random.default_rng(7), 300
    found = np.array([looks(rng, 4, 12, run_sd) for _ in range(repeats)])
    missed = (found[:, :, 0] > found[:, :, 1]).mean(axis=0)
    assert missed.max() <= most + 0.005
    assert missed[-1] <= 0.02


@pytest.mark.parametrize(("visits", "run_sd"), [(12, 0.002), (12, 0.004), (6, 0.004), (1, 0.004)])
def test_each_further_run_narrows(visits: int, run_sd: float) -> None:
    """The median of the widths after one to five runs falls with each: before, .93, .29, .44."""
    rng = np.random.default_rng(8)
    widths = np.median(
        [[half for _, half in looks(rng, 5, visits, run_sd)] for _ in range(60)], axis=0
    )
    assert all(np.diff(widths) < 0)
    assert widths[-1] < 0.65 * widths[0]
