"""Architectures of today run dense, with caches, an adapted vocabulary and quality; rows are skipped
where the catalogue says so.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from sweeps.geometry.llm_geometry import catalogue
from sweeps.model.condition import Condition, Overrides
from sweeps.model.job import DENSE, Arm, Protocol
from sweeps.model.outcome import Outcome
from tests.workers.llm_zoo import saved_from_zoo
from tests.workers.saved_llm import written
from tests.workers.vision_jobs import compared, metrics, planned
from workers.arms.generation_workload import Workload, passages
from workers.arms.language import held_out
from workers.models.language import LanguageModel, load_language
from workers.models.share_weights import clone_shared
from workers.run import run

PROMPT, NEW = 16, 4
"""Together beyond the sliding windows of 12 tokens."""
Array = np.ndarray[Any, np.dtype[Any]]
PATHS = ("gemma2", "qwen2_moe", "falcon", "bloom", "opt", "deepseek_v2", "qwen3_next")
"""Windows, shared experts, fused and other positions, latents, and layers without keys."""
LINEAR = ("qwen3_next",)
"""Those with layers that keep no keys and values."""


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A folder for each architecture, written when it is first needed, and a text."""
    root = tmp_path_factory.mktemp("zoo")
    return {"root": str(root), "data": written(root / "text")}


def place(places: dict[str, str], architecture: str) -> dict[str, str]:
    folder = Path(places["root"]) / architecture
    return {
        "model": str(folder if folder.exists() else saved_from_zoo(folder, architecture)),
        "data": places["data"],
    }


def answered(where: dict[str, str], kind: Any, *arms: Arm, **condition: Any) -> Outcome:
    """A job without a fresh process for each arm; each arm is compared with the first."""
    requested = {
        "threads": 1,
        "prompt_tokens": PROMPT,
        "new_tokens": NEW,
        "decoding": "teacher_forcing",
        **where,
        **condition,
    }
    protocol = Protocol(pairs_min=2, pairs_max=2, characters=600)
    job = compared(kind, Condition(**requested), *arms, protocol=protocol)
    return run(job, pass_seconds=0.01, isolated=False) if kind == "generation" else run(job)


@pytest.fixture(autouse=True)
def _calm() -> Iterator[None]:
    with torch.inference_mode():
        yield


def plain(lm: LanguageModel) -> Any:
    """The model with eager attention and eager experts, whose products torch counts."""
    model: Any = clone_shared(lm.model)
    if model._can_set_attn_implementation():
        model.set_attn_implementation("eager")
    model.set_experts_implementation("eager")
    return model


def products(counter: FlopCounterMode) -> Array:
    """MACs with weights, and of attention."""
    by_product = {
        str(name): flops // 2 for name, flops in counter.get_flop_counts()["Global"].items()
    }
    weights = sum(by_product.get(name, 0) for name in ("aten.mm", "aten.addmm"))
    return np.array([weights, sum(by_product.values()) - weights])


def one_by_one(lm: LanguageModel, tokens: int) -> Array:
    """At `n`, the `products` of `n` tokens but the first, read one by one, by torch's counter."""
    model = plain(lm)
    one_B1 = torch.zeros((1, 1), dtype=torch.long)
    cache, counted = (
        model(input_ids=one_B1, use_cache=True, logits_to_keep=1).cache,
        [np.zeros(2)] * 2,
    )
    for _ in range(tokens - 1):
        with FlopCounterMode(display=False) as counter:
            model(input_ids=one_B1, cache=cache, use_cache=True, logits_to_keep=1)
        counted.append(counted[-1] + products(counter))
    return np.array(counted)


def at_once(lm: LanguageModel, tokens: int) -> Array:
    """The `products` of a prompt, by torch's counter; attention over the full square."""
    with FlopCounterMode(display=False) as counter:
        plain(lm)(
            input_ids=torch.zeros((1, tokens), dtype=torch.long), use_cache=True, logits_to_keep=1
        )
    return products(counter)


@pytest.mark.parametrize("architecture", ["gemma2", "mixtral", "qwen3_next"])
def test_generation(places: dict[str, str], architecture: str) -> None:
    """Every cache is timed, and one that cannot hold what a layer keeps is unsupported."""
    arms = [DENSE, *(Arm(overrides=Overrides(kv_cache=kind)) for kind in ("static", "virtual"))]
    outcome = answered(place(places, architecture), "generation", *arms)
    refused = {failure.arm: failure for failure in outcome.failures}
    assert set(refused) == ({2} if architecture in LINEAR else set()), refused
    for failure in refused.values():
        assert failure.reason == "unsupported"
        assert (
            "kv_cache 'virtual' cannot hold the state of layer 0 (LinearAttention"
            in failure.message
        )
    for arm in outcome.arms:
        found = metrics(arm)
        assert found["tokens_decoded"] == NEW
        assert found["achieved_gb_per_s"] > 0
        assert not arm.flags, outcome.notes
        assert arm.implementation == ("eager attention" if architecture == "gemma2" else None)


@pytest.mark.parametrize("architecture", [*PATHS, "smollm3", "gpt_neox", "deepseek_v3"])
def test_macs_are_counted(places: dict[str, str], architecture: str) -> None:
    """MACs of prompt and decoded tokens are those that torch counts, beyond a window too."""
    lm = load_language(Condition(**place(places, architecture)))
    counted = one_by_one(lm, PROMPT + NEW)
    # What a layer's first token costs is no step of `one_by_one`; between it and the second one
    # lies one more key of attention.
    first = 3 * counted[2] - counted[3]
    assert (
        lm.macs(PROMPT, NEW) - lm.macs(PROMPT, 0) == (counted[PROMPT + NEW] - counted[PROMPT]).sum()
    )
    assert lm.macs(PROMPT, 0) == at_once(lm, PROMPT)[0] + (first + counted[PROMPT])[1]


@pytest.mark.parametrize("architecture", ["deepseek_v2", "glm4_moe_lite"])
def test_macs_of_latent_attention(places: dict[str, str], architecture: str) -> None:
    """A prompt's latents are expanded once, and the expanding matrix is read once."""
    lm = load_language(Condition(**place(places, architecture)))
    weights, attention = at_once(lm, 64)
    # causal: half of the square, the diagonal included
    assert lm.macs(64, 0) == weights + attention * 65 / (2 * 64)
    model, experts = lm.model, lm.model.config
    used = {3: experts.num_experts_per_tok / experts.n_routed_experts, 2: 1.0, 1: 0.0}
    sizes = [
        used[each.dim()] * each.numel()
        for name, each in model.named_parameters()
        if "embed_tokens" not in name
    ]
    assert lm.weights_read == sum(sizes)


@pytest.mark.parametrize("architecture", PATHS)
def test_batches_of_unequal_prompts(places: dict[str, str], architecture: str) -> None:
    """A padded prompt goes on as it does alone, in every cache that the model takes."""
    lm = load_language(Condition(**place(places, architecture)))
    texts = passages(
        held_out(Condition(**place(places, architecture))), lm.tokenizer, PROMPT, NEW, 2
    )
    shorter = texts[1]._replace(
        prompt=lm.tokenizer.decode(lm.tokenizer.encode(texts[1].prompt)[4:])
    )
    for kind in (
        ("dynamic", "static") if architecture in LINEAR else ("dynamic", "static", "virtual")
    ):
        alone = Workload((shorter,), "greedy", kind, NEW).run(lm)
        both = Workload((texts[0], shorter), "greedy", kind, NEW).run(lm)
        assert (
            both.texts[1][: len(shorter.continuation)]
            == alone.texts[0][: len(shorter.continuation)]
        )


@pytest.mark.parametrize("architecture", PATHS)
def test_greedy_tokens_are_those_of_generate(places: dict[str, str], architecture: str) -> None:
    """Loop and caches give the tokens of transformers' own `generate`."""
    where = place(places, architecture)
    lm, condition = load_language(Condition(**where)), Condition(**where)
    (passage,) = passages(held_out(condition), lm.tokenizer, PROMPT, NEW, 1)
    chosen: list[int] = []
    work = Workload((passage,), "greedy", "dynamic", NEW)
    work.run(
        lm, check=lambda logits_BV: chosen.append(int(logits_BV[0, : lm.tokenizer.size].argmax()))
    )
    prompt_BT = torch.tensor([lm.tokenizer.encode(passage.prompt)])
    wanted = lm.model.generate(
        prompt_BT,
        attention_mask=torch.ones_like(prompt_BT),
        max_new_tokens=len(chosen),
        do_sample=False,
        pad_token_id=0,
    )
    assert chosen == wanted[0, PROMPT:].tolist()


@pytest.mark.parametrize("architecture", ["gemma2", "phi3", "mixtral", *LINEAR])
def test_quality_and_vocabulary(places: dict[str, str], architecture: str) -> None:
    """Bits per byte, with an adapted vocabulary too; rows are skipped where the catalogue lets."""
    where = place(places, architecture)
    vocabulary = planned("adaptivocab", ngrams=12, data=where["data"], finetune_steps=1)
    outcome = answered(
        where, "quality", DENSE, vocabulary, planned("topk_activation", sparsity=0.5)
    )
    dense, adapted, *sparse = outcome.arms
    if (reason := catalogue()[architecture].get("rows_refusal")) is None:
        assert not outcome.failures
        assert metrics(sparse[0])["achieved_sparsity"] == pytest.approx(0.5, abs=0.02)
    else:
        (failure,) = outcome.failures
        assert (failure.arm, failure.reason) == (2, "unsupported")
        assert f"a {architecture}: {reason}" in failure.message
    assert 0 < metrics(dense)["bits_per_byte"] < 30
    assert 0 < metrics(adapted)["bits_per_byte"] < 30
    assert metrics(adapted)["tokens_scored"] < metrics(dense)["tokens_scored"]
    assert dense.gmacs > 0
