"""Gives a causal language model the embeddings and the head of another vocabulary; all other
weights are shared.

AdaptiVocab (Nakash et al., COLM 2025, arXiv 2503.19693, section 3.3). Shapes: V rows before, W rows
with the n-tokens, N n-tokens, L tokens of an n-gram, D width.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor, nn

from sweeps.model.method import LanguageNetwork
from workers.errors import Unsupported
from workers.models.share_weights import clone_shared
from workers.vocabulary.ngram_tokenizer import Vocabulary

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
