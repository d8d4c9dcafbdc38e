"""The root of all errors that a user can correct."""

import difflib
from collections.abc import Iterable, Mapping
from typing import Any


class UserError(Exception):
    """What is wrong and what would be right, in one line; the command line prints it without a
    traceback.
    """


class OutageError(UserError):
    """What the program needs is away or too busy, such as a database or a cluster: the same command
    works once it is back.
    """


class SlowdownError(Exception):
    """A slowdown that was measured: what `compare` and `history` end with exit code 1 for."""


class WeightsError(ValueError):
    """The model cannot have the weights that are requested; the message is the reason."""


OTHER_NAMES: Mapping[str, str] = {
    **dict.fromkeys(("fp16", "f16", "half"), "float16"),
    **dict.fromkeys(("bf16", "brain"), "bfloat16"),
    **dict.fromkeys(("fp32", "f32", "single", "full"), "float32"),
    **dict.fromkeys(("amp", "autocast", "mixed"), "autocast-float16"),
    **dict.fromkeys(("gpu", "nvidia"), "cuda"),
    **dict.fromkeys(("flash", "flash_attention", "fused"), "sdpa"),
}
"""What other programs call words of a sweep, in small letters."""


def other_name(word: str, known: Iterable[str]) -> str | None:
    """The word among the known ones that other programs call `word`."""
    found = OTHER_NAMES.get(word.lower().removeprefix("torch."))
    return found if found in set(known) else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?` for the nearest known word, or for the only one; else the list of what
    is known.
    """
    words = sorted(set(known))
    if (near := words[0] if len(words) == 1 else nearest(word, words)) is not None:
        return f"; did you mean {near!r}?"
    shown = ", ".join(words[:20]) + (", …" if len(words) > 20 else "")
    return f"; known here: {shown}" if words else ""


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that is most like another one; `None` where none is."""
    folded = {name.lower(): name for name in known}
    return next(
        (folded[name] for name in difflib.get_close_matches(word.lower(), folded, n=1)), None
    )


def unknown_word(kind: str, word: Any, known: list[str]) -> str:
    """`unknown model 'x'; did you mean 'y'?`"""
    return f"unknown {kind} {word!r}{did_you_mean(str(word), known)}"
