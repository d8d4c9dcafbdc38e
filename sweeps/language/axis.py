"""The values that a key of a sweep takes: one value, a list, a range or a series of points; and
values that are lists themselves.

A bare list always means several values. `{list: [3, 6, 9]}` is one list; `{per_block: [8, 8, 4,
…]}` is a schedule, a number for each block of the model, and `{per_block: [8, 8, 4], fill: 0}` one
whose further blocks have 0.
"""

import json
import math
import types
from collections.abc import Mapping, Sequence, Set
from decimal import Decimal
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

from pydantic import BaseModel, Field, PositiveInt, TypeAdapter, ValidationError

from sweeps.language.file_schema import FileSection
from sweeps.language.yaml_reader import Place, validated

Form = Literal["scalar", "list", "schedule"]
"""What one value of a key is: no list, a list, or a number that may also be a number for each
block."""
Number = int | float
LIST, PER_BLOCK, FILL = "list", "per_block", "fill"
MAX_VALUES = 10_000
"""Values of one axis; guards against a range whose step is too small."""


class Choice(NamedTuple):
    """One value of an axis and where it stands."""

    value: Any
    place: Place
    blocks: int | None = None
    """For a schedule: how many blocks it lists."""


class Range(FileSection):
    """Evenly spaced numbers from `start`; `stop` is included when a step lands on it."""

    start: Number
    stop: Number
    step: Number = 1

    def values(self) -> list[Number]:
        start, stop, step = (Decimal(str(number)) for number in (self.start, self.stop, self.step))
        if not step:
            raise ValueError("step is 0; any other step will do")
        count = _allowed(int((stop - start) / step) + 1 if (stop - start) / step >= 0 else 0)
        whole = isinstance(self.start, int) and isinstance(self.step, int)
        # Decimal keeps 0.1 + 0.2 at 0.3
        return [
            int(start + index * step) if whole else float(start + index * step)
            for index in range(count)
        ]


class Linspace(FileSection):
    """`num` evenly spaced points; `start` and `stop` are both included."""

    start: Number
    stop: Number
    num: int = Field(ge=2)
    multiple_of: PositiveInt | None = None
    """Round every point to the nearest multiple of this number, such as the patch size."""

    def values(self) -> list[Number]:
        step = (self.stop - self.start) / (_allowed(self.num) - 1)
        return [*(self.start + index * step for index in range(self.num - 1)), self.stop]


class Logspace(FileSection):
    """Points whose neighbours all differ by the same factor; `start` and `stop` are values, not
    exponents.
    """

    start: Number = Field(gt=0)
    stop: Number = Field(gt=0)
    num: int | None = Field(default=None, ge=2)
    """Points in total, `start` and `stop` included. They do not depend on `base`."""
    base: Number = Field(default=2, gt=1)
    """Without `num`: the factor between neighbours. The last point is `stop`, or the last one
    before it."""
    multiple_of: PositiveInt | None = None
    """Round every point to the nearest multiple of this number, such as the patch size."""

    def values(self) -> list[Number]:
        octaves = math.log(self.stop / self.start)
        if self.num is None:
            count = _allowed(math.floor(abs(octaves) / math.log(self.base) + 1e-9) + 1)
            factor: float = self.base if octaves >= 0 else 1 / self.base
            return [self.start * factor**index for index in range(count)]
        factor = math.exp(octaves / (_allowed(self.num) - 1))
        return [*(self.start * factor**index for index in range(self.num - 1)), self.stop]


SERIES: dict[str, type[Range | Linspace | Logspace]] = {
    "range": Range,
    "linspace": Linspace,
    "logspace": Logspace,
}


def _allowed(count: int) -> int:
    if count > MAX_VALUES:
        raise ValueError(
            f"has {count} values, more than {MAX_VALUES}; take a larger step or fewer points"
        )
    return count


def expand_values(place: Place, value: Any, annotation: Any) -> list[Choice]:
    """The values of type `annotation` that are written at `place`. Raises `SweepError` when there
    are none, or too many.
    """
    form = form_of(annotation)
    mapping = takes(annotation, Mapping) or takes(annotation, BaseModel)
    if isinstance(value, list):
        if form == "list":
            _check_bare(place, value, annotation)
        if not value:
            raise place.error("is empty; give at least one value, or leave the key out")
        return [_listed(place / index, item, form, mapping) for index, item in enumerate(value)]
    if is_sequence(value) and not mapping:
        return [sequence(place, value, form)]
    spread = next(iter(value)) if isinstance(value, dict) and len(value) == 1 else None
    if not isinstance(value, dict) or (mapping and spread not in SERIES):
        return [Choice(value, place)]
    if spread not in SERIES:
        known = (*SERIES, *{"scalar": (), "list": (LIST,), "schedule": (PER_BLOCK,)}[form])
        for key in value:
            if key not in known:
                raise place.unknown_key(key, known)
        raise place.error(f"needs exactly one of {', '.join(known)}")
    inner = place / spread
    if not isinstance(value[spread], dict):
        keys = ", ".join(SERIES[spread].model_fields)
        raise inner.error(f"needs a mapping with the keys {keys}")
    series = validated(inner, SERIES[spread], value[spread])
    try:
        points = series.values()
    except (ValueError, OverflowError, ArithmeticError) as error:
        raise inner.error(str(error)) from None
    if not points:
        raise inner.error("is empty: `step` leads away from `stop`; swap start and stop")
    return [Choice(_rounded(point, series, annotation), inner) for point in points]


def _listed(place: Place, value: Any, form: Form, mapping: bool) -> Choice:
    """An entry of a list; a bare list is one value, and no schedule."""
    if isinstance(value, list) and form == "schedule":
        written = f"{{{PER_BLOCK}: {json.dumps(value)}}}"
        raise place.error(
            f"a number for each block is written {written}; `{FILL}: 0` may stand beside it"
        )
    return (
        sequence(place, value, form) if is_sequence(value) and not mapping else Choice(value, place)
    )


def _rounded(point: float, series: Range | Linspace | Logspace, annotation: Any) -> Number:
    if isinstance(series, Range):
        return point  # as written: an integer field refuses a fraction itself
    if series.multiple_of is not None:
        return round(point / series.multiple_of) * series.multiple_of
    if takes(annotation, int) and not takes(annotation, float):
        return round(point)
    # the last bits of a logarithm differ between machines, and identities must not
    return float(f"{point:.12g}")


def form_of(annotation: Any) -> Form:
    """The form of a value of this type; a number or a list of numbers is a schedule."""
    if not (takes(annotation, Sequence) or takes(annotation, Set)):
        return "scalar"
    return "schedule" if takes(annotation, int) or takes(annotation, float) else "list"


def takes(annotation: Any, kind: type) -> bool:
    """Whether a value of this type may be a `kind`, itself and not as a part of it; text counts as
    no sequence.
    """
    origin = get_origin(annotation)
    if origin in (Union, types.UnionType):
        return any(takes(part, kind) for part in get_args(annotation))
    if origin is Annotated:
        return takes(get_args(annotation)[0], kind)
    found = origin or annotation
    return (
        isinstance(found, type)
        and issubclass(found, kind)
        and not issubclass(found, str | bytes | bool)
    )


def is_sequence(value: Any) -> bool:
    """Whether `value` is the written form of one list or schedule."""
    return isinstance(value, dict) and (LIST in value or PER_BLOCK in value)


def sequence(place: Place, written: Mapping[str, Any], form: Form) -> Choice:
    """The list that `written` stands for. Raises `SweepError` where the key takes no list of that
    form.
    """
    name = LIST if LIST in written else PER_BLOCK
    inner, key = place / name, place.path[-1]
    known = (LIST,) if name == LIST else (PER_BLOCK, FILL)
    for unknown in written:
        if unknown not in known:
            raise place.unknown_key(unknown, known)
    right = {
        "scalar": "takes single values; several are a list such as [1, 2]",
        "list": f"is written {{{LIST}: […]}}",
        "schedule": f"is written {{{PER_BLOCK}: […]}}, with a number for each block",
    }
    if form != {LIST: "list", PER_BLOCK: "schedule"}[name]:
        raise inner.error(f"{key} {right[form]}", at_key=True)
    values = written[name]
    if not isinstance(values, list) or not values:
        raise inner.error(f"needs a list, such as {{{name}: [3, 6, 9]}}")
    if FILL in written and (written[FILL] != 0 or isinstance(written[FILL], bool)):
        raise (place / FILL).error(
            "can only be 0: nothing in the further blocks; for anything else list all blocks"
        )
    return Choice(values, inner, None if form == "list" or FILL in written else len(values))


def _check_bare(place: Place, written: list[Any], annotation: Any) -> None:
    """Refuse a bare list whose entries are no values of this type, which has lists."""
    adapter: TypeAdapter[Any] = TypeAdapter(annotation)
    scalars = [value for value in written if not isinstance(value, list | dict)]
    try:
        for value in scalars:
            adapter.validate_json(json.dumps(value), strict=True)
    except ValidationError:
        raise place.error(
            f"a bare list means several values, and a value of {place.path[-1]} is itself a list;"
            f" write {{{LIST}: {json.dumps(scalars)}}}"
        ) from None
