"""Parameters, counts and MACs of methods that skip inputs of a language model's matrices; imports
no torch.

Each layer has four inputs whose smallest values can be skipped: h1 enters the attention's queries,
keys and values, h2 its output matrix, h3 the MLP's first matrices, h4 its last (LaRoSA, arXiv
2507.01299, section 4).
"""

from typing import Annotated, Literal, NamedTuple

from pydantic import Field

from sweeps.model.condition import Condition
from sweeps.model.method import LanguageNetwork, Params

Kernel = Literal["auto", "cpp", "embedding_bag", "triton"]
Coefficient = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Coefficients = tuple[Coefficient, Coefficient, Coefficient, Coefficient]
NAMES = ("h1", "h2", "h3", "h4")
EIGEN_MACS = 10
"""Of the eigenvectors of a matrix, for each entry of its cube."""
SEARCH_TOKENS = 9 * 4 * 512
"""Read by the search for an allocation: candidates, windows of each, and tokens of a window."""


class Input(NamedTuple):
    """One of a layer's four inputs."""

    width: int
    outputs: int
    """Columns of all matrices that read it, in total; of experts those that one token uses."""


class SkippingParams(Params):
    """How much is skipped, and by which code."""

    sparsity: float = Field(
        ge=0, lt=1, description="Share of the layers' MACs that a decoded token leaves out"
    )
    prefill: float = Field(
        default=0.0,
        ge=0,
        le=1,
        description=(
            "Share of the prompt's tokens, its last ones, that are made sparse too; they are"
            " computed densely all the same"
        ),
    )
    kernel: Kernel = Field(
        default="auto", description="The product's code; auto: the fastest one in a micro-benchmark"
    )
    allocation: Literal["calibrated"] | Coefficients | None = Field(
        default=None,
        description=(
            "Coefficients of the sparsities of h1, h2, h3 and h4, scaled so that as many MACs are"
            " left out as without them"
        ),
    )

    one_sequence = True
    replaces_matrices = changes_weights = True

    def eager_only(self, condition: Condition, /) -> str | None:
        """Triton's kernels can be captured: their grid depends on shapes alone."""
        if condition.runtime == "cudagraph" and self.kernel in {"auto", "triton"}:
            return None
        return (
            "the row-skipping kernels are called from Python, and which rows they read depends on"
            " values"
        )

    @property
    def coefficients(self) -> Coefficients | None:
        """Those of `allocation` that are known before calibration."""
        return None if self.allocation == "calibrated" else self.allocation

    def shares(self, network: LanguageNetwork) -> tuple[float, ...]:
        """The sparsity of each of the four inputs."""
        return spread(self.sparsity, self.coefficients, network)

    def no_macs(self, network: LanguageNetwork, prompt: int, decoded: int) -> int:  # noqa: ARG002 - selecting multiplies nothing but the inputs themselves
        return 0

    def skipped(self, network: LanguageNetwork, tokens: int) -> int:
        """MACs left out while `tokens` tokens are decoded one by one."""
        return tokens * skipped_by_token(network, self.shares(network))

    def unfit(self, network: LanguageNetwork) -> str | None:
        """Why rows of this network's matrices cannot be skipped with these parameters, or
        `None`.
        """
        if network.rows_refusal is not None:
            return (
                f"rows of matrices are not skipped in {network.name}, a {network.architecture}:"
                f" {network.rows_refusal}"
            )
        name, most = max(zip(NAMES, self.shares(network), strict=True), key=lambda pair: pair[1])
        if most < 1:
            return None
        return (
            f"allocation requests a sparsity of {most:.3g} in {name}, which must stay below 1; give"
            f" {name} a smaller coefficient"
        )


class CalibratedParams(SkippingParams):
    """The same, for methods that are calibrated on a text."""

    data: str = Field(
        default="docs", description="The text, of which the part that is not held out is read"
    )
    calibration_tokens: int = Field(default=8192, ge=64, description="How much of it")

    def preparation_macs(self, network: LanguageNetwork) -> float:
        tokens = self.calibration_tokens + (SEARCH_TOKENS if self.allocation == "calibrated" else 0)
        return tokens * network.token_macs + EIGEN_MACS * network.layers * network.width**3


def inputs(network: LanguageNetwork) -> tuple[Input, Input, Input, Input]:
    """h1, h2, h3 and h4 of one layer."""
    attended, first = (
        network.heads * network.head_dim,
        (2 if network.gated else 1) * network.experts_used * network.mlp_width,
    )
    return (
        Input(network.width, (network.heads + 2 * network.kv_heads) * network.head_dim),
        Input(attended, network.width),
        Input(network.width, first),
        Input(network.mlp_width, network.experts_used * network.width),
    )


def spread(
    sparsity: float, coefficients: Coefficients | None, network: LanguageNetwork
) -> tuple[float, ...]:
    """The sparsity of each of the four inputs: proportional to the coefficients, with as many MACs
    left out as without them.
    """
    if coefficients is None:
        return (sparsity,) * 4
    macs = [one.width * one.outputs for one in inputs(network)]
    scale = (
        sparsity
        * sum(macs)
        / sum(count * own for count, own in zip(macs, coefficients, strict=True))
    )
    return tuple(scale * own for own in coefficients)


def kept_of_each(network: LanguageNetwork, shares: tuple[float, ...]) -> list[int]:
    """The number of inputs kept of each of the four, at least one, given their sparsities."""
    return [
        max(1, one.width - round(share * one.width))
        for one, share in zip(inputs(network), shares, strict=True)
    ]


def skipped_by_token(network: LanguageNetwork, shares: tuple[float, ...]) -> int:
    """MACs that one decoded token leaves out, given the sparsity of each input."""
    four = zip(inputs(network), kept_of_each(network, shares), strict=True)
    return network.layers * sum((one.width - kept) * one.outputs for one, kept in four)
