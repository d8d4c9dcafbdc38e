"""What calibration finds: rotations that gather what inputs carry, thresholds that cut where
promised, and what is kept.
"""

import dataclasses

import pytest
import torch

from tests.workers.tiny_llms import FoldedBytes, tiny_llm
from workers.activation_sparsity import calibrate
from workers.activation_sparsity.rotation_fusion import fuse
from workers.errors import Unsupported
from workers.methods.language import teal
from workers.models import architectures
from workers.models.architectures import module_names

TOKENS = 2048


@pytest.fixture(autouse=True)
def _cache(tmp_path, monkeypatch):
    monkeypatch.setenv("BREAKEVEN_CACHE", str(tmp_path))


def speaker_of(architecture):
    return dataclasses.replace(tiny_llm(architecture), tokenizer=FoldedBytes())


@pytest.mark.parametrize("architecture", ["llama", "phi"])
def test_rotations_gather_what_inputs_carry(architecture):
    """Orthogonal, sorted, uncorrelated: half of the directions carry more than native ones can."""
    lm = speaker_of(architecture)
    turns = calibrate.rotations(lm, "topics", TOKENS)
    assert len(turns) == lm.network.layers
    _, parts = calibrate.calibration_windows(lm, "topics", TOKENS)
    read = {}
    folded = fuse(lm.model, lm.network, None)
    for index, layer in enumerate(architectures.layers(folded, module_names(lm.model))):
        place = layer.get_submodule("self_attn.q_proj")
        place.register_forward_pre_hook(
            lambda _, given, index=index: read.setdefault(index, []).append(given[0][0])
        )
    with torch.no_grad():
        for part_1T in parts:
            folded(part_1T)
    half = lm.network.width // 2
    for index, turn_DD in enumerate(turns):
        assert torch.allclose(turn_DD @ turn_DD.T, torch.eye(len(turn_DD)), atol=1e-5)
        x_ND = torch.cat(read[index])
        native, rotated = (y_ND.square().mean(0) for y_ND in (x_ND, x_ND @ turn_DD))
        assert rotated[:half].sum() > native.sort(descending=True).values[:half].sum()


def test_what_was_calibrated_is_found_again(tmp_path):
    """Same model and text are read once; another text, number or origin has its own file."""
    lm = speaker_of("gpt2")
    first = calibrate.rotations(lm, "topics", TOKENS)
    (file,) = tmp_path.glob("rotations-*.safetensors")
    made = file.stat().st_mtime_ns
    again = calibrate.rotations(lm, "topics", TOKENS)
    assert len(first) > 0
    assert all(torch.equal(one, other) for one, other in zip(first, again, strict=True))
    assert file.stat().st_mtime_ns == made
    calibrate.rotations(lm, "topics", TOKENS // 2)
    calibrate.rotations(dataclasses.replace(lm, weights_hash="another"), "topics", TOKENS)
    (tmp_path / "own.txt").write_text(
        "\n\n".join(f"Sentence number {number} of a text of one's own." for number in range(100))
    )
    calibrate.rotations(lm, f"text:{tmp_path / 'own.txt'}", TOKENS)
    assert len(list(tmp_path.glob("rotations-*.safetensors"))) == 4


def test_quantiles_of_a_histogram():
    """A threshold found in bins leaves out the requested share, within what a bin is wide."""
    x = torch.randn(200_000, generator=torch.Generator().manual_seed(0)) * 3
    counts = torch.bincount(
        x.abs().view(torch.int32) >> calibrate.BIN_SHIFT, minlength=calibrate.BINS
    )
    for share in (0.01, 0.25, 0.4, 0.5, 0.6, 0.9, 0.999):
        threshold = calibrate._quantile(counts, share)
        assert float((x.abs() < threshold).float().mean()) == pytest.approx(share, abs=2e-3)
    assert calibrate._quantile(counts, 0) == 0


def test_text_that_is_too_short_is_an_error(tmp_path):
    """The message names how many tokens there are, how many are requested, and what to do."""
    (tmp_path / "short.txt").write_text("\n\n".join(f"Paragraph {number}." for number in range(12)))
    with pytest.raises(
        Unsupported,
        match=(
            r"calibration: the text text:\S+ has \d+ tokens and 1024 are requested; give a"
            r" longer one"
        ),
    ):
        teal.apply(
            speaker_of("llama"),
            teal.Params(
                sparsity=0.5, data=f"text:{tmp_path / 'short.txt'}", calibration_tokens=1024
            ),
        )


def test_random_rotations_are_repeatable():
    """The same seed gives the same orthogonal matrices, and layers differ."""
    network = tiny_llm("llama").network
    first, second = calibrate.random_rotations(network), calibrate.random_rotations(network)
    assert len(first) > 0
    assert all(torch.equal(one, other) for one, other in zip(first, second, strict=True))
    assert not torch.allclose(first[0], first[1])
