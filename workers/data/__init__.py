"""Data sets by name, in a fixed order: digits, a folder of class folders, a Hugging Face data set
on disk, texts; their hashes.
"""

from collections.abc import Callable
from pathlib import Path

from sweeps.model.condition import NAMED_WEIGHTS, Condition
from sweeps.model.identity import digest
from workers.data.images import Images
from workers.errors import DataError

FOLDER, HUGGINGFACE, DIGITS = "imagefolder:", "huggingface:", "digits"


def images(data: str) -> Images:
    """The images that `Condition.data` names. Raises `DataError`, and `OSError` for a path that is
    not on this machine.
    """
    if data == DIGITS:
        from workers.data.digits import held_out_digits

        return held_out_digits()
    if data.startswith(FOLDER):
        from workers.data.imagefolder import imagefolder

        return imagefolder(data.removeprefix(FOLDER))
    if data.startswith(HUGGINGFACE):
        from workers.data.huggingface import dataset

        return dataset(data.removeprefix(HUGGINGFACE))
    raise DataError(
        f"{data!r} is not a data set; write {DIGITS}, {FOLDER}PATH or {HUGGINGFACE}PATH"
    )


def data_hash(
    condition: Condition, observer: Callable[[int, int], None] | None = None
) -> dict[str, str]:
    """The content of `condition.data` as a hash for `Job.content_hashes`: of the names and contents
    of all files, or of the text.

    `observer` is called every two seconds while files are read, with the bytes read and the bytes
    to read (see `workers.data.file_hashes`). Raises `DataError`, and `OSError` for a path that is
    not on this machine. Imports no torch.
    """
    data = condition.data
    if data is None:
        return {}
    from workers.data import text

    if text.is_text(data):
        return {"data": text.text_hash(data)}
    if data == DIGITS:
        from workers.data.digits import DIGITS_SPLIT

        return {"data": digest({"data": DIGITS, "split": DIGITS_SPLIT})}
    from workers.data.file_hashes import content_hashes

    path = data.removeprefix(FOLDER).removeprefix(HUGGINGFACE)
    return {
        "data": digest(
            [
                [name, sha256]
                for name, sha256 in content_hashes(path.partition("#")[0], observer).items()
            ]
        )
    }


def check_head(condition: Condition) -> None:
    """Raise `DataError` where the classes of `condition.data` are not those of the model's head and
    no class map relates them.

    Opens no image, and accepts what only the worker can check: checkpoints other than safetensors,
    data of Hugging Face.
    """
    data, head = condition.data, _head(condition)
    if head is None or data is None or not (data == DIGITS or data.startswith(FOLDER)):
        return
    if head == 0:
        raise DataError(
            f"{condition.model} has no classes: with these weights timm builds it without a head"
        )
    found = images(data)
    if found.class_map is not None or len(found.classes) == head:
        return
    if data == DIGITS:
        raise DataError(
            f"digits has 10 classes, the head of {condition.model} has {head}: write digits_vit_64,"
            " or a checkpoint of 10 outputs"
        )
    found.outputs(head)


def _head(condition: Condition) -> int | None:
    """The outputs of the condition's model, where they can be known without torch."""
    from sweeps.geometry.vit_catalogue import classes

    if condition.weights in NAMED_WEIGHTS:
        return classes(condition.model)
    file = Path(condition.weights)
    return head_outputs(file) if file.suffix == ".safetensors" and file.is_file() else None


def head_outputs(file: Path) -> int | None:
    """The outputs of the head in a safetensors checkpoint, from its header; `None` where there is
    no `head.weight`.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(file, framework="numpy") as opened:
            shape = opened.get_slice("head.weight").get_shape()
    except (OSError, SafetensorError):
        return None
    return int(shape[0]) if len(shape) == 2 else None
