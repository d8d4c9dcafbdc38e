"""What visits differ by, estimated over all comparisons of an environment: widths and coverage."""

from collections.abc import Callable

import numpy as np
import pytest

from sweeps.stats.calibration import MAX_FREEDOM, fit_visits
from sweeps.stats.visits import FLOOR, Spread, Visit, pool_visits
from tests.fixtures.timing_noise import Array

COMPARISONS, SWEEPS, ROUNDS = 36, 12, 8


def equal(sd: float) -> Callable[[np.random.Generator], Array]:
    """In all comparisons visits differ by the same."""
    return lambda _: np.full(COMPARISONS, sd)


def mixed(rng: np.random.Generator) -> Array:
    """From .2 to 2 %."""
    sds: Array = 0.002 * 10 ** rng.random(COMPARISONS)
    return sds


@pytest.mark.parametrize(
    ("sds", "visits", "before", "now"),
    [  # half-widths in per cent, as measured, of what is assumed and of what is estimated
        (equal(0.004), 6, 1.12, 0.53),
        (equal(0.004), 12, 0.59, 0.37),
        (equal(0.008), 6, 1.48, 0.98),
        (equal(0.008), 12, 0.81, 0.68),
        (equal(0.015), 6, 2.62, 1.75),
        (equal(0.015), 12, 1.43, 1.23),
        (mixed, 12, 0.75, 0.75),
    ],
)
def test_intervals_of_many_comparisons(
    sds: Callable[[np.random.Generator], Array], visits: int, before: float, now: float
) -> None:
    """At most 1 % of 99.5 % intervals miss, 3 % where visits differ most, and the median half-width
    inside a run is that of the table within a tenth.
    """
    rng, rows = np.random.default_rng(1), []
    for _ in range(SWEEPS):
        differ, noise = sds(rng), 0.005
        made = [
            [
                Visit(
                    np.exp(rng.normal(0, noise, (ROUNDS, 2))),
                    np.exp(rng.normal(0, noise, (ROUNDS, 1)) + rng.normal(0, sd)),
                )
                for _ in range(visits)
            ]
            for sd in differ
        ]
        alone = [pool_visits(each, range(visits)) for each in made]
        found = fit_visits([each.between for each in alone])
        assert found is not None
        floor = max(Spread(found.used, found.freedom), FLOOR, key=lambda spread: spread.freedom)
        for sd, each, one in zip(differ, made, alone, strict=True):
            pooling = pool_visits(each, range(visits), floor)
            missed = abs(pooling.speedup.log) > pooling.inside
            rows.append((missed, sd, one.inside, pooling.inside))
    missed, sd, inside, shared = np.array(rows).T
    most = sd >= np.quantile(sd, 0.9)
    assert missed.sum() <= 0.01 * len(missed) + 2 * np.sqrt(0.01 * len(missed))
    assert missed[most].mean() <= 0.03
    assert 100 * np.median(inside) == pytest.approx(before, rel=0.1)
    assert 100 * np.median(shared) == pytest.approx(now, rel=0.1)


@pytest.mark.parametrize("sd", [0.004, 0.02])
def test_the_spread_of_visits_is_found(sd: float) -> None:
    """Of 36 comparisons with 11 degrees of freedom within 10 %, with fewer degrees of freedom the
    more these differ; of few comparisons, or of one visit each, nothing is estimated.
    """
    rng = np.random.default_rng(2)
    squares = rng.chisquare(11, COMPARISONS) / 11
    same = fit_visits([Spread(sd * np.sqrt(square), 11.0) for square in squares])
    assert same is not None
    assert same.used == pytest.approx(sd, rel=0.1)
    assert same.low < sd < same.high
    assert (same.freedom, same.processes, same.contrasts) == (MAX_FREEDOM, 432, COMPARISONS)
    unlike = fit_visits(
        [Spread(sd * 10 ** rng.normal(0, 0.3) * np.sqrt(square), 11.0) for square in squares]
    )
    assert unlike is not None
    assert unlike.freedom < 10
    assert fit_visits([Spread(sd, 11.0)] * 7) is None
    assert fit_visits([Spread(0.0, 0.0)] * COMPARISONS) is None
