"""Decoded tokens one shape each: compiled or captured once, the same as eager ones, and refused
where shapes change.
"""

import copy
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any, cast

import pytest
import torch
from torch import Tensor

from sweeps.model.condition import Condition, Decoding, Overrides
from sweeps.model.job import Arm, Job, Protocol, Step
from tests.workers.saved_llm import saved, written
from tests.workers.tiny_llms import ARCHITECTURES, tiny_llm
from tests.workers.tiny_vits import calm
from tests.workers.vision_jobs import compared
from workers import methods
from workers.arms.generation_workload import CapturedSteps, CompiledSteps, Passage, Workload
from workers.arms.language import build_language, cut_texts
from workers.errors import Unsupported
from workers.models.language import LanguageModel
from workers.run import run

calm = pytest.fixture(autouse=True)(calm)
TEXT = (
    "The quick brown fox jumps over the lazy dog, twice; then it sleeps (as foxes do) until 7 in"
    " the morning. "
)
ALONE = (Passage(TEXT[:40], TEXT[40:48]),)
TOGETHER = (*ALONE, Passage(TEXT[5:30], TEXT[30:36]))
STATIC = Arm(overrides=Overrides(kv_cache="static"))
COMPILED = Arm(overrides=Overrides(kv_cache="static", runtime="compile"))


def agree(
    one: tuple[Tensor, tuple[str, ...]],
    other: tuple[Tensor, tuple[str, ...]],
    tolerance: float = 1e-4,
) -> None:
    """Raises unless logits are close and texts equal."""
    torch.testing.assert_close(one[0], other[0], rtol=tolerance, atol=tolerance)
    assert one[1] == other[1]


def logits_of(
    lm: LanguageModel, passages: tuple[Passage, ...], decoding: Decoding = "teacher_forcing"
) -> tuple[Tensor, tuple[str, ...]]:
    """What each token was chosen by, [tokens, B, V], and the texts, over a static cache."""
    seen: list[Tensor] = []
    done = Workload(passages, decoding, "static", 8).run(
        lm, check=lambda logits_BV: seen.append(logits_BV.clone())
    )
    return torch.stack(seen), done.texts


@pytest.mark.parametrize("architecture", ["qwen2", "gpt2", "mistral"])
def test_one_graph_gives_what_eager_steps_give(architecture: str) -> None:
    """Logits and texts are the same, and further runs compile nothing anew."""
    passages = TOGETHER if architecture in ("gpt2", "mistral") else ALONE
    decoding: Decoding = "greedy" if architecture in ("qwen2", "mistral") else "teacher_forcing"
    lm, graphs = tiny_llm(architecture), []

    def backend(graph: Any, _: object) -> Any:
        graphs.append(graph)
        return graph.forward

    with torch._dynamo.config.patch(error_on_recompile=True):
        compiled = replace(lm, steps=CompiledSteps(lm, backend=backend))
        for _ in range(3):
            agree(logits_of(compiled, passages, decoding), logits_of(lm, passages, decoding))
    assert len(graphs) == 1


@pytest.mark.parametrize("kv_cache", ["dynamic", "virtual", None])
def test_a_cache_that_grows_has_no_one_shape(tmp_path: Path, kv_cache: Any) -> None:
    """Compiling over any cache but the static one is refused, with what to write."""
    condition = Condition(model=str(saved(tmp_path)), kv_cache=kv_cache, runtime="compile")
    why = (
        f"with kv_cache {kv_cache or 'dynamic'} every token makes the cache longer; write kv_cache:"
        " static"
    )
    with pytest.raises(Unsupported, match=why):
        build_language(condition, Arm(), {})


def test_what_cannot_be_compiled_or_captured_is_refused(tmp_path: Path) -> None:
    """Row skipping, CUDA graphs without CUDA and sliding windows each give their reason."""
    condition = Condition(
        model=str(saved(tmp_path / "plain")), kv_cache="static", runtime="compile"
    )
    for method in ("larosa", "teal", "topk_activation", "wina"):
        step = Step(
            method=method,
            params={"sparsity": 0.5},
            version=methods.of_modality("language")[method].VERSION,
        )
        with pytest.raises(
            Unsupported, match=f"{method} cannot run with runtime compile: the row-skipping kernels"
        ):
            build_language(condition, Arm(stack=(step,)), {})
    with pytest.raises(Unsupported, match="needs a CUDA device, and this arm runs on cpu"):
        build_language(condition, Arm(overrides=Overrides(runtime="cudagraph")), {})
    with pytest.raises(Unsupported, match="layer 0 keeps its tokens in a StaticSlidingWindowLayer"):
        CompiledSteps(tiny_llm("mistral", sliding_window=16))


def job(folder: Path, *arms: Arm) -> Job:
    """A small job, each arm compared with the first."""
    condition = Condition(
        model=str(saved(folder / "model", num_hidden_layers=1)),
        data=written(folder / "text"),
        threads=1,
        prompt_tokens=24,
        new_tokens=6,
    )
    protocol = Protocol(pairs_min=6, pairs_max=6, timeout_s=300, compile_timeout_s=300)
    return compared("generation", condition, *arms, protocol=protocol)


def test_compiling_is_in_the_first_call_and_in_no_sample(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A compiled arm is measured like any other; an arm that cannot be compiled fails alone."""
    compile_ = torch.compile
    monkeypatch.setattr(
        torch, "compile", lambda *args, **options: compile_(*args, backend="eager", **options)
    )
    refused = Arm(overrides=Overrides(kv_cache="dynamic", runtime="compile"))
    outcome = run(job(tmp_path, STATIC, COMPILED, refused), pass_seconds=0.05, isolated=False)
    assert [(failure.arm, failure.reason) for failure in outcome.failures] == [(2, "unsupported")]
    assert outcome.samples is not None
    assert outcome.samples.arms == (0, 1, 0, 1)
    eager, compiled = outcome.arms
    assert not eager.flags, outcome.notes
    assert not compiled.flags, outcome.notes
    assert cast(float, compiled.first_call_s) > 5 * median(
        compiled for _, compiled, *_ in outcome.samples.seconds
    )
    assert compiled.tokens_final == eager.tokens_final == 29


@pytest.mark.slow
def test_the_code_generator_gives_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Torch's own code generator gives eager's logits; a fresh process finds and runs the code."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "code"))
    requested = job(tmp_path, COMPILED)
    outcome = run(requested, pass_seconds=0.05)
    assert not outcome.failures
    assert not outcome.arms[0].flags, outcome.notes
    assert {"load_s", "peak_rss_isolated"} <= {metric.name for metric in outcome.arms[0].metrics}
    eager, compiled = (build_language(requested.condition, arm, {}) for arm in (STATIC, COMPILED))
    agree(logits_of(compiled, cut_texts(requested)), logits_of(eager, cut_texts(requested)))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU: CUDA graphs")
@pytest.mark.parametrize("passages", [ALONE, TOGETHER])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_captured_step_gives_what_eager_steps_give(
    architecture: str, passages: tuple[Passage, ...]
) -> None:
    """Logits and texts are the same in the run that captures and in those that replay."""
    lm = replace(
        tiny_llm(architecture), model=copy.deepcopy(tiny_llm(architecture).model).to("cuda")
    )
    captured = replace(lm, steps=CapturedSteps(lm))
    for _ in range(3):
        agree(logits_of(captured, passages), logits_of(lm, passages), 1e-3)
