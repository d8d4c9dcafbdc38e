"""Weights of a language model that do not fit its config.json are refused when a sweep is read,
before a job waits for the host.
"""

from collections.abc import Callable
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file

from sweeps.geometry.llm_geometry import geometry
from tests.orchestrator.commands import in_process
from tests.workers.saved_llm import changed, saved

SWEEP = """\
schema: 1
name: weights
defaults: {model: ./model, device: cpu, threads: 1, prompt_tokens: 16, new_tokens: 4}
methods: [{method: topk_activation, sparsity: 0.5}]
"""


def of_another_width(folder: Path) -> None:
    changed(folder / "config.json", intermediate_size=128)


def of_fewer_layers(folder: Path) -> None:
    file = folder / "model.safetensors"
    kept = {name: value for name, value in load_file(file).items() if "layers.1." not in name}
    save_file(kept, file, metadata={"format": "pt"})


@pytest.mark.parametrize("damage", [of_another_width, of_fewer_layers])
def test_weights_of_other_sizes(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    """`run` ends with exit code 2 and one line at the place that names the folder; nothing is
    stored.
    """
    damage(saved(tmp_path / "model"))
    (tmp_path / "sweep.yaml").write_text(SWEEP)
    done = in_process("run", "sweep.yaml", folder=tmp_path)
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1), done.stderr
    assert "sweep.yaml:3: defaults.model: ./model: " in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "sweep.yaml"]


@pytest.mark.parametrize("architecture", ["llama", "gpt2"])
def test_weights_that_fit(tmp_path: Path, architecture: str) -> None:
    """What transformers wrote in one save is no reason to refuse a model, whatever the names of its
    weights.
    """
    found = geometry(str(saved(tmp_path / "model", architecture)))
    assert found is not None
    assert found.described
