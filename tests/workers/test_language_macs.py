"""MACs of language models against torch's own count of a run token by token."""

from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from tests.workers.tiny_llms import CONFIGS, POSITIONS, kv_bytes, prompt, tiny_llm
from workers.arms.generation_workload import last_logits
from workers.kv_caches import cache_memory, make_cache
from workers.models.language import LanguageModel
from workers.models.share_weights import clone_shared

SIZES = ("llama", "phi", "gpt2", "qwen3", "ministral", "starcoder2", "qwen3_moe", "granitemoe")
"""Gated and plain layers, heads of another size, shared ones, windows and experts."""


def one_by_one(lm: LanguageModel, tokens: int) -> int:
    """MACs of reading so many tokens one after the other, by torch's counter, with eager
    attention.
    """
    model: Any = clone_shared(lm.model)
    model.set_attn_implementation("eager")
    model.set_experts_implementation("eager")
    cache = make_cache("dynamic", lm, 1, POSITIONS)
    with torch.inference_mode(), FlopCounterMode(display=False) as counter:
        for token_B1 in prompt(1, tokens).split(1, dim=1):
            last_logits(model, {"input_ids": token_B1}, cache)
    return int(counter.get_total_flops()) // 2


@pytest.mark.parametrize(
    ("architecture", "more"),
    [
        *(pytest.param(name, {}, id=name) for name in SIZES),
        pytest.param("mistral", {"sliding_window": 10}, id="mistral, windows of 10"),
        pytest.param(
            "qwen2",
            {"use_sliding_window": True, "sliding_window": 10, "max_window_layers": 1},
            id="qwen2, a window in one of two layers",
        ),
    ],
)
def test_macs_by_geometry(architecture: str, more: dict[str, Any]) -> None:
    """The closed form is what is multiplied, over all tokens before or over a window."""
    lm = tiny_llm(architecture, **more)
    network = lm.network
    assert network.macs(20, 9) == one_by_one(lm, 29) - 19 * network.head_macs
    assert network.window == (CONFIGS[architecture] | more).get("sliding_window")


def test_bytes_of_a_window() -> None:
    """Keys and values that a next token needs are those of the window less that token."""
    lm = tiny_llm("mistral", sliding_window=10)
    cache = make_cache("dynamic", lm, 1, POSITIONS)
    with torch.inference_mode():
        last_logits(lm.model, {"input_ids": prompt(1, 29)}, cache)
    assert cache_memory(cache).needed == kv_bytes(lm.network, 29, 4)
