"""A sweep file read strictly: YAML in which every key and value has its line, and in which YAML's
traps are errors.
"""

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, get_args

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from sweeps.errors import UserError, did_you_mean, other_name

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


@dataclass(frozen=True)
class Document:
    """The plain values of a sweep file and the line of each of them."""

    file: str
    text: str
    root: dict[str, Any]
    lines: dict[KeyPath, int] = field(repr=False)
    """Line of each value: of the value itself for scalars, of its key for what spans lines."""
    key_lines: dict[KeyPath, int] = field(repr=False)

    def error(self, path: KeyPath, problem: str, *, at_key: bool = False) -> SweepError:
        """The error to raise for the value at `path` (or for its key); a path that is not there
        counts for its nearest parent.
        """
        lines = self.key_lines if at_key else self.lines
        line = next(
            (lines[path[:end]] for end in range(len(path), 0, -1) if path[:end] in lines), 1
        )
        return SweepError(self.file, line, dotted(path), problem)

    def place(self, path: KeyPath, location: KeyPath) -> KeyPath:
        """`path` continued by those parts of `location` that stand in the document (pydantic also
        names members of unions).
        """
        for part in location:
            if (*path, part) in self.lines:
                path = (*path, part)
        return path

    def unknown_key(self, path: KeyPath, known: Iterable[str]) -> SweepError:
        return self.error(
            path, f"unknown key {path[-1]!r}{did_you_mean(str(path[-1]), known)}", at_key=True
        )


def read(path: Path | str, text: str | None = None) -> Document:
    """The document in the file `path`, or in `text`, where `path` is only the name in messages.
    Raises `SweepError`.
    """
    file = str(path)
    source = _file_text(file) if text is None else text
    if len(source) > MAX_BYTES:
        raise SweepError(
            file, None, "", f"has more than {MAX_BYTES} characters; a sweep file is a page of text"
        )
    node = _compose(file, source)
    builder = _Builder(file)
    root = builder.value(node, ())
    if not isinstance(root, dict):
        kind = {type(None): "nothing", list: "a list", str: "text", bool: "true or false"}.get(
            type(root), "a number"
        )
        raise SweepError(
            file, _line(node), "", f"a sweep is a mapping that starts with `schema: 1`, not {kind}"
        )
    return Document(file, source, root, builder.lines, builder.key_lines)


def shipped_sweeps() -> dict[str, Path]:
    """The sweep files that ship, by the names of their sweeps."""
    return {path.stem: path for path in sorted(Path(__file__).parents[1].glob("*.yaml"))}


def dotted(path: KeyPath) -> str:
    """`("axes", "image_size", 3)` as `axes.image_size[3]`."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(
        "."
    )


def _file_text(file: str) -> str:
    try:
        data = Path(file).read_bytes()
    except IsADirectoryError:
        raise SweepError(
            file, None, "", "is a folder; name a sweep file, such as sweeps/quickstart.yaml"
        ) from None
    except FileNotFoundError:
        raise SweepError(file, None, "", "there is no such file") from None
    except (OSError, ValueError) as error:
        raise SweepError(
            file, None, "", f"cannot be read: {getattr(error, 'strerror', None) or error}"
        ) from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        problem = (
            f"is not UTF-8 text: byte {data[error.start]:#04x} cannot stand there; save the file as"
            " UTF-8"
        )
        raise SweepError(file, line, "", problem) from None


class _Loader(yaml.BaseLoader):
    """YAML's syntax alone: no type is guessed, no tag is obeyed."""

    file = ""
    depth = 0
    nodes = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        line = event.start_mark.line + 1
        tag = getattr(event, "tag", None)
        if tag is not None:
            problem = (
                f"the tag {tag!r} is refused: a sweep holds plain values only; leave the tag out"
            )
            raise SweepError(self.file, line, "", problem)
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise SweepError(self.file, line, "", f"here the document passes {_TOO_LONG}")
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise SweepError(
                self.file, line, "", "is nested too deeply; a sweep needs about six levels"
            )
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node


def _compose(file: str, text: str) -> yaml.Node:
    loader = None
    try:
        loader = _Loader(text)
        loader.file = file
        loader.get_event()  # type: ignore[no-untyped-call]
        if loader.check_event(yaml.StreamEndEvent):
            raise SweepError(file, 1, "", "is empty; a sweep starts with `schema: 1`")
        node = loader.compose_document()
        if not loader.check_event(yaml.StreamEndEvent):
            line = loader.peek_event().start_mark.line + 1  # type: ignore[no-untyped-call]
            raise SweepError(
                file, line, "", "a second document starts here; one file holds one sweep"
            )
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = error.problem or error.context or "is no YAML"
        if "'\\t'" in problem:
            problem = "a tab stands where YAML needs spaces; indent with spaces"
        raise SweepError(
            file, mark.line + 1 if mark else None, "", f"is not valid YAML: {problem}"
        ) from None
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
    assert isinstance(node, yaml.Node)
    return node


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

    def value(self, node: yaml.Node, path: KeyPath) -> Any:
        self.lines[path] = _line(node)
        self.nodes += 1
        if self.nodes > MAX_NODES:
            problem = f"with its anchors written out the document passes {_TOO_LONG}"
            raise SweepError(self.file, self.key_lines.get(path[:1]), "", problem)
        if isinstance(node, yaml.ScalarNode):
            return self.scalar(node, path)
        if id(node) in self.open_nodes:
            raise SweepError(
                self.file, _line(node), "", "an anchor contains itself; write the value out"
            )
        self.open_nodes.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            result: Any = [
                self.value(child, (*path, index)) for index, child in enumerate(node.value)
            ]
        else:
            result = self.mapping(node, path)
        self.open_nodes.remove(id(node))
        return result

    def mapping(self, node: yaml.Node, path: KeyPath) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = self.key(key_node, path)
            here = (*path, key)
            if key in result:
                problem = (
                    f"duplicate key {key!r}: it stands on line {self.key_lines[here]} already; keep"
                    " one of them"
                )
                raise SweepError(self.file, _line(key_node), dotted(here), problem)
            self.nodes += 1
            self.key_lines[here] = _line(key_node)
            result[key] = self.value(value_node, here)
            if not isinstance(value_node, yaml.ScalarNode):
                self.lines[here] = _line(key_node)
        return result

    def key(self, node: yaml.Node, path: KeyPath) -> str:
        if isinstance(node, yaml.ScalarNode) and node.style is None and node.value == "<<":
            raise SweepError(
                self.file,
                _line(node),
                dotted(path),
                "merge keys (`<<`) are refused; write the keys out",
            )
        if isinstance(node, yaml.ScalarNode) and node.value in ONE_LETTER:
            return str(node.value)
        key = self.scalar(node, path) if isinstance(node, yaml.ScalarNode) else None
        if not isinstance(key, str):
            shown = "null" if key is None else repr(key)
            raise SweepError(
                self.file, _line(node), dotted(path), f"a key must be a word, not {shown}"
            )
        return key

    def scalar(self, node: yaml.ScalarNode, path: KeyPath) -> Any:
        try:
            return _plain(node.value) if node.style is None else _clean(node.value)
        except ValueError as error:
            raise SweepError(self.file, _line(node), dotted(path), str(error)) from None


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


def validated(
    document: Document, path: KeyPath, model: type[Model], value: Mapping[str, Any]
) -> Model:
    """`value`, which stands at `path`, as a `model` by strict rules. Raises `SweepError` for the
    first thing wrong.
    """
    try:
        # JSON mode: strict about types, while a list may still become a tuple
        return model.model_validate_json(json.dumps(value), strict=True)
    except ValidationError as error:
        raise first_error(
            document, error, model, lambda location: document.place(path, location)
        ) from None


def first_error(
    document: Document,
    error: ValidationError,
    model: type[BaseModel] | None,
    place: Callable[[KeyPath], KeyPath],
) -> SweepError:
    """Pydantic's error in the words of this project; `place` turns its location into one in the
    document.

    An unknown or missing key is reported before wrong values: it is often why the rest is wrong.
    """
    order = {"extra_forbidden": 0, "missing": 1}
    first = min(error.errors(include_url=False), key=lambda item: order.get(item["type"], 2))
    location = first["loc"]
    path = place(location)
    if first["type"] == "extra_forbidden":
        return document.unknown_key(path, _words(model, location[:-1]))
    if first["type"] == "missing":
        return document.error(
            (*path, str(location[-1])) if path[-1:] != location[-1:] else path, "is missing"
        )
    return document.error(path, wrong_value(first))


def wrong_value(error: ErrorDetails) -> str:
    """One wrong value in words, with what would be right."""
    given = error["input"]
    if error["type"] == "literal_error":
        words = re.findall(r"'([^']*)'", str(error.get("ctx", {}).get("expected", "")))
        if words:
            meant = other_name(str(given), words) or given
            return f"{shown(given)} is not one of {', '.join(words)}{_nearest(meant, words)}"
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


def _nearest(given: Any, words: list[str]) -> str:
    hint = did_you_mean(str(given), words)
    return hint if "did you mean" in hint else ""


def _unquoted(kind: str, given: Any) -> str:
    numeric = (
        kind.startswith(("int", "float"))
        and isinstance(given, str)
        and re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", given)
    )
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
