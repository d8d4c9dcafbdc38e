"""Small language models of every architecture, with weights large enough for a mistake to show, and
their outputs.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any

import torch
from torch import Tensor
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.utils import logging

from sweeps.geometry.llm_geometry import from_config
from sweeps.model.condition import KvCache
from sweeps.model.method import LanguageNetwork
from workers.kv_caches import make_cache
from workers.models.language import LanguageModel

VOCABULARY = 96
POSITIONS = 256
SIZES: dict[str, Any] = {
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 96,
    "vocab_size": VOCABULARY,
    "max_position_embeddings": POSITIONS,
    "tie_word_embeddings": False,
}
CONFIGS: dict[str, dict[str, Any]] = {
    "llama": {**SIZES, "num_key_value_heads": 4},
    "qwen2": {**SIZES, "num_key_value_heads": 2},
    "mistral": {**SIZES, "num_key_value_heads": 1, "sliding_window": None},
    "phi": {**SIZES, "num_key_value_heads": 4},
    "gpt2": {
        "n_embd": 64,
        "n_layer": 2,
        "n_head": 4,
        "vocab_size": VOCABULARY,
        "n_positions": POSITIONS,
    },
}
ARCHITECTURES = tuple(CONFIGS)
"""The first that were described, for tests that run for long."""
_GROUPED = {**SIZES, "num_key_value_heads": 2}
_WINDOWS = ["sliding_attention", "full_attention"]
_EXPERTS = {**_GROUPED, "num_experts_per_tok": 2, "sliding_window": None}
CONFIGS |= {
    "qwen3": {**_GROUPED, "head_dim": 24},
    "ministral": {**_GROUPED, "head_dim": 16, "sliding_window": 10, "layer_types": _WINDOWS},
    "smollm3": {**_GROUPED, "no_rope_layers": [1, 0]},
    "granite": {
        **_GROUPED,
        "embedding_multiplier": 3.0,
        "residual_multiplier": 0.5,
        "logits_scaling": 2.0,
    },
    "olmo2": _GROUPED,
    "starcoder2": {**_GROUPED, "sliding_window": 10, "use_bias": True},
    "phi3": {**_GROUPED, "sliding_window": None},
    "gemma3_text": {**_GROUPED, "head_dim": 24, "sliding_window": 10, "layer_types": _WINDOWS},
    "gemma": {**_GROUPED, "head_dim": 24},
    "qwen3_moe": {**_EXPERTS, "head_dim": 24, "num_experts": 5, "moe_intermediate_size": 40},
    "mixtral": {**_EXPERTS, "num_local_experts": 4},
    "granitemoe": {**_EXPERTS, "num_local_experts": 4, "residual_multiplier": 0.5},
}
UNROTATABLE = ("olmo2", "gemma3_text")
ROTATABLE = tuple(name for name in CONFIGS if name not in UNROTATABLE)


class Letters:
    """A tokenizer of the printable characters, 96 with the tabulator."""

    size = VOCABULARY

    def encode(self, text: str) -> list[int]:
        return [ord(letter) - 31 if letter != "\t" else 0 for letter in text]

    def decode(self, tokens: Sequence[int]) -> str:
        return "".join(chr(token + 31) if token else "\t" for token in tokens)


class FoldedBytes:
    """A tokenizer of bytes that the small vocabulary can hold."""

    size = VOCABULARY

    def encode(self, text: str) -> list[int]:
        return [byte % VOCABULARY for byte in text.encode()]


@cache
def tiny_llm(architecture: str, dtype: torch.dtype = torch.float32, **more: Any) -> LanguageModel:
    """A model of 2 layers in evaluation mode; `more` goes into its configuration. Never change
    it.
    """
    logging.set_verbosity_error()
    config = {
        **CONFIGS[architecture],
        "bos_token_id": None,
        "eos_token_id": None,
        "pad_token_id": None,
        **more,
    }
    with torch.random.fork_rng(), torch.inference_mode(mode=False):
        torch.manual_seed(0)
        model: Any = AutoModelForCausalLM.from_config(
            AutoConfig.for_model(architecture, **config), dtype=dtype
        )
        model.eval().requires_grad_(requires_grad=False)
        for parameter in model.parameters():
            parameter.mul_(3)
    network = from_config(architecture, {"model_type": architecture, **config})
    return LanguageModel(
        model=model, tokenizer=Letters(), network=network, weights_hash=architecture
    )


def kv_bytes(network: LanguageNetwork, tokens: int, bytes_per_value: int) -> int:
    """Bytes that keys and values of `tokens` tokens of one sequence need in all layers: those that
    a next token attends to.
    """
    near = min(tokens, (network.window or tokens + 1) - 1)
    kept = (network.layers - network.windowed) * tokens + network.windowed * near
    return 2 * kept * network.kv_heads * network.head_dim * bytes_per_value


def prompt(batch: int, tokens: int) -> Tensor:
    """Random tokens, `[B, tokens]`, the same each time."""
    return torch.randint(
        0, VOCABULARY, (batch, tokens), generator=torch.Generator().manual_seed(batch)
    )


def forward(lm: LanguageModel, cache: Any, tokens_BN: Tensor) -> Tensor:
    """Logits of the last token, `[B, vocabulary]`."""
    logits: Tensor = lm.model(input_ids=tokens_BN, cache=cache, logits_to_keep=1).logits
    return logits[:, -1]


def greedy(lm: LanguageModel, cache: Any, tokens_BN: Tensor, new: int) -> Tensor:
    """The next `new` tokens, `[B, new]`; the last of them is not in the cache."""
    output = [forward(lm, cache, tokens_BN).argmax(-1, keepdim=True)]
    while len(output) < new:
        output.append(forward(lm, cache, output[-1]).argmax(-1, keepdim=True))
    return torch.cat(output, 1)


def decode_with(lm: LanguageModel, kind: KvCache, batch: int, length: int, new: int) -> Tensor:
    """The `new` tokens after a prompt of `length`, by a cache of that kind."""
    return greedy(lm, make_cache(kind, lm, batch, length + new), prompt(batch, length), new)
