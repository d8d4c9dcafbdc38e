"""Texts: what a corpus holds, how it is split, and what cannot be used."""

import re
from pathlib import Path

import pytest

from sweeps.model.condition import Condition
from sweeps.model.outcome import CONTEXT, SCORED
from workers.data import data_hash
from workers.data.text import (
    MIN_PARAGRAPH,
    REACH,
    corpus,
    docstrings,
    scoring_windows,
    split_documents,
)
from workers.errors import DataError


def paragraphs(documents):
    """Their long paragraphs, white space made alike."""
    found = (" ".join(part.split()) for text in documents for part in re.split(r"\n[ \t]*\n", text))
    return {part for part in found if len(part) >= MIN_PARAGRAPH}


def test_topics_are_split_by_document():
    """Both parts are large, share no paragraph, and are always the same."""
    text = corpus("topics")
    corpus.cache_clear()
    assert corpus("topics") == text
    assert not set(text.train) & set(text.held_out)
    assert not paragraphs(text.train) & paragraphs(text.held_out)
    size = sum(map(len, text.train + text.held_out))
    assert size > 300_000
    assert 0.1 <= sum(map(len, text.held_out)) / size < 0.3


def test_held_out_paragraphs_leave_the_other_part():
    """A long paragraph of both parts is held out only; short ones are headings and stay."""
    long, short = "the same long sentence in several documents " * 2, "Heading"
    documents = {str(number): f"{short}\n\n{long}\n\nown text {number}" for number in range(20)}
    train, held_out = split_documents(documents)
    assert train
    assert held_out
    assert not any(long.strip() in text for text in train)
    assert all(short in text and "own text" in text for text in train)
    assert all(long.strip() in text for text in held_out)


def test_docstrings_are_read_without_importing(tmp_path: Path):
    """Broken files and tests are left out, and no code runs."""
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "no.py").write_text('"""Not this."""')
    (tmp_path / "broken.py").write_text('"""Nor this.""" (')
    code = (
        '"""Module."""\nraise SystemExit\nclass A:\n    """Class."""\n    def f(self):\n       '
        ' """Function."""'
    )
    (tmp_path / "one.py").write_text(code)
    assert list(docstrings(tmp_path)) == [("one.py", ["Module.", "Class.", "Function."])]


def test_a_folder_of_text(tmp_path: Path):
    """Its *.txt are documents; its hash is in the job and changes with the text."""
    for number in range(12):
        (tmp_path / f"{number}.txt").write_text(f"document {number} " * 30)
    (tmp_path / "picture.png").write_bytes(b"\xff\xfe")
    text = corpus(f"text:{tmp_path}")
    assert len(text.train) + len(text.held_out) == 12
    condition = Condition(model="llama-15m", data=f"text:{tmp_path}")
    before = data_hash(condition)
    assert before == {"data": text.hash}
    (tmp_path / "3.txt").write_text("another document")
    corpus.cache_clear()
    assert data_hash(condition) != before


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"", "too short"), (b"one paragraph", "too short"), (b"\xff\xfe\x00", "not text in UTF-8")],
)
def test_unusable_text(tmp_path: Path, content: bytes, message: str):
    """Text that is too short, or none at all, is an error with that reason."""
    file = tmp_path / "text.txt"
    file.write_bytes(content)
    with pytest.raises(DataError, match=message):
        corpus(f"text:{file}")


def test_text_that_is_not_here(tmp_path: Path):
    """A missing path, a folder without text, a name of none: each has its message."""
    with pytest.raises(FileNotFoundError):
        corpus(f"text:{tmp_path / 'missing.txt'}")
    with pytest.raises(DataError, match=r"contains no \*\.txt"):
        corpus(f"text:{tmp_path}")
    with pytest.raises(DataError, match="write docs, topics or text:PATH"):
        corpus("digits")


def test_windows_cover_documents_without_overlap():
    """Scored parts follow each other to the end, cut before words, behind their context."""
    documents = ["word " * 700, "short", "x" * 2000]
    found = scoring_windows(documents)
    for text in (documents[0], documents[2]):
        own = [window for window in found if documents[window.document] == text]
        assert text.endswith("".join(window.scored for window in own))
        assert len("".join(window.scored for window in own)) >= len(text) - 100
        for window in own:
            assert len(window.scored) <= SCORED + REACH
            assert 0 < len(window.context) <= CONTEXT
            assert window.context + window.scored in text
    words = [window.scored for window in found if "word" in window.scored]
    assert words
    assert all(scored.startswith(" ") for scored in words)
    assert not any("short" in window.scored for window in found)


@pytest.mark.slow
def test_topics_are_not_among_the_docstrings():
    """What tiny_lm learns from holds no paragraph of the domain that is kept for other uses."""
    docs, topics = corpus("docs"), corpus("topics")
    assert sum(map(len, docs.train)) > 4_000_000
    assert not paragraphs(docs.train) & paragraphs(topics.train + topics.held_out)
    assert not paragraphs(docs.train) & paragraphs(docs.held_out)
