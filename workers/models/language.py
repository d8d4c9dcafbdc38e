"""Causal language models of transformers, ready to run: a condition's model loaded once, and each arm built from it."""

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.cache_utils import Cache
from transformers.utils import logging as noise

from sweeps.geometry.llm_geometry import CONFIGS, TRAINED_LANGUAGE, LanguageNetwork, from_config
from sweeps.geometry.local_llm import content, geometry, is_folder, is_hub
from sweeps.identity import canonical, digest
from sweeps.job import Condition, Dtype
from workers.data import tokenization
from workers.data.tokenization import FastTokenizer
from workers.errors import Unsupported
from workers.models import hub
from workers.models.counted_macs import MacCounter
from workers.training import recipes
from workers.training.weights import trained

MODELS_KEPT = 2
DTYPES: Mapping[Dtype, torch.dtype] = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
"""Of weights, activations and cache."""
_decoded_from: ContextVar[int | None] = ContextVar("decoded_from", default=None)


Inputs = Mapping[str, Tensor]
"""What a model of transformers reads: `input_ids`, and for padded sequences `attention_mask` and `position_ids`."""


class Tokenizer(Protocol):
    """Text to tokens and back; `decode(encode(text)) == text` for any text."""

    @property
    def size(self) -> int:
        """Tokens in the vocabulary."""

    def encode(self, text: str) -> list[int]:
        """The tokens of a text, without any special token."""

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of some tokens."""


class DecodeSteps(Protocol):
    """Decodes one more token of each sequence over a cache that it keeps."""

    def cache(self, batch: int, tokens: int) -> Cache:
        """The empty cache for `batch` sequences of `tokens` tokens."""

    def __call__(self, inputs: Inputs) -> Tensor:
        """The logits [B, V] behind one more token of each sequence."""


@dataclass(frozen=True)
class LanguageModel:
    """A causal language model with what belongs to it; run it under `torch.inference_mode()`."""

    model: Any
    """A `transformers.PreTrainedModel` in evaluation mode, on its device."""
    tokenizer: Tokenizer
    network: LanguageNetwork
    origin: str
    """Hash of what the weights and the tokenizer come from: the key under which artifacts made for them are cached."""
    proofs: tuple[Callable[[], Mapping[str, float]], ...] = field(default=())
    """Each gives what a method counted while the model ran (kernel calls, achieved sparsity): proof that its path was taken."""
    skipped: Callable[[], float] | None = None
    """MACs that the methods left out since `prepare` was called, counted; `None` where nothing counts and their promise stands."""
    prepare: tuple[Callable[[], None], ...] = field(default=())
    """Each is called before every run of the workload, such as to reset what is counted."""
    opening: tuple[int, ...] = field(default=())
    """Special tokens that stand before every text, because the model was trained so (often one that begins a sequence)."""
    route: str | None = None
    """The implementation that runs where the model does not have the one that the condition names (see `ArmOutcome.route`)."""
    steps: DecodeSteps | None = None
    """How tokens after the first are decoded where that is compiled or captured, else `None`."""
    counter: MacCounter | None = None
    """Counts the MACs of a model whose sizes do not say them, else `None`."""

    def macs(self, prompt: int, decoded: int) -> int:
        """MACs of one sequence without any method (see `LanguageNetwork.macs`), by the sizes or, the first time, counted."""
        return (self.counter or self.network).macs(prompt, decoded)

    @property
    def weights_read(self) -> int:
        """Weights that one decoded token is multiplied with: those of the layers, of experts the chosen ones, and the head."""
        network = self.network
        return self.counter.weights_read if self.counter else network.layers * network.layer_macs + network.head_macs


@functools.cache
def signature(model: Any) -> frozenset[str]:
    """The names of what a class of models reads."""
    return frozenset(inspect.signature(model.forward).parameters)


def last_logits(model: Any, inputs: Inputs, cache: Any) -> Tensor:
    """The logits [B, V] behind the last token of each sequence; what is read goes into the cache."""
    logits_BV: Tensor = model(**inputs, past_key_values=cache, use_cache=True, logits_to_keep=1).logits[:, -1]
    return logits_BV


@contextlib.contextmanager
def as_decoded(start: int) -> Iterator[None]:
    """Forwards of many tokens in this block stand for decoding one by one from place `start` on.

    Quality is read from a whole window at once, as no kernel for one token runs. A method that treats decoded tokens otherwise than
    prompts asks `decoded_from` and does to the tokens from there on what it does to decoded ones, by whatever means.
    """
    token = _decoded_from.set(start)
    try:
        yield
    finally:
        _decoded_from.reset(token)


def decoded_from() -> int | None:
    """The place from which tokens of this forward count as decoded (see `as_decoded`), or `None` outside such a block."""
    return _decoded_from.get()


def loaded(condition: Condition, contents: Mapping[str, str]) -> LanguageModel:
    """The condition's model in its dtype, kept for the arms and jobs that follow. Raises what `load` does."""
    shared = Condition(
        model=condition.model,
        weights=condition.weights,
        device=condition.device,
        dtype=condition.dtype,
        seed=condition.seed,
    )
    return _loaded(shared, canonical(contents))


def forget() -> None:
    """Keep no model for arms and jobs that follow: an arm holds on to what it shares with it, the rest is freed."""
    _loaded.cache_clear()


def load(condition: Condition, contents: Mapping[str, str] | None = None) -> LanguageModel:  # noqa: ARG001 - part of the contract
    """The model that `condition` names: a size of `CONFIGS`, a folder (absolute, or beginning with a dot), or a hub's name.

    Sizes have random (seeded) or trained weights and a tokenizer of docstrings; folders and hubs bring both. Raises `Unsupported`
    with the reason, and `OSError` for a hub that cannot be reached.
    """
    if condition.dtype not in DTYPES:
        raise Unsupported(f"dtype {condition.dtype}: a language model runs in the type of its weights; write float16 or bfloat16")
    noise.set_verbosity_error()  # type: ignore[no-untyped-call]
    noise.disable_progress_bar()  # type: ignore[no-untyped-call]
    # A model made in inference mode could be trained by no method later.
    with torch.inference_mode(mode=False):
        if condition.model in CONFIGS:
            return _known(condition)
        if is_folder(condition.model):
            return _folder(Path(condition.model), condition)
        if is_hub(condition.model):
            return _hub(condition)
        raise Unsupported(
            f"{condition.model} is no language model: write a folder (./DIR), a hub's ORG/NAME, or {', '.join(CONFIGS)}"
        )


def _known(condition: Condition) -> LanguageModel:
    """A size of `CONFIGS`."""
    name, config = condition.model, dict(CONFIGS[condition.model])
    network = from_config(name, config)
    if condition.weights == recipes.TRAINED:
        if name not in TRAINED_LANGUAGE:
            raise Unsupported(f"weights trained: there is a recipe for {' and '.join(TRAINED_LANGUAGE)} only")
        speaker = _folder(trained(name), condition)
        return replace(speaker, network=network, origin=recipes.recipe_for(name).hash, counter=None)
    if condition.weights != "random":
        raise Unsupported(
            f"weights {condition.weights}: {name} is a size with random weights; for others name a folder or a hub's model"
        )
    device = torch.device(condition.device)
    devices = [torch.cuda.current_device()] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices), device:
        torch.manual_seed(condition.seed)
        model = AutoModelForCausalLM.from_config(_config(config), dtype=torch.float32)  # type: ignore[no-untyped-call]
    tokenizer = tokenization.trained(network.vocabulary)
    origin = digest({"config": config, "seed": condition.seed, "tokenizer": tokenization.recipe(network.vocabulary)})
    return LanguageModel(_ready(model, condition), tokenizer, network, origin)


def _folder(folder: Path, condition: Condition) -> LanguageModel:
    """A model saved with `save_pretrained`."""
    options: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
    try:
        geometry(str(folder))
    except ValueError as error:
        raise Unsupported(f"model: {error}") from error
    tokenizer = tokenization.read(folder / tokenization.FILE)
    return _speaker(str(folder), condition, tokenizer, content(str(folder)), options)


def _hub(condition: Condition) -> LanguageModel:
    """A model of the hub: as it was downloaded here where it is whole, so that it stays the same one, else its newest revision."""
    with hub.explained(condition.model):
        try:
            return _downloaded(condition, local=True)
        except OSError:
            return _downloaded(condition, local=False)


def _downloaded(condition: Condition, *, local: bool) -> LanguageModel:
    name = condition.model
    tokenizer = tokenization.read(hub.fetched(name, tokenization.FILE, local=local))
    commit = hub.fetched(name, "config.json", local=local).parent.name
    options: dict[str, Any] = {"revision": commit, "local_files_only": local, "trust_remote_code": False}
    return _speaker(name, condition, tokenizer, digest({"hub": name, "commit": commit}), options)


def _speaker(name: str, condition: Condition, tokenizer: FastTokenizer, origin: str, options: Mapping[str, Any]) -> LanguageModel:
    """A model that brings its weights, read by transformers with `options`. Raises `Unsupported` in one line."""
    try:
        network = from_config(name, AutoConfig.from_pretrained(name, **options).to_dict(), complete=True)
    except (KeyError, TypeError, ValueError) as error:
        raise Unsupported(f"model: {_line(error)}") from error
    if tokenizer.size > network.vocabulary:
        raise Unsupported(f"model: {name}: the tokenizer has {tokenizer.size} tokens and the model only {network.vocabulary}")
    model = _pretrained(name, condition, **options)
    counter = None if network.described else MacCounter(model)
    return LanguageModel(model, tokenizer, network, origin, opening=tokenizer.opening, counter=counter)


def _pretrained(name: str, condition: Condition, **options: Any) -> Any:
    read: Any = AutoModelForCausalLM.from_pretrained
    try:
        model, found = read(name, dtype=DTYPES[condition.dtype], use_safetensors=True, output_loading_info=True, **options)
    except ValueError as error:  # the configuration of no causal model
        raise Unsupported(f"model: {name}: {_line(error)}") from error
    wrong = sorted(found["missing_keys"]) + sorted(str(each) for each in found["mismatched_keys"])
    if wrong:
        raise Unsupported(f"model: {name}: {len(wrong)} weights are missing or of another shape, the first being {wrong[0]}")
    if "past_key_values" not in signature(model.__class__):
        raise Unsupported(f"model: {name}: {type(model).__name__} has no keys and values, which language jobs keep in a cache")
    return _ready(model, condition)


def _line(error: Exception) -> str:
    """The first line of transformers' message."""
    return str(error).strip().partition("\n")[0]


def _config(config: Mapping[str, Any]) -> Any:
    rest = {key: value for key, value in config.items() if key != "model_type"}
    return AutoConfig.for_model(config["model_type"], **rest)


def _ready(model: nn.Module, condition: Condition) -> nn.Module:
    return model.to(condition.device, DTYPES[condition.dtype]).eval().requires_grad_(requires_grad=False)


@functools.lru_cache(maxsize=MODELS_KEPT)
def _loaded(condition: Condition, contents: str) -> LanguageModel:  # noqa: ARG001 - a folder with other content is another model
    return load(condition)
