"""Break-even against known curves, invariants, and curves without a clear verdict."""

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeps.stats.breakeven import BreakEven, break_even
from sweeps.stats.curve import Curve, Point
from sweeps.stats.timing import speedup

GRID = (4, 9, 16, 36, 64, 100, 144, 196)


def point(x: float, value: float, half: float = 0.005, *, flagged: bool = False) -> Point:
    return Point(x=x, speedup=value, low=value / (1 + half), high=value * (1 + half), pairs=100, flagged=flagged)


def curve(*points: Point) -> Curve:
    return Curve(axis="tokens", points=points)


def along(values: Sequence[float], half: float = 0.005) -> Curve:
    """A curve on the first sizes of the quickstart."""
    return curve(*(point(x, value, half) for x, value in zip(GRID, values, strict=False)))


def simulated(rng: np.random.Generator, truth: Callable[[float], float], *, sd: float, pairs: int = 30) -> Curve:
    """A curve measured with paired noise of `sd` (log) around the true speed-ups."""
    return curve(*(Point.measured(x, speedup(np.exp(rng.normal(np.log(truth(x)), sd, pairs)), np.ones(pairs))) for x in GRID))


def test_neighbouring_clear_points_bound_a_grid_limited_crossing() -> None:
    """Between 0.8 at 16 and 1.25 at 36 tokens the crossing lies at their geometric mean, 24, and only the grid limits it."""
    answer = break_even(along([0.7, 0.75, 0.8, 1.25, 1.3]))
    (crossing,) = answer.crossings
    assert (answer.verdict, answer.points) == ("crossing", 5)
    assert crossing.x == pytest.approx(24)
    assert (crossing.low, crossing.high, crossing.direction, crossing.grid_limited) == (16, 36, "gains", True)
    assert answer.why == (
        "Begins to pay between tokens = 16 and 36 (neighbouring points). Along tokens: slower at 4 to 16, faster at 36 to 64."
    )


def test_points_that_are_not_clear_widen_the_interval() -> None:
    """Points that straddle 1, or show no difference, belong to the interval; x is where the line through them meets 1."""
    answer = break_even(curve(point(4, 0.8), point(9, 0.98, 0.05), point(16, 1.002), point(36, 1.05, 0.06), point(64, 1.3)))
    (crossing,) = answer.crossings
    assert (crossing.low, crossing.high, crossing.grid_limited) == (4, 64, False)
    assert 9 < crossing.x < 16
    assert answer.why == (
        "Begins to pay between tokens = 4 and 64. "
        "Along tokens: slower at 4, not clear at 9, no different at 16, not clear at 36, faster at 64."
    )


def test_a_staircase_reports_every_crossing() -> None:
    """Speed-ups that rise, fall below 1 and rise again cross three times, in turn."""
    answer = break_even(along([0.8, 1.2, 1.3, 0.9, 0.8, 1.1]))
    assert [(c.low, c.high, c.direction) for c in answer.crossings] == [(4, 9, "gains"), (16, 36, "loses"), (64, 100, "gains")]
    assert answer.why.startswith("Begins to pay between tokens = 4 and 9 (neighbouring points); ceases to pay between tokens = 16")


def test_where_the_line_meets_1_more_than_once_the_middle_counts() -> None:
    """Medians that wobble around 1 between the clear points do not invent crossings; the middle of their places is x."""
    answer = break_even(curve(point(1, 0.8), point(10, 1.01, 0.1), point(100, 0.99, 0.1), point(1000, 1.2)))
    (crossing,) = answer.crossings
    assert crossing.x == pytest.approx(10**1.5, rel=0.01)


def test_a_median_of_exactly_1_is_the_crossing() -> None:
    """A point that measures exactly 1 between a slower and a faster one is where the line meets 1."""
    (crossing,) = break_even(along([0.8, 1.0, 1.3])).crossings
    assert crossing.x == pytest.approx(9)
    assert (crossing.low, crossing.high) == (4, 16)


def test_an_axis_that_reaches_zero_is_interpolated_linearly() -> None:
    """Sparsity 0 has no logarithm: the line is then straight in x."""
    sparsity = Curve(axis="sparsity", points=(point(0.0, 0.8), point(0.5, 1.25)))
    (crossing,) = break_even(sparsity).crossings
    assert crossing.x == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("values", "half", "verdict", "why"),
    [
        ([1.2, 1.3], 0.005, "always", "Faster at every point measured. Along tokens: faster at 4 to 9."),
        ([0.7, 0.8], 0.005, "never", "Slower at every point measured. Along tokens: slower at 4 to 9."),
        ([1.0, 1.001], 0.005, "never", "No difference beyond 1 % at any point measured. Along tokens: no different at 4 to 9."),
        (
            [0.8, 1.0],
            0.005,
            "never",
            "Slower or no different at every point measured. Along tokens: slower at 4, no different at 9.",
        ),
        ([], 0.005, "unclear", "No points were measured."),
        ([1.5], 0.005, "unclear", "One point is not a curve. Along tokens: faster at 4."),
        ([0.98, 1.02], 0.05, "unclear", "Neither faster nor slower is clear at any point. Along tokens: not clear at 4 to 9."),
        (
            [0.99, 1.0, 1.1, 1.2],
            0.05,
            "unclear",
            "Faster at some points, clearly slower at none, so no crossing is known. "
            "Along tokens: not clear at 4 to 9, faster at 16 to 36.",
        ),
        (
            [0.8, 0.99],
            0.05,
            "unclear",
            "Slower at some points, clearly faster at none, so no crossing is known. Along tokens: slower at 4, not clear at 9.",
        ),
    ],
)
def test_curves_without_a_crossing_say_what_is_known(values: list[float], half: float, verdict: str, why: str) -> None:
    """Without clear points on both sides there is no crossing, and the sentence describes each stretch."""
    answer = break_even(along(values, half))
    assert (answer.verdict, answer.crossings, answer.why, answer.points) == (verdict, (), why, len(values))


def test_flagged_points_are_left_out_and_counted_in_words() -> None:
    """A flagged point makes no crossing unless requested, or unless every point is flagged; the sentence states which."""
    points = [point(4, 0.8), point(9, 0.85), point(16, 1.3, flagged=True)]
    assert break_even(curve(*points)).verdict == "never"
    assert break_even(curve(*points)).why.endswith("Flagged and left out: 1 of 3 points.")
    requested = break_even(curve(*points), with_flagged=True)
    assert requested.verdict == "crossing"
    assert requested.why.endswith("Flagged, but counted: 1 of 3 points.")
    alone = break_even(curve(*(point.model_copy(update={"flagged": True}) for point in points)))
    assert alone.points == 3
    assert alone.why.endswith("All points are flagged; they count, since there are no others.")
    alone = break_even(curve(*(p.model_copy(update={"flagged": True}) for p in points)))
    assert (alone.verdict, alone.points) == ("crossing", 3)


def test_a_noisier_device_needs_a_larger_gain() -> None:
    """With a floor of 10 % a gain of 5 % is no gain, so its crossing is not known."""
    rising = along([0.7, 1.05])
    assert break_even(rising).verdict == "crossing"
    assert break_even(rising, floor=0.1).verdict == "never"
    assert break_even(along([0.7, 1.1]), floor=0.1).verdict == "unclear"


def test_answers_survive_json() -> None:
    """An answer with its crossings comes back equal from JSON."""
    answer = break_even(along([0.8, 1.2, 0.9]))
    assert BreakEven.model_validate_json(answer.model_dump_json()) == answer


POINTS = st.builds(point, st.integers(1, 10_000).map(float), st.floats(0.5, 2), st.sampled_from([0.001, 0.02, 0.2]))
CURVES = st.lists(POINTS, max_size=12, unique_by=lambda p: p.x).map(lambda points: curve(*points))


def changed(old: Curve, x: Callable[[float], float] = float, scale: float = 1.0) -> Curve:
    """The curve with x transformed and all speed-ups multiplied by `scale`."""
    return curve(*(p.model_copy(update=_scaled(p, x(p.x), scale)) for p in old.points))


def _scaled(p: Point, x: float, scale: float) -> dict[str, float]:
    assert p.low is not None
    assert p.high is not None
    return {"x": x, "speedup": p.speedup * scale, "low": p.low * scale, "high": p.high * scale}


@given(CURVES)
def test_crossings_agree_with_the_points(given_curve: Curve) -> None:
    """Each crossing lies between two clear points of opposite verdict with none clear between; directions alternate."""
    answer = break_even(given_curve)
    words = {p.x: p.verdict() for p in given_curve.points}
    for crossing in answer.crossings:
        assert crossing.low <= crossing.x <= crossing.high
        ends = ("slower", "faster") if crossing.direction == "gains" else ("faster", "slower")
        assert (words[crossing.low], words[crossing.high]) == ends
        between = [word for x, word in words.items() if crossing.low < x < crossing.high]
        assert not {"faster", "slower"} & set(between)
        assert crossing.grid_limited == (not between)
    for left, right in pairwise(answer.crossings):
        assert left.high <= right.low
        assert left.direction != right.direction
    assert bool(answer.crossings) == ({"faster", "slower"} <= set(words.values()))


@given(CURVES, st.sampled_from([0.125, 0.5, 2.0, 64.0]))
def test_the_unit_of_the_axis_does_not_matter(given_curve: Curve, unit: float) -> None:
    """Counting x in another unit moves every crossing by that factor and changes nothing else."""
    here, there = break_even(given_curve), break_even(changed(given_curve, lambda x: x * unit))
    assert here.verdict == there.verdict
    for old, new in zip(here.crossings, there.crossings, strict=True):
        assert new.x == pytest.approx(old.x * unit)
        assert (new.low, new.high) == (old.low * unit, old.high * unit)
        assert (new.direction, new.grid_limited) == (old.direction, old.grid_limited)


@given(CURVES)
def test_a_reversed_axis_reverses_the_answer(given_curve: Curve) -> None:
    """Along 1/x the same crossings appear in reverse, with gains and losses swapped."""
    here, there = break_even(given_curve), break_even(changed(given_curve, lambda x: 1 / x))
    assert here.verdict == there.verdict
    for old, new in zip(here.crossings, reversed(there.crossings), strict=True):
        assert (1 / new.x, 1 / new.high, 1 / new.low) == pytest.approx((old.x, old.low, old.high))
        assert new.direction != old.direction


@given(st.lists(st.floats(0.5, 2), min_size=2, max_size=8), st.floats(1, 1.5))
def test_a_faster_arm_breaks_even_no_later(values: list[float], gain: float) -> None:
    """Raising a rising curve moves none of its crossing's ends to the right, nor the crossing between the same ends."""
    before = along(sorted(values))
    old, new = break_even(before), break_even(changed(before, scale=gain))
    assert len(old.crossings) <= 1
    for late, early in zip(old.crossings, new.crossings, strict=False):
        assert early.low <= late.low
        assert early.high <= late.high
        assert early.x <= late.x * (1 + 1e-9)
    assert not (old.verdict == "always" and new.verdict != "always")


@given(st.lists(st.floats(0.5, 2), min_size=2, max_size=8), st.floats(1, 250), st.floats(0.05, 0.9))
def test_a_point_that_confirms_never_widens(values: list[float], x: float, margin: float) -> None:
    """A clear point more on the side of the crossing where it belongs leaves the interval alone or narrows it."""
    before = along(sorted(values))
    for crossing in break_even(before).crossings:
        if x in {p.x for p in before.points}:
            continue
        confirming = point(x, 1 - margin / 2 if x < crossing.x else 1 + margin)
        (after,) = break_even(curve(*before.points, confirming)).crossings
        assert crossing.low <= after.low <= after.x <= after.high <= crossing.high


@given(CURVES)
def test_swapping_the_arms_swaps_gains_and_losses(given_curve: Curve) -> None:
    """Seen from the arm, the baseline crosses at the same places in the other direction."""
    swapped = curve(*(point(p.x, 1 / p.speedup, p.high / p.speedup - 1) for p in given_curve.points if p.high is not None))
    here, there = break_even(given_curve), break_even(swapped)
    assert len(here.crossings) == len(there.crossings)
    for old, new in zip(here.crossings, there.crossings, strict=True):
        assert new.x == pytest.approx(old.x)
        assert (new.low, new.high) == (old.low, old.high)
        assert new.direction != old.direction


@pytest.mark.parametrize("sd", [0.01, 0.05, 0.15])
@pytest.mark.parametrize("truth_x", [10.0, 36.0, 50.0])
def test_the_interval_covers_the_true_crossing(truth_x: float, sd: float) -> None:
    """A curve that rises through 1 at a known place has it in its interval in at least 95 of 100 runs, and invents no other."""
    rng = np.random.default_rng(1)
    found = [break_even(simulated(rng, lambda x: (x / truth_x) ** 0.25, sd=sd)) for _ in range(300)]
    crossing = [answer for answer in found if answer.verdict == "crossing"]
    covered = [answer for answer in crossing if [c for c in answer.crossings if c.low <= truth_x <= c.high]]
    assert len(crossing) >= 285
    assert len(covered) >= 0.95 * len(crossing)
    assert sum(len(answer.crossings) > 1 for answer in found) <= 6


@pytest.mark.parametrize(
    ("truth", "bias"),
    [(lambda x: (x / 50) ** 0.4, 0.01), (lambda x: 1.6 * x / (x + 30), 0.03)],
    ids=["straight in the logs", "bending"],
)
def test_the_estimate_is_near_the_true_crossing(truth: Callable[[float], float], bias: float) -> None:
    """With 2 % noise x is unbiased where the curve is straight in the logs; a bend between grid points costs a few per cent."""
    rng = np.random.default_rng(2)
    found = [break_even(simulated(rng, truth, sd=0.02)) for _ in range(300)]
    errors = np.array([answer.crossings[0].x / 50 - 1 for answer in found])
    assert abs(np.median(errors)) < bias
    assert np.percentile(np.abs(errors), 90) < 0.05


def test_a_true_staircase_is_found_whole() -> None:
    """A curve that steps below 1 for a while shows its three crossings in at least 95 of 100 runs."""
    steps = dict(zip(map(float, GRID), (0.9, 1.1, 1.2, 0.92, 0.95, 1.15, 1.2, 1.25), strict=True))
    rng = np.random.default_rng(3)
    found = [break_even(simulated(rng, steps.__getitem__, sd=0.02)) for _ in range(200)]
    assert sum([c.direction for c in answer.crossings] == ["gains", "loses", "gains"] for answer in found) >= 190


@pytest.mark.parametrize("sd", [0.01, 0.05, 0.15])
def test_a_flat_curve_hardly_ever_crosses(sd: float) -> None:
    """Where the true speed-up is 1 everywhere, at most 1 of 100 curves shows a crossing, whatever the noise."""
    rng = np.random.default_rng(4)
    found = [break_even(simulated(rng, lambda _: 1.0, sd=sd)) for _ in range(300)]
    assert sum(answer.verdict == "crossing" for answer in found) <= 3
    assert not any(answer.verdict == "always" for answer in found)


def test_a_crossing_drowned_in_noise_is_unclear() -> None:
    """A curve from 0.97 to 1.03 under 20 % noise and 30 pairs has no clear verdict."""
    rng = np.random.default_rng(5)
    found = [break_even(simulated(rng, lambda x: 0.97 + 0.06 * x / 196, sd=0.2)) for _ in range(200)]
    assert sum(answer.verdict == "unclear" for answer in found) >= 190
