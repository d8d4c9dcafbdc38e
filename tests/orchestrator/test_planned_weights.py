"""Weights that a model cannot have are refused when a sweep is read, before a job waits for the
host.
"""

from pathlib import Path

import pytest
import timm
import torch
from safetensors.torch import save_file

from orchestrator.host.host_lock import host_lock
from tests.orchestrator.commands import in_process

SWEEP = """\
schema: 1
name: weights
defaults: {{threads: 1, image_size: 32, {weights}}}
axes: {{model: [{model}]}}
methods: [{{method: topk, keep_rate: 0.5, layers: {{list: [1]}}}}]
jobs: {{latency: {{pairs: {{min: 2, max: 2}}, budget: 1s}}}}
"""
WIDE, NARROW = "deit_tiny_patch16_224", "test_vit"


def weights(model: str) -> dict[str, torch.Tensor]:
    return dict(timm.create_model(model, img_size=32).state_dict())


def make(kind: str, folder: Path) -> Path:
    """A checkpoint that cannot be used, as it happens: a download cut short, a page of HTML,
    another model, another depth.
    """
    file = folder / ("own.pth" if kind.startswith("pickle") else "own.safetensors")
    if kind == "another model":
        save_file(weights(WIDE), file)
    elif kind == "deeper":
        own = weights(NARROW)
        save_file(
            own
            | {name.replace("blocks.0", "blocks.9"): value.clone() for name, value in own.items()},
            file,
        )
    elif kind == "pickle of another model":
        torch.save({"model": weights(WIDE)}, file)
    elif kind == "cut short":
        save_file(weights(NARROW), file)
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    else:
        file.write_text("<html>not found</html>")
    return file


@pytest.mark.parametrize(
    "kind",
    [
        "another model",
        "deeper",
        "cut short",
        "html",
        "pickle of another model",
    ],
)
def test_a_checkpoint_that_the_model_cannot_have(tmp_path: Path, kind: str) -> None:
    """`run` ends with exit code 2 and one line that names the file and its place; nothing is
    stored.
    """
    file = make(kind, tmp_path)
    text = SWEEP.format(model=NARROW, weights=f"checkpoint: {file.name}")
    (tmp_path / "sweep.yaml").write_text(text)
    done = in_process("run", "sweep.yaml", folder=tmp_path)
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1), done.stderr
    assert "sweep.yaml:3: defaults.checkpoint: " in done.stderr
    assert file.name in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == [file.name, "sweep.yaml"]


@pytest.mark.parametrize(("suffix", "outputs"), [("safetensors", 1000), ("pth", 5)])
def test_a_checkpoint_that_fits_is_planned(tmp_path: Path, suffix: str, outputs: int) -> None:
    """Weights of the model, made for another image size and with another head, are no reason to
    refuse it.
    """
    own = dict(timm.create_model(NARROW, img_size=64, num_classes=outputs).state_dict())
    file = tmp_path / f"own.{suffix}"
    torch.save({"state_dict": own}, file) if suffix == "pth" else save_file(own, file)
    (tmp_path / "sweep.yaml").write_text(
        SWEEP.format(model=NARROW, weights=f"checkpoint: {file.name}")
    )
    assert in_process("plan", "sweep.yaml", folder=tmp_path).returncode == 0


def test_no_published_weights_are_known_from_the_catalogue(tmp_path: Path) -> None:
    """`weights: pretrained` of a model without published weights is refused where it is written; of
    one with them it is not.
    """
    for model, code in (
        ("vit_base_patch16_gap_224", 2),
        ("deit_tiny_patch16_224", 0),
        ("vit_base_patch16_224.mae", 0),
    ):
        (tmp_path / "sweep.yaml").write_text(
            SWEEP.format(model=model, weights="weights: pretrained")
        )
        done = in_process("plan", "sweep.yaml", folder=tmp_path)
        assert done.returncode == code, done.stderr
        assert ("sweep.yaml:3: defaults.weights: " in done.stderr) == (code == 2)


def test_refused_while_another_run_holds_the_host(tmp_path: Path) -> None:
    """A broken checkpoint does not wait for the host that another job has."""
    file = make("cut short", tmp_path)
    (tmp_path / "sweep.yaml").write_text(
        SWEEP.format(model=NARROW, weights=f"checkpoint: {file.name}")
    )
    with host_lock("latency"):
        done = in_process("run", "sweep.yaml", folder=tmp_path)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
