"""A comparison as a table of the terminal, as Markdown for a pull request, and as JSON; whether
each arm passes.
"""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Literal, NamedTuple

from orchestrator.api.commands import Usage
from orchestrator.api.comparison import Result
from orchestrator.text_table import markdown_row, table_lines
from sweeps.analysis.compared import ComparedArm
from sweeps.model.flags import FLAGS
from sweeps.number_format import count, duration, with_interval

FailOn = Literal["slower", "not-faster"]
Passed = Literal["yes", "no", "undecided"]
PASSED, FAILED, UNDECIDED = 0, 1, 3
"""Exit codes."""
WIDTH = 41
"""Characters of a drawn interval."""
MAX_REACH = math.log(4.0)
"""A drawing ends at 4 times as fast or slow; an interval that goes on has an arrow."""
MAX_SENTENCES = 6
UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


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

    def _arms(self) -> Iterator[tuple[Place, ComparedArm]]:
        for place in self.places:
            for arm in place.result.arms.values():
                yield place, arm

    def passed(self, arm: ComparedArm) -> Passed:
        """Whether an interval shows that an arm is not slower (or is faster); by the margin."""
        low, high = (
            (1 / (1 + self.margin), 1 / (1 + self.margin))
            if self.fail_on == "slower"
            else (1.0, 1 + self.margin)
        )
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
        """The answer for each arm, or how many places have which where these are many."""
        arms = [(place, arm) for place, arm in self._arms() if not place.result.void]
        if len(arms) <= MAX_SENTENCES:
            for place, arm in arms:
                at = f" at {place.text}" if place.values else ""
                yield self._sentence(place.result, arm) + at + "."
        else:
            for name in dict.fromkeys(arm.name for _, arm in arms):
                mine = [(place.text, _verdict(arm)) for place, arm in arms if arm.name == name]
                parts = (
                    f"{verdict} at {', '.join(at for at, found in mine if found == verdict)}"
                    for verdict in dict.fromkeys(found for _, found in mine)
                )
                yield f"{name} is {'; '.join(parts)}."
        for place in self.places:
            for name, reason in place.result.failures.items():
                yield f"{name} failed: {reason}."
            if place.result.void:
                yield f"Nothing may be concluded: {place.result.void}."
        if self.exit_code() == UNDECIDED and (time := self._needed()) is not None:
            yield f"It should be decided with --time {time}."

    def _needed(self) -> str | None:
        """The time that decides what is not decided; `None` where that cannot be told."""
        needed = [arm.needed_s for _, arm in self._arms() if self.passed(arm) == "undecided"]
        if not needed or None in needed:
            return None
        # places share the time equally
        seconds = len(self.places) * max(filter(None, needed))
        return f"{math.ceil(seconds)}s" if seconds < 90 else f"{math.ceil(seconds / 60)}m"

    def _sentence(self, result: Result, arm: ComparedArm) -> str:
        base = result.names[0]
        numbers = with_interval(arm.ratio, arm.low, arm.high, ".3f")
        if arm.verdict == "equal":
            return f"{arm.name} is as fast as {base} within {100 * self.margin:g} %: {numbers}"
        if (verdict := _verdict(arm)) == "undecided":
            return f"Not decided whether {arm.name} is slower than {base}: {numbers}"
        return f"{arm.name} is {verdict} than {base}: {numbers}"

    def method(self) -> Iterator[str]:
        """How it was measured, one sentence each."""
        results = [place.result for place in self.places]
        rounds = sum(len(visit.samples.seconds) for each in results for visit in each.visits)
        environment = results[0].environment
        yield (
            "A speed-up is the time of the baseline over that of the arm, with its 99 % interval:"
            " slower if that lies below"
            f" 1 / (1 + {100 * self.margin:g} %) = {1 / (1 + self.margin):.3f}, faster if above 1."
        )
        yield (
            f"{count(rounds, 'round')} in {count(sum(len(r.visits) for r in results), 'visit')},"
            f" {duration(sum(each.spent_s for each in results))}; each round runs every arm once in"
            f" random order, and the baseline twice, on {environment.device_name}."
        )
        nulls = ", ".join(
            with_interval(each.null.value, each.null.low, each.null.high, ".3f") for each in results
        )
        yield f"The baseline against itself: {nulls}."
        yield from dict.fromkeys([*self.notes, *(note for each in results for note in each.notes)])
        for flag in dict.fromkeys(flag for each in results for flag in each.flags):
            yield f"Flag {flag}: {FLAGS[flag].meaning}."

    def headings(self) -> list[str]:
        """Of the columns of `rows`."""
        used = ["user", "system", "memory"] if any(each.usages for each in self.places) else []
        axes = [*self.places[0].values]
        return [*axes, "arm", "time", "speed-up [99 %]", "verdict", *used]

    def rows(self) -> Iterator[list[str]]:
        """Every arm at every place, the baseline first."""
        for place in self.places:
            for name in place.result.names:
                values = [f"{value}" for value in place.values.values()]
                yield [*values, name, *_cells(place.result, name), *_used(place, name)]

    def table(self) -> Iterator[str]:
        """Lines for a terminal."""
        yield from table_lines(self.headings(), self.rows())
        yield ""
        yield from self.drawings()
        yield ""
        yield from self.sentences()
        yield ""
        yield from self.method()

    def markdown(self) -> Iterator[str]:
        """Lines of a comment of a pull request."""
        verdict = {PASSED: "passes", FAILED: "fails", UNDECIDED: "is not decided"}
        first, *others = self.sentences()
        yield f"**{first}** The check `{self.fail_on}` {verdict[self.exit_code()]}."
        yield from others
        yield ""
        for cells in (self.headings(), ["---"] * len(self.headings()), *self.rows()):
            yield markdown_row(cells)
        yield from ("", "```text", *self.drawings(), "```", "", "How it was measured:", "")
        for sentence in self.method():
            yield f"- {sentence}"

    def as_json(self) -> str:
        """Everything, without the samples."""
        return json.dumps(
            {
                "exit_code": self.exit_code(),
                "fail_on": self.fail_on,
                "margin": self.margin,
                "sentences": list(self.sentences()),
                "method": list(self.method()),
                "places": [_place_json(place) for place in self.places],
            },
            indent=2,
        )

    def drawings(self) -> Iterator[str]:
        """The interval of each arm as a line of text, all on one scale."""
        arms = list(self._arms())
        limit = 1 / (1 + self.margin)
        logs = [
            math.log(end) for _, arm in arms for end in (arm.low, arm.high) if 0 < end < math.inf
        ]
        reach = min(MAX_REACH, 1.1 * max([-2 * math.log(limit), *map(abs, logs)]))
        labels = [f"{arm.name} {place.text}".rstrip() for place, arm in arms]
        width = max(map(len, labels))
        scale = Scale(reach, limit)
        yield f"{'speed-up':{width}}  {scale.ends()}"
        for label, (_, arm) in zip(labels, arms, strict=True):
            yield f"{label:{width}}  {scale.draw(arm)}"


class Scale(NamedTuple):
    """A logarithmic scale of speed-ups around 1, `WIDTH` characters wide."""

    reach: float
    """Logarithm of its right end."""
    limit: float
    """The speed-up below which an arm is slower."""

    def column(self, speedup: float) -> int:
        """Where a speed-up lies; -1 and `WIDTH` outside."""
        if speedup <= 0:
            return -1
        share = (min(math.log(speedup), 2 * self.reach) / self.reach + 1) / 2
        return max(-1, min(WIDTH, round(share * (WIDTH - 1))))

    def ends(self) -> str:
        """The numbers above a drawing."""
        low, high = f"{math.exp(-self.reach):.3g}", f"{math.exp(self.reach):.3g}"
        left = WIDTH // 2
        return f"{low:<{left}}1{high:>{WIDTH - left - 1}}"

    def draw(self, arm: ComparedArm) -> str:
        """`●` the estimate, `├─┤` its interval, `│` equal times, `┊` the margin."""
        cells = ["·"] * WIDTH
        cells[self.column(self.limit)], cells[self.column(1.0)] = "┊", "│"
        low, value, high = (self.column(each) for each in (arm.low, arm.ratio, arm.high))
        for column in range(max(low, 0), min(high + 1, WIDTH)):
            cells[column] = "─"
        last = WIDTH - 1
        cells[min(max(low, 0), last)] = "◂" if low < 0 else "├"
        cells[min(max(high, 0), last)] = "▸" if high > last else "┤"
        cells[min(max(value, 0), last)] = "●"
        return "".join(cells)


def seconds_text(seconds: float) -> str:
    """`1.23 ms`: three digits, in the unit that suits."""
    if seconds == 0:
        return "0 s"
    unit, name = next((pair for pair in UNITS if seconds >= pair[0] * 0.9995), UNITS[-1])
    whole = len(f"{seconds / unit:.0f}")
    return f"{seconds / unit:.{max(0, 3 - whole)}f} {name}"


def _used(place: Place, name: str) -> list[str]:
    """CPU times and memory, in a comparison of commands."""
    if not place.usages:
        return []
    if (usage := place.usages.get(name)) is None:
        return ["-"] * 3
    size = "-" if usage.peak_bytes is None else f"{usage.peak_bytes / 1e6:,.0f} MB"
    return [seconds_text(usage.user_s), seconds_text(usage.system_s), size]


def _verdict(arm: ComparedArm) -> str:
    """In a word: an interval that ends above the margin, and holds 1, is `not slower`."""
    return "not slower" if arm.verdict == "undecided" and arm.not_slower else arm.verdict


def _cells(result: Result, name: str) -> tuple[str, str, str]:
    """Time, speed-up and verdict."""
    if name in result.failures:
        return "-", "-", "failed"
    time = seconds_text(result.seconds[name])
    if name == result.names[0]:
        return time, "baseline", ""
    arm = result.arms[name]
    return (
        time,
        with_interval(arm.ratio, arm.low, arm.high, ".3f"),
        "void" if result.void else _verdict(arm),
    )


def _place_json(place: Place) -> dict[str, object]:
    result = place.result
    return {
        "axes": dict(place.values),
        "baseline": result.names[0],
        "seconds": dict(result.seconds),
        "null": result.null._asdict(),
        "arms": [_arm_json(arm) for arm in result.arms.values()],
        "failures": dict(result.failures),
        "void": result.void,
        "visits": len(result.visits),
        "spent_s": result.spent_s,
        "needed_s": result.needed_s,
        "usage": {name: usage._asdict() for name, usage in place.usages.items()},
        "environment": result.environment.model_dump(mode="json"),
    }


def _arm_json(arm: ComparedArm) -> dict[str, object]:
    return {
        name: None if value in {math.inf, -math.inf} else value
        for name, value in asdict(arm).items()
    }
