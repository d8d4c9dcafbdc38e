"""Likelihoods against sums by hand: after a context, after nothing, and of a text that is longer than the model's positions."""

import math
from dataclasses import replace
from typing import Any

import pytest
import torch

from tests.workers.tiny_llms import VOCABULARY, tongue
from workers.data.scoring_windows import Window
from workers.kinds.log_likelihood import log_probabilities, score, score_whole


def by_hand(speaker: Any, before: list[int], scored: list[int]) -> float:
    """Log probability of tokens, one forward for each."""
    total = 0.0
    with torch.inference_mode():
        for place, token in enumerate(scored):
            if not before and not place:
                total -= math.log(VOCABULARY)
                continue
            logits_V = speaker.model(torch.tensor([before + scored[:place]])).logits[0, -1].double()
            total += float(logits_V[token] - logits_V.logsumexp(0))
    return total


@pytest.mark.parametrize("opening", [(), (5, 6)])
@pytest.mark.parametrize("context", ["", "a", "so it was that"])
@pytest.mark.parametrize("scored", ["x", " said"])
def test_a_text_after_another(opening: tuple[int, ...], context: str, scored: str) -> None:
    """The sum over the second text's tokens; where nothing stands before it, its first token costs what chance would."""
    speaker = replace(tongue("llama"), bos_ids=opening)
    encode = speaker.tokenizer.encode
    with torch.inference_mode():
        said = score(speaker, Window(context, scored))
    assert said.log_p == pytest.approx(by_hand(speaker, [*opening, *encode(context)], encode(scored)), rel=1e-4)
    assert said.log_p_TV.exp().sum(-1) == pytest.approx(torch.ones(len(scored)), rel=1e-4)


def test_greedy_is_what_the_model_would_say() -> None:
    """The text that a greedy loop says is greedy, and no longer so with another last token."""
    speaker = tongue("llama")
    tokens = speaker.tokenizer.encode("begin")
    with torch.inference_mode():
        for _ in range(3):
            tokens.append(int(speaker.model(torch.tensor([tokens])).logits[0, -1].argmax()))
        text = speaker.tokenizer.decode(tokens)
        assert score(speaker, Window(text[:5], text[5:])).greedy
        other = "a" if text[-1] != "a" else "b"
        assert not score(speaker, Window(text[:5], text[5:-1] + other)).greedy


@pytest.mark.parametrize("opening", [(), (5,)])
@pytest.mark.parametrize("length", [7, 256, 700])
def test_a_whole_text_by_parts(opening: tuple[int, ...], length: int) -> None:
    """Every token is scored once; from the second part on after the half of the positions before it."""
    speaker = replace(tongue("llama"), bos_ids=opening)
    text = ("how much wood would a woodchuck chuck " * 20)[:length]
    tokens = speaker.tokenizer.encode(text)
    room = 256 - len(opening)
    first = min(length, room)
    cuts = [(0, 0, first)]
    while cuts[-1][2] < length:
        at = cuts[-1][2]
        cuts.append((at - room // 2, at, min(length, at + room - room // 2)))
    expected = 0.0
    with torch.inference_mode():
        for start, at, end in cuts:
            log_p_TV = log_probabilities(speaker, [*opening, *tokens[start:at]], tokens[at:end])
            expected += float(log_p_TV[range(end - at), tokens[at:end]].double().sum())
        assert score_whole(speaker, text) == pytest.approx(expected, rel=1e-5)
    assert sum(end - at for _, at, end in cuts) == length
    assert [end - start + len(opening) for start, _, end in cuts[:-1]] == [256] * (len(cuts) - 1)
    if length == 7:
        assert expected == pytest.approx(by_hand(speaker, list(opening), tokens), rel=1e-4)


@pytest.mark.parametrize(("before", "start"), [([], 1), ([3], 1), ([3, 4, 5], 3)])
def test_the_forward_stands_for_decoding(before: list[int], start: int) -> None:
    """Tokens after those that stand before the text count as decoded, and at least one is a prompt."""
    speaker = tongue("gpt2")
    seen: list[int | None] = []
    hook = speaker.model.register_forward_pre_hook(lambda *_: seen.append(speaker.scoring.decoded_from))
    try:
        with torch.inference_mode():
            log_probabilities(speaker, before, [7, 8, 9])
    finally:
        hook.remove()
    assert seen == [start]
