"""N-grams: a trie, and their replacement in token sequences; imports no torch."""

from collections.abc import Mapping, Sequence
from typing import Any

_END = -1
"""The key of the n-token that ends at a node of the trie; tokens are not negative."""


def trie(ngrams: Mapping[Sequence[int], int]) -> dict[int, Any]:
    """N-grams, each with its n-token, as nested mappings from token to its successors."""
    root: dict[int, Any] = {}
    for ngram, token in ngrams.items():
        node = root
        for part in ngram:
            node = node.setdefault(part, {})
        node[_END] = token
    return root


def replace_ngrams(tokens: Sequence[int], root: Mapping[int, Any], rank: Mapping[int, int] | None = None) -> list[int]:
    """The tokens with, from left to right, the longest n-gram that begins at a token replaced by its n-token.

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
