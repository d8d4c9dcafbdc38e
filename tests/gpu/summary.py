"""What an acceptance run found: as JSON, and as a page of Markdown for people."""

import json
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sweeps.model.outcome import Outcome
from sweeps.stats.pooling import ALPHA
from sweeps.stats.visits import Visit, pool_visits

SOUND = frozenset({"unsupported", "out_of_memory"})
"""Failures that are limits of the machine, not faults."""


def tests_of(report: Path) -> dict[str, Any]:
    """Counts and failed tests of pytest's JUnit report."""
    counts = dict.fromkeys(("passed", "failed", "skipped"), 0)
    failed: list[str] = []
    for case in ET.parse(report).getroot().iter("testcase"):
        state = next(
            (child.tag for child in case if child.tag in {"failure", "error", "skipped"}), "passed"
        )
        state = "failed" if state in {"failure", "error"} else state
        counts[state] += 1
        if state == "failed":
            failed.append(f"{case.get('classname')}::{case.get('name')}")
    return {**counts, "failed_tests": failed, "note": ""}


def points_of(outcome: Outcome) -> list[dict[str, Any]]:
    """One entry for each comparison of a job: the arm, its speed-up by this one visit or its
    numbers, or why there are none.
    """
    failures = {failure.arm: failure for failure in outcome.failures}
    arms = {arm.arm: arm for arm in outcome.arms}
    points = []
    for baseline, arm in outcome.job.pairs:
        point: dict[str, Any] = {
            "arm": str(outcome.job.arms[arm]),
            "baseline": str(outcome.job.arms[baseline]),
        }
        failure = failures.get(None) or failures.get(arm) or failures.get(baseline)
        if failure is not None:
            point |= {"failure": failure.reason, "message": failure.message}
        elif outcome.samples is not None and {baseline, arm} <= set(outcome.samples.arms):
            table, columns = np.asarray(outcome.samples.seconds), np.asarray(outcome.samples.arms)
            ratio = pool_visits(
                [Visit(*(table[:, columns == side] for side in (baseline, arm)))], [0]
            ).speedup
            point |= {
                "speedup": ratio.value,
                "low": ratio.low,
                "high": ratio.high,
                "pairs": ratio.pairs,
            }
        if arm in arms:
            wanted = (
                "latency",
                "ttft",
                "tpot",
                "top1",
                "bits_per_byte",
                "peak_rss",
                "cuda_peak_allocated",
                "energy_per_image",
            )
            point["metrics"] = {
                metric.name: metric.value for metric in arms[arm].metrics if metric.name in wanted
            }
            point["flags"] = list(arms[arm].flags)
        points.append(point)
    return points


def no_tests(note: str) -> dict[str, Any]:
    """What `tests_of` gives where none ran, and why."""
    return {"passed": 0, "failed": 0, "skipped": 0, "failed_tests": [], "note": note}


def job_summary(sweep: str, name: str, outcome: Outcome | None, problem: str) -> dict[str, Any]:
    """What came of a job; without an outcome why there is none."""
    if outcome is None:
        nothing: dict[str, Any] = {"points": [], "flags": [], "notes": [], "seconds": 0.0}
        return {
            "sweep": sweep,
            "name": name,
            "problem": problem or "not reached in time",
            "samples_s": 0.0,
            **nothing,
        }
    samples = outcome.samples
    return {
        "sweep": sweep,
        "name": name,
        "problem": "",
        "points": points_of(outcome),
        "flags": list(outcome.flags),
        "notes": list(outcome.notes),
        "seconds": outcome.ended_at - outcome.started_at,
        "samples_s": 0.0 if samples is None else float(np.asarray(samples.seconds).sum()),
    }


def summarise(
    jobs: Sequence[Mapping[str, Any]],
    times: Mapping[str, float],
    tests: Mapping[str, Any],
    problems: Sequence[str],
) -> dict[str, Any]:
    """What was found, as JSON has it, without the machine."""
    every = [*problems, *problems_of(jobs)]
    return {
        "passed": not every,
        "problems": every,
        "tests": tests,
        "jobs": jobs,
        "parts_s": times,
        "jobs_s": sum(job["seconds"] for job in jobs),
        "samples_s": sum(job["samples_s"] for job in jobs),
    }


def write(out: Path, found: Mapping[str, Any]) -> None:
    """Both files."""
    (out / "summary.json").write_text(json.dumps(found, indent=1) + "\n")
    (out / "summary.md").write_text(page(found))


def page(found: Mapping[str, Any]) -> str:
    """The summary as Markdown."""
    environment, tests = found["environment"], found["tests"]
    lines = [
        (
            f"# Acceptance on {environment['device_name']}:"
            f" {'passed' if found['passed'] else 'not passed'}"
        ),
        "",
        (
            f"{found['seconds']:.0f} s of {60 * found['minutes']:.0f} s on {environment['device']},"
            f" commit {found['commit']}"
        ),
        "",
        *(f"- {name}: {value}" for name, value in sorted(environment["facts"].items())),
        "",
        "## Where the time went",
        "",
        *(f"- {part}: {seconds:.0f} s" for part, seconds in found["parts_s"].items()),
        (
            f"- samples: {found['samples_s']:.0f} of {found['jobs_s']:.0f} s of jobs"
            f" ({found['samples_s'] / max(found['jobs_s'], 1e-9):.0%})"
        ),
        "",
        "## Tests",
        "",
        tests["note"]
        or f"{tests['passed']} passed, {tests['failed']} failed, {tests['skipped']} skipped",
        *(f"- failed: {name}" for name in tests["failed_tests"]),
        "",
        "## Sweeps",
        "",
        f"| sweep | job | arm | speed-up [{1 - ALPHA:.0%}] | pairs | flags | failure |",
        "|---|---|---|---|---|---|---|",
        *(
            _row(job, point)
            for job in found["jobs"]
            for point in job["points"] or [{"arm": "", "failure": job["problem"]}]
        ),
    ]
    if found["problems"]:
        lines += [
            "",
            "## What did not pass",
            "",
            *(f"- {problem}" for problem in found["problems"]),
        ]
    return "\n".join(lines) + "\n"


def _row(job: Mapping[str, Any], point: Mapping[str, Any]) -> str:
    ratio = (
        f"{point['speedup']:.3f} [{point['low']:.3f}, {point['high']:.3f}]"
        if "speedup" in point
        else _metrics(point)
    )
    flags = ", ".join(sorted({*job["flags"], *point.get("flags", ())}))
    failure = f"{point['failure']}: {point.get('message', '')}" if "failure" in point else ""
    cells = (job["sweep"], job["name"], point["arm"], ratio, point.get("pairs", ""), flags, failure)
    return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"


def _metrics(point: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value:.4g}" for name, value in point.get("metrics", {}).items())


def problems_of(jobs: Iterable[Mapping[str, Any]]) -> list[str]:
    """What of the jobs is not as it should be, a line each."""
    found = []
    for job in jobs:
        place = f"{job['sweep']}, {job['name']}"
        if job["problem"]:
            found.append(f"{place}: {job['problem']}")
        found += [
            f"{place}: {point['arm']}: {point['failure']}: {point['message']}"
            for point in job["points"]
            if point.get("failure", "unsupported") not in SOUND
        ]
    return found
