"""Images in a folder of class folders, the layout of ImageNet and its variants (V2, R, C, A)."""

import os
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import numpy as np
from PIL import Image

from workers.data.images import Images
from workers.errors import DataError

SUFFIXES = frozenset({".bmp", ".gif", ".jpeg", ".jpg", ".png", ".ppm", ".tif", ".tiff", ".webp"})
CLASS_MAP = "class_map.txt"


def imagefolder(path: str) -> Images:
    """`path/CLASS/…/IMAGE`: classes in the order of their names (numbers as numbers), and so the
    images within.

    A file `class_map.txt` beside the class folders assigns an output of the model to each class:
    lines `CLASS OUTPUT`, where `#` begins a comment. Raises `DataError` where there is no image,
    `OSError` where there is no such folder.
    """
    root = Path(path)
    by_class: dict[str, list[str]] = {}
    for name, _ in files(path):
        top, _, inside = name.partition("/")
        if inside and Path(name).suffix.lower() in SUFFIXES:
            by_class.setdefault(top, []).append(name)
    if not by_class:
        raise DataError(
            f"{root} holds no images; it needs a folder for each class, with images"
            f" ({', '.join(sorted(SUFFIXES))}) inside"
        )
    classes = sorted(
        by_class, key=lambda name: (0, int(name), name) if name.isdecimal() else (1, 0, name)
    )
    names = tuple(name for each in classes for name in sorted(by_class[each]))
    labels = np.repeat(np.arange(len(classes)), [len(by_class[each]) for each in classes])
    return Images(
        names, labels, tuple(classes), lambda index: decoded(root / names[index]), class_map(root)
    )


def decoded(source: Path | BytesIO) -> Image.Image:
    """The image in a file, decoded whole."""
    with Image.open(source) as image:
        image.load()
        return image


def class_map(folder: Path) -> dict[str, int] | None:
    """The content of `class_map.txt` in the folder, or `None`. Raises `DataError`, naming the
    line.
    """
    file = folder / CLASS_MAP
    if not file.is_file():
        return None
    found: dict[str, int] = {}
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
        words = line.partition("#")[0].rsplit(maxsplit=1)
        if not words:
            continue
        if len(words) < 2 or not words[1].isdecimal() or words[0] in found:
            raise DataError(
                f"{file}, line {number}: expected a new class name and the number of an output, got"
                f" {line!r}"
            )
        found[words[0]] = int(words[1])
    return found


def files(path: str) -> list[tuple[str, int]]:
    """Every file below a folder (or the one file) with its size in bytes, sorted by name; hidden
    ones are left out.

    Links to folders are followed. Raises `FileNotFoundError`, naming the path.
    """
    root = Path(path)
    if not root.exists():
        raise FileNotFoundError(f"{path} is not on this machine")
    if root.is_file():
        return [(root.name, root.stat().st_size)]
    return sorted(_below(root, ""))


def _below(folder: Path, prefix: str) -> Iterator[tuple[str, int]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith("."):
                continue
            if entry.is_dir():
                yield from _below(Path(entry.path), f"{prefix}{entry.name}/")
            elif entry.is_file():
                yield f"{prefix}{entry.name}", entry.stat().st_size
