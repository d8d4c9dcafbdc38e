"""Structure of the source and of the tests that ruff and the import contracts do not check."""

import ast
import re
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import chain, pairwise
from pathlib import Path

import networkx as nx
import pytest
from grimp import ImportGraph, build_graph

from tests import mutants

ROOT = Path(__file__).parents[1]
FOLDERS = ("sweeps", "workers", "store", "orchestrator", "webapp")
SQL = re.compile(
    r"\b(SELECT\s.+?\sFROM|INSERT\s+(OR\s+\w+\s+)?INTO|UPDATE\s+\w+\s+SET|DELETE\s+FROM)\b",
    re.DOTALL,
)

MAX_CODE_TOKENS = {
    "sweeps": 121_850,
    "workers": 140_300,
    "store": 91_700,
    "orchestrator": 95_200,
    "webapp": 73_700,
}
"""Of the Python files of each folder, without comments, docstrings and layout; raising one needs a
line in CHANGELOG."""
LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}
MAX_FILES = 15
PLUG_INS = (
    "orchestrator/commands",
    "webapp/charts",
    "webapp/screens",
    "workers/methods/vision",
)
"""Folders with a file for each of what they hold."""
PARTS_OF_A_FILE = {"main", "run", "build", "inputs", "check"}
"""Public names that several files must define: a command line has `main`, a kind of jobs has `run`,
the file of a model has `build`, `inputs` and `check`."""


def modules(*folders: str) -> Iterator[tuple[str, ast.Module]]:
    """The path from the root and the syntax tree of each Python file of `folders`."""
    for path in sorted(chain.from_iterable((ROOT / folder).rglob("*.py") for folder in folders)):
        yield str(path.relative_to(ROOT)), parsed(path)


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def graph() -> ImportGraph:
    return build_graph(*FOLDERS)


def cycles(edges: Iterable[tuple[str, str]]) -> list[list[str]]:
    """Groups of nodes that import each other, directly or through others."""
    found = nx.strongly_connected_components(
        nx.DiGraph(edge for edge in edges if edge[0] != edge[1])
    )
    return sorted(sorted(group) for group in found if len(group) > 1)


def test_no_import_cycle_between_files(graph: ImportGraph) -> None:
    """No module imports itself through others, imports inside functions included."""
    edges = (
        (one, other)
        for one in graph.modules
        for other in graph.find_modules_directly_imported_by(one)
    )
    assert cycles(edges) == []


def test_no_import_cycle_between_folders(graph: ImportGraph) -> None:
    """Seen as folders, at every level, the source has no cycle either; a folder may import its own
    parts and they each other.
    """
    edges = [
        (one, other)
        for one in graph.modules
        for other in graph.find_modules_directly_imported_by(one)
    ]
    found = []
    for package in sorted({module.rpartition(".")[0] for module in graph.modules} - {""}):
        below = f"{package}."
        inside = [
            (one[len(below) :], other[len(below) :])
            for one, other in edges
            if one.startswith(below) and other.startswith(below)
        ]
        if cycles((one.partition(".")[0], other.partition(".")[0]) for one, other in inside):
            found.append(package)
    assert found == []
    assert cycles((one.partition(".")[0], other.partition(".")[0]) for one, other in edges) == []


def test_cycles_are_found() -> None:
    """A cycle through three nodes is named; a node that imports itself is none."""
    assert cycles([("a", "b"), ("b", "c"), ("c", "a"), ("c", "d"), ("e", "e")]) == [["a", "b", "c"]]


def test_test_modules_do_not_import_each_other() -> None:
    """What tests share is in conftest.py, in tests/fixtures or in a module that is no test."""
    wrong = []
    for path, tree in modules("tests"):
        for node in ast.walk(tree):
            names = (
                [f"{node.module}.{alias.name}" for alias in node.names]
                if isinstance(node, ast.ImportFrom)
                else [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else []
            )
            if any(
                part.startswith("test_")
                for name in names
                if name.startswith("tests.")
                for part in name.split(".")[1:3]
            ):
                wrong.append(path)
    assert sorted(set(wrong)) == []


def test_mutants_name_files_that_exist() -> None:
    """Each pattern of files that `tests/mutants.py` changes finds some, and the tests that cover
    them are there.
    """
    assert {pattern for pattern in mutants.COVER if not list(ROOT.glob(pattern))} == set()
    assert {
        test
        for tests in (*mutants.COVER.values(), mutants.SLOW)
        for test in tests
        if not (ROOT / test).exists()
    } == set()


def test_sql_is_only_in_the_store() -> None:
    """No string of another folder is an SQL statement."""
    found = [
        f"{path}:{node.lineno}"
        for path, tree in modules(*(folder for folder in FOLDERS if folder != "store"))
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and SQL.search(node.value)
    ]
    assert found == []


def test_no_folder_has_many_files() -> None:
    """A stranger reads the names of a folder at a glance."""
    files = Counter(
        Path(path).parent.as_posix()
        for path, _ in modules(*FOLDERS)
        if not path.endswith("__init__.py")
    )
    assert {
        folder: number
        for folder, number in files.items()
        if number > MAX_FILES and folder not in PLUG_INS
    } == {}


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_source_does_not_grow(folder: str) -> None:
    """What is added to a folder is taken out elsewhere in it."""
    assert sum(code_tokens(path, tree) for path, tree in modules(folder)) <= MAX_CODE_TOKENS[folder]


def code_tokens(path: str, tree: ast.Module) -> int:
    """Tokens of a file that are neither comments nor docstrings nor layout.

    Short lines cost nothing: a comma before a closing bracket is layout, and a string in several
    parts is one.
    """
    bodies = [
        node.body
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
    ]
    statements = [each for body in bodies for each in body if isinstance(each, ast.Expr)]
    strings = {
        (each.lineno, each.col_offset)
        for each in statements
        if isinstance(each.value, ast.Constant)
    }
    with (ROOT / path).open("rb") as file:
        tokens = [
            token
            for token in with_whole_strings(tokenize.tokenize(file.readline))
            if token.type not in LAYOUT and token.start not in strings
        ]
    return len(tokens) - sum(
        (one.string == "," and other.string in {")", "]", "}"})
        or (one.type == other.type == tokenize.STRING)
        for one, other in pairwise(tokens)
    )


def with_whole_strings(tokens: Iterable[tokenize.TokenInfo]) -> Iterator[tokenize.TokenInfo]:
    """The tokens, of which an f-string is one, as before Python 3.12."""
    begin, end = (getattr(tokenize, f"FSTRING_{name}", None) for name in ("START", "END"))
    inside: list[tokenize.TokenInfo] = []
    for token in tokens:
        if token.type == begin:
            inside.append(token)
        whole = inside.pop()._replace(type=tokenize.STRING) if token.type == end else token
        if not inside:
            yield whole


def test_no_public_name_is_defined_twice() -> None:
    """A public name of a module stands for one thing in its package, which is a folder at the
    top.
    """
    assert {
        name: files
        for name, files in names_defined_twice().items()
        if name[1] not in PARTS_OF_A_FILE
    } == {}


def names_defined_twice() -> dict[tuple[str, str], set[str]]:
    """Public names that several files of a package define, by package and name.

    Without the parts that every method file has.
    """
    files: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for path, tree in modules(*FOLDERS):
        if "/migrations/" in path or path.startswith("workers/methods/"):
            continue
        for node in tree.body:
            targets = (
                node.targets
                if isinstance(node, ast.Assign)
                else [node.target]
                if isinstance(node, ast.AnnAssign)
                else []
            )
            names = [target.id for target in targets if isinstance(target, ast.Name)]
            if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
                names = [node.name]
            for name in names:
                if not name.startswith("_"):
                    files[path.partition("/")[0], name].add(path)
    return {name: places for name, places in files.items() if len(places) > 1}
