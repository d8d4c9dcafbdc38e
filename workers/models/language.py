"""Causal language models of transformers: a condition's model with its tokenizer and geometry,
loaded once.
"""

import contextlib
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from huggingface_hub import constants, hf_hub_download
from huggingface_hub.errors import (
    EntryNotFoundError,
    GatedRepoError,
    LocalEntryNotFoundError,
    RepositoryNotFoundError,
)
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.cache_utils import Cache, DynamicCache
from transformers.utils import logging as noise

from sweeps.geometry.llm_geometry import (
    CONFIGS,
    TRAINED_LANGUAGE,
    USUAL_NAMES,
    content,
    from_config,
    geometry,
    is_folder,
    is_hub,
)
from sweeps.model.condition import QUANTISED, Condition
from sweeps.model.identity import digest
from sweeps.model.method import LanguageNetwork
from workers.data import tokenization
from workers.data.tokenization import FastTokenizer
from workers.errors import Unsupported
from workers.models.architectures import layers_of
from workers.models.llama_cpp import LlamaCpp
from workers.models.quantised import COUNTED, quantise
from workers.models.share_weights import clone_shared, load_shared, loaded_dtype
from workers.training import recipes, trained

WEIGHT_PRODUCTS = ("aten.mm", "aten.addmm", *map(str, COUNTED))
"""Products with a matrix of weights; those of attention are products of batches."""
FIRST_COUNTED = 2
"""The first position that is counted: some layers process a sequence's first token like a
prompt."""


class MacCounter:
    """MACs of a token at each position: matrix products counted by torch, with eager attention and
    eager experts.

    Between the edges of sliding windows the cost is linear in the position, so that a few tokens
    suffice. Attention over a prompt counts as if its tokens were read one by one (causal), with one
    head product, as in `LanguageNetwork.macs`. Latent attention (MLA) keeps latents and expands
    those of all tokens so far whenever the model runs: a prompt's once, and each decoded token's
    with all before it.
    """

    def __init__(self, model: Any) -> None:
        self.model = model
        head = self.model.get_output_embeddings()
        self.head_macs: int = 0 if head is None else head.in_features * head.out_features
        self._at: dict[int, tuple[int, int]] = {}

    def macs(self, prompt: int, decoded: int) -> int:
        """MACs of one sequence: `prompt` tokens at once, only the last through the head, then
        `decoded` tokens one by one.
        """
        last = max(prompt + decoded, 1)
        places = sorted(
            {place for place in self._windows() if place < last}
            | {FIRST_COUNTED, FIRST_COUNTED + 1, max(last, FIRST_COUNTED + 1)}
        )
        found = np.array([self._token(place) for place in places])
        # of the token at position 1, then at each of `places`
        costs_P2 = np.vstack((2 * found[0] - found[1], found))
        attention, weights = (
            np.interp(np.arange(1, last + 1), [1, *places], costs) for costs in costs_P2.T
        )
        weights[:prompt] = self.weights_read
        return round(float(attention.sum() + weights.sum())) - (last - 1 - decoded) * self.head_macs

    @property
    def weights_read(self) -> int:
        """Weights that one decoded token is multiplied with, the head's included; each once,
        however many latents it expands.
        """
        return 2 * self._token(FIRST_COUNTED)[1] - self._token(FIRST_COUNTED + 1)[1]

    def _windows(self) -> set[int]:
        layers = DynamicCache(config=self.model.config).layers
        return {
            int(window)
            for layer in layers
            if (window := getattr(layer, "sliding_window", None)) and window > FIRST_COUNTED
        }

    def _token(self, place: int) -> tuple[int, int]:
        """MACs of the token at position `place` (from 1 on): those of attention, and those with
        weights, the head's included.
        """
        if place not in self._at:
            model: Any = clone_shared(self.model)
            cache = DynamicCache(config=model.config)
            tokens_BT = torch.zeros((1, place), dtype=torch.long, device=model.device)
            with torch.inference_mode():
                model(input_ids=tokens_BT[:, :-1], cache=cache, use_cache=True, logits_to_keep=1)
                if model._can_set_attn_implementation():
                    model.set_attn_implementation("eager")
                model.set_experts_implementation("eager")
                with FlopCounterMode(display=False, custom_mapping=COUNTED) as counter:
                    model(
                        input_ids=tokens_BT[:, -1:], cache=cache, use_cache=True, logits_to_keep=1
                    )
            by_product = {
                str(product): flops // 2
                for product, flops in counter.get_flop_counts()["Global"].items()
            }
            weights = sum(by_product.get(product, 0) for product in WEIGHT_PRODUCTS)
            self._at[place] = sum(by_product.values()) - weights, weights
        return self._at[place]


EXPLANATIONS: tuple[tuple[type[Exception], str], ...] = (
    (
        GatedRepoError,
        "the model is gated: accept the terms on its page, and set HF_TOKEN where the workers run",
    ),
    (
        RepositoryNotFoundError,
        (
            "the hub has no such model, or it is private: correct the name, or set HF_TOKEN where"
            " the workers run"
        ),
    ),
    (
        LocalEntryNotFoundError,
        (
            "it is not complete in {cache}, and the hub cannot be reached: connect the workers to a"
            " network, set HF_HOME to the download, or name a folder (./DIR) with the model"
        ),
    ),
    (EntryNotFoundError, "config.json or tokenizer.json is missing"),
)
"""The first that fits counts: some of the hub's errors are subclasses of others."""


@contextlib.contextmanager
def explained_errors(name: str) -> Iterator[None]:
    """Turn errors of the hub for the model `name` into an `OSError` whose message names the
    remedy.
    """
    try:
        yield
    except OSError as error:
        causes = (error, error.__cause__)  # transformers raises a bare OSError from the hub's
        found = (
            text for kind, text in EXPLANATIONS if any(isinstance(each, kind) for each in causes)
        )
        message = first_line(error)
        if "safetensors" in message:
            message = (
                "there are no weights (*.safetensors) in the model or its download; pickled weights"
                " are not read"
            )
        raise OSError(
            f"{name}: {next(found, message).replace('{cache}', str(constants.HF_HUB_CACHE))}"
        ) from error


def first_line(error: Exception) -> str:
    """The first line of an error's message."""
    return str(error).strip().partition("\n")[0]


Inputs = Mapping[str, Tensor]
"""Inputs of a transformers model: `input_ids`, and for padded sequences `attention_mask` and
`position_ids`."""


class Tokenizer(Protocol):
    """Text to tokens and back; `decode(encode(text)) == text` for any text."""

    @property
    def size(self) -> int:
        """Ids of tokens, unused ones included: all are below it."""

    def encode(self, text: str) -> list[int]:
        """The tokens of a text, without any special token."""

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of some tokens."""


class DecodeSteps(Protocol):
    """Decodes one more token of each sequence over a cache that it keeps."""

    @property
    def captured_bytes(self) -> int:
        """Memory of a CUDA graph that the allocator's counters do not show; 0 without one."""

    def cache(self, batch: int, tokens: int) -> Cache:
        """The empty cache for `batch` sequences of `tokens` tokens."""

    def __call__(self, inputs: Inputs) -> Tensor:
        """The logits [B, V] after one more token of each sequence."""


class Counters(Protocol):
    """What a method counts while the model runs, as evidence that its own path ran (kernel calls,
    achieved sparsity).
    """

    def reset(self) -> None:
        """Set the counts to 0; called before every run of the workload."""

    def metrics(self) -> Mapping[str, float]:
        """The counts since `reset`, by name of the metric."""


@dataclass
class Scoring:
    """Shared by a model and its arms: during a forward that scores a text, the index of the first
    token that counts as decoded.
    """

    decoded_from: int | None = None


@dataclass(frozen=True)
class LanguageModel:
    """A causal language model with its tokenizer, geometry and counters; run it under
    `torch.inference_mode()`.
    """

    model: Any
    """A `transformers.PreTrainedModel` in evaluation mode, on its device."""
    tokenizer: Tokenizer
    network: LanguageNetwork
    weights_hash: str
    """Hash of the source of weights and tokenizer: the key under which artifacts made for them are
    cached."""
    counters: tuple[Counters, ...] = ()
    """What each method counts while the model runs."""
    skipped: Callable[[], float] | None = None
    """MACs that the methods left out since the counters were reset; `None` where they are not
    counted and the promise applies."""
    bos_ids: tuple[int, ...] = ()
    """Special tokens before every text, as in the model's training (often one that begins a
    sequence)."""
    implementation: str | None = None
    """The implementation that runs where the model does not have the requested one (see
    `ArmOutcome.implementation`)."""
    steps: DecodeSteps | None = None
    """Decodes tokens after the first where decoding is compiled or captured, else `None`."""
    engine: LlamaCpp | None = None
    """Decodes in place of the model where another engine runs it, else `None`."""
    counter: MacCounter | None = None
    """Counts the MACs of a model whose architecture is not described, else `None`."""
    scoring: Scoring = field(default_factory=Scoring)

    def macs(self, prompt: int, decoded: int) -> int:
        """MACs of one sequence without any method (see `LanguageNetwork.macs`), computed from the
        sizes, or counted.
        """
        return (self.counter or self.network).macs(prompt, decoded)

    @property
    def weights_read(self) -> int:
        """Weights that one decoded token is multiplied with: those of the layers (of experts the
        selected ones) and the head.
        """
        return self.counter.weights_read if self.counter else self.network.token_macs

    def reset_counters(self) -> None:
        """Set all counts to 0, before a run of the workload."""
        for each in self.counters:
            each.reset()

    def scored_logits(self, tokens_BT: Tensor, decoded_from: int, *, keep: int = 0) -> Tensor:
        """Logits [B, keep, V] (0: of all T tokens) of one forward, whose tokens from `decoded_from`
        on stand for decoded ones.

        Quality is computed on a whole window at once, although decoding runs token by token. A
        method treats these tokens like decoded ones (see `Scoring`).
        """
        self.scoring.decoded_from = decoded_from
        try:
            logits: Tensor = self.model(tokens_BT, use_cache=False, logits_to_keep=keep).logits
        finally:
            self.scoring.decoded_from = None
        return logits


@cache
def signature(model: Any) -> frozenset[str]:
    """Parameter names of a model class' forward."""
    return frozenset(inspect.signature(model.forward).parameters)


def last_logits(model: Any, inputs: Inputs, cache: Any) -> Tensor:
    """The logits [B, V] after the last token of each sequence; keys and values go into the
    cache.
    """
    logits_BV: Tensor = model(**inputs, cache=cache, use_cache=True, logits_to_keep=1).logits[:, -1]
    return logits_BV


def shared_language(condition: Condition, content_hashes: Mapping[str, str]) -> LanguageModel:
    """The condition's model in its dtype, kept in memory for later arms and jobs. Raises what
    `load_language` does.
    """
    return load_shared(load_language, condition, content_hashes, dtype=condition.dtype)


def load_language(condition: Condition) -> LanguageModel:
    """The model that `condition` names: a size of `CONFIGS`, a folder (absolute, or beginning with
    a dot), or a model of the hub.

    Sizes have random (seeded) or trained weights and a tokenizer trained on docstrings. Raises
    `Unsupported` with the reason, and `OSError` where the hub cannot be reached.
    """
    if condition.dtype == "autocast-float16":
        raise Unsupported(
            f"dtype {condition.dtype}: a language model runs in the dtype of its weights; write"
            " float16 or bfloat16"
        )
    noise.set_verbosity_error()  # type: ignore[no-untyped-call]
    noise.disable_progress_bar()  # type: ignore[no-untyped-call]
    # A model created in inference mode could not be fine-tuned by a method.
    with torch.inference_mode(mode=False):
        if condition.model in CONFIGS:
            return _known(condition)
        if is_folder(condition.model):
            return _folder(Path(condition.model), condition)
        if is_hub(condition.model):
            return _hub(condition)
        raise Unsupported(
            f"{condition.model} is not a language model: write a folder (./DIR), a hub's ORG/NAME,"
            f" or {', '.join(CONFIGS)}"
        )


def _known(condition: Condition) -> LanguageModel:
    name, config = condition.model, dict(CONFIGS[condition.model])
    network = from_config(name, config)
    if condition.weights == recipes.TRAINED:
        if name not in TRAINED_LANGUAGE:
            raise Unsupported(
                f"weights trained: there is a recipe for {' and '.join(TRAINED_LANGUAGE)} only"
            )
        trained_model = _folder(trained(name), condition)
        return replace(
            trained_model, network=network, weights_hash=recipes.recipe_for(name).hash, counter=None
        )
    if condition.weights != "random":
        raise Unsupported(
            f"weights {condition.weights}: {name} is a size with random weights; for others name a"
            " folder or a hub's model"
        )
    device = torch.device(condition.device)
    devices = [torch.cuda.current_device()] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices), device:
        torch.manual_seed(condition.seed)
        model = AutoModelForCausalLM.from_config(
            AutoConfig.for_model(**config), dtype=torch.float32
        )  # type: ignore[no-untyped-call]
    tokenizer = tokenization.trained_tokenizer(network.vocabulary)
    recipe = tokenization.tokenizer_recipe(network.vocabulary)
    weights_hash = digest({"config": config, "seed": condition.seed, "tokenizer": recipe})
    return LanguageModel(_ready(model, condition), tokenizer, network, weights_hash)


def _folder(folder: Path, condition: Condition) -> LanguageModel:
    try:
        geometry(str(folder))
    except ValueError as error:
        raise Unsupported(f"model: {error}") from error
    tokenizer = tokenization.read_tokenizer(folder / tokenization.TOKENIZER_FILE)
    return _pretrained(
        str(folder), condition, tokenizer, content(str(folder)), local_files_only=True
    )


def _hub(condition: Condition) -> LanguageModel:
    """A model of the hub: the downloaded revision where it is complete, so that results stay
    comparable, else the newest one.
    """
    name = condition.model

    def downloaded(*, local_files_only: bool) -> LanguageModel:
        fetch = partial(hf_hub_download, name, local_files_only=local_files_only)
        tokenizer = tokenization.read_tokenizer(Path(fetch(tokenization.TOKENIZER_FILE)))
        # a revision's files are in a folder named like its commit
        commit = Path(fetch("config.json")).parent.name
        weights_hash = digest({"hub": name, "commit": commit})
        options = {"revision": commit, "local_files_only": local_files_only}
        return _pretrained(name, condition, tokenizer, weights_hash, **options)

    with explained_errors(name):
        try:
            return downloaded(local_files_only=True)
        except OSError:
            return downloaded(local_files_only=False)


def _pretrained(
    name: str, condition: Condition, tokenizer: FastTokenizer, weights_hash: str, **options: Any
) -> LanguageModel:
    """A saved model, read by transformers with `options`. Raises `Unsupported` with a message of
    one line.
    """
    options["trust_remote_code"] = False
    try:
        network = from_config(
            name, spelled_out(AutoConfig.from_pretrained(name, **options)), complete=True
        )
    except (KeyError, TypeError, ValueError) as error:
        raise Unsupported(f"model: {first_line(error)}") from error
    if tokenizer.size > network.vocabulary:
        raise Unsupported(
            f"model: {name}: the tokenizer has a token {tokenizer.size - 1}, and the model only"
            f" {network.vocabulary} tokens"
        )
    read: Any = partial(
        AutoModelForCausalLM.from_pretrained, output_loading_info=True, ignore_mismatched_sizes=True
    )
    try:
        model, found = read(name, dtype=loaded_dtype(condition), use_safetensors=True, **options)
    except ValueError as error:  # the configuration of no causal model
        raise Unsupported(f"model: {name}: {first_line(error)}") from error
    for weight, held, wanted in sorted(found["mismatched_keys"]):
        shapes = f"{weight} has the shape {[*held]}, and by config.json {[*wanted]}"
        raise Unsupported(
            f"model: {name}: its weights are not those of its config.json: {shapes}; take both from"
            " one save"
        )
    if missing := sorted(found["missing_keys"]):
        raise Unsupported(
            f"model: {name}: {len(missing)} weights are missing, the first being {missing[0]}"
        )
    if "cache" not in signature(model.__class__):
        raise Unsupported(
            f"model: {name}: {type(model).__name__} has no keys and values to cache, which language"
            " jobs need"
        )
    network = _as_held(network, model)
    return LanguageModel(
        _ready(model, condition),
        tokenizer,
        network,
        weights_hash,
        bos_ids=tokenizer.bos_ids,
        counter=None if network.described else MacCounter(model),
    )


def _as_held(network: LanguageNetwork, model: nn.Module) -> LanguageNetwork:
    """The geometry, not described where the layers hold other weights than follow from the sizes:
    a configuration can add some, such as experts that every token is sent to.
    """
    if not network.described:
        return network
    matrices = (
        weight.numel()
        for layer in layers_of(model, network.layers)
        for weight in layer.parameters()
        if weight.dim() > 1
    )
    held, wanted = sum(matrices), network.layers * network.layer_weights
    if held == wanted:
        return network
    why = f"its layers hold {held} weights in matrices, and by its sizes {wanted}"
    return network.model_copy(update={"described": False, "rows_refusal": why})


def spelled_out(config: Any) -> dict[str, Any]:
    """A transformers configuration with its sizes under the usual names too, whatever the
    architecture calls them.
    """
    text, whole = config.get_text_config(decoder=True), config.to_dict()
    sizes = {
        name: value for name in USUAL_NAMES if (value := getattr(text, name, None)) is not None
    }
    return (
        {**whole, **sizes}
        if text is config
        else {**whole, "text_config": {**text.to_dict(), **sizes}}
    )


def _ready(model: nn.Module, condition: Condition) -> nn.Module:
    model = model.to(condition.device, loaded_dtype(condition))
    if condition.dtype in QUANTISED:
        quantise(model, condition.dtype)
    return model.eval().requires_grad_(requires_grad=False)
