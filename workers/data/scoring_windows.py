"""Windows: pieces of held-out text to be scored, each with the text before it as context; imports
no torch.
"""

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

from sweeps.model.outcome import CONTEXT, SCORED
from workers.data.images import evenly_spaced

UNSCORED = 64
"""The first characters of a document are not scored, because they have no context."""
SHORTEST = 32
REACH = 32
"""A cut moves by at most this many characters to a word boundary."""


class Window(NamedTuple):
    """A piece of one document."""

    context: str
    """The text before it, never empty."""
    scored: str
    document: int = 0
    """Its place among the documents."""


def scoring_windows(documents: Sequence[str], characters: int | None = None) -> tuple[Window, ...]:
    """The documents cut into windows, in their order; `characters`: evenly spaced windows that
    score about that many.
    """
    found: list[Window] = []
    for document, text in enumerate(documents):
        cuts = [_word(text, UNSCORED)]
        while len(text) - cuts[-1] > SCORED + REACH:
            cuts.append(_word(text, cuts[-1] + SCORED))
        cuts.append(len(text))
        for start, end in itertools.pairwise(cuts):
            if end - start >= SHORTEST:
                found.append(
                    Window(text[max(0, start - CONTEXT) : start], text[start:end], document)
                )
    if characters is None:
        return tuple(found)
    return tuple(
        found[place] for place in evenly_spaced(len(found), math.ceil(characters / SCORED))
    )


def _word(text: str, place: int) -> int:
    """The first index from `place` on at which a word ends, or `place` where none is in reach."""
    return next(
        (at for at in range(place, min(place + REACH, len(text))) if text[at].isspace()),
        min(place, len(text)),
    )
