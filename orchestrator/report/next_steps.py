"""Next steps: what to do about results that are flagged, unclear, or rest on too few pairs; and
what the verdict words mean.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator
from math import log

from orchestrator.report.data import Report
from orchestrator.report.sections.differences import change_of
from orchestrator.report.sections.speedup import speedup_of
from orchestrator.report.sections.surprises import shortfall
from store.rows.frames import rows_of
from sweeps.analysis.labels import PROBABLE, SMALL, Finding
from sweeps.model.flags import FLAGS, split_flags
from sweeps.model.kinds import KINDS
from sweeps.number_format import count, is_missing
from workers.methods import purpose
from workers.methods.arm_labels import params_label

CLEARLY_LESS = 1.1
"""By this factor the promise must lie above the interval before another runtime is worth a try."""
MAX_NAMED = 6
"""Arms that one sentence names."""


def next_steps_of(report: Report, sweep: str = "") -> Iterator[str]:
    """Sentences on a whole report; `sweep` is how commands name it. Nothing on results that more
    time cannot change.
    """
    file = sweep or _named(report)
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
        yield (
            f"{_comparisons_have(short)} too few pairs; the same command adds pairs: breakeven run"
            f" {file}"
        )
    if unclear := unclear - short:
        yield (
            f"{_comparisons_have(unclear)} an unclear speed-up; this adds pairs, until they are"
            f" clear or as precise as the sweep requests: breakeven run {file} --refine"
        )


def decisions_of(report: Report) -> Iterator[str]:
    """What clear answers lead to: another runtime where little of the promise arrived, the
    unmodified model where arms lose.
    """
    main = {kind.metrics[0] for kind in KINDS.values() if kind.metrics}
    rows = rows_of(report.speedups[report.speedups["metric"].isin(main)])
    rows = [row for row in rows if purpose(row.method) == "optimisation"]
    short = {(row.method, row.params) for row in rows if shortfall(row) > log(CLEARLY_LESS)}
    if short and {row.runtime for row in rows} == {"eager"}:
        gpu = {row.device for row in rows} == {"cuda"}
        other = "cudagraph, compile" if gpu else "compile"
        shows = (
            "whether the launches of kernels are the reason"
            if gpu
            else "what fewer and larger operators regain"
        )
        static = (
            "" if all(is_missing(row.prompt_tokens) for row in rows) else " with `kv_cache: static`"
        )
        yield (
            f"{count(len(short), 'arm')} gained clearly less than their MACs suggest, under the"
            f" runtime eager alone; another runtime shows {shows}: `runtime: [eager, {other}]`"
            f" under `axes`{static}"
        )
    findings: dict[str, set[Finding]] = defaultdict(set)
    for row in rows:
        findings[params_label(row.method, row.params)].add(speedup_of(row).finding)
    slower = [label for label, found in findings.items() if found == {Finding.LOSS}]
    if slower:
        more = f" and {len(slower) - MAX_NAMED} more" if len(slower) > MAX_NAMED else ""
        yield (
            f"use the unmodified model instead of {', '.join(slower[:MAX_NAMED])}{more}: slower"
            " wherever it was measured"
        )


def legend(report: Report) -> Iterator[str]:
    """Explanations of the words in a report that stand instead of the verdict, and of what its
    intervals count.
    """
    findings = {speedup_of(row).finding for row in rows_of(report.speedups)}
    findings |= {
        change_of(row).finding
        for row in rows_of(report.effects[report.effects["compared"] == "difference"])
    }
    if findings & PROBABLE:
        yield (
            "probably: the 95 % interval excludes no difference, but not as clearly as a verdict"
            " needs (the verdict is `unclear`)"
        )
    if findings & SMALL:
        yield (
            "within floor: the interval excludes no difference, but lies within the floor (the"
            " verdict is `same`)"
        )
    if Finding.QUARANTINED in findings:
        yield (
            "quarantined: measured only while heat, hardware or a quota slowed the machine (see the"
            " flags), so that there is no verdict; the next run measures it again"
        )
    raised = {
        flag for frame in report.compared for flags in frame["flags"] for flag in split_flags(flags)
    } & FLAGS.keys()
    for flag in sorted(raised):
        left_out = " (left out of curves)" if FLAGS[flag].wrong else ""
        yield f"flag {flag}: {FLAGS[flag].meaning}{left_out}"


def flag_steps(report: Report, sweep: str = "") -> Iterator[str]:
    """Sentences on flagged results alone."""
    file = sweep or _named(report)
    flagged: dict[str, set[str]] = defaultdict(set)
    for frame in report.compared:
        for row in rows_of(frame):
            for flag in filter(None, (row.flags or "").split(",")):
                flagged[flag].add(row.comparison_id)
    advice = {flag: FLAGS[flag].advice for flag in flagged if flag in FLAGS and FLAGS[flag].advice}
    for flag, comparisons in sorted(flagged.items()):
        if flag in advice:
            yield (
                f"{_comparisons_have(comparisons)} the flag {flag}: {advice[flag]}: breakeven run"
                f" {file} --retry-flagged"
            )
    if others := sorted(
        set(flagged) - set(advice) - {name for name, flag in FLAGS.items() if flag.harmless}
    ):
        affected = set().union(*(flagged[flag] for flag in others))
        yield (
            f"{_comparisons_have(affected)} the flag {' or '.join(others)}, which workers/README.md"
            " explains (Flags)"
        )


def _named(report: Report) -> str:
    return f"{report.name}{report.options}"


def _comparisons_have(comparisons: Collection[str]) -> str:
    return f"{count(len(comparisons), 'comparison')} {'has' if len(comparisons) == 1 else 'have'}"
