"""Replaces runs of tokens that a domain repeats by one token each, so that the same text is fewer
tokens (AdaptiVocab).

n-tokens are selected by the tokens that they save in the domain's text. `append` adds them to the
vocabulary; `replace` puts each instead of a token of little value, which is then encoded as its
parts. Their embeddings start as mixtures of those of their tokens; `finetune_steps` of light
fine-tuning of embeddings, head, first and last layer follow. `ngrams: 0` with as many steps is the
control: the unmodified tokenizer, with the same weights tuned on the same text in the same order.

Differs from the authors' code (github.com/itay-nakash/AdaptiVocab):
- Of several n-grams that begin at a token the longest is used, which gives the fewest tokens and
  needs one walk in a trie. The authors use the one with the highest score, trying all at every
  token: `segmentation: score`.
- n-grams are selected by the tokens that they save, counted exactly given those selected before;
  the authors' score is the frequency times the length, less counted overlaps, and by default no
  n-gram contains a space.
- The first rows of an n-token are mixed from the tokens that it stands for. The authors split its
  text again with the unmodified tokenizer, which may give fewer tokens, among them removed ones:
  `rows: text`. About 2 % of the rows are others in the mode `append`, 18 % in `replace`.
- `mode: append` is not theirs: the authors always replace. It keeps every old token, at the cost of
  more rows in embedding and head.
- Tuning is counted in steps (the authors: one epoch at a learning rate of 5e-5), so that an arm and
  its control do equally many.
"""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field, field_validator

from sweeps.model import method
from sweeps.model.identity import digest
from sweeps.model.method import LanguageNetwork

if TYPE_CHECKING:
    from workers.models.language import LanguageModel

MODALITY = "language"
PAPER = (
    "Nakash, Calderon, Ben-David, Hoffer, Reichart, AdaptiVocab: Enhancing LLM Efficiency in"
    " Focused Domains through Lightweight Vocabulary Adaptation, COLM 2025, arXiv 2503.19693"
)
VERSION = 1
TUNING_MACS = 6 * 8 * 768 / 2
"""Of a step of fine-tuning, as forwards of one token: a token costs 6 times as much as in inference
(on matrices too small to fill two cores), and a step reads 8 pieces of 768 characters, 2 to a
token."""


class Params(method.Params):
    """How many n-tokens, from which text, and how the model is tuned to them."""

    amounts: ClassVar[Mapping[str, Any]] = {"ngrams": 0}
    changes_weights: ClassVar[bool] = True

    ngrams: int = Field(default=500, ge=0, description="n-tokens; 0 leaves the tokenizer as it is")
    mode: Literal["append", "replace"] = Field(
        default="append",
        description=(
            "add n-tokens to the vocabulary, or put them in the place of as many tokens of little"
            " value"
        ),
    )
    init: Literal["exp", "mean", "random", "last_first"] = Field(
        default="exp",
        description=(
            "first embeddings of n-tokens: halving weights, the mean, drawn at random, or one"
            " token's alone"
        ),
    )
    finetune_steps: int = Field(
        default=0, ge=0, description="steps of light fine-tuning on the domain's text; 0: none"
    )
    learning_rate: float = Field(
        default=1e-3, gt=0, description="the highest of the fine-tuning's one cycle"
    )
    data: str = Field(
        default="topics",
        description=(
            "the domain's text: topics, docs or text:PATH; what is held out of it is not read"
        ),
    )
    file: str | None = Field(
        default=None, description="a vocabulary made before (JSON), with `ngrams` n-tokens"
    )
    seed: int = Field(
        default=0, ge=0, description="of the drawn embeddings and of the fine-tuning's order"
    )
    segmentation: Literal["longest", "score"] = Field(
        default="longest",
        description=(
            "of n-grams that begin at a token: the longest, or the best by score (the authors' way)"
        ),
    )
    rows: Literal["tokens", "text"] = Field(
        default="tokens",
        description=(
            "first rows of an n-token are mixed from its tokens, or from those that the unmodified "
            "tokenizer splits its text into (the authors' way)"
        ),
    )

    @field_validator("file")
    @classmethod
    def _no_pickle(cls, file: str | None) -> str | None:
        from workers.vocabulary import UnusableVocabulary, refuse_pickle

        if file is not None:
            try:
                refuse_pickle(Path(file))
            except UnusableVocabulary as error:
                raise ValueError(str(error)) from None
        return file

    def retokenizes(self) -> bool:
        return self.ngrams > 0

    def preparation_macs(self, network: LanguageNetwork) -> float | None:
        if self.ngrams == self.finetune_steps == 0:
            return None
        return TUNING_MACS * self.finetune_steps * network.token_macs

    def control(self) -> "Params | None":
        """The same tuning with the tokenizer as it was; `None` where nothing is tuned, or this is
        the control.
        """
        if self.finetune_steps == 0 or self.ngrams == 0:
            return None
        return Params(
            ngrams=0, **self.model_dump(include={"finetune_steps", "learning_rate", "data", "seed"})
        )


NEUTRAL = Params(ngrams=0)
EXAMPLES = (
    Params(ngrams=20),
    Params(ngrams=20, mode="replace"),
    Params(ngrams=20, segmentation="score"),
    Params(ngrams=20, mode="replace", rows="text"),
    Params(ngrams=20, init="mean"),
    Params(ngrams=20, init="random", seed=3),
    Params(ngrams=20, init="last_first", finetune_steps=1),
    Params(ngrams=0, finetune_steps=1),
)


def macs(params: Params, network: LanguageNetwork, prompt: int, decoded: int) -> int:  # noqa: ARG001 - of a prompt one token
    """The head's rows for n-tokens that were added: for the last token of the prompt and each one
    after it.
    """
    return 0 if params.mode == "replace" else (1 + decoded) * params.ngrams * network.width


def skipped(params: Params, network: LanguageNetwork, tokens: int) -> int:  # noqa: ARG001 - each token costs as much as before
    """None: what is saved are whole tokens, and these are counted where they are decoded."""
    return 0


def refuses(params: Params, network: LanguageNetwork) -> str | None:
    """Why as many tokens cannot be removed."""
    if params.mode == "replace" and params.ngrams >= network.vocabulary:
        return (
            f"{params.ngrams} tokens cannot be replaced: {network.name} has {network.vocabulary};"
            " request fewer n-grams"
        )
    return None


def apply(lm: "LanguageModel", params: Params) -> "LanguageModel":
    """`lm` with the domain's vocabulary; weights are shared with the given one apart from
    embedding, head and what is tuned.

    Raises `UnusableVocabulary` for a vocabulary that does not fit, `Unsupported` behind another
    method that changed the model, and `DataError` for a text that cannot be read.
    """
    from workers.data.text import corpus
    from workers.errors import Unsupported
    from workers.models.share_weights import clone_shared
    from workers.vocabulary import (
        PatchTokenizer,
        UnusableVocabulary,
        Vocabulary,
        read_vocabulary,
        split_again,
        tokenizer_hash,
    )
    from workers.vocabulary.adaptation import (
        Tuning,
        resized,
        tuned,
        with_vocabulary,
        with_weights,
    )
    from workers.vocabulary.build import VocabularyRecipe, cached_vocabulary

    if params.ngrams == 0 and params.finetune_steps == 0:
        return dataclasses.replace(lm, model=clone_shared(lm.model))
    if lm.counters:
        raise Unsupported(
            "adaptivocab must be the first method of a stack: the methods before it have changed"
            " the model that it adapts"
        )
    if params.ngrams == 0:
        vocabulary = Vocabulary(tokenizer=tokenizer_hash(lm.tokenizer), tokens=lm.tokenizer.size)
    elif params.file is not None:
        vocabulary = read_vocabulary(Path(params.file))
        held, requested = (
            (len(vocabulary.ngrams), len(vocabulary.removed)),
            (params.ngrams, params.ngrams * (params.mode == "replace")),
        )
        if held != requested:
            raise UnusableVocabulary(
                f"{params.file}: adds and removes {held} tokens; ngrams and mode request"
                f" {requested}"
            )
    else:
        text = corpus(params.data)
        recipe = VocabularyRecipe(ngrams=params.ngrams, mode=params.mode)
        vocabulary = cached_vocabulary(
            lm.tokenizer, text.train, recipe, weights_hash=lm.weights_hash, text=text.hash
        )
    patch = PatchTokenizer(lm.tokenizer, vocabulary, params.segmentation)
    runs = split_again(lm.tokenizer, vocabulary.ngrams) if params.rows == "text" else None
    model = with_vocabulary(
        lm.model, vocabulary, params.init, params.seed, untie=params.finetune_steps > 0, runs=runs
    )
    made_of = {
        "origin": lm.weights_hash,
        "vocabulary": vocabulary,
        "init": params.init,
        "seed": params.seed,
        "segmentation": params.segmentation,
        "rows": params.rows,
    }
    made = dataclasses.replace(
        lm,
        model=model,
        tokenizer=patch,
        network=resized(lm.network, model),
        weights_hash=digest(made_of),
        counters=(patch,),
    )
    if params.finetune_steps > 0:
        text = corpus(params.data)
        tuning = Tuning(
            steps=params.finetune_steps, learning_rate=params.learning_rate, seed=params.seed
        )
        file = tuned(made, text.train, tuning, made_of=digest({**made_of, "text": text.hash}))
        made = dataclasses.replace(
            made,
            model=with_weights(model, file),
            weights_hash=digest([made.weights_hash, file.stem]),
        )
        patch.reset()
    return made
