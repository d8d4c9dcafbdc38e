"""Keeps the largest inputs of every matrix of the layers, in the basis they have, and reads no other rows of it.

The competitor of `larosa` without a rotation: exactly so many inputs of each token, chosen by magnitude, one choice for all
matrices that share an input. With `sparsity: 0` it is the same code on all rows: the dense control of the kernels.
"""

from typing import TYPE_CHECKING

from sweeps.geometry.llm_geometry import LanguageNetwork
from workers.activation_sparsity import sparsity_params
from workers.activation_sparsity.sparsity_params import Coefficients, SkippingParams

if TYPE_CHECKING:
    from workers.models.language import LanguageModel

MODALITY = "language"
PAPER = (
    "Top-k by magnitude in the native basis, the baseline of Liu, Xu, Wu, Chen, Zhou, Tao, Hu, La RoSA, ICML 2025, arXiv 2507.01299"
)
VERSION = 2
EAGER_ONLY = sparsity_params.EAGER_ONLY
ONE_SEQUENCE = True


class Params(SkippingParams):
    """How much, and where."""

    allocation: Coefficients | None = None
    """Coefficients of the sparsities of h1, h2, h3 and h4, scaled so that as many MACs are left out as without them."""


NEUTRAL = Params(sparsity=0)
EXAMPLES = (
    Params(sparsity=0.5),
    Params(sparsity=0.4, allocation=(0.8, 1.2, 0.8, 1.2)),
    Params(sparsity=0.25, kernel="embedding_bag"),
)


def macs(params: Params, network: LanguageNetwork, prompt: int, decoded: int) -> int:  # noqa: ARG001 - comparing multiplies nothing
    return 0


def skipped(params: Params, network: LanguageNetwork, tokens: int) -> int:
    """Of every decoded token, exactly."""
    return tokens * sparsity_params.skipped_macs(network, sparsity_params.spread(params.sparsity, params.allocation, network))


def refuses(params: Params, network: LanguageNetwork) -> str | None:
    return sparsity_params.refuses(params.sparsity, params.allocation, network)


def apply(speaker: "LanguageModel", params: Params) -> "LanguageModel":
    """Raises `Unsupported` where the kernel asked for cannot run, or another method has changed the matrices."""
    from sweeps.identity import digest
    from workers.activation_sparsity.rotation_fusion import lay_out, shared
    from workers.activation_sparsity.sparse_linear import Largest, skip

    network = speaker.network
    shares = sparsity_params.spread(params.sparsity, params.allocation, network)
    four = [
        Largest(sparsity_params.kept(one.width, share)) for one, share in zip(sparsity_params.inputs(network), shares, strict=True)
    ]
    model = shared(speaker, "laid out", lambda: lay_out(speaker.model, network))
    weights_hash = digest({"origin": speaker.weights_hash, "topk_activation": params, "version": VERSION})
    return skip(speaker, model, [four] * network.layers, kernel=params.kernel, prefill=params.prefill, weights_hash=weights_hash)
