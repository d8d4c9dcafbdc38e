"""Trains a small language model on text, and writes model, tokenizer and facts as one folder that
transformers can load.

Shapes: B sequences, T tokens of each, V tokens of the vocabulary.
"""

import json
import logging
import math
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import torch
import transformers
from torch import Tensor, nn
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.utils import logging as noise

from sweeps.geometry.llm_geometry import CONFIGS
from workers.data.text import DOCS, corpus
from workers.data.tokenization import (
    END,
    TOKENIZER_FILE,
    FastTokenizer,
    train_tokenizer,
    trained_tokenizer,
)
from workers.training.optimisation import (
    TrainingTargetMissed,
    decay_groups,
    minimise,
    training,
    warmup_cosine,
)
from workers.training.recipes import LanguageRecipe

_LOG = logging.getLogger(__name__)
LAST = 0.05
"""Learning rate of the last step as a share of the peak."""
EVALUATED = 2**15
"""Tokens of held-out text, at most, that the perplexity is computed on."""


class HeldOut(NamedTuple):
    """Quality of a model on held-out text."""

    perplexity: float
    """Per token of its tokenizer."""
    bits_per_byte: float
    held_out_tokens: int


def train_llm(recipe: LanguageRecipe, folder: Path) -> None:
    """Train, and write config.json, model.safetensors, tokenizer.json and facts.json to `folder`.
    Raises `TrainingTargetMissed`.
    """
    started = time.monotonic()
    noise.disable_progress_bar()  # type: ignore[no-untyped-call]
    text = corpus(recipe.data)
    with training(recipe.seed):
        config = dict(CONFIGS[recipe.model])
        model: Any = AutoModelForCausalLM.from_config(  # type: ignore[no-untyped-call]
            AutoConfig.for_model(config.pop("model_type"), **config)
        )
        size = model.config.vocab_size
        tokenizer = (
            trained_tokenizer(size)
            if recipe.data == DOCS
            else FastTokenizer(train_tokenizer(text.train, size))
        )
        losses = fit_lm(model, encoded(text.train, tokenizer), recipe)
        held_out = evaluate_lm(model, text.held_out, tokenizer, recipe)
    seconds = time.monotonic() - started
    _LOG.info(
        "%s: perplexity %.1f on held-out text after %.0f s",
        recipe.model,
        held_out.perplexity,
        seconds,
    )
    if not held_out.perplexity <= recipe.perplexity:
        raise TrainingTargetMissed(
            f"{recipe.model} has perplexity {held_out.perplexity:.1f} on held-out text; at most"
            f" {recipe.perplexity:g} is required"
        )
    facts = {
        "recipe": recipe.model_dump(),
        "corpus": text.hash,
        **held_out._asdict(),
        "losses": [round(loss, 4) for loss in losses],
        "seconds": seconds,
        "torch": torch.__version__,
        "transformers": transformers.__version__,
    }
    model.save_pretrained(folder)
    (folder / TOKENIZER_FILE).write_text(tokenizer.backend.to_str(), encoding="utf-8")
    (folder / "facts.json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")


def encoded(documents: Iterable[str], tokenizer: FastTokenizer) -> Tensor:
    """All documents as one row of tokens, `END` before each and after the last, [tokens]."""
    end = tokenizer.backend.token_to_id(END)
    tokens = [end]
    for document in documents:
        tokens += [*tokenizer.encode(document), end]
    return torch.tensor(tokens)


def fit_lm(model: nn.Module, tokens: Tensor, recipe: LanguageRecipe) -> list[float]:
    """AdamW on sequences from random positions; the mean loss (nats) of each tenth of the steps."""
    groups = decay_groups(model, recipe.weight_decay)
    optimiser = torch.optim.AdamW(groups, lr=recipe.learning_rate, betas=(0.9, 0.95), fused=True)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda step: warmup_cosine(step, recipe.steps, last=LAST)
    )
    places = torch.arange(recipe.tokens + 1)
    firsts = (
        torch.randint(len(tokens) - recipe.tokens, (recipe.batch_size, 1))
        for _ in range(recipe.steps)
    )
    model.train()
    losses = minimise(
        model, (_loss(model, tokens[first_B1 + places]) for first_B1 in firsts), optimiser, schedule
    )
    model.eval()
    tenth = max(1, recipe.steps // 10)
    return [part.mean().item() for part in torch.split(torch.tensor(losses).double(), tenth)]


def evaluate_lm(
    model: nn.Module, documents: Iterable[str], tokenizer: FastTokenizer, recipe: LanguageRecipe
) -> HeldOut:
    """Quality on held-out text, read in pieces of the training length; the first token of each is
    not scored.
    """
    tokens = encoded(documents, tokenizer)[: EVALUATED + 1]
    nll, count, size = 0.0, 0, 0
    with torch.inference_mode():
        for piece in torch.split(tokens, recipe.tokens):
            if len(piece) > 1:
                nll += float(_loss(model, piece[None])) * (len(piece) - 1)
                count += len(piece) - 1
                size += len(tokenizer.decode(piece[1:].tolist()).replace(END, "").encode())
    return HeldOut(math.exp(nll / count), nll / (size * math.log(2)), count)


def _loss(model: nn.Module, tokens_BT: Tensor) -> Tensor:
    """Mean negative log likelihood in nats of each token but the first, given those before it."""
    logits_BTV = model(tokens_BT[:, :-1], use_cache=False).logits
    return nn.functional.cross_entropy(logits_BTV.flatten(0, 1), tokens_BT[:, 1:].flatten())
