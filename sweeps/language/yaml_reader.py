"""A sweep file read strictly: YAML in which every key and value has its line, and in which YAML's
traps are errors.
"""

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, get_args

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from sweeps.errors import UserError, did_you_mean, nearest, other_name

KeyPath = tuple[str | int, ...]
"""Where a value stands in the document, such as `("axes", "image_size", 3)`."""

MAX_BYTES = 1_000_000
MAX_NODES = 10_000
"""Keys and values of a document with its aliases written out; stops documents that explode."""
MAX_DEPTH = 50
ONE_LETTER = frozenset("yYnN")
"""As keys they are words: no reader in use takes them for true or false there, and the check of the
key reports what is right."""
_TOO_LONG = f"{MAX_NODES} keys and values; write it with axes and ranges"


class SweepError(UserError, ValueError):
    """What is wrong with a sweep file, as one message: `FILE:LINE: KEY: what is wrong; what would
    be right`.
    """

    def __init__(self, file: str, line: int | None, key: str, problem: str) -> None:
        where = file if line is None else f"{file}:{line}"
        super().__init__(": ".join(part for part in (where, key, problem) if part))
        self.file = file
        self.line = line
        self.key = key
        self.problem = problem


@dataclass(frozen=True, eq=False)
class Document:
    """The plain values of a sweep file and the line of each of them."""

    file: str
    text: str
    root: dict[str, Any]
    lines: dict[KeyPath, int] = field(repr=False)
    """Line of each value: of the value itself for scalars, of its key for what spans lines."""
    key_lines: dict[KeyPath, int] = field(repr=False)

    def at(self, *path: str | int) -> "Place":
        return Place(self, path)


class Place(NamedTuple):
    """Where a value of a document stands."""

    document: Document
    path: KeyPath

    def __truediv__(self, key: str | int) -> "Place":
        return Place(self.document, (*self.path, key))

    def error(self, problem: str, *, at_key: bool = False) -> SweepError:
        """The error to raise for the value here (or for its key); where nothing stands, for the
        nearest parent.
        """
        lines = self.document.key_lines if at_key else self.document.lines
        parents = (self.path[:end] for end in range(len(self.path), 0, -1))
        line = next((lines[path] for path in parents if path in lines), 1)
        series = self.path[-1:] == ("range",) and (*self.path, "start") in lines
        if series and (*self.path, "step") not in lines:
            problem += " (the range has no `step`, which is then 1)"
        return SweepError(self.document.file, line, dotted(self.path), problem)

    def unknown_key(self, key: str, known: Iterable[str]) -> SweepError:
        problem = f"unknown key {key!r}{did_you_mean(key, known)}"
        return (self / key).error(problem, at_key=True)

    def inside(self, location: KeyPath) -> "Place":
        """The place continued by those parts of `location` that stand in the document (pydantic
        also names members of unions).
        """
        place = self
        for part in location:
            if (place / part).path in self.document.lines:
                place /= part
        return place


def read(path: Path | str, text: str | None = None, *, start: str = "schema: 1") -> Document:
    """The document in the file `path`, or in `text`, where `path` is only the name in messages;
    `start` is the key that it begins with. Raises `SweepError`.
    """
    file = str(path)
    source = file_text(path) if text is None else text
    right = f"a mapping that starts with `{start}`"
    if len(source) > MAX_BYTES:
        problem = f"has more than {MAX_BYTES} characters; it should be a page of text"
        raise SweepError(file, None, "", problem)
    node = _compose(file, source)
    if node is None:
        raise SweepError(file, 1, "", f"is empty; it must be {right}")
    builder = _Builder(file)
    root = builder.value(node, ())
    if not isinstance(root, dict):
        raise builder.error(node, (), f"must be {right}, not {shown(root)}")
    return Document(file, source, root, builder.lines, builder.key_lines)


FOLDER_OF_SWEEPS = Path(__file__).parents[1]
"""Where the sweep files that ship lie, their schema, and the templates of new ones."""


def shipped_sweeps() -> dict[str, Path]:
    """The sweep files that ship, by the names of their sweeps."""
    return {path.stem: path for path in sorted(FOLDER_OF_SWEEPS.glob("*.yaml"))}


def dotted(path: KeyPath) -> str:
    """`("axes", "image_size", 3)` as `axes.image_size[3]`."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(
        "."
    )


def file_text(path: Path | str) -> str:
    """The text of a file. Raises `SweepError`."""
    try:
        data = Path(path).read_bytes()
    except (OSError, ValueError) as error:
        reason = f"cannot be read: {getattr(error, 'strerror', None) or error}"
        if isinstance(error, IsADirectoryError):
            reason = "is a folder; name a file"
        elif isinstance(error, FileNotFoundError):
            reason = "there is no such file"
        raise SweepError(str(path), None, "", reason) from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        problem = f"is not UTF-8 text: byte {data[error.start]:#04x}; save the file as UTF-8"
        raise SweepError(str(path), line, "", problem) from None


class _Loader(yaml.BaseLoader):
    """YAML's syntax alone: no type is guessed, no tag is obeyed."""

    file = ""
    depth = 0
    nodes = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        line = event.start_mark.line + 1
        tag = getattr(event, "tag", None)
        problem = None
        self.nodes += 1
        self.depth += 1
        if tag is not None:
            problem = f"the tag {tag!r} is refused: only plain values are read; leave the tag out"
        elif self.nodes > MAX_NODES:
            problem = f"here the document passes {_TOO_LONG}"
        elif self.depth > MAX_DEPTH:
            problem = "is nested too deeply; a sweep needs about six levels"
        if problem is not None:
            raise SweepError(self.file, line, "", problem)
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node


def _compose(file: str, text: str) -> yaml.Node | None:
    loader = None
    try:
        loader = _Loader(text)
        loader.file = file
        loader.get_event()  # type: ignore[no-untyped-call]
        if loader.check_event(yaml.StreamEndEvent):
            return None
        node = loader.compose_document()
        if not loader.check_event(yaml.StreamEndEvent):
            line = loader.peek_event().start_mark.line + 1  # type: ignore[no-untyped-call]
            raise SweepError(
                file, line, "", "a second document starts here; one file holds one sweep"
            )
    except yaml.MarkedYAMLError as error:
        raise _syntax_error(file, text, error) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise SweepError(
            file, line, "", f"holds the character {error.character!r}, which YAML does not allow"
        ) from None
    except (ValueError, IndexError, OverflowError) as error:
        # PyYAML lets these escape, e.g. for the escape "\UFFFFFFFF"
        if isinstance(error, SweepError):
            raise
        raise SweepError(
            file, loader.line + 1 if loader else None, "", f"is not valid YAML: {error}"
        ) from None
    return node


_KEY = re.compile(r"\s*(?:- +)*([^\s:#'\"{\[][^:#]*):(?:\s+|$)")
"""The key that a line begins with."""


def _syntax_error(file: str, text: str, error: yaml.MarkedYAMLError) -> SweepError:
    """What is wrong with the form of the text: most often an indent, or a colon within a text."""
    mark = error.problem_mark or error.context_mark
    problem = error.problem or error.context or "is no YAML"
    line = "" if mark is None else "".join(text.splitlines()[mark.line : mark.line + 1])
    key, misplaced = _KEY.match(line), "<block end>" in problem
    if "'\\t'" in problem:
        problem = "a tab stands where YAML needs spaces; indent with spaces"
    elif key and mark and "mapping values are not allowed" in problem:
        misplaced = mark.column <= key.end(1)
        right = f"{key[1]}: {json.dumps(line[key.end() :].strip(), ensure_ascii=False)}"
        problem = f"a text that holds a colon stands in quotes: {right}"
    if misplaced:
        problem = "its indent fits no line above; begin it in the column of its neighbours"
    named = key[1] if key else ""
    return SweepError(file, mark.line + 1 if mark else None, named, f"is not valid YAML: {problem}")


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


@dataclass
class _Builder:
    """Turns nodes into plain values, records their lines, and writes out anchors, within
    `MAX_NODES`.
    """

    file: str
    lines: dict[KeyPath, int] = field(default_factory=dict)
    key_lines: dict[KeyPath, int] = field(default_factory=dict)
    nodes: int = 0
    open_nodes: set[int] = field(default_factory=set)

    def error(self, node: yaml.Node, path: KeyPath, problem: str) -> SweepError:
        return SweepError(self.file, _line(node), dotted(path), problem)

    def value(self, node: yaml.Node, path: KeyPath) -> Any:
        self.lines[path] = _line(node)
        self.nodes += 1
        if self.nodes > MAX_NODES:
            problem = f"with its anchors written out the document passes {_TOO_LONG}"
            raise SweepError(self.file, self.key_lines.get(path[:1]), "", problem)
        if isinstance(node, yaml.ScalarNode):
            return self.scalar(node, path)
        if id(node) in self.open_nodes:
            raise self.error(node, (), "an anchor contains itself; write the value out")
        self.open_nodes.add(id(node))
        result: Any
        if isinstance(node, yaml.SequenceNode):
            result = [self.value(child, (*path, index)) for index, child in enumerate(node.value)]
        else:
            result = self.mapping(node, path)
        self.open_nodes.remove(id(node))
        return result

    def mapping(self, node: yaml.Node, path: KeyPath) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = self.key(key_node, path, next(reversed(result.values()), None))
            here = (*path, key)
            if key in result:
                first = self.key_lines[here]
                problem = f"duplicate key {key!r}: it stands on line {first} already; keep one"
                raise self.error(key_node, here, problem)
            self.nodes += 1
            self.key_lines[here] = _line(key_node)
            result[key] = self.value(value_node, here)
            if not isinstance(value_node, yaml.ScalarNode):
                self.lines[here] = _line(key_node)
        return result

    def key(self, node: yaml.Node, path: KeyPath, before: Any) -> str:
        """The key of an entry; `before` is the value of the entry before it."""
        key = None
        if isinstance(node, yaml.ScalarNode):
            if node.style is None and node.value == "<<":
                problem = "merge keys (`<<`) are refused; write the keys out"
                raise self.error(node, path, problem)
            key = node.value if node.value in ONE_LETTER else self.scalar(node, path)
        if not isinstance(key, str):
            shown_key = "null" if key is None else repr(key)
            decimal = f"; did you mean {before}.{key}?" if type(before) is type(key) is int else ""
            raise self.error(node, path, f"a key must be a word, not {shown_key}{decimal}")
        return key

    def scalar(self, node: yaml.ScalarNode, path: KeyPath) -> Any:
        try:
            return _plain(node.value) if node.style is None else _clean(node.value)
        except ValueError as error:
            raise self.error(node, path, str(error)) from None


_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?([0-9]+\.[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")
_CONTROL = re.compile("[\\x00-\\x08\\x0b-\\x1f\\x7f\\ud800-\\udfff]")
_WORDS = {"": None, "~": None, "null": None, "true": True, "false": False}
_TRAPS = tuple(
    (re.compile(pattern, re.IGNORECASE), problem)
    for pattern, problem in (
        (
            "yes|on|y",
            "means true to some YAML readers and text to others; did you mean `true` or {quoted}?",
        ),
        (
            "no|off|n",
            (
                "means false to some YAML readers and text to others; did you mean `false` or"
                " {quoted}?"
            ),
        ),
        (
            r"([-+]?[0-9]+)(e[-+]?[0-9]+)",
            "is text to some YAML readers; did you mean `{match[1]}.0{match[2]}`?",
        ),
        (
            r"[-+]?0+([0-9]+)",
            "is an octal number to some YAML readers; did you mean `{match[1]}` or {quoted}?",
        ),
        (
            r"[-+]?0[xob][0-9a-f_]+",
            "is not a decimal number; write it in decimal, or {quoted} for text",
        ),
        (
            r"[-+]?[0-9][0-9_]*_[0-9_]*(\.[0-9_]*)?",
            "holds underscores; did you mean `{joined}` or {quoted}?",
        ),
        (
            r"[-+]?[0-9]+(:[0-9]{1,2})+(\.[0-9]*)?",
            "is 60-based to some YAML readers; did you mean {quoted}, or a time like `90s`?",
        ),
        (
            r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(t.*| .*)?",
            "is a date to some YAML readers; did you mean {quoted}?",
        ),
        (r"[-+]?\.(inf|nan)", "is not a finite number; leave the key out for its default"),
    )
)
"""Scalars that YAML 1.1 and people read differently, and what is wrong with each."""


def _plain(text: str) -> Any:
    """The value of an unquoted scalar: null, true, false, a decimal number, or text. Raises
    `ValueError` for the rest.
    """
    if text.lower() in _WORDS and text in {text.lower(), text.capitalize(), text.upper()}:
        return _WORDS[text.lower()]
    is_integer = _INTEGER.fullmatch(text) is not None
    if is_integer or _FLOAT.fullmatch(text):
        if (is_integer and len(text) > 18) or not math.isfinite(float(text)):
            raise ValueError(f"{text[:18] + '…' if is_integer else text} is too large a number")
        return int(text) if is_integer else float(text)
    for pattern, problem in _TRAPS:
        if match := pattern.fullmatch(text):
            shown = problem.format(match=match, quoted=f'`"{text}"`', joined=text.replace("_", ""))
            raise ValueError(f"`{text}` {shown}")
    return _clean(text)


def _clean(text: str) -> str:
    """`text`, unless it holds what no name, path or message may hold."""
    if bad := _CONTROL.search(text):
        raise ValueError(f"the text holds the control character {bad[0]!r}; leave it out")
    return text


Model = TypeVar("Model", bound=BaseModel)


def validated(place: Place, model: type[Model], value: Mapping[str, Any]) -> Model:
    """`value`, which stands at `place`, as a `model` by strict rules. Raises `SweepError` for the
    first thing wrong.
    """
    try:
        # JSON mode: strict about types, while a list may still become a tuple
        return model.model_validate_json(json.dumps(value), strict=True)
    except ValidationError as error:
        raise first_error(error, place.inside, model) from None


def first_error(
    error: ValidationError,
    place_of: Callable[[KeyPath], Place],
    model: type[BaseModel] | None = None,
) -> SweepError:
    """Pydantic's error in the words of this project; `place_of` finds its location in the document.

    An unknown or missing key is reported before wrong values: it is often why the rest is wrong.
    """
    order = {"extra_forbidden": 0, "missing": 1}
    first = min(error.errors(include_url=False), key=lambda item: order.get(item["type"], 2))
    location = first["loc"]
    place = place_of(location)
    if first["type"] == "extra_forbidden":
        # the unknown key stands in the document
        return Place(place.document, place.path[:-1]).unknown_key(
            str(place.path[-1]), _words(model, location[:-1])
        )
    if first["type"] == "missing":
        here = place if place.path[-1:] == location[-1:] else place / location[-1]
        return here.error("is missing")
    return place.error(wrong_value(first))


def wrong_value(error: ErrorDetails) -> str:
    """One wrong value in words, with what would be right."""
    given = error["input"]
    if error["type"] == "literal_error":
        words = re.findall(r"'([^']*)'", str(error.get("ctx", {}).get("expected", "")))
        if words:
            meant = other_name(str(given), words) or nearest(str(given), words)
            hint = f"; did you mean {meant!r}?" if meant else ""
            return f"{shown(given)} is not one of {', '.join(words)}{hint}"
    if error["type"] == "value_error":
        return error["msg"].removeprefix("Value error, ")
    if error["type"] == "too_short":
        return "is empty; give at least one, or leave the key out"
    needed = _NEEDS.get(error["type"]) or error["msg"][0].lower() + error["msg"][1:]
    return f"{needed}, not {shown(given)}{_unquoted(error['type'], given)}"


_NEEDS = {
    "list_type": "needs a list",
    "tuple_type": "needs a list",
    "dict_type": "needs a mapping",
    "model_type": "needs a mapping",
    "string_type": "needs text",
    "int_type": "needs a whole number",
    "int_from_float": "needs a whole number",
    "float_type": "needs a number",
    "bool_type": "needs true or false",
}


def _unquoted(kind: str, given: Any) -> str:
    if not kind.startswith(("int", "float")) or not isinstance(given, str):
        return ""
    if re.fullmatch(r"-?[0-9]+,[0-9]+", given):
        return f"; did you mean {given.replace(',', '.')}?"
    numeric = re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", given)
    return f"; did you mean {given} (without quotes)?" if numeric else ""


def shown(value: Any) -> str:
    """A value as JSON, cut off after 80 characters."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 80 else text[:79] + "…"


def _words(model: type[BaseModel] | None, location: tuple[int | str, ...]) -> set[str]:
    """The keys of `model` at `location`."""
    models = {model} if model else set()
    for part in location:
        named = [
            info
            for item in models
            for name, info in item.model_fields.items()
            if part in (name, info.alias)
        ]
        # a list index, or the name of a union's member, names no field
        models = {found for info in named for found in _models(info.annotation)} or models
    return {info.alias or name for item in models for name, info in item.model_fields.items()}


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _models(inner)
