"""Likelihood: what a language model makes of a text that follows another, measured in text and not in tokens.

An arm cuts both texts in tokens of its own, the two apart: so the sum over the second one's tokens, its first one included, is the
likelihood of that very text, whatever the tokenizer. One forward stands for decoding it one token at a time
(`workers.models.language.as_decoded`).

Shapes: B texts (always 1), T tokens of the scored text, V tokens of the vocabulary.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from workers.arms.language import finite
from workers.data.scoring_windows import Window
from workers.errors import Unsupported
from workers.models.language import LanguageModel, as_decoded


class Said(NamedTuple):
    """What an arm made of a window."""

    tokens: list[int]
    """All that it read, and how many of them were scored."""
    scored: int
    log_p_TV: Tensor
    """Log probabilities of what comes at each scored place, single precision."""

    @property
    def log_p(self) -> float:
        """Log probability of the scored text in nats."""
        chosen_T1 = torch.tensor(self.tokens[-self.scored :], device=self.log_p_TV.device)[:, None]
        return float(self.log_p_TV.gather(1, chosen_T1).double().sum())

    @property
    def greedy(self) -> bool:
        """Whether the arm finds each scored token most likely at its place."""
        return bool(self.log_p_TV.argmax(-1).tolist() == self.tokens[-self.scored :])


def read(speaker: LanguageModel, window: Window) -> Said:
    """What a model makes of a window; where it is longer than the model's positions, its context is cut from the left.

    Raises `Unsupported` where even the scored part is too long, `NotANumberError`, and what the model raises.
    """
    context, scored = speaker.tokenizer.encode(window.context), speaker.tokenizer.encode(window.scored)
    room = speaker.network.positions - len(scored) - len(speaker.opening)
    if room < 1:
        raise Unsupported(
            f"{len(scored)} tokens are read at once, and {speaker.network.name} has {speaker.network.positions} positions"
        )
    before = [*speaker.opening, *context[-room:]]
    return Said(before + scored, len(scored), predicted(speaker, before, scored))


def predicted(speaker: LanguageModel, before: Sequence[int], scored: Sequence[int]) -> Tensor:
    """Log probabilities [T, V] of what comes at each place of `scored`, when `before` stands before it.

    Where nothing does, not even a token that opens every text, the model has no say on the first place: all of its V tokens are
    taken to be equally likely there. Raises `NotANumberError`, and what the model raises.
    """
    read_from = max(len(before), 1)
    tokens_BT = torch.tensor([[*before, *scored][:-1]], dtype=torch.long, device=speaker.model.device)
    if not tokens_BT.numel():
        return torch.full((len(scored), speaker.network.vocabulary), -math.log(speaker.network.vocabulary))
    with as_decoded(read_from):
        logits_BTV = speaker.model(tokens_BT, use_cache=False, logits_to_keep=len(scored) - (not before)).logits
    finite(logits_BTV)
    log_p_TV: Tensor = logits_BTV[0].float().log_softmax(-1)
    if before:
        return log_p_TV
    even_V = log_p_TV.new_full((1, log_p_TV.shape[1]), -math.log(log_p_TV.shape[1]))
    return torch.cat((even_V, log_p_TV))


def whole(speaker: LanguageModel, text: str) -> float:
    """Log probability of a text in nats with nothing but the opening before it, however long it is.

    What is longer than the model's positions is read in parts, each after the half of the positions before it. Raises
    `NotANumberError`, and what the model raises.
    """
    tokens = speaker.tokenizer.encode(text)
    total, at, room = 0.0, 0, speaker.network.positions - len(speaker.opening)
    while at < len(tokens):
        kept = min(at, room // 2)
        end = min(len(tokens), at + room - kept)
        before = [*speaker.opening, *tokens[at - kept : at]]
        total += Said(tokens[at:end], end - at, predicted(speaker, before, tokens[at:end])).log_p
        at = end
    return total
