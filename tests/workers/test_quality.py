"""Quality jobs: likelihoods against sums by hand, the same text for any tokenizer, and differences
from the baseline.
"""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from sweeps.model.condition import Condition, Overrides
from sweeps.model.job import DENSE, Arm, Job, Protocol
from sweeps.model.outcome import unpack
from tests.workers.language_fixtures import scripted_language_arm
from tests.workers.saved_llm import saved, written
from tests.workers.tiny_llms import tiny_llm
from tests.workers.tiny_vits import calm
from tests.workers.vision_jobs import compared, metrics
from workers.data.text import Window, corpus, scoring_windows
from workers.errors import Unsupported
from workers.kinds.quality import score
from workers.run import run

calm = pytest.fixture(autouse=True)(calm)
scripted_language_arm = pytest.fixture(scripted_language_arm)
HALF = Arm(overrides=Overrides(dtype="bfloat16"))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A model in a folder, and a text."""
    folder = tmp_path_factory.mktemp("quality")
    return {
        "model": str(saved(folder / "model", max_position_embeddings=1024)),
        "data": written(folder / "text"),
    }


def job(place: dict[str, str], arms: Any, characters: int | None = None) -> Job:
    point = Condition(threads=1, **place)
    return compared("quality", point, *arms, protocol=Protocol(characters=characters))


def test_an_outcome_holds_the_scores_of_all_windows(place: dict[str, str]):
    """Bits per byte of the text's bytes; equal arms agree, another dtype a little less."""
    outcome = run(job(place, [DENSE, Arm(replicate=1), HALF]))
    assert not outcome.failures
    text, scores = scoring_windows(corpus(place["data"]).held_out), outcome.text_scores
    assert scores is not None
    assert scores.windows == len(text) > 3
    sizes = unpack(scores.bytes, "i4")
    assert sizes.tolist() == [len(window.scored.encode()) for window in text]
    assert unpack(scores.characters, "i4").tolist() == [len(window.scored) for window in text]
    dense, same, half = scores.arms
    assert (dense.nll, dense.tokens) == (same.nll, same.tokens)
    nll, tokens = unpack(dense.nll, "f8"), unpack(dense.tokens, "i4")
    found = metrics(outcome.arms[0])
    assert found["bits_per_byte"] == pytest.approx(nll.sum() / sizes.sum() / math.log(2))
    assert found["perplexity"] == pytest.approx(math.exp(nll.sum() / tokens.sum()))
    assert found["characters_scored"] == sum(len(window.scored) for window in text)
    assert metrics(outcome.arms[1])["agreement"] == 100
    assert metrics(outcome.arms[1])["kl"] == pytest.approx(0, abs=1e-6)
    assert 50 < metrics(outcome.arms[2])["agreement"] <= 100
    assert metrics(outcome.arms[2])["kl"] > 1e-7
    pair = next(pair for pair in scores.pairs if pair.arm == 2)
    assert unpack(pair.positions, "i4").tolist() == unpack(half.tokens, "i4").tolist()
    assert (unpack(pair.agree, "i4") <= tokens).all()
    assert np.isfinite(unpack(pair.kl, "f4")).all()
    assert type(outcome).model_validate_json(outcome.model_dump_json()) == outcome


class Doubled:
    """A tokenizer with a second token for every one, which it uses at even places: the same text in
    other tokens.
    """

    def __init__(self, inner: Any, size: int) -> None:
        self.inner, self.size = inner, size

    def encode(self, text: str) -> list[int]:
        return [
            token + (self.size // 2) * (place % 2)
            for place, token in enumerate(self.inner.encode(text))
        ]

    def decode(self, tokens: Any) -> str:
        return str(self.inner.decode([token % (self.size // 2) for token in tokens]))


def test_bits_per_byte_depend_on_no_tokens():
    """Two names for every token cost exactly one bit per token; bytes stay."""
    lm = tiny_llm("gpt2", tie_word_embeddings=False)
    wide: Any = tiny_llm("gpt2", tie_word_embeddings=False, vocab_size=192)
    state = {name: value.clone() for name, value in lm.model.state_dict().items()}
    for name in ("transformer.wte.weight", "lm_head.weight"):
        state[name] = torch.cat((state[name], state[name]))
    wide.model.load_state_dict(state)
    other = replace(wide, tokenizer=Doubled(lm.tokenizer, 192))
    window = Window("some text before ", "and some that is scored")
    one, two = score(lm, window), score(other, window)
    nll = [
        -float(
            output.log_p_TV.gather(1, torch.tensor(output.tokens[-output.scored :])[:, None]).sum()
        )
        for output in (one, two)
    ]
    assert two.tokens != one.tokens
    assert nll[1] == pytest.approx(nll[0] + 23 * math.log(2), rel=1e-4)


def test_long_contexts_are_cut_and_long_texts_refused():
    """Context goes first; a scored part too long alone is refused."""
    lm = tiny_llm("llama")
    output = score(lm, Window("x" * 300, "y" * 100))
    assert len(output.tokens) == 256
    assert output.scored == 100
    with pytest.raises(
        Unsupported, match="300 tokens are read at once, and llama has 256 positions"
    ):
        score(lm, Window("x", "y" * 300))


def test_failing_arms_fail_alone(place: dict[str, str], scripted_language_arm: Any):
    """Each failure has its own reason, and the other arms are scored."""
    arms = [
        DENSE,
        scripted_language_arm("nan", "output = output * float('nan')"),
        scripted_language_arm("refusing", refusal="not today"),
        scripted_language_arm("counting"),
    ]
    outcome = run(job(place, arms, 800))
    assert {failure.arm: failure.reason for failure in outcome.failures} == {
        1: "not_a_number",
        2: "unsupported",
    }
    assert [arm.arm for arm in outcome.arms] == [0, 3]
    assert outcome.text_scores is not None
    assert [arm.arm for arm in outcome.text_scores.arms] == [0, 3]
    assert metrics(outcome.arms[1])["kernel_calls"] == 3


def test_text_without_a_long_document(place: dict[str, str], tmp_path: Path):
    """A text none of whose documents can be scored fails the job with that reason."""
    for number in range(12):
        (tmp_path / f"{number}.txt").write_text(f"number {number}")
    outcome = run(job({**place, "data": f"text:{tmp_path}"}, [DENSE]))
    assert [(failure.arm, failure.reason) for failure in outcome.failures] == [
        (None, "unsupported")
    ]
    assert "no document long enough" in outcome.failures[0].message
