"""How the small language models are trained, and where what comes of it is kept. Imports no torch."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import Field

from sweeps.geometry.llm_geometry import CONFIGS, TRAINED_LANGUAGE
from sweeps.identity import FrozenModel, digest
from workers.cache import kept
from workers.data.text import DOCS, listing

TOKENIZER, FACTS = "tokenizer.json", "facts.json"


class LanguageRecipe(FrozenModel):
    """How a language model is trained on a text, by a number of steps and not by the clock: a slow machine gets the same weights.

    The seconds depend on the machine and are among the facts.
    """

    model: str
    version: int = 1
    """Raised when training changes in a way that the other fields do not say."""
    data: str = DOCS
    steps: int = Field(gt=0)
    batch_size: int = Field(default=2, gt=0)
    tokens: int = Field(default=256, gt=1)
    """Of each sequence."""
    learning_rate: float = Field(default=2e-3, gt=0)
    """The highest; a tenth of the steps lead up to it, and half a cosine down from it."""
    weight_decay: float = Field(default=0.1, ge=0)
    seed: int = 0
    perplexity: float = Field(gt=1)
    """On held-out text; weights that are worse are not kept."""

    @property
    def hash(self) -> str:
        """Of all that the weights come from: the recipe, the network, and the text."""
        return digest({"recipe": self, "config": dict(CONFIGS[self.model]), "text": listing(self.data)})


RECIPES: Mapping[str, LanguageRecipe] = {
    "tiny_lm": LanguageRecipe(model="tiny_lm", steps=2600, perplexity=80),
    "tiny_lm_smoke": LanguageRecipe(model="tiny_lm_smoke", steps=360, learning_rate=3e-3, perplexity=400),
}
"""By model; `tests/workers/test_train_llm.py` holds that they are those of `sweeps.geometry.llm_geometry.TRAINED_LANGUAGE`."""


def recipe(model: str) -> LanguageRecipe:
    """Raises `ValueError` for a model without a recipe."""
    if model not in RECIPES:
        raise ValueError(f"weights `trained`: there is no recipe for {model}; there are recipes for {', '.join(TRAINED_LANGUAGE)}")
    return RECIPES[model]


def obtain(asked: LanguageRecipe) -> Path:
    """The folder with config.json, model.safetensors, tokenizer.json and facts.json, trained now if it is not in the cache yet.

    Of several processes that want it one trains and the others wait. Raises what training raises.
    """

    def make(folder: Path) -> None:
        from workers.training.train_llm import train

        folder.mkdir(exist_ok=True)
        train(asked, folder)

    return kept(f"{asked.model}-{asked.hash}", make)


def facts(folder: Path) -> dict[str, Any]:
    """What training wrote down: recipe, seconds, perplexity and bits per byte on held-out text, versions."""
    found: dict[str, Any] = json.loads((folder / FACTS).read_text(encoding="utf-8"))
    return found
