"""llama.cpp decodes with the same weights as transformers."""

from pathlib import Path

import pytest
import torch

from sweeps.model.condition import Condition, Dtype, Overrides
from sweeps.model.job import Arm, Protocol, Step
from tests.workers.saved_llm import saved, written
from tests.workers.tiny_llms import POSITIONS, tiny_llm
from tests.workers.vision_jobs import compared
from workers import methods
from workers.arms.language import MAX_DIFFERENCE, build_language
from workers.errors import Unsupported
from workers.models.language import load_language
from workers.models.llama_cpp import LlamaCpp, write_gguf
from workers.run import run

pytest.importorskip("xllamacpp", reason="uv sync --extra runtimes")
PROMPT = [5, 17, 80, 3, 44, 21, 9, 66, 30, 2, 71, 8]


def differences(dtype: Dtype, **more: object) -> float:
    """The largest of log probabilities after a prompt, from the float32 model's."""
    lm = tiny_llm("llama", **more)
    found = LlamaCpp(lm.model, dtype, POSITIONS).likeliest(PROMPT, 20)
    with torch.inference_mode():
        wanted_V = lm.model(torch.tensor([PROMPT])).logits[0, -1].log_softmax(-1)
    return max(abs(value - float(wanted_V[token])) for token, value in found.items())


@pytest.mark.parametrize("more", [{}, {"num_key_value_heads": 2}, {"tie_word_embeddings": True}])
def test_log_probabilities_are_those_of_transformers(more: dict[str, object]) -> None:
    """In float32 to its precision, with keys of fewer heads and with a tied head."""
    assert differences("float32", **more) < 1e-4


@pytest.mark.parametrize("dtype", ["bfloat16", "int8", "int4"])
def test_types(dtype: Dtype) -> None:
    """Within what another engine is let through with."""
    assert 1e-4 < differences(dtype) < MAX_DIFFERENCE[dtype]


@pytest.mark.parametrize(("dtype", "size"), [("bfloat16", 2), ("int8", 34 / 32), ("int4", 18 / 32)])
def test_bytes_of_a_weight(tmp_path: Path, dtype: Dtype, size: float) -> None:
    assert write_gguf(tiny_llm("llama").model, dtype, tmp_path / "a.gguf") == pytest.approx(size)


def test_it_decodes_the_likeliest_tokens() -> None:
    """As greedy decoding by transformers does, less the token that would end the text."""
    lm = tiny_llm("llama")
    tokens, stamps = LlamaCpp(lm.model, "float32", POSITIONS).decode(PROMPT, 12)
    assert len(stamps) == 12
    assert stamps == sorted(stamps)
    text = [*PROMPT]
    with torch.inference_mode():
        for _ in range(12):
            logits_V = lm.model(torch.tensor([text])).logits[0, -1]
            logits_V[0] = -torch.inf
            text.append(int(logits_V.argmax()))
    assert tokens == text[len(PROMPT) :]


def test_jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An arm of a generation job, marked as another engine; weights of another kind are refused."""
    place = {
        "model": str(saved(tmp_path / "model", max_position_embeddings=1024)),
        "data": written(tmp_path / "text"),
    }
    point = Condition(threads=1, weights="pretrained", prompt_tokens=24, new_tokens=6, **place)
    arms = (
        Arm(overrides=Overrides(dtype="bfloat16")),
        *(
            Arm(overrides=Overrides(runtime="llamacpp", dtype=dtype))
            for dtype in ("bfloat16", "int8", "int4")
        ),
    )
    job = compared("generation", point, *arms, protocol=Protocol(pairs_min=5, pairs_max=5))
    outcome = run(job, pass_seconds=0.05, isolated=False)
    assert not outcome.failures
    dense, *others = outcome.arms
    for arm in others:
        assert arm.implementation is not None
        assert arm.implementation.startswith("llama.cpp, ")
        assert (arm.gmacs, arm.parameters, arm.tokens) == (
            dense.gmacs,
            dense.parameters,
            dense.tokens,
        )
        assert not {"text_differs", "text_too_short"} & set(arm.flags)
    rows = [{each.name: each.value for each in arm.metrics} for arm in outcome.arms]
    assert all(row["ttft"] > 0 < row["tpot"] for row in rows)
    assert len({row["tokens_decoded"] for row in rows}) == 1
    moved = [row["achieved_gb_per_s"] * row["tpot"] for row in rows]
    assert moved[2] / moved[1] == pytest.approx(34 / 64, rel=0.05)
    monkeypatch.setattr("workers.kinds.profile.ROUNDS_S", 0.1)
    profile = job.model_copy(update={"kind": "generation_profile"})
    reasons = [failure.message for failure in run(profile).failures]
    assert len(reasons) == 3
    assert all("torch, whose profiler does not see it" in reason for reason in reasons)


def test_refusals(tmp_path: Path) -> None:
    for architecture in ("qwen2", "gpt2"):
        with pytest.raises(Unsupported, match=f"llamacpp: {architecture} is not written"):
            write_gguf(tiny_llm(architecture).model, "bfloat16", tmp_path / "a.gguf")
    biased = tiny_llm("llama", attention_bias=True).model
    with pytest.raises(Unsupported, match=r"q_proj\.bias is not written"):
        write_gguf(biased, "bfloat16", tmp_path / "a.gguf")
    point = Condition(model="tiny_lm", runtime="llamacpp")
    assert load_language(point).network.architecture == "llama"
    teal = methods.all_methods()["teal"]
    step = Step(
        method="teal", version=teal.VERSION, params=teal.EXAMPLES[0].model_dump(mode="json")
    )
    with pytest.raises(Unsupported, match="teal cannot run with runtime llamacpp"):
        build_language(point, Arm(stack=(step,)), {})
