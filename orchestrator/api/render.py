"""A comparison as a table of the terminal, as Markdown for a pull request, and as JSON; whether
each arm passes.
"""

import itertools
import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from textwrap import TextWrapper
from typing import Literal, NamedTuple

from orchestrator.api.commands import Usage
from orchestrator.api.functions import Curve
from orchestrator.api.result import Result
from orchestrator.text_table import cell, markdown_row, table_lines
from sweeps.analysis.compared import ComparedArm
from sweeps.number_format import count, duration
from sweeps.text.compared import (
    compared_sentence,
    flag_sentences,
    null_sentence,
    short_time,
    speedup_text,
)

FailOn = Literal["slower", "not-faster"]
Passed = Literal["yes", "no", "undecided"]
PASSED, FAILED, UNDECIDED = 0, 1, 3
"""Exit codes."""
PASSED_TEXT: Mapping[int, str] = {
    PASSED: "passes",
    FAILED: "fails",
    UNDECIDED: "is not decided",
}
WRAPPER = TextWrapper(120, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
"""Of sentences below the table."""
WIDTH = 41
"""Characters of a drawn interval."""
MAX_REACH = math.log(4.0)
"""A drawing ends at 4 times as fast or slow; an interval that goes on has an arrow."""


class Place(NamedTuple):
    """One comparison of a curve, or the only one."""

    values: Mapping[str, float]
    """Of the axes."""
    result: Result
    usages: Mapping[str, Usage]
    """Of commands, by name."""

    @property
    def text(self) -> str:
        return ", ".join(f"{name} = {value}" for name, value in self.values.items())


@dataclass(frozen=True)
class ComparisonReport:
    """What is printed of a comparison, and what decides the exit code."""

    places: tuple[Place, ...]
    margin: float
    fail_on: FailOn
    notes: tuple[str, ...]
    """What a reader must know of how it was measured."""

    def passed(self, arm: ComparedArm) -> Passed:
        """Whether an interval shows that an arm is not slower (or is faster), by the margin."""
        limit = 1 / (1 + self.margin)
        low, high = (limit, limit) if self.fail_on == "slower" else (1.0, 1 / limit)
        if arm.low > low:
            return "yes"
        return "no" if arm.high < high else "undecided"

    def exit_code(self) -> int:
        """1 where an arm does not pass, else 3 where it is not decided of one, or one failed."""
        results = [place.result for place in self.places]
        passed = {self.passed(arm) for _, arm in self._arms()}
        if any(each.void for each in results):
            return UNDECIDED
        if "no" in passed:
            return FAILED
        failed = any(each.failures for each in results)
        return UNDECIDED if "undecided" in passed or failed else PASSED

    def sentences(self) -> Iterator[str]:
        """The answer for each arm, along an axis what its places allow to claim, and what is
        missing.
        """
        if len(self.places) > 1 and len(self.places[0].values) == 1:
            ((axis, _),) = self.places[0].values.items()
            results = {place.values[axis]: place.result for place in self.places}
            yield from Curve(axis, dict(sorted(results.items()))).claims()
        else:
            for place, arm in self._arms():
                at = f" at {place.text}" if place.values else ""
                if not place.result.void:
                    yield compared_sentence(arm, place.result.names[0], self.margin) + at
        for place in self.places:
            if place.result.void:
                yield f"Nothing may be concluded: {place.result.void}"
            for name, reason in place.result.failures.items():
                yield f"{name} failed: {reason}"
        if self.exit_code() == UNDECIDED and (time := self._needed()) is not None:
            yield f"It should be decided with --time {time}"

    def _needed(self) -> str | None:
        """The time that decides what is not decided; `None` where that is not known."""
        if any(place.result.void for place in self.places):
            return None
        needed = [arm.needed_s for _, arm in self._arms() if self.passed(arm) == "undecided"]
        if not needed or None in needed:
            return None
        # places share the time equally
        seconds = len(self.places) * max(filter(None, needed))
        return f"{math.ceil(seconds)}s" if seconds < 90 else f"{math.ceil(seconds / 60)}m"

    def method(self) -> Iterator[str]:
        """How it was measured, and what casts doubt on it, a sentence each."""
        results = [place.result for place in self.places]
        visits = [visit for each in results for visit in each.visits]
        rounds = sum(len(visit.samples.seconds) for visit in visits)
        limit = f"1 / (1 + {100 * self.margin:g} %) = {1 / (1 + self.margin):.3f}"
        yield (
            "A speed-up is the time of the baseline over that of the arm; slower: its 99 % interval"
            f" lies below {limit}; faster: above 1"
        )
        yield (
            f"{count(rounds, 'round')} in {count(len(visits), 'visit')},"
            f" {duration(sum(each.spent_s for each in results))}: each runs every arm twice,"
            f" in random order and none after itself, on {results[0].environment.device_name}"
        )
        for place in self.places:
            at = f" at {place.text}" if place.values else ""
            yield null_sentence(place.result.null, place.result.names[0]) + at
        yield from self.notes
        doubts = [[*flag_sentences(each.flags), *each.notes] for each in results]
        yield from dict.fromkeys(itertools.chain.from_iterable(doubts))

    def headings(self) -> list[str]:
        """Of the columns of `rows`."""
        used = ["user", "system", "memory"] if self.places[0].usages else []
        return [*self.places[0].values, "arm", "time", "speed-up [99 %]", "verdict", *used]

    def rows(self) -> Iterator[list[str]]:
        """Every arm at every place, the baseline first."""
        for place in self.places:
            for name in place.result.names:
                values = [f"{value}" for value in place.values.values()]
                yield [*values, name, *_cells(place.result, name), *_used(place, name)]

    def table(self) -> Iterator[str]:
        """Lines for a terminal."""
        yield from table_lines(self.headings(), self.rows())
        yield from ("", *self.drawings())
        for lines in (self.sentences(), self.method()):
            yield ""
            for line in lines:
                yield from WRAPPER.wrap(cell(line))

    def markdown(self) -> Iterator[str]:
        """Lines of a comment of a pull request."""
        first, *others = map(_escaped, self.sentences())
        yield f"**{first}.** The check `{self.fail_on}` {PASSED_TEXT[self.exit_code()]}."
        yield from (f"\n{sentence}." for sentence in others)
        yield ""
        for cells in (self.headings(), ["---"] * len(self.headings()), *self.rows()):
            yield markdown_row(cells)
        yield from ("", "```text", *self.drawings(), "```", "", "How it was measured:", "")
        yield from (f"- {_escaped(sentence)}" for sentence in self.method())

    def as_json(self) -> str:
        """Everything, without the samples."""
        said = {"sentences": list(self.sentences()), "method": list(self.method())}
        found = {"exit_code": self.exit_code(), "fail_on": self.fail_on, "margin": self.margin}
        places = [_place_json(place) for place in self.places]
        return json.dumps({**found, **said, "places": places}, indent=2)

    def drawings(self) -> Iterator[str]:
        """The interval of each arm as a line of text, all on one scale."""
        limit = 1 / (1 + self.margin)
        ends = [end for _, arm in self._arms() for end in (arm.low, arm.high) if 0 < end < math.inf]
        widest = max([-2 * math.log(limit), *(abs(math.log(end)) for end in ends)])
        scale = Scale(min(MAX_REACH, 1.1 * widest), limit)
        labels = [cell(f"{arm.name} {place.text}".rstrip()) for place, arm in self._arms()]
        width = max(map(len, labels))
        yield f"{'speed-up':{width}}  {scale.ends()}"
        for label, (_, arm) in zip(labels, self._arms(), strict=True):
            yield f"{label:{width}}  {scale.draw(arm)}"

    def _arms(self) -> Iterator[tuple[Place, ComparedArm]]:
        """Without a control, of which nothing is asked."""
        for place in self.places:
            for arm in place.result.arms.values():
                if arm.name not in place.result.setup.controls:
                    yield place, arm


class Scale(NamedTuple):
    """A logarithmic scale of speed-ups around 1, `WIDTH` characters wide."""

    reach: float
    """Logarithm of its right end."""
    limit: float
    """The speed-up below which an arm is slower."""

    def column(self, speedup: float) -> int:
        """Where a speed-up lies; -1 and `WIDTH` outside."""
        position = math.log(max(speedup, 1e-9)) / self.reach if speedup < math.inf else 2.0
        return max(-1, min(WIDTH, round((position + 1) / 2 * (WIDTH - 1))))

    def ends(self) -> str:
        """The numbers above a drawing."""
        low, high = (f"{math.exp(side * self.reach):.3g}" for side in (-1, 1))
        left = WIDTH // 2
        return f"{low:<{left}}1{high:>{WIDTH - left - 1}}"

    def draw(self, arm: ComparedArm) -> str:
        """`●` the estimate, `├─┤` its interval, `│` equal times, `┊` the margin."""
        cells, last = ["·"] * WIDTH, WIDTH - 1
        cells[self.column(self.limit)], cells[self.column(1.0)] = "┊", "│"
        low, value, high = (self.column(each) for each in (arm.low, arm.ratio, arm.high))
        for column in range(max(low, 0), min(high, last) + 1):
            cells[column] = "─"
        for column, sign in ((low, "├"), (high, "┤"), (value, "●")):
            if 0 <= column <= last:
                cells[column] = sign
        if low < 0:
            cells[0] = "◂"
        if high > last:
            cells[last] = "▸"
        return "".join(cells)


def _escaped(sentence: str) -> str:
    """A sentence on one line of Markdown, in which a command has no meaning."""
    return re.sub(r"[\\`*_<\[]", r"\\\g<0>", cell(sentence))


def _cells(result: Result, name: str) -> tuple[str, str, str]:
    """Time, speed-up and verdict; an interval that holds 1 and lies above the margin shows that an
    arm is `not slower`.
    """
    if name in result.failures:
        return "-", "-", "failed"
    time = short_time(result.seconds[name])
    if name == result.names[0]:
        return time, "baseline", ""
    arm = result.arms[name]
    verdict = "not slower" if arm.verdict == "undecided" and arm.not_slower else arm.verdict
    speedup = speedup_text(arm.ratio, arm.low, arm.high)
    return time, speedup, "void" if result.void else verdict


def _used(place: Place, name: str) -> list[str]:
    """CPU times and memory, in a comparison of commands."""
    if not place.usages:
        return []
    if (usage := place.usages.get(name)) is None:
        return ["-"] * 3
    size = "-" if usage.peak_bytes is None else f"{usage.peak_bytes / 1e6:,.0f} MB"
    return [short_time(usage.user_s), short_time(usage.system_s), size]


def _place_json(place: Place) -> dict[str, object]:
    result = place.result
    return {
        "axes": dict(place.values),
        "baseline": result.names[0],
        "seconds": dict(result.seconds),
        "null": _finite(result.null._asdict()),
        "arms": [_finite(asdict(arm)) for arm in result.arms.values()],
        "failures": dict(result.failures),
        "void": result.void,
        "visits": len(result.visits),
        "spent_s": result.spent_s,
        "usage": {name: usage._asdict() for name, usage in place.usages.items()},
        "environment": result.environment.model_dump(mode="json"),
    }


def _finite(fields: Mapping[str, object]) -> dict[str, object]:
    """JSON has no infinity."""
    return {name: None if value == math.inf else value for name, value in fields.items()}
