"""The forms of `threads` in a sweep: a number, `cores`, `cores - 1`, or a mapping with how they
wait and are pinned too.
"""

import re
from typing import Annotated, Any, Literal

from pydantic import Field

from sweeps.language.file_schema import FileSection
from sweeps.language.validation import shown, validated
from sweeps.language.yaml_reader import Document, KeyPath
from sweeps.model.kinds import THREAD_FIELDS

THREADS_KEY = THREAD_FIELDS[0]
"""The key; it sets all of `THREAD_FIELDS`, so that an axis replaces the whole of a default."""
_CORES = re.compile(r"cores(?: ?- ?([1-9][0-9]*))?")
Count = Annotated[int, Field(gt=0)] | Annotated[str, Field(pattern=f"^{_CORES.pattern}$")]
"""`cores` is one thread per core of the machine that measures, `cores - 1` leaves one of them
free."""


class Threads(FileSection):
    """CPU threads: how many, how they wait for each other, and whether each is pinned to a core."""

    count: Count | None = None
    """A number, `cores` or `cores - 1`; one per core where it is left out."""
    wait: Literal["brief", "passive", "active"] = "brief"
    """Threads that wait sleep after some microseconds, at once, or never: they keep their cores
    busy."""
    pin: bool = False
    """Each thread stays on a core of its own."""


def thread_fields(document: Document, path: KeyPath, value: Any) -> dict[str, Any]:
    """The condition fields that a value of `threads` sets, not yet checked if it is a number.
    Raises `SweepError`.
    """
    written = validated(document, path, Threads, value) if isinstance(value, dict) else Threads()
    count = written.count if isinstance(value, dict) else value
    spare = None
    if isinstance(count, str):
        if (match := _CORES.fullmatch(count)) is None:
            problem = (
                f"needs a number, `cores`, `cores - 1`, or {{count, wait, pin}}, not {shown(count)}"
            )
            raise document.error((*path, "count") if isinstance(value, dict) else path, problem)
        count, spare = None, int(match[1]) if match[1] else None
    values = (
        count,
        spare,
        None if written.wait == "brief" else written.wait,
        "cores" if written.pin else None,
    )
    return dict(zip(THREAD_FIELDS, values, strict=True))
