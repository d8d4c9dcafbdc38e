"""Small random models of architectures of today, made from transformers' own
configuration classes.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.utils import logging

from tests.workers.saved_llm import TEXTS, TOKENS
from workers.data.tokenization import train_tokenizer

_SIZES: dict[str, Any] = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "vocab_size": TOKENS,
    "max_position_embeddings": 512,
}
_GROUPED = {**_SIZES, "num_key_value_heads": 2, "head_dim": 8}
_EXPERTS = {**_GROUPED, "num_experts_per_tok": 2, "moe_intermediate_size": 24}
_LATENT = {
    **_SIZES,
    "num_key_value_heads": 4,
    "q_lora_rank": 16,
    "kv_lora_rank": 16,
    "qk_rope_head_dim": 8,
    "qk_nope_head_dim": 8,
    "v_head_dim": 16,
    "n_routed_experts": 4,
    "num_experts_per_tok": 2,
    "first_k_dense_replace": 1,
    "moe_intermediate_size": 24,
    "n_shared_experts": 1,
}
ZOO: Mapping[str, dict[str, Any]] = {
    "qwen3": {**_GROUPED, "head_dim": 16},
    "gemma2": {
        **_GROUPED,
        "sliding_window": 12,
        "layer_types": ["sliding_attention", "full_attention"],
    },
    "gemma3_text": {
        **_GROUPED,
        "sliding_window": 12,
        "layer_types": ["sliding_attention", "full_attention"],
    },
    "olmo2": _GROUPED,
    "phi3": {**_GROUPED, "sliding_window": None, "pad_token_id": 0},
    "smollm3": {**_GROUPED, "no_rope_layers": [1, 0]},
    "granite": _GROUPED,
    "mixtral": {
        **_GROUPED,
        "num_local_experts": 4,
        "num_experts_per_tok": 2,
        "sliding_window": None,
    },
    "qwen2_moe": {**_EXPERTS, "num_experts": 4, "shared_expert_intermediate_size": 24},
    "qwen3_moe": {**_EXPERTS, "num_experts": 4},
    "falcon": {
        **_SIZES,
        "num_kv_heads": 2,
        "new_decoder_architecture": True,
        "ffn_hidden_size": 48,
    },
    "stablelm": _GROUPED,
    "gpt_neox": _SIZES,
    "bloom": {"hidden_size": 32, "n_layer": 2, "n_head": 4, "vocab_size": TOKENS},
    "opt": {**_SIZES, "ffn_dim": 48, "word_embed_proj_dim": 32},
    "deepseek_v3": {**_LATENT, "n_group": 1, "topk_group": 1},
    "deepseek_v2": {**_LATENT, "topk_method": "greedy", "moe_layer_freq": 1},
    "glm4_moe_lite": {
        **_LATENT,
        "n_group": 1,
        "topk_group": 1,
        "mlp_layer_types": ["dense", "sparse"],
    },
    "qwen3_next": {
        **_EXPERTS,
        "num_experts": 4,
        "shared_expert_intermediate_size": 24,
        "layer_types": ["linear_attention", "full_attention"],
        "linear_num_value_heads": 2,
        "linear_num_key_heads": 2,
        "linear_key_head_dim": 8,
        "linear_value_head_dim": 8,
    },
}
"""By `model_type`; what is not given is transformers' default."""


def saved_from_zoo(folder: Path, architecture: str) -> Path:
    """`folder` with a random model of the zoo, as transformers saves it, and its byte-level
    tokenizer.
    """
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    config = {"bos_token_id": None, "eos_token_id": None, "pad_token_id": None, **ZOO[architecture]}
    with torch.random.fork_rng(), torch.inference_mode(mode=False), torch.no_grad():
        torch.manual_seed(0)
        model: Any = AutoModelForCausalLM.from_config(
            AutoConfig.for_model(architecture, **config), dtype=torch.float32
        )
        for parameter in model.parameters():
            parameter.mul_(3)  # else every token looks alike
    model.save_pretrained(folder)
    (folder / "tokenizer.json").write_text(train_tokenizer(TEXTS, TOKENS).to_str())
    return folder
