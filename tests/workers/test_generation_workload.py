"""The decode loop against transformers' own `generate` and full forwards, and the texts that it is
run on.
"""

from dataclasses import replace
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer as Backend
from tokenizers import models, pre_tokenizers

from tests.workers.tiny_llms import ARCHITECTURES, POSITIONS, Letters, tiny_llm
from tests.workers.tiny_vits import calm
from workers.arms.generation_workload import Passage, Workload, passages
from workers.data.tokenization import FastTokenizer
from workers.errors import Unsupported
from workers.models.share_weights import clone_shared

calm = pytest.fixture(autouse=True)(calm)
TEXT = (
    "The quick brown fox jumps over the lazy dog, twice; then it sleeps (as foxes do) until 7 in"
    " the morning. " * 3
)
PROMPT, CONTINUATION = TEXT[:40], TEXT[40:60]


def workload(
    decoding: Any = "teacher_forcing",
    kv_cache: Any = "dynamic",
    texts: Any = ((PROMPT, CONTINUATION),),
) -> Workload:
    """The text, read with one token per character."""
    return Workload(
        tuple(Passage(*each) for each in texts),
        decoding,
        kv_cache,
        max(len(new) for _, new in texts),
    )


def logits(lm: Any, work: Workload) -> Any:
    """What each token was chosen by, [tokens, B, V]."""
    seen: list[Any] = []
    work.run(lm, check=seen.append)
    return torch.stack(seen)


def test_greedy_reaches_the_upper_ids_of_a_tokenizer_with_gaps():
    """A token above as many ids as there are tokens is chosen where it is the most likely one."""
    lm = tiny_llm("llama")
    letters = {letter: place for place, letter in enumerate("abcdefgh")}
    gapped = FastTokenizer(Backend(models.WordLevel(vocab={**letters, "z": 95}, unk_token="a")))
    gapped.backend.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    model = clone_shared(lm.model)
    model.lm_head = torch.nn.Linear(64, 96)
    with torch.no_grad():
        model.lm_head.weight.zero_()
        model.lm_head.bias.copy_(torch.nn.functional.one_hot(torch.tensor(95), 96) * 9.0)
    run = workload("greedy", texts=(("abcdef", "gh"),)).run(
        replace(lm, model=model, tokenizer=gapped)
    )
    assert set(run.texts[0].replace(" ", "")) == {"z"}


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_replay_is_a_full_forward_in_steps(architecture: str):
    """At every step the loop finds what one forward of the whole text finds there."""
    lm = tiny_llm(architecture)
    tokens = torch.tensor([lm.tokenizer.encode(PROMPT + CONTINUATION)])
    whole = lm.model(tokens).logits[0, 39:59]
    torch.testing.assert_close(logits(lm, workload())[:, 0], whole, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kv_cache", ["dynamic", "static"])
@pytest.mark.parametrize("architecture", ["gpt2", "mistral", "phi"])
def test_sequences_of_unequal_length_do_not_meet(architecture: str, kv_cache: str):
    """In a batch each sequence gets the logits that it gets alone."""
    texts = ((PROMPT, CONTINUATION), (TEXT[5:30], TEXT[30:42]))
    together = logits(tiny_llm(architecture), workload(kv_cache=kv_cache, texts=texts))
    for place, text in enumerate(texts):
        alone = logits(tiny_llm(architecture), workload(texts=(text,)))
        torch.testing.assert_close(
            together[: len(text[1]), place], alone[:, 0], rtol=1e-3, atol=1e-3
        )
    run = workload(kv_cache=kv_cache, texts=texts).run(tiny_llm(architecture))
    assert run.texts == (CONTINUATION, TEXT[30:42])
    assert (run.prompt_tokens, run.decoded, run.cached) == (65, 32, 59)


def test_passages_have_so_many_tokens():
    """Texts one behind the other, each of the requested tokens when encoded by itself."""
    found = passages([TEXT], Letters(), 40, 20, 3)
    assert "".join(part for passage in found for part in passage) == TEXT[:180]
    assert all((len(prompt), len(continuation)) == (40, 20) for prompt, continuation in found)
    again = passages(["0123456789"], Letters(), 12, 4, 2)
    assert again[0] == ("012345678901", "2345")
    assert again[1] == ("678901234567", "8901")


def test_what_is_too_long_or_too_short_is_not_run():
    """A prompt beyond the model's positions and a single new token are refused with the numbers."""
    with pytest.raises(
        Unsupported,
        match=(
            rf"a prompt of 250 tokens and 20 new ones are 270, and llama has {POSITIONS} positions"
        ),
    ):
        workload(texts=((TEXT[:250], CONTINUATION),)).run(tiny_llm("llama"))
    with pytest.raises(Unsupported, match="at least 2 are needed"):
        workload(texts=((PROMPT, "x"),)).run(tiny_llm("llama"))


def test_methods_are_prepared_before_every_run():
    """Counters start anew with each run, and the tokens that open a text are read."""
    called: list[int] = []

    class Calls:
        def reset(self) -> None:
            called.append(1)

        def metrics(self) -> dict[str, float]:
            return {}

    own = replace(tiny_llm("llama"), counters=(Calls(),), bos_ids=(3, 4))
    assert workload().run(own).cached == 61
    workload().run(own)
    assert called == [1, 1]


class Forgetful(Letters):
    """Forgets the first character of every text."""

    def encode(self, text):
        return super().encode(text[1:])


def test_texts_that_cannot_be_cut():
    """No passage is made up where the tokenizer keeps no number of tokens, and none of an empty
    text.
    """
    with pytest.raises(Unsupported, match="keep their number"):
        passages([TEXT], Forgetful(), 40, 20, 1)
    with pytest.raises(Unsupported, match="no tokens"):
        passages([""], Letters(), 40, 20, 1)
