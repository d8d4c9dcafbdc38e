"""Next steps: what to do about answers that are flagged, unclear, or rest on too few pairs; and what a report's words mean."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from orchestrator.report.labels import rows
from orchestrator.report.verdict_words import bits, drop, speed
from sweeps.labels import PROBABLE, SMALL, Finding

if TYPE_CHECKING:
    from orchestrator.report.render import Report

TITLE = "What to do next"
ADVICE: Mapping[str, str] = {
    "contended": "the machine was busy; when it is quiet, run again",
    "throttled": "the device lowered its clocks; let it cool, fix its clocks, and run again",
    "unsteady": "warm-up had not converged; run again",
}
"""For flags that another run may be free of."""


def steps(report: "Report", file: str = "FILE") -> Iterator[str]:
    """Sentences on a whole report; `file` is the sweep's. Nothing on answers that more time cannot change."""
    yield from flag_steps(report, file)
    short: set[str] = set()
    unclear: set[str] = set()
    for row in rows(report.speedups):
        finding = speed(row).finding
        if finding is Finding.INSUFFICIENT:
            short.add(row.comparison_id)
        elif finding in PROBABLE | {Finding.UNCLEAR, Finding.NO_INTERVAL} and not row.flags:
            unclear.add(row.comparison_id)
    if short:
        yield f"{_counted(short)} too few pairs; the same command adds pairs: breakeven run {file}"
    if unclear := unclear - short:
        yield (
            f"{_counted(unclear)} an unclear speed-up; more pairs narrow the interval: raise `budget` or `pairs: max` in the "
            f"sweep, then: breakeven run {file} --again --only unclear"
        )


def legend(report: "Report") -> Iterator[str]:
    """What those words mean that a report has and whose verdict is another word."""
    frames = ((report.speedups, speed), (report.accuracies, drop), (report.qualities, bits))
    findings = {conclusion(row).finding for frame, conclusion in frames for row in rows(frame)}
    if findings & PROBABLE:
        yield "probably: the 95 % interval excludes no difference, but not as clearly as a verdict needs (the verdict is `unclear`)"
    if findings & SMALL:
        yield "within floor: the interval excludes no difference, but lies within the floor (the verdict is `same`)"


def flag_steps(report: "Report", file: str = "FILE") -> Iterator[str]:
    """Sentences on flagged answers alone."""
    flagged: dict[str, set[str]] = defaultdict(set)
    for frame in (report.speedups, report.accuracies, report.qualities):
        for row in rows(frame):
            for flag in filter(None, (row.flags or "").split(",")):
                flagged[flag].add(row.comparison_id)
    for flag, comparisons in sorted(flagged.items()):
        if flag in ADVICE:
            yield f"{_counted(comparisons)} the flag {flag}: {ADVICE[flag]}: breakeven run {file} --again --only flagged"
    if others := sorted(set(flagged) - set(ADVICE)):
        affected = set().union(*(flagged[flag] for flag in others))
        yield f"{_counted(affected)} the flag {' or '.join(others)}, which workers/README.md explains (Flags)"


def _counted(comparisons: Sequence[str] | set[str]) -> str:
    return "1 comparison has" if len(comparisons) == 1 else f"{len(comparisons)} comparisons have"
