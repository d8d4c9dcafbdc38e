"""How the small models are trained, and the hash of all that their weights come from. Imports no
torch.
"""

from collections.abc import Mapping

from pydantic import Field

from sweeps.geometry.llm_geometry import CONFIGS
from sweeps.geometry.vit_catalogue import networks
from sweeps.model.condition import Condition
from sweeps.model.identity import FrozenModel, digest
from workers.data.images import DIGITS_SPLIT
from workers.data.text import DOCS, text_hash

TRAINED = "trained"
"""The `Condition.weights` that request a model of `RECIPES` or `LANGUAGE_RECIPES`."""


class _AnyRecipe(FrozenModel):
    model: str
    version: int = 1
    """Raised when training changes in a way that the other fields do not show."""
    batch_size: int = Field(default=2, gt=0)
    learning_rate: float = Field(default=2e-3, gt=0)
    """The peak of one cycle."""
    seed: int = 0


class Recipe(_AnyRecipe):
    """How a vision transformer is trained on the digits that are not held out."""

    epochs: int = Field(gt=0)
    weight_decay: float = Field(default=0.05, ge=0)
    label_smoothing: float = Field(default=0.1, ge=0, lt=1)
    augmentation: float = Field(default=1.0, ge=0)
    """1: images are turned by up to 10 degrees, shifted by up to 7.5 % and scaled by up to 10 %,
    each to both sides."""
    images: int | None = Field(default=None, gt=0)
    """Train on the first so many images only."""
    begins_with: str | None = None
    """The model whose trained weights are the initial ones, its patches and positions resampled."""
    accuracy: float = Field(ge=0, le=1)
    """Share of the held-out images that must be classified right; weights that are worse are
    discarded."""

    @property
    def hash(self) -> str:
        """Of all that the weights come from: the recipe, the network's geometry, and which digits
        are held out.
        """
        before = None if self.begins_with is None else recipe_for(self.begins_with).hash
        return digest(
            {
                "recipe": self,
                "network": networks()[self.model],
                "split": DIGITS_SPLIT,
                "before": before,
            }
        )


class LanguageRecipe(_AnyRecipe):
    """How a language model is trained on a text, by steps and not by the clock, so that a slow
    machine gets the same weights.
    """

    data: str = DOCS
    steps: int = Field(gt=0)
    tokens: int = Field(default=256, gt=1)
    """Of each sequence."""
    weight_decay: float = Field(default=0.1, ge=0)
    perplexity: float = Field(gt=1)
    """On held-out text; weights that are worse are discarded."""

    @property
    def hash(self) -> str:
        """Of all that the weights come from: the recipe, the network, and the text."""
        return digest(
            {"recipe": self, "config": dict(CONFIGS[self.model]), "text": text_hash(self.data)}
        )


RECIPES: Mapping[str, Recipe] = {
    "digits_vit_64": Recipe(
        model="digits_vit_64", epochs=18, batch_size=32, learning_rate=2e-3, accuracy=0.97
    ),
    "digits_vit_256": Recipe(
        model="digits_vit_256",
        begins_with="digits_vit_64",
        epochs=4,
        batch_size=32,
        learning_rate=1e-3,
        accuracy=0.97,
    ),
}
"""Of vision transformers, by model."""
LANGUAGE_RECIPES: Mapping[str, LanguageRecipe] = {
    "tiny_lm": LanguageRecipe(model="tiny_lm", steps=2600, perplexity=80),
    "tiny_lm_smoke": LanguageRecipe(
        model="tiny_lm_smoke", steps=360, learning_rate=3e-3, perplexity=400
    ),
}
"""By model; a test checks that they are those of
`sweeps.geometry.llm_geometry.TRAINED_LANGUAGE`."""


def recipe_for(model: str) -> Recipe | LanguageRecipe:
    """The recipe of a model. Raises `ValueError` for a model without one."""
    recipes: Mapping[str, Recipe | LanguageRecipe] = {**RECIPES, **LANGUAGE_RECIPES}
    if model not in recipes:
        raise ValueError(
            f"weights `trained`: there is no recipe for {model}; there are recipes for"
            f" {', '.join(recipes)}"
        )
    return recipes[model]


def recipe_hash(condition: Condition) -> dict[str, str]:
    """The hash of the recipe of `condition.weights`, for `Job.content_hashes`; empty unless they
    are trained on demand.

    Raises `ValueError` for a model without a recipe.
    """
    return {"recipe": recipe_for(condition.model).hash} if condition.weights == TRAINED else {}
