"""Calibration of a language model on a text: rotations, thresholds and allocations, cached by the
hash of their sources.

Shapes: L layers, D width of the stream, I inputs of a matrix, T tokens of a window, N tokens of
all.
"""

import json
import logging
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, cast

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from sweeps.model.identity import canonical, digest
from sweeps.model.method import LanguageNetwork
from workers.activation_sparsity import Coefficients
from workers.activation_sparsity.rotation_fusion import fuse, lay_out, shared
from workers.cache import cached
from workers.data.text import corpus
from workers.errors import Unsupported
from workers.models import architectures
from workers.models.architectures import ModuleNames, module_names
from workers.models.language import LanguageModel

_LOG = logging.getLogger(__name__)
WINDOW_TOKENS = 512
"""Tokens that the model reads at once, or as many as it has positions."""
DAMPING = 0.01
"""Share of the mean variance that is added to the variance of every direction, as in the authors'
code."""
BIN_SHIFT, BINS = 16, 1 << 15
"""A histogram over the upper 15 bits of magnitudes in float32: bins are at most 0.8 % wide."""
FACTORS = (0.8, 1.25)
"""Factors that the search for an allocation tries on a coefficient."""
SEARCHED = 4
"""Windows on which the loss of each candidate of that search is computed."""


def calibration_windows(
    lm: LanguageModel, data: str, tokens: int
) -> tuple[dict[str, Any], list[Tensor]]:
    """The first `tokens` tokens of the text's training part, its documents in a fixed random order,
    as windows [1, T]; and what identifies them and their reader.

    Raises `Unsupported` when the text is too short.
    """
    text = corpus(data)
    documents = list(text.train)
    random.Random(0).shuffle(documents)  # noqa: S311 - an order that must be repeatable
    found: list[int] = []
    for document in documents:
        found += lm.tokenizer.encode(document + "\n\n")
        if len(found) >= tokens:
            break
    else:
        raise Unsupported(
            f"calibration: the text {data} has {len(found)} tokens and {tokens} are requested; "
            "give a longer one, or a smaller calibration_tokens"
        )
    parameter = next(lm.model.parameters())
    window = min(WINDOW_TOKENS, lm.network.positions, tokens)
    reading = {
        "origin": lm.weights_hash,
        "dtype": str(parameter.dtype),
        "text": text.hash,
        "tokens": tokens,
        "window": window,
        "version": 1,  # raised when calibration changes in a way that the rest does not show
    }
    ids_1N = torch.tensor(found[:tokens], device=parameter.device)[None]
    return reading, [
        part_1T for part_1T in torch.split(ids_1N, window, dim=1) if part_1T.shape[1] > 1
    ]


def rotations(lm: LanguageModel, data: str, tokens: int) -> list[Tensor]:
    """For each layer the eigenvectors of the covariance of its norms' outputs, without gains, as
    columns [D, D] of float32.

    La RoSA, arXiv 2507.01299, section 4.1: one rotation serves the attention and the MLP of a
    layer. The covariance is the mean of both inputs', damped; eigenvectors of the largest
    eigenvalues come first. Raises `Unsupported` when the text is too short.
    """
    reading, parts = calibration_windows(lm, data, tokens)

    def compute() -> dict[str, Tensor]:
        covariances = _covariances(fuse(lm.model, lm.network, None), module_names(lm.model), parts)
        return {
            str(layer): _eigenvectors(covariance_DD)
            for layer, covariance_DD in enumerate(covariances)
        }

    stored = _cached_tensors("rotations", {"reading": reading, "damping": DAMPING}, compute)
    return [stored[str(layer)].to(parts[0].device) for layer in range(lm.network.layers)]


def random_rotations(network: LanguageNetwork, device: torch.device | None = None) -> list[Tensor]:
    """For each layer a random orthogonal matrix [D, D]: QR of normal deviates, float32."""
    generator, D = torch.Generator().manual_seed(0), network.width
    normal = partial(torch.randn, D, D, dtype=torch.float64, generator=generator)
    return [torch.linalg.qr(normal())[0].float().to(device) for _ in range(network.layers)]


def _covariances(model: nn.Module, names: ModuleNames, parts: Sequence[Tensor]) -> list[Tensor]:
    """Mean of x^T x over tokens and over h1 and h3, layer by layer, [D, D] in float64."""
    sums: dict[int, Tensor] = {}

    def add(layer: int, _place: int, x_NI: Tensor) -> None:
        wide_NI = x_NI.float()
        product_DD = (wide_NI.T @ wide_NI).double()
        sums[layer] = sums[layer] + product_DD if layer in sums else product_DD

    places = (0, 2) if len(names.norms) > 1 else (0,)
    with _watched(model, names, places, add):
        _read(model, parts)
    seen = len(places) * sum(part_1T.numel() for part_1T in parts)
    return [sums[layer] / seen for layer in range(len(sums))]


def _eigenvectors(covariance_DD: Tensor) -> Tensor:
    damping = DAMPING * covariance_DD.diagonal().mean()
    values_D, vectors_DD = torch.linalg.eigh(
        covariance_DD + damping * torch.eye(len(covariance_DD)).to(covariance_DD)
    )
    ordered_DD: Tensor = vectors_DD[:, values_D.argsort(descending=True)]
    return ordered_DD.float().cpu().contiguous()


def thresholds(
    lm: LanguageModel, data: str, tokens: int, shares: Sequence[float]
) -> list[list[float]]:
    """For each layer the magnitudes below which a share of each of its four inputs lies, by the
    text's histogram: [L][4].

    TEAL, arXiv 2408.14690, section 4.1. Raises `Unsupported` when the text is too short.
    """
    reading, parts = calibration_windows(lm, data, tokens)

    def compute() -> dict[str, Tensor]:
        counts = torch.zeros(lm.network.layers, 4, BINS, dtype=torch.int64)

        def add(layer: int, place: int, x_NI: Tensor) -> None:
            bits = (x_NI.float().abs().contiguous().view(torch.int32) >> BIN_SHIFT).flatten()
            counts[layer, place] += torch.bincount(bits, minlength=BINS).cpu()

        model = shared(lm, "laid out", lambda: lay_out(lm.model))
        with _watched(model, module_names(lm.model), range(4), add):
            _read(model, parts)
        return {"counts": counts}

    stored = _cached_tensors("histograms", {"reading": reading}, compute)["counts"]
    return [
        [_quantile(counts, share) for counts, share in zip(four, shares, strict=True)]
        for four in stored
    ]


def _cached_tensors(
    name: str, key: dict[str, Any], compute: Callable[[], dict[str, Tensor]]
) -> dict[str, Tensor]:
    """The tensors that `compute` gives, from the cache or computed now; their file's metadata holds
    the key.
    """

    def make(file: Path) -> None:
        started = time.monotonic()
        save_file(compute(), file, metadata={"breakeven": canonical(key)})
        _LOG.info("%s after %.0f s", file.name, time.monotonic() - started)

    return load_file(cached(f"{name}-{digest(key)}.safetensors", make))


def _quantile(counts: Tensor, share: float) -> float:
    """The magnitude below which `share` of the counted ones lie, if values are uniform within a
    bin.
    """
    if share <= 0:
        return 0.0
    wanted, below = share * float(counts.sum()), counts.cumsum(0).double()
    place = int(torch.searchsorted(below, torch.tensor(wanted, dtype=torch.float64)))
    bits = torch.tensor([place, place + 1], dtype=torch.int32) << BIN_SHIFT
    first, last = bits.view(torch.float32).tolist()
    before = float(below[place - 1]) if place else 0.0
    return float(first + (last - first) * (wanted - before) / float(counts[place]))


def coefficients(
    lm: LanguageModel,
    data: str,
    tokens: int,
    recipe: object,
    arm: Callable[[Coefficients], LanguageModel],
) -> Coefficients:
    """Coefficients of the sparsities of h1, h2, h3 and h4 with the lowest loss on the text,
    searched one after the other.

    After algorithm 1 of La RoSA, arXiv 2507.01299; every candidate leaves out as many MACs. `arm`
    builds the model of a candidate, `recipe` identifies how. Raises `Unsupported` when the text is
    too short.
    """
    reading, parts = calibration_windows(lm, data, tokens)
    scored = parts[-SEARCHED:]

    def make(file: Path) -> None:
        best: Coefficients = (1.0, 1.0, 1.0, 1.0)
        losses = {best: _loss(arm(best), scored)}
        for place in range(4):
            for factor in FACTORS:
                trial = cast(
                    Coefficients, (*best[:place], best[place] * factor, *best[place + 1 :])
                )
                losses[trial] = _loss(arm(trial), scored)
            best = min(losses, key=losses.__getitem__)
        found = {"coefficients": best, "losses": list(losses.items())}
        file.write_text(json.dumps(found), encoding="utf-8")

    name = digest({"reading": reading, "recipe": recipe, "searched": SEARCHED, "factors": FACTORS})
    found = json.loads(cached(f"allocation-{name}.json", make).read_text(encoding="utf-8"))
    return cast(Coefficients, tuple(found["coefficients"]))


def _loss(lm: LanguageModel, parts: Sequence[Tensor]) -> float:
    """Negative log likelihood of the next token, in nats per token."""
    total = count = 0.0
    with torch.no_grad():
        for part_1T in parts:
            logits_TV = lm.scored_logits(part_1T, 0)[0, :-1].float()
            total += float(nn.functional.cross_entropy(logits_TV, part_1T[0, 1:], reduction="sum"))
            count += len(logits_TV)
    return total / count


def _read(model: Any, parts: Sequence[Tensor]) -> None:
    with torch.no_grad():
        for part_1T in parts:
            model(part_1T, use_cache=False, logits_to_keep=1)


@contextmanager
def _watched(
    model: nn.Module,
    names: ModuleNames,
    places: Sequence[int],
    see: Callable[[int, int, Tensor], None],
) -> Iterator[None]:
    """Pass every layer's inputs at `places`, as [N, I], to `see` while the block runs."""
    with ExitStack() as hooks:
        for index, layer in enumerate(architectures.layers(model, names)):
            for place in places:

                def look(
                    _module: nn.Module,
                    given: tuple[Tensor, ...],
                    index: int = index,
                    place: int = place,
                ) -> None:
                    see(index, place, given[0].detach().flatten(0, -2))

                for name in names.watched(place):
                    reader = layer.get_submodule(name)
                    hooks.enter_context(reader.register_forward_pre_hook(look))
        yield
