"""The images that accuracy is measured on, in a fixed order: digits, a folder of class folders, a Hugging Face data set on disk."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sweeps.identity import digest
from sweeps.job import Condition

if TYPE_CHECKING:
    from PIL.Image import Image

FOLDER, HUGGINGFACE, DIGITS = "imagefolder:", "huggingface:", "digits"


class DataError(ValueError):
    """Data that cannot be evaluated as asked; the message says why, and what to do."""


@dataclass(frozen=True)
class Images:
    """Images with their classes; none is read before it is asked for."""

    names: tuple[str, ...]
    labels: NDArray[np.int64]
    """The class of each image as an index into `classes`, shape [images]."""
    classes: tuple[str, ...]
    read: Callable[[int], "Image"]
    """The image of an index, called from several threads; raises what Pillow does if it is broken."""
    class_map: Mapping[str, int] | None = None
    """The model's output for a class, by name, where the classes are not the model's own; the other outputs are left out."""

    def __len__(self) -> int:
        return len(self.names)

    def outputs(self, head: int) -> NDArray[np.int64]:
        """For each class the output of a model with `head` outputs that stands for it. Raises `DataError`."""
        if self.class_map is None:
            if len(self.classes) != head:
                raise DataError(
                    f"the data has {len(self.classes)} classes and the model's head {head}; where they are some of the model's "
                    "classes, a file class_map.txt among the data says which: one line `CLASS OUTPUT` for each"
                )
            return np.arange(head)
        if missing := [name for name in self.classes if name not in self.class_map]:
            raise DataError(f"class_map.txt has no line for {len(missing)} of the classes, the first being {missing[0]}")
        outputs = np.array([self.class_map[name] for name in self.classes], dtype=np.int64)
        if outputs.min() < 0 or outputs.max() >= head:
            raise DataError(f"class_map.txt names output {outputs.max()}, but the model's head has the outputs 0 to {head - 1}")
        return outputs


def spread(total: int, wanted: int | None) -> Sequence[int]:
    """`wanted` of `total` places, in order and as far apart as can be; all of them for `None` or more than there are."""
    if wanted is None or wanted >= total:
        return range(total)
    return [place * total // wanted for place in range(wanted)]


def images(data: str) -> Images:
    """The images that `Condition.data` names. Raises `DataError`, and `OSError` for a path that is not on this machine."""
    if data == DIGITS:
        from workers.data.digits import held_out

        return held_out()
    if data.startswith(FOLDER):
        from workers.data.imagefolder import imagefolder

        return imagefolder(data.removeprefix(FOLDER))
    if data.startswith(HUGGINGFACE):
        from workers.data.huggingface import dataset

        return dataset(data.removeprefix(HUGGINGFACE))
    raise DataError(f"{data!r} is no data; write {DIGITS}, {FOLDER}PATH or {HUGGINGFACE}PATH")


def listing(condition: Condition, observer: Callable[[int, int], None] | None = None) -> dict[str, str]:
    """What `condition.data` holds, as a hash for `Job.contents`: of the names and contents of all files, or of the text.

    `observer` is called every two seconds while files are read, with the bytes read and the bytes to read (see
    `workers.data.file_hashes`). Raises `DataError`, and `OSError` for a path that is not on this machine. Imports no torch.
    """
    data = condition.data
    if data is None:
        return {}
    from workers.data import text

    if text.names_text(data):
        return {"data": text.listing(data)}
    if data == DIGITS:
        from workers.data.digits import SPLIT

        return {"data": digest({"data": DIGITS, "split": SPLIT})}
    from workers.data.file_hashes import content_hashes

    path = data.removeprefix(FOLDER).removeprefix(HUGGINGFACE)
    return {"data": digest([[name, sha256] for name, sha256 in content_hashes(path.partition("#")[0], observer).items()])}


def check_head(condition: Condition) -> None:
    """Raise `DataError` where the classes of `condition.data` are not those of the model's head and no class map relates them.

    Opens no image, and passes what only the worker can know: other checkpoints than safetensors, data of Hugging Face.
    """
    data, head = condition.data, _head(condition)
    if head is None or data is None or not (data == DIGITS or data.startswith(FOLDER)):
        return
    if head == 0:
        raise DataError(f"{condition.model} has no classes to choose from: with these weights timm makes it without a head")
    found = images(data)
    if found.class_map is not None or len(found.classes) == head:
        return
    if data == DIGITS:
        raise DataError(
            f"digits has 10 classes and the head of {condition.model} {head}; write digits_vit_64, or a checkpoint with 10 outputs"
        )
    found.outputs(head)


def _head(condition: Condition) -> int | None:
    """The outputs of the condition's model, as far as can be known without torch."""
    from sweeps.geometry.vit_catalogue import classes
    from sweeps.parsing.condition_parser import NAMED_WEIGHTS

    if condition.weights in NAMED_WEIGHTS:
        return classes(condition.model)
    file = Path(condition.weights)
    return head_outputs(file) if file.suffix == ".safetensors" and file.is_file() else None


def head_outputs(file: Path) -> int | None:
    """The outputs of the head in a safetensors checkpoint, from its header; `None` where there is no `head.weight`."""
    try:
        with file.open("rb") as opened:
            header = json.loads(opened.read(min(int.from_bytes(opened.read(8), "little"), file.stat().st_size)))
        shape = header["head.weight"]["shape"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return int(shape[0]) if len(shape) == 2 else None
