"""Exported runtimes: logits equal to eager's, what cannot run is refused with its reason, and jobs
whose arms run in several engines.
"""

import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, cast

import pytest
import torch
from torch import nn

from sweeps.model.condition import Condition, Overrides
from sweeps.model.job import DENSE, Arm, Step
from tests.workers.tiny_vits import SIZE, calm, images, small, small_network
from tests.workers.vision_jobs import PASS_S, job, metrics
from workers import methods
from workers.arms.vision import build_vision
from workers.errors import Unsupported
from workers.kinds import latency
from workers.models.exported import TOLERANCE, Exported
from workers.models.vision import VisionModel
from workers.run import run

for library in ("openvino", "nncf", "onnxruntime", "onnxscript"):
    pytest.importorskip(library, reason="the extra `runtimes` is not installed")

calm = pytest.fixture(autouse=True)(calm)
RUNTIMES = ("openvino", "onnxruntime")
FOUND = methods.of_modality("vision")
CASES = [
    pytest.param(name, params, id=f"{name}-{index}")
    for name, method in FOUND.items()
    for index, params in enumerate(method.EXAMPLES)
    if method.refuses(params, small_network("plain")) is None
    and params.eager_only(Condition(model="", runtime="openvino")) is None
]
QUICK = {"topk-0": RUNTIMES, "tome-0": ("openvino",), "hquota-0": ("onnxruntime",)}
TOME = Step(method="tome", params={"r": 1})


class SmallAttention(nn.Module):
    """Attention with as many tokens as heads, where OpenVINO's fused attention is wrong."""

    def __init__(self, heads: int = 3, width: int = 192) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, tokens, _ = x.shape
        q, k, v = (
            self.qkv(x).view(batch, tokens, 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        )
        found = nn.functional.scaled_dot_product_attention(q, k, v)
        return found.transpose(1, 2).reshape(batch, -1)


@torch.library.custom_op("breakeven_test::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    """An operator that no other engine has."""
    return 2 * x


@twice.register_fake
def _(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x)


class Twice(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return cast(torch.Tensor, twice(x))


def built(name: str, params: Any, runtime: str, depth: int) -> nn.Module:
    """A small model with the method, made for an engine."""
    condition = Condition(model="small", image_size=SIZE, runtime=runtime)
    arm = Arm(stack=(Step(method=name, params=params.model_dump(mode="json")),))
    given = VisionModel(small("plain", depth=depth), small_network("plain", depth))
    return build_vision(given, condition, arm)


def check_logits(name: str, params: Any, runtime: str, depth: int = 4) -> None:
    exported, eager = (built(name, params, each, depth)(images()) for each in (runtime, "eager"))
    torch.testing.assert_close(exported, eager, rtol=1e-4, atol=1e-4 * float(eager.abs().max()))


def on_engines(engines: Callable[[int, str], Sequence[str]]) -> list[Any]:
    """The cases, each on the engines that its place and name are given."""
    return [
        pytest.param(*case.values, runtime, id=f"{case.id}-{runtime}")
        for place, case in enumerate(CASES)
        for runtime in engines(place, str(case.id))
    ]


def slow_engines(place: int, case: str) -> Sequence[str]:
    """Both for the first example of a method, one after the other for further ones."""
    if case in QUICK:
        return ()
    return RUNTIMES if case.endswith("-0") else RUNTIMES[place % 2 :][:1]


@pytest.mark.parametrize(
    ("name", "params", "runtime"), on_engines(lambda _, case: QUICK.get(case, ()))
)
def test_logits_are_those_of_eager(name: str, params: Any, runtime: str) -> None:
    check_logits(name, params, runtime, depth=2)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "params", "runtime"), on_engines(slow_engines))
def test_logits_of_other_methods_are_those_of_eager(name: str, params: Any, runtime: str) -> None:
    check_logits(name, params, runtime)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "params"), [case for case in CASES if case.id in QUICK])
def test_logits_of_a_library_compiled_ahead_of_time(name: str, params: Any) -> None:
    check_logits(name, params, "aoti")


def test_the_fused_attention_of_openvino_is_found_wrong_and_goes_unfused() -> None:
    torch.manual_seed(0)
    with torch.inference_mode(mode=False):
        model, x = SmallAttention().eval(), torch.randn(1, 3, 192)
    with pytest.raises(Unsupported, match="other logits than eager"):
        Exported(model, "openvino")(x)
    unfused = Exported(model, "openvino", fused=False)
    torch.testing.assert_close(unfused(x), model(x), rtol=1e-4, atol=1e-5)
    assert 0 < unfused.difference < TOLERANCE
    assert unfused.conversion_s > 0


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_what_cannot_be_exported_is_named(runtime: str) -> None:
    with pytest.raises(Unsupported, match=rf"runtime {runtime} cannot run this model: .*twice"):
        Exported(Twice(), runtime)(torch.randn(3, 3))


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_missing_library_is_named(runtime: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, runtime, None)
    with pytest.raises(Unsupported, match=f"{runtime} is not installed: uv sync --extra runtimes"):
        Exported(nn.Identity(), runtime)(torch.randn(1, 3))


def test_arms_of_every_engine_run_in_one_job(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each arm runs once before every sample; those forwards are counted, and no time is theirs."""
    monkeypatch.setattr(latency, "BUDGET_FOR_PEAKS_S", 0.0)
    monkeypatch.setattr(latency, "PEAKS_OF", set())
    exported = [Arm(overrides=Overrides(runtime=runtime)) for runtime in RUNTIMES]
    # OpenVINO's oneDNN refuses both where it is limited to the instructions of another CPU
    dtypes = () if "ONEDNN_MAX_CPU_ISA" in os.environ else ("bfloat16", "int8")
    exported += [
        Arm(stack=(TOME,), overrides=Overrides(runtime="openvino", dtype=dtype)) for dtype in dtypes
    ]
    # test_vit resizes its embeddings of positions, which OpenVINO cannot
    requested = job([DENSE, *exported], model="test_vit3").model_copy(update={"warm": True})
    outcome = run(requested, pass_seconds=PASS_S)
    assert not outcome.failures
    assert all("consistency_check_failed" not in arm.flags for arm in outcome.arms)
    assert "seconds_to_compile" not in metrics(outcome.arms[0])
    for arm in outcome.arms[1:]:
        found = metrics(arm)
        assert found["seconds_to_compile"] > 0
        assert 0 < found["logit_difference"] < (TOLERANCE if arm.arm < 3 else 0.3)
    assert {peak.dtype for peak in outcome.peaks} == {"float32", "bfloat16"}
    assert {peak.kernel for peak in outcome.peaks} <= {"torch.mm", "oneDNN"}
