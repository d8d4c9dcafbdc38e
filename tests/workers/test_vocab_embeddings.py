"""Embeddings and heads for n-tokens: the formulas by hand, what is shared, and what stays as it
was.
"""

from typing import get_args

import pytest
import torch
from tokenizers import Tokenizer as Backend
from tokenizers import models
from transformers import AutoConfig, AutoModelForCausalLM

from tests.workers.domain import CONFIGS, SPARE, TEXTS, bytes_bpe, lm
from tests.workers.tiny_vits import calm
from workers.data.tokenization import FastTokenizer
from workers.errors import Unsupported
from workers.vocabulary import Vocabulary, split_again
from workers.vocabulary.adaptation import extended, mixture_weights, ngram_rows, with_vocabulary
from workers.vocabulary.build import Mode, VocabularyRecipe, build_vocabulary

calm = pytest.fixture(autouse=True)(calm)
ARCHITECTURES = tuple(CONFIGS)
TABLE_VD = torch.tensor([[1.0, 10.0], [2.0, 20.0], [4.0, 40.0], [8.0, 80.0]])


def vocabulary(count: int = 12, mode: Mode = "append") -> Vocabulary:
    """N-tokens for the small tokenizer."""
    return build_vocabulary(bytes_bpe(), TEXTS, VocabularyRecipe(ngrams=count, mode=mode))


def test_exponential_rows_by_hand() -> None:
    """Of three tokens the nearest counts 4/7, the next 2/7, the farthest 1/7."""
    assert mixture_weights(3, "exp", "last").tolist() == pytest.approx([1 / 7, 2 / 7, 4 / 7])
    assert mixture_weights(3, "exp", "first").tolist() == pytest.approx([4 / 7, 2 / 7, 1 / 7])
    ngrams = [(0, 1, 2), (3, 0)]
    read_ND = torch.tensor([[(1 + 4 + 16) / 7, 30.0], [(8 + 2) / 3, 100 / 3]])
    torch.testing.assert_close(ngram_rows(TABLE_VD, ngrams, "exp", "last"), read_ND)
    said_ND = torch.tensor([[(4 + 4 + 4) / 7, 120 / 7], [(16 + 1) / 3, 170 / 3]])
    torch.testing.assert_close(ngram_rows(TABLE_VD, ngrams, "exp", "first"), said_ND)


def test_rows_from_an_n_grams_text_by_hand() -> None:
    """As in the authors' code the text is split again by the unmodified tokenizer."""
    letters = {"a": 0, "b": 1, "d": 2, "ab": 3, "abd": 4}
    tokenizer = FastTokenizer(Backend(models.BPE(vocab=letters, merges=[("a", "b"), ("ab", "d")])))
    known = Vocabulary(
        tokenizer="",
        tokens=5,
        removed={3: (0, 1), 4: (0, 1, 2)},
        ngrams=((0, 1), (0, 1, 2), (0, 1, 0), (2, 2)),
    )
    runs = split_again(tokenizer, known.ngrams)
    assert runs == ((3,), (4,), (3, 0), (2, 2))
    table_VD = torch.tensor([[1.0], [10.0], [100.0], [1000.0], [7.0]])
    read_WD, said_WD = (
        extended(table_VD, known, "exp", toward, runs=runs) for toward in ("last", "first")
    )
    assert [known.ids[place] for place in range(4)] == [3, 4, 5, 6]
    assert read_WD.flatten().tolist() == pytest.approx(
        [1, 10, 100, 1000, 7, (1000 + 2 * 1) / 3, 100]
    )
    assert said_WD.flatten().tolist() == pytest.approx(
        [1, 10, 100, 1000, 7, (2 * 1000 + 1) / 3, 100]
    )
    own_WD = extended(table_VD, known, "exp", "last")
    assert own_WD.flatten().tolist()[3:] == pytest.approx(
        [7, (1 + 20 + 400) / 7, (1 + 20 + 4) / 7, 100]
    )


def test_where_the_rows_go() -> None:
    """First the rows of removed tokens, then behind the last; spare rows stay last."""
    known = Vocabulary(tokenizer="", tokens=4, removed={1: (0, 0)}, ngrams=((2, 3), (0, 2)))
    table_WD = extended(TABLE_VD, known, "mean", "last")
    assert table_WD.tolist() == [[1.0, 10.0], [6.0, 60.0], [4.0, 40.0], [8.0, 80.0], [2.5, 25.0]]
    assert TABLE_VD[1].tolist() == [2.0, 20.0]
    spare_WD = extended(torch.cat((TABLE_VD, torch.tensor([[9.0, 9.0]]))), known, "mean", "last")
    assert spare_WD.tolist() == [*table_WD.tolist(), [9.0, 9.0]]
    bias_W = extended(TABLE_VD[:, 0], known, "exp", "first")
    torch.testing.assert_close(bias_W, torch.tensor([1.0, 16 / 3, 4.0, 8.0, 2.0]))


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("mode", get_args(Mode))
def test_old_tokens_keep_their_logits(architecture: str, mode: Mode) -> None:
    """For tokens that stay, the logits of all that stay are as they were."""
    given = lm(architecture)
    known = vocabulary(mode=mode)
    made = with_vocabulary(given.model, known, "exp")
    tokens = [token for token in bytes_bpe().encode(TEXTS[0]) if token not in known.removed][:40]
    before_TV = given.model(input_ids=torch.tensor([tokens])).logits[0]
    after_TW = made(input_ids=torch.tensor([tokens])).logits[0]
    assert after_TW.shape[-1] == known.size + SPARE == made.config.vocab_size
    stay = [token for token in range(known.tokens) if token not in known.removed]
    torch.testing.assert_close(after_TW[:, stay], before_TV[:, stay], rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(after_TW[:, -SPARE:], before_TV[:, -SPARE:], rtol=1e-5, atol=1e-5)
    assert given.model.config.vocab_size == known.tokens + SPARE


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_only_embedding_and_head_are_new(architecture: str) -> None:
    """Every other parameter is the given model's, which is as it was, ties too."""
    given = lm(architecture)
    before = {name: parameter.clone() for name, parameter in given.model.named_parameters()}
    made = with_vocabulary(given.model, vocabulary(), "exp")
    new = {
        id(parameter)
        for part in (made.get_input_embeddings(), made.get_output_embeddings())
        for parameter in part.parameters()
    }
    own = {parameter.data_ptr() for parameter in given.model.parameters()}
    assert {
        (id(parameter) in new) != (parameter.data_ptr() in own) for parameter in made.parameters()
    } == {True}
    for name, parameter in given.model.named_parameters():
        assert torch.equal(parameter, before[name])
    tied = given.model.get_input_embeddings().weight is given.model.get_output_embeddings().weight
    assert tied == given.network.tied == (architecture in ("gpt2", "qwen2"))


class TwoTables(torch.nn.Embedding):
    """Reads a second table at the tokens."""

    def __init__(self, rows: int, width: int) -> None:
        super().__init__(rows, width)
        self.second = torch.nn.Embedding(rows, width)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = super().forward(tokens) + self.second(tokens)
        return found


@pytest.mark.parametrize("family", ["gpt2", "opt"])
def test_a_table_of_positions_may_be_as_long_as_the_vocabulary(family: str) -> None:
    """What is read at positions stays; a table read at tokens is refused."""
    rows = bytes_bpe().size + SPARE
    sizes = {
        "n_embd": 32,
        "n_layer": 1,
        "n_head": 2,
        "n_positions": rows,
        "hidden_size": 32,
        "num_hidden_layers": 1,
    }
    sizes |= {"num_attention_heads": 2, "ffn_dim": 32, "word_embed_proj_dim": 32}
    positions = rows - 2 if family == "opt" else rows  # to which opt adds two rows
    config = {
        "vocab_size": rows,
        "max_position_embeddings": positions,
        **(CONFIGS["gpt2"] | sizes if family != "opt" else sizes),
    }
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(family, **config)).eval()
    (table,) = [
        part for name, part in model.named_modules() if name.endswith(("wpe", "embed_positions"))
    ]
    assert len(table.weight) == len(model.get_input_embeddings().weight) == rows
    made = with_vocabulary(model, vocabulary(), "mean")
    assert len(made.get_input_embeddings().weight) == rows + 12
    tokens = torch.tensor([bytes_bpe().encode(TEXTS[1])[:30]])
    size = bytes_bpe().size
    torch.testing.assert_close(
        made(input_ids=tokens).logits[..., :size], model(input_ids=tokens).logits[..., :size]
    )
    model.set_input_embeddings(TwoTables(rows, 32))
    with pytest.raises(Unsupported):
        with_vocabulary(model, vocabulary(), "mean")


def test_the_ablations_by_hand() -> None:
    """The mean is equal at both ends; `last_first` reads the last token's row and generates by the
    first one's.
    """
    ngrams = [(0, 1, 2)]
    for toward in ("last", "first"):
        torch.testing.assert_close(
            ngram_rows(TABLE_VD, ngrams, "mean", toward), torch.tensor([[7 / 3, 70 / 3]])
        )
    assert ngram_rows(TABLE_VD, ngrams, "last_first", "last").tolist() == [[4.0, 40.0]]
    assert ngram_rows(TABLE_VD, ngrams, "last_first", "first").tolist() == [[1.0, 10.0]]


def test_drawn_rows() -> None:
    """Random rows have each column's mean and deviation, and differ by seed and by end, but not
    from call to call.
    """
    ngrams = [(0, 1)] * 4000
    drawn_ND = ngram_rows(TABLE_VD, ngrams, "random", "last", seed=3)
    torch.testing.assert_close(drawn_ND.mean(0), TABLE_VD.mean(0), rtol=0.1, atol=0)
    torch.testing.assert_close(drawn_ND.std(0), TABLE_VD.std(0), rtol=0.1, atol=0)
    assert torch.equal(drawn_ND, ngram_rows(TABLE_VD, ngrams, "random", "last", seed=3))
    assert not torch.equal(drawn_ND, ngram_rows(TABLE_VD, ngrams, "random", "last", seed=4))
    assert not torch.equal(drawn_ND, ngram_rows(TABLE_VD, ngrams, "random", "first", seed=3))
    with pytest.raises(ValueError, match="no mixture"):
        mixture_weights(2, "random", "last")
