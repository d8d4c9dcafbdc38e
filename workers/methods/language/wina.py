"""Keeps the inputs of every matrix whose magnitude times the norm of the weights that they are
multiplied with is largest, and reads no other rows of it (WINA).

The score of input i is |x_i| times the norm of row i of all matrices that share the input: the norm
of what it adds to their products. With orthogonal rows the error is then the least one. The authors
rotate the stream until the rows of keys and gate are orthogonal; here inputs keep their basis, and
matrices that share an input share the selection. Needs no text. With `sparsity: 0` it is the same
code on all rows.
"""

from typing import TYPE_CHECKING

from workers.activation_sparsity import Coefficients, SkippingParams, kept_of_each

if TYPE_CHECKING:
    from workers.models.language import LanguageModel

MODALITY = "language"
PAPER = (
    "Chen, Zhao, Ko, Banbury, Zhuang, Liang, Cameron, Chen, WINA: Weight Informed Neuron Activation"
    " for Accelerating Large Language Model Inference, ICLR 2026, arXiv 2505.19427"
)
VERSION = 1


class Params(SkippingParams):
    """How much, and where."""

    allocation: Coefficients | None = None


macs, skipped, refuses = Params.no_macs, Params.skipped, Params.unfit
NEUTRAL = Params(sparsity=0)
EXAMPLES = (Params(sparsity=0.5), Params(sparsity=0.4, allocation=(0.8, 1.2, 0.8, 1.2)))


def apply(lm: "LanguageModel", params: Params) -> "LanguageModel":
    """Raises `Unsupported` where the requested kernel cannot run, or another method has changed the
    matrices.
    """
    from workers.activation_sparsity.sparse_linear import InputRule, skip_in_native_basis

    counts = kept_of_each(lm.network, params.shares(lm.network))
    four = [InputRule(count, weighted=True) for count in counts]
    return skip_in_native_basis(lm, [four] * lm.network.layers, params, "wina", VERSION)
