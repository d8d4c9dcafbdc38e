"""How a vocabulary is found: the greedy choice against brute force, removal and decomposition by
hand, and the cache.
"""

import itertools
import json
import random
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
from workers.vocabulary import (
    PatchTokenizer,
    UnusableVocabulary,
    Vocabulary,
    tokenizer_hash,
)
from workers.vocabulary.build import (
    SelectedNgram,
    VocabularyRecipe,
    build_vocabulary,
    cached_vocabulary,
    decomposed,
    disjoint,
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


@settings(max_examples=150, deadline=None)
@given(
    documents=st.lists(st.lists(st.integers(0, 2), max_size=9), max_size=3),
    longest=st.integers(2, 4),
    minimum=st.integers(1, 3),
)
def test_the_greedy_choice_is_exact(documents: list[list[int]], longest: int, minimum: int) -> None:
    """On random texts over three tokens, full of overlaps, each choice is the best one that
    counting all anew finds.
    """
    assert select_ngrams(documents, 4, longest=longest, minimum=minimum) == brute(
        documents, 4, longest, minimum
    )


@pytest.mark.parametrize(
    ("text", "longest", "expected"),
    [
        ([A, A, A, A], 2, [SelectedNgram((A, A), 2)]),
        ([A, A, A, A], 4, [SelectedNgram((A,) * 4, 3)]),
        ([A, A, A, A, A], 2, [SelectedNgram((A, A), 2)]),
        # Of two that save the same, the shorter: a pair of pairs then saves one more.
        ([A, A, A, A], 3, [SelectedNgram((A, A), 2)]),
        ([A, B, A, B, A, B, A, B], 4, [SelectedNgram((A, B, A, B), 6)]),
        ([A, B, A, B, A, B], 4, [SelectedNgram((A, B), 3), SelectedNgram((A, B, A, B), 1)]),
        # B C would save as much, but not behind A B, which took its B.
        ([A, B, C, X, A, B, C, A, B], 2, [SelectedNgram((A, B), 3)]),
        # A B C takes in the A B that is there already: one more token saved at each of two places.
        (
            [A, B, C, D, A, B, C, X, A, B, X, A, B, D, A, B],
            3,
            [SelectedNgram((A, B), 5), SelectedNgram((A, B, C), 2)],
        ),
    ],
)
def test_choices_by_hand(text: list[int], longest: int, expected: list[SelectedNgram]) -> None:
    """Savings with overlaps that can be counted on one's fingers."""
    assert select_ngrams([text], len(expected), longest=longest, minimum=1) == expected


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


def test_disjoint_takes_the_earlier_of_equals_and_the_more_saving_of_others() -> None:
    """A run of overlapping occurrences: from left to right when all save the same, otherwise what
    saves most together.
    """
    at = np.array([0, 1, 2, 3])
    assert disjoint(at, np.array([1, 1, 1, 1]), 2).tolist() == [0, 2]
    assert disjoint(at, np.array([1, 3, 1, 1]), 2).tolist() == [1, 3]
    assert disjoint(at, np.array([1, 3, 1, 1]), 3).tolist() == [1]


def test_savings_are_those_of_the_text() -> None:
    """Where no n-gram stands in another's way, the tokens saved in the text are the sum of the
    savings, for one n-gram exactly.
    """
    tokenizer = bytes_bpe()
    vocabulary = build_vocabulary(tokenizer, TEXTS, VocabularyRecipe(ngrams=1))
    patched = PatchTokenizer(tokenizer, vocabulary)
    before = sum(len(tokenizer.encode(text)) for text in TEXTS)
    assert before - sum(len(patched.encode(text)) for text in TEXTS) == vocabulary.savings[0] > 0


def test_more_n_grams_save_more() -> None:
    """Vocabularies are nested, savings fall from one n-gram to the next, and tokens fall with their
    number.
    """
    tokenizer = bytes_bpe()
    built = [
        build_vocabulary(tokenizer, TEXTS, VocabularyRecipe(ngrams=count)) for count in (10, 40, 80)
    ]
    assert built[0].ngrams == built[2].ngrams[:10]
    assert list(built[2].savings) == sorted(built[2].savings, reverse=True)
    counts = [
        sum(len(PatchTokenizer(tokenizer, each).encode(text)) for text in TEXTS) for each in built
    ]
    assert counts[0] > counts[1] > counts[2]


def tower() -> FastTokenizer:
    """Letters and tokens of up to four: abcd = abc + d, abc = ab + c, ab = a + b, cd = c + d; and
    two special tokens.
    """
    merged = [("a", "b"), ("ab", "c"), ("abc", "d"), ("c", "d")]
    names = ["a", "b", "c", "d", *(left + right for left, right in merged)]
    backend = Backend(models.BPE({name: index for index, name in enumerate(names)}, merged))
    backend.add_special_tokens([END, "<pad>"])
    return FastTokenizer(backend)


def test_decomposition_is_recursive() -> None:
    """A token whose parts are removed too is written as their parts, down to what stays."""
    names = tower().backend.get_vocab()
    parts = merges(tower())
    whole = names["abcd"]
    assert decomposed(whole, parts, frozenset({whole})) == (names["abc"], names["d"])
    assert decomposed(whole, parts, frozenset({whole, names["abc"]})) == (
        names["ab"],
        names["c"],
        names["d"],
    )
    gone = frozenset({whole, names["abc"], names["ab"]})
    assert decomposed(whole, parts, gone) == tuple(names[letter] for letter in "abcd")
    assert decomposed(names["d"], parts, gone) == (names["d"],)


def test_removal_order_by_hand() -> None:
    """Absent tokens go first, the longest before others, then the least frequent; letters and
    special tokens never do.
    """
    names = tower().backend.get_vocab()
    counts = np.zeros(len(names), dtype=np.int64)
    counts[names["ab"]], counts[names["cd"]] = 2, 1
    found = removals(tower(), counts, 4)
    assert list(found) == [names[name] for name in ("abcd", "abc", "cd", "ab")]
    assert found[names["abcd"]] == tuple(names[letter] for letter in "abcd")
    with pytest.raises(UnusableVocabulary, match="only 4 of the 5 tokens can be removed"):
        removals(tower(), counts, 5)


def test_parts_of_every_removable_token_are_the_token() -> None:
    """The names of a token's parts, put together, are its own: no text changes."""
    tokenizer = bytes_bpe()
    parts = merges(tokenizer)
    gone = frozenset(parts)
    assert len(parts) == tokenizer.size - 257
    for token in parts:
        pieces = decomposed(token, parts, gone)
        assert not set(pieces) & gone
        assert "".join(map(tokenizer.backend.id_to_token, pieces)) == tokenizer.backend.id_to_token(
            token
        )


def test_merges_of_older_files() -> None:
    """Merges written as one string each are read as those written in pairs."""
    parts = json.loads(tower().backend.to_str())
    parts["model"]["merges"] = [" ".join(pair) for pair in parts["model"]["merges"]]
    assert merges(FastTokenizer(Backend.from_str(json.dumps(parts)))) == merges(tower())


def test_a_tokenizer_without_merges() -> None:
    """It has nothing to write in a removed token's place, which the message names; adding needs no
    merges.
    """
    assert merges(word_piece()) == {}
    with pytest.raises(Unsupported, match="without merges"):
        build_vocabulary(word_piece(), TEXTS, VocabularyRecipe(ngrams=5, mode="replace"))
    patched = PatchTokenizer(
        word_piece(), build_vocabulary(word_piece(), TEXTS, VocabularyRecipe(ngrams=5))
    )
    plain = word_piece().encode(TEXTS[0])
    assert len(patched.encode(TEXTS[0])) < len(plain)
    assert patched.decode(patched.encode(TEXTS[0])) == word_piece().decode(plain)


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


def test_the_same_text_gives_the_same_vocabulary() -> None:
    """Nothing is drawn: two builds are equal, and so is one of the documents in another order but
    for ties in the savings.
    """
    tokenizer = bytes_bpe()
    recipe = VocabularyRecipe(ngrams=40)
    built = build_vocabulary(tokenizer, TEXTS, recipe)
    assert build_vocabulary(tokenizer, TEXTS, recipe) == built
    mixed = list(TEXTS)
    random.Random(0).shuffle(mixed)
    assert build_vocabulary(tokenizer, mixed, recipe) == built
