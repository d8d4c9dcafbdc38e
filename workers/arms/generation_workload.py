"""The workload of a language model, fixed as text, and the loop that runs it: one cache, the prompt
at once, then token by token.

Shapes: B sequences, T tokens of the longest of them, V tokens of the vocabulary.
"""

import itertools
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from sweeps.geometry.model_families import MIN_NEW
from sweeps.model.condition import Decoding, KvCache
from workers.errors import Unsupported
from workers.kv_caches import make_cache
from workers.models.language import LanguageModel, Tokenizer, last_logits, signature

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
STEP = 7
"""A passage whose tokens do not survive a trip through text begins so many tokens later; no divisor
of any usual length."""
PATIENCE = 2
"""A greedy run ends at the latest after so many times the tokens that the text has in the base
tokenizer."""
Check = Callable[[Tensor], None]


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
        if longest + steps > (positions := model.network.positions):
            raise Unsupported(
                f"a prompt of {longest} tokens and {steps} new ones are {longest + steps}, and"
                f" {model.network.name} has {positions} positions"
            )
        if steps < MIN_NEW:
            raise Unsupported(
                f"{steps} new tokens: at least {MIN_NEW} are needed to time one after the first"
            )
        decoder: TeacherForcing | Greedy = TeacherForcing(continuations)
        if self.decoding == "greedy":
            steps = min(PATIENCE * self.new_tokens, positions - longest)
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
        self.tensors: dict[str, Tensor] = {
            "input_ids": torch.tensor(
                [[0] * (longest - len(prompt)) + list(prompt) for prompt in prompts], device=device
            )
        }
        self.padded = any(len(prompt) < longest for prompt in prompts)
        if self.padded:  # without padding transformers needs no mask, and its attention is faster
            mask_BT = torch.tensor(
                [[0] * (longest - len(prompt)) + [1] * len(prompt) for prompt in prompts],
                device=device,
            )
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
