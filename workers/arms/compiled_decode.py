"""Decoding in steps of fixed shapes: one more token of each sequence over a static cache, compiled,
or captured as a CUDA graph.

Shapes: B sequences, V tokens of the vocabulary.
"""

from abc import ABC, abstractmethod
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from sweeps.geometry.model_families import LanguageModels
from sweeps.model.condition import Condition
from workers.errors import Unsupported
from workers.kv_caches import make_cache
from workers.models.language import Inputs, LanguageModel, last_logits
from workers.models.runtime import Captured, alone

if TYPE_CHECKING:
    from transformers.cache_utils import Cache


def check_runtime(condition: Condition) -> None:
    """Raises `Unsupported` where a language model cannot be decoded by the condition's runtime."""
    runtime = condition.runtime
    if runtime == "cudagraph" and condition.device != "cuda":
        raise Unsupported(
            f"runtime cudagraph needs a CUDA device, and this arm runs on {condition.device}"
        )
    if (reason := LanguageModels({}).runtime_problem(condition)) is not None:
        raise Unsupported(reason)


class Steps(ABC):
    """The steps of one arm. What is compiled or captured is bound to the memory of its cache, so
    that every run gets the same one.

    Raises `Unsupported` where a layer's cache changes its shapes all the same, as with a sliding
    window.
    """

    def __init__(self, language_model: LanguageModel) -> None:
        from transformers.cache_utils import StaticLayer

        for index, layer in enumerate(make_cache("static", language_model, 1, 1).layers):
            if type(layer) is not StaticLayer:
                raise Unsupported(
                    f"layer {index} keeps its tokens in a {type(layer).__name__}, whose steps are"
                    " not all of one shape; write runtime: eager"
                )
        self.language_model = language_model
        self.kept: Cache | None = None
        self._size = (0, 0)

    def cache(self, batch: int, tokens: int) -> "Cache":
        """The empty static cache for `batch` sequences of `tokens` tokens: new at first, later the
        same one, set to zero.
        """
        if self.kept is None or self._size != (batch, tokens):
            self.kept, self._size = (
                make_cache("static", self.language_model, batch, tokens),
                (batch, tokens),
            )
        else:
            self.kept.reset()  # type: ignore[no-untyped-call]
        return self.kept

    @property
    def captured_bytes(self) -> int:
        """Memory of a CUDA graph that the allocator's counters do not show; 0 without one."""
        return 0

    @abstractmethod
    def __call__(self, inputs: Inputs) -> Tensor:
        """The logits [B, V] behind one more token of each sequence, over the cache given last."""


class CompiledSteps(Steps):
    """`torch.compile` of the step as one graph, on its first call; `options` go to
    torch.compile.
    """

    def __init__(self, language_model: LanguageModel, **options: Any) -> None:
        super().__init__(language_model)
        step = partial(last_logits, language_model.model)
        self._compiled = torch.compile(alone(step), dynamic=False, fullgraph=True, **options)

    def __call__(self, inputs: Inputs) -> Tensor:
        return self._compiled(inputs, self.kept)


class CapturedSteps(Steps):
    """The step as a CUDA graph, captured on its first call and replayed; the next call overwrites
    the logits.
    """

    def __init__(self, language_model: LanguageModel) -> None:
        super().__init__(language_model)
        self._captured: Captured | None = None
        self._inputs: dict[str, Tensor] = {}
        self._bound: Cache | None = None

    @property
    def captured_bytes(self) -> int:
        return 0 if self._captured is None else self._captured.unseen_bytes

    def __call__(self, inputs: Inputs) -> Tensor:
        if self._captured is None or self._bound is not self.kept:
            self._capture(inputs)
        assert self._captured is not None
        for name, value in inputs.items():
            self._inputs[name].copy_(value)
        return self._captured.replay()

    def _capture(self, inputs: Inputs) -> None:
        cache: Any = self.kept
        self._bound, self._inputs = cache, {name: value.clone() for name, value in inputs.items()}
        lengths = [layer.cumulative_length.clone() for layer in cache.layers]

        def rewind() -> None:
            for layer, length in zip(cache.layers, lengths, strict=True):
                layer.cumulative_length.copy_(length)

        device = self.language_model.model.device
        self._captured = Captured(
            lambda: last_logits(self.language_model.model, self._inputs, cache),
            device,
            after_warmup=rewind,
        )


def steps(runtime: str, language_model: LanguageModel) -> Steps | None:
    """How the runtime decodes one token after another; `None` for eager, which needs nothing.
    Raises `Unsupported`.
    """
    if runtime == "compile":
        return CompiledSteps(language_model)
    return CapturedSteps(language_model) if runtime == "cudagraph" else None
