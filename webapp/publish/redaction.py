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
TELLS_NOTHING = re.compile(r"\d+|.?|root|local(host)?|host|node|machine|server|cpu|gpu|cuda|dense")
"""Names that are words of every page too; the columns of hosts have aliases in place of all."""


class Redaction:
    """What is replaced: hosts by their aliases, the user who publishes, paths, serial numbers."""

    def __init__(self, aliases: Mapping[str, str]) -> None:
        """`aliases` of the hosts of the store."""
        self.hosts = dict(aliases)
        names = {getpass.getuser(): "[user]", node(): "[host]", **aliases}
        short = {name.partition(".")[0]: alias for name, alias in names.items()}
        known = {**short, **names}.items()
        self._names = {each: alias for each, alias in known if not TELLS_NOTHING.fullmatch(each)}
        ordered = sorted(self._names, key=len, reverse=True)
        listed = "|".join(map(re.escape, ordered)) or r"(?!)"
        self._words = re.compile(rf"(?:(?<!\w)|{LINE})(?:{listed})(?!\w)")

    def clean(self, value: Any) -> Any:
        """The value without them: a text, a frame, or a tree of mappings and lists of JSON."""
        if isinstance(value, str):
            found = PATH.sub("[path]", SERIAL.sub(_alias_of_device, value))
            return self._words.sub(lambda name: self._names[name[0]], found)
        if isinstance(value, Mapping):
            known = {key: self.clean(each) for key, each in value.items()}
            return known | {"host": self.hosts.get(value["host"], "")} if "host" in known else known
        if isinstance(value, list | tuple):
            return [self.clean(each) for each in value]
        if isinstance(value, pd.DataFrame):
            if "host" in value:
                value = value.assign(host=value["host"].replace(self.hosts))
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
