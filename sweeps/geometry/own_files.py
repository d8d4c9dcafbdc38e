"""Files of the user with models, functions and arms: what they define, take and import, known by
reading them; nothing in them is run here.
"""

import ast
import hashlib
import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import create_model

from sweeps.errors import did_you_mean
from sweeps.model.identity import digest
from sweeps.model.method import OwnMethod, Params

_CODE = re.compile(r"([^:]+\.py):([A-Za-z_]\w*)")
INPUTS, TOKENS, CHECK = "inputs", "tokens", "check"
"""What a model's file may hold beside the model: what makes its input, what counts the size of the
work, and how outputs are compared."""
Value = bool | int | float | str


def code_name(text: Any) -> str | None:
    """`dir/file.py:function` in its shortest form; `None` for text of another form."""
    match = _CODE.fullmatch(text) if isinstance(text, str) else None
    return None if match is None else f"{posixpath.normpath(match[1])}:{match[2]}"


def file_of(name: str) -> str:
    """The file of a `code_name`."""
    return name.rpartition(":")[0]


class Signature(NamedTuple):
    """The parameters that a function can be called with by name."""

    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    any: bool = False
    """Whether it takes further ones, or they are not known."""

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.required, *self.optional)


@dataclass(frozen=True)
class OwnFiles:
    """Files of the user beside a sweep, each read once."""

    folder: Path
    read: dict[str, tuple[str, ast.Module]] = field(default_factory=dict)

    def tree(self, file: str) -> ast.Module:
        """Raises `ValueError` with the reason where there is no such file, or no Python in it."""
        if file not in self.read:
            try:
                text = (self.folder / file).read_text(encoding="utf-8")
                self.read[file] = text, ast.parse(text)
            except SyntaxError as error:
                raise ValueError(f"{file}:{error.lineno}: is no Python: {error.msg}") from None
            except OSError as error:
                raise ValueError(f"{file}: cannot be read: {error.strerror}") from None
            except ValueError as error:
                raise ValueError(f"{file}: is no text: {error}") from None
        return self.read[file][1]

    def names(self, file: str) -> dict[str, ast.AST]:
        """What a file defines at its top, by name."""
        found: dict[str, ast.AST] = {}
        for node in self.tree(file).body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                found[node.name] = node
            elif isinstance(node, ast.Import | ast.ImportFrom):
                found |= {(each.asname or each.name).partition(".")[0]: node for each in node.names}
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                parts = (part for target in targets for part in ast.walk(target))
                found |= {part.id: node for part in parts if isinstance(part, ast.Name)}
        return found

    def has(self, file: str, function: str) -> bool:
        return function in self.names(file)

    def signature(self, name: str, given: int = 0) -> Signature:
        """The parameters of a function by its `code_name`, behind so many that it is `given` by
        place. Raises `ValueError` where there is none.
        """
        file, _, function = name.rpartition(":")
        known = self.names(file)
        if function not in known:
            callables = [
                each
                for each, node in known.items()
                if isinstance(node, ast.FunctionDef | ast.ClassDef)
            ]
            raise ValueError(f"{file}:1: has no {function!r}{did_you_mean(function, callables)}")
        node = known[function]
        if isinstance(node, ast.ClassDef):
            inits = [each for each in node.body if getattr(each, "name", "") == "__init__"]
            node, given = (inits[0] if inits else node), given + 1
        return _parameters(node.args, given) if isinstance(node, ast.FunctionDef) else _UNKNOWN

    def sources(self, name: str) -> dict[str, str]:
        """The text of the file of a `code_name`, and of those beside it that it imports, by their
        paths from the sweep.
        """
        found: dict[str, str] = {}
        left = [file_of(name)]
        root = posixpath.dirname(left[0])
        while left:
            file = left.pop()
            if file not in found:
                tree = self.tree(file)
                found[file] = self.read[file][0]
                left += [
                    path
                    for module in imported(tree, posixpath.relpath(file, root or "."))
                    for path in _files_of(module, root)
                    if (self.folder / path).is_file()
                ]
        return dict(sorted(found.items()))


_UNKNOWN = Signature(any=True)


def _parameters(args: ast.arguments, given: int) -> Signature:
    positional = [*args.posonlyargs, *args.args]
    bare = len(positional) - len(args.defaults)
    keyword = list(zip(args.kwonlyargs, args.kw_defaults, strict=True))
    required = [each.arg for each in positional[given:bare]]
    optional = [each.arg for each in positional[max(given, bare) :]]
    for each, default in keyword:
        (required if default is None else optional).append(each.arg)
    return Signature(tuple(required), tuple(optional), args.kwarg is not None)


def imported(tree: ast.Module, file: str) -> Iterator[str]:
    """The modules that a file imports anywhere in it, relative ones by their place from its root,
    where `file` lies; what is imported from a module may be a module too.
    """
    package = posixpath.dirname(file).split("/") if posixpath.dirname(file) else []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            yield from [base] if base else []
            yield from (f"{base}.{each.name}".lstrip(".") for each in node.names)


def _files_of(module: str, root: str) -> Iterator[str]:
    """Where a module and the packages around it would lie."""
    parts = module.split(".")
    for end in range(1, len(parts) + 1):
        path = posixpath.join(root, *parts[:end])
        yield f"{path}.py"
        yield posixpath.join(path, "__init__.py")


def content_of(sources: Mapping[str, str]) -> str:
    """Hash of some files."""
    return digest(
        {file: hashlib.sha256(text.encode()).hexdigest() for file, text in sources.items()}
    )


def own_method(signature: Signature) -> OwnMethod:
    """The method with the parameters of a function behind its first."""
    fields: dict[str, Any] = dict.fromkeys(signature.required, (Value, ...))
    fields |= dict.fromkeys(signature.optional, (Value | None, None))
    return OwnMethod(create_model("Params", __base__=Params, **fields))
