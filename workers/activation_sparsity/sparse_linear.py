"""Linear layers that read active inputs only, with one selection of inputs for all matrices that
share them.

Shapes: I inputs and O outputs of a matrix, N tokens, T tokens of a sequence, D width of the stream.
"""

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple, Self, cast

import torch
from torch import Tensor, nn

from sweeps.model.identity import digest
from workers.activation_sparsity import Kernel, SkippingParams
from workers.activation_sparsity.rotation_fusion import lay_out, shared
from workers.activation_sparsity.sparse_matvec import (
    Active,
    Readers,
    Route,
    above,
    largest,
    mask_above,
    mask_largest,
    product,
    select_route,
    unfit,
)
from workers.kernels import MAX_SEQUENCES
from workers.models import architectures
from workers.models.architectures import Experts, module_names
from workers.models.language import LanguageModel, Scoring
from workers.models.share_weights import clone_shared


class InputRule(NamedTuple):
    """Selects the active inputs of a token: those of largest magnitude, or those whose magnitude is
    above a threshold.
    """

    kept: int
    """The number of active inputs, with a threshold the expected one."""
    threshold: float | None = None
    weighted: bool | tuple[str, ...] = False
    """Whether magnitudes are multiplied with the norms of the rows that the inputs read (WINA); or
    ends of names: each matrix so named then has its own norms and selection, others neither."""

    def active(self, x_I: Tensor, norms_I: Tensor | None = None) -> Active:
        """The active inputs of one token."""
        if norms_I is not None:
            index_K, score_K, read = self.active(x_I * norms_I)
            value_K = torch.where(score_K == 0, 0, x_I if index_K is None else x_I[index_K])
            return Active(index_K, value_K.to(score_K.dtype), read)
        return largest(x_I, self.kept) if self.threshold is None else above(x_I, self.threshold)

    def mask(self, x_NI: Tensor, norms_I: Tensor | None = None) -> Tensor:
        """Many tokens with all other inputs set to zero."""
        if norms_I is not None:
            return torch.where(self.mask(x_NI * norms_I) == 0, 0, x_NI)
        return (
            mask_largest(x_NI, self.kept)
            if self.threshold is None
            else mask_above(x_NI, self.threshold)
        )


class SparsityCounters:
    """State shared by the modules of one arm: the phase of the workload, and counts."""

    def __init__(
        self,
        prefill: float,
        scoring: Scoring | None = None,
        base: object = None,
        *,
        skips: bool = True,
    ) -> None:
        """`base` is a model whose weights this arm shares; the reference keeps it alive for other
        arms (see `shared`). `skips`: masked inputs stand for rows that a kernel would skip; else
        every product is dense, also of decoded tokens.
        """
        self.prefill, self.scoring, self.base = prefill, scoring or Scoring(), base
        self.skips = skips
        self.phase: Literal["decode", "prefill", "score"] = "decode"
        self.sequences = self.length = 1
        """Of the tokens of a forward."""
        self.totals_3: Tensor | None = None
        """On CUDA, where a captured kernel counts: MACs of rows read, of all, and launches."""
        self.first = self.decoded = 0
        """In a forward of several tokens: the index of the first that is made sparse, and of the
        first that counts as decoded."""
        self.reset()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self  # a copy of the model that another method makes counts here too

    def reset(self) -> None:
        self.calls: Counter[Route] = Counter()
        self.fallbacks = self.masked = self.macs = self.read = 0
        if self.totals_3 is not None:
            self.totals_3.zero_()

    def enter(self, _model: nn.Module, given: tuple[Any, ...], named: Mapping[str, Any]) -> None:
        """A hook before each forward. One token is decoded; several with a cache are a prompt;
        several without one are scored.

        In a scored text the tokens from `Scoring.decoded_from` on stand for decoded ones; those
        before are a prompt.
        """
        tokens = given[0] if given else named.get("input_ids")
        tokens = named["inputs_embeds"] if tokens is None else tokens
        self.sequences, self.length = length_of = tokens.shape[:2]
        length, start = length_of[1], self.scoring.decoded_from
        if start is None and named.get("cache") is None:
            start = 0
        self.phase = "decode" if length == 1 else "prefill" if start is None else "score"
        self.decoded = length if start is None else min(start, length)
        self.first = self.decoded - round(self.prefill * self.decoded)

    @contextmanager
    def gathered(self, token_M: Tensor) -> Iterator[Tensor]:
        """While an expert reads tokens: their order by positions, which decide what is sparse."""
        whole, position_M = (self.first, self.decoded), token_M % self.length
        self.first, self.decoded = (int((position_M < start).sum()) for start in whole)
        yield position_M.argsort(stable=True)
        self.first, self.decoded = whole

    def count(self, macs: int, read: int) -> None:
        """Add the MACs of a product, and those of the rows that it read."""
        self.macs += macs
        self.read += read

    def counted(self) -> tuple[int, int, int]:
        """MACs of the rows read and of all, and launches, those on the device among them."""
        read, macs, launches = (0, 0, 0) if self.totals_3 is None else self.totals_3.tolist()
        return self.read + read, self.macs + macs, launches

    def skipped(self) -> float:
        """MACs that were left out except in prompts, since the last reset."""
        read, macs, _ = self.counted()
        return float(macs - read) if self.skips else 0.0

    def metrics(self) -> dict[str, float]:
        """Kernel calls in all and by route, dense fallbacks, and the share of MACs left out except
        in prompts.
        """
        read, macs, launches = self.counted()
        calls = {**self.calls, "triton": launches}
        by_route = {
            f"kernel_calls_{route}": float(number) for route, number in calls.items() if number
        }
        sparsity = {"achieved_sparsity": 1 - read / macs} if macs else {}
        return {
            "kernel_calls": float(sum(calls.values())),
            "fallback_calls": float(self.fallbacks),
            **by_route,
            "masked_calls": float(self.masked),
            **sparsity,
        }


class SharedInputMask:
    """The selection of inputs for all matrices that read the same tensor: made for the first
    reader, released by the last.
    """

    def __init__(self, rule: InputRule, rotation_DD: Tensor | None = None) -> None:
        self.rule, self.rotation_DD = rule, rotation_DD
        self.readers: list[tuple[Route | None, Tensor, Tensor | None]] = []
        """Route, weight and bias of each matrix."""
        self._together: Readers | None = None
        self._norms_I: Tensor | None = None
        self._arrived_C = self._threshold_1 = torch.empty(0)
        self._made = _NOTHING

    def add_reader(self, route: Route | None, weight_IO: Tensor, bias_O: Tensor | None) -> int:
        """Add a matrix; its index among the readers."""
        self.readers.append((route, weight_IO, bias_O))
        return len(self.readers) - 1

    def product(self, x: Tensor, place: int, totals_3: Tensor | None) -> tuple[Tensor, int | None]:
        """[O] of one reader for the one token of `x`, and the number of inputs read; on CUDA [B, O]
        for a token of each sequence, and `None`, since a kernel adds to `totals_3`. The first call
        computes all products.
        """

        def make() -> tuple[Sequence[Tensor], int | None]:
            if totals_3 is None:
                return self._products(x.reshape(-1))
            return self._on_device(x.reshape(-1, x.shape[-1]), totals_3), None

        products, read = self._once(x, make)
        return products[place], read

    def masked(self, x: Tensor, first: int) -> Tensor:
        """`x` [..., T, I] with inactive inputs of all tokens from `first` on set to zero, in the
        rotated basis if there is one.
        """
        chosen: Tensor = self._once(x, lambda: self._mask(x, first))
        return chosen

    def _norms(self) -> Tensor | None:
        """The norm of the weights that each input is multiplied with in all matrices, float32;
        `None` where the rule does not use it.
        """
        if self.rule.weighted and self._norms_I is None:
            squares = (weight_IO.float().square().sum(1) for _, weight_IO, _ in self.readers)
            self._norms_I = torch.stack([*squares]).sum(0).sqrt()
        return self._norms_I

    def _products(self, x_I: Tensor) -> tuple[Sequence[Tensor], int]:
        if all(route == "cpp" for route, _, _ in self.readers):
            if self._together is None:
                _, weights, biases = zip(*self.readers, strict=True)
                self._together = Readers(weights, biases)
            return self._together.products(x_I, *self.rule[:2], self._norms())
        active = self.rule.active(x_I, self._norms())
        return [
            product(route, active, weight_IO, bias_O)
            for route, weight_IO, bias_O in self.readers
            if route
        ], active.read

    def _on_device(self, x_BI: Tensor, totals_3: Tensor) -> list[Tensor]:
        """The products by Triton's kernels, whose launches depend on shapes alone."""
        from workers.kernels.sparse import COLUMNS, keep_largest, multiply_active

        kept, threshold, _ = self.rule
        if not len(self._arrived_C):
            most = max(weight_IO.shape[1] for _, weight_IO, _ in self.readers)
            self._arrived_C = x_BI.new_zeros(-(-most // COLUMNS), dtype=torch.int32)
            limit = 0.0 if threshold is None or self.rule.weighted else threshold
            self._threshold_1 = x_BI.new_full((1,), limit, dtype=torch.float32)
        if (norms_I := self._norms()) is not None:
            x_BI = self.rule.mask(x_BI, norms_I)
        elif threshold is None and kept < x_BI.shape[1]:
            x_BI = keep_largest(x_BI, kept)
        device = (self._threshold_1, self._arrived_C, totals_3)
        return [
            multiply_active(x_BI, weight_IO, device[0], bias_O, *device[1:])
            for _, weight_IO, bias_O in self.readers
        ]

    def _mask(self, x: Tensor, first: int) -> Tensor:
        if first:
            return torch.cat((x[..., :first, :], self._mask(x[..., first:, :], 0)), -2)
        if self.rotation_DD is None:
            return self.rule.mask(x, self._norms())
        return self.rule.mask(x @ self.rotation_DD) @ self.rotation_DD.t()

    def _once(self, x: Tensor, make: Callable[[], Any]) -> Any:
        seen, chosen, left = self._made
        if seen is not x:
            chosen, left = make(), len(self.readers)
        self._made = (x, chosen, left - 1) if left > 1 else _NOTHING
        return chosen


_NOTHING: tuple[Tensor | None, Any, int] = (None, None, 0)


class RowSkippingLinear(nn.Module):
    """A linear layer that reads only the active inputs of one token, on CUDA of one token of each
    of some sequences; several tokens at once use the dense product.
    """

    dense_OI: Tensor | None

    def __init__(
        self,
        weight_IO: Tensor,
        bias_O: Tensor | None,
        mask: SharedInputMask,
        counters: SparsityCounters,
        route: Route | None,
        *,
        dense_OI: Tensor | None = None,
    ) -> None:
        """`dense_OI`: the same weights for dense products, in another order in memory."""
        super().__init__()
        self.register_buffer("dense_OI", dense_OI, persistent=False)
        self.weight_IO = nn.Parameter(weight_IO, requires_grad=False)
        self.bias_O = None if bias_O is None else nn.Parameter(bias_O, requires_grad=False)
        self.inputs, self.outputs = weight_IO.shape
        self.mask, self.counters, self.route = mask, counters, route
        self.place = mask.add_reader(route, self.weight_IO, self.bias_O)

    def forward(self, x: Tensor) -> Tensor:
        counters = self.counters
        tokens = counters.sequences * counters.length
        most = 1 if counters.totals_3 is None or counters.length > 1 else MAX_SEQUENCES
        if self.route is None or tokens > most or x.numel() != tokens * self.inputs:
            dense_OI = self.weight_IO.t() if self.dense_OI is None else self.dense_OI
            return nn.functional.linear(self._prepared(x), dense_OI, self.bias_O)
        y_O, read = self.mask.product(x, self.place, counters.totals_3)
        if read is not None:
            counters.calls[self.route] += 1
            counters.count(self.inputs * self.outputs, read * self.outputs)
        return y_O.view(*x.shape[:-1], self.outputs)

    def _prepared(self, x: Tensor) -> Tensor:
        """The input of the dense product: tokens that count as decoded are masked unless a kernel
        exists for them.
        """
        counters, rule = self.counters, self.mask.rule
        decoding = counters.phase == "decode"
        if decoding and self.route is not None:  # several sequences at once
            counters.fallbacks += 1
            counters.count(x.numel() * self.outputs, x.numel() * self.outputs)
            return x
        first, decoded = (0, 0) if decoding else (counters.first, counters.decoded)
        counters.fallbacks += counters.phase == "prefill"
        if first == x.shape[-2]:
            return x
        masked = self.mask.masked(x, first)
        counters.masked += 1
        counted = masked[..., decoded:, :]
        kept = (
            rule.kept * (counted.numel() // self.inputs)
            if rule.threshold is None
            else int(counted.count_nonzero())
        )
        counters.count(counted.numel() * self.outputs, kept * self.outputs)
        return masked


def skip(
    lm: LanguageModel,
    model: nn.Module,
    rules: Sequence[Sequence[InputRule]],
    *,
    kernel: Kernel | None,
    prefill: float,
    rotations: Sequence[Tensor] | None = None,
    weights_hash: str,
) -> LanguageModel:
    """`lm` with a copy of `model` whose layers select their inputs by `rules[layer][input]`.

    `model` has its matrices in memory as [inputs, outputs]. `kernel` is `None` for masked dense
    products, which only simulate sparsity; each layer's rotation, where given, is then applied to
    h1 and h3 and undone. Raises `Unsupported`.
    """
    parts, made = module_names(lm.model), clone_shared(model)
    counters = SparsityCounters(prefill, lm.scoring, model, skips=kernel is not None)
    device = next(model.parameters()).device
    if kernel is not None and device.type == "cuda":
        counters.totals_3 = torch.zeros(3, dtype=torch.int64, device=device)
    for index, (layer, four) in enumerate(
        zip(architectures.layers(made, parts), rules, strict=True)
    ):
        masks: dict[Any, SharedInputMask] = {}
        for place, (names, rule) in enumerate(zip(parts.readers, four, strict=True)):
            rotation_DD = None if rotations is None or place in (1, 3) else rotations[index]
            # With one norm for both, h1 and h3 are the same tensor.
            key = rule if place in (0, 2) and len(parts.norms) == 1 else place
            for name in names:
                # An expert reads its own tokens only.
                own = name if parts.experts and place > 1 else key
                own_rule = rule
                if isinstance(rule.weighted, tuple):
                    own_rule = rule._replace(weighted=name.endswith(rule.weighted))
                    own = name if own_rule.weighted else own
                mask = masks.setdefault(own, SharedInputMask(own_rule, rotation_DD))
                part = layer.get_submodule(name)
                weight_IO, bias_O = architectures.matrix_and_bias(part)
                route = None if kernel is None else select_route(kernel, weight_IO, rule.kept)
                dense_OI = getattr(part, "dense_OI", None)
                linear = RowSkippingLinear(
                    weight_IO, bias_O, mask, counters, route, dense_OI=dense_OI
                )
                architectures.replace(layer, name, linear)
        if parts.experts:
            cast(Experts, layer.get_submodule(parts.experts)).gathered = counters.gathered
        if "adapter" in dict(layer.named_children()) and kernel in ("auto", "cpp"):
            # An adapter reads every input; this dense product uses all cores for it, which torch's
            # may not.
            adapter = layer.get_submodule("adapter")
            weight_IO, _ = architectures.matrix_and_bias(adapter)
            if unfit("cpp", weight_IO) is None:
                every = SharedInputMask(InputRule(len(weight_IO)))
                layer.adapter = RowSkippingLinear(
                    weight_IO,
                    None,
                    every,
                    SparsityCounters(0.0),
                    "cpp",
                    dense_OI=getattr(adapter, "dense_OI", None),
                )
    made.register_forward_pre_hook(counters.enter, with_kwargs=True)
    return dataclasses.replace(
        lm,
        model=made,
        weights_hash=weights_hash,
        counters=(*lm.counters, counters),
        skipped=counters.skipped,
    )


def skip_in_native_basis(
    lm: LanguageModel,
    rules: Sequence[Sequence[InputRule]],
    params: SkippingParams,
    method: str,
    version: int,
) -> LanguageModel:
    """`skip`, for a version of a method, on the weights of `lm` as they are, but for their place in
    memory. Raises `Unsupported`.
    """
    model = shared(lm, "laid out", lambda: lay_out(lm.model))
    made_of = {"origin": lm.weights_hash, method: params, "version": version}
    return skip(
        lm, model, rules, kernel=params.kernel, prefill=params.prefill, weights_hash=digest(made_of)
    )
