"""Sizes at which arms failed: what advice states of them, since a size that failed is neither
measured nor interpolated over.
"""

from collections.abc import Mapping, Sequence
from math import sqrt
from typing import Any, NamedTuple

import pandas as pd

from store.rows.frames import groups, rows_of
from sweeps.model.condition import Condition, ImageSize, image_shape, square_side
from sweeps.number_format import is_missing

MAX_LETTERS = 160
"""Letters of an error message that are shown."""


class FailedArm(NamedTuple):
    """An arm that could not be timed at a size."""

    curve_id: str
    method: str
    params: str | None
    tokens: int | None
    """Of the unmodified model there; `None` where no measured size of the model states it."""
    reason: str
    """In words: `failed: out of memory (…)`."""

    @classmethod
    def of(cls, row: Any, tokens: int | None = None) -> "FailedArm":
        """From a row of the view `failures`."""
        first = next(iter(str(row.message or "").strip().splitlines()), "")
        detail = first if len(first) <= MAX_LETTERS else f"{first[:MAX_LETTERS]}…"
        reason = f"failed: {str(row.reason).replace('_', ' ')}" + (f" ({detail})" if detail else "")
        return cls(
            row.curve_id, row.method, None if is_missing(row.params) else row.params, tokens, reason
        )


def failures_by_condition(
    failed: pd.DataFrame, timed: pd.DataFrame, key: Sequence[str]
) -> Mapping[tuple[Any, ...], tuple[FailedArm, ...]]:
    """The newest failure of each arm and size, by the values of the columns `key`.

    `failed` and `timed` are rows of `store.read.advice.timed_arms.failed_arms` and `timed_arms`;
    the latter show a model's tokens at a size.
    """
    known: dict[str, dict[ImageSize, int]] = {}
    for condition, tokens in zip(timed["condition"], timed["tokens"], strict=True):
        if condition.image_size is not None and not is_missing(tokens):
            known.setdefault(condition.model, {})[condition.image_size] = int(tokens)
    found = {}
    for values, own in groups(failed, tuple(key)):
        newest = {}
        for row in rows_of(own):
            tokens = _tokens(row.condition, known.get(row.model, {}))
            newest[row.curve_id, tokens] = FailedArm.of(row, tokens)
        found[tuple(values.values())] = tuple(newest.values())
    return found


def _tokens(condition: Condition, known: Mapping[ImageSize, int]) -> int | None:
    """Tokens of the unmodified model at the size of a condition; patches are as large at all sizes
    of a model.
    """
    if condition.image_size is None:
        return condition.prompt_tokens
    if condition.image_size in known:
        return known[condition.image_size]
    patches = {round(square_side(size) / sqrt(tokens)) for size, tokens in known.items() if tokens}
    height, width = image_shape(condition.image_size)
    (patch, *more) = patches or {0}
    return None if more or not patch else (height // patch) * (width // patch)
