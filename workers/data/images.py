"""Images with their classes, from scikit-learn's digits, a folder of class folders, or a data set
of the Hugging Face hub on disk (Parquet files, or `save_to_disk` of `datasets`).
"""

import hashlib
import io
import itertools
import json
import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from workers.errors import DataError

DIGITS_SPLIT = 1
"""Raised when the split changes."""
HELD_OUT_DIGITS = 0.2
SUFFIXES = frozenset({".bmp", ".gif", ".jpeg", ".jpg", ".png", ".ppm", ".tif", ".tiff", ".webp"})
CLASS_MAP = "class_map.txt"
LABELS = ("label", "labels", "fine_label", "coarse_label")
_SPLIT = re.compile(r"(?:^|/)([^/]+?)-\d+-of-\d+[^/]*$")


@dataclass(frozen=True)
class Images:
    """Images with their classes; each is read on demand."""

    names: tuple[str, ...]
    labels: NDArray[np.int64]
    """The class of each image as an index into `classes`, shape [images]."""
    classes: tuple[str, ...]
    read: Callable[[int], Image.Image]
    """The image of an index, called from several threads; raises what Pillow does if it is
    broken."""
    class_map: Mapping[str, int] | None = None
    """The model's output for a class, by name, where the classes are not the model's own; the other
    outputs are left out."""

    def __len__(self) -> int:
        return len(self.names)

    def outputs(self, head: int) -> NDArray[np.int64]:
        """For each class the output of a model with `head` outputs that stands for it.

        Without a class map: in order, where the numbers agree; by WordNet's numbers where the
        classes are a part of ImageNet's 1000. Raises `DataError`.
        """
        if head < 1:
            raise DataError("the model has no head: it gives features, and predicts no class")
        if self.class_map is None:
            if len(self.classes) == head:
                return np.arange(head)
            synsets = imagenet_synsets() if head == 1000 else {}
            if synsets.keys() >= {*self.classes}:  # such as ImageNet-R
                return np.array([synsets[name] for name in self.classes], dtype=np.int64)
            raise DataError(
                f"the data has {len(self.classes)} classes and the model's head {head}; where"
                " they are a part of the model's classes, add a file class_map.txt to the"
                " data: one line `CLASS OUTPUT` for each"
            )
        if missing := [name for name in self.classes if name not in self.class_map]:
            raise DataError(
                f"class_map.txt has no line for {len(missing)} of the classes, the first being"
                f" {missing[0]}"
            )
        outputs = np.array([self.class_map[name] for name in self.classes], dtype=np.int64)
        if outputs.min() < 0 or outputs.max() >= head:
            raise DataError(
                f"class_map.txt names output {outputs.max()}, but the model's head has the outputs"
                f" 0 to {head - 1}"
            )
        return outputs


@cache
def imagenet_synsets() -> dict[str, int]:
    """The outputs of a model of ImageNet's 1000 classes by WordNet's number, such as n01440764, as
    timm has them (its list is read without importing it, which takes torch).
    """
    timm = find_spec("timm")
    assert timm is not None
    assert timm.origin is not None
    names = Path(timm.origin).with_name("data") / "_info/imagenet_synsets.txt"
    return {name: place for place, name in enumerate(names.read_text(encoding="utf-8").split())}


def evenly_spaced(total: int, wanted: int | None) -> Sequence[int]:
    """`wanted` of `total` indices, in order and evenly spaced; all of them for `None` or for more
    than `total`.
    """
    if wanted is None or wanted >= total:
        return range(total)
    return [place * total // wanted for place in range(wanted)]


class Digits(NamedTuple):
    """Alpaydin and Kaynak, Optical Recognition of Handwritten Digits, UCI Machine Learning
    Repository, its test part.
    """

    pixels: NDArray[np.uint8]
    """Shape [images, 8, 8]: 0 (background) to 255 (ink), stretched from the 17 levels of the
    source."""
    labels: NDArray[np.int64]
    held_out: NDArray[np.bool_]
    """Images that are not used for training."""


@cache
def digits() -> Digits:
    """All images in scikit-learn's order.

    Of each class the fifth with the lowest SHA-256 of the pixels is held out: the same on every
    machine, and equal images are always in the same part.
    """
    from sklearn.datasets import load_digits

    source = load_digits()
    levels, labels = source.images.astype(np.uint8), source.target.astype(np.int64)
    keys = np.array([hashlib.sha256(image.tobytes()).hexdigest() for image in levels])
    held_out = np.zeros(len(labels), dtype=np.bool_)
    for label in range(10):
        ordered = np.sort(keys[labels == label])
        last = ordered[round(HELD_OUT_DIGITS * len(ordered)) - 1]
        held_out |= (labels == label) & (keys <= last)
    return Digits(np.round(levels * (255 / 16)).astype(np.uint8), labels, held_out)


def held_out_digits() -> Images:
    """The held-out part, on which accuracy is measured."""
    found = digits()
    places = np.flatnonzero(found.held_out)
    return Images(
        names=tuple(f"digits/{place}" for place in places),
        labels=found.labels[places],
        classes=tuple(map(str, range(10))),
        read=lambda index: Image.fromarray(found.pixels[places[index]]),
    )


def imagefolder(path: str) -> Images:
    """`path/CLASS/…/IMAGE`: classes in the order of their names (numbers as numbers), and so the
    images within.

    A file `class_map.txt` beside the class folders assigns an output of the model to each class:
    lines `CLASS OUTPUT`, where `#` begins a comment. Raises `DataError` where there is no image,
    `OSError` where there is no such folder.
    """
    root = Path(path)
    by_class: dict[str, list[str]] = {}
    for name in files(path):
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


def decoded(source: Path | io.BytesIO) -> Image.Image:
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


def files(path: str) -> list[str]:
    """Every file below a folder (or the one file), sorted by name; hidden ones are left out.

    Links to folders are followed. Raises `FileNotFoundError`, naming the path.
    """
    root = Path(path)
    if not root.exists():
        raise FileNotFoundError(f"{path} is not on this machine")
    return [root.name] if root.is_file() else sorted(_below(root, ""))


def _below(folder: Path | str, prefix: str) -> Iterator[str]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith("."):
                continue
            if entry.is_dir():
                yield from _below(entry.path, f"{prefix}{entry.name}/")
            elif entry.is_file():
                yield prefix + entry.name


def huggingface(path: str) -> Images:
    """The split at `path` (a folder or a file), or with `path#SPLIT` that split of several; rows in
    the order of the files.

    Read with pyarrow alone. Images are in a column of `{bytes, path}` or of bytes, classes in an
    integer column named `label`. Raises `DataError`, and `OSError` where there is no such path.
    """
    try:
        import pyarrow  # noqa: F401 - only checks that it is installed
    except ImportError as error:
        raise DataError(
            "data sets of Hugging Face are read with pyarrow, which is not installed: pip install"
            " pyarrow"
        ) from error
    place, _, split = path.partition("#")
    root = Path(place)
    pieces = {file: _pieces(file) for file in _of_split(root, place, split)}
    groups = list(itertools.chain.from_iterable(pieces.values()))
    image, label = _columns(groups[0].schema, place)
    labels = np.concatenate([group.column(label).to_numpy() for group in groups]).astype(np.int64)
    classes = _class_names(groups[0].schema, label) or tuple(map(str, range(int(labels.max()) + 1)))
    if labels.min() < 0 or labels.max() >= len(classes):
        raise DataError(
            f"{place}: labels {labels.min()} to {labels.max()} for {len(classes)} classes; a test"
            " split may have none"
        )
    starts, lock = np.cumsum([0, *(group.rows for group in groups)]), threading.Lock()
    kept = lru_cache(maxsize=2)(lambda which: groups[which].column(image))

    def read(index: int) -> Image.Image:
        which = int(np.searchsorted(starts, index, side="right")) - 1
        with lock:
            column = kept(which)
        return _decoded(column[int(index - starts[which])].as_py(), root)

    names = tuple(
        f"{file.name}:{row}"
        for file, own in pieces.items()
        for row in range(sum(g.rows for g in own))
    )
    return Images(names, labels, classes, read, class_map(root))


class _Group(NamedTuple):
    """Rows of a file that are read at once."""

    rows: int
    schema: Any
    column: Callable[[str], Any]


def _pieces(file: Path) -> list[_Group]:
    """The row groups of a Parquet file, or the whole of an Arrow file, mapped into memory."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        if file.suffix == ".arrow":
            with pa.memory_map(str(file)) as mapped:
                table = pa.ipc.open_stream(mapped).read_all()
            return [_Group(len(table), table.schema, table.column)]
        parquet = pq.ParquetFile(file)
    except pa.ArrowInvalid as error:
        raise DataError(f"{file} cannot be read: {error}") from error

    def column(group: int, name: str) -> Any:
        return parquet.read_row_group(group, columns=[name]).column(name)

    return [
        _Group(
            parquet.metadata.row_group(group).num_rows, parquet.schema_arrow, partial(column, group)
        )
        for group in range(parquet.num_row_groups)
    ]


def _of_split(root: Path, place: str, split: str) -> list[Path]:
    """The Parquet and Arrow files of a split. Raises `DataError`."""
    found: dict[str, list[Path]] = {}
    for name in files(place):
        file = root if root.is_file() else root / name
        if file.suffix not in (".parquet", ".arrow") or file.name.startswith("cache-"):
            continue
        match = _SPLIT.search(name)
        # `save_to_disk` names files data-…, and puts each split of several into a folder of its
        # own.
        named = (
            match[1] if match and match[1] != "data" else file.parent.name if "/" in name else ""
        )
        found.setdefault(named, []).append(file)
    if not found:
        raise DataError(f"{root} holds neither Parquet files nor Arrow files that `datasets` saved")
    if not split and len(found) > 1:
        raise DataError(
            f"{root} holds the splits {', '.join(sorted(found))}; write huggingface:{place}#SPLIT"
        )
    if split and split not in found:
        raise DataError(f"{root} holds no split {split!r}; it holds {', '.join(sorted(found))}")
    return found[split] if split else next(iter(found.values()))


def _columns(schema: Any, place: str) -> tuple[str, str]:
    """The names of the columns with images and with classes. Raises `DataError`."""
    import pyarrow as pa

    def holds_images(kind: Any) -> bool:
        if pa.types.is_struct(kind):
            return bool(kind.get_field_index("bytes") >= 0)
        return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))

    images = [each.name for each in schema if holds_images(each.type)]
    integers = [each.name for each in schema if pa.types.is_integer(each.type)]
    labels = [name for name in LABELS if name in integers] or (
        integers if len(integers) == 1 else []
    )
    if not images or not labels:
        lacks = (
            "images ({bytes, path}, or bytes)" if not images else "classes (integers, named label)"
        )
        raise DataError(
            f"{place}: no column holds {lacks}; the columns are {', '.join(schema.names)}"
        )
    return images[0], labels[0]


def _class_names(schema: Any, label: str) -> tuple[str, ...] | None:
    """The names that the data set's own description gives its classes."""
    written = (schema.metadata or {}).get(b"huggingface")
    if written is None:
        return None
    feature = json.loads(written).get("info", {}).get("features", {}).get(label, {})
    return tuple(feature["names"]) if feature.get("names") else None


def _decoded(found: Any, root: Path) -> Image.Image:
    content, path = (
        (found.get("bytes"), found.get("path")) if isinstance(found, dict) else (found, None)
    )
    if content is not None:
        return decoded(io.BytesIO(content))
    if path is None:
        raise ValueError("the row holds no image")
    return decoded((root if root.is_dir() else root.parent) / path)
