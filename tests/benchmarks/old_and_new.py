"""The same stored samples by the rules before analysis version 4 and by those of today: intervals, verdicts and break-evens.

uv run python -m tests.benchmarks.old_and_new STORE [STORE …], of store files or dumps (`tests/store/version_7.sql`), in seconds;
a store of an older schema is rebuilt in a copy. Times of generation are left out: only forwards have samples of their own.
"""

import argparse
import math
import shutil
import sqlite3
import sys
import tempfile
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom, t

from store.engine import connect
from store.user_sql import run_query
from sweeps.flags import split_flags

OLD_CONFIDENCE = 0.95
OLD_FLOOR = 0.01
OLD_CLEAR = 1.5
"""`faster` and `slower` needed an interval this many times as wide as that of 95 %, about 99.7 %."""
OLD_PAIRS = 30
"""With fewer pairs no verdict was given."""
SPEEDUPS = """
SELECT s.comparison_id, s.environment, s.host, s.curve_id, s.model, s.method, s.params, s.image_size, s.tokens, s.pairs, s.flags,
  s.speedup, s.speedup_low, s.speedup_high, s.verdict
FROM speedup AS s WHERE s.metric = 'latency' ORDER BY s.model, s.method, s.params, s.tokens"""
CLAIMS = """
SELECT sweep, curve_id, environment, host, verdict, x, x_low, x_high, direction FROM break_even
WHERE axis = 'tokens' AND metric = 'latency' ORDER BY sweep, curve_id, x_low"""
SAMPLES = """
SELECT p.comparison_id, t.environment, t.host, t.flags, p.baseline, p.arm, s.rounds, s.columns, s.arms, s.seconds
FROM comparison_attempt AS p JOIN attempt AS t ON t.id = p.attempt JOIN sample AS s ON s.attempt = t.id
WHERE p.failure IS NULL ORDER BY t.started_at, t.id"""
Place = tuple[str, str, str]
"""Comparison, environment and host."""
Logs = NDArray[np.float64]


class Answer(NamedTuple):
    """A speed-up with its interval and verdict by one set of rules."""

    value: float
    low: float
    high: float
    verdict: str

    @property
    def half_width(self) -> float:
        return math.log(self.high / self.low) / 2 if self.low > 0 and self.high < math.inf else math.inf

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}] {self.verdict:<12}"


class Both(NamedTuple):
    """One comparison by both."""

    row: dict[str, Any]
    old: Answer
    new: Answer


def median_interval(logs: Logs) -> tuple[float, float]:
    """Order statistics that enclose the median at 95 % (sign test); infinite for fewer than 6 values."""
    rank = int(binom.ppf((1 - OLD_CONFIDENCE) / 2, logs.size, 0.5))
    rank -= binom.cdf(rank - 1, logs.size, 0.5) > (1 - OLD_CONFIDENCE) / 2
    ordered = np.sort(logs)
    return (float(ordered[rank - 1]), float(ordered[-rank])) if rank > 0 else (-math.inf, math.inf)


def old_speedup(attempts: Sequence[Logs]) -> Answer:
    """By the old rules: the median log ratio of pairs, or of several attempts the mean of their medians by Student's t.

    That interval was at least as wide as that of all pairs together, and within the hull of the attempts' own where these
    overlap. Attempts cut short were joined to others, which stored sweeps do not need.
    """
    together = np.concatenate(attempts)
    low, high = median_interval(together)
    centre = float(np.median(together))
    if len(attempts) > 1:
        medians = np.array([np.median(logs) for logs in attempts])
        weights = np.array([logs.size for logs in attempts]) / together.size
        centre, squares = float(weights @ medians), float(weights @ weights)
        spread = squares / (1 - squares) * float(weights @ (medians - centre) ** 2)
        reach = float(t.ppf((1 + OLD_CONFIDENCE) / 2, medians.size - 1)) * math.sqrt(spread)
        low, high = min(centre - reach, low), max(centre + reach, high)
        lows, highs = zip(*map(median_interval, attempts), strict=True)
        if max(lows) <= min(highs):
            low, high = max(low, min(lows)), min(high, max(highs))
    return Answer(math.exp(centre), math.exp(low), math.exp(high), old_verdict(centre, low, high, together.size))


def old_verdict(centre: float, low: float, high: float, pairs: int) -> str:
    """By the flat floor of 1 %, from logs."""
    floor = math.log(1 + OLD_FLOOR)
    if pairs < OLD_PAIRS:
        return "unclear"
    if centre + (low - centre) * OLD_CLEAR > floor:
        return "faster"
    if centre + (high - centre) * OLD_CLEAR < -floor:
        return "slower"
    return "same" if low >= -floor and high <= floor else "unclear"


def old_claim(points: Sequence[tuple[float, str, bool]]) -> str:
    """The old break-even of a curve: crossings between neighbouring clear points, or one word.

    From x and verdict of its points and whether they are flagged; such points counted only if all are.
    """
    points = sorted((x, verdict) for x, verdict, flagged in points if not flagged) or sorted(point[:2] for point in points)
    clear = [(x, verdict) for x, verdict in points if verdict in ("faster", "slower")]
    crossings = [
        f"{'gains' if right == 'faster' else 'loses'} ({x0:g} to {x1:g})"
        for (x0, left), (x1, right) in pairwise(clear)
        if left != right
    ]
    verdicts = {verdict for _, verdict in points}
    if crossings or len(points) < 2:
        return "; ".join(crossings) or "unclear"
    return "always" if verdicts == {"faster"} else "never" if verdicts <= {"slower", "same"} else "unclear"


def new_claim(rows: Sequence[dict[str, Any]]) -> str:
    """The rows of `break_even` of a curve in few words."""
    shown = []
    for row in rows:
        low, high = (f"{row[name]:.0f}" if row[name] is not None else "" for name in ("x_low", "x_high"))
        match row["verdict"]:
            case "crossing":
                shown.append(f"{row['direction']} ({low} to {high})")
            case "pays_from":
                shown.append(f"pays from at most {high}")
            case "pays_up_to":
                shown.append(f"pays up to at least {low}")
            case word:
                shown.append(str(word))
    return "; ".join(shown)


def opened(path: Path, folder: Path) -> Path:
    """A copy of a store, or of what a dump holds, under today's schema, analysed by today's rules."""
    copy = folder / f"{path.stem}.db"
    with closing(sqlite3.connect(copy)) as target:
        if path.suffix == ".sql":
            target.executescript(path.read_text(encoding="utf-8"))
        else:
            with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as source:
                source.backup(target)
    connect(str(copy)).dispose()
    return copy


def _rows(store: Path, sql: str) -> list[dict[str, Any]]:
    found = run_query(str(store), sql)
    return [dict(zip(found.columns, row, strict=True)) for row in found.rows]


def samples(store: Path) -> dict[Place, list[tuple[str, Logs]]]:
    """Flags and log ratios of the pairs of each attempt, by comparison; of a baseline timed twice its first column."""
    found = defaultdict(list)
    with closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as connection:
        for comparison, environment, host, flags, baseline, arm, rounds, columns, arms, blob in connection.execute(SAMPLES):
            seconds = np.frombuffer(zlib.decompress(blob), dtype="<f8").reshape(rounds, columns)
            one, other = (seconds[:, [*map(int, arms.strip("[]").split(","))].index(place)] for place in (baseline, arm))
            found[comparison, environment, host].append((flags, np.log(one / other)))
    return found


def compared(store: Path) -> Iterator[Both]:
    """Every comparison of forwards that has samples, by both sets of rules; the old one left flagged attempts out."""
    stored = samples(store)
    for row in _rows(store, SPEEDUPS):
        attempts = stored.get((row["comparison_id"], row["environment"], row["host"]))
        if attempts and row["speedup_low"] and row["speedup_high"]:
            clean = [logs for flags, logs in attempts if not split_flags(flags)]
            old = old_speedup(clean or [logs for _, logs in attempts])
            yield Both(row, old, Answer(row["speedup"], row["speedup_low"], row["speedup_high"], row["verdict"]))


def table(store: Path) -> Iterator[str]:
    """Both sets of rules side by side, for people."""
    found = list(compared(store))
    yield f"{'arm':<40} {'tokens':>6} {'pairs':>5}  {'old: 95 %, floor 1 %':<36} new: 99 %, all attempts"
    for row, old, new in found:
        yield f"{row['method']} {row['params']}"[:40].ljust(40) + f" {row['tokens'] or 0:>6g} {row['pairs']:>5}  {old!s:<36} {new}"
    if not found:
        return
    old_width, new_width = (
        median(each.half_width for each in answers) for answers in zip(*((old, new) for _, old, new in found), strict=True)
    )
    yield f"median half-width: old {old_width:.2%} ({OLD_CLEAR * old_width:.2%} to be faster or slower), new {new_width:.2%}"
    for name, answers in (("old", [both.old for both in found]), ("new", [both.new for both in found])):
        counts = ", ".join(f"{count} {verdict}" for verdict, count in Counter(each.verdict for each in answers).most_common())
        yield f"{name}: {counts}"
    curves: dict[Place, list[tuple[float, str, bool]]] = defaultdict(list)
    names = {}
    for row, old, _ in found:
        place = row["curve_id"], row["environment"], row["host"]
        curves[place].append((row["tokens"], old.verdict, bool(row["flags"])))
        names[place] = f"{row['model']} {row['method']} {row['params']}"
    claims: dict[tuple[str, Place], list[dict[str, Any]]] = defaultdict(list)
    for row in _rows(store, CLAIMS):
        claims[row["sweep"], (row["curve_id"], row["environment"], row["host"])].append(row)
    for (sweep, place), rows in claims.items():
        if place in curves:
            yield f"{sweep}: {names[place]}: old {old_claim(curves[place])}; new {new_claim(rows)}"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.old_and_new")
    parser.add_argument("stores", nargs="+", type=Path, metavar="STORE")
    options = parser.parse_args(arguments)
    folder = Path(tempfile.mkdtemp(prefix="old-and-new-"))
    try:
        for number, path in enumerate(options.stores):
            (folder / str(number)).mkdir()
            print(f"\n{path}")
            for line in table(opened(path, folder / str(number))):
                print(line)
    finally:
        shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
