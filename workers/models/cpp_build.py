"""Compiles a C++ file once per machine, keeps the library in the cache, and loads it."""

import contextlib
import ctypes
import functools
import logging
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from sweeps.model.identity import digest
from workers.cache import cached
from workers.measure.environment import read_text

_LOG = logging.getLogger(__name__)
COMPILER_FLAGS = (
    "-std=c++17",
    "-O3",
    "-march=native",
    "-ffp-contract=fast",
    "-fopenmp",
    "-shared",
    "-fPIC",
)
COMPILERS = ("g++", "c++", "clang++")
BUILD_S = 120.0


class NotBuilt(Exception):  # noqa: N818 - a fact about a machine
    """The library cannot be built or loaded here; the message is the reason."""


class _TensorPointer:
    """The address of a tensor's first element as an argument; `None`: a null pointer."""

    @classmethod
    def from_param(cls, tensor: Any) -> ctypes.c_void_p | None:
        return None if tensor is None else ctypes.c_void_p(tensor.data_ptr())


_TYPES: Mapping[str, Any] = {
    "T": _TensorPointer,
    "P": ctypes.c_void_p,
    "q": ctypes.c_int64,
    "i": ctypes.c_int,
    "f": ctypes.c_float,
}
"""By letter, as in `struct`; T is a contiguous tensor."""
_LOADED: dict[Path, Mapping[str, Callable[..., Any]]] = {}


def functions(source: Path, signatures: Mapping[str, str]) -> Mapping[str, Callable[..., Any]]:
    """The functions of a C++ file by name; it is compiled and loaded on the first call of the
    process. Raises `NotBuilt`.

    A signature has a letter for each argument, and after `>` that of the result, if there is one.
    """
    if source not in _LOADED:
        found = {name: getattr(library(source), name) for name in signatures}
        for name, signature in signatures.items():
            arguments, _, result = signature.partition(">")
            found[name].argtypes = [_TYPES[letter] for letter in arguments]
            found[name].restype = _TYPES.get(result)
        _LOADED[source] = found
    return _LOADED[source]


@contextlib.contextmanager
def observed_functions(around: Callable[[str], AbstractContextManager[object]]) -> Iterator[None]:
    """Run every call of a compiled function within `around`, which gets its name: a profiler of
    torch sees no call of a library.
    """

    def observe(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            with around(name):
                return function(*arguments)

        return call

    before = dict(_LOADED)
    for source, loaded in before.items():
        _LOADED[source] = {name: observe(name, function) for name, function in loaded.items()}
    try:
        yield
    finally:
        _LOADED.update(before)


@functools.cache
def missing_reason(source: Path) -> str | None:
    """Why a C++ file's functions are missing on this machine, or `None`; compiles it on the first
    call.
    """
    try:
        library(source)
    except NotBuilt as reason:
        _LOG.warning("%s is not compiled, torch's operators are used: %s", source.name, reason)
        return str(reason)
    return None


@functools.cache
def library(source: Path) -> ctypes.CDLL:
    """The library made of a C++ file for this machine's processor, compiled now if it is not in the
    cache. Raises `NotBuilt`.
    """
    file = build_library(source)
    try:
        return ctypes.CDLL(str(file))
    except OSError as error:
        raise NotBuilt(f"the compiled library cannot be loaded: {error}") from error


def build_library(source: Path) -> Path:
    """The shared library made of `source`. Raises `NotBuilt`."""
    requested = os.environ.get("CXX")
    names = (requested,) if requested else COMPILERS
    compiler = next((found for name in names if (found := shutil.which(name)) is not None), None)
    if compiler is None:
        raise NotBuilt(f"no C++ compiler: none of {', '.join(names)} is on the path")
    openmp = _openmp()

    def make(file: Path) -> None:
        # Torch's own runtime comes first, so that the compiler adds none: two would compete for the
        # cores.
        _output(
            [compiler, *COMPILER_FLAGS, str(source), "-Wl,--as-needed", openmp, "-o", str(file)]
        )
        _LOG.info("compiled %s", file.name)

    try:
        text, version = source.read_text(encoding="utf-8"), _output([compiler, "--version"])
        parts = {
            "source": text,
            "flags": COMPILER_FLAGS,
            "compiler": version,
            "processor": _processor(),
            "openmp": openmp,
        }
        return cached(f"{source.stem}-{digest(parts)}.so", make)
    except OSError as error:
        raise NotBuilt(f"the cache cannot be written: {error}") from error


def _output(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=BUILD_S)
    except subprocess.TimeoutExpired as error:
        raise NotBuilt(f"{command[0]} took more than {BUILD_S:g} s") from error
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        message = next(
            (line for line in lines if "error" in line), lines[-1] if lines else "no message"
        )
        raise NotBuilt(f"{command[0]} failed: {message}")
    return done.stdout.strip().partition("\n")[0]


def _openmp() -> str:
    """The OpenMP runtime that torch runs on. Raises `NotBuilt` where none is found."""
    import torch  # noqa: F401 - loads it

    mapped = read_text("/proc/self/maps")  # on Linux only
    found: list[str] = sorted(
        set(re.findall(r"(/\S*/lib(?:gomp|iomp5|omp)[-.\w]*\.so[.\w]*)$", mapped, re.MULTILINE))
    )
    own = [path for path in found if "/torch/" in path] or found
    if not own:
        raise NotBuilt(
            "no OpenMP runtime that torch has loaded is found; on Linux it is in /proc/self/maps"
        )
    return own[0]


def _processor() -> str:
    """The processor that `-march=native` compiles for: the library may crash on another."""
    lines = read_text("/proc/cpuinfo").splitlines()
    facts = {
        name: next((line for line in lines if line.startswith(name)), "")
        for name in ("model name", "flags", "Features")
    }
    return f"{platform.machine()} {sorted(facts.items())}"
