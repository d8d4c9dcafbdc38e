"""The patch tokenizer against scanning n-grams in the order of their savings: `uv run python -m
tests.benchmarks.vocabulary`.

With `--quality tiny_lm` what n-tokens cost, in bits per byte (minutes, most of them fine-tuning).
Speed is measured on the held-out part of `topics`, with a tokenizer of 2048 tokens and 500 n-tokens
of that domain. The scan is what the method's description leads to (at each token every n-gram is
tried, the most saving one first); the scan by length finds the same tokens as the trie. All run
interleaved in one process; times are medians, ratios are of pairs of one round.
"""

import argparse
import math
import statistics
import time
from collections.abc import Callable, Sequence
from typing import get_args

import torch

from sweeps.model.condition import Condition
from tests.fixtures.ngram_scan import scan
from workers.data.text import corpus
from workers.data.tokenization import trained_tokenizer
from workers.methods.language.adaptivocab import Params, apply
from workers.models.language import LanguageModel, load_language
from workers.vocabulary import PatchTokenizer, Vocabulary, replace_ngrams, trie
from workers.vocabulary.adaptation import Init, cut
from workers.vocabulary.build import Mode, VocabularyRecipe, build_vocabulary

ROUNDS = 7
NGRAMS = 500
TARGET = 20
PIECE = 2000
"""Characters that are read at once; the smallest model of the project has room for them."""


def scan_in_order(tokens: list[int], ngrams: dict[tuple[int, ...], int]) -> list[int]:
    """The tokens with, from left to right, the first n-gram that begins at a token replaced, in the
    order they are given in.
    """
    found = []
    at = 0
    while at < len(tokens):
        for ngram, token in ngrams.items():
            if tuple(tokens[at : at + len(ngram)]) == ngram:
                found.append(token)
                at += len(ngram)
                break
        else:
            found.append(tokens[at])
            at += 1
    return found


def speed() -> None:
    """The patch tokenizer and the scans, side by side."""
    text = corpus("topics")
    tokenizer = trained_tokenizer(2048)
    vocabulary: Vocabulary = build_vocabulary(
        tokenizer, text.train, VocabularyRecipe(ngrams=NGRAMS)
    )
    patch = PatchTokenizer(tokenizer, vocabulary)
    documents = [tokenizer.encode(document) for document in text.held_out]
    numbered = dict(zip(vocabulary.ngrams, vocabulary.ids, strict=True))
    root = trie(numbered)
    ways: dict[str, Callable[[], list[list[int]]]] = {
        "trie": lambda: [replace_ngrams(tokens, root) for tokens in documents],
        "scan, longest first": lambda: [scan(tokens, numbered) for tokens in documents],
        "scan, most saving first": lambda: [
            scan_in_order(tokens, numbered) for tokens in documents
        ],
        "tokenizer below": lambda: [tokenizer.encode(document) for document in text.held_out],
        "tokenizer and trie": lambda: [patch.encode(document) for document in text.held_out],
        "tokenizer and scan": lambda: [
            scan_in_order(tokenizer.encode(document), numbered) for document in text.held_out
        ],
    }
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    found = {}
    for _ in range(ROUNDS):
        for name, way in ways.items():
            began = time.perf_counter()
            found[name] = way()
            seconds[name].append(time.perf_counter() - began)
    assert found["trie"] == found["scan, longest first"] == found["tokenizer and trie"]
    count = sum(map(len, documents))
    for name, times in seconds.items():
        tokens = sum(map(len, found[name]))
        print(
            f"{name:24}  {1e6 * statistics.median(times) / count:8.3f} us for each of {count}"
            f" tokens, gives {tokens}"
        )
    for fast, slow in (
        ("trie", "scan, most saving first"),
        ("trie", "scan, longest first"),
        ("tokenizer and trie", "tokenizer and scan"),
    ):
        ratio = statistics.median(
            slower / faster for faster, slower in zip(seconds[fast], seconds[slow], strict=True)
        )
        print(f"{fast} is {ratio:.0f}x as fast as {slow} (requested: {TARGET}x)")


def reduction() -> None:
    """Tokens saved in the held-out part, with n-tokens added and with the vocabulary's size
    kept.
    """
    text = corpus("topics")
    tokenizer = trained_tokenizer(2048)
    for mode in get_args(Mode):
        for ngrams in (100, 250, NGRAMS, 1000):
            patch = PatchTokenizer(
                tokenizer,
                build_vocabulary(tokenizer, text.train, VocabularyRecipe(ngrams=ngrams, mode=mode)),
            )
            for document in text.held_out:
                patch.encode(document)
            counts = patch.metrics()
            saved = 1 - counts["encoded_tokens"] / counts["encoded_tokens_base"]
            print(
                f"{mode:8} {ngrams:5} n-tokens: {100 * saved:5.1f} % fewer tokens in held-out text"
            )


def quality(model: str, steps: int) -> None:
    """Bits per byte of held-out text: as it was, with n-tokens, and after fine-tuning, with the
    tokenizer as it was tuned alike.
    """
    text = corpus("topics")
    weights = "random" if model.startswith((".", "/")) else "trained"
    given = load_language(Condition(model=model, weights=weights))
    arms = [
        Params(ngrams=0),
        *(Params(ngrams=NGRAMS, init=init) for init in get_args(Init)),
        Params(ngrams=NGRAMS, mode="replace"),
        Params(ngrams=0, finetune_steps=steps),
        *(Params(ngrams=NGRAMS, init=init, finetune_steps=steps) for init in get_args(Init)),
        Params(ngrams=NGRAMS, mode="replace", finetune_steps=steps),
    ]
    for params in arms:
        nats, tokens, size = read_vocabulary(apply(given, params), list(cut(text.held_out, PIECE)))
        output = (
            f"{params.ngrams:4} n-tokens, {params.mode:7}, {params.init:10},"
            f" {params.finetune_steps:3} steps"
        )
        bits, perplexity = nats / math.log(2) / size, math.exp(nats / tokens)
        print(
            f"{output}: {bits:.3f} bits per byte, {tokens} tokens, perplexity {perplexity:.0f} of"
            " its own tokens",
            flush=True,
        )


def read_vocabulary(lm: LanguageModel, pieces: Sequence[str]) -> tuple[float, int, int]:
    """Nats of all pieces, each read behind a token that ends a document; their tokens, and their
    bytes.
    """
    nats, tokens = 0.0, 0
    with torch.inference_mode():
        for piece in pieces:
            row = torch.tensor([[0, *lm.tokenizer.encode(piece)]])
            logits_TV = lm.model(input_ids=row, use_cache=False).logits[0, :-1]
            nats += float(torch.nn.functional.cross_entropy(logits_TV, row[0, 1:], reduction="sum"))
            tokens += row.shape[1] - 1
    return nats, tokens, sum(len(piece.encode()) for piece in pieces)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--quality",
        metavar="MODEL",
        help="read bits per byte with this model: tiny_lm, tiny_lm_smoke, or a folder",
    )
    parser.add_argument("--steps", type=int, default=40, help="of fine-tuning")
    requested = parser.parse_args()
    if requested.quality is not None:
        quality(requested.quality, requested.steps)
    else:
        reduction()
        speed()


if __name__ == "__main__":
    main()
