"""Light fine-tuning of a language model on a domain: embeddings, head, first and last layer, on the
same text for any tokenizer.

AdaptiVocab (Nakash et al., COLM 2025, arXiv 2503.19693, section 3.4). Shapes: B pieces of text, T
tokens.
"""

import json
import logging
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import torch
from pydantic import Field
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from sweeps.model.identity import FrozenModel, digest
from workers.cache import cached
from workers.models.architectures import layers_of, replace
from workers.models.share_weights import clone_shared
from workers.training.optimisation import minimise, training, warmup_cosine

if TYPE_CHECKING:
    from pathlib import Path

    from workers.models.language import LanguageModel

_LOG = logging.getLogger(__name__)
_IGNORED = -100
"""The target that `cross_entropy` leaves out."""


class Tuning(FrozenModel):
    """How a model is tuned: each step reads pieces of text, the same ones for any tokenizer, so
    that two can be compared.
    """

    version: int = 1
    """Raised when the same recipe would give other weights."""
    steps: int = Field(gt=0)
    learning_rate: float = Field(gt=0)
    """The peak: warm-up over a tenth of the steps, then half a cosine."""
    weight_decay: float = Field(default=0.01, ge=0)
    pieces: int = Field(default=8, gt=0)
    """Per step."""
    characters: int = Field(default=768, gt=0)
    """Of each piece, at most."""
    seed: int = 0


def tuned(lm: "LanguageModel", texts: Sequence[str], tuning: Tuning, *, made_of: str) -> "Path":
    """The file (safetensors) with the tuned weights by name, from the cache or tuned now.

    The key is what the model was made of (`made_of`: weights, vocabulary, initial rows, text), its
    dtype, and the tuning. The given model stays unchanged, except for the counts of its tokenizer.
    """
    dtype = str(next(lm.model.parameters()).dtype).removeprefix("torch.")
    key = digest({"tuning": tuning, "of": made_of, "dtype": dtype})

    def make(file: "Path") -> None:
        began = time.monotonic()
        weights, losses = tune(lm, texts, tuning)
        seconds = time.monotonic() - began
        _LOG.info(
            "tuned in %.0f s: loss per token from %.3f to %.3f", seconds, losses[0], losses[-1]
        )
        facts = {
            "tuning": tuning.model_dump(),
            "losses": losses,
            "seconds": seconds,
            "torch": torch.__version__,
        }
        save_file(weights, file, metadata={"breakeven": json.dumps(facts)})

    return cached(f"tuned-{key}.safetensors", make)


def with_weights(model: nn.Module, file: "Path") -> Any:
    """A copy of `model` with the weights of `file`, by name; all others are shared."""
    made = clone_shared(model)
    for name, values in load_file(file).items():
        before: Tensor = made.get_parameter(name)
        replace(
            made,
            name,
            nn.Parameter(
                values.to(before.device, before.dtype), requires_grad=before.requires_grad
            ),
        )
    return made


def tune(
    lm: "LanguageModel", texts: Sequence[str], tuning: Tuning
) -> tuple[dict[str, Tensor], list[float]]:
    """The tuned weights by name, in float32 on the CPU, and the loss of each step (nats per token).
    Raises `ValueError`.

    The model's own tensors are only read. Dropout is off.
    """
    pieces = list(cut(texts, tuning.characters))
    if not pieces:
        raise ValueError("there is no text to tune the model on")
    with training(tuning.seed):
        model = _trainable(lm)
        losses = _fit(model, lm, pieces, tuning)
        return {
            name: model.get_parameter(name).detach().cpu()
            for name in tuned_names(model, lm.network.layers)
        }, losses


def _trainable(lm: "LanguageModel") -> Any:
    """A copy in float32 that shares all tensors but those to be tuned."""
    model = clone_shared(lm.model)
    names = tuned_names(model, lm.network.layers)
    for name, before in list(model.named_parameters()):
        # Tensors created in inference mode cannot take part in a backward pass; copies of them can.
        shared = (
            before.detach()
            if name not in names and not before.is_inference()
            else before.detach().clone()
        )
        replace(model, name, nn.Parameter(shared.float(), requires_grad=name in names))
    for name, before in list(model.named_buffers()):
        if before.is_inference():
            replace(model, name, before.clone())
    return model


def tuned_names(model: nn.Module, count: int) -> list[str]:
    """Names of the parameters that are tuned: embedding, head, first and last of the `count`
    layers.

    Raises `ValueError` for a tied head, `Unsupported` where the layers are not found.
    """
    layers = layers_of(model, count)
    parts = [model.get_input_embeddings(), model.get_output_embeddings(), layers[0], layers[-1]]  # type: ignore[operator]
    if parts[0].weight is parts[1].weight:
        raise ValueError("the head is tied to the embedding; untie it before tuning")
    chosen = {id(parameter) for part in parts for parameter in part.parameters()}
    return [name for name, parameter in model.named_parameters() if id(parameter) in chosen]


def cut(texts: Sequence[str], characters: int) -> Iterator[str]:
    """Pieces of the texts of at most that many characters, whole lines where they are short
    enough.
    """
    for text in texts:
        piece = ""
        for line in text.splitlines(keepends=True):
            for start in range(0, len(line), characters):
                part = line[start : start + characters]
                if len(piece) + len(part) > characters:
                    yield piece
                    piece = ""
                piece += part
        if piece:
            yield piece


def _fit(model: Any, lm: "LanguageModel", pieces: Sequence[str], tuning: Tuning) -> list[float]:
    optimiser = torch.optim.AdamW(
        [parameter for parameter in model.parameters() if parameter.requires_grad],
        lr=tuning.learning_rate,
        weight_decay=tuning.weight_decay,
    )
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda step: warmup_cosine(step, tuning.steps, offset=1)
    )

    def losses() -> Iterator[Tensor]:
        order: list[int] = []
        for _ in range(tuning.steps):
            while len(order) < tuning.pieces:
                order += torch.randperm(len(pieces)).tolist()
            chosen, order = order[: tuning.pieces], order[tuning.pieces :]
            rows = [
                [*lm.bos_ids, *lm.tokenizer.encode(pieces[index])][: lm.network.positions]
                for index in chosen
            ]
            yield _loss(model, rows, next(model.parameters()).device)

    return minimise(model, losses(), optimiser, schedule)


def _loss(model: Any, rows: Sequence[Sequence[int]], device: torch.device) -> Tensor:
    """Nats per token that has one before it; rows are padded on the right."""
    longest = max(map(len, rows))
    tokens_BT = torch.tensor([[*row, *([0] * (longest - len(row)))] for row in rows], device=device)
    targets_BT = torch.tensor(
        [[*row, *([_IGNORED] * (longest - len(row)))] for row in rows], device=device
    )
    logits_BTW = model(input_ids=tokens_BT, use_cache=False).logits
    return nn.functional.cross_entropy(
        logits_BTW[:, :-1].flatten(0, 1).float(), targets_BT[:, 1:].flatten(), ignore_index=_IGNORED
    )
