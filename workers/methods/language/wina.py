"""Keeps the inputs of every matrix whose magnitude times the norm of the weights that they are
multiplied with is largest, and reads no other rows of it (WINA).

The score of input i is |x_i| times the norm of row i of all matrices that share the input: the norm
of what it adds to their products. With orthogonal rows the error is then the least one. The authors
rotate the stream until the rows of keys and gate are orthogonal; here inputs keep their basis, and
matrices that share an input share the selection. Needs no text. With `sparsity: 0` it is the same
code on all rows.

The authors' code weighs in keys and gate alone, each with its own norms and its own selection; the
matrices of queries, values and output and the MLP's others select by magnitude (`weights: code`).
"""

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from workers.activation_sparsity import Coefficients, SkippingParams, kept_of_each

if TYPE_CHECKING:
    from sweeps.model.method import LanguageNetwork
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
    weights: Literal["all", "code"] = Field(
        default="all",
        description="Which matrices weigh inputs by norms: all, or those of the authors' code",
    )

    def unfit(self, network: "LanguageNetwork") -> str | None:
        if self.weights == "code" and not network.gated:
            return f"weights: code weighs inputs of a gate, and {network.name} has none; use all"
        return super().unfit(network)


macs, skipped, refuses = Params.no_macs, Params.skipped, Params.unfit
NEUTRAL = Params(sparsity=0)
EXAMPLES = (
    Params(sparsity=0.5),
    Params(sparsity=0.4, allocation=(0.8, 1.2, 0.8, 1.2), weights="code"),
)
_WEIGHED_BY_CODE = ("k_proj", "gate_proj")


def apply(lm: "LanguageModel", params: Params) -> "LanguageModel":
    """Raises `Unsupported` where the requested kernel cannot run, another method has changed the
    matrices, or with `weights: code` keys or gate are no matrices of their own.
    """
    from workers.activation_sparsity.sparse_linear import InputRule, skip_in_native_basis
    from workers.errors import Unsupported
    from workers.models.architectures import module_names

    names = [name for names in module_names(lm.model).readers for name in names]
    by_code = params.weights == "code"
    for end in _WEIGHED_BY_CODE if by_code else ():
        if not any(name.endswith(end) for name in names):
            raise Unsupported(
                f"weights: code weighs inputs of {end}, and no matrix of {lm.network.name} has that"
                " name; use all"
            )
    counts = kept_of_each(lm.network, params.shares(lm.network))
    four = [InputRule(count, weighted=_WEIGHED_BY_CODE if by_code else True) for count in counts]
    return skip_in_native_basis(lm, [four] * lm.network.layers, params, "wina", VERSION)
