"""The workload of a language model, fixed as text, and the loop that runs it: one cache, the prompt
at once, then token by token.

Shapes: B sequences, T tokens of the longest of them, V tokens of the vocabulary.
"""

import itertools
import statistics
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from sweeps.geometry.model_families import MIN_NEW, LanguageModels
from sweeps.model.condition import Condition, Decoding, KvCache
from sweeps.model.method import LanguageNetwork
from workers.errors import Unsupported
from workers.kv_caches import make_cache
from workers.models.language import Inputs, LanguageModel, Tokenizer, last_logits, signature
from workers.models.runtime import Captured, alone

if TYPE_CHECKING:
    from transformers.cache_utils import Cache


REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
STEP = 7
"""A passage whose tokens do not survive a trip through text begins so many tokens later; no divisor
of any usual length."""
PATIENCE = 2
"""A greedy run ends at the latest after so many times the tokens that the text has in the base
tokenizer."""
Check = Callable[[Tensor], None]


class EnoughStepsError(Exception):
    """Raised by the clock or the check of a run to end it there."""


class Passage(NamedTuple):
    """Text that one sequence reads, and its continuation."""

    prompt: str
    continuation: str


class Run(NamedTuple):
    """One run of the workload: seconds, and what was done in them."""

    seconds: float
    """From text to text: tokenizer, cache, prefill, decoding."""
    encoding_s: float
    """Of it, turning the texts into tokens."""
    decoding_s: float
    """Of it, turning tokens into the texts."""
    ttft_s: float
    """From the prompt's text to the first token."""
    steps_s: tuple[float, ...]
    """Of each token after the first."""
    texts: tuple[str, ...]
    """Decoded text, without the prompt; a greedy run may exceed the requested length by one token's
    characters."""
    prompt_tokens: int
    """In all sequences, special ones that open a text included."""
    decoded: int
    """Tokens in all sequences that the texts are made of; a sequence that ends before the others
    waits."""
    cached: int
    """Tokens that the cache holds at the end of each sequence."""

    @property
    def tokenizer_s(self) -> float:
        return self.encoding_s + self.decoding_s

    @property
    def characters(self) -> int:
        """Characters decoded, in all sequences."""
        return sum(map(len, self.texts))

    @property
    def tpot_s(self) -> float:
        """Seconds per token after the first."""
        return statistics.fmean(self.steps_s)

    @property
    def parts_s(self) -> dict[str, float]:
        """Seconds of its parts, by the names of the metrics that they are: the series of a
        generation job's samples.
        """
        return {
            "ttft": self.ttft_s,
            "tpot": self.tpot_s,
            "time_per_char": self.seconds / self.characters,
        }

    @property
    def work(self) -> tuple[object, ...]:
        """What it did; equal in all runs of an arm."""
        return self.texts, self.decoded, self.cached


def passages(
    documents: Sequence[str], tokenizer: Tokenizer, prompt: int, new: int, batch: int
) -> tuple[Passage, ...]:
    """`batch` passages of the documents, one behind the other, of `prompt` and `new` tokens in the
    base tokenizer.

    They begin again at the first document when the last is used up. A passage is cut where its two
    texts, encoded by themselves, have so many tokens again. Raises `Unsupported` for a text in
    which no such place is found.
    """
    stream = tokenizer.encode("\n\n".join(documents))
    if not stream:
        raise Unsupported("the text has no tokens")
    found: list[Passage] = []
    at = 0
    for _ in range(batch * len(stream) + 1):
        window = list(
            itertools.islice(
                itertools.cycle(stream), at % len(stream), at % len(stream) + prompt + new
            )
        )
        passage = Passage(tokenizer.decode(window[:prompt]), tokenizer.decode(window[prompt:]))
        if REPLACEMENT not in "".join(passage) and [
            len(tokenizer.encode(part)) for part in passage
        ] == [prompt, new]:
            found.append(passage)
            at += prompt + new
            if len(found) == batch:
                return tuple(found)
        else:
            at += STEP
    raise Unsupported(
        f"the text has no {batch} places where {prompt} and {new} tokens can be cut and keep their"
        " number"
    )


def check_positions(network: LanguageNetwork, prompt: int, new: int) -> None:
    """Raises `Unsupported` for a text longer than the model's positions."""
    if prompt + new > network.positions:
        raise Unsupported(
            f"a prompt of {prompt} tokens and {new} new ones are {prompt + new}, and"
            f" {network.name} has {network.positions} positions"
        )


@dataclass(frozen=True)
class Workload:
    """What every arm does: the same texts, each in its own tokens."""

    passages: tuple[Passage, ...]
    decoding: Decoding
    kv_cache: KvCache
    new_tokens: int
    """Of each continuation in the base tokenizer."""

    def run(
        self,
        model: LanguageModel,
        check: Check | None = None,
        keep: Callable[[Any], None] | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> Run:
        """Run it once, under `torch.inference_mode()`.

        `check` gets the logits [B, V] that each token is chosen by, `keep` the cache at the end:
        neither is for timed runs. `clock` is read before the prompt and after each token, so that
        one of a profiler can mark the steps. Raises `Unsupported` for a text longer than the
        model's positions, and what the model raises.
        """
        model.reset_counters()
        started = time.perf_counter()
        tokenizer = model.tokenizer
        prompts = [[*model.bos_ids, *tokenizer.encode(passage.prompt)] for passage in self.passages]
        continuations = [tokenizer.encode(passage.continuation) for passage in self.passages]
        encoded = clock()
        longest, steps = max(map(len, prompts)), max(map(len, continuations))
        check_positions(model.network, longest, steps)
        if steps < MIN_NEW:
            raise Unsupported(
                f"{steps} new tokens: at least {MIN_NEW} are needed to time one after the first"
            )
        if model.engine is not None:
            if clock is not time.perf_counter:
                raise Unsupported("llama.cpp runs outside of torch, whose profiler does not see it")
            return self._run_engine(model, prompts[0], steps, (started, encoded))
        decoder: TeacherForcing | Greedy = TeacherForcing(continuations)
        if self.decoding == "greedy":
            steps = min(PATIENCE * self.new_tokens, model.network.positions - longest)
            decoder = Greedy(tokenizer, [len(passage.continuation) for passage in self.passages])
        room, fixed = longest + steps, model.steps
        cache = (
            make_cache(self.kv_cache, model, len(prompts), room)
            if fixed is None
            else fixed.cache(len(prompts), room)
        )
        positions = "position_ids" in signature(model.model.__class__)
        # With ALiBi a static cache needs a mask as wide as itself, which the bias is made from.
        wide = room if fixed is not None or (self.kv_cache == "static" and not positions) else None
        inputs = ModelInputs(prompts, model.model.device, wide, positions=positions)
        stamps: list[float] = []
        for step in range(steps):
            logits_BV = (
                last_logits(model.model, inputs.tensors, cache)
                if fixed is None or step == 0
                else fixed(inputs.tensors)
            )
            if check is not None:
                check(logits_BV)
            tokens = decoder.next(logits_BV[:, : tokenizer.size].argmax(-1).tolist())
            stamps.append(clock())
            if decoder.done or step + 1 == steps:
                break
            inputs.follow(tokens)
        texts = tuple(map(tokenizer.decode, decoder.tokens))
        ended = time.perf_counter()
        if keep is not None:
            keep(cache)
        return Run(
            seconds=ended - started,
            encoding_s=encoded - started,
            decoding_s=ended - stamps[-1],
            ttft_s=stamps[0] - started,
            steps_s=tuple(later - earlier for earlier, later in itertools.pairwise(stamps)),
            texts=texts,
            prompt_tokens=sum(map(len, prompts)),
            decoded=sum(map(len, decoder.tokens)),
            cached=longest + len(stamps) - 1,
        )

    def _run_engine(
        self, model: LanguageModel, prompt: list[int], steps: int, began: tuple[float, float]
    ) -> Run:
        """The run of another engine, which decodes its own text: as many tokens as the continuation
        has, whose characters count.
        """
        assert model.engine is not None
        tokens, stamps = model.engine.decode(prompt, steps)
        decoded = time.perf_counter()
        model.tokenizer.decode(tokens)
        ended = time.perf_counter()
        return Run(
            seconds=ended - began[0],
            encoding_s=began[1] - began[0],
            decoding_s=ended - decoded,
            ttft_s=stamps[0] - began[0],
            steps_s=tuple(later - earlier for earlier, later in itertools.pairwise(stamps)),
            texts=tuple(passage.continuation for passage in self.passages),
            prompt_tokens=len(prompt),
            decoded=steps,
            cached=len(prompt) + steps - 1,
        )


class TeacherForcing:
    """Every sequence gets its own continuation, and logits are ignored; a shorter one is filled up
    with token 0.
    """

    def __init__(self, tokens: Sequence[Sequence[int]]) -> None:
        self.tokens = [list(each) for each in tokens]
        self.columns = [list(column) for column in itertools.zip_longest(*tokens, fillvalue=0)]
        self.at = 0

    @property
    def done(self) -> bool:
        return self.at == len(self.columns)

    def next(self, most_likely: Sequence[int]) -> list[int]:  # noqa: ARG002 - `Greedy` takes it
        """The next token of each sequence."""
        self.at += 1
        return self.columns[self.at - 1]


class Greedy:
    """Every sequence gets its most likely token, until each has the wanted number of characters in
    two tokens or more.
    """

    def __init__(self, tokenizer: Tokenizer, wanted: Sequence[int]) -> None:
        self.tokenizer, self.wanted = tokenizer, wanted
        self.tokens: list[list[int]] = [[] for _ in wanted]
        self.characters = [0] * len(wanted)

    @property
    def done(self) -> bool:
        return all(map(self._finished, range(len(self.wanted))))

    def next(self, most_likely: Sequence[int]) -> list[int]:
        """The next token of each sequence."""
        for place, token in enumerate(most_likely):
            if self._finished(place):
                continue
            self.tokens[place].append(token)
            self.characters[place] += len(self.tokenizer.decode([token]))
            # each part of one character was counted as a character
            if self.characters[place] >= self.wanted[place]:
                self.characters[place] = len(self.tokenizer.decode(self.tokens[place]))
        return list(most_likely)

    def _finished(self, place: int) -> bool:
        return self.characters[place] >= self.wanted[place] and len(self.tokens[place]) > 1


class ModelInputs:
    """The next inputs of the model: all prompts, the shorter ones padded on the left, then one
    token of each sequence.

    The mask of padded sequences grows with the tokens, or has `room` columns from the start for
    steps of one shape.
    """

    def __init__(
        self,
        prompts: Sequence[Sequence[int]],
        device: torch.device,
        room: int | None = None,
        *,
        positions: bool = True,
    ) -> None:
        """`positions`: the model reads them; one with ALiBi derives them from the mask."""
        longest = max(map(len, prompts))
        self.device, self.room = device, room
        rows = [torch.tensor(prompt, device=device) for prompt in prompts]
        pad = partial(pad_sequence, batch_first=True, padding_side="left")
        self.tensors: dict[str, Tensor] = {"input_ids": pad(rows)}
        self.padded = any(len(prompt) < longest for prompt in prompts)
        if self.padded:  # without padding transformers needs no mask, and its attention is faster
            mask_BT = pad(list(map(torch.ones_like, rows)))
            self.tensors["attention_mask"] = mask_BT
            if positions:
                self.tensors["position_ids"] = (mask_BT.cumsum(-1) - 1).clamp(min=0)
            if room is not None:
                self._widen(room - longest)

    def follow(self, tokens: Sequence[int]) -> None:
        self.tensors["input_ids"] = torch.tensor(tokens, device=self.device)[:, None]
        if self.padded:
            if self.room is None:
                self._widen(1)
            if "position_ids" in self.tensors:
                self.tensors["position_ids"] = self.tensors["position_ids"][:, -1:] + 1

    def _widen(self, columns: int) -> None:
        mask_BT = self.tensors["attention_mask"]
        self.tensors["attention_mask"] = torch.cat(
            (mask_BT, mask_BT.new_ones(len(mask_BT), columns)), 1
        )


def check_runtime(condition: Condition) -> None:
    """Raises `Unsupported` where a language model cannot be decoded by the condition's runtime."""
    runtime = condition.runtime
    if runtime == "cudagraph" and condition.device != "cuda":
        raise Unsupported(
            f"runtime cudagraph needs a CUDA device, and this arm runs on {condition.device}"
        )
    if (reason := LanguageModels({}).runtime_problem(condition, timed=True)) is not None:
        raise Unsupported(reason)


class Steps(ABC):
    """The steps of one arm. What is compiled or captured is bound to the memory of its cache, so
    that every run gets the same one.

    Raises `Unsupported` where a layer's cache changes its shapes all the same, as with a sliding
    window.
    """

    def __init__(self, language_model: LanguageModel) -> None:
        from transformers.cache_utils import StaticLayer

        for index, layer in enumerate(make_cache("static", language_model, 1, 1).layers):
            if type(layer) is not StaticLayer:
                raise Unsupported(
                    f"layer {index} keeps its tokens in a {type(layer).__name__}, whose steps are"
                    " not all of one shape; write runtime: eager"
                )
        self.language_model = language_model
        self.kept: Cache | None = None
        self._size = (0, 0)

    def cache(self, batch: int, tokens: int) -> "Cache":
        """The empty static cache for `batch` sequences of `tokens` tokens: new at first, later the
        same one, set to zero.
        """
        if self.kept is None or self._size != (batch, tokens):
            self.kept, self._size = (
                make_cache("static", self.language_model, batch, tokens),
                (batch, tokens),
            )
        else:
            self.kept.reset()  # type: ignore[no-untyped-call]
        return self.kept

    @property
    def captured_bytes(self) -> int:
        """Memory of a CUDA graph that the allocator's counters do not show; 0 without one."""
        return 0

    @abstractmethod
    def __call__(self, inputs: Inputs) -> Tensor:
        """The logits [B, V] behind one more token of each sequence, over the cache given last."""


class CompiledSteps(Steps):
    """`torch.compile` of the step as one graph, on its first call; `options` go to
    torch.compile.
    """

    def __init__(self, language_model: LanguageModel, **options: Any) -> None:
        super().__init__(language_model)
        step = partial(last_logits, language_model.model)
        self._compiled = torch.compile(alone(step), dynamic=False, fullgraph=True, **options)

    def __call__(self, inputs: Inputs) -> Tensor:
        return self._compiled(inputs, self.kept)


class CapturedSteps(Steps):
    """The step as a CUDA graph, captured on its first call and replayed; the next call overwrites
    the logits.
    """

    def __init__(self, language_model: LanguageModel) -> None:
        super().__init__(language_model)
        self._captured: Captured | None = None
        self._inputs: dict[str, Tensor] = {}
        self._bound: Cache | None = None

    @property
    def captured_bytes(self) -> int:
        return 0 if self._captured is None else self._captured.unseen_bytes

    def __call__(self, inputs: Inputs) -> Tensor:
        if self._captured is None or self._bound is not self.kept:
            self._capture(inputs)
        assert self._captured is not None
        for name, value in inputs.items():
            self._inputs[name].copy_(value)
        return self._captured.replay()

    def _capture(self, inputs: Inputs) -> None:
        cache: Any = self.kept
        self._bound, self._inputs = cache, {name: value.clone() for name, value in inputs.items()}
        lengths = [layer.cumulative_length.clone() for layer in cache.layers]

        def rewind() -> None:
            for layer, length in zip(cache.layers, lengths, strict=True):
                layer.cumulative_length.copy_(length)

        device = self.language_model.model.device
        self._captured = Captured(
            lambda: last_logits(self.language_model.model, self._inputs, cache),
            device,
            after_warmup=rewind,
        )


def decode_steps(runtime: str, language_model: LanguageModel) -> Steps | None:
    """How the runtime decodes one token after another; `None` for eager, which needs nothing.
    Raises `Unsupported`.
    """
    if runtime == "compile":
        return CompiledSteps(language_model)
    return CapturedSteps(language_model) if runtime == "cudagraph" else None
