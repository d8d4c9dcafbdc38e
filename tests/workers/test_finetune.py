"""Light fine-tuning: which weights move, on which text, what is kept, and that a model learns the
domain.
"""

import dataclasses
import json
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file

from tests.workers.domain import TEXTS, bytes_bpe, lm
from tests.workers.tiny_vits import calm
from workers.models.language import LanguageModel
from workers.training.optimisation import warmup_cosine
from workers.vocabulary import PatchTokenizer
from workers.vocabulary.adaptation import (
    Tuning,
    cut,
    resized,
    tune,
    tuned,
    tuned_names,
    with_vocabulary,
    with_weights,
)
from workers.vocabulary.build import VocabularyRecipe, build_vocabulary

calm = pytest.fixture(autouse=True)(calm)
BRIEF = Tuning(steps=2, learning_rate=1e-2, pieces=2, characters=200)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of this test's own."""
    monkeypatch.setenv("BREAKEVEN_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def untied(architecture: str = "llama", ngrams: int = 10) -> LanguageModel:
    """A small model ready to be tuned, with so many n-tokens."""
    given = lm(architecture)
    vocabulary = build_vocabulary(bytes_bpe(), TEXTS, VocabularyRecipe(ngrams=ngrams))
    model = with_vocabulary(given.model, vocabulary, "exp", untie=True)
    patch = PatchTokenizer(bytes_bpe(), vocabulary)
    return dataclasses.replace(
        given, model=model, tokenizer=patch, network=resized(given.network, model)
    )


def nats(made: LanguageModel, text: str) -> float:
    """Mean negative log likelihood of the text's tokens but the first."""
    tokens = torch.tensor([made.tokenizer.encode(text)])
    logits = made.model(input_ids=tokens).logits
    return float(torch.nn.functional.cross_entropy(logits[0, :-1], tokens[0, 1:]))


@pytest.mark.parametrize("architecture", ["gpt2", "llama", "phi"])
def test_the_first_and_the_last_layer_move_and_those_between_do_not(architecture: str) -> None:
    """Embedding, head, first and last layer change, all of them; no other parameter is tuned."""
    made = untied(architecture)
    weights, losses = tune(made, TEXTS, BRIEF)
    assert len(losses) == 2
    assert sorted(weights) == sorted(tuned_names(made.model, made.network.layers))
    layers = {
        name.split("layers.")[-1].split("h.")[-1][0]
        for name in weights
        if ".layers." in name or ".h." in name
    }
    assert layers == {"0", "2"}
    for name, values in weights.items():
        if name.endswith("k_proj.bias"):
            # a key's bias adds the same to all of a query's logits: rounding alone moves it
            continue
        assert not torch.equal(values, made.model.get_parameter(name)), name
    for part in (made.model.get_input_embeddings(), made.model.get_output_embeddings()):
        assert any(part.weight is made.model.get_parameter(name) for name in weights)


def test_it_learns() -> None:
    """Some steps on a text make that text likelier."""
    made = untied()
    text = TEXTS[0][:400]
    _, losses = tune(made, [text], Tuning(steps=12, learning_rate=1e-2, pieces=1, characters=400))
    assert losses[-1] < 0.8 * losses[0]
    assert nats(made, text) == pytest.approx(losses[0], rel=1e-4)


def test_the_same_text_for_any_tokenizer() -> None:
    """Pieces are cut by characters: whole lines, and together the whole text."""
    pieces = list(cut(TEXTS, 300))
    assert "".join(pieces) == "".join(TEXTS)
    assert max(map(len, pieces)) <= 300
    assert list(cut(["ab\ncd\nefghijk\n", "", "l"], 6)) == ["ab\ncd\n", "efghij", "k\n", "l"]
    assert list(cut(["abcdefg"], 3)) == ["abc", "def", "g"]


def test_the_same_seed_gives_the_same_weights() -> None:
    """Bit for bit, unlike another seed; the caller's random state is not touched."""
    made = untied()
    torch.manual_seed(5)
    state = torch.get_rng_state()
    first = load_file(tuned(made, TEXTS, BRIEF, made_of="a"))
    second = load_file(tuned(made, TEXTS, BRIEF, made_of="b"))
    third = load_file(tuned(made, TEXTS, BRIEF.model_copy(update={"seed": 1}), made_of="a"))
    assert torch.equal(torch.get_rng_state(), state)
    assert first
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert not all(torch.equal(first[name], third[name]) for name in first)


def test_kept_as_safetensors_with_facts(cache: Path) -> None:
    """One file with weights and facts, made once; a copy shares all other weights."""
    made = untied()
    file = tuned(made, TEXTS, BRIEF, made_of="a")
    written = file.stat().st_mtime_ns
    assert tuned(made, TEXTS, BRIEF, made_of="a") == file
    assert file.stat().st_mtime_ns == written
    assert [each.name for each in cache.glob("tuned-*.safetensors")] == [file.name]
    with safe_open(file, framework="pt") as opened:
        facts = json.loads(opened.metadata()["breakeven"])
    assert facts["tuning"] == BRIEF.model_dump()
    assert len(facts["losses"]) == 2
    loaded = with_weights(made.model, file)
    names = tuned_names(made.model, made.network.layers)
    weights = load_file(file)
    assert sorted(weights) == sorted(names)
    for name, parameter in loaded.named_parameters():
        if name in names:
            assert torch.equal(parameter, weights[name])
        else:
            assert parameter is made.model.get_parameter(name)


def test_what_cannot_be_tuned() -> None:
    """A head tied to the embedding, and no text at all, are errors with a message."""
    with pytest.raises(ValueError, match="untie"):
        tune(lm("gpt2"), TEXTS, BRIEF)
    with pytest.raises(ValueError, match="no text"):
        tune(untied(), [""], BRIEF)


@pytest.mark.parametrize("steps", [1, 2, 10, 100])
def test_the_learning_rate_rises_and_falls(steps: int) -> None:
    """Up in a tenth of the steps, then down, never to zero while there are steps left."""
    shares = [warmup_cosine(step, steps, offset=1) for step in range(steps)]
    assert max(shares) == 1
    assert min(shares) > 0
    top = shares.index(1)
    assert shares[: top + 1] == sorted(shares[: top + 1])
    assert shares[top:] == sorted(shares[top:], reverse=True)
