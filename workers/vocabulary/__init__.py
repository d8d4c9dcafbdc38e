"""A patch over any fast tokenizer: some tokens are removed, runs of others become one token (an
n-token); imports no torch.

AdaptiVocab (Nakash et al., COLM 2025, arXiv 2503.19693, section 3). A text is first encoded by the
unmodified tokenizer; then each removed token is replaced by its parts, then, from left to right,
the longest n-gram that begins at a token by its n-token, or, as in the authors' code, the one with
the highest score.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, ValidationError, model_validator
from tokenizers import Tokenizer as Backend

from sweeps.model.identity import FrozenModel, digest
from workers.data.tokenization import FastTokenizer
from workers.errors import Unsupported

Format = Literal["breakeven-vocabulary-1"]
FORMAT: Format = "breakeven-vocabulary-1"
_END = -1
"""The key of the n-token that ends at a node of the trie; tokens are not negative."""
PICKLES = frozenset({".pkl", ".pickle", ".pt", ".pth", ".bin", ".joblib"})

Segmentation = Literal["longest", "score"]
"""Which of several n-grams that begin at a token replaces it."""


class UnusableVocabulary(Unsupported):
    """A vocabulary that cannot be read or used with this tokenizer; the message names the reason
    and the remedy.
    """


class Vocabulary(FrozenModel):
    """The tokens that a patch removes from a tokenizer and adds to it; all ids are those of the
    unmodified tokenizer.
    """

    format: Format = FORMAT
    tokenizer: str
    """`tokenizer_hash` of the tokenizer that it is made for."""
    tokens: int = Field(gt=0)
    """Tokens of that tokenizer: n-tokens without the id of a removed token are numbered from here
    on."""
    removed: dict[int, tuple[int, ...]] = Field(default_factory=dict)
    """Removed tokens, each with the tokens that replace it, in the order in which n-tokens take
    their ids."""
    ngrams: tuple[tuple[int, ...], ...] = ()
    """The tokens that each n-token stands for; the one that saves most comes first."""
    savings: tuple[int, ...] = ()
    """Tokens that each n-token saved in the text that it was found in, when it was selected."""
    text: str = ""
    """Hash of that text."""

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if len(set(self.ngrams)) < len(self.ngrams):
            raise ValueError("an n-gram is listed twice")
        if len(self.removed) > len(self.ngrams):
            raise ValueError(
                f"{len(self.removed)} tokens are removed and {len(self.ngrams)} added; a vocabulary"
                " does not shrink"
            )
        for run in (*self.ngrams, *self.removed.values()):
            if len(run) < 2:
                raise ValueError(f"{run} is no run of at least two tokens")
            for token in run:
                if not 0 <= token < self.tokens or token in self.removed:
                    raise ValueError(
                        f"{run} holds {token}, which is"
                        f" {'removed' if token in self.removed else 'no token'}"
                    )
        return self

    @property
    def ids(self) -> tuple[int, ...]:
        """The id of each n-token: first those of the removed tokens, then those after the last
        token.
        """
        return (*self.removed, *range(self.tokens, self.size))

    @property
    def size(self) -> int:
        """Tokens of the tokenizer with the n-tokens."""
        return self.tokens + len(self.ngrams) - len(self.removed)

    def write(self, file: Path) -> None:
        file.write_text(self.model_dump_json() + "\n", encoding="utf-8")


def refuse_pickle(file: Path) -> None:
    """Raises `UnusableVocabulary` for a file whose suffix is that of a pickle, before it is
    opened.
    """
    if file.suffix.lower() in PICKLES:
        raise UnusableVocabulary(
            f"{file}: a pickle can run any code when it is opened, so it is not read; convert"
            " n-grams and removed tokens to JSON, "
            f'as {{"format": "{FORMAT}", "tokenizer": HASH, "tokens": 32000, "removed": {{"ID":'
            ' [ID, ID]}, "ngrams": [[ID, ID]]}'
        )


def read_vocabulary(file: Path) -> Vocabulary:
    """The vocabulary in a file of `Vocabulary.write`. Raises `UnusableVocabulary`; nothing is ever
    unpickled.
    """
    refuse_pickle(file)
    try:
        return Vocabulary.model_validate_json(file.read_bytes())
    except OSError as error:
        raise UnusableVocabulary(
            f"{file}: cannot be read as a vocabulary in JSON: {error}"
        ) from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        raise UnusableVocabulary(
            f"{file}: is no vocabulary ({FORMAT}): {where}: {first['msg']}; write it again, or"
            " leave `file` out to have one built"
        ) from error


def backend(tokenizer: object) -> Backend:
    """The tokenizer of the library `tokenizers` inside a model's. Raises `UnusableVocabulary` where
    there is none.
    """
    if isinstance(tokenizer, PatchTokenizer):
        raise UnusableVocabulary(
            "the tokenizer is patched already; a vocabulary is built for the one below it"
        )
    if not isinstance(tokenizer, FastTokenizer):
        raise UnusableVocabulary(
            f"{type(tokenizer).__name__} is no fast tokenizer (tokenizers.Tokenizer), which a patch"
            " needs"
        )
    return tokenizer.backend


def tokenizer_hash(tokenizer: object) -> str:
    """Hash of everything that determines how a tokenizer splits a text."""
    parts = json.loads(backend(tokenizer).to_str())
    del parts["post_processor"]
    return digest(parts)


def special_tokens(tokenizer: object) -> frozenset[int]:
    """The special and other added tokens: they are never removed and never part of an n-gram."""
    return frozenset(backend(tokenizer).get_added_tokens_decoder())


def split_again(
    tokenizer: object, ngrams: Iterable[tuple[int, ...]]
) -> tuple[tuple[int, ...], ...]:
    """For each n-gram the tokens that the tokenizer's model splits its text into, which may be
    fewer; where it loses some, its own.

    The text is that of the vocabulary, where a space is a letter of a token: none is added before
    it.
    """
    fast = backend(tokenizer)

    def split(ngram: tuple[int, ...]) -> tuple[int, ...]:
        text = "".join(fast.id_to_token(token) or "" for token in ngram)
        pieces = fast.model.tokenize(text)
        whole = "".join(piece.value for piece in pieces) == text
        return tuple(piece.id for piece in pieces) if whole else ngram

    return tuple(map(split, ngrams))


class PatchTokenizer:
    """A `workers.models.language.Tokenizer` with a vocabulary's n-tokens instead of the tokens
    that it removes.

    `decode(encode(text))` equals that of the base tokenizer, which is the text itself for
    byte-level ones. It counts the tokens since `reset`.
    """

    def __init__(
        self, tokenizer: object, vocabulary: Vocabulary, segmentation: Segmentation = "longest"
    ) -> None:
        """`score`: of several n-grams the one that is listed first in the vocabulary.

        Raises `UnusableVocabulary` where the vocabulary was made for another tokenizer or touches
        its special tokens.
        """
        self.backend = backend(tokenizer)
        if (own := tokenizer_hash(tokenizer)) != vocabulary.tokenizer:
            raise UnusableVocabulary(
                f"the vocabulary was made for another tokenizer ({vocabulary.tokenizer}, and the"
                f" model's is {own}); build one for this model: leave `file` out"
            )
        specials = special_tokens(tokenizer)
        for run in (vocabulary.removed, *vocabulary.ngrams):
            if touched := sorted(specials & set(run)):
                raise UnusableVocabulary(
                    f"the vocabulary removes or merges {touched}, special tokens of the tokenizer"
                )
        self.vocabulary = vocabulary
        self._merged = dict(zip(vocabulary.ids, vocabulary.ngrams, strict=True))
        self._trie = trie({ngram: token for token, ngram in self._merged.items()})
        self._runs = {**vocabulary.removed, **self._merged}
        self._rank = (
            {token: rank for rank, token in enumerate(vocabulary.ids)}
            if segmentation == "score"
            else None
        )
        self.reset()

    @property
    def size(self) -> int:
        return self.vocabulary.size

    def encode(self, text: str) -> list[int]:
        below = self.backend.encode(text, add_special_tokens=False).ids
        found = replace_ngrams(without(below, self.vocabulary.removed), self._trie, self._rank)
        self._encoded += len(found)
        self._encoded_base += len(below)
        return found

    def decode(self, tokens: Sequence[int]) -> str:
        self._decoded += len(tokens)
        self._decoded_merged += sum(token in self._merged for token in tokens)
        return str(self.backend.decode(self.expand(tokens), skip_special_tokens=False))

    def expand(self, tokens: Iterable[int]) -> list[int]:
        """The tokens of the base tokenizer that some tokens stand for."""
        return [part for token in tokens for part in self._runs.get(token, (token,))]

    def reset(self) -> None:
        """Set the counts to 0."""
        self._encoded = self._encoded_base = self._decoded = self._decoded_merged = 0

    def metrics(self) -> Mapping[str, float]:
        """Counts since `reset`: tokens encoded, those of the base tokenizer for the same texts,
        tokens and n-tokens decoded.
        """
        return {
            "encoded_tokens": self._encoded,
            "encoded_tokens_base": self._encoded_base,
            "decoded_tokens": self._decoded,
            "decoded_ntokens": self._decoded_merged,
        }


def trie(ngrams: Mapping[Sequence[int], int]) -> dict[int, Any]:
    """N-grams, each with its n-token, as nested mappings from token to its successors."""
    root: dict[int, Any] = {}
    for ngram, token in ngrams.items():
        node = root
        for part in ngram:
            node = node.setdefault(part, {})
        node[_END] = token
    return root


def replace_ngrams(
    tokens: Sequence[int], root: Mapping[int, Any], rank: Mapping[int, int] | None = None
) -> list[int]:
    """The tokens with, from left to right, the longest n-gram that begins at a token replaced by
    its n-token.

    `rank`: of those that begin at a token, the one whose n-token has the lowest rank.
    """
    found: list[int] = []
    at, length = 0, len(tokens)
    while at < length:
        token, best = tokens[at], None
        at += 1
        node = root.get(token)
        if node is not None:
            ahead = at
            while ahead < length and (node := node.get(tokens[ahead])) is not None:
                ahead += 1
                if _END in node:
                    own = -ahead if rank is None else rank[node[_END]]
                    if best is None or own < best:
                        token, at, best = node[_END], ahead, own
        found.append(token)
    return found


def without(tokens: list[int], removed: Mapping[int, Sequence[int]]) -> list[int]:
    """The tokens with each removed one replaced by its parts."""
    if not removed:
        return tokens
    return [part for token in tokens for part in removed.get(token, (token,))]
