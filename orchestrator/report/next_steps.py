"""Next steps: what to do about results that are flagged, unclear, or rest on too few pairs; and what the verdict words mean."""

from collections import defaultdict
from collections.abc import Collection, Iterator
from typing import Any

from orchestrator.report.data import Report
from orchestrator.report.differences import change_of
from orchestrator.report.section import rows_of
from orchestrator.report.speedup import speedup_of
from sweeps.flags import FLAGS
from sweeps.labels import PROBABLE, SMALL, Finding
from sweeps.number_format import count, is_missing
from sweeps.stats.pooling import SAME_WORK_SD


def next_steps_of(report: Report, file: str = "FILE") -> Iterator[str]:
    """Sentences on a whole report; `file` is that of the sweep. Nothing on results that more time cannot change."""
    yield from flag_steps(report, file)
    short: set[str] = set()
    unclear: set[str] = set()
    for row in rows_of(report.speedups):
        finding = speedup_of(row).finding
        if finding is Finding.INSUFFICIENT:
            short.add(row.comparison_id)
        elif finding in PROBABLE | {Finding.UNCLEAR, Finding.NO_INTERVAL} and not row.flags:
            unclear.add(row.comparison_id)
    if short:
        yield f"{_comparisons_have(short)} too few pairs; the same command adds pairs: breakeven run {file}"
    if unclear := unclear - short:
        yield (
            f"{_comparisons_have(unclear)} an unclear speed-up; this adds pairs, until they are clear or as precise as the sweep "
            f"requests: breakeven run {file} --more"
        )


def legend(report: Report) -> Iterator[str]:
    """Explanations of the words in a report that stand in place of the verdict, and of what its intervals count."""
    findings = {speedup_of(row).finding for row in rows_of(report.speedups)}
    findings |= {change_of(row).finding for row in rows_of(report.effects[report.effects["compared"] == "difference"])}
    if findings & PROBABLE:
        yield "probably: the 95 % interval excludes no difference, but not as clearly as a verdict needs (the verdict is `unclear`)"
    if findings & SMALL:
        yield "within floor: the interval excludes no difference, but lies within the floor (the verdict is `same`)"
    if Finding.QUARANTINED in findings:
        yield (
            "quarantined: measured only while heat, hardware or a quota slowed the machine (see the flags), so that there is no "
            "verdict; the next run measures it again"
        )
    terms = report.speedups[["process_sd", "calibration_id"]].drop_duplicates()
    if counted := [_process_term(row) for row in rows_of(terms)]:
        yield f"between processes, intervals count a standard deviation of {', '.join(sorted(counted))}"


def _process_term(row: Any) -> str:
    source = f"calibration {row.calibration_id}"
    if is_missing(row.calibration_id):
        same = row.process_sd == SAME_WORK_SD
        source = "stated, of arms that do the work of their baseline" if same else "stated; measured by: breakeven calibrate"
    return f"{100 * row.process_sd:.2f} % ({source})"


def flag_steps(report: Report, file: str = "FILE") -> Iterator[str]:
    """Sentences on flagged results alone."""
    flagged: dict[str, set[str]] = defaultdict(set)
    for frame in report.compared:
        for row in rows_of(frame):
            for flag in filter(None, (row.flags or "").split(",")):
                flagged[flag].add(row.comparison_id)
    advice = {flag: FLAGS[flag].advice for flag in flagged if flag in FLAGS and FLAGS[flag].advice}
    for flag, comparisons in sorted(flagged.items()):
        if flag in advice:
            yield f"{_comparisons_have(comparisons)} the flag {flag}: {advice[flag]}: breakeven run {file} --retry-flagged"
    if others := sorted(set(flagged) - set(advice) - {name for name, flag in FLAGS.items() if flag.harmless}):
        affected = set().union(*(flagged[flag] for flag in others))
        yield f"{_comparisons_have(affected)} the flag {' or '.join(others)}, which workers/README.md explains (Flags)"


def _comparisons_have(comparisons: Collection[str]) -> str:
    return f"{count(len(comparisons), 'comparison')} {'has' if len(comparisons) == 1 else 'have'}"
