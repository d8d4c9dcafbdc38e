"""A small text, tokenizers trained on a part of it, and language models of three layers that read
it.
"""

from functools import cache
from typing import Any

import torch
from tokenizers import Tokenizer as Backend
from tokenizers import decoders, models, pre_tokenizers, trainers
from transformers import AutoConfig, AutoModelForCausalLM

from sweeps.geometry.llm_geometry import from_config
from tests.workers.saved_llm import TEXTS
from workers.data.tokenization import FastTokenizer, train_tokenizer
from workers.models.language import LanguageModel

CONFIGS: dict[str, dict[str, Any]] = {
    "gpt2": {
        "n_embd": 32,
        "n_layer": 3,
        "n_head": 2,
        "n_positions": 1024,
        "bos_token_id": None,
        "eos_token_id": None,
    },
    **{
        architecture: {
            "hidden_size": 32,
            "num_hidden_layers": 3,
            "num_attention_heads": 2,
            "num_key_value_heads": 2,
            "intermediate_size": 64,
            "max_position_embeddings": 1024,
            "tie_word_embeddings": architecture == "qwen2",
        }
        for architecture in ("llama", "qwen2", "phi")
    },
}
"""`gpt2` and `qwen2` have tied heads, `phi` a head with a bias."""
SPARE = 6
"""Rows of the embeddings that are no token's, as some models have for the sake of an even size."""


@cache
def bytes_bpe(size: int = 500) -> FastTokenizer:
    """A byte-level tokenizer, as Llama 3, Qwen and GPT-2 have; never change it."""
    return FastTokenizer(train_tokenizer(TEXTS, size))


@cache
def word_piece() -> FastTokenizer:
    """A tokenizer without merges."""
    backend = Backend(models.WordPiece(unk_token="[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    backend.decoder = decoders.WordPiece()
    backend.train_from_iterator(
        TEXTS,
        trainers.WordPieceTrainer(vocab_size=400, special_tokens=["[UNK]"], show_progress=False),
    )
    return FastTokenizer(backend)


@cache
def lm(architecture: str = "llama") -> LanguageModel:
    """A random model of three layers, with weights large enough for a mistake to show; never change
    it.
    """
    tokenizer = bytes_bpe()
    config = {
        "model_type": architecture,
        "vocab_size": tokenizer.size + SPARE,
        **CONFIGS[architecture],
    }
    with torch.random.fork_rng(), torch.inference_mode(mode=False):
        torch.manual_seed(1)
        model = AutoModelForCausalLM.from_config(AutoConfig.for_model(**config))
        model.eval().requires_grad_(requires_grad=False)
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.1)
    network = from_config(architecture, {**model.config.to_dict(), "model_type": architecture})
    return LanguageModel(model, tokenizer, network, f"small-{architecture}")
