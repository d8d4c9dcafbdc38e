"""Counts the MACs of a causal language model whose architecture is not described, by running a few
single tokens of it.
"""

from typing import Any

import numpy as np
import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers.cache_utils import DynamicCache

from workers.models.share_weights import clone_shared

WEIGHTS = ("aten.mm", "aten.addmm")
"""Products with a matrix of weights; those of attention are products of batches."""
FIRST = 2
"""The first position that is counted: some layers process a sequence's first token like a
prompt."""


class MacCounter:
    """MACs of a token at each position: matrix products counted by torch, with eager attention and
    eager experts.

    Between the edges of sliding windows the cost is linear in the position, so that a few tokens
    suffice. Attention over a prompt counts as if its tokens were read one by one (causal), with one
    head product, as in `LanguageNetwork.macs`. Latent attention (MLA) keeps latents and expands
    those of all tokens so far whenever the model runs: a prompt's once, and each decoded token's
    with all before it.
    """

    def __init__(self, model: Any) -> None:
        self.model = model
        head = self.model.get_output_embeddings()
        self.head_macs: int = 0 if head is None else head.weight.numel()
        self._at: dict[int, tuple[int, int]] = {}

    def macs(self, prompt: int, decoded: int) -> int:
        """MACs of one sequence: `prompt` tokens at once, only the last through the head, then
        `decoded` tokens one by one.
        """
        last = max(prompt + decoded, 1)
        places = sorted(
            {place for place in self._windows() if place < last}
            | {FIRST, FIRST + 1, max(last, FIRST + 1)}
        )
        found = np.array([self._token(place) for place in places])
        # of the token at position 1, then at each of `places`
        costs_P2 = np.vstack((2 * found[0] - found[1], found))
        attention, weights = (
            np.interp(np.arange(1, last + 1), [1, *places], costs) for costs in costs_P2.T
        )
        weights[:prompt] = self.weights_read
        return round(float(attention.sum() + weights.sum())) - (last - 1 - decoded) * self.head_macs

    @property
    def weights_read(self) -> int:
        """Weights that one decoded token is multiplied with, the head's included; each once,
        however many latents it expands.
        """
        return 2 * self._token(FIRST)[1] - self._token(FIRST + 1)[1]

    def _windows(self) -> set[int]:
        layers = DynamicCache(config=self.model.config).layers
        return {
            int(window)
            for layer in layers
            if (window := getattr(layer, "sliding_window", None)) and window > FIRST
        }

    def _token(self, place: int) -> tuple[int, int]:
        """MACs of the token at position `place` (from 1 on): those of attention, and those with
        weights, the head's included.
        """
        if place not in self._at:
            model: Any = clone_shared(self.model)
            cache = DynamicCache(config=model.config)
            tokens_BT = torch.zeros((1, place), dtype=torch.long, device=model.device)
            with torch.inference_mode():
                model(input_ids=tokens_BT[:, :-1], cache=cache, use_cache=True, logits_to_keep=1)
                if model._can_set_attn_implementation():
                    model.set_attn_implementation("eager")
                model.set_experts_implementation("eager")
                with FlopCounterMode(display=False) as counter:
                    model(
                        input_ids=tokens_BT[:, -1:], cache=cache, use_cache=True, logits_to_keep=1
                    )
            by_product = {
                str(product): flops // 2
                for product, flops in counter.get_flop_counts()["Global"].items()
            }
            weights = sum(by_product.get(product, 0) for product in WEIGHTS)
            self._at[place] = sum(by_product.values()) - weights, weights
        return self._at[place]
