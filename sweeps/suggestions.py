"""The right word for an unknown one, as errors suggest it."""

import difflib
from collections.abc import Iterable
from typing import Any


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?` for the nearest known word, or for the only one; else the list of what is known."""
    words = sorted(set(known))
    if len(words) == 1:
        return f"; did you mean {words[0]!r}?"
    folded = {name.lower(): name for name in words}
    near = difflib.get_close_matches(word.lower(), folded, n=1)
    if near:
        return f"; did you mean {folded[near[0]]!r}?"
    shown = ", ".join(words[:20]) + (", …" if len(words) > 20 else "")
    return f"; known here: {shown}" if words else ""


def unknown_word(kind: str, word: Any, known: list[str]) -> str:
    """`unknown model 'x'; did you mean 'y'?`"""
    return f"unknown {kind} {word!r}{did_you_mean(str(word), known)}"
