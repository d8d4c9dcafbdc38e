"""Log likelihood of a text that follows another, per text and not per token.

An arm encodes the two texts apart: so the sum over the second one's tokens, its first one included,
is the likelihood of that very text, whatever the tokenizer. One forward stands for decoding it one
token at a time (`LanguageModel.scored_logits`).

Shapes: B texts (always 1), T tokens of the scored text, V tokens of the vocabulary.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from workers.arms.prepared import check_finite
from workers.data.scoring_windows import Window
from workers.errors import Unsupported
from workers.models.language import LanguageModel


class ScoredText(NamedTuple):
    """The predictions of an arm for the scored text of a window."""

    tokens: list[int]
    """All that were read, context included; the last `scored` of them are scored."""
    scored: int
    log_p_TV: Tensor
    """Log probabilities at each scored position, single precision."""

    @property
    def log_p(self) -> float:
        """Log probability of the scored text in nats."""
        chosen_T1 = torch.tensor(self.tokens[-self.scored :], device=self.log_p_TV.device)[:, None]
        return float(self.log_p_TV.gather(1, chosen_T1).double().sum())

    @property
    def greedy(self) -> bool:
        """Whether each scored token is the most likely one at its position."""
        return bool(self.log_p_TV.argmax(-1).tolist() == self.tokens[-self.scored :])


def score(model: LanguageModel, window: Window) -> ScoredText:
    """The predictions for a window; where it is longer than the model's positions, its context is
    cut from the left.

    Raises `Unsupported` where even the scored part is too long, `NotANumberError`, and what the
    model raises.
    """
    context, scored = model.tokenizer.encode(window.context), model.tokenizer.encode(window.scored)
    room = model.network.positions - len(scored) - len(model.bos_ids)
    if room < 1:
        raise Unsupported(
            f"{len(scored)} tokens are read at once, and {model.network.name} has"
            f" {model.network.positions} positions"
        )
    before = [*model.bos_ids, *context[-room:]]
    return ScoredText(before + scored, len(scored), log_probabilities(model, before, scored))


def log_probabilities(model: LanguageModel, before: Sequence[int], scored: Sequence[int]) -> Tensor:
    """Log probabilities [T, V] at each position of `scored`, given the tokens `before` it.

    Where there are none, not even one that begins every text, nothing predicts the first position:
    all of its V tokens count as equally likely there. Raises `NotANumberError`, and what the model
    raises.
    """
    tokens_BT = torch.tensor([[*before, *scored][:-1]], dtype=torch.long, device=model.model.device)
    if not tokens_BT.numel():
        return torch.full(
            (len(scored), model.network.vocabulary), -math.log(model.network.vocabulary)
        )
    logits_BTV = model.scored_logits(
        tokens_BT, max(len(before), 1), keep=len(scored) - (not before)
    )
    check_finite(logits_BTV)
    log_p_TV: Tensor = logits_BTV[0].float().log_softmax(-1)
    if before:
        return log_p_TV
    even_V = log_p_TV.new_full((1, log_p_TV.shape[1]), -math.log(log_p_TV.shape[1]))
    return torch.cat((even_V, log_p_TV))


def score_whole(model: LanguageModel, text: str) -> float:
    """Log probability in nats of a text with only the special tokens before it that begin every
    text, however long it is.

    What is longer than the model's positions is read in parts, each after the half of the positions
    before it. Raises `NotANumberError`, and what the model raises.
    """
    tokens = model.tokenizer.encode(text)
    total, at, room = 0.0, 0, model.network.positions - len(model.bos_ids)
    while at < len(tokens):
        context = min(at, room // 2)
        end = min(len(tokens), at + room - context)
        before = [*model.bos_ids, *tokens[at - context : at]]
        total += ScoredText(
            tokens[at:end], end - at, log_probabilities(model, before, tokens[at:end])
        ).log_p
        at = end
    return total
