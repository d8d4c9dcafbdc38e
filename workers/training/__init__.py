"""Trained weights: made on demand by a recipe, and kept in the cache by its hash. Imports torch
only to train.
"""

from pathlib import Path

from workers.cache import cached
from workers.training.recipes import LanguageRecipe, Recipe, recipe_for


def trained(model: str) -> Path:
    """The file or folder with the model's weights (see `obtain`).

    Raises `ValueError` for a model without a recipe, and what training raises.
    """
    return obtain(recipe_for(model))


def obtain(recipe: Recipe | LanguageRecipe) -> Path:
    """The weights of a recipe, trained now if they are not in the cache yet.

    A vision transformer is one file (safetensors), a language model a folder with config.json,
    model.safetensors, tokenizer.json and facts.json. Of several processes that need it one trains
    and the others wait. Raises what training raises.
    """

    def make(place: Path) -> None:
        if isinstance(recipe, Recipe):
            from workers.training.train_vit import train_vit

            begins_with = recipe.begins_with
            train_vit(recipe, place, None if begins_with is None else trained(begins_with))
        else:
            from workers.training.train_llm import train_llm

            place.mkdir(exist_ok=True)
            train_llm(recipe, place)

    suffix = ".safetensors" if isinstance(recipe, Recipe) else ""
    return cached(f"{recipe.model}-{recipe.hash}{suffix}", make)
