"""How a vocabulary is found: the greedy choice against brute force, removal and decomposition by
hand, and the cache.
"""

import itertools
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer as Backend
from tokenizers import models

from tests.workers.domain import TEXTS, bytes_bpe, word_piece
from workers.data.tokenization import END, FastTokenizer
from workers.errors import Unsupported
from workers.vocabulary import PatchTokenizer, UnusableVocabulary, Vocabulary, tokenizer_hash
from workers.vocabulary.build import (
    SelectedNgram,
    VocabularyRecipe,
    build_vocabulary,
    cached_vocabulary,
    merges,
    removals,
    select_ngrams,
)

A, B, C, D, X = range(5)


def most(spans: Sequence[tuple[int, int]], length: int) -> list[int]:
    """Of occurrences (place, saving) the places that save most without overlapping, by trying all;
    the earliest of equals.
    """
    best: tuple[int, list[int]] = (0, [])
    for count in range(1, len(spans) + 1):
        for chosen in itertools.combinations(spans, count):
            places = [place for place, _ in chosen]
            if all(after - before >= length for before, after in itertools.pairwise(places)):
                saving = sum(saves for _, saves in chosen)
                best = max(
                    best,
                    (saving, places),
                    key=lambda found: (found[0], [-place for place in found[1]]),
                )
    return best[1]


def brute(
    documents: Sequence[Sequence[int]], number: int, longest: int, minimum: int
) -> list[SelectedNgram]:
    """What `choose` must find: every n-gram's saving counted anew for every choice; units are known
    by where they begin.
    """
    begins = [set(range(len(document) + 1)) for document in documents]
    spread = min(minimum, len(documents))
    held: dict[tuple[int, ...], set[int]] = {}
    for index, document in enumerate(documents):
        for length in range(2, longest + 1):
            for at in range(len(document) - length + 1):
                held.setdefault(tuple(document[at : at + length]), set()).add(index)
    everything = [ngram for ngram, where in held.items() if len(where) >= spread]
    found: list[SelectedNgram] = []
    for _ in range(number):
        options = []
        for ngram in everything:
            length = len(ngram)
            occurrences = [
                (index, at, sum(at + ahead in begins[index] for ahead in range(1, length)))
                for index, document in enumerate(documents)
                for at in range(len(document) - length + 1)
                if tuple(document[at : at + length]) == ngram and {at, at + length} <= begins[index]
            ]
            occurrences = [each for each in occurrences if each[2] > 0]
            if len(occurrences) < minimum:
                continue
            taken = [
                (index, at)
                for index in range(len(documents))
                for at in most(
                    [(at, saves) for where, at, saves in occurrences if where == index], length
                )
            ]
            saving = sum(saves for index, at, saves in occurrences if (index, at) in taken)
            options.append((-saving, length, ngram, taken))
        if not options:
            break
        saving, length, ngram, taken = min(options)
        found.append(SelectedNgram(ngram, -saving))
        for index, at in taken:
            begins[index] -= set(range(at + 1, at + length))
    return found


@settings(max_examples=60, deadline=None)
@given(
    documents=st.lists(st.lists(st.integers(0, 2), max_size=9), max_size=3),
    longest=st.integers(2, 4),
    minimum=st.integers(1, 3),
)
def test_the_greedy_choice_is_exact(documents: list[list[int]], longest: int, minimum: int) -> None:
    """On random texts full of overlaps each choice is the best that counting anew finds."""
    assert select_ngrams(documents, 4, longest=longest, minimum=minimum) == brute(
        documents, 4, longest, minimum
    )


def test_documents_and_special_tokens_end_an_n_gram() -> None:
    """No n-gram reaches from one document into the next, or over a token that is never merged."""
    assert select_ngrams([[A], [B], [A], [B]], 5, longest=3, minimum=1) == []
    assert select_ngrams([[A, X, B, A, X, B]], 5, longest=3, minimum=1, never=frozenset({X})) == [
        SelectedNgram((B, A), 1)
    ]


def test_rare_ones_are_left_out() -> None:
    """What occurs too seldom, or in too few of the documents, shows little of the domain."""
    document = [A, B, A, B, A, B]
    assert select_ngrams([document], 1, longest=2, minimum=3) == [SelectedNgram((A, B), 3)]
    assert select_ngrams([document], 1, longest=2, minimum=4) == []
    assert select_ngrams([document, [C], [D]], 1, longest=2, minimum=3) == []
    assert select_ngrams([document, [A, B], [A, B]], 1, longest=2, minimum=3) == [
        SelectedNgram((A, B), 5)
    ]


def tower() -> FastTokenizer:
    """Letters and tokens of up to four: abcd = abc + d, abc = ab + c, ab = a + b, cd = c + d; and
    two special tokens.
    """
    merged = [("a", "b"), ("ab", "c"), ("abc", "d"), ("c", "d")]
    names = ["a", "b", "c", "d", *(left + right for left, right in merged)]
    backend = Backend(models.BPE({name: index for index, name in enumerate(names)}, merged))
    backend.add_special_tokens([END, "<pad>"])
    return FastTokenizer(backend)


def test_removal_order_by_hand() -> None:
    """Absent tokens first, the longest before others, then the rarest; never letters."""
    names = tower().backend.get_vocab()
    counts = np.zeros(len(names), dtype=np.int64)
    counts[names["ab"]], counts[names["cd"]] = 2, 1
    found = removals(tower(), counts, 4)
    assert list(found) == [names[name] for name in ("abcd", "abc", "cd", "ab")]
    assert found[names["abcd"]] == tuple(names[letter] for letter in "abcd")
    with pytest.raises(UnusableVocabulary, match="only 4 of the 5 tokens can be removed"):
        removals(tower(), counts, 5)


def test_a_text_too_short() -> None:
    """Fewer n-grams than requested are an error that names how many there are."""
    with pytest.raises(
        UnusableVocabulary,
        match=r"holds 1 n-grams .* fewer than ngrams: 5; request at most that many",
    ):
        build_vocabulary(
            tower(), ["ddaddaddad" * 2], VocabularyRecipe(ngrams=5, longest=2, minimum=5)
        )


def test_kept_by_what_it_is_made_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A vocabulary is built once, and anew for another text, recipe, model or tokenizer."""
    monkeypatch.setenv("BREAKEVEN_CACHE", str(tmp_path))
    tokenizer, recipe = bytes_bpe(), VocabularyRecipe(ngrams=5)

    def obtained(
        tokenizer: FastTokenizer = tokenizer,
        recipe: VocabularyRecipe = recipe,
        *,
        weights_hash: str = "m",
        text: str = "t",
    ) -> Vocabulary:
        return cached_vocabulary(tokenizer, TEXTS, recipe, weights_hash=weights_hash, text=text)

    def files() -> dict[str, int]:
        return {file.name: file.stat().st_mtime_ns for file in tmp_path.glob("vocabulary-*.json")}

    first = obtained()
    assert (first.tokenizer, first.text, len(first.ngrams)) == (tokenizer_hash(tokenizer), "t", 5)
    written = files()
    assert obtained() == first
    assert files() == written
    obtained(text="other")
    obtained(recipe=VocabularyRecipe(ngrams=5, mode="replace"))
    obtained(weights_hash="other")
    obtained(bytes_bpe(400))
    assert len(files()) == 5


def test_a_tokenizer_without_merges() -> None:
    """It has nothing to write in a removed token's place; adding needs no merges."""
    assert merges(word_piece()) == {}
    with pytest.raises(Unsupported, match="without merges"):
        build_vocabulary(word_piece(), TEXTS, VocabularyRecipe(ngrams=5, mode="replace"))
    patched = PatchTokenizer(
        word_piece(), build_vocabulary(word_piece(), TEXTS, VocabularyRecipe(ngrams=5))
    )
    plain = word_piece().encode(TEXTS[0])
    assert len(patched.encode(TEXTS[0])) < len(plain)
    assert patched.decode(patched.encode(TEXTS[0])) == word_piece().decode(plain)
