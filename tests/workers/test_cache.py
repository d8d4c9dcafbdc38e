"""Artifacts: recipes, the cache, one trainer for several processes, and what training gives."""

import inspect
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from safetensors import safe_open

from sweeps.model.condition import Condition
from workers.cache import cached
from workers.models.vision import load_vision
from workers.training import obtain, recipes, trained
from workers.training.optimisation import TrainingTargetMissed
from workers.training.recipes import RECIPES, Recipe, recipe_hash
from workers.training.train_vit import train_vit

TRAINED = Condition(model="digits_vit_64", image_size=32, weights="trained")
BRIEF = Recipe(
    model="digits_vit_64", epochs=1, batch_size=64, learning_rate=1e-3, images=64, accuracy=0.0
)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cache of this test's own, and one thread: more gain little on a model this small, and lose
    much on a busy machine.
    """
    monkeypatch.setenv("BREAKEVEN_CACHE", str(tmp_path / "cache"))
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield tmp_path / "cache"
    torch.set_num_threads(threads)


def slowly(file: Path) -> None:
    """Writes a file, and beside it that it was written once more."""
    with (file.parent / "log").open("a") as log:
        log.write(f"{os.getpid()}\n")
    time.sleep(0.3)
    file.write_text("made")


def environment() -> dict[str, str]:
    """Of processes that import what this one imports."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


WANTED = f"""
import os, time
from pathlib import Path
from workers.cache import cached
{inspect.getsource(slowly)}
print(cached("thing", slowly).read_text())
"""
"""A process that needs the file, and prints what it gets."""


def test_the_recipe_is_part_of_the_identity() -> None:
    """Trained weights have their recipe's hash, others none; no recipe is refused."""
    assert set(recipe_hash(TRAINED)) == {"recipe"}
    assert recipe_hash(TRAINED) != recipe_hash(
        TRAINED.model_copy(update={"model": "digits_vit_256"})
    )
    assert recipe_hash(TRAINED.model_copy(update={"weights": "random"})) == {}
    with pytest.raises(ValueError, match="no recipe for test_vit"):
        recipe_hash(TRAINED.model_copy(update={"model": "test_vit"}))


def test_made_once_for_all_processes(cache: Path) -> None:
    """Of four processes that want the same file at once, one makes it and all get it, whole."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", WANTED], env=environment(), stdout=subprocess.PIPE, text=True
        )
        for _ in range(4)
    ]
    assert [process.communicate()[0] for process in processes] == ["made\n"] * 4
    assert len((cache / "log").read_text().splitlines()) == 1
    assert {file.name for file in cache.iterdir()} == {"thing", "thing.lock", "log"}


def test_a_maker_that_is_killed_leaves_no_lock_and_nothing_half_made(cache: Path) -> None:
    """After kill -9 the lock is free, and the next one removes what was begun and makes anew."""
    half = (
        "import os, signal; from workers.cache import cached\ndef make(folder): folder.mkdir();"
        " (folder / 'half').write_text('x'); os.kill(os.getpid(), signal.SIGKILL)\ncached('thing',"
        " make)"
    )
    killed = subprocess.run([sys.executable, "-c", half], env=environment(), check=False)
    assert killed.returncode == -signal.SIGKILL
    assert len(list(cache.glob(".*-thing/half"))) == 1
    assert cached("thing", slowly).read_text() == "made"
    assert {file.name for file in cache.iterdir()} == {"thing", "thing.lock", "log"}


def test_weights_come_from_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """Training writes weights with their facts, and the next process gets the same file."""
    monkeypatch.setattr(recipes, "RECIPES", {"digits_vit_64": BRIEF})
    with torch.inference_mode():  # as jobs run
        model = load_vision(TRAINED, torch.device("cpu")).model
    file = trained("digits_vit_64")
    before = file.stat().st_mtime_ns
    with safe_open(file, "pt") as saved:
        facts = json.loads(saved.metadata()["breakeven"])
        assert set(saved.keys()) == set(model.state_dict())
        assert all(
            torch.equal(saved.get_tensor(name), value) for name, value in model.state_dict().items()
        )
    assert facts["recipe"] == BRIEF.model_dump()
    assert 0 < facts["accuracy"] < 1
    untrained = load_vision(
        TRAINED.model_copy(update={"weights": "random"}), torch.device("cpu")
    ).model
    assert not torch.equal(untrained.head.weight, model.head.weight)
    assert obtain(BRIEF).stat().st_mtime_ns == before


@pytest.mark.slow
def test_training_on_demand(tmp_path: Path) -> None:
    """The shipped recipe reaches 97 % of the held-out digits; seconds are printed, not tested."""
    file = tmp_path / "weights.safetensors"
    started = time.monotonic()
    train_vit(RECIPES["digits_vit_64"], file)
    seconds = time.monotonic() - started
    with safe_open(file, "pt") as saved:
        accuracy = json.loads(saved.metadata()["breakeven"])["accuracy"]
    print(f"\ndigits_vit_64: {accuracy:.1%} in {seconds:.0f} s, load {os.getloadavg()[0]:.1f}")
    assert accuracy >= 0.97


def test_what_is_not_good_enough_is_not_kept(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Training that ends below what its recipe requires is an error with that reason, and leaves no
    weights.
    """
    monkeypatch.setattr("workers.training.train_vit.fit_vit", lambda model, *_: model.eval())
    with pytest.raises(
        TrainingTargetMissed,
        match=r"digits_vit_64 has \d+\.\d% of the held-out digits right; 97.0% are required",
    ):
        trained("digits_vit_64")
    assert not list(cache.glob("*.safetensors"))
