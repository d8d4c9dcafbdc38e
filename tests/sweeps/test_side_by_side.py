"""Answers side by side on simulated truth: no more false alarms than stated, and differences that
are there are found.
"""

from math import log

import numpy as np
import pytest

from sweeps.stats.evidence import (
    FAMILY_ALPHA,
    SpeedAnswer,
    SpeedDifference,
    independent,
    match_answers,
    speed_difference,
)
from sweeps.stats.pooling import SpeedUp
from sweeps.stats.visits import pool_visits
from tests.fixtures.machine_states import plain_visit

VISIT_SD = 0.005
"""By which log speed-ups of visits differ."""


def answer(found: SpeedUp, *processes: str, key: str | None = None) -> SpeedAnswer:
    return SpeedAnswer(found.log, found.se, found.freedom, frozenset(processes), key)


def measured(rng: np.random.Generator, truth: float, visits: int = 1) -> SpeedUp:
    """A speed-up pooled from visits that differ a little, each of ten rounds."""
    found = [plain_visit(rng, truth, 10, off=off) for off in rng.normal(0, VISIT_SD, visits)]
    return pool_visits(found, range(visits)).speedup


def test_false_alarms_stay_below_the_stated_rate() -> None:
    """Of many pages with 20 questions without a difference, no more than the stated share calls any
    of them different. Both sides of a page are drawn from answers about one truth.

    With all that differs between visits in common, whichever way the errors go, `apart` is as rare.
    """
    rng, questions, pages = np.random.default_rng(1), 20, 400
    answers = [[measured(rng, 0.0, count) for _ in range(1000)] for count in (1, 4)]
    alarms, apart = 0, 0
    for _ in range(pages):
        one, other = (
            [answers[side][at] for at in rng.choice(1000, questions, replace=False)]
            for side in (0, 1)
        )
        alarms += "different" in {
            speed_difference(answer(a, "a"), answer(b, "b"), questions).found
            for a, b in zip(one, other, strict=True)
        }
        # errors of opposite sign: the worst that a common process can do
        mirrored = {
            speed_difference(answer(a, "a"), answer(a._replace(log=-a.log), "a"), 20).found
            for a in one
        }
        assert mirrored <= {"apart", "overlap"}
        apart += "apart" in mirrored
    assert alarms / pages <= FAMILY_ALPHA
    assert apart / pages <= FAMILY_ALPHA


def test_a_large_difference_is_found() -> None:
    """30 % apart is found in nearly all of them, with the true ratio inside the interval."""
    rng, hits = np.random.default_rng(3), 0
    for _ in range(100):
        found = speed_difference(
            answer(measured(rng, log(1.3), 6), "a"), answer(measured(rng, 0.0, 6), "b"), 20
        )
        hits += (
            found.found == "different"
            and found.low is not None
            and found.high is not None
            and found.low < 1.3 < found.high
        )
    assert hits >= 97


def test_equal_answers_within_the_floor_are_the_same() -> None:
    """Narrow intervals around one value lie within the floor; a difference below it that is sure is
    still the same.
    """
    narrow = SpeedAnswer(0.1, 0.001, 60, frozenset("a"))
    assert speed_difference(narrow, narrow._replace(processes=frozenset("b")), 4).found == "same"
    assert (
        speed_difference(narrow, narrow._replace(log=0.105, processes=frozenset("b")), 4).found
        == "same"
    )


def test_what_cannot_be_compared_is_named() -> None:
    """One stored answer on both sides is no test; too few pairs leave no interval; unknown
    processes are not independent.
    """
    one = SpeedAnswer(0.1, 0.01, 29, frozenset("a"), key=1)
    assert speed_difference(one, one, 1).found == "one answer"
    without = SpeedAnswer(0.1, None, 1, frozenset("b"))
    assert speed_difference(one, without, 1).found == "not comparable"
    assert not independent(one, one._replace(processes=None))
    assert speed_difference(one, one._replace(processes=None, key=2), 1).found == "overlap"
    with pytest.raises(ValueError, match="at least one"):
        speed_difference(one, without, 0)


def test_more_questions_and_fewer_degrees_of_freedom_widen_the_interval() -> None:
    """The level is shared by the questions; the smaller degrees of freedom count."""
    one, other = (SpeedAnswer(0.1, 0.01, 29, frozenset(name)) for name in "ab")

    def width(questions: int, freedom: float = 29) -> float:
        found = speed_difference(one._replace(freedom=freedom), other, questions)
        assert found.low is not None
        assert found.high is not None
        return found.high / found.low

    assert width(1) < width(10) < width(100)
    assert width(10, 60) == width(10) < width(10, 11) < width(10, 5)


def test_the_ratio_is_that_of_the_speed_ups() -> None:
    """The first side over the second, and the interval around it; by hand, t at 0.05 / 4 with 3
    degrees of freedom is 5.4, times √2 % makes ±7.6 %.
    """
    one, other = (SpeedAnswer(0.1, 0.01, 3, frozenset(name)) for name in "ab")
    found = speed_difference(one._replace(log=0.2), other, 1)
    ends = np.log([found.ratio, found.low, found.high])
    assert ends == pytest.approx(0.1 + 5.3919 * 0.01 * 2**0.5 * np.array([0, -1, 1]), abs=2e-3)


def test_the_clearest_difference_has_the_largest_distance() -> None:
    """An interval that excludes 1 counts by its nearer end, one that holds it by its ratio."""
    assert SpeedDifference("different", 1.2, 1.1, 1.3).distance == pytest.approx(log(1.1))
    assert SpeedDifference("different", 0.8, 0.7, 0.9).distance == pytest.approx(-log(0.9))
    assert SpeedDifference("unclear", 1.2, 0.9, 1.6).distance == pytest.approx(log(1.2))
    assert SpeedDifference("overlap", 0.5, None, None).distance == pytest.approx(log(2))


def test_rows_match_by_all_that_does_not_differ_between_the_sides() -> None:
    """A field with one value on each side is what is compared; one with several values belongs to
    the question.
    """
    a = [
        {"arm": arm, "size": size, "dtype": "float32", "host": "h"}
        for arm in "xy"
        for size in (1, 2)
    ]
    b = [
        {"arm": arm, "size": size, "dtype": "bfloat16", "host": "h"}
        for arm in "yz"
        for size in (2, 3)
    ]
    found = match_answers(a, b, ("arm", "size", "dtype", "host"))
    assert found.differing == {"dtype": ("float32", "bfloat16")}
    assert found.pairs == [(a[3], b[0])]
    assert (found.only_a, found.only_b) == (3, 3)


def test_free_fields_are_no_part_of_the_question() -> None:
    """Two environments on one host: the environment is free, and named where each side has one."""
    a, b = (
        [{"q": 1, "environment": "e1"}],
        [{"q": 1, "environment": "e2"}, {"q": 1, "environment": "e3"}],
    )
    found = match_answers(a, b, ("q", "environment"), free=("environment",))
    assert found.pairs == [(a[0], b[1])]
    assert found.differing == {}
