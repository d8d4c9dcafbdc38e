"""Folder: a local directory with a causal language model of transformers: its geometry and its
hash, without reading a tensor.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from pydantic import ValidationError

from sweeps.geometry.llm_geometry import SizesNotGivenError, from_config
from sweeps.model.identity import digest
from sweeps.model.method import LanguageNetwork

_HUB = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*")
_LAYER = re.compile(r"(?:^|\.)(?:layers|h)\.(\d+)\.")


def is_folder(model: str) -> bool:
    """Whether a model's name is the path of a directory: `.`, `./dir`, `../dir` or an absolute
    one.
    """
    return model in {".", ".."} or model.startswith(("./", "../", "/"))


def is_hub(model: str) -> bool:
    """Whether a model's name is one of the Hugging Face hub: `org/name`."""
    return _HUB.fullmatch(model) is not None


def geometry(model: str) -> LanguageNetwork | None:
    """The geometry of the model in a directory; `None` where its config.json leaves sizes to
    transformers.

    Raises `ValueError` that names what the directory lacks.
    """
    folder = Path(model)
    if not folder.is_dir():
        raise ValueError(
            f"there is no folder {model}; a relative one counts from the current folder"
        )
    if not (folder / "config.json").is_file():
        raise ValueError(
            f"{model} holds no config.json, which describes the model; write what transformers'"
            " `save_pretrained` wrote"
        )
    if not (folder / "tokenizer.json").is_file():
        writes = (
            f"AutoTokenizer.from_pretrained(NAME).save_pretrained({model!r}) of transformers"
            " writes one"
        )
        raise ValueError(
            f"{model} holds no tokenizer.json, a fast tokenizer, which is saved apart from the"
            f" model; {writes}"
        )
    weights = sorted(folder.glob("*.safetensors"))
    if not weights:
        old = "save its pickled weights again as safetensors: nothing is unpickled here"
        right = (
            old
            if any(folder.glob("*.bin"))
            else "write what `save_pretrained` of transformers wrote"
        )
        raise ValueError(f"{model} holds no weights (*.safetensors); {right}")
    shapes: dict[str, list[int]] = {}
    for file in weights:
        try:
            if (held := _shapes(file)) is None:
                raise ValueError(
                    f"{file} is damaged, or only a part of the file that was written; copy or"
                    " download it again"
                )
            shapes |= held
        except OSError as error:
            raise ValueError(f"{file} cannot be read: {error.strerror}") from None
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"{model}: config.json cannot be read: {error}") from None
    try:
        network = from_config(model, config)
    except SizesNotGivenError:
        return None
    except ValidationError as error:
        first = error.errors()[0]
        raise ValueError(
            f"{model}: config.json makes no model: {first['loc'][0]}: {first['msg']}"
        ) from None
    except (
        AttributeError,
        TypeError,
        ZeroDivisionError,
    ) as error:  # no mapping, or words where numbers belong
        raise ValueError(f"{model}: config.json makes no model: {error}") from None
    _check_shapes(network, shapes)
    return network


def _check_shapes(network: LanguageNetwork, shapes: Mapping[str, list[int]]) -> None:
    """Raise `ValueError` where weights are not of the size in config.json, where their names
    tell without transformers.
    """
    if not network.described:
        return
    table, down = [network.vocabulary, network.width], [network.width, network.mlp_width]
    sizes = {
        "embed_tokens.weight": table,
        "wte.weight": table,
        "mlp.down_proj.weight": down,
        "mlp.c_fc.weight": down,
    }
    for name, held in shapes.items():
        wanted = next((size for end, size in sizes.items() if name.endswith(end)), held)
        if held != wanted:
            found = f"{name} has the shape {held}, and by config.json {wanted}"
            raise ValueError(
                f"{network.name}: its weights are not those of its config.json: {found}; take both"
                " from one save"
            )
    layers = max(
        (int(at[1]) + 1 for at in map(_LAYER.search, shapes) if at), default=network.layers
    )
    if layers < network.layers:
        raise ValueError(
            f"{network.name}: its weights are of {layers} layers, and its config.json of"
            f" {network.layers}"
        )


def _shapes(file: Path) -> dict[str, list[int]] | None:
    """The shapes of the tensors in a safetensors file, by name; `None` unless the file has the
    promised length.

    It holds eight bytes with the header's length, the header, the tensors.
    """
    size = file.stat().st_size
    with file.open("rb") as opened:
        start = 8 + int.from_bytes(opened.read(8), "little")
        if start > size:
            return None
        try:
            header = json.loads(opened.read(start - 8))
            tensors = {name: tensor for name, tensor in header.items() if name != "__metadata__"}
            ends = [tensor["data_offsets"][1] for tensor in tensors.values()]
            shapes = {name: [*map(int, tensor["shape"])] for name, tensor in tensors.items()}
        except (AttributeError, IndexError, KeyError, TypeError, ValueError):
            return None
    return shapes if size == start + max(ends, default=0) else None


def content(model: str) -> str:
    """Hash of all that the model comes from: every *.json and *.safetensors of the directory, by
    name.
    """
    files = sorted(
        file
        for file in Path(model).iterdir()
        if file.suffix in {".json", ".safetensors"} and file.is_file()
    )
    return digest(
        [[file.name, _hash(file, file.stat().st_size, file.stat().st_mtime_ns)] for file in files]
    )


@lru_cache(maxsize=1024)
def _hash(file: Path, size: int, changed: int) -> str:  # noqa: ARG001 - size and time make a changed file another key
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()
