"""Words about an effect agree with the numbers printed beside them, whatever verdict, interval and
rounding meet.
"""

import math
import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeps.analysis.labels import (
    BITS,
    SPEEDUP,
    TASK,
    TOP1,
    Conclusion,
    Effect,
    Finding,
    conclude,
    conclude_speedup,
)
from sweeps.analysis.rows import SpeedupRow
from sweeps.number_format import AXIS_LABELS, axis_value, format_number, is_missing, with_interval
from sweeps.stats.pooling import ratio_verdict
from sweeps.stats.quality import interval_verdict
from sweeps.text.effects import effect_phrase, effect_word
from tests.fixtures.typed_rows import row_of

EFFECTS = (SPEEDUP, SPEEDUP._replace(digits=2, mark="×"), BITS, TOP1, TASK)
VERDICTS = (
    *("faster", "slower", "better", "worse", "same", "unclear", "insufficient", "quarantined"),
    *(None, "a later word"),
)
NUMBER = r"([+-]?\d+\.\d+)"


@st.composite
def effects(draw: st.DrawFn) -> tuple[Effect, tuple[float, float, float], float]:
    """An effect, an interval about its value near no difference or far from it, and a floor."""
    effect = draw(st.sampled_from(EFFECTS))
    size = 10.0 ** -draw(st.integers(0, 7))
    offsets = sorted(draw(st.tuples(*[st.one_of(st.just(0.0), st.floats(-2, 2))] * 3)))
    low, value, high = (2 ** (size * each) if effect.ratio else size * each for each in offsets)
    return effect, (value, low, high), draw(st.sampled_from((0.0, effect.floor, 0.01, 0.1)))


def measured_verdict(
    effect: Effect, bounds: tuple[float, float, float], floor: float, pairs: int
) -> str:
    """The verdict that the store holds for such an effect."""
    _, low, high = bounds
    if effect.ratio:
        return ratio_verdict(low, high, floor)
    return interval_verdict(low, high, floor)


def printed(text: str) -> list[float]:
    """Value and interval as a reader finds them in a cell or sentence."""
    found = re.search(rf"{NUMBER}[x×]? \[{NUMBER}, {NUMBER}\]", text)
    assert found, text
    return [float(number) for number in found.groups()]


def check(found: Conclusion, effect: Effect) -> None:
    """Word, phrase and printed numbers of a conclusion with an interval agree."""
    if found.finding is Finding.INSUFFICIENT:
        assert (found.numbers, effect_word(found)) == ("-", "too few pairs")
        assert not re.search(r"\d", effect_phrase(found))
        return
    value, low, high = printed(found.numbers)
    assert low <= value <= high
    outside = low > effect.no_difference or high < effect.no_difference
    side = effect.gain if (low > effect.no_difference) == effect.gain_above else effect.loss
    text = f"{effect_word(found)} / {effect_phrase(found)}"
    if found.finding is Finding.QUARANTINED:
        assert not {effect.gain, effect.loss, "unclear", "probably"} & set(re.findall(r"\w+", text))
        return
    if not outside:
        assert found.finding in {Finding.SAME, Finding.UNCLEAR}, text
        assert effect.gain not in text
        assert effect.loss not in text
        return
    other = effect.loss if side == effect.gain else effect.gain
    assert side in effect_phrase(found)
    assert other not in text
    assert not {"unclear", "same"} & set(re.findall(r"\w+", text)), text
    if not effect.ratio:
        amount, least, most = printed(effect_phrase(found))
        assert (amount, {least, most}) == (abs(value), {abs(low), abs(high)})
        assert 0 < least <= amount <= most


@settings(deadline=None, max_examples=250)
@given(effects(), st.sampled_from(VERDICTS))
def test_words_agree_with_printed_numbers(
    drawn: tuple[Effect, tuple[float, float, float], float], word: str | None
) -> None:
    """Whatever verdict stands beside an interval: an interval off no difference has a side, one
    that touches it has none.
    """
    effect, (value, low, high), floor = drawn
    check(conclude(effect, value, low, high, verdict=word, floor=floor), effect)


@settings(deadline=None, max_examples=150)
@given(effects(), st.sampled_from((10, 29, 30, 300)))
def test_verdicts_are_kept(
    drawn: tuple[Effect, tuple[float, float, float], float], pairs: int
) -> None:
    """A verdict made from the same numbers is never reversed: clear stays clear, `same` stays
    within the floor.
    """
    effect, bounds, floor = drawn
    value, low, high = bounds
    word = measured_verdict(effect, bounds, floor, pairs)
    found = conclude(effect, value, low, high, verdict=word, floor=floor)
    check(found, effect)
    if (
        word in {effect.gain, effect.loss}
        and max(abs(end - effect.no_difference) for end in (low, high)) > 1e-9
    ):
        near = min(abs(end - effect.no_difference) for end in (low, high))
        assert effect_word(found) == word or near < 1e-11
    if word == "same":
        assert found.finding in {Finding.SAME, Finding.SMALL_GAIN, Finding.SMALL_LOSS}
        assert "floor" in effect_word(found) or effect_word(found) == "same"
        assert "within" in effect_phrase(found)
    if word == "unclear":
        assert effect_word(found) == "unclear" or effect_word(found).startswith("probably ")
        _, least, most = printed(found.numbers)
        inside = effect.within(least, most, floor, found.digits)
        assert not inside or effect.within(low, high, floor)


def test_too_few_pairs_have_no_multiplier() -> None:
    """Below `pairs: min` a speed-up is how many pairs there are: neither value nor interval, in no
    form.
    """
    known = {"speedup": 1.499, "speedup_low": 1.2, "speedup_high": 1.8, "floor": 0.02}
    row = row_of(SpeedupRow, verdict="insufficient", **known)
    found = conclude_speedup(replace(row, pairs=1, pairs_min=30))
    assert (found.numbers, found.estimate, found.interval) == ("1 of 30 pairs", "-", "–")
    assert "1.499" not in effect_phrase(found)
    assert conclude_speedup(row).numbers == "-"


# ---- numbers are printed in one way by the report and the web app ----


@pytest.mark.parametrize(
    ("value", "axis", "digits", "text"),
    [
        (784.4, "tokens", 3, "784"),
        (12345.0, "tokens", 3, "12,345"),
        (78.512, "gmacs", 2, "79"),
        (0.4231, "gmacs_saved", 3, "42.3 %"),
        (math.nan, "gmacs", 3, "?"),
    ],
)
def test_places_on_an_axis(value: float | None, axis: str, digits: int, text: str) -> None:
    """Whole tokens; GMACs and shares with so many significant digits."""
    assert axis in AXIS_LABELS
    assert axis_value(value, axis, digits) == text


def test_missing_values_are_dashes() -> None:
    """`None` and NaN are both missing; a zero is not."""
    assert [is_missing(value) for value in (None, math.nan, 0.0, "")] == [True, True, False, False]
    assert [format_number(value, ".1f") for value in (None, math.nan)] == ["-", "-"]
    assert format_number(2**21, ".1f", 2**20) == "2.0"
    assert with_interval(1.1, 0.305, 1.92) == "1.10 [0.30, 1.92]"
    assert [with_interval(1.1, None, 1.9), with_interval(None, None, None)] == ["1.10", "-"]
