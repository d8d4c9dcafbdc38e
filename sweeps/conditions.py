"""The conditions of a sweep: its defaults and axes turned into values of `Condition` fields, each of which knows its line."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, cast, get_args

from pydantic import TypeAdapter, ValidationError

from sweeps.axis import Choice, spread, unknown_word
from sweeps.identity import Noun
from sweeps.job import Condition, Device
from sweeps.method import Method, Network
from sweeps.reading import Document, KeyPath
from sweeps.spec import explained

FIELDS: tuple[str, ...] = tuple(Condition.model_fields)
SHORTHANDS: Mapping[str, str] = {"pretrained": "weights", "checkpoint": "weights"}
"""`pretrained: true` is `weights: pretrained`, and `checkpoint: PATH` is `weights: PATH`."""
NAMED_WEIGHTS = ("random", "pretrained")


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

    def field(self, document: Document, name: str, choice: Choice) -> Choice:
        """`choice` as a checked value of the condition field `name`. Raises `SweepError`."""
        value, path = choice
        if name == "device" and value == "auto":
            return Choice(self.auto, path)
        if name == "model" and isinstance(value, str) and value not in self.networks:
            raise document.error(path, unknown_word("model", value, list(self.networks)))
        try:
            return Choice(_ADAPTERS[name].validate_python(value, strict=True), path)
        except ValidationError as error:
            raise explained(document, error, None, lambda _: path) from None

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


def _weights(document: Document, key: str, choice: Choice) -> Choice:
    if key == "pretrained":
        if not isinstance(choice.value, bool):
            raise document.error(choice.path, "needs true or false; a checkpoint's path goes under `checkpoint`")
        return choice._replace(value="pretrained" if choice.value else "random")
    if key == "checkpoint" and choice.value in NAMED_WEIGHTS:
        raise document.error(choice.path, f"needs the path of a file; for {choice.value} weights write `weights: {choice.value}`")
    return choice
