"""Skips inputs of every matrix whose magnitude is below a threshold, and reads no rows for them
(TEAL).

Thresholds come from a histogram of each input on a text, in the basis that the inputs have, so that
the requested share is reached on average only; the share that was skipped is measured.
"""

from typing import TYPE_CHECKING

from workers.activation_sparsity import CalibratedParams, Coefficients, kept_of_each

if TYPE_CHECKING:
    from workers.models.language import LanguageModel

MODALITY = "language"
PAPER = (
    "Liu, Ponnusamy, Cai, Guo, Kim, Athiwaratkun, Training-Free Activation Sparsity in Large"
    " Language Models, ICLR 2025, arXiv 2408.14690"
)
VERSION = 2


class Params(CalibratedParams):
    """How much, and where."""

    allocation: Coefficients | None = None


macs, skipped, refuses = Params.no_macs, Params.skipped, Params.unfit
NEUTRAL = Params(sparsity=0, calibration_tokens=512)
EXAMPLES = (
    Params(sparsity=0.5, calibration_tokens=512),
    Params(sparsity=0.4, allocation=(0.8, 1.2, 0.8, 1.2), calibration_tokens=512),
)


def apply(lm: "LanguageModel", params: Params) -> "LanguageModel":
    """Raises `Unsupported` where the text is too short, the kernel cannot run, or another method
    has changed the matrices.
    """
    from workers.activation_sparsity import calibrate
    from workers.activation_sparsity.sparse_linear import InputRule, skip_in_native_basis

    network = lm.network
    shares = params.shares(network)
    limits = calibrate.thresholds(lm, params.data, params.calibration_tokens, shares)
    counts = kept_of_each(network, shares)
    rules = [
        [InputRule(count, limit) for limit, count in zip(four, counts, strict=True)]
        for four in limits
    ]
    if params.sparsity == 0:
        rules = [[InputRule(count) for count in counts] for _ in limits]
    return skip_in_native_basis(lm, rules, params, "teal", VERSION)
