"""Gives a causal language model the embeddings and the head of another vocabulary, all other
weights shared, and tunes it lightly: embeddings, head, first and last layer, on the same text for
any tokenizer.

AdaptiVocab (Nakash et al., COLM 2025, arXiv 2503.19693, sections 3.3 and 3.4). Shapes: V rows
before, W rows with the n-tokens, N n-tokens, L tokens of an n-gram, D width; B pieces of text, T
tokens.
"""

import json
import logging
import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import torch
from pydantic import Field
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from sweeps.model.identity import FrozenModel, digest
from sweeps.model.method import LanguageNetwork
from workers.cache import cached
from workers.errors import Unsupported
from workers.models.architectures import layers_of, replace
from workers.models.share_weights import clone_shared
from workers.training.optimisation import minimise, training, warmup_cosine
from workers.vocabulary import Vocabulary

if TYPE_CHECKING:
    from pathlib import Path

    from workers.models.language import LanguageModel


Init = Literal["exp", "mean", "random", "last_first"]
Toward = Literal["last", "first"]
"""The token of an n-gram with the highest weight: the last in the embedding (the next token depends
on it most), the first in the head (it is the token that the unmodified model would predict)."""


def mixture_weights(length: int, init: Init, toward: Toward) -> Tensor:
    """The weight of each token of an n-gram of `length` in its row, [L], with sum 1: halved at each
    step, equal, or one alone.

    Raises `ValueError` for `random`, which is no mixture.
    """
    if init == "exp":
        share_L = 0.5 ** torch.arange(length, dtype=torch.float64)
    elif init == "last_first":
        share_L = (torch.arange(length) == 0).double()
    elif init == "mean":
        share_L = torch.ones(length, dtype=torch.float64)
    else:
        raise ValueError(f"{init} is no mixture of the n-gram's tokens")
    share_L = share_L / share_L.sum()
    return share_L.flip(0) if toward == "last" else share_L


def ngram_rows(
    table_VD: Tensor, ngrams: Sequence[Sequence[int]], init: Init, toward: Toward, seed: int = 0
) -> Tensor:
    """A row for each n-gram from the rows of its tokens, [N, D] (or [N] from a bias [V]), in the
    dtype of the table.

    `random` draws from the normal distribution with mean and deviation of each column.
    """
    wide = table_VD.detach().float()
    if init == "random":
        generator = torch.Generator().manual_seed(2 * seed + (toward == "first"))
        drawn = torch.randn((len(ngrams), *wide.shape[1:]), generator=generator).to(wide.device)
        return (wide.mean(0) + drawn * wide.std(0)).to(table_VD.dtype)
    made = torch.empty((len(ngrams), *wide.shape[1:]), device=wide.device)
    for length in sorted({len(ngram) for ngram in ngrams}):
        chosen = [index for index, ngram in enumerate(ngrams) if len(ngram) == length]
        tokens_NL = torch.tensor([list(ngrams[index]) for index in chosen], device=wide.device)
        share_L = mixture_weights(length, init, toward).to(wide)
        made[chosen] = torch.einsum("l,nl...->n...", share_L, wide[tokens_NL])
    return made.to(table_VD.dtype)


def extended(
    table_VD: Tensor,
    vocabulary: Vocabulary,
    init: Init,
    toward: Toward,
    seed: int = 0,
    *,
    runs: Sequence[Sequence[int]] | None = None,
) -> Tensor:
    """The table with the n-tokens' rows, [W, D] (a bias: [W]): instead of those of removed tokens,
    then after the last token.

    Padding rows of the table that belong to no token stay at the end. `runs` are the tokens that
    each row is mixed from, if they are not those that the n-token stands for.
    """
    made_ND = ngram_rows(table_VD, vocabulary.ngrams if runs is None else runs, init, toward, seed)
    table_VD, added = table_VD.detach(), vocabulary.size - vocabulary.tokens
    table_WD = torch.cat(
        (
            table_VD[: vocabulary.tokens],
            table_VD.new_empty((added, *table_VD.shape[1:])),
            table_VD[vocabulary.tokens :],
        )
    )
    table_WD[torch.tensor(vocabulary.ids, dtype=torch.long, device=table_VD.device)] = made_ND
    return table_WD


def with_vocabulary(
    model: nn.Module,
    vocabulary: Vocabulary,
    init: Init,
    seed: int = 0,
    *,
    untie: bool = False,
    runs: Sequence[Sequence[int]] | None = None,
) -> Any:
    """A copy of a `transformers` causal model with the embeddings and the head of the vocabulary;
    all other weights are shared.

    `runs` as in `extended`. A head tied to the embedding stays tied where both would get the same
    rows, unless `untie`. Raises `Unsupported` for a model without a head, or with a second table
    that has a row for each token.
    """
    made: Any = clone_shared(model)
    embedding, head = made.get_input_embeddings(), made.get_output_embeddings()
    if head is None:
        raise Unsupported(
            f"{type(model).__name__} has no output embeddings, to which n-tokens could be added"
        )
    if (name := _second_table(made, embedding)) is not None:
        raise Unsupported(
            f"{type(model).__name__} has a second table of tokens ({name}), to which n-tokens"
            " cannot be added"
        )
    extend = partial(extended, vocabulary=vocabulary, init=init, seed=seed, runs=runs)
    tied = head.weight is embedding.weight
    if tied and not untie and (init == "mean" or not vocabulary.ngrams):
        head.weight = embedding.weight = _parameter(
            extend(embedding.weight, toward="last"), embedding.weight
        )
    else:
        head.weight = _parameter(extend(head.weight, toward="first"), head.weight)
        embedding.weight = _parameter(extend(embedding.weight, toward="last"), embedding.weight)
        made.config.tie_word_embeddings = False
        made.all_tied_weights_keys = {}  # otherwise saving, which ties weights again, undoes it
    if head.bias is not None:
        head.bias = _parameter(extend(head.bias, toward="first"), head.bias)
    embedding.num_embeddings = head.out_features = made.config.vocab_size = len(embedding.weight)
    for part in (made, made.base_model):
        if hasattr(part, "vocab_size"):
            part.vocab_size = len(embedding.weight)
    if head.weight.is_cpu:  # on CUDA a row that is not there ends the process
        try:
            _read(made, [len(embedding.weight) - 1])
        except IndexError:
            raise Unsupported(
                f"{type(model).__name__} has a further table of tokens, to which n-tokens cannot be"
                " added"
            ) from None
    return made


def resized(network: LanguageNetwork, model: Any) -> LanguageNetwork:
    """The network's geometry with the embedding and the head that `model` has."""
    embedding, head = model.get_input_embeddings(), model.get_output_embeddings()
    return network.model_copy(
        update={"vocabulary": len(embedding.weight), "tied": head.weight is embedding.weight}
    )


def _second_table(model: Any, embedding: nn.Module) -> str | None:
    """The name of a table other than the embedding that has a row for each token: it is read at the
    tokens of a short text.
    """
    tokens = [4, 1, 3, 1]  # positions ascend
    read: list[str] = []

    def hook(name: str, inputs: tuple[Any, ...]) -> None:
        if inputs and inputs[0].tolist() == [tokens]:
            read.append(name)

    tables = [
        (name, part)
        for name, part in model.named_modules()
        if isinstance(part, nn.Embedding) and part is not embedding
    ]
    hooks = [
        part.register_forward_pre_hook(lambda _, inputs, name=name: hook(name, inputs))
        for name, part in tables
    ]
    if hooks:
        _read(model, tokens)
    for each in hooks:
        each.remove()
    return read[0] if read else None


def _read(model: Any, tokens: Sequence[int]) -> None:
    with torch.no_grad():
        model(
            input_ids=torch.tensor([tokens], device=model.get_input_embeddings().weight.device),
            use_cache=False,
        )


def _parameter(values: Tensor, like: Tensor) -> nn.Parameter:
    return nn.Parameter(values, requires_grad=like.requires_grad)


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
    tensors = [torch.tensor(row, device=device) for row in rows]
    tokens_BT = pad_sequence(tensors, batch_first=True)
    targets_BT = pad_sequence(tensors, batch_first=True, padding_value=_IGNORED)
    logits_BTW = model(input_ids=tokens_BT, use_cache=False).logits
    return nn.functional.cross_entropy(
        logits_BTW[:, :-1].flatten(0, 1).float(), targets_BT[:, 1:].flatten(), ignore_index=_IGNORED
    )
