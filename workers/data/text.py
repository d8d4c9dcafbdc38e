"""Text that every machine has, or that the user names, split into a training and a held-out part;
imports no torch.

`docs`: the docstrings of Python's standard library, NumPy and pandas, one document per module.
`topics`: the language reference that comes with Python (`pydoc_data.topics`), one document per
topic; `tiny_lm` never sees it, so that it is another domain. `text:PATH`: a file, or a folder's
`*.txt`.
"""

import ast
import hashlib
import importlib.metadata
import importlib.util
import inspect
import itertools
import json
import math
import platform
import re
import sysconfig
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from sweeps.model.identity import digest
from sweeps.model.outcome import CONTEXT, SCORED
from workers.cache import cached
from workers.data.images import evenly_spaced
from workers.errors import DataError

DOCS, TOPICS, PATH = "docs", "topics", "text:"
TEXT_SPLIT = 2
"""Raised when the content of a corpus, or its split, changes."""
PACKAGES = ("numpy", "pandas")
"""Beside the standard library: dependencies of the project, of similar sizes."""
LEFT_OUT = frozenset(
    {
        "dist-packages",
        "idlelib",
        "lib2to3",
        "pydoc_data",
        "site-packages",
        "test",
        "tests",
        "turtledemo",
    }
)
"""Folders without prose, other packages, and the topics, which are another corpus."""
HELD_OUT_SHARE = 0.1
MIN_PARAGRAPH = 60
"""Held-out paragraphs of at least this many characters are removed from the training part; shorter
ones are headings."""
UNSCORED = 64
"""The first characters of a document are not scored, because they have no context."""
SHORTEST = 32
REACH = 32
"""A cut moves by at most this many characters to a word boundary."""
_DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
_BLANK = re.compile(r"\n[ \t]*\n")


class Text(NamedTuple):
    """A corpus as documents."""

    train: tuple[str, ...]
    held_out: tuple[str, ...]
    """Documents that no training, calibration or vocabulary reads: speed and quality are measured
    on them."""
    hash: str
    """Of both parts."""


@lru_cache(maxsize=8)
def corpus(name: str) -> Text:
    """The corpus that `Condition.data` names, the same on any machine with the same versions.

    Documents with the lowest SHA-256 of their name are held out until they are a tenth of the text
    (of fewer than ten documents, the last tenth of each is), and no paragraph of theirs is left in
    `train`. Raises `DataError`, and `OSError` for a path that is not on this machine.
    """
    if name == DOCS:
        documents = json.loads(
            cached(f"docs-{_docs_key()}.json", _write_docs).read_text(encoding="utf-8")
        )
    elif name == TOPICS:
        from pydoc_data.topics import topics

        documents = {topic: text.strip() for topic, text in topics.items()}
    elif name.startswith(PATH):
        documents = _read(Path(name.removeprefix(PATH)))
    else:
        raise DataError(f"{name!r} is not a text; write {DOCS}, {TOPICS} or {PATH}PATH")
    train, held_out = split_documents(documents)
    if not train or not held_out:
        raise DataError(
            f"{name}: too short to be split into a training and a held-out part; give it ten"
            " paragraphs"
        )
    return Text(train, held_out, digest({"train": train, "held_out": held_out}))


def is_text(data: str) -> bool:
    """Whether `data` names a text and not images."""
    return data in (DOCS, TOPICS) or data.startswith(PATH)


def text_hash(data: str) -> str:
    """A hash for `Job.content_hashes` of the text that `data` names: of the versions that `docs`
    come from, else of the text.

    Raises what `corpus` does.
    """
    return _docs_key() if data == DOCS else corpus(data).hash


def split_documents(documents: Mapping[str, str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Documents by name as training and held-out documents, see `corpus`; either may be empty."""
    if len(documents) >= round(1 / HELD_OUT_SHARE):
        ordered = sorted(documents, key=lambda name: hashlib.sha256(name.encode()).hexdigest())
        before = itertools.accumulate((len(documents[name]) for name in ordered), initial=0)
        wanted = HELD_OUT_SHARE * sum(map(len, documents.values()))
        chosen = {name for name, size in zip(ordered, before, strict=False) if size < wanted}
        train = [documents[name] for name in sorted(documents) if name not in chosen]
        held_out = [documents[name] for name in sorted(chosen)]
    else:
        train, held_out = [], []
        for name in sorted(documents):
            found = _paragraphs(documents[name])
            first = round((1 - HELD_OUT_SHARE) * len(found))
            train.append("\n\n".join(found[:first]))
            held_out.append("\n\n".join(found[first:]))
    held_back = _long(held_out)
    cleaned = (_without(text, held_back) for text in train)
    return tuple(filter(None, cleaned)), tuple(filter(None, held_out))


def _without(text: str, paragraphs: set[str]) -> str:
    """The text less these paragraphs, which have normalised white space."""
    return "\n\n".join(part for part in _paragraphs(text) if _plain(part) not in paragraphs)


def _long(texts: Iterable[str]) -> set[str]:
    """The paragraphs of some texts, headings excluded, with normalised white space."""
    return {
        plain
        for text in texts
        for paragraph in _paragraphs(text)
        if len(plain := _plain(paragraph)) >= MIN_PARAGRAPH
    }


def docstrings(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Of each module below `folder`, in order of name: its path and its docstrings from top to
    bottom; nothing is imported.
    """
    for file in sorted(folder.rglob("*.py")):
        inside = file.relative_to(folder)
        if LEFT_OUT & set(inside.parts):
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # invalid escapes in third-party strings
                tree = ast.parse(file.read_bytes())
        except (SyntaxError, ValueError):  # deliberately invalid files, for tests of tools
            continue
        documented = (node for node in ast.walk(tree) if isinstance(node, _DOCUMENTED))
        yield (
            inside.as_posix(),
            [text for node in documented if (text := (ast.get_docstring(node) or "").strip())],
        )


def _write_docs(file: Path) -> None:
    """All docstrings as JSON, less paragraphs that the topics have too; of equal docstrings only
    the first is kept.
    """
    from pydoc_data.topics import topics

    domain = _long(topics.values())
    seen: set[str] = set()
    documents: dict[str, str] = {}
    for name, folder in _folders():
        for module, texts in docstrings(folder):
            new = [text for text in dict.fromkeys(texts) if text not in seen]
            seen.update(new)
            if document := _without("\n\n".join(new), domain):
                documents[f"{name}/{module}"] = document
    file.write_text(
        json.dumps(documents, ensure_ascii=False).encode("utf-8", "replace").decode("utf-8"),
        encoding="utf-8",
    )


def _folders() -> Iterator[tuple[str, Path]]:
    yield "python", Path(sysconfig.get_path("stdlib"))
    for package in PACKAGES:
        spec = importlib.util.find_spec(package)
        if spec is not None and spec.origin is not None:
            yield package, Path(spec.origin).parent


def _docs_key() -> str:
    versions = {package: importlib.metadata.version(package) for package in PACKAGES}
    return digest({"split": TEXT_SPLIT, "python": platform.python_version(), **versions})


def _read(path: Path) -> dict[str, str]:
    """The documents at `path` by name. Raises `DataError` and `OSError`."""
    if not path.exists():
        raise FileNotFoundError(
            f"{PATH}{path}: there is no such file or folder; relative paths start at the current"
            " folder"
        )
    files = sorted(path.rglob("*.txt")) if path.is_dir() else [path]
    if not files:
        raise DataError(f"{PATH}{path}: the folder contains no *.txt")
    documents = {}
    for file in files:
        name = file.relative_to(path).as_posix() if path.is_dir() else file.name
        try:
            text = inspect.cleandoc(file.read_text(encoding="utf-8")).strip()
        except UnicodeDecodeError as error:
            raise DataError(f"{PATH}{path}: {name} is not text in UTF-8: {error}") from error
        if text:
            documents[name] = text
    return documents


def _paragraphs(text: str) -> list[str]:
    return [part for part in _BLANK.split(text) if part.strip()]


def _plain(paragraph: str) -> str:
    return " ".join(paragraph.split())


class Window(NamedTuple):
    """A piece of one document."""

    context: str
    """The text before it, never empty."""
    scored: str
    document: int = 0
    """Its place among the documents."""


def scoring_windows(documents: Sequence[str], characters: int | None = None) -> tuple[Window, ...]:
    """The documents cut into windows, in their order; `characters`: evenly spaced windows that
    score about that many.
    """
    found: list[Window] = []
    for document, text in enumerate(documents):
        cuts = [_word(text, UNSCORED)]
        while len(text) - cuts[-1] > SCORED + REACH:
            cuts.append(_word(text, cuts[-1] + SCORED))
        cuts.append(len(text))
        for start, end in itertools.pairwise(cuts):
            if end - start >= SHORTEST:
                found.append(
                    Window(text[max(0, start - CONTEXT) : start], text[start:end], document)
                )
    if characters is None:
        return tuple(found)
    return tuple(
        found[place] for place in evenly_spaced(len(found), math.ceil(characters / SCORED))
    )


def _word(text: str, place: int) -> int:
    """The first index from `place` on at which a word ends, or `place` where none is in reach."""
    return next(
        (at for at in range(place, min(place + REACH, len(text))) if text[at].isspace()),
        min(place, len(text)),
    )
