"""Models whose tokens cannot be removed: they run dense, at their own size, with every runtime, and
methods are refused with the true reason.
"""

from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from sweeps.geometry.vit_catalogue import networks
from sweeps.model.condition import Condition, Overrides
from sweeps.model.job import DENSE, Arm, Job, Pair, Protocol, Step
from tests.catalogues import meta, module_of
from tests.workers.scripted_arm import scripted_arm as method_files
from tests.workers.tiny_vits import calm
from tests.workers.vision_jobs import compared, image_folder, metrics
from workers import methods
from workers.arms.vision import build_vision
from workers.errors import Unsupported
from workers.models.vision import load_vision
from workers.run import run

calm = pytest.fixture(autouse=True)(calm)
scripted_arm = pytest.fixture(method_files)
TOO_LARGE = "eva02_enormous_patch14_clip_224"
"""17 GB of weights."""
LONG_MACS = 10**11
"""An image of so many takes seconds, and an accuracy job minutes."""
QUICK = ("levit", "swin_transformer")
"""Modules whose smallest model the default suite runs; .ci/run runs those of all."""
WINDOWED = "test_maxvit"
"""A small one, of 160 x 160 pixels."""
SWIN = "swin_tiny_patch4_window7_224"


def smallest() -> dict[str, str]:
    """The model with the fewest MACs of each module that has models which run dense alone."""
    found: dict[str, str] = {}
    for name, known in sorted(networks().items(), key=lambda item: -item[1].fixed_macs):
        if known.refusal is not None and name != TOO_LARGE:
            found[module_of(name)] = name
    return found


def check_runs(name: str) -> None:
    """The logits of two images, with fused attention, are finite and independent: the first are those
    of one image alone, with plain attention, whose MACs are the counted ones.
    """
    network = networks()[name]
    condition = Condition(model=name, image_size=network.image_size, attention="eager")
    loaded = load_vision(condition, torch.device("cpu"))
    loaded.model.requires_grad_(requires_grad=False)
    torch.manual_seed(0)
    for parameter in loaded.model.parameters():  # some heads are all zeros at first
        parameter.add_(torch.randn(parameter.shape), alpha=0.01)
    model = build_vision(loaded, condition, DENSE)
    x = torch.randn(2, network.channels, network.image_size, network.image_size)
    with torch.inference_mode(mode=False), torch.no_grad():
        one = x[:1].clone()
        with FlopCounterMode(display=False) as counter:
            alone = model(one)
    assert network.fixed_macs == network.macs(network.image_size, ())
    assert network.refusal is not None
    if "recurrent" not in network.refusal:  # whose products on a CPU the counter does not see
        assert counter.get_total_flops() // 2 == network.fixed_macs
    fused = build_vision(loaded, condition.model_copy(update={"attention": "sdpa"}), DENSE)
    together = fused(x)
    assert together.isfinite().all()
    assert not torch.equal(together[0], together[1])
    tolerance = 1e-3 * float(together.abs().max())
    torch.testing.assert_close(together[:1], alone, rtol=0, atol=tolerance)


def check_accuracy(name: str, root: Path) -> None:
    """An accuracy job evaluates each image, preprocessed to the input that the model takes; of an
    encoder without a head it is refused.
    """
    network = networks()[name]
    condition = Condition(
        model=name, image_size=network.image_size, data=image_folder(root / "images", 3)
    )
    outcome = run(
        compared("accuracy", condition, DENSE, Arm(overrides=Overrides(dtype="bfloat16")))
    )
    if meta(name).num_classes == 0:
        (failure,) = outcome.failures
        assert failure.reason == "unsupported"
        assert failure.message.endswith("it gives features, and predicts no class")
        return
    assert outcome.failures == ()
    assert outcome.predictions is not None
    assert outcome.predictions.images == 3
    assert [arm.gmacs for arm in outcome.arms] == [network.fixed_macs / 1e9] * 2
    assert 0 <= metrics(outcome.arms[1])["kl"] < 10


@pytest.mark.parametrize("module", QUICK)
def test_smallest_of_a_family_runs(module: str, tmp_path: Path) -> None:
    """Its logits, and an accuracy job."""
    check_runs(smallest()[module])
    check_accuracy(smallest()[module], tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("module", sorted({*smallest()} - {*QUICK}))
def test_smallest_of_every_family_runs(module: str, tmp_path: Path) -> None:
    """As in the default suite, for the other modules of timm; no accuracy job of models of which
    one image takes a minute.
    """
    name = smallest()[module]
    check_runs(name)
    if networks()[name].fixed_macs < LONG_MACS:
        check_accuracy(name, tmp_path)


def test_a_batch_that_does_not_fit_is_halved(scripted_arm: Any, tmp_path: Path) -> None:
    """As for plain models, without the features of blocks, which no one has here."""
    scarce = scripted_arm("scarce", "if len(output) > 1: raise torch.OutOfMemoryError")
    condition = Condition(model=WINDOWED, image_size=160, data=image_folder(tmp_path / "images"))
    outcome = run(compared("accuracy", condition, DENSE, scarce))
    assert outcome.failures == ()
    assert metrics(outcome.arms[1])["kl"] == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("name", methods.of_modality("vision"))
def test_every_method_that_removes_tokens_is_refused(name: str) -> None:
    """Planning gives the true reason, without torch, whatever the parameters."""
    method = methods.of_modality("vision")[name]
    for params in chain(method.EXAMPLES, (method.NEUTRAL,)):
        arm = Arm(stack=(Step(method=name, params=params.model_dump(mode="json")),))
        reason = methods.stack_refusal(arm, networks()[SWIN])
        if name in {"slowed", "linear_patches"}:
            assert reason is None
        else:
            assert reason == f"{name}: no token of {SWIN} can be removed: windowed attention"


@pytest.mark.slow
@pytest.mark.parametrize("runtime", ["openvino", "onnxruntime"])
@pytest.mark.parametrize("name", [SWIN, "hiera_tiny_224", "beit_base_patch16_224"])
def test_other_engines(name: str, runtime: str) -> None:
    """Exported models give eager's logits; the export itself compares them."""
    pytest.importorskip(runtime, reason="the extra `runtimes` is not installed")
    # the exporter to ONNX has attention over four dimensions alone, and Hiera has five
    condition = Condition(model=name, image_size=224, runtime=runtime, attention="eager")
    model = build_vision(load_vision(condition, torch.device("cpu")), condition, DENSE)
    assert model(torch.randn(1, 3, 224, 224)).isfinite().all()


def test_another_size_is_refused() -> None:
    """Its layers are made for one size, and no MACs are known at another."""
    with pytest.raises(Unsupported, match="runs at 224 alone"):
        load_vision(Condition(model=SWIN, image_size=256), torch.device("cpu"))


def test_a_job() -> None:
    """A dense job of a hierarchical model is timed and counted; an arm that would remove tokens is
    refused with the reason, and a control that removes none runs.
    """
    tome = Arm(stack=(Step(method="tome", params={"r": 2}),))
    slowed = Arm(stack=(Step(method="slowed", params={"fraction": 0.5}),))
    job = Job(
        condition=Condition(model=WINDOWED, image_size=160),
        arms=(DENSE, tome, slowed),
        pairs=(Pair(0, 1), Pair(0, 2)),
        protocol=Protocol(pairs_min=2, pairs_max=2, budget_s=0.01),
    )
    outcome = run(job, pass_seconds=0.01)
    (failure,) = outcome.failures
    assert "windowed attention" in failure.message
    assert [each.arm for each in outcome.arms] == [0, 2]
    dense = outcome.arms[0]
    assert dense.gmacs == networks()[WINDOWED].fixed_macs / 1e9
    assert (dense.flags, dense.tokens, dense.trace) == ((), 6400, ())
