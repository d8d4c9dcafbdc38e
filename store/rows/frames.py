"""Rows and groups of the frames that queries return."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd


def rows_of(frame: "pd.DataFrame") -> list[Any]:
    """The rows of a frame as named tuples, whose fields have no types."""
    return list(frame.itertuples())


def groups(
    frame: "pd.DataFrame", columns: Sequence[str]
) -> Iterator[tuple[dict[str, Any], "pd.DataFrame"]]:
    """The rows of a frame by equal values of `columns`, which come first as a mapping; in order of
    appearance.
    """
    if len(frame):
        for key, found in frame.groupby(list(columns), sort=False, dropna=False):
            yield dict(zip(columns, key, strict=True)), found
