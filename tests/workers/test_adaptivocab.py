"""AdaptiVocab as a method: exact at its neutral setting, shared weights, promises on MACs,
counters, its control, and bad input.
"""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from pydantic import ValidationError

from sweeps.geometry.llm_geometry import languages
from sweeps.model.job import Arm, Step
from tests.workers.domain import CONFIGS, SPARE, TEXTS, bytes_bpe, lm
from tests.workers.tiny_vits import calm
from workers.errors import DataError, Unsupported
from workers.methods.language.adaptivocab import (
    EXAMPLES,
    NEUTRAL,
    Params,
    apply,
    macs,
    refuses,
    skipped,
)
from workers.vocabulary import PatchTokenizer, UnusableVocabulary
from workers.vocabulary.build import VocabularyRecipe, build_vocabulary

calm = pytest.fixture(autouse=True)(calm)
HELD_OUT = TEXTS[-1]


@pytest.fixture(autouse=True)
def domain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A cache of this test's own, and the small text as `data`."""
    monkeypatch.setenv("BREAKEVEN_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "domain"
    folder.mkdir()
    for index, text in enumerate(TEXTS):
        (folder / f"{index}.txt").write_text(text, encoding="utf-8")
    return f"text:{folder}"


def logits(made: Any, text: str = HELD_OUT) -> torch.Tensor:
    """Of the first 60 of the text's tokens."""
    found: torch.Tensor = made.model(
        input_ids=torch.tensor([made.tokenizer.encode(text)[:60]])
    ).logits
    return found


@pytest.mark.parametrize("architecture", tuple(CONFIGS))
def test_neutral_is_exact(architecture: Any) -> None:
    """Without n-tokens and tuning it is the given model on the given weights, bit for bit."""
    given = lm(architecture)
    made = apply(given, NEUTRAL)
    assert made.model is not given.model
    assert made.tokenizer is given.tokenizer
    assert torch.equal(logits(made), logits(given))
    assert [id(parameter) for parameter in made.model.parameters()] == [
        id(parameter) for parameter in given.model.parameters()
    ]


@pytest.mark.parametrize("example", EXAMPLES, ids=str)
def test_every_example_runs(example: Params, domain: str) -> None:
    """Fewer tokens for a text that comes back; finite logits for the whole vocabulary."""
    given = lm()
    params = example.model_copy(update={"data": domain})
    made = apply(given, params)
    tokens = made.tokenizer.encode(HELD_OUT)
    assert made.tokenizer.decode(tokens) == HELD_OUT
    assert (len(tokens) < len(given.tokenizer.encode(HELD_OUT))) == (params.ngrams > 0)
    assert (
        logits(made).shape[-1]
        == made.network.vocabulary
        == made.tokenizer.size + SPARE
        == made.model.config.vocab_size
    )
    assert logits(made).isfinite().all()
    added = params.ngrams if params.mode == "append" else 0
    assert made.network.vocabulary == given.network.vocabulary + added
    assert made.weights_hash != given.weights_hash
    assert macs(params, given.network, 5, 7) == (1 + 7) * (
        made.network.head_macs - given.network.head_macs
    )
    assert skipped(params, given.network, 7) == 0


def test_the_control_reads_the_same_text(domain: str) -> None:
    """`ngrams: 0` with steps tunes the same weights under the given tokenizer."""
    given = lm()
    control = apply(given, Params(ngrams=0, finetune_steps=2, data=domain))
    adapted = apply(given, Params(ngrams=10, finetune_steps=2, data=domain))
    assert control.tokenizer.encode(HELD_OUT) == given.tokenizer.encode(HELD_OUT)
    assert not torch.equal(logits(control), logits(given))
    own = {id(parameter) for parameter in given.model.parameters()}
    new = [
        {name for name, each in made.model.named_parameters() if id(each) not in own}
        for made in (control, adapted)
    ]
    assert new[0] == new[1]
    assert control.network == given.network


def test_a_vocabulary_made_before(domain: str, tmp_path: Path) -> None:
    """`file` is used as it is where it fits; what differs is named."""
    tokenizer, given = bytes_bpe(), lm()
    file = tmp_path / "own.json"
    build_vocabulary(tokenizer, TEXTS, VocabularyRecipe(ngrams=15)).write(file)
    made = apply(given, Params(ngrams=15, file=str(file), data=domain))
    assert made.tokenizer.size == tokenizer.size + 15
    with pytest.raises(UnusableVocabulary, match=r"\(15, 0\) tokens.*\(14, 0\)"):
        apply(given, Params(ngrams=14, file=str(file)))
    with pytest.raises(UnusableVocabulary, match=r"\(15, 15\)"):
        apply(given, Params(ngrams=15, mode="replace", file=str(file)))
    other = {**json.loads(file.read_text()), "tokenizer": "0123456789abcdef"}
    file.write_text(json.dumps(other))
    with pytest.raises(
        UnusableVocabulary, match=r"made for another tokenizer \(0123456789abcdef, "
    ):
        apply(given, Params(ngrams=15, file=str(file)))


def test_a_pickle_is_a_usage_error() -> None:
    """It is refused when the sweep is read, with what to convert."""
    with pytest.raises(ValidationError, match="convert n-grams and removed tokens to JSON"):
        Params(file="saved_patch_tokenizer/patch_tokenizer.pkl")


def test_what_cannot_be_done() -> None:
    """No text, one too short, a patch over a patch, too many tokens: each has its message."""
    given = lm()
    with pytest.raises(DataError, match="is not a text"):
        apply(given, Params(data="nothing"))
    with pytest.raises(UnusableVocabulary, match="request at most that many"):
        apply(given, Params(ngrams=100_000))
    patched = PatchTokenizer(
        bytes_bpe(), build_vocabulary(bytes_bpe(), TEXTS, VocabularyRecipe(ngrams=5))
    )
    with pytest.raises(UnusableVocabulary, match="patched already"):
        apply(dataclasses.replace(given, tokenizer=patched), Params(ngrams=5))
    with pytest.raises(Unsupported, match="first method of a stack"):
        apply(
            dataclasses.replace(given, counters=apply(given, Params(ngrams=5)).counters),
            Params(ngrams=5),
        )
    network = languages()["tiny_lm"]
    assert "2048 tokens cannot be replaced" in (
        refuses(Params(ngrams=2048, mode="replace"), network) or ""
    )
    assert refuses(Params(ngrams=2048), network) is None
    for wrong in (
        {"ngrams": -1},
        {"mode": "swap"},
        {"init": "zero"},
        {"finetune_steps": -1},
        {"learning_rate": 0},
    ):
        with pytest.raises(ValidationError):
            Params.model_validate(wrong)


def test_a_written_default_is_the_same_arm() -> None:
    """Golden: `segmentation` and `rows` by default or written; the authors' ways are other arms."""

    def arm_id(**params: Any) -> str:
        step = Step(method="adaptivocab", params=Params(**params).model_dump(mode="json"))
        return Arm(stack=(step,)).arm_id

    assert arm_id() == arm_id(segmentation="longest") == arm_id(rows="tokens") == "f4741aa7abd6db04"
    assert arm_id(ngrams=20, mode="replace") == "4d829f13ce3b1566"
    assert len({arm_id(), arm_id(segmentation="score"), arm_id(rows="text")}) == 3


def test_counters_count_what_ran(domain: str) -> None:
    """Tokens that a text was and would have been since the last reset, none of the building."""
    made = apply(lm(), Params(ngrams=20, finetune_steps=1, data=domain))
    (counters,) = made.counters
    assert set(counters.metrics().values()) == {0}
    tokens = made.tokenizer.encode(HELD_OUT)
    made.tokenizer.decode(tokens)
    before = len(bytes_bpe().encode(HELD_OUT))
    output = sum(token >= bytes_bpe().size for token in tokens)
    assert counters.metrics() == {
        "encoded_tokens": len(tokens),
        "encoded_tokens_base": before,
        "decoded_tokens": len(tokens),
        "decoded_ntokens": output,
    }
    assert 0 < output < len(tokens) < before
    counters.reset()
    assert set(counters.metrics().values()) == {0}
