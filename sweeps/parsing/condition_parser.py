"""The conditions of a sweep: its defaults and axes turned into values of `Condition` fields, each of which knows its line."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, cast, get_args

from pydantic import TypeAdapter, ValidationError

from sweeps.geometry.llm_geometry import TRAINED_LANGUAGE, LanguageNetwork, languages
from sweeps.geometry.local_llm import geometry, is_folder, is_hub
from sweeps.geometry.vit_catalogue import HUB, not_known, timm_name
from sweeps.identity import FrozenModel
from sweeps.job import KIND_FIELDS, MODALITY_KINDS, Condition, Device, Exclusive, Kind, Modality
from sweeps.method import AnyMethod, Network
from sweeps.parsing.axis import Choice, spread, unknown_word
from sweeps.parsing.job_blocks import of_kind
from sweeps.parsing.validation import explained
from sweeps.parsing.yaml_reader import Document, KeyPath

FIELDS: tuple[str, ...] = tuple(Condition.model_fields)
SHORTHANDS: Mapping[str, str] = {"pretrained": "weights", "checkpoint": "weights"}
"""`pretrained: true` is `weights: pretrained`, and `checkpoint: PATH` is `weights: PATH`."""
NAMED_WEIGHTS = ("random", "pretrained", "trained")
TRAINED_ON_DEMAND = ("digits_vit_64", "digits_vit_256", *TRAINED_LANGUAGE)
"""Models whose weights are trained where they are missing (`weights: trained`) and published by nobody."""
DATA_FIELDS = ("data", "corruption", "severity")
DIGITS = "digits"
FOLDERS = ("imagefolder:", "huggingface:")
"""Forms of `data` that name a path."""
TEXTS = ("docs", "topics")
TEXT = "text:"
"""The form of `data` that names a text file, or a folder of them."""
WORKLOAD_FIELDS = ("prompt_tokens", "new_tokens", "kv_cache", "decoding")
WHOLE_NODE = "node"
"""How `exclusive` is written where nothing needs to be."""
OF_WORLD: Mapping[Modality, tuple[str, ...]] = {
    world: tuple(name for name in FIELDS if any(name in KIND_FIELDS[kind] for kind in kinds))
    for world, kinds in MODALITY_KINDS.items()
}
"""The condition fields that the models of a world have."""
SPELLED_OUT: Mapping[str, str] = {"kv_cache": "dynamic", "decoding": "teacher_forcing", "data": "docs"}
"""What a language model's condition is where the sweep says nothing."""


def adapters(noun: type[FrozenModel]) -> dict[str, TypeAdapter[Any]]:
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

    methods: Mapping[str, AnyMethod]
    networks: Mapping[str, Network]
    auto: Device
    corruptions: Collection[str] = ()
    """Corruptions that exist; empty where that is not known."""
    languages: Mapping[str, LanguageNetwork] = field(default_factory=languages)
    world: Modality = "vision"
    """That of all models of the sweep."""
    folders: dict[str, LanguageNetwork | None] = field(default_factory=dict)
    """Language models in local directories, by path, once they were looked into; `None`: only transformers knows the sizes."""

    def world_of(self, model: Any) -> Modality | None:
        """The world of a model by its name; `None` for a word that names none."""
        if model in self.networks or str(model).startswith(HUB):
            return "vision"
        return "language" if model in self.languages or is_folder(str(model)) or is_hub(str(model)) else None

    def language(self, model: str) -> LanguageNetwork | None:
        """The geometry of a language model; `None` where only the hub or transformers knows it."""
        return self.languages.get(model) or self.folders.get(model)

    def present_name(self, methods: Iterable[str], key: str) -> str:
        """What a parameter of these methods is called now where the store still has it as `key`; else `key` itself."""
        fields = (field for method in methods for field in self.methods[method].Params.model_fields.items())
        return next((name for name, info in fields if info.serialization_alias == key), key)

    def field(self, document: Document, name: str, choice: Choice) -> Choice:
        """`choice` as a checked value of the condition field `name`. Raises `SweepError`."""
        value, path = choice.value, choice.path
        if name == "device" and value == "auto":
            return Choice(self.auto, path)
        if name == "exclusive" and value == WHOLE_NODE:
            return Choice(None, path)
        if name == "exclusive" and value not in (None, *get_args(Exclusive)):
            raise document.error(path, unknown_word("way to be exclusive", value, [WHOLE_NODE, *get_args(Exclusive)]))
        if name == "model" and isinstance(value, str):
            value = timm_name(value)
            self._check_model(document, value, path)
        if name == "corruption" and isinstance(value, str) and value not in (self.corruptions or (value,)):
            raise document.error(path, unknown_word("corruption", value, list(self.corruptions)))
        try:
            checked = _ADAPTERS[name].validate_python(value, strict=True)
        except ValidationError as error:
            raise explained(document, error, None, lambda _: path) from None
        if name == "data" and checked is not None and not _names_data(self.world, checked):
            right = (*TEXTS, f"{TEXT}PATH") if self.world == "language" else (DIGITS, *(f"{form}PATH" for form in FOLDERS))
            raise document.error(
                path, f"{value!r} is no data for {self.world} models; write {', '.join(right[:-1])} or {right[-1]}"
            )
        return Choice(checked, path)

    def _check_model(self, document: Document, model: str, path: KeyPath) -> None:
        world = self.world_of(model)
        if world is None:
            raise document.error(path, not_known(model, [*self.networks, *self.languages]))
        if world != self.world:
            problem = f"{model} is a {world} model, but this sweep is about {self.world} models; write a sweep for each of the two"
            raise document.error(path, problem)
        if world == "vision" or model in self.languages or model in self.folders:
            return
        if is_hub(model):
            if Path(model).is_dir():
                raise document.error(
                    path, f"{model} is a folder here, and may be a name of the hub; write ./{model} for the folder"
                )
            return
        try:
            self.folders[model] = geometry(model)
        except ValueError as error:
            raise document.error(path, str(error)) from None

    def fields(self, document: Document, path: KeyPath, written: Mapping[str, Any], *, several: bool) -> dict[str, list[Choice]]:
        """The condition fields of the mapping at `path`, each with its values: one, or with `several` as many as an axis has."""
        result: dict[str, list[Choice]] = {}
        for key, value in written.items():
            here = (*path, key)
            name = SHORTHANDS.get(key, key)
            if name not in FIELDS:
                raise document.unknown_key(here, (*OF_WORLD[self.world], *SHORTHANDS))
            if name not in OF_WORLD[self.world]:
                raise document.error(here, of_other_world(self.world), at_key=True)
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

    def tokens(self, values: Mapping[str, Any]) -> int | None:
        """Size of the work: patch tokens, or `None` for a size that is no multiple of the model's patch; tokens of the prompt."""
        if self.world == "language":
            prompt: int | None = values.get("prompt_tokens")
            return prompt
        network = self.networks[values["model"]]
        size = values.get("image_size") or network.image_size
        return None if size % network.patch else network.patch_tokens(size)

    def completed(self, values: Mapping[str, Any], paths: Mapping[str, KeyPath]) -> dict[str, Any]:
        """The values of a point with its model's defaults spelled out; `paths` holds what is written."""
        if self.world == "vision":
            return {"image_size": self.networks[values["model"]].image_size, **values}
        own = values["model"] not in self.languages and "weights" not in paths
        said = {name: value for name, value in values.items() if value is not None}
        return {**values, **SPELLED_OUT, **({"weights": "pretrained"} if own else {}), **said}


def of_other_world(world: Modality) -> str:
    """What is wrong with a key of the other world."""
    other = "vision" if world == "language" else "language"
    return f"is for {other} models, and this sweep is about {world} models; leave it out"


def asked(document: Document, kind: Kind, condition: Condition, paths: Mapping[str, KeyPath]) -> Condition:
    """`condition` as a question of this kind asks it: without what the kind does not depend on, and with data to evaluate.

    `paths` says where its fields are written. Raises `SweepError` for weights or data that cannot be.
    """
    model, weights = condition.model, condition.weights
    if kind in MODALITY_KINDS["language"]:
        _check_language_weights(document, model, weights, paths)
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
        if not any(name in KIND_FIELDS[kind] for kind in kinds) and name in (*DATA_FIELDS, *WORKLOAD_FIELDS, "exclusive"):
            timed = "latency" if "accuracy" in kinds else "generation"
            lacking = timed if name == "exclusive" else "accuracy" if name in DATA_FIELDS else "generation"
            problem = f"is for {lacking} jobs, and this sweep asks for none; add `{lacking}: {{}}` under `jobs`, or leave it out"
            raise document.error(path, problem, at_key=True)


def check_exclusive(document: Document, condition: Condition, paths: Mapping[str, KeyPath]) -> None:
    """Refuse `exclusive: device` where the device is no GPU. Raises `SweepError`."""
    if condition.exclusive is not None and condition.device != "cuda":
        problem = f"device is for GPUs, and here the device is {condition.device}; write {WHOLE_NODE}, or `device: cuda` beside it"
        raise document.error(paths["exclusive"], problem)


def _check_language_weights(document: Document, model: str, weights: str, paths: Mapping[str, KeyPath]) -> None:
    """Raises `SweepError` unless a language model can have these weights."""
    own = is_folder(model) or is_hub(model)
    right = ("pretrained",) if own else ("random", "trained") if model in TRAINED_LANGUAGE else ("random",)
    if weights not in right:
        why = "brings its own weights" if own else "is known by its sizes alone; for other weights name a folder as the model"
        raise document.error(paths["weights"], f"{model} {why}; write {' or '.join(right)}, or leave it out")


def _names_data(world: Modality, text: str) -> bool:
    if world == "language":
        return text in TEXTS or (text.startswith(TEXT) and text != TEXT)
    return text == DIGITS or any(text.startswith(form) and text != form for form in FOLDERS)


def _weights(document: Document, key: str, choice: Choice) -> Choice:
    if key == "pretrained":
        if not isinstance(choice.value, bool):
            raise document.error(choice.path, "needs true or false; a checkpoint's path goes under `checkpoint`")
        return choice._replace(value="pretrained" if choice.value else "random")
    if key == "checkpoint" and choice.value in NAMED_WEIGHTS:
        raise document.error(choice.path, f"needs the path of a file; for {choice.value} weights write `weights: {choice.value}`")
    return choice
