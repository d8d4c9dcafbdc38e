"""The values that a key of a sweep takes (one value, a list, a range or a series of points, and
values that are lists themselves), and the conditions that its defaults and axes make of them.

A bare list always means several values. `{list: [3, 6, 9]}` is one list; `{per_block: [8, 8, 4,
…]}` is a schedule, a number for each block of the model, and `{per_block: [8, 8, 4], fill: 0}` one
whose further blocks have 0.
"""

import json
import math
import os
import re
import types
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

from pydantic import BaseModel, Field, PositiveInt, TypeAdapter, ValidationError

from sweeps.errors import unknown_word
from sweeps.geometry.llm_geometry import is_folder
from sweeps.geometry.model_families import PLACEHOLDER, ModelFamily, code_name, is_data
from sweeps.geometry.vit_catalogue import not_known
from sweeps.language.file_schema import FileSection
from sweeps.language.yaml_reader import Document, Place, first_error, shown, validated
from sweeps.model.condition import (
    NAMED_WEIGHTS,
    Condition,
    Device,
    Exclusive,
    InputValues,
    Kind,
    Rectangle,
    condition_fields,
)
from sweeps.model.identity import FrozenModel
from sweeps.model.kinds import (
    DATA_FIELDS,
    KINDS,
    OWN_FIELDS,
    THREAD_FIELDS,
    WORKLOAD_FIELDS,
    Modality,
    kinds_of,
)
from sweeps.model.method import AnyMethod

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


THREADS_KEY = THREAD_FIELDS[0]
"""The key; it sets all of `THREAD_FIELDS`, so that an axis replaces the whole of a default."""
_CORES = re.compile(r"cores(?: ?- ?([1-9][0-9]*))?")
Count = Annotated[int, Field(gt=0)] | Annotated[str, Field(pattern=f"^{_CORES.pattern}$")]
"""`cores` is one thread per core of the machine that measures, `cores - 1` leaves one of them
free."""
CONDITION_FIELDS: tuple[str, ...] = tuple(Condition.model_fields)
SHORTHANDS: Mapping[str, str] = {"pretrained": "weights", "checkpoint": "weights"}
"""`pretrained: true` is `weights: pretrained`, and `checkpoint: PATH` is `weights: PATH`."""
FIELD_WORDS: Mapping[str, tuple[str, ...]] = {
    "exclusive": ("node", *get_args(Exclusive)),
    "inputs": ("normal", *get_args(InputValues)),
}
"""The values of fields whose first one is how nothing is written."""


class Threads(FileSection):
    """CPU threads: how many, how they wait for each other, and whether each is pinned to a core."""

    count: Count | None = None
    """A number, `cores` or `cores - 1`; one per core where it is left out."""
    wait: Literal["brief", "passive", "active"] = "brief"
    """Threads that wait sleep after some microseconds, at once, or never: they keep their cores
    busy."""
    pin: bool = False
    """Each thread stays on a core of its own."""


def _thread_fields(choice: Choice) -> dict[str, Choice]:
    """The condition fields that a value of `threads` sets, not yet checked if it is a number.
    Raises `SweepError`.
    """
    value, place = choice.value, choice.place
    written = Threads()
    if isinstance(value, dict):
        written = validated(place, Threads, value)
        value, place = written.count, place / "count"
    spare = None
    if isinstance(value, str):
        if (match := _CORES.fullmatch(value)) is None:
            raise place.error(
                f"needs a number, `cores`, `cores - 1`, or {{count, wait, pin}}, not {shown(value)}"
            )
        value, spare = None, int(match[1]) if match[1] else None
    wait = None if written.wait == "brief" else written.wait
    values = (value, spare, wait, "cores" if written.pin else None)
    return {
        name: Choice(part, choice.place) for name, part in zip(THREAD_FIELDS, values, strict=True)
    }


@cache
def fields_of(modality: Modality) -> tuple[str, ...]:
    """The condition fields that the models of a modality have."""
    used = {name for kind in kinds_of(modality) for name in condition_fields(kind.name)}
    return tuple(name for name in CONDITION_FIELDS if name in used)


def adapters(model: type[FrozenModel]) -> dict[str, TypeAdapter[Any]]:
    """One strict validator per field of `model`."""
    return {
        name: TypeAdapter(info.rebuild_annotation()) for name, info in model.model_fields.items()
    }


_ADAPTERS = adapters(Condition)


@dataclass(frozen=True)
class KnownNames:
    """The names that a sweep may use, and the device that `auto` stands for."""

    methods: dict[str, AnyMethod]
    """Those from files of the user are added where an entry names one."""
    families: tuple[ModelFamily, ...]
    """The models of each modality."""
    models: ModelFamily
    """That of the sweep's models."""
    auto: Device
    corruptions: Collection[str] = ()
    """Corruptions that exist; empty where that is not known."""
    folder: Path = Path()
    """Where the sweep's relative paths count from."""

    def family(self, model: Any) -> ModelFamily | None:
        """The family of a model by its name; `None` for a word that names none."""
        return next((family for family in self.families if family.has(str(model))), None)

    def placed(self, name: str, value: Any) -> Any:
        """A path of the sweep under the key `name` as one from the current folder, which workers
        have; what is no relative path as it is.
        """
        if not isinstance(value, str) or self.folder == Path():
            return value
        form, colon, path = value.partition(":") if name == "data" else ("", "", value)
        known = {
            "data": bool(colon),
            "model": is_folder(path) and code_name(path) is None,
            "file": True,
        }
        if not known.get(name, value not in NAMED_WEIGHTS) or Path(path).is_absolute():
            return value
        there = os.path.normpath(self.folder / path)
        return f"{form}{colon}{there if there.startswith(('/', '..')) else f'./{there}'}"

    def field(self, name: str, choice: Choice) -> Choice:
        """`choice` as a checked value of the condition field `name`. Raises `SweepError`."""
        value, place = choice.value, choice.place
        if name in {"data", "model", "weights"}:
            value = self.placed(name, value)
        words = FIELD_WORDS.get(name, ())
        if name == "device" and value == "auto":
            value = self.auto
        elif words and value == words[0]:
            value = None
        elif words and value not in (None, *words):
            raise place.error(unknown_word(f"value of {name}", value, list(words)))
        elif name == "model" and isinstance(value, str):
            value = self.models.full_name(value)
            self._check_model(value, place)
        elif (
            name == "corruption"
            and isinstance(value, str)
            and value not in (self.corruptions or (value,))
        ):
            raise place.error(unknown_word(name, value, list(self.corruptions)))
        value = checked_field(_ADAPTERS[name], name, Choice(value, place))
        forms = self.models.data_forms
        if name == "data" and value is not None and not is_data(forms, value):
            right = f"{', '.join(forms[:-1])} or {forms[-1]}"
            raise place.error(
                f"{value!r} is no data for {self.models.modality} models; write {right}"
            )
        return Choice(value, place)

    def _check_model(self, model: str, place: Place) -> None:
        family = self.family(model)
        if family is None:
            known = [name for models in self.families for name in models.networks]
            raise place.error(not_known(model, known))
        if family.modality != self.models.modality:
            raise place.error(
                f"{model} is a {family.modality} model, but this sweep is about"
                f" {self.models.modality} models; write a sweep for each of the two"
            )
        try:
            family.load_geometry(model)
        except ValueError as error:
            raise place.error(str(error)) from None

    def fields(self, place: Place, written: Mapping[str, Any]) -> dict[str, Choice]:
        """The condition fields of the mapping at `place`, which takes single values. Raises
        `SweepError`.
        """
        found = self.axes(place, written, several=False)
        return {name: choices[0] for name, choices in found.items()}

    def axes(
        self, place: Place, written: Mapping[str, Any], *, several: bool = True
    ) -> dict[str, list[Choice]]:
        """The condition fields of the mapping at `place`, each with as many values as an axis has.
        Raises `SweepError`.
        """
        known, free = fields_of(self.models.modality), self.models.free_names
        result: dict[str, list[Choice]] = {}
        for key, value in written.items():
            here, name = place / key, SHORTHANDS.get(key, key)
            if name in free:
                result[name] = self._numbers(here, value, several=several)
                continue
            if name == "tokens":
                size = next(each for each in ("image_size", "prompt_tokens") if each in known)
                raise here.error(f"follow from `{size}`; write that", at_key=True)
            if name not in CONDITION_FIELDS or name in OWN_FIELDS:
                raise place.unknown_key(key, (*known, *free, *SHORTHANDS))
            if name not in known:
                raise here.error(of_other_modality(name, self.models.modality), at_key=True)
            if name in result:
                raise here.error(f"sets `{name}` a second time; keep one", at_key=True)
            if name != THREADS_KEY and name in THREAD_FIELDS:
                right = f"is written {THREADS_KEY}: {{count: cores - 1, wait: active, pin: true}}"
                raise here.error(right, at_key=True)
            annotation: Any = Condition.model_fields[name].annotation
            if name == THREADS_KEY:
                annotation = Threads | int
            mapping = takes(annotation, BaseModel)
            if not several and isinstance(value, list if mapping else list | dict):
                raise here.error("needs a single value here; several go under `axes`")
            for choice in (
                expand_values(here, value, annotation) if several else [Choice(value, here)]
            ):
                parts = {name: _weights(key, choice)}
                if name == THREADS_KEY:
                    parts = _thread_fields(choice)
                for field, part in parts.items():
                    result.setdefault(field, []).append(self.field(field, part))
        return result

    @staticmethod
    def _numbers(place: Place, value: Any, *, several: bool) -> list[Choice]:
        """The values of an axis with a free name."""
        choices = expand_values(place, value, int | float) if several else [Choice(value, place)]
        for choice in choices:
            if isinstance(choice.value, bool) or not isinstance(choice.value, int | float):
                raise choice.place.error(f"needs a number, not {shown(choice.value)}")
        return choices


def checked_field(adapter: TypeAdapter[Any], name: str, choice: Choice) -> Any:
    """The value of a field of a condition, or of what overrides it. Raises `SweepError`."""
    value, place = choice.value, choice.place
    if name == "image_size" and isinstance(value, dict):
        value = validated(place, Rectangle, value)
    try:
        return adapter.validate_python(value, strict=True)
    except ValidationError as error:
        raise first_error(error, lambda _: place) from None


def of_other_modality(name: str, modality: Modality, right: str = "leave it out") -> str:
    """What is wrong with a key or a kind that is not for models of this modality."""
    other = " or ".join(
        dict.fromkeys(
            kind.modality
            for kind in KINDS.values()
            if kind.modality != modality and name in (kind.section, *condition_fields(kind.name))
        )
    )
    return f"is for {other} models, and this sweep is about {modality} models; {right}"


def condition_of_kind(
    document: Document,
    kind: Kind,
    condition: Condition,
    models: ModelFamily,
    places: Mapping[str, Place],
) -> Condition:
    """`condition` as a question of this kind has it: with data to evaluate, and without what its
    answers do not depend on.

    Conditions that are equal for the kind merge so. `places` holds where each field is written.
    Raises `SweepError` for weights or data that cannot be.
    """
    if (problem := models.weights_problem(condition.model, condition.weights)) is not None:
        raise places["weights"].error(problem)
    values: dict[str, Any] = {name: getattr(condition, name) for name in condition_fields(kind)}
    if "corruption" in values:
        if values["corruption"] is not None and values["severity"] is None:
            raise places["corruption"].error("needs a `severity` from 1 to 5 beside it")
        if "severity" in places and "corruption" not in places:
            right = "needs a `corruption` beside it, such as gaussian_noise"
            raise places["severity"].error(right)
    if values.get("corruption") is None:
        values.pop("severity", None)  # without a corruption it has no meaning
    if "data" in values and values["data"] is None:
        values["data"] = models.default_data(condition.model)
        if values["data"] is None:
            forms = " or ".join(
                f"`data: {form}`" for form in models.data_forms if form.endswith(PLACEHOLDER)
            )
            raise document.at("jobs", KINDS[kind].section).error(
                f"needs images for {condition.model}; write {forms} under `defaults`"
            )
    return Condition.model_construct(**values)


def check_jobs(document: Document, kinds: Iterable[Kind], modality: Modality) -> None:
    """Refuse kinds of jobs that are not for models of this modality. Raises `SweepError`."""
    for kind in kinds:
        if KINDS[kind].modality != modality:
            right = f"request {' or '.join(own.section for own in kinds_of(modality))}"
            place = document.at("jobs", KINDS[kind].section)
            section = KINDS[kind].section
            raise place.error(of_other_modality(section, modality, right), at_key=True)


def check_fields(
    condition: Condition,
    kinds: Collection[Kind],
    modality: Modality,
    places: Mapping[str, Place],
) -> None:
    """Refuse a field that no kind of the sweep depends on, and `exclusive: device` without a GPU.
    Raises `SweepError`.
    """
    used = {name for kind in kinds for name in condition_fields(kind)}
    for name, place in places.items():
        if name in (*DATA_FIELDS, *WORKLOAD_FIELDS, *FIELD_WORDS) and name not in used:
            lacking = next(
                kind.section for kind in kinds_of(modality) if name in condition_fields(kind.name)
            )
            problem = (
                f"is for {lacking} jobs, and this sweep has none; add `{lacking}: {{}}` under"
                " `jobs`, or leave it out"
            )
            raise place.error(problem, at_key=True)
    if condition.exclusive is not None and condition.device != "cuda":
        raise places["exclusive"].error(
            f"device is for GPUs, and here the device is {condition.device}; write node, or"
            " `device: cuda` beside it"
        )


def _weights(key: str, choice: Choice) -> Choice:
    value, place = choice.value, choice.place
    if key == "pretrained":
        if not isinstance(value, bool):
            raise place.error("needs true or false; a checkpoint's path goes under `checkpoint`")
        return Choice("pretrained" if value else "random", place)
    if key == "checkpoint" and value in NAMED_WEIGHTS:
        raise place.error(f"needs the path of a file; for {value} weights write `weights: {value}`")
    return choice
