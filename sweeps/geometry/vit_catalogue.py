"""The vision models that a sweep may name: generated data, so that planning needs neither timm nor
torch.
"""

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from sweeps.errors import did_you_mean, nearest
from sweeps.model.method import Network

FOLDER = Path(__file__).parent
FILE, VARIANTS, UNSUPPORTED = (
    FOLDER / f"{name}.json" for name in ("vit_catalogue", "variants", "unsupported")
)
_HUB = re.compile("(hf-hub:|hf_hub:)?timm/")
"""Before a name of timm: the same model, as the Hugging Face hub and timm call it there."""


class Networks(Mapping[str, Network]):
    """Networks by timm name; a name with a tag (`vit_base_patch16_224.mae`) is found too, but only
    bare names are listed.
    """

    def __init__(self, bare: Mapping[str, Network]) -> None:
        self._bare = bare

    def __getitem__(self, name: str) -> Network:
        if name in self._bare:
            return self._bare[name]
        bare, _, tag = name.partition(".")
        if not tag or name not in _variants():
            raise KeyError(name)
        own = {key: value for key, value in _variants()[name].items() if key != "classes"}
        return self._bare[bare].model_copy(update=own)

    def __iter__(self) -> Iterator[str]:
        return iter(self._bare)

    def __len__(self) -> int:
        return len(self._bare)


@cache
def networks() -> Networks:
    """Every known network; `python -m tests.catalogues` writes the data anew."""
    facts = json.loads(FILE.read_text(encoding="utf-8"))
    return Networks({name: Network(name=name, **each) for name, each in facts.items()})


def classes(model: str) -> int | None:
    """The outputs of the model's head as timm makes it (0: none); `None` for a name that is not
    known.
    """
    found: int | None = _variants().get(model, {}).get("classes")
    return found


def published(model: str) -> bool:
    """Whether there are published weights of a model of the catalogue, or under its tag."""
    return model in _variants() and (
        "." in model or any(name.startswith(f"{model}.") for name in _variants())
    )


def timm_name(model: str) -> str:
    """The name without the hub's `timm/` or timm's `hf-hub:timm/`."""
    return _HUB.sub("", model, count=1) if _HUB.match(model) else model


def not_known(model: str, known: list[str]) -> str:
    """What is wrong with a model's name that is not in the catalogue; `known` are all names that
    could be meant.
    """
    bare, _, tag = timm_name(model).partition(".")
    if bare in networks():
        tags = [name.partition(".")[2] for name in _variants() if name.startswith(f"{bare}.")]
        right = did_you_mean(tag, tags) or (
            f"; there are {', '.join(tags)}" if tags else "; it has none"
        )
        return f"{bare} has no weights with the tag {tag!r}{right}"
    for reason, names in json.loads(UNSUPPORTED.read_text(encoding="utf-8")).items():
        if bare in names.split():
            return f"{bare} is not supported: {reason}"
    near = None if "/" in bare else nearest(bare, known)
    forms = "a name of timm, such as vit_base_patch16_224, a folder (./DIR), or ORG/NAME of the hub"
    return f"unknown model {model!r}; " + (f"did you mean {near!r}?" if near else f"write {forms}")


@cache
def _variants() -> Mapping[str, Mapping[str, Any]]:
    found: dict[str, dict[str, Any]] = json.loads(VARIANTS.read_text(encoding="utf-8"))
    return found
