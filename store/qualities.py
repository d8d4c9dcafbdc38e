"""Derived rows of quality: what an arm loses against its baseline on text, computed by `sweeps.fidelity` and only stored here."""

import zlib
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from math import isfinite
from typing import Any

from pydantic_core import to_json
from sqlalchemy import Connection, Row, insert, text

from store import derived
from store.agreements import bounded
from store.analysis import PAIRINGS, stamp, trusted, union
from sweeps.evaluation import unpack as numbers
from sweeps.fidelity import ANALYSIS_VERSION, FLOOR, compare
from sweeps.scores import Scores

FIGURES: tuple[str, ...] = tuple(derived.Quality.model_fields)
SCORES = text("SELECT document FROM scores WHERE attempt = :attempt")
READ = text("SELECT characters FROM scores WHERE attempt = :attempt")
FORGET = text("DELETE FROM quality_row WHERE comparison_id = :comparison AND environment = :environment")


def pack(scores: Scores) -> dict[str, Any]:
    """The columns of table `scores`, but for the attempt."""
    return {
        "windows": scores.windows,
        "characters": int(numbers(scores.characters, "i4").sum()),
        "complete": scores.complete,
        "listing": scores.listing,
        "document": zlib.compress(to_json(scores), level=6),
    }


def unpack(document: bytes) -> Scores:
    """The scores in a row of table `scores`."""
    return Scores.model_validate_json(zlib.decompress(document))


def derive_qualities(
    connection: Connection, comparisons: Sequence[str], environment: str, known: Mapping[int, Scores] | None = None
) -> None:
    """Bring the qualities of `comparisons` in `environment` up to date; `known` holds scores that need not be read again."""
    at_hand = dict(known or {})

    def scores(attempt: int) -> Scores:
        if attempt not in at_hand:
            at_hand[attempt] = unpack(connection.execute(SCORES, {"attempt": attempt}).scalar_one())
        return at_hand[attempt]

    def characters(attempt: int) -> int:
        return int(connection.execute(READ, {"attempt": attempt}).scalar_one())

    asked = {"comparisons": list(comparisons), "environment": environment, "kind": "quality"}
    rows = []
    for comparison_id, pairings in groupby(connection.execute(PAIRINGS, asked).all(), key=lambda row: str(row.comparison_id)):
        row = _quality(list(pairings), scores, characters)
        rows.append({**row, "comparison_id": comparison_id, "environment": environment})
    if rows:
        connection.execute(FORGET, [{"comparison": row["comparison_id"], "environment": environment} for row in rows])
        connection.execute(insert(derived.Quality), rows)


def _quality(pairings: Sequence[Row[Any]], scores: Callable[[int], Scores], characters: Callable[[int], int]) -> dict[str, Any]:
    """The derived columns of one comparison: of its unflagged attempts (or of all, if none is) the newest with most characters.

    Attempts are not pooled: each read the same text, so that a second one adds no evidence.
    """
    used = trusted(pairings)
    last = max(reversed(used), key=lambda row: characters(row.attempt)) if used else pairings[-1]
    answer = {
        **dict.fromkeys(FIGURES),
        **stamp(last, [last]),
        "analysis_version": ANALYSIS_VERSION,
        "floor": FLOOR,
        "flags": union((last.flags, last.baseline_flags, last.arm_flags)) if used else "",
    }
    if not used:
        return {**answer, "failure": last.failure}
    found = compare(scores(last.attempt), last.baseline, last.arm)
    return {
        **answer,
        "windows": found.windows,
        "unscored": found.unscored,
        "bytes": found.bytes,
        "characters": found.characters,
        "tokens_baseline": found.tokens_baseline,
        "tokens": found.tokens,
        "bits_per_byte_baseline": found.bits_per_byte_baseline,
        "bits_per_byte": found.bits_per_byte,
        **bounded("bits_per_byte_change", found.change),
        "verdict": found.verdict(),
        "perplexity_baseline": _finite(found.perplexity_baseline),
        "perplexity": _finite(found.perplexity),
        **bounded("top1_agreement", found.agreement),
        **bounded("kl", found.kl),
    }


def _finite(value: float) -> float | None:
    return value if isfinite(value) else None
