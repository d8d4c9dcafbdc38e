"""Claims about curves: known ones, bounds from both ends, curves that cannot be decided, and the
error over all claims.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from sweeps.stats.curve import BreakEven, Crossing, Curve, Point, break_even
from sweeps.stats.pooling import SpeedUp
from tests.fixtures.simulated_curves import CASES, FOLLOW_MODEL, GRID, claims_hold, work


def point(x: float, value: float, half: float = 0.005, **more: object) -> Point:
    """A point with an interval of `half` to each side, without known work."""
    se = np.log1p(half) / SpeedUp(0.0, 1.0, 1e6, 100).half_width
    found = SpeedUp(float(np.log(value)), float(se), 1e6, 100)
    return found_at(x, found, **more)


def found_at(x: float, found: SpeedUp, **more: object) -> Point:
    ends = {"low": found.low, "high": found.high, "se": found.se, "verdict": found.verdict()}
    return Point.model_validate({"x": x, "speedup": found.value, **ends, **more})


def curve(*points: Point) -> Curve:
    return Curve(axis="tokens", points=points)


def along(values: Sequence[float], half: float = 0.005) -> Curve:
    """A curve on the first sizes of the quickstart."""
    return curve(*(point(x, value, half) for x, value in zip(GRID, values, strict=False)))


@pytest.mark.parametrize(
    ("points", "verdict", "crossings", "worst_loss"),
    [
        ([(4, 0.7), (16, 0.8), (36, 1.25), (64, 1.3)], "crossing", [(16, 36, "gains")], None),
        (  # points that straddle 1, or show no difference, belong to the interval
            [(4, 0.8), (9, 0.98, 0.05), (16, 1.002), (36, 1.05, 0.06), (64, 1.3)],
            "crossing",
            [(4, 64, "gains")],
            None,
        ),
        (  # what rises, falls below 1 and rises again crosses three times, in turn
            [(4, 0.8), (9, 1.2), (16, 1.3), (36, 0.9), (64, 0.8), (100, 1.1)],
            "pays_between",
            [(4, 9, "gains"), (16, 36, "loses"), (64, 100, "gains")],
            None,
        ),
        (  # not clear below: a bound, with the worst loss that the intervals there allow
            [(4, 0.99, 0.03), (9, 1.01, 0.03), (16, 1.1), (36, 1.2)],
            "pays_from",
            [(None, 16, "gains")],
            1.03 / 0.99 - 1,
        ),
        (
            [(4, 1.2), (9, 1.1), (16, 1.01, 0.05), (36, 0.99, 0.05)],
            "pays_up_to",
            [(9, None, "loses")],
            1.05 / 0.99 - 1,
        ),
        (  # both bounds, with the worst loss between them
            [(4, 1.2), (9, 1.1), (36, 0.99, 0.03), (64, 1.1), (100, 1.2)],
            "pays_at_both_ends",
            [(9, None, "loses"), (None, 64, "gains")],
            1.03 / 0.99 - 1,
        ),
    ],
)
def test_crossings_and_bounds(
    points: list[tuple[float, ...]], verdict: str, crossings: list[Any], worst_loss: float | None
) -> None:
    """Clear points beside a crossing bound it, and where only one side is clear it is a bound; only
    neighbours are limited by the grid, and without a model no place of theirs is likeliest.
    """
    answer = break_even(curve(*(point(*each) for each in points)))
    assert (answer.verdict, answer.points) == (verdict, len(points))
    assert [(at.low, at.high, at.direction) for at in answer.crossings] == crossings
    if worst_loss is not None:
        assert answer.worst_loss == pytest.approx(worst_loss, rel=1e-3)
    first = answer.crossings[0]
    assert first.grid_limited == (None not in crossings[0] and len(points) != 5)
    assert (first.x is None) == (first.grid_limited or None in crossings[0])


@pytest.mark.parametrize(("between", "likely"), [(0.78, None), (1.05, 117.0)])
def test_the_line_gives_no_place_that_a_point_contradicts(
    between: float, likely: float | None
) -> None:
    """Without a cost model the line through the ends of a bracket is used only where the points
    between them lie on the same side of 1 as it.
    """
    points = (point(49, 0.80), point(196, between, 0.7), point(784, 1.6))
    (crossing,) = break_even(curve(*points)).crossings
    assert (crossing.low, crossing.high) == (49, 784)
    assert crossing.x == (None if likely is None else pytest.approx(likely, rel=0.1))


def test_an_axis_that_reaches_zero_is_interpolated_linearly() -> None:
    """Sparsity 0 has no logarithm: the line is then straight in x."""
    (crossing,) = break_even(
        Curve(axis="sparsity", points=(point(0.0, 0.8), point(0.2, 1.0, 0.1), point(0.5, 1.25)))
    ).crossings
    assert crossing.x == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("values", "half", "verdict"),
    [
        ([1.2, 1.3], 0.005, "always"),
        ([0.7, 0.8], 0.005, "never"),
        ([1.0, 1.001], 0.005, "same"),
        ([1.014, 1.014], 0.004, "same"),
        ([0.9, 1.001], 0.005, "never"),
        ([0.8, 1.0], 0.03, "never"),
        ([0.8, 1.0], 0.2, "unclear"),
        ([], 0.005, "unclear"),
        ([1.5], 0.005, "unclear"),
        ([0.98, 1.02], 0.08, "unclear"),
        ([0.7, 0.8, 1.3, 1.2, 1.0], 0.04, "pays_between"),
        ([0.98, 1.3, 0.98], 0.08, "pays_between"),
        ([0.8, 1.3, 1.3, 0.9], 0.02, "pays_between"),
        ([1.3, 1.0, 1.3, 0.98], 0.04, "pays_between"),
    ],
)
def test_curves_without_a_bound(values: list[float], half: float, verdict: str) -> None:
    """Without clear points on both sides there is no crossing; `never` needs intervals that exclude
    a gain of 5 %. Where a gain does not last to an end, it is a gain at some sizes. A last point
    that is barely slower is clear without support, because it is at an end.
    """
    answer = break_even(along(values, half))
    assert (answer.verdict, answer.points) == (verdict, len(values))
    assert answer.crossings == () or verdict == "pays_between"


def test_the_model_gives_the_likeliest_place_and_never_a_narrower_bracket() -> None:
    """With work known at every point the place differs from the line's, and the bracket is that of
    the points.
    """
    truth, arm = CASES["at 20"]
    points = [point(x, float(np.exp(truth(x))), 0.004) for x in (4, 9, 16, 36, 64, 100)]
    modelled = [
        p.model_copy(update={"gmacs_baseline": work(p.x), "gmacs": arm(p.x)}) for p in points
    ]
    (alone,), (crossing,) = (
        break_even(curve(*points)).crossings,
        break_even(curve(*modelled)).crossings,
    )
    assert (alone.low, alone.high) == (crossing.low, crossing.high) == (9, 36)
    assert crossing.x == pytest.approx(20, rel=0.03)


def test_what_does_nothing_is_kept_off_the_curve() -> None:
    """Points with the baseline's tokens and MACs do not count; a curve of them alone has no
    effect.
    """
    nothing = [point(x, 1.0, 0.05, no_op=True) for x in (4, 9)]
    assert break_even(curve(*nothing)).verdict == "no_effect"
    wrong = point(64, 0.7, wrong=True)
    answer = break_even(curve(*nothing, point(16, 1.1), point(36, 1.2), wrong))
    assert (answer.verdict, answer.x_first, answer.x_last, answer.points) == ("always", 16, 36, 2)
    assert break_even(curve(wrong)).points == 0


REVERSED = {"pays_from": "pays_up_to", "pays_up_to": "pays_from"}
POINTS = st.builds(
    point, st.integers(1, 10_000).map(float), st.floats(0.5, 2), st.sampled_from([0.001, 0.02, 0.2])
)
CURVES = st.lists(POINTS, max_size=12, unique_by=lambda p: p.x).map(lambda points: curve(*points))


def brackets(answer: BreakEven) -> list[Crossing]:
    """The crossings between two measured points."""
    return [at for at in answer.crossings if at.low is not None and at.high is not None]


@given(CURVES)
def test_crossings_agree_with_the_points(given_curve: Curve) -> None:
    """Each crossing lies between two clear points of opposite verdict with none clear between, but
    for faster ones next to a bracket from whose end on every point is faster; directions alternate.
    """
    found = break_even(given_curve)
    words = {p.x: p.verdict for p in given_curve.usable()}
    if not {"faster", "slower"} <= set(words.values()):
        assert brackets(found) == []
        return
    for crossing in found.crossings:
        assert crossing.low is not None
        assert crossing.high is not None
        between = [word for x, word in words.items() if crossing.low < x < crossing.high]
        assert crossing.x is not None or crossing.grid_limited or between
        assert crossing.x is None or not crossing.grid_limited
        assert crossing.low <= (crossing.x or crossing.low) <= crossing.high
        ends = ("slower", "faster") if crossing.direction == "gains" else ("faster", "slower")
        assert (words[crossing.low], words[crossing.high]) == ends
        losing = "slower" if found.verdict == "crossing" else "faster"
        assert not {"slower", losing} & set(between)
        assert crossing.grid_limited == (not between)
    for left, right in pairwise(found.crossings):
        assert left.high is not None
        assert right.low is not None
        assert left.high <= right.low
        assert left.direction != right.direction


@given(CURVES)
def test_it_pays_at_every_point_on_the_paying_side(given_curve: Curve) -> None:
    """Of `crossing`, `pays_from` and `pays_up_to` every point beyond the bound is faster, and the
    next one on the other side is not.
    """
    found = break_even(given_curve)
    if found.verdict not in ("crossing", "pays_from", "pays_up_to"):
        return
    (bound,) = found.crossings
    points = given_curve.usable()
    paying = [
        p.x >= bound.high
        if bound.high and bound.direction == "gains"
        else bound.low is not None and p.x <= bound.low
        for p in points
    ]
    assert all(p.verdict == "faster" for p, pays in zip(points, paying, strict=True) if pays)
    at = paying.index(True) - 1 if bound.direction == "gains" else paying.index(False)
    assert points[at].verdict != "faster"


@given(CURVES)
def test_a_reversed_axis_reverses_the_answer(given_curve: Curve) -> None:
    """Along 1/x the same crossings and bounds appear in reverse, with gains and losses swapped."""
    turned = curve(*(p.model_copy(update={"x": 1 / p.x}) for p in given_curve.points))
    here, there = break_even(given_curve), break_even(turned)
    assert there.verdict == REVERSED.get(here.verdict, here.verdict)
    assert (there.points, there.largest_gain) == (here.points, here.largest_gain)
    assert there.worst_loss == here.worst_loss
    for old, new in zip(here.crossings, reversed(there.crossings), strict=True):
        places = [None if x is None else 1 / x for x in (new.x, new.high, new.low)]
        assert places == [
            None if x is None else pytest.approx(x) for x in (old.x, old.low, old.high)
        ]
        assert new.direction != old.direction


@given(st.lists(st.floats(0.5, 2), min_size=2, max_size=8), st.floats(1, 1.5))
def test_a_faster_arm_breaks_even_no_later(values: list[float], gain: float) -> None:
    """Raising a rising curve moves the place from where it surely pays to the left, or leaves
    it.
    """
    rising = sorted(values)
    old, new = break_even(along(rising)), break_even(along([gain * value for value in rising]))
    assert len(old.crossings) <= 1
    assert surely_pays_from(new) <= surely_pays_from(old)


def surely_pays_from(answer: BreakEven) -> float:
    """The upper end of the place where a rising curve crosses 1, or its bound."""
    if answer.verdict == "always":
        return 0.0
    ends = [at.high for at in answer.crossings if at.direction == "gains" and at.high is not None]
    return ends[0] if ends else float("inf")


@given(st.lists(st.floats(0.5, 2), min_size=2, max_size=8), st.floats(1, 250), st.floats(0.05, 0.9))
def test_a_point_that_confirms_never_widens(values: list[float], x: float, margin: float) -> None:
    """A clear point more on the side of a crossing where it belongs leaves the interval alone or
    narrows it.
    """
    before = along(sorted(values))
    for at in brackets(break_even(before)):
        if at.low is None or at.high is None or x in {p.x for p in before.points}:
            continue
        confirming = point(x, 1 - margin / 2 if x < (at.x or at.high) else 1 + margin)
        (after,) = break_even(curve(*before.points, confirming)).crossings
        assert after.low is not None
        assert after.high is not None
        assert at.low <= after.low <= after.high <= at.high


def simulated(case: str, pairs: int, curves: int) -> list[Curve]:
    """Curves on the grid with noise of 6 % per pair and 0.5 % between processes."""
    truth, arm = CASES[case]
    rng = np.random.default_rng(pairs)
    found = []
    for _ in range(curves):
        points = []
        for x in GRID:
            se = 0.06 / pairs**0.5
            own = se * np.sqrt(rng.chisquare(29) / 29)
            log = truth(x) + rng.normal(0, np.hypot(se, 0.005))
            speedup = SpeedUp(log, float(np.hypot(own, 0.005)), 29, pairs)
            points.append(found_at(x, speedup, gmacs_baseline=work(x), gmacs=arm(x)))
        found.append(curve(*points))
    return found


@pytest.mark.parametrize(("case", "pairs"), [*((case, 30) for case in CASES), ("fixed jump", 120)])
def test_at_most_1_of_20_curves_has_a_false_claim(case: str, pairs: int) -> None:
    """Claims of any kind are true at the measured sizes that they name, of 95 % of curves."""
    truth, _ = CASES[case]
    curves = simulated(case, pairs, 120)  # of which 1 of 10 would show in 96 of 100
    assert sum(not claims_hold(break_even(one), truth, one) for one in curves) <= 6


@pytest.mark.parametrize("case", FOLLOW_MODEL)
def test_where_the_model_holds_most_gains_are_claims(case: str) -> None:
    """Of curves with a faster point at least 90 % end in a claim from some size on."""
    with_gain = [
        one for one in simulated(case, 120, 200) if any(p.verdict == "faster" for p in one.points)
    ]
    claims = [break_even(one).verdict for one in with_gain]
    assert (
        sum(verdict in ("crossing", "pays_from", "always") for verdict in claims)
        >= 0.9 * len(with_gain)
        > 90
    )


# ---- curves ----


def test_the_same_x_twice_is_an_error_that_names_it() -> None:
    """Two speed-ups at one x are ambiguous: a curve holds each x once."""
    with pytest.raises(ValidationError, match="several points at x = 16"):
        curve(point(16, 1), point(4, 1), point(16, 1))


@pytest.mark.parametrize(
    "wrong", [{"speedup": 0.0}, {"x": float("inf")}, {"low": 1.1}, {"high": 0.9}, {"se": -0.1}]
)
def test_impossible_points_are_refused(wrong: dict[str, float]) -> None:
    """A speed-up is positive, finite and inside its interval."""
    with pytest.raises(ValidationError):
        Point.model_validate(
            {"x": 16.0, "speedup": 1.0, "low": 0.95, "high": 1.05, "verdict": "same"} | wrong
        )
