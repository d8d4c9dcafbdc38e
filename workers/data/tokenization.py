"""Tokenizers of the Rust library `tokenizers`: read from a model's folder, or trained on
docstrings; imports no torch.
"""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from tokenizers import Tokenizer as Backend
from tokenizers import decoders, models, pre_tokenizers, trainers

from sweeps.model.identity import digest
from workers.cache import cached
from workers.data.text import DOCS, corpus, text_hash
from workers.errors import Unsupported

TOKENIZER_FILE = "tokenizer.json"
"""The file of a tokenizer beside its model."""
END = "<|endoftext|>"
"""Separates two documents in training; the first token of a tokenizer trained here."""
MAX_VOCABULARY = 32768
"""The docstrings contain few more n-grams that are worth a token."""
TRAINER_VERSION = 1
"""Raised when training gives other tokenizers than before."""


class FastTokenizer:
    """A `tokenizers.Tokenizer` without padding and truncation, as the protocol
    `workers.models.language.Tokenizer`.
    """

    def __init__(self, backend: Backend) -> None:
        backend.no_padding()
        backend.no_truncation()
        self.backend = backend
        # once: a dictionary of 32 000 tokens takes 5 ms, and decoding reads the size at each token
        self._size = max(backend.get_vocab(with_added_tokens=True).values(), default=-1) + 1

    @property
    def size(self) -> int:
        """The largest id of a token, special ones included, and one; there may be unused ids below
        it.
        """
        return self._size

    def encode(self, text: str) -> list[int]:
        """The tokens of a text, without any special token."""
        return list(self.backend.encode(text, add_special_tokens=False).ids)

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of some tokens."""
        return str(self.backend.decode(list(tokens), skip_special_tokens=False))

    @property
    def bos_ids(self) -> tuple[int, ...]:
        """The special tokens that the tokenizer puts before every text."""
        bare = self.encode("a")
        whole = list(self.backend.encode("a", add_special_tokens=True).ids)
        places = range(len(whole) - len(bare) + 1)
        return tuple(whole[: next((at for at in places if whole[at : at + len(bare)] == bare), 0)])


def read_tokenizer(file: Path) -> FastTokenizer:
    """The tokenizer in a `tokenizer.json`. Raises `FileNotFoundError`, and `Unsupported` for one
    that cannot be used.
    """
    if not file.is_file():
        raise FileNotFoundError(
            f"{file}: the model's folder has no tokenizer;"
            " AutoTokenizer.from_pretrained(DIR).save_pretrained(DIR) of transformers writes one"
            " for every fast tokenizer"
        )
    try:
        backend = Backend.from_file(str(file))
    except Exception as error:  # the library raises nothing narrower
        raise Unsupported(f"{file}: cannot be read as a tokenizer: {error}") from error
    if (
        isinstance(backend.model, models.BPE)
        and not json.loads(backend.to_str())["model"]["merges"]
    ):
        # one whose tokens are single letters needs no merges
        added = {token.content for token in backend.get_added_tokens_decoder().values()}
        longest = max(set(backend.get_vocab(with_added_tokens=False)) - added, key=len, default="")
        if len(longest) > 1:
            raise Unsupported(
                f"{file}: the tokenizer has no merges and would split {longest!r} into single"
                " letters; convert it again with its merges.txt"
            )
    return FastTokenizer(backend)


def trained_tokenizer(size: int) -> FastTokenizer:
    """A byte-level BPE tokenizer of at most `size` tokens (32 768 in all), trained on the
    docstrings that are not held out.

    Training is deterministic, and ties are broken by token id: any machine with the same versions
    gets the same tokenizer. Cached.
    """
    size = min(size, MAX_VOCABULARY)

    def make(file: Path) -> None:
        file.write_text(train_tokenizer(corpus(DOCS).train, size).to_str(), encoding="utf-8")

    return read_tokenizer(cached(f"tokenizer-{tokenizer_recipe(size)}.json", make))


def tokenizer_recipe(size: int) -> str:
    """Hash of the sources of `trained_tokenizer(size)`."""
    return digest(
        {"trainer": TRAINER_VERSION, "size": min(size, MAX_VOCABULARY), "text": text_hash(DOCS)}
    )


def train_tokenizer(documents: Iterable[str], size: int) -> Backend:
    """A byte-level BPE tokenizer of at most `size` tokens (257 at least: one for each byte, and
    `END`).
    """
    if size < 257:
        raise Unsupported(
            f"a vocabulary of {size} tokens is too small: 256 bytes and {END} need 257"
        )
    backend = Backend(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    backend.train_from_iterator(
        documents,
        trainers.BpeTrainer(
            vocab_size=size,
            special_tokens=[END],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    return backend
