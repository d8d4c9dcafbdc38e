"""Redaction: host names, user names, paths and serial numbers of devices are taken out of all that
is published.
"""

import getpass
import re
from collections.abc import Mapping
from hashlib import sha256
from platform import node
from typing import Any

import pandas as pd

LINE = r"(?<=\\[nrt])"
"""A line that begins as `\\n` of JSON."""
PATH = re.compile(
    rf"(?:(?<![\w.</~*@-])|{LINE})(?:file://)?"
    r"(?:(?:/[\w.@+~-]+){2,}/?|~(?:/[\w.@+~-]+)+/?|[A-Za-z]:\\[^\s\"'<>|]+)"
)
"""An absolute path of two names or more, one that begins at a home, or one of Windows."""
SERIAL = re.compile(r"\b(?:GPU|MIG)-[0-9a-f]{8}-[0-9a-f-]{27,}")
NO_PERSON = {"root", ""}
"""Users whose name says nothing about anybody."""


class Redaction:
    """What is replaced: hosts by their aliases, the user who publishes, paths, serial numbers."""

    def __init__(self, aliases: Mapping[str, str]) -> None:
        """`aliases` of the hosts of the store."""
        user = getpass.getuser()
        self.hosts = dict(aliases)
        names = dict.fromkeys({node()} - {""}, "[host]") | self.hosts
        short = {name.partition(".")[0]: alias for name, alias in names.items()}
        people = {} if user in NO_PERSON else {user: "[user]"}
        self._names = people | short | names
        ordered = sorted(filter(None, self._names), key=len, reverse=True)
        listed = "|".join(map(re.escape, ordered)) or r"(?!)"
        self._words = re.compile(rf"(?:(?<!\w)|{LINE})(?:{listed})(?!\w)")

    def clean(self, value: Any) -> Any:
        """The value without them: a text, a frame, or a tree of mappings and lists of JSON."""
        if isinstance(value, str):
            found = PATH.sub("[path]", SERIAL.sub(_alias_of_device, value))
            return self._words.sub(lambda name: self._names[name[0]], found)
        if isinstance(value, Mapping):
            return {self.clean(key): self.clean(each) for key, each in value.items()}
        if isinstance(value, list | tuple):
            return [self.clean(each) for each in value]
        if isinstance(value, pd.DataFrame):
            texts = value.select_dtypes(include=["object", "str"])
            return value.assign(**{str(name): list(map(self.clean, texts[name])) for name in texts})
        return value

    @property
    def lines(self) -> list[str]:
        """What is replaced, for the user to read before anything is written."""
        hosts = [f"host {host} → {alias}" for host, alias in self.hosts.items()]
        rest = "this host's and user's name, absolute paths, serial numbers of devices"
        removed = "the readings of monitors (clocks, load, power) are left out"
        return [*hosts, f"replaced everywhere: {rest}", removed]


def _alias_of_device(serial: re.Match[str]) -> str:
    return f"device-{sha256(serial[0].encode()).hexdigest()[:6]}"
