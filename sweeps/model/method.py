"""Methods and networks: what planning must know of a method and of the sizes of a model without
importing torch.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, Self, runtime_checkable

from pydantic import BaseModel, ConfigDict, NonNegativeInt, PositiveInt

from sweeps.model.condition import QUANTISED, Condition, ImageSize, image_shape, pixel_size
from sweeps.model.identity import FrozenModel
from sweeps.model.kinds import Modality

Purpose = Literal["optimisation", "control", "ceiling"]
"""Of a method. A control checks the measurement, a ceiling shows what token counts give at best:
neither is advised, and no accuracy is claimed of it."""


class Params(BaseModel):
    """Parameters of a method; a method file subclasses this."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    amounts: ClassVar[Mapping[str, Any]] = {}
    """Parameters that only set how much is reduced, each with the value that reduces nothing
    (`None`: there is none)."""
    one_sequence: ClassVar[bool] = False
    """Whether the method leaves out MACs only where a single sequence is decoded."""
    purpose: ClassVar[Purpose] = "optimisation"
    replaces_matrices: ClassVar[bool] = False
    """Whether the method replaces the matrices of a language model's layers, which one method of a
    stack can, after those that change its vocabulary."""
    changes_weights: ClassVar[bool] = False
    """Whether the method makes others from the weights, which must then be in floating point."""

    def schedule_length(self, depth: int) -> int:
        """How many numbers `{per_block: […]}` has on a model of `depth` blocks."""
        return depth

    def eager_only(self, _condition: Condition, /) -> str | None:
        """Why a model with the method can be neither compiled nor captured under an arm's own
        condition, or `None`.
        """
        return None

    def choose(self, _condition: Condition, _network: "Network | LanguageNetwork", /) -> Self:
        """The parameters with what the method chooses under an arm's own condition."""
        return self

    def chosen_implementation(self, _condition: Condition, _network: "Network", /) -> str | None:
        """The implementation that runs under an arm's own condition, where the method chooses
        one.
        """
        return None

    def solved(self, _network: "Network", _image_size: ImageSize, /) -> dict[str, float]:
        """Numbers to record with the result that are known before the run, such as in how many
        blocks r was capped.
        """
        return {}

    def retokenizes(self) -> bool:
        """Whether an arm reads other tokens than the unmodified model, so that its cost is not
        known before it has run.
        """
        return False

    def control(self) -> Self | None:
        """For a method that also tunes the model the same tuning without what the method adds, or
        `None`.
        """
        return None

    def preparation_macs(self, _network: "LanguageNetwork", /) -> float | None:
        """Roughly the MACs of what is made before the first run (calibration, tuning); `None` where
        nothing is made.
        """
        return None


def condition_refusal(
    method: str, params: Params, own: Condition, *, timed: bool = True
) -> str | None:
    """Why a method cannot run under an arm's own condition, or `None`; where nothing is `timed` it
    has no runtime.
    """
    if timed and own.runtime == "llamacpp":
        return f"{method} cannot run with runtime llamacpp, which runs the unmodified model"
    if params.changes_weights and own.dtype in QUANTISED:
        return (
            f"{method} cannot run with dtype {own.dtype}: it changes weights, which are integers"
            " there; write bfloat16"
        )
    if timed and own.runtime != "eager" and (reason := params.eager_only(own)) is not None:
        return f"{method} cannot run with runtime {own.runtime}: {reason}"
    return None


class BlockTokens(NamedTuple):
    """Tokens (class and register tokens included) that enter one block's attention and its MLP."""

    attention: int
    mlp: int


class Network(FrozenModel):
    """The geometry of a vision transformer: enough to count tokens and MACs without building it."""

    modality: ClassVar[Modality] = "vision"
    name: str
    patch: PositiveInt
    """Pixels of a side of a patch; of a hierarchical model those of its first stage."""
    image_size: PositiveInt
    """The size the model was made for; any multiple of `patch` is possible."""
    refusal: str | None = None
    """Why no token can be removed. The model then runs dense and at `image_size` alone, has no
    blocks here, and `fixed_macs` are all of its MACs."""
    depth: NonNegativeInt = 0
    width: NonNegativeInt = 0
    heads: NonNegativeInt = 0
    head_dim: NonNegativeInt = 0
    class_token: bool = True
    prefix_tokens: NonNegativeInt = 1
    """Class, distillation and register tokens together: never dropped, never merged."""
    rotary: bool = False
    """Whether queries and keys are turned by the place of their token (RoPE)."""
    channels: int = 3
    attention_macs_per_token: int = 0
    """Weights of qkv, projection (and gate): one MAC each for every token."""
    mlp_macs_per_token: int = 0
    pool_macs_per_token: int = 0
    fixed_macs: int = 0
    """Head and whatever else does not depend on the number of tokens, per image."""

    def patch_tokens(self, image_size: ImageSize) -> int:
        """Patch tokens of an image. Raises `ValueError` unless its sides are multiples of the patch
        size, or those of the one size that a model runs at.
        """
        height, width = image_shape(image_size)
        if self.refusal is not None and (height, width) != (self.image_size, self.image_size):
            raise ValueError(
                f"image_size {image_size}: {self.name} runs at {self.image_size} alone"
                f" ({self.refusal})"
            )
        if height % self.patch or width % self.patch:
            sides = [
                [(side + up) // self.patch * self.patch for side in (height, width)]
                for up in (0, self.patch - 1)
            ]
            near = [pixel_size(*each) for each in sides if all(each)]
            raise ValueError(
                f"image_size {image_size} is not a multiple of {self.name}'s patch size"
                f" {self.patch}; near by: {' or '.join(map(str, near))}"
            )
        return (height // self.patch) * (width // self.patch)

    def dense_tokens(self, image_size: ImageSize) -> tuple[BlockTokens, ...]:
        """The tokens of the unmodified model, block by block."""
        tokens = self.patch_tokens(image_size) + self.prefix_tokens
        return (BlockTokens(tokens, tokens),) * self.depth

    def macs(
        self, image_size: ImageSize, trace: Sequence[BlockTokens], final: int | None = None
    ) -> int:
        """Multiply-accumulates of one image: the network on the tokens it really saw (papers call
        MACs/1e9 "GFLOPs").

        Matrix products only: patch embedding, qkv, QK^T, AV, projection, MLP, pooling and head.
        `final` is the number of tokens that leave the last block (default: those its MLP saw).
        """
        if self.refusal is not None:
            return self.fixed_macs
        attn_dim = self.heads * self.head_dim
        total = (
            self.channels * self.patch**2 * self.width * self.patch_tokens(image_size)
            + self.fixed_macs
        )
        for tokens in trace:
            total += (
                tokens.attention * self.attention_macs_per_token
                + 2 * tokens.attention**2 * attn_dim
            )
            total += tokens.mlp * self.mlp_macs_per_token
        last = final if final is not None else (trace[-1].mlp if trace else 0)
        return total + last * self.pool_macs_per_token


class LanguageNetwork(FrozenModel):
    """The geometry of a decoder-only transformer."""

    modality: ClassVar[Modality] = "language"
    name: str
    architecture: str
    """transformers' `model_type`."""
    layers: PositiveInt
    width: PositiveInt
    heads: PositiveInt
    kv_heads: PositiveInt
    head_dim: PositiveInt
    mlp_width: PositiveInt
    vocabulary: PositiveInt
    positions: PositiveInt
    """The longest context that the model was made for."""
    window: PositiveInt | None = None
    """Tokens, itself included, that a token attends to in layers with a sliding window; `None`
    where there are none."""
    windowed: NonNegativeInt = 0
    """How many layers have it."""
    tied: bool = False
    """Whether the head shares the weights of the embedding."""
    described: bool = True
    """Whether the sizes describe the layers fully; of others MACs from sizes are an estimate, for
    planning only."""
    gated: bool = True
    """Whether the MLP is gate, up and down (SwiGLU), or two matrices."""
    one_norm: bool = False
    """Whether attention and MLP read the same norm."""
    experts: NonNegativeInt = 0
    """MLPs of a layer of which a router selects some; 0 where there is one MLP and no router."""
    experts_used: PositiveInt = 1
    """How many of them a token is sent to."""
    rows_refusal: str | None = None
    """Why single rows of the layers' matrices cannot be skipped."""
    rotation_refusal: str | None = None
    """Why the layers cannot work on a rotated stream."""

    @property
    def depth(self) -> int:
        """Blocks: its layers."""
        return self.layers

    @property
    def layer_macs(self) -> int:
        """MACs of one layer's matrices for one token: q, k, v, o, the router, and those of the
        MLP.
        """
        return self.layer_weights - max(self.experts - self.experts_used, 0) * self.mlp_weights

    @property
    def mlp_weights(self) -> int:
        """Of one MLP, of experts one."""
        return (3 if self.gated else 2) * self.width * self.mlp_width

    @property
    def layer_weights(self) -> int:
        """Of all matrices of one layer, whether or not a token is multiplied with them."""
        attention = self.width * self.head_dim * (2 * self.heads + 2 * self.kv_heads)
        mlps = max(self.experts, self.experts_used) * self.mlp_weights
        return attention + self.experts * self.width + mlps

    @property
    def head_macs(self) -> int:
        """MACs of the head for one token."""
        return self.width * self.vocabulary

    @property
    def token_macs(self) -> int:
        """MACs of one token with the weights: those of all layers and of the head, without
        attention's own products.
        """
        return self.layers * self.layer_macs + self.head_macs

    def macs(self, prompt: int, decoded: int) -> int:
        """MACs of one sequence: `prompt` tokens at once, only the last through the head, then
        `decoded` tokens one by one.

        Matrix products only, QK^T and AV over the tokens before and including each (causal)
        counted, those in the window at most.
        """
        tokens = prompt + decoded
        near = min(tokens, self.window or tokens)
        attended = (self.layers - self.windowed) * (tokens * (tokens + 1) // 2)
        attended += self.windowed * (near * (near + 1) // 2 + (tokens - near) * near)
        matrices = self.layers * tokens * self.layer_macs + (1 + decoded) * self.head_macs
        return matrices + 2 * attended * self.heads * self.head_dim


def doc_summary(documented: object) -> str:
    """The first paragraph of a docstring, on one line; empty without one."""
    return " ".join((documented.__doc__ or "").strip().partition("\n\n")[0].split())


class _MethodFile(Protocol):
    """What every file in `workers/methods/` provides; importing it imports no torch (tensors are
    touched inside functions).
    """

    __name__: str
    __doc__: str | None
    """First paragraph: the purpose."""
    PAPER: str
    VERSION: int
    Params: type[Params]

    def refuses(self, params: Any, network: Any) -> str | None:
        """Why the method cannot run on this network, or `None`."""

    def apply(self, model: Any, params: Any) -> Any:
        """A model that shares the given model's weights and runs with the method; the given model
        stays as it was.
        """


@runtime_checkable
class Method(_MethodFile, Protocol):
    """A method for vision transformers."""

    def tokens(
        self, params: Any, network: Network, image_size: ImageSize
    ) -> tuple[BlockTokens, ...]:
        """The tokens that the method promises for each block."""

    def macs(self, params: Any, network: Network, image_size: ImageSize) -> int:
        """MACs per image that the method itself adds (matching, scores)."""


@runtime_checkable
class LanguageMethod(_MethodFile, Protocol):
    """A method for language models (`workers.models.language.LanguageModel`)."""

    MODALITY: Literal["language"]

    def macs(self, params: Any, network: LanguageNetwork, prompt: int, decoded: int) -> int:
        """MACs per sequence that the method itself adds: `prompt` tokens at once, then `decoded`
        tokens one by one.
        """

    def skipped(self, params: Any, network: LanguageNetwork, tokens: int) -> int:
        """MACs per sequence of the network that the method leaves out while `tokens` tokens are
        decoded one by one.
        """


@dataclass(frozen=True)
class OwnMethod:
    """A function `apply(model, **params) -> model` in a file of the user, known by its
    parameters.
    """

    Params: type[Params]
    VERSION: int = 1
    MODALITY: Modality = "own"


AnyMethod = Method | LanguageMethod | OwnMethod


def modality_of(method: AnyMethod) -> Modality:
    """The modality of a method: that of its models."""
    found: Modality = getattr(method, "MODALITY", "vision")
    return found
