"""Architectures that call their sizes otherwise than most: transformers' `attribute_map` gives the
usual names.
"""

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM

from sweeps.model.condition import Condition
from tests.workers.saved_llm import TEXTS, TOKENS
from workers.data.tokenization import train_tokenizer
from workers.models import language

SIZES: dict[str, dict[str, Any]] = {
    "xglm": {"d_model": 32, "num_layers": 2, "attention_heads": 4, "ffn_dim": 48},
    "gpt_neo": {
        "hidden_size": 32,
        "num_layers": 2,
        "num_heads": 4,
        "attention_types": [[["global", "local"], 1]],
    },
}


def config_of(architecture: str) -> Any:
    return AutoConfig.for_model(
        architecture, vocab_size=TOKENS, max_position_embeddings=128, **SIZES[architecture]
    )


@pytest.mark.parametrize("architecture", SIZES)
def test_a_folder_with_other_names_is_loaded(tmp_path: Path, architecture: str) -> None:
    """It is not refused, and reads a text."""
    models: Any = AutoModelForCausalLM
    with torch.random.fork_rng(), torch.inference_mode(mode=False):
        model = models.from_config(config_of(architecture))
    model.save_pretrained(tmp_path)
    (tmp_path / "tokenizer.json").write_text(train_tokenizer(TEXTS, TOKENS).to_str())
    lm = language.load_language(
        Condition(model=str(tmp_path), prompt_tokens=8, new_tokens=4, weights="pretrained")
    )
    assert (lm.network.layers, lm.network.width, lm.network.heads) == (2, 32, 4)
    assert lm.model(input_ids=torch.tensor([[1, 2, 3]])).logits.shape == (1, 3, TOKENS)
