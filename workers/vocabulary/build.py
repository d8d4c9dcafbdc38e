"""Selects the vocabulary of a domain: which tokens a patch removes, and which runs of tokens become
one; imports no torch.

AdaptiVocab (Nakash et al., COLM 2025, arXiv 2503.19693, section 3). The saving of an n-gram is
exact given the n-grams selected so far: the text is a row of units, each a token or an n-token; an
occurrence counts where it begins and ends between units, and saves its units less one. Savings only
fall while others are selected, so one that still leads when it is recounted is the largest.
"""

import heapq
import json
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sweeps.model.identity import FrozenModel, digest
from workers.cache import cached
from workers.errors import Unsupported
from workers.vocabulary import (
    UnusableVocabulary,
    Vocabulary,
    read_vocabulary,
    special_tokens,
    tokenizer_hash,
    without,
)

Mode = Literal["append", "replace"]
Integers = NDArray[np.int64]
_NONE = -1
"""Between two documents, and instead of a special token: no n-gram spans it."""


class VocabularyRecipe(FrozenModel):
    """How a vocabulary is selected."""

    version: int = 1
    """Raised when the same recipe would give another vocabulary."""
    ngrams: int
    """How many n-tokens to add."""
    mode: Mode = "append"
    """`append`: none is removed. `replace`: as many are removed as are added."""
    longest: int = 4
    """Tokens that an n-token stands for at most."""
    minimum: int = 3
    """Least number of occurrences of an n-gram, and of documents (or all of them) that contain
    it."""


class SelectedNgram(NamedTuple):
    """An n-gram, and the tokens that it saved when it was selected."""

    ngram: tuple[int, ...]
    saving: int


def cached_vocabulary(
    tokenizer: Any, texts: Sequence[str], recipe: VocabularyRecipe, *, weights_hash: str, text: str
) -> Vocabulary:
    """The vocabulary for a model's tokenizer, from the cache or built now.

    `weights_hash` is the model's, `text` the hash of `texts`. Raises what `build_vocabulary`
    raises.
    """
    key = digest(
        {
            "recipe": recipe,
            "origin": weights_hash,
            "tokenizer": tokenizer_hash(tokenizer),
            "text": text,
        }
    )

    def make(file: Path) -> None:
        build_vocabulary(tokenizer, texts, recipe, text=text).write(file)

    return read_vocabulary(cached(f"vocabulary-{key}.json", make))


def build_vocabulary(
    tokenizer: Any, texts: Sequence[str], recipe: VocabularyRecipe, *, text: str = ""
) -> Vocabulary:
    """The vocabulary that saves tokens in `texts`; its hash is `text`.

    Raises `UnusableVocabulary` where the texts give fewer n-grams than requested, or fewer tokens
    can be removed, and `Unsupported` where tokens are to be removed from a tokenizer without
    merges.
    """
    encoded = tokenizer.backend.encode_batch_fast(list(texts), add_special_tokens=False)
    documents = [each.ids for each in encoded]
    removed: dict[int, tuple[int, ...]] = {}
    if recipe.mode == "replace":
        tokens = np.concatenate([np.array(each, np.int64) for each in documents])
        counts = np.bincount(tokens, minlength=tokenizer.size)
        removed = removals(tokenizer, counts, recipe.ngrams)
        documents = [without(each, removed) for each in documents]
    found = select_ngrams(
        documents,
        recipe.ngrams,
        longest=recipe.longest,
        minimum=recipe.minimum,
        never=special_tokens(tokenizer),
    )
    if len(found) < recipe.ngrams:
        raise UnusableVocabulary(
            f"the text holds {len(found)} n-grams that occur {recipe.minimum} times and save a"
            f" token, fewer than ngrams: {recipe.ngrams}; request at most that many, or give a"
            " longer text"
        )
    return Vocabulary(
        tokenizer=tokenizer_hash(tokenizer),
        tokens=tokenizer.size,
        removed=removed,
        ngrams=tuple(each.ngram for each in found),
        savings=tuple(each.saving for each in found),
        text=text,
    )


def removals(tokenizer: Any, counts: Integers, number: int) -> dict[int, tuple[int, ...]]:
    """The `number` tokens of least value, each with the remaining tokens that replace it; `counts`
    [tokens] are the domain's.

    Tokens absent from the domain come first, the longest before others, then the least frequent.
    Special tokens, single characters and tokens that no merge makes stay. Raises as
    `build_vocabulary` does.
    """
    parts = merges(tokenizer)
    if not parts:
        raise Unsupported(
            "a tokenizer without merges has no parts to replace a token by; mode: append removes"
            " none"
        )
    name = tokenizer.backend.id_to_token
    order = sorted(parts, key=lambda token: (counts[token], -len(name(token)), token))
    if len(order) < number:
        raise UnusableVocabulary(
            f"only {len(order)} of the {number} tokens can be removed; request fewer n-grams"
        )
    gone = frozenset(order[:number])
    return {token: decomposed(token, parts, gone) for token in order[:number]}


def decomposed(
    token: int, parts: Mapping[int, tuple[int, int]], gone: frozenset[int]
) -> tuple[int, ...]:
    """The remaining tokens that together are `token`: its two parts, where a removed part is itself
    decomposed.
    """
    if token not in gone:
        return (token,)
    left, right = parts[token]
    return (*decomposed(left, parts, gone), *decomposed(right, parts, gone))


def merges(tokenizer: Any) -> dict[int, tuple[int, int]]:
    """The tokens that may be removed, each with the two parts of its first merge; none for a
    tokenizer without merges.
    """
    fast, special = tokenizer.backend, special_tokens(tokenizer)
    vocabulary = fast.get_vocab(with_added_tokens=True)
    found: dict[int, tuple[int, int]] = {}
    for left, right in json.loads(fast.to_str())["model"].get("merges") or ():
        token = vocabulary.get(left + right)
        if token is not None and token not in special and token not in found:
            found[token] = (vocabulary[left], vocabulary[right])
    return found


def select_ngrams(
    documents: Sequence[Sequence[int]],
    number: int,
    *,
    longest: int,
    minimum: int,
    never: frozenset[int] = frozenset(),
) -> list[SelectedNgram]:
    """Up to `number` n-grams of 2 to `longest` tokens, each saving most given those before; of
    equals the shorter, then the lower.

    An n-gram needs `minimum` occurrences that still save, and documents (see `VocabularyRecipe`);
    none contains a token of `never`.
    """
    text = _joined(documents, longest, never)
    places = _occurrences(text, longest, minimum)
    spread = min(minimum, len(documents))
    if spread > 1:
        document = np.repeat(np.arange(len(documents)), [len(each) + 1 for each in documents])
        places = [(length, at) for length, at in places if len(np.unique(document[at])) >= spread]
    begins = np.ones(len(text), dtype=bool)
    """Whether a unit begins there."""
    bounds = [(-len(at) * (length - 1), length, index) for index, (length, at) in enumerate(places)]
    heapq.heapify(bounds)
    found: list[SelectedNgram] = []
    while bounds and len(found) < number:
        _, length, index = heapq.heappop(bounds)
        at = places[index][1]
        at = at[begins[at] & begins[at + length]]
        places[index] = (length, at)
        if len(at) < minimum:
            continue
        ahead = np.arange(1, length)
        saves = begins[at[:, None] + ahead].sum(1)
        taken = disjoint(at, saves, length)
        bound = (-int(saves[taken].sum()), length, index)
        if bounds and bound > bounds[0]:
            heapq.heappush(bounds, bound)
            continue
        inside = at[taken]
        found.append(SelectedNgram(tuple(text[inside[0] : inside[0] + length].tolist()), -bound[0]))
        begins[inside[:, None] + ahead] = False
    return found


def disjoint(at: Integers, saves: Integers, length: int) -> Integers:
    """Which of the occurrences that begin at `at` (ascending) save most without overlapping; the
    earlier of equals.
    """
    if len(at) < 2 or (np.diff(at) >= length).all():
        return np.arange(len(at))
    before = np.searchsorted(at, at - length, side="right").tolist()
    best = [0]
    for index, saving in enumerate(saves.tolist()):
        best.append(max(best[index], best[before[index]] + saving))
    taken = []
    index = len(at)
    while index > 0:
        if best[index] == best[index - 1]:
            index -= 1
        else:
            taken.append(index - 1)
            index = before[index - 1]
    return np.array(taken[::-1], dtype=np.int64)


def _joined(documents: Sequence[Sequence[int]], longest: int, never: frozenset[int]) -> Integers:
    """All documents in one row, `_NONE` between them, instead of tokens of `never`, and `longest`
    times at the end.
    """
    ended = ((*document, _NONE) for document in documents)
    text = np.array([*chain.from_iterable(ended), *[_NONE] * longest], dtype=np.int64)
    text[np.isin(text, list(never))] = _NONE
    return text


def _occurrences(text: Integers, longest: int, minimum: int) -> list[tuple[int, Integers]]:
    """Each n-gram that occurs `minimum` times: its length, and where it begins; the shorter first,
    then by their tokens.
    """
    found: list[tuple[int, Integers]] = []
    last = len(text) - longest
    names = text[:last]
    for length in range(2, longest + 1):
        # An n-gram is named by the one without its last token, whose names are in the order of
        # their tokens, and that token.
        following = text[length - 1 : length - 1 + last]
        pairs = np.where(
            (names >= 0) & (following >= 0), names * (int(text.max()) + 1) + following, _NONE
        )
        named, inverse, counts = np.unique(pairs, return_inverse=True, return_counts=True)
        frequent = (counts >= minimum) & (named >= 0)
        order = np.argsort(inverse, kind="stable")
        ends = np.cumsum(counts)
        found += [
            (length, order[ends[name] - counts[name] : ends[name]])
            for name in np.flatnonzero(frequent)
        ]
        names = np.where(frequent[inverse], inverse, _NONE)
    return found
