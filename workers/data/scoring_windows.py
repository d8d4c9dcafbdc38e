"""Windows: pieces of held-out text, each read after the text before it; imports no torch."""

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

from workers.data.images import spread

SCORED, CONTEXT = 384, 256
"""Characters of a window that are scored, and of the same document before them that are only read: together some 220 tokens, fewer
than the smallest model here was trained on at once."""
OPENING = 64
"""The first characters of a document are never scored: nothing stands before them."""
SHORTEST = 32
REACH = 32
"""A cut is moved on by so many characters at most to come before white space, where tokenizers begin a word."""


class Window(NamedTuple):
    """A piece of one document."""

    context: str
    """What stands before it, never empty."""
    scored: str


def windows(documents: Sequence[str], characters: int | None = None) -> tuple[Window, ...]:
    """The documents cut into windows, in their order; `characters`: so many windows, evenly spread, as score about that much."""
    found: list[Window] = []
    for text in documents:
        cuts = [_word(text, OPENING)]
        while len(text) - cuts[-1] > SCORED + REACH:
            cuts.append(_word(text, cuts[-1] + SCORED))
        cuts.append(len(text))
        for start, end in itertools.pairwise(cuts):
            if end - start >= SHORTEST:
                found.append(Window(text[max(0, start - CONTEXT) : start], text[start:end]))
    if characters is None:
        return tuple(found)
    return tuple(found[place] for place in spread(len(found), math.ceil(characters / SCORED)))


def _word(text: str, place: int) -> int:
    """The first place from `place` on before which a word ends, or `place` where none is in reach."""
    return next((at for at in range(place, min(place + REACH, len(text))) if text[at].isspace()), min(place, len(text)))
