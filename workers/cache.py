"""Artifacts: what jobs need and nobody publishes, made on demand and kept by the hash of its recipe. Imports no torch."""

import contextlib
import fcntl
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from pydantic import Field

from sweeps.geometry.llm_geometry import TRAINED_LANGUAGE
from sweeps.geometry.vit_catalogue import networks
from sweeps.identity import FrozenModel, digest
from sweeps.job import Condition
from workers.data.digits import SPLIT

VARIABLE = "BREAKEVEN_CACHE"
TRAINED = "trained"
"""The `Condition.weights` that ask for a model of `RECIPES`."""


class Recipe(FrozenModel):
    """How a model is trained on the digits that are not held out."""

    model: str
    version: int = 1
    """Raised when training changes in a way that the other fields do not say."""
    epochs: int = Field(gt=0)
    batch_size: int = Field(gt=0)
    learning_rate: float = Field(gt=0)
    """The highest of one cycle."""
    weight_decay: float = Field(default=0.05, ge=0)
    label_smoothing: float = Field(default=0.1, ge=0, lt=1)
    augmentation: float = Field(default=1.0, ge=0)
    """1: images are turned by up to 10 degrees, shifted by up to 7.5 % and scaled by up to 10 %, each to both sides."""
    images: int | None = Field(default=None, gt=0)
    """Train on the first so many images only."""
    begins_with: str | None = None
    """The model whose trained weights are the first ones, its patches and positions resampled."""
    seed: int = 0
    accuracy: float = Field(ge=0, le=1)
    """Share of the held-out images that must be classified right; weights that are worse are not kept."""

    @property
    def hash(self) -> str:
        """Of all that the weights come from: the recipe, the network's geometry, and which digits are held out."""
        before = None if self.begins_with is None else _recipe(self.begins_with).hash
        return digest({"recipe": self, "network": networks()[self.model], "split": SPLIT, "before": before})


RECIPES: Mapping[str, Recipe] = {
    "digits_vit_64": Recipe(model="digits_vit_64", epochs=18, batch_size=32, learning_rate=2e-3, accuracy=0.97),
    "digits_vit_256": Recipe(
        model="digits_vit_256", begins_with="digits_vit_64", epochs=4, batch_size=32, learning_rate=1e-3, accuracy=0.97
    ),
}
"""By model."""


def recipe(condition: Condition) -> dict[str, str]:
    """The hash of what `condition.weights` are made by, for `Job.contents`; empty unless they are trained on demand.

    Raises `ValueError` for a model without a recipe.
    """
    if condition.weights != TRAINED:
        return {}
    if condition.model in TRAINED_LANGUAGE:
        from workers.training import llm_recipes

        return {"recipe": llm_recipes.recipe(condition.model).hash}
    return {"recipe": _recipe(condition.model).hash}


def trained(model: str) -> Path:
    """The file (safetensors) with the model's weights, trained now if they are not in the cache yet.

    Raises `ValueError` for a model without a recipe, and what training raises.
    """
    return obtain(_recipe(model))


def obtain(asked: Recipe) -> Path:
    """The file with the weights of a recipe; of several processes that want it one trains and the others wait."""

    def make(file: Path) -> None:
        from workers.training.train_vit import train

        train(asked, file)

    return kept(f"{asked.model}-{asked.hash}.safetensors", make)


def kept(name: str, make: Callable[[Path], None]) -> Path:
    """The file or folder `name` of the cache, made by `make` if it is not there: whole or not at all, once for all processes."""
    file = cache() / name
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        with _locked(file.with_name(f"{name}.lock")):
            if not file.exists():
                for left in file.parent.glob(f".*-{name}"):  # of a process that was killed, for the lock is ours
                    _remove(left)
                part = file.with_name(f".{os.getpid()}-{name}")
                try:
                    make(part)
                    part.replace(file)
                finally:
                    _remove(part)
    return file


def _remove(part: Path) -> None:
    """Remove a file or a folder if it is there."""
    if part.is_dir():
        shutil.rmtree(part)
    part.unlink(missing_ok=True)


def cache() -> Path:
    """The folder of artifacts: $BREAKEVEN_CACHE, or `~/.cache/breakeven`."""
    return Path(os.environ.get(VARIABLE) or Path.home() / ".cache" / "breakeven")


def _recipe(model: str) -> Recipe:
    if model not in RECIPES:
        known = ", ".join((*RECIPES, *TRAINED_LANGUAGE))
        raise ValueError(f"weights `trained`: there is no recipe for {model}; there are recipes for {known}")
    return RECIPES[model]


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(file, fcntl.LOCK_UN)
