"""Code of the user that travels with a job: its files as modules under names of their own, and
calls of its functions with what they take.
"""

import ast
import importlib
import inspect
import linecache
import posixpath
import sys
from collections.abc import Callable, Mapping
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from sweeps.geometry.own_files import file_of
from sweeps.model.identity import digest

_PREFIX = "breakeven_own_"


class OwnModules(MetaPathFinder, Loader):
    """The files in one folder of a job as the modules of one package; what they import from this
    folder comes from the package, so that `import store` in them is their own `store.py`.
    """

    def __init__(self, package: str, root: str, files: Mapping[str, str]) -> None:
        self.package = package
        self.files = {
            posixpath.relpath(file, root or "."): (file, text) for file, text in files.items()
        }
        """By their paths from the folder: the path from the sweep, and the text."""

    def place(self, name: str) -> str | None:
        """The file of a module by its name in the package; empty for a folder, `None` for what is
        not there.
        """
        path = name.replace(".", "/")
        for file in (f"{path}.py", f"{path}/__init__.py"):
            if file in self.files:
                return file
        return "" if any(file.startswith(f"{path}/") for file in self.files) else None

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:  # noqa: ARG002 - Python's interface
        if name != self.package and not name.startswith(f"{self.package}."):
            return None
        inner = name[len(self.package) + 1 :]
        file = self.place(inner) if inner else ""
        is_package = file is not None and (not file or file.endswith("/__init__.py"))
        return None if file is None else ModuleSpec(name, self, origin=file, is_package=is_package)

    def exec_module(self, module: ModuleType) -> None:
        file = module.__spec__.origin if module.__spec__ is not None else None
        if not file:
            return
        path, text = self.files[file]
        module.__file__ = path
        # tracebacks, inspect and torch.compile read lines there
        linecache.cache[path] = len(text), None, text.splitlines(keepends=True), path
        tree = ast.fix_missing_locations(_OwnImports(self).visit(ast.parse(text)))
        exec(compile(tree, path, "exec"), module.__dict__)  # noqa: S102 - what the sweep names


class _OwnImports(ast.NodeTransformer):
    """Imports of modules beside the file from the package that these are in."""

    def __init__(self, modules: OwnModules) -> None:
        self.modules = modules

    def _is_own(self, name: str) -> bool:
        return self.modules.place(name.partition(".")[0]) is not None

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.ImportFrom:
        if not node.level and node.module and self._is_own(node.module):
            node.module = f"{self.modules.package}.{node.module}"
        return node

    def visit_Import(self, node: ast.Import) -> list[ast.stmt]:
        found: list[ast.stmt] = []
        for each in node.names:
            if not self._is_own(each.name):
                found.append(ast.Import([each]))
                continue
            full = f"{self.modules.package}.{each.name}"
            found.append(ast.Import([ast.alias(full, each.asname)]))
            if each.asname is None:  # binds the first name alone
                found[-1] = ast.Import([ast.alias(full, "_")])
                top = [ast.alias(each.name.partition(".")[0])]
                found.append(ast.ImportFrom(self.modules.package, top, 0))
        return [ast.copy_location(each, node) for each in found]


def load_own(files: Mapping[str, str], name: str) -> ModuleType:
    """The module of the file of a `code_name`, loaded once. Raises what its code raises."""
    file = file_of(name)
    root = posixpath.dirname(file)
    package = f"{_PREFIX}{digest([root, dict(files)])}"
    if not any(getattr(each, "package", "") == package for each in sys.meta_path):
        sys.meta_path.insert(0, OwnModules(package, root, files))
    path = posixpath.relpath(file, root or ".").removesuffix(".py").replace("/", ".")
    return importlib.import_module(f"{package}.{path}")


def own_function(files: Mapping[str, str], name: str) -> Callable[..., Any]:
    """The function of a `code_name`."""
    function: Callable[..., Any] = getattr(load_own(files, name), name.rpartition(":")[2])
    return function


def call_with(function: Callable[..., Any], known: Mapping[str, Any]) -> Any:
    """What a function returns for those of the values that it has parameters for."""
    taken = inspect.signature(function).parameters
    return function(**{name: value for name, value in known.items() if name in taken})
