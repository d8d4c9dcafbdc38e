"""The conditions of a sweep: its defaults and axes turned into values of `Condition` fields, each of which knows its line."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, cast, get_args

from pydantic import TypeAdapter, ValidationError

from sweeps.axis import Choice, spread, unknown_word
from sweeps.block import of_kind
from sweeps.identity import Noun
from sweeps.job import KIND_FIELDS, Condition, Device, Kind
from sweeps.method import Method, Network
from sweeps.reading import Document, KeyPath
from sweeps.spec import explained

FIELDS: tuple[str, ...] = tuple(Condition.model_fields)
SHORTHANDS: Mapping[str, str] = {"pretrained": "weights", "checkpoint": "weights"}
"""`pretrained: true` is `weights: pretrained`, and `checkpoint: PATH` is `weights: PATH`."""
NAMED_WEIGHTS = ("random", "pretrained", "trained")
TRAINED_ON_DEMAND = ("digits_vit_64", "digits_vit_256")
"""Models whose weights are trained where they are missing (`weights: trained`) and published by nobody."""
DATA_FIELDS = ("data", "corruption", "severity")
DIGITS = "digits"
FOLDERS = ("imagefolder:", "huggingface:")
"""Forms of `data` that name a path."""


def adapters(noun: type[Noun]) -> dict[str, TypeAdapter[Any]]:
    """One strict validator per field of `noun`."""
    return {name: TypeAdapter(cast(Any, Annotated[cast(Any, info.annotation), info])) for name, info in noun.model_fields.items()}


def takes_integers(annotation: Any) -> bool:
    """Whether numbers of this type are whole."""
    types = {annotation, *get_args(annotation)}
    return int in types and float not in types


_ADAPTERS = adapters(Condition)
_WHOLE = {name: takes_integers(info.annotation) for name, info in Condition.model_fields.items()}


@dataclass(frozen=True)
class Vocabulary:
    """The names that a sweep may use, and the device that `auto` stands for."""

    methods: Mapping[str, Method]
    networks: Mapping[str, Network]
    auto: Device
    corruptions: Collection[str] = ()
    """Corruptions that exist; empty where that is not known."""

    def field(self, document: Document, name: str, choice: Choice) -> Choice:
        """`choice` as a checked value of the condition field `name`. Raises `SweepError`."""
        value, path = choice
        if name == "device" and value == "auto":
            return Choice(self.auto, path)
        if name == "model" and isinstance(value, str) and value not in self.networks:
            raise document.error(path, unknown_word("model", value, list(self.networks)))
        if name == "corruption" and isinstance(value, str) and value not in (self.corruptions or (value,)):
            raise document.error(path, unknown_word("corruption", value, list(self.corruptions)))
        try:
            checked = _ADAPTERS[name].validate_python(value, strict=True)
        except ValidationError as error:
            raise explained(document, error, None, lambda _: path) from None
        if name == "data" and checked is not None and not _names_data(checked):
            raise document.error(path, f"{value!r} is no data; write {DIGITS}, imagefolder:PATH or huggingface:PATH")
        return Choice(checked, path)

    def fields(self, document: Document, path: KeyPath, written: Mapping[str, Any], *, several: bool) -> dict[str, list[Choice]]:
        """The condition fields of the mapping at `path`, each with its values: one, or with `several` as many as an axis has."""
        result: dict[str, list[Choice]] = {}
        for key, value in written.items():
            here = (*path, key)
            name = SHORTHANDS.get(key, key)
            if name not in FIELDS:
                raise document.unknown_key(here, (*FIELDS, *SHORTHANDS))
            if name in result:
                raise document.error(here, f"sets `{name}` a second time; keep one of the two", at_key=True)
            if several:
                choices = spread(document, here, value, whole=_WHOLE[name])
            elif isinstance(value, list | dict):
                raise document.error(here, "needs a single value here; several go under `axes`")
            else:
                choices = [Choice(value, here)]
            result[name] = [self.field(document, name, _weights(document, key, choice)) for choice in choices]
        return result

    def tokens(self, model: str, image_size: int) -> int | None:
        """Patch tokens, or `None` for a size that is no multiple of the model's patch."""
        network = self.networks[model]
        return None if image_size % network.patch else network.patch_tokens(image_size)


def asked(document: Document, kind: Kind, condition: Condition, paths: Mapping[str, KeyPath]) -> Condition:
    """`condition` as a question of this kind asks it: without what the kind does not depend on, and with data to evaluate.

    `paths` says where its fields are written. Raises `SweepError` for weights or data that cannot be.
    """
    model, weights = condition.model, condition.weights
    if weights == "trained" and model not in TRAINED_ON_DEMAND:
        these = " and ".join(TRAINED_ON_DEMAND)
        problem = f"{model} is not trained on demand ({these} are); write random, pretrained, or a file's path"
        raise document.error(paths["weights"], problem)
    if weights == "pretrained" and model in TRAINED_ON_DEMAND:
        raise document.error(paths["weights"], f"nobody publishes weights of {model}; write trained, random, or a file's path")
    found = of_kind(kind, condition)
    if kind != "accuracy":
        return found
    if found.corruption is not None and found.severity is None:
        raise document.error(paths["corruption"], "needs a `severity` from 1 to 5 beside it")
    if "severity" in paths and "corruption" not in paths:
        raise document.error(paths["severity"], "needs a `corruption` beside it, such as gaussian_noise")
    if found.data is not None:
        return found
    if model not in TRAINED_ON_DEMAND:
        problem = f"needs images for {model}; write `data: imagefolder:PATH` or `data: huggingface:PATH` under `defaults`"
        raise document.error(("jobs", "accuracy"), problem)
    return found.model_copy(update={"data": DIGITS})


def check_kinds(document: Document, kinds: Collection[Kind], paths: Mapping[str, KeyPath]) -> None:
    """Refuse a field that no kind of the sweep depends on. Raises `SweepError`."""
    for name, path in paths.items():
        if not any(name in KIND_FIELDS[kind] for kind in kinds) and name in DATA_FIELDS:
            problem = "is for accuracy jobs, and this sweep asks for none; add `accuracy: {}` under `jobs`, or leave it out"
            raise document.error(path, problem, at_key=True)


def _names_data(text: str) -> bool:
    return text == DIGITS or any(text.startswith(form) and text != form for form in FOLDERS)


def _weights(document: Document, key: str, choice: Choice) -> Choice:
    if key == "pretrained":
        if not isinstance(choice.value, bool):
            raise document.error(choice.path, "needs true or false; a checkpoint's path goes under `checkpoint`")
        return choice._replace(value="pretrained" if choice.value else "random")
    if key == "checkpoint" and choice.value in NAMED_WEIGHTS:
        raise document.error(choice.path, f"needs the path of a file; for {choice.value} weights write `weights: {choice.value}`")
    return choice
