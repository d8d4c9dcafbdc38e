"""Leaves out inputs of every matrix whose magnitude is below a threshold, and reads no rows for them (TEAL).

Thresholds come from a histogram of each input on a text, in the basis that the inputs have, so that the share that is left out is
met on the mean only; what it really was is measured. The kernels are those of `larosa`.
"""

from typing import TYPE_CHECKING

from pydantic import Field

from sweeps.geometry.llm_geometry import LanguageNetwork
from workers.activation_sparsity import sparsity_params
from workers.activation_sparsity.sparsity_params import CalibratedParams, Coefficients

if TYPE_CHECKING:
    from workers.activation_sparsity.sparse_linear import Rule
    from workers.models.language import LanguageModel

MODALITY = "language"
PAPER = (
    "Liu, Ponnusamy, Cai, Guo, Kim, Athiwaratkun, Training-Free Activation Sparsity in Large Language Models, "
    "ICLR 2025, arXiv 2408.14690"
)
VERSION = 2
EAGER_ONLY = sparsity_params.EAGER_ONLY
ONE_SEQUENCE = True


class Params(CalibratedParams):
    """How much, and where."""

    allocation: Coefficients | None = Field(
        default=None,
        description="Coefficients of the sparsities of h1, h2, h3 and h4, scaled so that as many MACs are left out as without them",
    )


NEUTRAL = Params(sparsity=0, calibration_tokens=512)
EXAMPLES = (
    Params(sparsity=0.5, calibration_tokens=512),
    Params(sparsity=0.4, allocation=(0.8, 1.2, 0.8, 1.2), calibration_tokens=512),
)


def macs(params: Params, network: LanguageNetwork, prompt: int, decoded: int) -> int:  # noqa: ARG001 - comparing multiplies nothing
    return 0


def skipped(params: Params, network: LanguageNetwork, tokens: int) -> int:
    """What is expected of every decoded token; the metric `achieved_sparsity` says what was left out."""
    return tokens * sparsity_params.skipped_macs(network, sparsity_params.spread(params.sparsity, params.allocation, network))


def refuses(params: Params, network: LanguageNetwork) -> str | None:
    return sparsity_params.refuses(params.sparsity, params.allocation, network)


def apply(speaker: "LanguageModel", params: Params) -> "LanguageModel":
    """Raises `Unsupported` where the text is too short, the kernel cannot run, or another method has changed the matrices."""
    from sweeps.identity import digest
    from workers.activation_sparsity import calibrate
    from workers.activation_sparsity.rotation_fusion import lay_out, shared
    from workers.activation_sparsity.sparse_linear import Above, Largest, skip

    network = speaker.network
    shares = sparsity_params.spread(params.sparsity, params.allocation, network)
    limits = calibrate.thresholds(speaker, params.data, params.calibration_tokens, shares)
    counts = [sparsity_params.kept(one.width, share) for one, share in zip(sparsity_params.inputs(network), shares, strict=True)]
    all_of_it = [Largest(one.width) for one in sparsity_params.inputs(network)]
    some: list[list[Rule]] = [[Above(limit, count) for limit, count in zip(four, counts, strict=True)] for four in limits]
    rules: list[list[Rule]] = [[*all_of_it] for _ in limits] if params.sparsity == 0 else some
    model = shared(speaker, "laid out", lambda: lay_out(speaker.model, network))
    weights_hash = digest({"origin": speaker.weights_hash, "teal": params, "version": VERSION})
    return skip(speaker, model, rules, kernel=params.kernel, prefill=params.prefill, weights_hash=weights_hash)
