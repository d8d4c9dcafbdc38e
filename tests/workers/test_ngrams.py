"""N-grams in token sequences: the trie finds what a scan of all n-grams finds, longest first or by
score.
"""

from hypothesis import given
from hypothesis import strategies as st

from tests.fixtures.ngram_scan import scan
from workers.vocabulary import replace_ngrams, trie


@given(
    tokens=st.lists(st.integers(0, 3), max_size=40),
    ngrams=st.sets(st.lists(st.integers(0, 3), min_size=2, max_size=5).map(tuple), max_size=12),
)
def test_the_longest_match_is_what_a_scan_of_all_n_grams_finds(
    tokens: list[int], ngrams: set[tuple[int, ...]]
) -> None:
    """On random overlapping n-grams the trie and the naive scan agree."""
    numbered = {ngram: 100 + index for index, ngram in enumerate(sorted(ngrams))}
    assert replace_ngrams(tokens, trie(numbered)) == scan(tokens, numbered)


@given(
    tokens=st.lists(st.integers(0, 3), max_size=40),
    ngrams=st.lists(
        st.lists(st.integers(0, 3), min_size=2, max_size=5).map(tuple), max_size=12, unique=True
    ),
)
def test_segmentation_by_score_is_the_authors_scan(
    tokens: list[int], ngrams: list[tuple[int, ...]]
) -> None:
    """At each token the first n-gram by score that begins there is taken."""
    numbered = {ngram: 100 + index for index, ngram in enumerate(ngrams)}
    wanted, at = [], 0
    while at < len(tokens):
        first = next(
            (ngram for ngram in ngrams if tuple(tokens[at : at + len(ngram)]) == ngram), None
        )
        wanted.append(tokens[at] if first is None else numbered[first])
        at += len(first or (0,))
    assert (
        replace_ngrams(tokens, trie(numbered), {token: token for token in numbered.values()})
        == wanted
    )
