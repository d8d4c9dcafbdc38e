"""Derived rows of accuracy and quality: what an arm loses against its baseline, computed by `sweeps` and only stored here."""

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Generic, Literal, TypeVar

from pydantic_core import to_json
from sqlalchemy import Connection, Row, insert, text
from sqlmodel import SQLModel

from store.derive.speedup import PAIRINGS, stamp, trusted, union
from store.row_mapping import finite
from store.tables import derived, results
from sweeps.job import Kind
from sweeps.outcome import Outcome
from sweeps.predictions import Predictions
from sweeps.predictions import unpack as numbers
from sweeps.stats import classification, text_stats
from sweeps.text_scores import TextScores

T = TypeVar("T", Predictions, TextScores)


@dataclass(frozen=True)
class Judge(Generic[T]):
    """How one kind of job is kept and judged: its arms all read the same images or text, and what they said of these is a `T`."""

    kind: Kind
    noun: type[T]
    field: Literal["predictions", "text_scores"]
    """Of an outcome."""
    contradiction: Callable[[T], str | None]
    """How a `T` contradicts itself."""
    kept: type[SQLModel]
    """Table with a row for each attempt: the `T` whole as `document`, and some of it as columns."""
    size: str
    """Column of `kept` that says how much was read."""
    columns: Callable[[T], dict[str, Any]]
    """Those of `kept` beside attempt and document."""
    answers: type[SQLModel]
    """Table with a row for each comparison and environment."""
    analysis_version: int
    floor: float
    figures: Callable[[T, Row[Any]], dict[str, Any]]
    """Columns of `answers` for one comparison: what follows from its attempt's `T` and its row of `PAIRINGS`."""

    def of(self, outcome: Outcome) -> T | None:
        """What the arms of an outcome said. Raises `ValueError` if it contradicts itself."""
        said: T | None = getattr(outcome, self.field)
        if said is not None and (why := self.contradiction(said)):
            raise ValueError(f"in its {self.field} {why}")
        return said

    def pack(self, said: T) -> dict[str, Any]:
        """The columns of `kept`, but for the attempt."""
        return {**self.columns(said), "document": zlib.compress(to_json(said), level=6)}

    def unpack(self, document: bytes) -> T:
        """What `pack` made a document of."""
        return self.noun.model_validate_json(zlib.decompress(document))

    def derive(
        self, connection: Connection, comparisons: Sequence[str], environment: str, known: Mapping[int, T] | None = None
    ) -> None:
        """Bring the answers to `comparisons` in `environment` up to date; `known` holds by attempt what need not be read again."""
        at_hand = dict(known or {})

        def column(name: str, attempt: int) -> Any:
            of = text(f"SELECT {name} FROM {self.kept.__tablename__} WHERE attempt = :attempt")  # noqa: S608 - made of constants
            return connection.execute(of, {"attempt": attempt}).scalar_one()

        def said(attempt: int) -> T:
            if attempt not in at_hand:
                at_hand[attempt] = self.unpack(column("document", attempt))
            return at_hand[attempt]

        asked = {"comparisons": list(comparisons), "environment": environment, "kind": self.kind}
        rows = []
        for comparison_id, pairings in groupby(connection.execute(PAIRINGS, asked).all(), key=lambda row: str(row.comparison_id)):
            row = self._answer(list(pairings), said, lambda attempt: column(self.size, attempt))
            rows.append({**row, "comparison_id": comparison_id, "environment": environment})
        if rows:
            same = "comparison_id = :comparison_id AND environment = :environment"
            connection.execute(text(f"DELETE FROM {self.answers.__tablename__} WHERE {same}"), rows)  # noqa: S608 - made of constants
            connection.execute(insert(self.answers), rows)

    def _answer(self, pairings: Sequence[Row[Any]], said: Callable[[int], T], size: Callable[[int], int]) -> dict[str, Any]:
        """The derived columns of one comparison: of its unflagged attempts (or of all, if none is) the newest that read most.

        Attempts are not pooled: each read the same images or text, so that a second one adds no evidence.
        """
        used = trusted(pairings)
        last = max(reversed(used), key=lambda row: size(row.attempt)) if used else pairings[-1]
        return {
            **dict.fromkeys(self.answers.model_fields),
            **stamp(last, [last]),
            "analysis_version": self.analysis_version,
            "floor": self.floor,
            "flags": union((last.flags, last.baseline_flags, last.arm_flags)) if used else "",
            **(self.figures(said(last.attempt), last) if used else {"failure": last.failure}),
        }


def _accuracy(evaluation: Predictions, pairing: Row[Any]) -> dict[str, Any]:
    found = classification.compare(evaluation, pairing.baseline, pairing.arm)
    return {
        "images": found.images,
        "unreadable": len(evaluation.unreadable),
        "tokens": pairing.tokens if pairing.baseline_tokens is None else pairing.baseline_tokens,
        "tokens_final": pairing.tokens_final,
        "gmacs_baseline": pairing.gmacs_baseline,
        "gmacs": pairing.gmacs,
        "gmacs_method": pairing.gmacs_method,
        "top1_baseline": found.top1_baseline.value,
        **_bounded("top1", found.top1),
        "top1_drop": found.drop.value,
        "top1_drop_low": found.drop.low,
        "top1_drop_high": found.drop.high,
        "lost": found.drop.lost,
        "gained": found.drop.gained,
        "mcnemar_p": found.drop.p,
        "verdict": found.verdict(),
        "top5_baseline": found.top5_baseline,
        "top5": found.top5,
        **_bounded("kl", found.kl),
        **_bounded("margin_change", found.margin_change),
        "margin_change_tail": found.margin_change_p05,
    }


def _quality(scores: TextScores, pairing: Row[Any]) -> dict[str, Any]:
    found = text_stats.compare(scores, pairing.baseline, pairing.arm)
    return {
        "windows": found.windows,
        "unscored": found.unscored,
        "bytes": found.bytes,
        "characters": found.characters,
        "tokens_baseline": found.tokens_baseline,
        "tokens": found.tokens,
        "bits_per_byte_baseline": found.bits_per_byte_baseline,
        "bits_per_byte": found.bits_per_byte,
        **_bounded("bits_per_byte_change", found.change),
        "verdict": found.verdict(),
        "perplexity_baseline": finite(found.perplexity_baseline),
        "perplexity": finite(found.perplexity),
        **_bounded("top1_agreement", found.agreement),
        **_bounded("kl", found.kl),
    }


def _bounded(name: str, interval: classification.Interval | None) -> dict[str, float | None]:
    """A value and its ends as columns; NULL where there is none, or no end."""
    if interval is None:
        return dict.fromkeys((name, f"{name}_low", f"{name}_high"))
    return {name: interval.value, f"{name}_low": finite(interval.low), f"{name}_high": finite(interval.high)}


ACCURACY = Judge(
    kind="accuracy",
    noun=Predictions,
    field="predictions",
    contradiction=classification.contradiction,
    kept=results.Evaluation,
    size="images",
    columns=lambda evaluation: {
        "images": evaluation.images,
        "unreadable": len(evaluation.unreadable),
        "classes": evaluation.classes,
        "listing": evaluation.listing,
    },
    answers=derived.Accuracy,
    analysis_version=classification.ANALYSIS_VERSION,
    floor=classification.FLOOR,
    figures=_accuracy,
)
QUALITY = Judge(
    kind="quality",
    noun=TextScores,
    field="text_scores",
    contradiction=text_stats.contradiction,
    kept=results.Scores,
    size="characters",
    columns=lambda scores: {
        "windows": scores.windows,
        "characters": int(numbers(scores.characters, "i4").sum()),
        "complete": scores.complete,
        "listing": scores.listing,
    },
    answers=derived.Quality,
    analysis_version=text_stats.ANALYSIS_VERSION,
    floor=text_stats.FLOOR,
    figures=_quality,
)
JUDGES: Mapping[Kind, Judge[Any]] = {judge.kind: judge for judge in (ACCURACY, QUALITY)}
"""Kinds of job whose outcome is what arms said of images or text; the others are timed (`store.derive.speedup`)."""
