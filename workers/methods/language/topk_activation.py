"""Keeps the largest inputs of every matrix of the layers, in the basis they have, and reads no
other rows of it.

The number of inputs kept is the same for every token; matrices that share an input share the
selection. With `sparsity: 0` it is the same code on all rows: the dense control of the kernels.
"""

from typing import TYPE_CHECKING

from workers.activation_sparsity import Coefficients, SkippingParams, kept_of_each

if TYPE_CHECKING:
    from workers.models.language import LanguageModel

MODALITY = "language"
PAPER = (
    "Top-k by magnitude in the native basis, the baseline of Liu, Xu, Wu, Chen, Zhou, Tao, Hu, La"
    " RoSA, ICML 2025, arXiv 2507.01299"
)
VERSION = 2


class Params(SkippingParams):
    """How much, and where."""

    allocation: Coefficients | None = None


macs, skipped, refuses = Params.no_macs, Params.skipped, Params.unfit
NEUTRAL = Params(sparsity=0)
EXAMPLES = (
    Params(sparsity=0.5),
    Params(sparsity=0.4, allocation=(0.8, 1.2, 0.8, 1.2)),
    Params(sparsity=0.25, kernel="embedding_bag"),
)


def apply(lm: "LanguageModel", params: Params) -> "LanguageModel":
    """Raises `Unsupported` where the requested kernel cannot run, or another method has changed the
    matrices.
    """
    from workers.activation_sparsity.sparse_linear import InputRule, skip_in_native_basis

    four = [InputRule(count) for count in kept_of_each(lm.network, params.shares(lm.network))]
    return skip_in_native_basis(lm, [four] * lm.network.layers, params, "topk_activation", VERSION)
