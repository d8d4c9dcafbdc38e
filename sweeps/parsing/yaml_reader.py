"""A sweep file read strictly: YAML in which every key and value knows its line, and in which YAML's traps are errors."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from sweeps.errors import UserError
from sweeps.parsing.yaml_scalar import TrapError, clean, plain
from sweeps.suggestions import did_you_mean

KeyPath = tuple[str | int, ...]
"""Where a value stands in the document, such as `("axes", "image_size", 3)`."""

MAX_BYTES = 1_000_000
MAX_NODES = 10_000
"""Keys and values of a document with its aliases written out; stops documents that explode."""
MAX_DEPTH = 50
ONE_LETTER = frozenset("yYnN")
"""As keys they are words: no reader in use takes them for true or false there, and the check of the key reports what is right."""
_TOO_LONG = f"{MAX_NODES} keys and values; say it with axes and ranges"


class SweepError(UserError, ValueError):
    """What is wrong with a sweep file, as one message: `FILE:LINE: KEY: what is wrong; what would be right`."""

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
        """The error to raise for the value at `path` (or for its key); a path that is not there counts for its nearest parent."""
        lines = self.key_lines if at_key else self.lines
        line = next((lines[path[:end]] for end in range(len(path), 0, -1) if path[:end] in lines), 1)
        return SweepError(self.file, line, dotted(path), problem)

    def place(self, path: KeyPath, location: KeyPath) -> KeyPath:
        """`path` continued by those parts of `location` that stand in the document (pydantic also names members of unions)."""
        for part in location:
            if (*path, part) in self.lines:
                path = (*path, part)
        return path

    def unknown_key(self, path: KeyPath, known: Iterable[str]) -> SweepError:
        return self.error(path, f"unknown key {path[-1]!r}{did_you_mean(str(path[-1]), known)}", at_key=True)


def read(path: Path | str, text: str | None = None) -> Document:
    """The document in the file `path`, or in `text`, where `path` is only the name in messages. Raises `SweepError`."""
    file = str(path)
    source = _file_text(file) if text is None else text
    if len(source) > MAX_BYTES:
        raise SweepError(file, None, "", f"has more than {MAX_BYTES} characters; a sweep file is a page of text")
    node = _compose(file, source)
    _refuse_explosions(file, node, {}, set())
    lines: dict[KeyPath, int] = {}
    key_lines: dict[KeyPath, int] = {}
    root = _Builder(file, lines, key_lines).value(node, ())
    if not isinstance(root, dict):
        problem = f"a sweep is a mapping that starts with `schema: 1`, not {_kind(root)}"
        raise SweepError(file, _line(node), "", problem)
    return Document(file, source, root, lines, key_lines)


def dotted(path: KeyPath) -> str:
    """`("axes", "image_size", 3)` as `axes.image_size[3]`."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")


def _file_text(file: str) -> str:
    try:
        data = Path(file).read_bytes()
    except IsADirectoryError:
        raise SweepError(file, None, "", "is a folder; name a sweep file, such as sweeps/quickstart.yaml") from None
    except FileNotFoundError:
        raise SweepError(file, None, "", "there is no such file") from None
    except (OSError, ValueError) as error:
        raise SweepError(file, None, "", f"cannot be read: {getattr(error, 'strerror', None) or error}") from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        problem = f"is not UTF-8 text: byte {data[error.start]:#04x} cannot stand there; save the file as UTF-8"
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
            problem = f"the tag {tag!r} is refused: a sweep holds plain values only; leave the tag out"
            raise SweepError(self.file, line, "", problem)
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise SweepError(self.file, line, "", f"here the document passes {_TOO_LONG}")
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise SweepError(self.file, line, "", "is nested too deeply; a sweep needs about six levels")
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
            raise SweepError(file, line, "", "a second document starts here; one file holds one sweep")
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = error.problem or error.context or "is no YAML"
        if "'\\t'" in problem:
            problem = "a tab stands where YAML wants spaces; indent with spaces"
        raise SweepError(file, mark.line + 1 if mark else None, "", f"is not valid YAML: {problem}") from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise SweepError(file, line, "", f"holds the character {error.character!r}, which YAML does not allow") from None
    except (ValueError, IndexError, OverflowError) as error:
        # PyYAML lets these escape, e.g. for the escape "\UFFFFFFFF"
        if isinstance(error, SweepError):
            raise
        raise SweepError(file, loader.line + 1 if loader else None, "", f"is not valid YAML: {error}") from None
    assert isinstance(node, yaml.Node)
    return node


def _refuse_explosions(file: str, node: yaml.Node, sizes: dict[int, int], open_nodes: set[int]) -> int:
    """Nodes below `node` with aliases written out, counted without writing them out."""
    identity = id(node)
    if identity in open_nodes:
        raise SweepError(file, _line(node), "", "an anchor contains itself; write the value out")
    if identity not in sizes:
        open_nodes.add(identity)
        size = 1 + sum(_refuse_explosions(file, child, sizes, open_nodes) for child in _children(node))
        open_nodes.remove(identity)
        if size > MAX_NODES:
            raise SweepError(file, _line(node), "", f"with its anchors written out the document passes {_TOO_LONG}")
        sizes[identity] = size
    return sizes[identity]


def _children(node: yaml.Node) -> Iterator[yaml.Node]:
    if isinstance(node, yaml.SequenceNode):
        yield from node.value
    elif isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield key
            yield value


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


@dataclass
class _Builder:
    """Turns nodes into plain values and writes down their lines."""

    file: str
    lines: dict[KeyPath, int]
    key_lines: dict[KeyPath, int]

    def value(self, node: yaml.Node, path: KeyPath) -> Any:
        self.lines[path] = _line(node)
        if isinstance(node, yaml.ScalarNode):
            return self.scalar(node, path)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(child, (*path, index)) for index, child in enumerate(node.value)]
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = self.key(key_node, path)
            here = (*path, key)
            if key in result:
                problem = f"duplicate key {key!r}: it stands on line {self.key_lines[here]} already; keep one of them"
                raise SweepError(self.file, _line(key_node), dotted(here), problem)
            self.key_lines[here] = _line(key_node)
            result[key] = self.value(value_node, here)
            if not isinstance(value_node, yaml.ScalarNode):
                self.lines[here] = _line(key_node)
        return result

    def key(self, node: yaml.Node, path: KeyPath) -> str:
        if isinstance(node, yaml.ScalarNode) and node.style is None and node.value == "<<":
            raise SweepError(self.file, _line(node), dotted(path), "merge keys (`<<`) are refused; write the keys out")
        if isinstance(node, yaml.ScalarNode) and node.value in ONE_LETTER:
            return str(node.value)
        key = self.scalar(node, path) if isinstance(node, yaml.ScalarNode) else None
        if not isinstance(key, str):
            shown = "null" if key is None else repr(key)
            raise SweepError(self.file, _line(node), dotted(path), f"a key must be a word, not {shown}")
        return key

    def scalar(self, node: yaml.ScalarNode, path: KeyPath) -> Any:
        text: str = node.value
        try:
            if node.style is None:
                return plain(text)
            return clean(text)
        except TrapError as trap:
            raise SweepError(self.file, _line(node), dotted(path), str(trap)) from None


def _kind(value: Any) -> str:
    return {type(None): "nothing", list: "a list", str: "text", bool: "true or false"}.get(type(value), "a number")
