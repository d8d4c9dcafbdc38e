"""The models of each modality as sweep files name them: defaults, data, weights, and the limits of
their input.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from sweeps.geometry.llm_geometry import TRAINED_LANGUAGE, geometry, is_folder, is_hub
from sweeps.geometry.vit_catalogue import HUB, published
from sweeps.model.condition import EXPORTED, INT8, LLAMA_CPP, QUANTISED, Condition, ImageSize
from sweeps.model.kinds import Modality
from sweeps.model.method import LanguageNetwork, Network

TRAINED_ON_DEMAND = ("digits_vit_64", "digits_vit_256", *TRAINED_LANGUAGE)
"""Models whose weights are trained where they are missing (`weights: trained`); no published
weights exist."""
MIN_NEW = 2
"""New tokens of a sequence: the time of those after the first is measured."""
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

    def has(self, model: str) -> bool:
        return model in self.networks or model.startswith(HUB)

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
    defaults: ClassVar[Mapping[str, str]] = {
        "kv_cache": "dynamic",
        "decoding": "teacher_forcing",
        "data": "docs",
    }

    def has(self, model: str) -> bool:
        return model in self.networks or is_folder(model) or is_hub(model)

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
        """Why no model runs with the runtime of an arm's own condition, where it is `timed`."""
        if condition.dtype in QUANTISED and condition.device != "cpu":
            return f"dtype {condition.dtype} of a language model runs on a CPU alone"
        if not timed:
            return None
        if condition.runtime in EXPORTED:
            return f"runtime {condition.runtime} runs vision models alone"
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


ModelFamily = VisionModels | LanguageModels
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
