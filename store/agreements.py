"""Derived rows of accuracy: what an arm loses against its baseline, computed by `sweeps.agreement` and only stored here."""

import zlib
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np
from pydantic_core import to_json
from sqlalchemy import Connection, Row, insert, text

from store import derived
from store.analysis import PAIRINGS, stamp, trusted, union
from sweeps.agreement import ANALYSIS_VERSION, FLOOR, Interval, compare
from sweeps.evaluation import Evaluation

FIGURES: tuple[str, ...] = tuple(derived.Accuracy.model_fields)
EVALUATION = text("SELECT document FROM evaluation WHERE attempt = :attempt")
SEEN = text("SELECT images FROM evaluation WHERE attempt = :attempt")
FORGET = text("DELETE FROM accuracy_row WHERE comparison_id = :comparison AND environment = :environment")


def pack(evaluation: Evaluation) -> dict[str, Any]:
    """The columns of table `evaluation`, but for the attempt."""
    return {
        "images": evaluation.images,
        "unreadable": len(evaluation.unreadable),
        "classes": evaluation.classes,
        "listing": evaluation.listing,
        "document": zlib.compress(to_json(evaluation), level=6),
    }


def unpack(document: bytes) -> Evaluation:
    """The evaluation in a row of table `evaluation`."""
    return Evaluation.model_validate_json(zlib.decompress(document))


def derive_accuracies(
    connection: Connection, comparisons: Sequence[str], environment: str, known: Mapping[int, Evaluation] | None = None
) -> None:
    """Bring the accuracies of `comparisons` in `environment` up to date; `known` holds evaluations not to be read again."""
    at_hand = dict(known or {})

    def evaluation(attempt: int) -> Evaluation:
        if attempt not in at_hand:
            at_hand[attempt] = unpack(connection.execute(EVALUATION, {"attempt": attempt}).scalar_one())
        return at_hand[attempt]

    def images(attempt: int) -> int:
        if attempt in at_hand:
            return at_hand[attempt].images
        return int(connection.execute(SEEN, {"attempt": attempt}).scalar_one())

    asked = {"comparisons": list(comparisons), "environment": environment, "kind": "accuracy"}
    rows = []
    for comparison_id, pairings in groupby(connection.execute(PAIRINGS, asked).all(), key=lambda row: str(row.comparison_id)):
        row = _accuracy(list(pairings), evaluation, images)
        rows.append({**row, "comparison_id": comparison_id, "environment": environment})
    if rows:
        connection.execute(FORGET, [{"comparison": row["comparison_id"], "environment": environment} for row in rows])
        connection.execute(insert(derived.Accuracy), rows)


def _accuracy(
    pairings: Sequence[Row[Any]], evaluation: Callable[[int], Evaluation], images: Callable[[int], int]
) -> dict[str, Any]:
    """The derived columns of one comparison: of its unflagged attempts (or of all, if none is) the newest with most images.

    Attempts are not pooled: each saw the same images, so that a second one adds no evidence.
    """
    used = trusted(pairings)
    last = max(reversed(used), key=lambda row: images(row.attempt)) if used else pairings[-1]
    answer = {
        **dict.fromkeys(FIGURES),
        **stamp(last, [last]),
        "analysis_version": ANALYSIS_VERSION,
        "floor": FLOOR,
        "flags": union((last.flags, last.baseline_flags, last.arm_flags)) if used else "",
    }
    if not used:
        return {**answer, "failure": last.failure}
    whole = evaluation(last.attempt)
    found = compare(whole, last.baseline, last.arm)
    return {
        **answer,
        "images": found.images,
        "unreadable": len(whole.unreadable),
        "tokens": last.tokens if last.baseline_tokens is None else last.baseline_tokens,
        "tokens_final": last.tokens_final,
        "gmacs_baseline": last.gmacs_baseline,
        "gmacs": last.gmacs,
        "gmacs_method": last.gmacs_method,
        "top1_baseline": found.top1_baseline.value,
        **bounded("top1", found.top1),
        "top1_drop": found.drop.value,
        "top1_drop_low": found.drop.low,
        "top1_drop_high": found.drop.high,
        "lost": found.drop.lost,
        "gained": found.drop.gained,
        "mcnemar_p": found.drop.p,
        "verdict": found.verdict(),
        "top5_baseline": found.top5_baseline,
        "top5": found.top5,
        **bounded("kl", found.kl),
        **bounded("margin_change", found.margin_change),
        "margin_change_tail": found.margin_change_tail,
    }


def bounded(name: str, interval: Interval | None) -> dict[str, float | None]:
    """A value and its ends as columns; NULL where there is none, or no end."""
    if interval is None:
        return dict.fromkeys((name, f"{name}_low", f"{name}_high"))
    ends = {f"{name}_low": interval.low, f"{name}_high": interval.high}
    return {name: interval.value, **{end: value if np.isfinite(value) else None for end, value in ends.items()}}
