"""Image data sets of the Hugging Face hub on disk: folders of Parquet files, or written by
`datasets` with `save_to_disk`.
"""

import io
import json
import re
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from workers.data.imagefolder import class_map, decoded, files
from workers.data.images import Images
from workers.errors import DataError

LABELS = ("label", "labels", "fine_label", "coarse_label")
_SPLIT = re.compile(r"(?:^|/)([^/]+?)-\d+-of-\d+[^/]*$")


def dataset(path: str) -> Images:
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
    tables = [_table(file) for file in _of_split(root, place, split)]
    image, label = _columns(tables[0].schema, place)
    labels = np.concatenate([table.column(label) for table in tables]).astype(np.int64)
    classes = _class_names(tables[0].schema, label) or tuple(map(str, range(int(labels.max()) + 1)))
    if labels.min() < 0 or labels.max() >= len(classes):
        raise DataError(
            f"{place}: labels {labels.min()} to {labels.max()} for {len(classes)} classes; a test"
            " split may have none"
        )
    starts = np.cumsum([0, *(len(table) for table in tables)])

    def read(index: int) -> Image.Image:
        which = int(np.searchsorted(starts, index, side="right")) - 1
        found = tables[which].row(image, int(index - starts[which]))
        return _decoded(found, root)

    names = tuple(f"{table.file.name}:{row}" for table in tables for row in range(len(table)))
    return Images(names, labels, classes, read, class_map(root))


@dataclass
class _Table:
    """One file: row groups, of which the one read last is kept."""

    file: Path
    schema: Any
    sizes: Sequence[int]
    """Rows of each group."""
    source: Any
    """A `ParquetFile`, or a table mapped into memory."""
    lock: threading.Lock = field(default_factory=threading.Lock)
    kept: tuple[int, str, Any] = (-1, "", None)

    def __len__(self) -> int:
        return sum(self.sizes)

    def column(self, name: str) -> Any:
        table = self.source if self.file.suffix == ".arrow" else self.source.read(columns=[name])
        return table.column(name).to_numpy()

    def row(self, name: str, index: int) -> Any:
        if self.file.suffix == ".arrow":
            return self.source.column(name)[index].as_py()
        starts = np.cumsum([0, *self.sizes])
        piece = int(np.searchsorted(starts, index, side="right")) - 1
        with self.lock:
            if self.kept[:2] != (piece, name):
                self.kept = (
                    piece,
                    name,
                    self.source.read_row_group(piece, columns=[name]).column(name),
                )
            return self.kept[2][index - int(starts[piece])].as_py()


def _table(file: Path) -> _Table:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        if file.suffix == ".arrow":
            with pa.memory_map(str(file)) as mapped:
                table = pa.ipc.open_stream(mapped).read_all()
            return _Table(file, table.schema, [len(table)], table)
        parquet = pq.ParquetFile(file)
    except pa.ArrowInvalid as error:
        raise DataError(f"{file} cannot be read: {error}") from error
    groups = [parquet.metadata.row_group(group).num_rows for group in range(parquet.num_row_groups)]
    return _Table(file, parquet.schema_arrow, groups, parquet)


def _of_split(root: Path, place: str, split: str) -> Iterator[Path]:
    found: dict[str, list[Path]] = {}
    for name, _ in files(place):
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
    yield from found[split] if split else next(iter(found.values()))


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
