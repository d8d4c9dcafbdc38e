"""Likelihoods against sums by hand: after a context, after nothing, and of a text that is longer
than the model's positions.
"""

import math
from dataclasses import replace
from typing import Any

import pytest
import torch

from tests.workers.tiny_llms import VOCABULARY, tiny_llm
from workers.data.text import Window
from workers.kinds.quality import log_probabilities, score, score_whole


def by_hand(lm: Any, before: list[int], scored: list[int]) -> float:
    """Log probability of tokens, one forward for each."""
    total = 0.0
    with torch.inference_mode():
        for place, token in enumerate(scored):
            if not before and not place:
                total -= math.log(VOCABULARY)
                continue
            logits_V = lm.model(torch.tensor([before + scored[:place]])).logits[0, -1].double()
            total += float(logits_V[token] - logits_V.logsumexp(0))
    return total


@pytest.mark.parametrize("opening", [(), (5, 6)])
@pytest.mark.parametrize("context", ["", "a", "so it was that"])
@pytest.mark.parametrize("scored", ["x", " said"])
def test_a_text_after_another(opening: tuple[int, ...], context: str, scored: str) -> None:
    """The sum over the second text's tokens; after nothing the first costs chance."""
    lm = replace(tiny_llm("llama"), bos_ids=opening)
    encode = lm.tokenizer.encode
    with torch.inference_mode():
        output = score(lm, Window(context, scored))
    assert output.log_p == pytest.approx(
        by_hand(lm, [*opening, *encode(context)], encode(scored)), rel=1e-4
    )
    assert output.log_p_TV.exp().sum(-1) == pytest.approx(torch.ones(len(scored)), rel=1e-4)


@pytest.mark.parametrize("opening", [(), (5,)])
@pytest.mark.parametrize("length", [7, 256, 700])
def test_a_whole_text_by_parts(opening: tuple[int, ...], length: int) -> None:
    """Every token once; from the second part on after half of the positions before it."""
    lm = replace(tiny_llm("llama"), bos_ids=opening)
    text = ("how much wood would a woodchuck chuck " * 20)[:length]
    tokens = lm.tokenizer.encode(text)
    room = 256 - len(opening)
    first = min(length, room)
    cuts = [(0, 0, first)]
    while cuts[-1][2] < length:
        at = cuts[-1][2]
        cuts.append((at - room // 2, at, min(length, at + room - room // 2)))
    expected = 0.0
    with torch.inference_mode():
        for start, at, end in cuts:
            log_p_TV = log_probabilities(lm, [*opening, *tokens[start:at]], tokens[at:end])
            expected += float(log_p_TV[range(end - at), tokens[at:end]].double().sum())
        assert score_whole(lm, text) == pytest.approx(expected, rel=1e-5)
    assert sum(end - at for _, at, end in cuts) == length
    assert [end - start + len(opening) for start, _, end in cuts[:-1]] == [256] * (len(cuts) - 1)
    if length == 7:
        assert expected == pytest.approx(by_hand(lm, list(opening), tokens), rel=1e-4)


@pytest.mark.parametrize(("before", "start"), [([], 1), ([3], 1), ([3, 4, 5], 3)])
def test_the_forward_stands_for_decoding(before: list[int], start: int) -> None:
    """Tokens after those that stand before the text count as decoded, and at least one is a
    prompt.
    """
    lm = tiny_llm("gpt2")
    seen: list[int | None] = []
    hook = lm.model.register_forward_pre_hook(lambda *_: seen.append(lm.scoring.decoded_from))
    try:
        with torch.inference_mode():
            log_probabilities(lm, before, [7, 8, 9])
    finally:
        hook.remove()
    assert seen == [start]


def test_greedy_is_what_the_model_would_generate() -> None:
    """The text of a greedy loop is greedy, and no longer so with another last token."""
    lm = tiny_llm("llama")
    tokens = lm.tokenizer.encode("begin")
    with torch.inference_mode():
        for _ in range(3):
            tokens.append(int(lm.model(torch.tensor([tokens])).logits[0, -1].argmax()))
        text = lm.tokenizer.decode(tokens)
        assert score(lm, Window(text[:5], text[5:])).greedy
        other = "a" if text[-1] != "a" else "b"
        assert not score(lm, Window(text[:5], text[5:-1] + other)).greedy
