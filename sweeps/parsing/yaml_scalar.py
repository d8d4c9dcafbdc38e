"""What one scalar of a sweep file means: YAML 1.2's few plain words and decimal numbers, and no guess at anything else."""

import math
import re
from typing import Any


class TrapError(Exception):
    """A scalar that YAML 1.1 and people read differently."""


_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?([0-9]+\.[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")
_SWITCH = re.compile(r"yes|no|on|off|y|n", re.IGNORECASE)
_EXPONENT = re.compile(r"([-+]?[0-9]+)([eE][-+]?[0-9]+)")
_OCTAL = re.compile(r"[-+]?0[0-9]+")
_RADIX = re.compile(r"[-+]?0[xob][0-9a-f_]+", re.IGNORECASE)
_UNDERSCORE = re.compile(r"[-+]?[0-9][0-9_]*_[0-9_]*(\.[0-9_]*)?")
_SEXAGESIMAL = re.compile(r"[-+]?[0-9]+(:[0-9]{1,2})+(\.[0-9]*)?")
_DATE = re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt ].*)?")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|nan)", re.IGNORECASE)
_CONTROL = re.compile("[\\x00-\\x08\\x0b-\\x1f\\x7f\\ud800-\\udfff]")
_WORDS = {"": None, "~": None, "null": None, "true": True, "false": False}


def plain(text: str) -> Any:
    """The value of an unquoted scalar: null, true, false, a decimal number, or text. Raises `TrapError` for the rest."""
    if text.lower() in _WORDS and text in {text.lower(), text.capitalize(), text.upper()}:
        return _WORDS[text.lower()]
    if _INTEGER.fullmatch(text):
        if len(text) > 18:
            raise TrapError(f"{text[:18]}… is too large a number")
        return int(text)
    if _FLOAT.fullmatch(text):
        number = float(text)
        if not math.isfinite(number):
            raise TrapError(f"{text} is too large a number")
        return number
    _refuse_traps(text)
    return clean(text)


def _refuse_traps(text: str) -> None:
    quoted = f'"{text}"'
    if _SWITCH.fullmatch(text):
        meant = "true" if text.lower() in {"yes", "on", "y"} else "false"
        raise TrapError(f"`{text}` means {meant} to some YAML readers and text to others; did you mean `{meant}` or `{quoted}`?")
    if match := _EXPONENT.fullmatch(text):
        raise TrapError(f"`{text}` is text to some YAML readers; did you mean `{match[1]}.0{match[2]}`?")
    if _OCTAL.fullmatch(text):
        decimal = text.lstrip("+-0") or "0"
        raise TrapError(f"`{text}` is an octal number to some YAML readers; did you mean `{decimal}` or `{quoted}`?")
    if _RADIX.fullmatch(text):
        raise TrapError(f"`{text}` is not a decimal number; write it in decimal, or `{quoted}` for text")
    if _UNDERSCORE.fullmatch(text):
        raise TrapError(f"`{text}` holds underscores; did you mean `{text.replace('_', '')}` or `{quoted}`?")
    if _SEXAGESIMAL.fullmatch(text):
        raise TrapError(f"`{text}` is 60-based to some YAML readers; did you mean `{quoted}`, or a time like `90s`?")
    if _DATE.fullmatch(text):
        raise TrapError(f"`{text}` is a date to some YAML readers; did you mean `{quoted}`?")
    if _NOT_FINITE.fullmatch(text):
        raise TrapError(f"`{text}` is not a finite number; leave the key out for its default")


def clean(text: str) -> str:
    """`text`, unless it holds what no name, path or message may hold."""
    if bad := _CONTROL.search(text):
        raise TrapError(f"the text holds the control character {bad[0]!r}; leave it out")
    return text
