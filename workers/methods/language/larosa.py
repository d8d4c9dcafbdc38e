"""Rotates the inputs of each layer, keeps the largest inputs of every matrix, and reads no other
rows of it (La RoSA).

The rotations are eigenvectors of the inputs' covariance on a text; in that basis few directions
hold most of an input. `absorbed`: norm gains and rotations are fused into the weights, with an
adapter between two layers. `online`: each input is rotated, made sparse and rotated back, and every
product stays dense: the same quality, and slower than the unmodified model. The inputs of the last
matrices of attention and MLP are not rotated. Adapters and kernels run at `sparsity: 0` too.
"""

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from sweeps.model.method import LanguageNetwork
from workers.activation_sparsity import CalibratedParams, Coefficients, kept_of_each, spread

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

    from workers.models.language import LanguageModel

MODALITY = "language"
PAPER = (
    "Liu, Xu, Wu, Chen, Zhou, Tao, Hu, La RoSA: Enhancing LLM Efficiency via Layerwise Rotated"
    " Sparse Activation, ICML 2025, arXiv 2507.01299"
)
VERSION = 2


class Params(CalibratedParams):
    """How much, where, in which form."""

    form: Literal["absorbed", "online"] = Field(
        default="absorbed", description="In the weights, or rotated forth and back"
    )
    rotation: Literal["calibrated", "random"] = Field(
        default="calibrated", description="random: of the same cost, and needs no text"
    )


def refuses(params: Params, network: LanguageNetwork) -> str | None:
    """Why rows cannot be skipped, or the layers cannot work on a rotated stream."""
    if network.rotation_refusal is not None:
        return (
            f"the layers of {network.name}, a {network.architecture}, cannot work on a rotated"
            f" stream: {network.rotation_refusal}"
        )
    return params.unfit(network)


NEUTRAL = Params(sparsity=0, calibration_tokens=512)
EXAMPLES = (
    Params(sparsity=0.5, calibration_tokens=512),
    Params(sparsity=0.5, form="online", calibration_tokens=512),
    Params(sparsity=0.4, allocation=(0.8, 1.2, 0.8, 1.2), rotation="random"),
    Params(sparsity=0.4, allocation="calibrated", calibration_tokens=512),
)


def macs(params: Params, network: LanguageNetwork, prompt: int, decoded: int) -> int:
    """The adapters, for every token; online, two rotations of each h1 and h3 that is made sparse.

    These two are one input where one norm feeds both.
    """
    if params.form == "absorbed":
        return (prompt + decoded) * (network.layers - 1) * network.width**2
    one_norm = network.one_norm and params.allocation is None
    return (
        (round(params.prefill * prompt) + decoded)
        * network.layers
        * (1 if one_norm else 2)
        * 2
        * network.width**2
    )


def skipped(params: Params, network: LanguageNetwork, tokens: int) -> int:
    """Of every decoded token, exactly; with a calibrated allocation up to the rounding of its four
    counts; online none.
    """
    return 0 if params.form == "online" else params.skipped(network, tokens)


def apply(lm: "LanguageModel", params: Params) -> "LanguageModel":
    """Raises `Unsupported` where the text is too short, the kernel cannot run, or another method
    has changed the matrices.
    """
    from sweeps.model.identity import digest
    from workers.activation_sparsity import calibrate
    from workers.activation_sparsity.rotation_fusion import fuse, shared
    from workers.activation_sparsity.sparse_linear import InputRule, skip

    network, like = lm.network, next(lm.model.parameters())

    def rotations() -> "list[Tensor]":
        if params.rotation == "random":
            return calibrate.random_rotations(network, like.device)
        return calibrate.rotations(lm, params.data, params.calibration_tokens)

    def rules(coefficients: Coefficients | None) -> list[list[InputRule]]:
        shares = spread(params.sparsity, coefficients, network)
        return [[InputRule(count) for count in kept_of_each(network, shares)]] * network.layers

    recipe = {"rotation": params.rotation, "data": params.data, "tokens": params.calibration_tokens}

    def absorbed() -> "Module":
        return shared(lm, digest(recipe), lambda: fuse(lm.model, network, rotations()))

    coefficients = params.coefficients
    if params.allocation == "calibrated":
        base = absorbed()
        coefficients = calibrate.coefficients(
            lm,
            params.data,
            params.calibration_tokens,
            {**recipe, "sparsity": params.sparsity},
            lambda trial: skip(
                lm, base, rules(trial), kernel=None, prefill=0.0, weights_hash=lm.weights_hash
            ),
        )
    online = params.form == "online"
    return skip(
        lm,
        shared(lm, "folded", lambda: fuse(lm.model, network, None)) if online else absorbed(),
        rules(coefficients),
        kernel=None if online else params.kernel,
        prefill=params.prefill,
        rotations=[rotation_DD.to(like.dtype) for rotation_DD in rotations()] if online else None,
        weights_hash=digest({"origin": lm.weights_hash, "larosa": params, "version": VERSION}),
    )
