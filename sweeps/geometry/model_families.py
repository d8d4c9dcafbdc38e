"""The models of each modality as sweep files name them: defaults, data, weights, and the limits of
their input; and files of the user with models, functions and arms, which are read and not run here.
"""

import ast
import hashlib
import posixpath
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from pydantic import create_model

from sweeps.errors import did_you_mean, unknown_word
from sweeps.geometry.llm_geometry import TRAINED_LANGUAGE, geometry, is_folder, is_hub
from sweeps.geometry.vit_catalogue import published, timm_name
from sweeps.model.condition import (
    EXPORTED,
    INT8,
    LLAMA_CPP,
    QUANTISED,
    Condition,
    Dtype,
    ImageSize,
    Runtime,
    condition_fields,
)
from sweeps.model.identity import digest
from sweeps.model.kinds import Modality, kinds_of
from sweeps.model.method import LanguageNetwork, Network, OwnMethod, Params

_CODE = re.compile(r"([^:]+\.py):([A-Za-z_]\w*)")
INPUTS, TOKENS, CHECK = "inputs", "tokens", "check"
"""What a model's file may hold beside the model: what makes its input, what counts the size of the
work, and how outputs are compared."""
Value = bool | int | float | str


def code_name(text: Any) -> str | None:
    """`dir/file.py:function` in its shortest form; `None` for text of another form."""
    match = _CODE.fullmatch(text) if isinstance(text, str) else None
    return None if match is None else f"{posixpath.normpath(match[1])}:{match[2]}"


def file_of(name: str) -> str:
    """The file of a `code_name`."""
    return name.rpartition(":")[0]


class Signature(NamedTuple):
    """The parameters that a function can be called with by name."""

    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    any: bool = False
    """Whether it takes further ones, or they are not known."""

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.required, *self.optional)


@dataclass(frozen=True)
class OwnFiles:
    """Files of the user beside a sweep, each read once."""

    folder: Path
    read: dict[str, tuple[str, ast.Module]] = field(default_factory=dict)

    def tree(self, file: str) -> ast.Module:
        """Raises `ValueError` with the reason where there is no such file, or no Python in it."""
        if file not in self.read:
            try:
                text = (self.folder / file).read_text(encoding="utf-8")
                self.read[file] = text, ast.parse(text)
            except SyntaxError as error:
                raise ValueError(f"{file}:{error.lineno}: is no Python: {error.msg}") from None
            except OSError as error:
                raise ValueError(f"{file}: cannot be read: {error.strerror}") from None
            except ValueError as error:
                raise ValueError(f"{file}: is no text: {error}") from None
        return self.read[file][1]

    def names(self, file: str) -> dict[str, ast.AST]:
        """What a file defines at its top, by name."""
        found: dict[str, ast.AST] = {}
        for node in self.tree(file).body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                found[node.name] = node
            elif isinstance(node, ast.Import | ast.ImportFrom):
                found |= {(each.asname or each.name).partition(".")[0]: node for each in node.names}
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                parts = (part for target in targets for part in ast.walk(target))
                found |= {part.id: node for part in parts if isinstance(part, ast.Name)}
        return found

    def has(self, file: str, function: str) -> bool:
        return function in self.names(file)

    def signature(self, name: str, given: int = 0) -> Signature:
        """The parameters of a function by its `code_name`, behind so many that it is `given` by
        place. Raises `ValueError` where there is none.
        """
        file, _, function = name.rpartition(":")
        known = self.names(file)
        if function not in known:
            callables = [
                each
                for each, node in known.items()
                if isinstance(node, ast.FunctionDef | ast.ClassDef)
            ]
            raise ValueError(f"{file}:1: has no {function!r}{did_you_mean(function, callables)}")
        node = known[function]
        if isinstance(node, ast.ClassDef):
            inits = [each for each in node.body if getattr(each, "name", "") == "__init__"]
            node, given = (inits[0] if inits else node), given + 1
        return _parameters(node.args, given) if isinstance(node, ast.FunctionDef) else _UNKNOWN

    def sources(self, name: str) -> dict[str, str]:
        """The text of the file of a `code_name`, and of those beside it that it imports, by their
        paths from the sweep.
        """
        found: dict[str, str] = {}
        left = [file_of(name)]
        root = posixpath.dirname(left[0])
        while left:
            file = left.pop()
            if file not in found:
                tree = self.tree(file)
                found[file] = self.read[file][0]
                left += [
                    path
                    for module in imported(tree, posixpath.relpath(file, root or "."))
                    for path in _files_of(module, root)
                    if (self.folder / path).is_file()
                ]
        return dict(sorted(found.items()))


_UNKNOWN = Signature(any=True)


def _parameters(args: ast.arguments, given: int) -> Signature:
    positional = [*args.posonlyargs, *args.args]
    bare = len(positional) - len(args.defaults)
    keyword = list(zip(args.kwonlyargs, args.kw_defaults, strict=True))
    required = [each.arg for each in positional[given:bare]]
    optional = [each.arg for each in positional[max(given, bare) :]]
    for each, default in keyword:
        (required if default is None else optional).append(each.arg)
    return Signature(tuple(required), tuple(optional), args.kwarg is not None)


def imported(tree: ast.Module, file: str) -> Iterator[str]:
    """The modules that a file imports anywhere in it, relative ones by their place from its root,
    where `file` lies; what is imported from a module may be a module too.
    """
    package = posixpath.dirname(file).split("/") if posixpath.dirname(file) else []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            yield from [base] if base else []
            yield from (f"{base}.{each.name}".lstrip(".") for each in node.names)


def _files_of(module: str, root: str) -> Iterator[str]:
    """Where a module and the packages around it would lie."""
    parts = module.split(".")
    for end in range(1, len(parts) + 1):
        path = posixpath.join(root, *parts[:end])
        yield f"{path}.py"
        yield posixpath.join(path, "__init__.py")


def content_of(sources: Mapping[str, str]) -> str:
    """Hash of some files."""
    return digest(
        {file: hashlib.sha256(text.encode()).hexdigest() for file, text in sources.items()}
    )


def own_method(signature: Signature) -> OwnMethod:
    """The method with the parameters of a function behind its first."""
    fields: dict[str, Any] = dict.fromkeys(signature.required, (Value, ...))
    fields |= dict.fromkeys(signature.optional, (Value | None, None))
    return OwnMethod(create_model("Params", __base__=Params, **fields))


TRAINED_ON_DEMAND = ("digits_vit_64", "digits_vit_256", *TRAINED_LANGUAGE)
"""Models whose weights are trained where they are missing (`weights: trained`); no published
weights exist."""
MIN_NEW = 2
"""New tokens of a sequence: the time of those after the first is measured."""
BATCH_AXIS = "batch_size"
"""The field along which curves of all models run where it varies, and which needs no size."""
OWN_RUNTIMES: tuple[Runtime, ...] = ("eager", "compile")
OWN_DTYPES: tuple[Dtype, ...] = ("float32", "bfloat16", "float16")
PLACEHOLDER = "PATH"
"""Stands for a path in a form of `data`."""


class Problem(NamedTuple):
    """What is wrong with the value of a condition field."""

    field: str
    text: str


@dataclass(frozen=True)
class VisionModels:
    """Vision transformers of timm; methods as those of `LanguageModels`."""

    networks: Mapping[str, Network]
    modality: ClassVar[Modality] = "vision"
    data_forms: ClassVar[tuple[str, ...]] = (
        "digits",
        f"imagefolder:{PLACEHOLDER}",
        f"huggingface:{PLACEHOLDER}",
    )

    free_names: ClassVar[tuple[str, ...]] = ()

    def has(self, model: str) -> bool:
        return model in self.networks or timm_name(model) != model

    def full_name(self, model: str) -> str:
        return timm_name(model)

    def load_geometry(self, model: str) -> None:
        """All are in `networks`."""

    def network(self, model: str) -> Network:
        return self.networks[model]

    def completed(self, values: Mapping[str, Any], written: Iterable[str]) -> dict[str, Any]:  # noqa: ARG002 - as of language models
        return {"image_size": self.networks[values["model"]].image_size, **values}

    def default_data(self, model: str) -> str | None:
        return "digits" if model in TRAINED_ON_DEMAND else None

    def weights_problem(self, model: str, weights: str) -> str | None:
        if weights == "pretrained" and model not in TRAINED_ON_DEMAND and not published(model):
            return f"there are no published weights of {model}; write random, or a file's path"
        return _trained_problem(model, weights)

    def tokens(self, values: Mapping[str, Any]) -> int | None:
        network = self.networks[values["model"]]
        try:
            return network.patch_tokens(values.get("image_size") or network.image_size)
        except ValueError:
            return None

    def size_problem(self, condition: Condition, image_size: ImageSize | None) -> Problem | None:
        try:
            self.networks[condition.model].patch_tokens(image_size or condition.pixels)
        except ValueError as error:
            return Problem("image_size", str(error))
        return None

    def runtime_problem(self, condition: Condition, *, timed: bool) -> str | None:
        """Why no model runs with the runtime of an arm's own condition; where nothing is timed it
        is the one that has the dtype.
        """
        runtime = condition.runtime if timed or condition.dtype != "int8" else INT8
        dtypes = EXPORTED.get(runtime, ())
        for own, name in ((condition.dtype, "int4"), (condition.runtime, "llamacpp")):
            if own == name:
                return f"{name} runs language models alone"
        if condition.attention == "triton" and condition.device == "cpu":
            return "attention triton runs on CUDA devices alone"
        if condition.dtype == "int8" and "int8" not in dtypes:
            return f"dtype int8 runs with runtime {INT8} alone"
        if not dtypes or (condition.device == "cpu" and condition.dtype in dtypes):
            return None
        return f"runtime {runtime} runs {', '.join(dtypes)} on a CPU"


@dataclass(frozen=True)
class LanguageModels:
    """Decoder language models: known sizes, local folders, and names of the hub."""

    networks: Mapping[str, LanguageNetwork]
    """The models that are known by name."""
    folders: dict[str, LanguageNetwork | None] = field(default_factory=dict)
    """Models in local folders, by path, once they were read; `None` where only transformers can
    give the sizes."""
    modality: ClassVar[Modality] = "language"
    data_forms: ClassVar[tuple[str, ...]] = ("docs", "topics", f"text:{PLACEHOLDER}")
    """How `data` can be written."""
    free_names: ClassVar[tuple[str, ...]] = ()
    """Axes that a sweep may have beside condition fields."""
    defaults: ClassVar[Mapping[str, str]] = {
        "kv_cache": "dynamic",
        "decoding": "teacher_forcing",
        "data": "docs",
    }

    def has(self, model: str) -> bool:
        return model in self.networks or is_folder(model) or is_hub(model)

    def full_name(self, model: str) -> str:
        """The one name of a model that can be written in several ways."""
        return timm_name(model)

    def load_geometry(self, model: str) -> None:
        """Read the sizes of a model that the user supplies. Raises `ValueError` where it cannot be
        used.
        """
        if model in self.networks or model in self.folders:
            return
        if not is_hub(model):
            self.folders[model] = geometry(model)
        elif Path(model).is_dir():
            raise ValueError(
                f"{model} is a folder here, and may be a name of the hub; write ./{model} for the"
                " folder"
            )

    def network(self, model: str) -> LanguageNetwork | None:
        """The geometry of a model; `None` where only a worker can read it."""
        return self.networks.get(model) or self.folders.get(model)

    def completed(self, values: Mapping[str, Any], written: Iterable[str]) -> dict[str, Any]:
        """The values of a point with its model's defaults added; `written` names the fields that
        the sweep sets.
        """
        found = {**values, **self.defaults}
        if values["model"] not in self.networks and "weights" not in written:
            found["weights"] = "pretrained"
        return found | {name: value for name, value in values.items() if value is not None}

    def default_data(self, model: str) -> str | None:  # noqa: ARG002 - as of vision models
        """The data that the model is evaluated on where the sweep names none; `None` where it must
        name some.
        """
        return self.defaults["data"]

    def weights_problem(self, model: str, weights: str) -> str | None:
        """Why the model cannot have these weights."""
        right = ["random"]
        why = "is known by its sizes alone; for other weights name a folder as the model"
        if is_folder(model) or is_hub(model):
            right, why = ["pretrained"], "has its own weights"
        elif model in TRAINED_LANGUAGE:
            right = ["random", "trained"]
        if weights in right:
            return _trained_problem(model, weights)
        return f"{model} {why}; write {' or '.join(right)}, or leave it out"

    def tokens(self, values: Mapping[str, Any]) -> int | None:
        """Tokens of the input; `None` for an image size that is no multiple of the model's
        patch.
        """
        prompt: int | None = values.get("prompt_tokens")
        return prompt

    def size_problem(self, condition: Condition, image_size: ImageSize | None) -> Problem | None:  # noqa: ARG002 - as of vision models
        """Why the model cannot read this input; `image_size` is that of an arm, where it has its
        own.
        """
        prompt, new = condition.prompt_tokens or 0, condition.new_tokens
        if new is not None and new < MIN_NEW:
            needed = f"is {new}; at least {MIN_NEW} are needed to time one after the first"
            return Problem("new_tokens", needed)
        network = self.network(condition.model)
        if network is None or prompt + (new or 0) <= network.positions:
            return None
        limit = f"more than the {network.positions} positions of {network.name}"
        return Problem(
            "prompt_tokens", f"{prompt} tokens and {new} new ones are {limit}; request fewer"
        )

    def runtime_problem(self, condition: Condition, *, timed: bool) -> str | None:
        """Why no model runs with the attention of an arm's own condition, or, where it is `timed`,
        with its runtime.
        """
        vision = "attention triton" if condition.attention == "triton" else None
        if timed and (condition.runtime in EXPORTED or condition.runtime == "compiled_graph"):
            vision = f"runtime {condition.runtime}"
        if vision is not None:
            return f"{vision} runs vision models alone"
        if condition.dtype in QUANTISED and condition.device != "cpu":
            return f"dtype {condition.dtype} of a language model runs on a CPU alone"
        if not timed:
            return None
        kept = condition.kv_cache or self.defaults["kv_cache"]
        if condition.runtime == "llamacpp":
            return self._llama_cpp_problem(condition, kept)
        if condition.runtime == "eager" or kept == "static":
            return None
        return (
            f"runtime {condition.runtime} runs steps of one shape, and with kv_cache {kept} every"
            " token makes the cache longer; write kv_cache: static"
        )

    def _llama_cpp_problem(self, condition: Condition, kept: str) -> str | None:
        network = self.network(condition.model)
        if network is not None and network.architecture != "llama":
            return (
                f"runtime llamacpp runs models of the architecture llama here, and {network.name}"
                f" is a {network.architecture}"
            )
        if condition.device != "cpu" or condition.dtype not in LLAMA_CPP:
            return f"runtime llamacpp runs {', '.join(LLAMA_CPP)} on a CPU"
        if condition.batch_size > 1 or kept != "dynamic":
            return "runtime llamacpp decodes one sequence, with its own cache"
        return None


@dataclass(frozen=True)
class OwnModels:
    """Models and functions from files of the user; methods as those of `LanguageModels`."""

    files: OwnFiles
    models: Sequence[str] = ()
    """Those that the sweep names."""
    varied: tuple[str, ...] = ()
    """Axes of the sweep."""
    x_axis: str | None = None
    """The one that the sweep names."""
    groups: Sequence[Collection[str]] = ()
    """Axes that move together."""
    modality: ClassVar[Modality] = "own"
    data_forms: ClassVar[tuple[str, ...]] = ()
    networks: ClassVar[Mapping[str, Any]] = {}

    def has(self, model: str) -> bool:
        return code_name(model) is not None

    def full_name(self, model: str) -> str:
        return code_name(model) or model

    def load_geometry(self, model: str) -> None:
        """Raises `ValueError` where the file lacks the model, or what makes its input."""
        self.files.signature(model)
        file = file_of(model)
        if not self.files.has(file, INPUTS):
            raise ValueError(f"{file} has no function {INPUTS!r}, which makes the input of {model}")

    def network(self, model: str) -> None:
        """Unknown before it is run."""

    def method(self, name: str) -> OwnMethod:
        """The arm of a `code_name`. Raises `ValueError` where there is none."""
        return own_method(self.files.signature(name, 1))

    @cached_property
    def provided(self) -> frozenset[str]:
        """What functions of the user may ask for beside the values of free axes."""
        return frozenset(condition_fields(kinds_of(self.modality)[0].name))

    def functions(self, model: str) -> Iterator[Signature]:
        """Those of a model's file that are called to build and run it."""
        file = file_of(model)
        yield self.files.signature(model)
        for name in (INPUTS, TOKENS):
            if self.files.has(file, name):
                yield self.files.signature(f"{file}:{name}")

    @cached_property
    def free_names(self) -> tuple[str, ...]:
        """Axes that the sweep may have beside condition fields: parameters of these functions."""
        names = [
            name
            for model in self.models
            for signature in self.functions(model)
            for name in signature.names
        ]
        return tuple(dict.fromkeys(name for name in names if name not in self.provided))

    def x_axis_of(self, model: str) -> tuple[str, ...] | None:
        """`Condition.x_axis`: what the sweep names with all that moves together with it, else what
        the file counts, else the one free axis that varies; further names in order, so that no
        identity depends on the order of parameters.
        """
        file, free = file_of(model), [name for name in self.varied if name in self.free_names]
        if self.x_axis is None and self.files.has(file, TOKENS):
            counted = self.files.signature(f"{file}:{TOKENS}").names
            return (TOKENS, *sorted(set(self.free_names) & set(counted)))
        if (first := self.x_axis or next(iter(free), None)) in (None, BATCH_AXIS):
            return None
        tied = (name for group in self.groups if first in group for name in group)
        return first, *sorted(set(free) & set(tied) - {first})

    @property
    def refined_axis(self) -> str:
        """The axis to which sizes between those of a grid can be added; empty without one."""
        along = {self.x_axis_of(model) or () for model in self.models}
        names = [name for name in next(iter(along), ()) if name != TOKENS]
        return names[0] if len(along) == 1 and len(names) == 1 else ""

    def x_axis_problem(self) -> str | None:
        """Why it is not clear along what curves run."""
        free = [name for name in self.varied if name in self.free_names]
        if self.x_axis == BATCH_AXIS and BATCH_AXIS in self.varied:
            return None
        if self.x_axis is not None and self.x_axis not in self.free_names:
            return unknown_word("axis", self.x_axis, list(free or self.free_names))
        for model in self.models:
            along = self.x_axis_of(model) or ()
            if self.x_axis is None and TOKENS not in along and not set(free) <= set(along):
                shown = " and ".join(free)
                return f"{shown} vary, and one is what curves run along; write x_axis: {free[0]}"
        return None

    def completed(self, values: Mapping[str, Any], written: Iterable[str]) -> dict[str, Any]:  # noqa: ARG002 - as of language models
        free = {name: value for name, value in values.items() if name in self.free_names}
        rest = {name: value for name, value in values.items() if name not in free}
        pairs = tuple(sorted(free.items())) or None
        return {**rest, "values": pairs, "x_axis": self.x_axis_of(values["model"])}

    def default_data(self, model: str) -> None:
        """None is evaluated."""

    def weights_problem(self, model: str, weights: str) -> None:
        """It has its own."""

    def tokens(self, values: Mapping[str, Any]) -> int | None:
        """The size of the work, where that is the value of an axis."""
        x: int | None = dict(values.get("values") or ()).get((values.get("x_axis") or ("",))[0])
        return x

    def size_problem(self, condition: Condition, image_size: ImageSize | None) -> Problem | None:  # noqa: ARG002 - as of vision models
        """What the functions of the file need and the condition lacks."""
        values = dict(condition.values or ())
        known = {*values, *self.provided}
        for signature in self.functions(condition.model):
            if missing := [name for name in signature.required if name not in known]:
                needs = f"needs {missing[0]}, which stands neither under `axes` nor `defaults`"
                return Problem("model", f"{file_of(condition.model)} {needs}")
        if not isinstance(self.tokens(dict(condition)) or 1, int):
            first = (condition.x_axis or ("",))[0]
            return Problem(first, f"{values[first]} is no whole number, as an x axis has")
        return None

    def runtime_problem(self, condition: Condition, *, timed: bool) -> str | None:  # noqa: ARG002 - as of language models
        allowed: Mapping[str, Sequence[str]] = {"runtime": OWN_RUNTIMES, "dtype": OWN_DTYPES}
        for name, words in allowed.items():
            if (value := getattr(condition, name)) not in words:
                return f"{name} {value} is not for models of files; write {' or '.join(words)}"
        return None


ModelFamily = VisionModels | LanguageModels | OwnModels
"""The models of one modality."""


def is_data(forms: Iterable[str], text: str) -> bool:
    """Whether `text` is written in one of the forms of `data`."""
    prefixes = [form.removesuffix(PLACEHOLDER) for form in forms if form.endswith(PLACEHOLDER)]
    return text in forms or any(text.startswith(prefix) and text != prefix for prefix in prefixes)


def _trained_problem(model: str, weights: str) -> str | None:
    if weights == "trained" and model not in TRAINED_ON_DEMAND:
        these = " and ".join(TRAINED_ON_DEMAND)
        return f"{model} is not trained on demand ({these} are); write random or a file's path"
    if weights == "pretrained" and model in TRAINED_ON_DEMAND:
        return f"there are no published weights of {model}; write trained, random, or a file's path"
    return None
