"""Axis: the values that a key of a sweep takes, written as one value, a list, a range, or a series of points."""

import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any, NamedTuple

from pydantic import Field

from sweeps.parsing.file_schema import FileSection
from sweeps.parsing.sequence import LIST, PER_BLOCK, Form, is_sequence, nested, sequence
from sweeps.parsing.validation import validated
from sweeps.parsing.yaml_reader import Document, KeyPath

MAX_VALUES = 10_000
"""Values of one axis; guards against a range whose step is too small."""


class Choice(NamedTuple):
    """One value of an axis and where it stands."""

    value: Any
    path: KeyPath
    blocks: int | None = None
    """For a schedule: how many blocks it lists."""


class TooManyError(ValueError):
    """A series has more than `MAX_VALUES` values."""

    def __init__(self, count: int) -> None:
        super().__init__(f"has {count} values, more than {MAX_VALUES}; take a larger step or fewer points")


class Range(FileSection):
    """Evenly spaced numbers from `start`; `stop` is included when a step lands on it."""

    start: int | float
    stop: int | float
    step: int | float = 1

    def values(self) -> list[int | float]:
        start, stop, step = (Decimal(str(number)) for number in (self.start, self.stop, self.step))
        if not step:
            raise ValueError("step is 0; any other step will do")
        count = int((stop - start) / step) + 1 if (stop - start) / step >= 0 else 0
        if count > MAX_VALUES:
            raise TooManyError(count)
        whole = isinstance(self.start, int) and isinstance(self.step, int)
        # Decimal keeps 0.1 + 0.2 at 0.3
        return [int(start + index * step) if whole else float(start + index * step) for index in range(count)]


class Linspace(FileSection):
    """`num` evenly spaced points; `start` and `stop` are both included."""

    start: int | float
    stop: int | float
    num: int = Field(ge=2)
    multiple_of: int | None = Field(default=None, gt=0)
    """Round every point to the nearest multiple of this number, such as the patch size."""

    def values(self) -> list[int | float]:
        if self.num > MAX_VALUES:
            raise TooManyError(self.num)
        step = (self.stop - self.start) / (self.num - 1)
        return [*(self.start + index * step for index in range(self.num - 1)), self.stop]


class Logspace(FileSection):
    """Points whose neighbours all differ by the same factor; `start` and `stop` are values, not exponents."""

    start: int | float = Field(gt=0)
    stop: int | float = Field(gt=0)
    num: int | None = Field(default=None, ge=2)
    """Points in total, `start` and `stop` included. They do not depend on `base`."""
    base: int | float = Field(default=2, gt=1)
    """Without `num`: the factor between neighbours. The last point is `stop`, or the last one before it."""
    multiple_of: int | None = Field(default=None, gt=0)
    """Round every point to the nearest multiple of this number, such as the patch size."""

    def values(self) -> list[int | float]:
        octaves = math.log(self.stop / self.start)
        if self.num is None:
            count = math.floor(abs(octaves) / math.log(self.base) + 1e-9) + 1
            factor: float = self.base if octaves >= 0 else 1 / self.base
        else:
            count, factor = self.num, math.exp(octaves / (self.num - 1))
        if count > MAX_VALUES:
            raise TooManyError(count)
        points: list[int | float] = [self.start * factor**index for index in range(count)]
        if self.num is not None:
            points[-1] = self.stop
        return points


SERIES: dict[str, type[Range | Linspace | Logspace]] = {"range": Range, "linspace": Linspace, "logspace": Logspace}
SPREADS = (*SERIES, "each")


def expand_values(
    document: Document, path: KeyPath, value: Any, *, whole: bool, form: Form = "scalar", mapping: bool = False
) -> list[Choice]:
    """The values written at `path`; a list is always several. Raises `SweepError` when there are none, or too many.

    whole: the key takes integers, so computed points are rounded.
    form: what one value is, see `sweeps.parsing.sequence`.
    mapping: the key takes a mapping; several stand in a list.
    """
    if isinstance(value, list):
        return _listed(document, path, value, form, mapping=mapping)
    if not isinstance(value, dict):
        return [Choice(value, path)]
    if is_sequence(value) and not mapping:
        return [Choice(*sequence(document, path, value, form))]
    if len(value) != 1 or next(iter(value)) not in SPREADS:
        if mapping:
            return [Choice(value, path)]
        known = (*SPREADS, *{"scalar": (), "list": (LIST,), "schedule": (PER_BLOCK,)}[form])
        unknown = next((key for key in value if key not in known), None)
        if unknown is not None:
            raise document.unknown_key((*path, unknown), known)
        raise document.error(path, f"needs exactly one of {', '.join(known)}")
    series_form, content = next(iter(value.items()))
    inner = (*path, series_form)
    if series_form == "each":
        if not isinstance(content, list):
            raise document.error(inner, "needs a list of values, such as {each: [1, 2]}")
        return _listed(document, inner, content, form, mapping=mapping, each=True)
    if not isinstance(content, dict):
        keys = ", ".join(SERIES[series_form].model_fields)
        raise document.error(inner, f"needs a mapping with the keys {keys}")
    series = validated(document, inner, SERIES[series_form], content)
    points = _numbers(document, inner, series.values)
    return [Choice(point, inner) for point in _rounded(points, series, whole=whole)]


def _listed(document: Document, path: KeyPath, values: list[Any], form: Form, *, mapping: bool, each: bool = False) -> list[Choice]:
    """One choice for each entry. A bare list inside is one value; as a schedule only in `each`, where older files have it."""
    if not values:
        raise document.error(path, "is empty; give at least one value, or leave the key out")
    found = []
    for index, value in enumerate(values):
        here = (*path, index)
        if is_sequence(value) and not mapping:
            found.append(Choice(*sequence(document, here, value, form)))
        elif isinstance(value, list) and form == "schedule" and not each:
            raise nested(document, here, value)
        else:
            found.append(Choice(value, here))
    return found


def _numbers(document: Document, path: KeyPath, values: Callable[[], list[int | float]]) -> list[int | float]:
    try:
        points = values()
    except (ValueError, OverflowError, ArithmeticError) as error:
        raise document.error(path, str(error)) from None
    if not points:
        raise document.error(path, "is empty: `step` leads away from `stop`; swap start and stop, or turn the step's sign")
    return points


def _rounded(points: list[int | float], series: Range | Linspace | Logspace, *, whole: bool) -> list[int | float]:
    if isinstance(series, Range):
        return points  # as written: an integer field refuses a fraction itself
    if series.multiple_of is not None:
        return [round(point / series.multiple_of) * series.multiple_of for point in points]
    # 12 digits: the last bits of a logarithm differ between machines, and identities must not
    return [round(point) if whole else float(f"{point:.12g}") for point in points]
