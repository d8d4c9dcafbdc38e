"""What is printed of a comparison, and its exit code, from intervals that are given."""

import json
import math
import re
from collections.abc import Mapping

import pytest

from orchestrator.api.commands import Usage
from orchestrator.api.render import WIDTH, ComparisonReport, FailOn, Place, Scale
from orchestrator.api.result import Result, Setup
from sweeps.analysis.compared import ComparedArm, Ratio, judge
from sweeps.model.outcome import Environment


def arm(low: float, high: float, name: str = "new", needed_s: float | None = 100.0) -> ComparedArm:
    """Its estimate lies in the middle of the interval."""
    verdict = judge(low, high, 0.02)
    ratio = math.sqrt(low * high) if low > 0 and high < math.inf else 1.0
    not_slower = low > 1 / 1.02
    needed = needed_s if verdict == "undecided" else None
    return ComparedArm(name, verdict, ratio, low, high, 40, 4, (), needed, not_slower=not_slower)


def report(
    *arms: ComparedArm,
    fail_on: FailOn = "slower",
    failures: Mapping[str, str] | None = None,
    void: str = "",
    usages: Mapping[str, Usage] | None = None,
    places: int = 1,
    control: str | None = None,
) -> ComparisonReport:
    result = Result(
        names=("old", *(each.name for each in arms), *(failures or {})),
        arms={each.name: each for each in arms},
        null=Ratio(1.0, 0.99, 1.01),
        seconds={"old": 0.0123, **{each.name: 0.01 for each in arms}},
        failures=failures or {},
        setup=Setup(time_s=60.0, controls={} if control is None else {control: "old"}),
        spent_s=60.0,
        environment=Environment(device="cpu", device_name="a CPU"),
        visits=(),
        planned=4,
        void=void,
    )
    values = [{}] if places == 1 else [{"n": 10 * (1 + turn)} for turn in range(places)]
    return ComparisonReport(
        tuple(Place(each, result, usages or {}) for each in values), 0.02, fail_on, ("A note",)
    )


@pytest.mark.parametrize(
    ("low", "high", "slower", "not_faster"),
    [
        (0.99, 1.01, 0, 1),
        (1.05, 1.10, 0, 0),
        (0.99, 1.05, 0, 3),
        (0.90, 0.97, 1, 1),
        (0.90, 0.985, 3, 1),
        (0.90, 1.10, 3, 3),
        (0.0, math.inf, 3, 3),
    ],
)
def test_exit_codes(low: float, high: float, slower: int, not_faster: int) -> None:
    """With a margin of 2 %, 1 / 1.02 = 0.980."""
    assert report(arm(low, high)).exit_code() == slower
    assert report(arm(low, high), fail_on="not-faster").exit_code() == not_faster


def test_the_worst_arm_decides() -> None:
    good, bad, unclear = arm(1.1, 1.2), arm(0.5, 0.6, "bad"), arm(0.9, 1.1, "unclear")
    assert report(good, bad, unclear).exit_code() == 1
    assert report(good, unclear).exit_code() == 3
    assert report(good, failures={"broken": "it raises"}).exit_code() == 3
    assert report(good, bad, void="the control moved").exit_code() == 3
    assert report(good).exit_code() == 0
    assert report(good, unclear, control="unclear").exit_code() == 0


def test_what_is_missing_is_said() -> None:
    """The time that decides, for all places together; nothing where it cannot be told."""
    said = list(report(arm(0.9, 1.1), arm(0.9, 1.1, "other", 150.0)).sentences())
    assert said[-1] == "It should be decided with --time 3m"
    assert list(report(arm(0.9, 1.1, "new", 20.0)).sentences())[-1].endswith("--time 20s")
    assert list(report(arm(0.9, 1.1), places=3).sentences())[-1].endswith("--time 5m")
    assert not any("--time" in each for each in report(arm(0.9, 1.1, "new", None)).sentences())
    assert not any("--time" in each for each in report(arm(1.1, 1.2)).sentences())
    void = list(report(arm(0.5, 0.6), void="the control c moved").sentences())
    assert void == ["Nothing may be concluded: the control c moved"]
    failed = list(report(arm(1.1, 1.2), failures={"broken": "no"}).sentences())
    assert failed[-1] == "broken failed: no"


def test_an_axis_has_what_its_places_allow_to_claim() -> None:
    (said,) = report(arm(1.1, 1.2), places=3).sentences()
    assert said == "new: pays at every point measured, n 10 to 30"


def test_a_table_has_a_row_for_each_arm() -> None:
    usages = {"old": Usage(0.01, 0.002, 5_000_000), "new": Usage(0.0, 0.0, None)}
    lines = list(report(arm(1.1, 1.21), failures={"broken": "no"}, usages=usages).table())
    assert [line.split() for line in lines[:4]] == [
        ["arm", "time", "speed-up", "[99", "%]", "verdict", "user", "system", "memory"],
        ["old", "12.3", "ms", "baseline", "10", "ms", "2", "ms", "5", "MB"],
        ["new", "10", "ms", "1.154x", "[1.100,", "1.210]", "faster", "0", "ns", "0", "ns", "-"],
        ["broken", "-", "-", "failed", "-", "-", "-"],
    ]
    assert "A note" in lines


def test_lines_below_the_table_are_at_most_120_wide() -> None:
    """Every sentence is there, in more lines where it is longer; a longer word is whole."""
    word = "x" * 130
    found = report(arm(0.9, 1.1), failures={"broken": f"{'no way ' * 30}{word}"})
    lines = list(found.table())
    assert {len(line) for line in lines if len(line) > 120} == {len(f"  {word}")}
    text = re.sub(r"\n  ", " ", "\n".join(lines))
    for sentence in (*found.sentences(), *found.method()):
        assert sentence in text


def test_markdown_takes_no_meaning_from_names() -> None:
    """A command with a line break, a pipe, and signs of Markdown and HTML."""
    name = "a | *b* `c`\n<img src=x>"
    text = "\n".join(report(arm(0.5, 0.6, name)).markdown())
    first = text.splitlines()[0]
    assert first.startswith(r"**a | \*b\* \`c\`\\n\<img src=x>: slower than old, 0.548x")
    assert first.endswith("** The check `slower` fails.")
    assert r"| a \| *b* `c`\n<img src=x> | 10 ms |" in text
    assert "\n<img" not in text


def test_json_has_no_infinity() -> None:
    found = json.loads(report(arm(0.0, math.inf)).as_json(), parse_constant=pytest.fail)
    assert found["places"][0]["arms"][0]["high"] is None
    assert (found["exit_code"], found["fail_on"], found["margin"]) == (3, "slower", 0.02)


@pytest.mark.parametrize(
    ("low", "high", "ends"),
    [(0.9, 1.1, "├┤"), (0.0, math.inf, "◂▸"), (0.1, 0.2, "◂"), (5.0, 6.0, "▸"), (0.9, 3.0, "├●▸")],
)
def test_a_drawing_shows_the_interval(low: float, high: float, ends: str) -> None:
    """Its ends lie where the scale has them, or are arrows; 1 is in the middle."""
    scale = Scale(math.log(2), 1 / 1.02)
    drawn = scale.draw(arm(low, high))
    assert len(drawn) == WIDTH == len(scale.ends())
    assert all(sign in drawn for sign in ends)
    assert scale.column(1.0) == WIDTH // 2
    assert (scale.column(2.0), scale.column(0.5)) == (WIDTH - 1, 0)
    assert scale.ends().split() == ["0.5", "1", "2"]
    if low > 0.5 and high < 2:
        assert drawn.index("├") == scale.column(low)
        assert drawn.rindex("┤") == scale.column(high)


def test_a_drawing_of_all_arms_has_one_scale() -> None:
    _, one, other = report(arm(0.9, 1.1), arm(0.7, 1.4, "a longer name")).drawings()
    assert len(one) == len(other)
    assert one.index("├") > other.index("├")
