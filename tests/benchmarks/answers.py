"""Whether a short sweep ends in answers, and whether they are true: repeated runs of the quickstart
beside a long reference.

On a quiet machine, from the project's folder:
uv run python -m tests.benchmarks.answers --make-reference reference.json (30 minutes, `--minutes`), then
uv run python -m tests.benchmarks.answers --reference reference.json (ten runs, `--runs`; `--busy` beside one busy core).
"""

import argparse
import contextlib
import json
import os
import shlex
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
import zlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from store.read.user_sql import run_query
from tests.benchmarks.null import busy_neighbour
from tests.benchmarks.reference import Claim, Reference, contradictions, make, tight
from workers.kinds.latency import BURST
from workers.measure.environment import PROJECT

CURVES = """
SELECT curve_id, sweep, environment, host, verdict, x, x_low, x_high, direction, worst_loss, largest_gain FROM break_even
WHERE axis = 'tokens' AND metric = 'latency' ORDER BY curve_id, x_low"""
POINTS = """
SELECT curve_id, model, arm_id, method, params, image_size, tokens, speedup, speedup_low, speedup_high FROM speedup
WHERE metric = 'latency' ORDER BY method, params, tokens"""
SPANS = "SELECT count(*), sum(ended_at - started_at) FROM attempt"
SAMPLES = "SELECT inner, seconds, bursts FROM sample"
ANSWERED, UNANSWERED = 0, 1
"""Exit codes of a sweep that ended."""


class Answer(NamedTuple):
    """One curve of a run."""

    curve: str
    model: str
    arm_id: str
    claim: Claim
    shown: str
    tight: bool | None = None
    contradictions: tuple[str, ...] = ()


class Run(NamedTuple):
    """One run of the sweep in a fresh store; times in seconds."""

    wall: float
    measuring: float
    """In the workers' jobs, of which `sampled` is in rounds and bursts."""
    sampled: float
    answers: tuple[Answer, ...]
    apart: int
    """Speed-ups whose interval lies apart from the reference's."""
    compared: int
    """Speed-ups that the reference has as well."""

    @property
    def answered(self) -> int:
        return sum(answer.claim.verdict != "unclear" for answer in self.answers)


def read_run(store: Path, wall: float, reference: Reference | None = None) -> Run:
    """What a store with one run of a sweep answers."""
    points = _rows(store, POINTS)
    arms = {row["curve_id"]: row for row in points}
    crossings: dict[tuple[str, ...], list[dict[str, Any]]] = defaultdict(list)
    for row in _rows(store, CURVES):
        crossings[row["curve_id"], row["sweep"], row["environment"], row["host"]].append(row)
    answers = [
        _answer(arms[curve], rows, reference)
        for (curve, *_), rows in crossings.items()
        if curve in arms
    ]
    known = {
        (each.model, each.arm_id, each.image_size): each
        for each in (reference.known if reference else ())
    }
    pairs = [
        (row, known.get((row["model"], row["arm_id"], row["image_size"])))
        for row in points
        if row["speedup_low"]
    ]
    both = [(row, each) for row, each in pairs if each is not None]
    apart = sum(
        row["speedup_low"] > each.high or row["speedup_high"] < each.low for row, each in both
    )
    with contextlib.closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as connection:
        ((_, measuring),) = connection.execute(SPANS)
        sampled = sum(
            json.loads(inner)[0] * (_sum(seconds) + BURST * _sum(bursts))
            for inner, seconds, bursts in connection.execute(SAMPLES)
        )
    return Run(
        wall,
        measuring or 0.0,
        sampled,
        tuple(sorted(answers, key=lambda answer: answer.curve)),
        apart,
        len(both),
    )


def _rows(store: Path, sql: str) -> list[dict[str, Any]]:
    found = run_query(str(store), sql)
    return [dict(zip(found.columns, row, strict=True)) for row in found.rows]


def _sum(blob: bytes | None) -> float:
    return float(np.frombuffer(zlib.decompress(blob), dtype="<f8").sum()) if blob else 0.0


def _answer(
    arm: dict[str, Any], rows: Sequence[dict[str, Any]], reference: Reference | None
) -> Answer:
    first = rows[0]
    crossings = [
        (row["x_low"], row["x_high"], row["direction"]) for row in rows if row["direction"]
    ]
    claim = Claim(first["verdict"], crossings, first["worst_loss"], first["largest_gain"])
    params = json.loads(arm["params"])
    given = (
        ", ".join(f"{name}={value}" for name, value in params.items())
        if isinstance(params, dict)
        else arm["params"]
    )
    known = reference.curve(arm["model"], arm["arm_id"]) if reference else []
    return Answer(
        curve=f"{arm['method']} {given}",
        model=arm["model"],
        arm_id=arm["arm_id"],
        claim=claim,
        shown="; ".join(map(_shown, rows)),
        tight=tight(claim, known),
        contradictions=tuple(contradictions(claim, known)),
    )


def _shown(row: dict[str, Any]) -> str:
    """A row of `break_even` in few words."""
    match row["verdict"]:
        case "crossing":
            at = f", likely {row['x']:.0f}" if row["x"] is not None else ""
            return f"{row['direction']} at {row['x_low']:.0f} to {row['x_high']:.0f}{at}"
        case "pays_from":
            return f"pays from at most {row['x_high']:.0f} on" + _percent(
                "; loses at most", row["worst_loss"]
            )
        case "pays_up_to":
            return f"pays up to at least {row['x_low']:.0f}" + _percent(
                "; loses at most", row["worst_loss"]
            )
        case "never":
            return "never" + _percent("; gains at most", row["largest_gain"])
    return str(row["verdict"])


def _percent(words: str, share: float | None) -> str:
    return "" if share is None else f"{words} {share:.1%}"


def run_once(sweep: Path, folder: Path, options: Sequence[str]) -> tuple[Path, float]:
    """Run the sweep as a user does, in a fresh store in `folder`: the store, and the seconds.
    Raises `RuntimeError`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    store = folder / "breakeven.db"
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    environment.pop("BREAKEVEN_DB", None)
    command = [
        sys.executable,
        "-m",
        "orchestrator",
        "run",
        str(sweep.resolve()),
        "--db",
        str(store),
        *options,
    ]
    began = time.monotonic()
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    wall = time.monotonic() - began
    (folder / "printed.txt").write_text(done.stdout + done.stderr)
    if done.returncode not in (ANSWERED, UNANSWERED):
        raise RuntimeError(
            f"exit code {done.returncode}: {done.stderr[-1000:] or done.stdout[-1000:]}"
        )
    return store, wall


def lines(number: int, run: Run) -> Iterator[str]:
    """One run, for people."""
    share = f"{run.sampled / run.measuring:.0%}" if run.measuring else "-"
    answered = f"{run.answered} of {len(run.answers)} answered"
    apart = (
        f", {run.apart} of {run.compared} speed-ups apart from the reference"
        if run.compared
        else ""
    )
    yield (
        f"run {number}: {run.wall:.0f} s, {run.measuring:.0f} s of measuring, {share} of it in"
        f" samples; {answered}{apart}"
    )
    for answer in run.answers:
        narrow = {True: "tight", False: "", None: ""}[answer.tight]
        yield f"    {answer.curve:<44} {answer.shown:<44} {narrow}"
        for reason in answer.contradictions:
            yield f"        CONTRADICTS THE REFERENCE: {reason}"


def summary(runs: Sequence[Run], *, referred: bool) -> Iterator[str]:
    """All runs, for people."""
    claims = [answer for run in runs for answer in run.answers]
    answered = sum(answer.claim.verdict != "unclear" for answer in claims)
    whole = sum(run.answered == len(run.answers) > 0 for run in runs)
    narrow = sum(any(answer.tight for answer in run.answers) for run in runs)
    false = sum(bool(answer.contradictions) for answer in claims)
    spent = [run.measuring for run in runs]
    yield (
        f"{len(runs)} runs: every curve answered in {whole}; {answered} of {len(claims)} curves"
        " answered"
    )
    yield (
        f"a tight interval or bound in {narrow} runs; {min(spent):.0f} to {max(spent):.0f} s of"
        " measuring"
    )
    if referred:
        yield f"claims that contradict the reference: {false} of {answered}"
        yield (
            f"speed-ups apart from the reference: {sum(run.apart for run in runs)} of"
            f" {sum(run.compared for run in runs)}"
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0 when nine of ten runs answer every curve and no claim contradicts the
    reference.
    """
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.answers", description=__doc__)
    parser.add_argument("--sweep", type=Path, default=PROJECT / "sweeps" / "quickstart.yaml")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument(
        "--busy", action="store_true", help="beside another process that keeps one core busy"
    )
    parser.add_argument(
        "--with",
        dest="options",
        default="",
        help="further options of `breakeven run`, in one string",
    )
    parser.add_argument("--reference", type=Path, help="compare claims with this file")
    parser.add_argument(
        "--make-reference",
        type=Path,
        metavar="FILE",
        help="measure a reference and write it; runs nothing else",
    )
    parser.add_argument("--minutes", type=float, default=30.0, help="of the reference")
    parser.add_argument("--processes", type=int, default=8, help="of the reference")
    parser.add_argument(
        "--sizes",
        type=lambda text: [int(size) for size in text.split(",")],
        default=[],
        help="of the reference",
    )
    parser.add_argument(
        "--keep", type=Path, help="folder for the stores, which are deleted without it"
    )
    parser.add_argument(
        "--read", action="store_true", help="run nothing: read the stores of an earlier --keep"
    )
    options = parser.parse_args(arguments)
    if options.make_reference:
        found = make(
            options.make_reference,
            options.sweep,
            minutes=options.minutes,
            processes=options.processes,
            sizes=options.sizes,
        )
        for each in found.known:
            print(
                f"{each.arm:<60} {each.image_size:>4} px {each.tokens:>4g} tokens {each.low:.4f} to"
                f" {each.high:.4f}"
            )
        return 0
    reference = (
        Reference.model_validate_json(options.reference.read_bytes()) if options.reference else None
    )
    place = options.keep or Path(tempfile.mkdtemp(prefix="answers-"))
    runs = []
    try:
        with busy_neighbour() if options.busy else contextlib.nullcontext():
            for number in range(1, options.runs + 1):
                folder = place / f"run-{number}"
                try:
                    if options.read:
                        store, wall = folder / "breakeven.db", float("nan")
                    else:
                        store, wall = run_once(options.sweep, folder, shlex.split(options.options))
                except RuntimeError as error:
                    print(f"run {number}: {error}", flush=True)
                    continue
                runs.append(read_run(store, wall, reference))
                print("\n".join(lines(number, runs[-1])), flush=True)
    except KeyboardInterrupt:
        print("stopped")
    finally:
        if not options.keep:
            shutil.rmtree(place)
    if not runs:
        return 1
    print("\n" + "\n".join(summary(runs, referred=reference is not None)))
    whole = sum(run.answered == len(run.answers) > 0 for run in runs)
    return (
        0
        if whole >= 0.9 * options.runs
        and not any(answer.contradictions for run in runs for answer in run.answers)
        else 1
    )


if __name__ == "__main__":
    sys.exit(main())
