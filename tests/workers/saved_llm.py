"""A small language model as a folder, as transformers saves it, and a text to read with it."""

import json
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.utils import logging

from tests.workers.tiny_llms import CONFIGS
from workers.data.tokenization import train_tokenizer

NAMES = (
    "assignment",
    "if",
    "while",
    "for",
    "try",
    "with",
    "function",
    "class",
    "slicings",
    "lambda",
)
TEXTS = tuple(topics[name] for name in NAMES)
TOKENS = 300


def saved(folder: Path, architecture: str = "llama", **more: Any) -> Path:
    """`folder` with a random model of 2 layers, and its byte-level tokenizer; `more` goes into the
    configuration.
    """
    config = {
        **CONFIGS.get(architecture, {}),
        "vocab_size": TOKENS,
        "bos_token_id": None,
        "eos_token_id": None,
        **more,
    }
    with torch.random.fork_rng(), torch.inference_mode(mode=False):
        torch.manual_seed(0)
        model: Any = AutoModelForCausalLM.from_config(AutoConfig.for_model(architecture, **config))
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.mul_(3)
    logging.disable_progress_bar()
    model.save_pretrained(folder)
    (folder / "tokenizer.json").write_text(train_tokenizer(TEXTS, TOKENS).to_str())
    return folder


def written(folder: Path) -> str:
    """Twelve small documents in `folder`, as `Condition.data`."""
    folder.mkdir()
    for number in range(12):
        text = TEXTS[number % len(TEXTS)]
        (folder / f"{number}.txt").write_text(text[:1200] if number % 2 else text[-1500:])
    return f"text:{folder}"


def changed(file: Path, **fields: Any) -> None:
    """Overwrite fields of a JSON file."""
    file.write_text(json.dumps({**json.loads(file.read_text()), **fields}))
