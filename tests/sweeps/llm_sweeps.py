"""Sweeps of language models, with a method that leaves out a share of the network."""

from typing import Any, Literal

import pytest
from pydantic import Field

from sweeps.language.expand import Expansion, expand_file
from sweeps.language.yaml_reader import SweepError
from sweeps.model.condition import Condition
from sweeps.model.method import AnyMethod, LanguageNetwork, Params
from tests.sweeps.conftest import METHODS, NETWORKS


class SkipParams(Params):
    sparsity: float = Field(default=0.5, ge=0, lt=1)
    data: str | None = None
    file: str | None = None


class Skip:
    """A method that leaves out a share of the network."""

    MODALITY: Literal["language"] = "language"
    PAPER = "none"
    VERSION = 1
    Params: type[Params] = SkipParams
    __name__ = "skip"

    def macs(self, params: Any, network: LanguageNetwork, prompt: int, decoded: int) -> int:
        return 0

    def skipped(self, params: Any, network: LanguageNetwork, tokens: int) -> int:
        return int(params.sparsity * network.layers * network.layer_macs * tokens)

    def refuses(self, params: Any, network: LanguageNetwork) -> str | None:
        return f"{network.name} has no gate" if not network.gated else None

    def apply(self, model: Any, params: Any) -> Any:
        return model


KNOWN: dict[str, AnyMethod] = {**METHODS, "skip": Skip()}
HEAD = "schema: 1\nname: trial\n"
TINY = "defaults: {model: tiny_lm, prompt_tokens: 64, new_tokens: 16}\n"
GENERATION = Condition(
    model="tiny_lm",
    prompt_tokens=64,
    new_tokens=16,
    kv_cache="dynamic",
    decoding="teacher_forcing",
    data="docs",
)
BOTH = "jobs: {generation: {}, quality: {}}\n"


def expand(text: str, **options: Any) -> Expansion:
    known: dict[str, Any] = {"methods": KNOWN, "networks": NETWORKS, "auto": "cpu", **options}
    return expand_file("trial.yaml", text=HEAD + text, **known)


def refused(text: str, **options: Any) -> SweepError:
    with pytest.raises(SweepError) as caught:
        expand(text, **options)
    return caught.value
