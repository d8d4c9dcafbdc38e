"""The patch tokenizer: any text comes back, tokens are counted, and what does not fit is
refused.
"""

import pickle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer as Backend
from tokenizers import decoders, models, pre_tokenizers, trainers

from tests.workers.domain import TEXTS, bytes_bpe
from workers.data.tokenization import END, FastTokenizer
from workers.vocabulary import (
    PatchTokenizer,
    UnusableVocabulary,
    Vocabulary,
    read_vocabulary,
    tokenizer_hash,
)
from workers.vocabulary.build import Mode, VocabularyRecipe, build_vocabulary

MODES: tuple[Mode, ...] = ("append", "replace")
BUILT = {
    mode: build_vocabulary(bytes_bpe(), TEXTS, VocabularyRecipe(ngrams=60, mode=mode))
    for mode in MODES
}
PATCHED = {mode: PatchTokenizer(bytes_bpe(), vocabulary) for mode, vocabulary in BUILT.items()}


@pytest.mark.parametrize("mode", MODES)
@settings(max_examples=100, deadline=None)
@given(
    text=st.text()
    | st.lists(
        st.sampled_from(["if", "\n\n", "  ", "the ", "statement", "…", "\x00", "é", "🧑‍🚀", END])
    ).map("".join)
)
@example("")
@example("👩‍👩‍👧 \x00\x1b[0m\r\n\t")
@example(f"a{END}b")
@example("x" * 300)
@example(TEXTS[0])
def test_any_text_comes_back(mode: Mode, text: str) -> None:
    """Emoji, control characters, special tokens, nothing: decode(encode(text)) is the text."""
    patched = PATCHED[mode]
    tokens = patched.encode(text)
    assert patched.decode(tokens) == text
    assert patched.encode(text) == tokens
    assert (patched.encode(""), patched.decode([])) == ([], "")
    assert set(tokens) <= set(range(patched.size))


@pytest.mark.parametrize("mode", MODES)
def test_no_removed_token_is_left(mode: Mode) -> None:
    """`replace` keeps the size and renames removed numbers; `append` grows."""
    vocabulary = BUILT[mode]
    assert (
        PATCHED[mode].size == vocabulary.size == bytes_bpe().size + (60 if mode == "append" else 0)
    )
    assert list(vocabulary.removed) == (list(vocabulary.ids) if mode == "replace" else [])
    for token in [
        token for text in TEXTS for token in PATCHED[mode].expand(PATCHED[mode].encode(text))
    ]:
        assert token not in vocabulary.removed


class Bomb:
    """Leaves a file behind when it is unpickled."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.file,)


@pytest.mark.parametrize("name", ["patch_tokenizer.pkl", "embedding.pt", "disguised.json"])
def test_nothing_is_unpickled(name: str, tmp_path: Path) -> None:
    """A pickle is refused with what to convert, whatever its name, and its code does not run."""
    file = tmp_path / name
    file.write_bytes(pickle.dumps({"ngram_dict": Bomb(tmp_path / "exploded")}))
    with pytest.raises(UnusableVocabulary, match="JSON"):
        read_vocabulary(file)
    assert not (tmp_path / "exploded").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is no vocabulary"),
        ("[1]", "is no vocabulary"),
        ('{"tokenizer": "a", "tokens": 9, "ngrams": [[1]]}', "at least two"),
        ('{"tokenizer": "a", "tokens": 9, "ngrams": [[1, 9]]}', "holds 9, which is no token"),
        ('{"tokenizer": "a", "tokens": 9, "ngrams": [[1, 2], [1, 2]]}', "is listed twice"),
        (
            '{"tokenizer": "a", "tokens": 9, "removed": {"3": [1, 2]}, "ngrams": [[3, 2]]}',
            "holds 3, which is removed",
        ),
        ('{"tokenizer": "a", "tokens": 9, "removed": {"3": [1, 2]}}', "does not shrink"),
        ('{"tokenizer": "a", "tokens": 9, "ngram": [[1, 2]]}', "ngram: Extra"),
    ],
)
def test_broken_files_are_errors_that_name_the_place(
    text: str, message: str, tmp_path: Path
) -> None:
    """A file that is no whole vocabulary is refused by name and reason."""
    file = tmp_path / "vocabulary.json"
    file.write_text(text)
    with pytest.raises(UnusableVocabulary, match=message) as refused:
        read_vocabulary(file)
    assert "vocabulary.json" in str(refused.value)


def test_a_vocabulary_of_another_tokenizer_is_refused() -> None:
    """Numbers mean other tokens there: the hash of the tokenizer differs."""
    with pytest.raises(
        UnusableVocabulary, match=r"was made for another tokenizer .* leave `file` out"
    ):
        PatchTokenizer(bytes_bpe(400), BUILT["append"])


def test_special_tokens_are_left_alone() -> None:
    """A vocabulary that merges or removes one is refused, and one in the text stays itself."""
    tokenizer = bytes_bpe()
    known = {"tokenizer": tokenizer_hash(tokenizer), "tokens": tokenizer.size}
    with pytest.raises(UnusableVocabulary, match=r"\[0\], special"):
        PatchTokenizer(tokenizer, Vocabulary(**known, ngrams=((0, 5),)))
    with pytest.raises(UnusableVocabulary, match=r"\[0\], special"):
        PatchTokenizer(tokenizer, Vocabulary(**known, ngrams=((4, 5),), removed={0: (6, 7)}))
    assert 0 in PATCHED["replace"].encode(f"if{END}if")


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_tokenizers_like_sentencepiece(kind: str) -> None:
    """Word marks and byte fallback: texts survive, in fewer tokens."""
    marks = ["<unk>", *(f"<0x{byte:02X}>" for byte in range(256))]
    if kind == "bpe":
        below = Backend(models.BPE(byte_fallback=True, unk_token="<unk>"))
        trainer: Any = trainers.BpeTrainer(
            vocab_size=500, special_tokens=marks, show_progress=False
        )
    else:
        below = Backend(models.Unigram())
        trainer = trainers.UnigramTrainer(
            vocab_size=500, special_tokens=marks, unk_token="<unk>", show_progress=False
        )
    below.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    parts = [
        decoders.Replace("▁", " "),
        decoders.ByteFallback(),
        decoders.Fuse(),
        decoders.Strip(" ", 1, 0),
    ]
    below.decoder = decoders.Sequence(parts)
    below.train_from_iterator(TEXTS, trainer)
    plain = FastTokenizer(below)
    patched = PatchTokenizer(plain, build_vocabulary(plain, TEXTS, VocabularyRecipe(ngrams=20)))
    for text in TEXTS:
        tokens = plain.encode(text)
        assert patched.decode(patched.encode(text)) == plain.decode(tokens)
        assert len(patched.encode(text)) < len(tokens)


def test_a_missing_file(tmp_path: Path) -> None:
    """A file that is not there is named."""
    with pytest.raises(UnusableVocabulary, match=r"gone\.json: cannot be read"):
        read_vocabulary(tmp_path / "gone.json")
