"""The conditions of a sweep: its defaults and axes turned into values of `Condition` fields, each
with its line.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal, cast, get_args

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from sweeps.errors import unknown_word
from sweeps.geometry.model_families import PLACEHOLDER, ModelFamily, is_data
from sweeps.geometry.vit_catalogue import not_known, timm_name
from sweeps.language.axis import Choice, expand_values, takes
from sweeps.language.file_schema import FileSection
from sweeps.language.yaml_reader import Document, KeyPath, first_error, shown, validated
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
    THREAD_FIELDS,
    WORKLOAD_FIELDS,
    Modality,
    kinds_of,
)
from sweeps.model.method import AnyMethod

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


CONDITION_FIELDS: tuple[str, ...] = tuple(Condition.model_fields)
SHORTHANDS: Mapping[str, str] = {"pretrained": "weights", "checkpoint": "weights"}
"""`pretrained: true` is `weights: pretrained`, and `checkpoint: PATH` is `weights: PATH`."""
WHOLE_NODE = "node"
"""How `exclusive` is written where nothing needs to be."""
NORMAL_INPUTS = "normal"
"""How `inputs` is written where nothing needs to be."""


@cache
def fields_of(modality: Modality) -> tuple[str, ...]:
    """The condition fields that the models of a modality have."""
    used = {name for kind in kinds_of(modality) for name in condition_fields(kind.name)}
    return tuple(name for name in CONDITION_FIELDS if name in used)


def adapters(model: type[FrozenModel]) -> dict[str, TypeAdapter[Any]]:
    """One strict validator per field of `model`."""
    return {
        name: TypeAdapter(cast(Any, Annotated[cast(Any, info.annotation), info]))
        for name, info in model.model_fields.items()
    }


_ADAPTERS = adapters(Condition)


@dataclass(frozen=True)
class KnownNames:
    """The names that a sweep may use, and the device that `auto` stands for."""

    methods: Mapping[str, AnyMethod]
    families: tuple[ModelFamily, ...]
    """The models of each modality."""
    models: ModelFamily
    """That of the sweep's models."""
    auto: Device
    corruptions: Collection[str] = ()
    """Corruptions that exist; empty where that is not known."""

    @property
    def modality(self) -> Modality:
        return self.models.modality

    def family(self, model: Any) -> ModelFamily | None:
        """The family of a model by its name; `None` for a word that names none."""
        return next((family for family in self.families if family.has(str(model))), None)

    def field(self, document: Document, name: str, choice: Choice) -> Choice:
        """`choice` as a checked value of the condition field `name`. Raises `SweepError`."""
        value, path = choice.value, choice.path
        if name == "device" and value == "auto":
            return Choice(self.auto, path)
        if name == "exclusive" and value == WHOLE_NODE:
            return Choice(None, path)
        if name == "exclusive" and value not in (None, *get_args(Exclusive)):
            raise document.error(
                path, unknown_word("way to be exclusive", value, [WHOLE_NODE, *get_args(Exclusive)])
            )
        if name == "inputs" and value == NORMAL_INPUTS:
            return Choice(None, path)
        if name == "inputs" and value not in (None, *get_args(InputValues)):
            raise document.error(
                path,
                unknown_word("way to draw inputs", value, [NORMAL_INPUTS, *get_args(InputValues)]),
            )
        value = written_size(document, name, choice)
        if name == "model" and isinstance(value, str):
            value = timm_name(value)
            self._check_model(document, value, path)
        if (
            name == "corruption"
            and isinstance(value, str)
            and value not in (self.corruptions or (value,))
        ):
            raise document.error(path, unknown_word("corruption", value, list(self.corruptions)))
        try:
            checked = _ADAPTERS[name].validate_python(value, strict=True)
        except ValidationError as error:
            raise first_error(document, error, None, lambda _: path) from None
        forms = self.models.data_forms
        if name == "data" and checked is not None and not is_data(forms, checked):
            right = f"{', '.join(forms[:-1])} or {forms[-1]}"
            raise document.error(
                path, f"{value!r} is no data for {self.modality} models; write {right}"
            )
        return Choice(checked, path)

    def _check_model(self, document: Document, model: str, path: KeyPath) -> None:
        family = self.family(model)
        if family is None:
            raise document.error(
                path, not_known(model, [name for known in self.families for name in known.networks])
            )
        if family.modality != self.modality:
            own = f"this sweep is about {self.modality} models"
            raise document.error(
                path,
                f"{model} is a {family.modality} model, but {own}; write a sweep for each of"
                " the two",
            )
        try:
            family.load_geometry(model)
        except ValueError as error:
            raise document.error(path, str(error)) from None

    def fields(
        self, document: Document, path: KeyPath, written: Mapping[str, Any], *, several: bool
    ) -> dict[str, list[Choice]]:
        """The condition fields of the mapping at `path`, each with its values: one, or with
        `several` as many as an axis has.
        """
        result: dict[str, list[Choice]] = {}
        for key, value in written.items():
            here = (*path, key)
            name = SHORTHANDS.get(key, key)
            if name not in CONDITION_FIELDS:
                raise document.unknown_key(here, (*fields_of(self.modality), *SHORTHANDS))
            if name not in fields_of(self.modality):
                raise document.error(here, of_other_modality(self.modality), at_key=True)
            if name in result:
                raise document.error(
                    here, f"sets `{name}` a second time; keep one of the two", at_key=True
                )
            if name != THREADS_KEY and name in THREAD_FIELDS:
                raise document.error(
                    here,
                    f"is written {THREADS_KEY}: {{count: cores - 1, wait: active, pin: true}}",
                    at_key=True,
                )
            annotation = (
                Threads | int if name == THREADS_KEY else Condition.model_fields[name].annotation
            )
            if several:
                choices = expand_values(document, here, value, annotation)
            elif isinstance(value, list) or (
                isinstance(value, dict) and not takes(annotation, BaseModel)
            ):
                raise document.error(here, "needs a single value here; several go under `axes`")
            else:
                choices = [Choice(value, here)]
            if name == THREADS_KEY:
                parts = [thread_fields(document, choice.path, choice.value) for choice in choices]
                result |= {
                    field: [
                        self.field(document, field, Choice(part[field], choice.path))
                        for part, choice in zip(parts, choices, strict=True)
                    ]
                    for field in THREAD_FIELDS
                }
            else:
                result[name] = [
                    self.field(document, name, _weights(document, key, choice))
                    for choice in choices
                ]
        return result


def written_size(document: Document, name: str, choice: Choice) -> Any:
    """The value of a field, a mapping of height and width checked. Raises `SweepError`."""
    if name != "image_size" or not isinstance(choice.value, dict):
        return choice.value
    return validated(document, choice.path, Rectangle, choice.value)


def of_other_modality(modality: Modality) -> str:
    """What is wrong with a key or a kind that is not for models of this modality."""
    other = next(kind.modality for kind in KINDS.values() if kind.modality != modality)
    return f"is for {other} models, and this sweep is about {modality} models; leave it out"


def condition_of_kind(
    document: Document,
    kind: Kind,
    condition: Condition,
    models: ModelFamily,
    paths: Mapping[str, KeyPath],
) -> Condition:
    """`condition` as a question of this kind has it: with data to evaluate, and without what its
    answers do not depend on.

    Conditions that are equal for the kind merge so. `paths` holds the place of each field that is
    written. Raises `SweepError` for weights or data that cannot be.
    """
    if (problem := models.weights_problem(condition.model, condition.weights)) is not None:
        raise document.error(paths["weights"], problem)
    values: dict[str, Any] = {name: getattr(condition, name) for name in condition_fields(kind)}
    if "corruption" in values:
        if values["corruption"] is not None and values["severity"] is None:
            raise document.error(paths["corruption"], "needs a `severity` from 1 to 5 beside it")
        if "severity" in paths and "corruption" not in paths:
            raise document.error(
                paths["severity"], "needs a `corruption` beside it, such as gaussian_noise"
            )
    if values.get("corruption") is None:
        values.pop("severity", None)  # without a corruption it has no meaning
    if "data" in values and values["data"] is None:
        values["data"] = models.default_data(condition.model)
        if values["data"] is None:
            forms = " or ".join(
                f"`data: {form}`" for form in models.data_forms if form.endswith(PLACEHOLDER)
            )
            raise document.error(
                ("jobs", KINDS[kind].section),
                f"needs images for {condition.model}; write {forms} under `defaults`",
            )
    return Condition.model_construct(**values)


def check_jobs(document: Document, kinds: Iterable[Kind], modality: Modality) -> None:
    """Refuse kinds of jobs that are not for models of this modality. Raises `SweepError`."""
    for kind in kinds:
        if (other := KINDS[kind].modality) != modality:
            right = " or ".join(own.section for own in kinds_of(modality))
            problem = (
                f"is for {other} models, and this sweep is about {modality} models; request {right}"
            )
            raise document.error(("jobs", KINDS[kind].section), problem, at_key=True)


def check_fields(
    document: Document,
    condition: Condition,
    kinds: Collection[Kind],
    modality: Modality,
    paths: Mapping[str, KeyPath],
) -> None:
    """Refuse a field that no kind of the sweep depends on, and `exclusive: device` without a GPU.
    Raises `SweepError`.
    """
    used = {name for kind in kinds for name in condition_fields(kind)}
    for name, path in paths.items():
        if name in (*DATA_FIELDS, *WORKLOAD_FIELDS, "exclusive", "inputs") and name not in used:
            lacking = next(
                kind.section for kind in kinds_of(modality) if name in condition_fields(kind.name)
            )
            problem = (
                f"is for {lacking} jobs, and this sweep has none; add `{lacking}: {{}}` under"
                " `jobs`, or leave it out"
            )
            raise document.error(path, problem, at_key=True)
    if condition.exclusive is not None and condition.device != "cuda":
        problem = (
            f"device is for GPUs, and here the device is {condition.device}; write {WHOLE_NODE}, or"
            " `device: cuda` beside it"
        )
        raise document.error(paths["exclusive"], problem)


def _weights(document: Document, key: str, choice: Choice) -> Choice:
    if key == "pretrained":
        if not isinstance(choice.value, bool):
            raise document.error(
                choice.path, "needs true or false; a checkpoint's path goes under `checkpoint`"
            )
        return choice._replace(value="pretrained" if choice.value else "random")
    if key == "checkpoint" and choice.value in NAMED_WEIGHTS:
        raise document.error(
            choice.path,
            f"needs the path of a file; for {choice.value} weights write `weights: {choice.value}`",
        )
    return choice
