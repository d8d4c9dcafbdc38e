"""Language models trained on demand: recipes, what training writes, and that it learns."""

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from sweeps.geometry.llm_geometry import CONFIGS
from sweeps.model.condition import Condition
from workers.models.language import load_language
from workers.training import obtain, recipes
from workers.training.optimisation import TrainingTargetMissed
from workers.training.recipes import LANGUAGE_RECIPES, LanguageRecipe

BRIEF = LanguageRecipe(
    model="tiny_lm",
    data="topics",
    steps=30,
    batch_size=1,
    tokens=64,
    learning_rate=3e-3,
    perplexity=1e9,
)


def facts(folder: Path) -> dict[str, Any]:
    """What training wrote about itself."""
    found: dict[str, Any] = json.loads((folder / "facts.json").read_text(encoding="utf-8"))
    return found


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cache of this test's own, one thread, and little text to evaluate."""
    monkeypatch.setenv("BREAKEVEN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("workers.training.train_llm.EVALUATED", 640)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield tmp_path / "cache"
    torch.set_num_threads(threads)


def test_training_learns_and_writes_its_facts(monkeypatch: pytest.MonkeyPatch):
    """The loss falls, facts record it, and the cache's model loads like any folder."""
    monkeypatch.setattr(recipes, "LANGUAGE_RECIPES", {"tiny_lm": BRIEF})
    with torch.inference_mode():  # as jobs run
        lm = load_language(Condition(model="tiny_lm", weights="trained"))
    folder = obtain(BRIEF)
    before = (folder / "facts.json").stat().st_mtime_ns
    found = facts(folder)
    assert {file.name for file in folder.iterdir()} >= {
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "facts.json",
    }
    assert found["recipe"] == BRIEF.model_dump()
    assert found["losses"][-1] < found["losses"][0] - 0.3
    assert 1 < found["perplexity"] < CONFIGS["tiny_lm"]["vocab_size"]
    assert 0 < found["bits_per_byte"] < 8
    assert found["seconds"] > 0
    assert lm.tokenizer.size == 2048
    assert lm.weights_hash == BRIEF.hash
    assert lm.network == load_language(Condition(model=str(folder))).network.model_copy(
        update={"name": "tiny_lm"}
    )
    assert obtain(BRIEF) == folder
    assert (folder / "facts.json").stat().st_mtime_ns == before


@pytest.mark.slow
def test_training_on_demand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The shipped trial recipe reaches its perplexity; seconds are printed, not tested."""
    monkeypatch.undo()
    monkeypatch.setenv("BREAKEVEN_CACHE", str(tmp_path / "cache"))
    started = time.monotonic()
    found = facts(obtain(LANGUAGE_RECIPES["tiny_lm_smoke"]))
    seconds = time.monotonic() - started
    print(
        f"\ntiny_lm_smoke: perplexity {found['perplexity']:.0f} in {seconds:.0f} s, load"
        f" {os.getloadavg()[0]:.1f}"
    )
    assert json.dumps(found)
    assert found["perplexity"] <= LANGUAGE_RECIPES["tiny_lm_smoke"].perplexity


def test_what_is_not_good_enough_is_not_kept(cache: Path):
    """Training that ends above its recipe's perplexity is an error with that reason, and leaves
    nothing.
    """
    with pytest.raises(
        TrainingTargetMissed,
        match=r"tiny_lm has perplexity \d+\.\d on held-out text; at most 2 is required",
    ):
        obtain(BRIEF.model_copy(update={"steps": 1, "perplexity": 2.0}))
    assert not [file for file in cache.iterdir() if file.is_dir()]
