"""Small methods and networks of the tests' own, so that the language is tested without any folder
above `sweeps`.
"""

from collections.abc import Callable
from typing import Any

import pytest
from pydantic import Field

from sweeps.language.expand import Expansion, expand_file
from sweeps.language.yaml_reader import SweepError
from sweeps.model.condition import ImageSize
from sweeps.model.method import BlockTokens, Method, Network, Params


class TopkParams(Params):
    keep_rate: float = Field(default=0.7, gt=0, le=1)
    layers: tuple[int, ...] = (3, 6, 9)


class TomeParams(Params):
    r: int | tuple[int, ...] | None = None
    r_ratio: float | None = Field(default=None, ge=0, le=0.5)


class MaskParams(Params):
    blocks: int
    dtype: str = "int8"
    mode: str | None = None


class Reduction:
    """A method that promises nothing but its parameters."""

    PAPER = "none"
    VERSION = 1

    def __init__(self, name: str, params: type[Params]) -> None:
        self.__name__ = name
        self.Params = params

    def tokens(
        self, params: Any, network: Network, image_size: ImageSize
    ) -> tuple[BlockTokens, ...]:
        return network.dense_tokens(image_size)

    def macs(self, params: Any, network: Network, image_size: ImageSize) -> int:
        return 0

    def refuses(self, params: Any, network: Network) -> str | None:
        deepest = max(getattr(params, "layers", None) or (0,))
        return (
            f"layer {deepest} is beyond {network.name}'s {network.depth} blocks"
            if deepest >= network.depth
            else None
        )

    def apply(self, model: Any, params: Any) -> Any:
        return model


METHODS: dict[str, Method] = {
    "topk": Reduction("topk", TopkParams),
    "tome": Reduction("tome", TomeParams),
    "mask": Reduction("mask", MaskParams),
}


def network(name: str, *, patch: int, width: int, heads: int, depth: int = 12) -> Network:
    return Network(
        name=name,
        patch=patch,
        image_size=224,
        depth=depth,
        width=width,
        heads=heads,
        head_dim=64,
        attention_macs_per_token=4 * width * width,
        mlp_macs_per_token=8 * width * width,
        fixed_macs=width * 1000,
    )


NETWORKS = {
    "digits_vit_64": network("digits_vit_64", patch=4, width=96, heads=3),
    "deit_tiny_patch16_224": network("deit_tiny_patch16_224", patch=16, width=192, heads=3),
    "vit_base_patch32_224": network("vit_base_patch32_224", patch=32, width=768, heads=12),
    "vit_giant_patch16_224": network(
        "vit_giant_patch16_224", patch=16, width=1408, heads=22, depth=40
    ),
}

HEAD = "schema: 1\nname: trial\n"
MODEL = "defaults: {model: deit_tiny_patch16_224, image_size: 32}\n"
TOPK = "methods: [{method: topk}]\n"
GRID = (
    MODEL
    + "axes: {image_size: [32, 64, 96]}\nmethods: [{method: topk, keep_rate: [0.5, 0.7]}, {method:"
    " tome, r: 4}]\n"
)

Expand = Callable[..., Expansion]
Refusal = Callable[..., SweepError]


def arms(expansion: Expansion, job: int = 0) -> list[str]:
    """The arms of one job in words."""
    return [str(arm) for arm in expansion.jobs[job].arms]


@pytest.fixture
def methods() -> dict[str, Method]:
    return METHODS


@pytest.fixture
def expand() -> Expand:
    """Expands the text of a sweep; `schema` and `name` may be left out."""

    def run(text: str, **options: Any) -> Expansion:
        written = text if text.startswith("schema") else HEAD + text
        return expand_file(
            "trial.yaml", methods=METHODS, networks=NETWORKS, auto="cpu", text=written, **options
        )

    return run


@pytest.fixture
def refusal(expand: Expand) -> Refusal:
    """The error that a wrong sweep ends with."""

    def run(text: str, **options: Any) -> SweepError:
        with pytest.raises(SweepError) as caught:
            expand(text, **options)
        return caught.value

    return run
