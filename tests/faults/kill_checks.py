"""What must hold of a store after a campaign of kills, whatever was killed."""

import contextlib
import itertools
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

REQUESTED = """SELECT count(DISTINCT l.comparison_id) FROM sweep_comparison_row AS l JOIN sweep AS s ON s.id = l.sweep WHERE s.name = ?"""
ANSWERED = """SELECT count(DISTINCT l.comparison_id) FROM sweep_comparison_row AS l JOIN sweep AS s ON s.id = l.sweep
              JOIN comparison_attempt AS p ON p.comparison_id = l.comparison_id WHERE s.name = ? AND p.failure IS NULL"""
DOUBLE = """SELECT p.comparison_id, t.round, count(*) AS times FROM comparison_attempt AS p JOIN attempt AS t ON t.id = p.attempt
            WHERE p.failure IS NULL GROUP BY p.comparison_id, t.round HAVING count(*) > 1"""
FAILED = """SELECT DISTINCT f.reason, f.message FROM comparison_attempt AS p JOIN failure AS f ON f.id = p.failure"""
UNFINISHED = (
    "SELECT state, count(*) FROM job WHERE state IN ('waiting', 'running', 'failed') GROUP BY state"
)
SPANS = """SELECT t.started_at, t.ended_at FROM attempt AS t
           WHERE EXISTS (SELECT 1 FROM comparison_attempt AS p WHERE p.attempt = t.id AND p.failure IS NULL)"""


@contextlib.contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    """The store for reading."""
    with contextlib.closing(
        sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=60)
    ) as connection:
        yield connection


def answered(path: Path, sweep: str) -> int:
    """Comparisons of the sweep that are measured; 0 before there is a store."""
    try:
        with opened(path) as store:
            return int(store.execute(ANSWERED, (sweep,)).fetchone()[0])
    except sqlite3.OperationalError:  # not made yet
        return 0


def problems_of(path: Path, sweeps: Mapping[str, int]) -> list[str]:
    """What is wrong with a store all of whose sweeps, with so many comparisons each, should be
    answered; a line each.

    Every comparison has exactly one measurement that counts in each round: retries of a job that
    was killed leave attempts without one. No kill counts as an answer about an arm. No job is left
    over.
    """
    found = []
    with opened(path) as store:
        if (rows := store.execute("PRAGMA integrity_check").fetchall()) != [("ok",)]:
            found.append(f"{path.name}: integrity_check: {rows}")
        for name, comparisons in sweeps.items():
            requested, done = (
                store.execute(query, (name,)).fetchone()[0] for query in (REQUESTED, ANSWERED)
            )
            if (requested, done) != (comparisons, comparisons):
                found.append(
                    f"{path.name}: {name} has {comparisons} comparisons; {requested} are stored,"
                    f" {done} are measured"
                )
        found += [
            f"{path.name}: {row[2]} measurements of {row[0]}, round {row[1]}"
            for row in store.execute(DOUBLE)
        ]
        found += [
            f"{path.name}: a kill counts as an answer: {reason}: {message}"
            for reason, message in store.execute(FAILED)
        ]
        found += [
            f"{path.name}: {count} jobs are {state}" for state, count in store.execute(UNFINISHED)
        ]
    return found


def overlaps(paths: Sequence[Path]) -> int:
    """Pairs of measurements, of whatever store, that followed each other and ran at the same time
    for more than a millisecond.
    """
    spans = []
    for path in paths:
        with opened(path) as store:
            spans += store.execute(SPANS).fetchall()
    return sum(after[0] < before[1] - 1e-3 for before, after in itertools.pairwise(sorted(spans)))
