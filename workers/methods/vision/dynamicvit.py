"""Drops the patch tokens that a small network on the tokens scores lowest, before a few blocks
(DynamicViT).

Before the i-th of the layers a predictor of its own scores each patch token; the `int(keep_rate^i x
patch tokens of the image)` best stay, in the order of their scores, behind the prefix tokens, and
the block's attention sees these alone. (The authors' code assumes 196 tokens; `counts: null` keeps
a share of what is left, rounded up, as topk does.) The predictor: layer norm, a linear layer and
GELU; half of the channels of the result, beside the mean of the other half over the patch tokens,
go through linear layers of a half, a quarter and two outputs, of which the first is the score after
a softmax. It is the dense inference of the paper: every image keeps the same number.

`predictor` is a checkpoint with the authors' names (`score_predictor.0.in_conv.0.weight` …); the
other weights in it are those of a model that was tuned with it, which `weights` of the sweep can
name. Without one the predictors are random: times are the true ones, accuracy is that of tokens
chosen almost at random.
"""

from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from sweeps.model.condition import ImageSize
from sweeps.model.method import BlockTokens, Network
from workers.token_reduction import CountedKeepParams, block_tokens

if TYPE_CHECKING:
    from timm.models.vision_transformer import VisionTransformer
    from torch import Tensor, nn

    from workers.token_reduction.patch_vit import BeforeAttention, Reduced, Stage

PAPER = (
    "Rao, Zhao, Liu, Lu, Zhou, Hsieh, DynamicViT: Efficient Vision Transformers with Dynamic Token"
    " Sparsification, NeurIPS 2021, arXiv 2106.02034"
)
VERSION = 1
SOLVES = "keep_rate"


class Params(CountedKeepParams):
    """The share that is kept, and the predictors."""

    counts: Literal["image"] | None = Field(
        default="image",
        description="image: int(keep_rate^i x the image's patch tokens) at the i-th layer",
    )
    predictor: str | None = Field(
        default=None,
        description=(
            "a checkpoint of the authors' layout; random ones if not given. A file with other"
            " contents needs another name"
        ),
    )
    seed: int = Field(default=0, ge=0, lt=2**63, description="of random predictors")

    def tokens(self, network: Network, image_size: ImageSize) -> tuple[BlockTokens, ...]:
        """Tokens in each block, whose attention already sees those left."""
        left = self.left(network.depth, network.patch_tokens(image_size), network.prefix_tokens)
        return block_tokens(left, network, image_size, before=True)


tokens, refuses = Params.tokens, Params.unfit
NEUTRAL = Params(keep_rate=1)
EXAMPLES = (
    Params(keep_rate=0.7, layers=(1, 2, 3)),
    Params(keep_rate=0.3, layers=(0, 2), seed=3),
    Params(keep_rate=0.5, layers=(0, 2), align=8, counts=None),
)


def macs(params: Params, network: Network, image_size: ImageSize) -> int:
    """The linear layers of the predictors, on the patch tokens that each scores."""
    width, patches = network.width, network.patch_tokens(image_size)
    left = params.left(network.depth, patches, network.prefix_tokens)
    scored = sum([patches, *left.values()][: len(left)])
    half, quarter = width // 2, width // 4
    return scored * (width * width + width * half + half * quarter + quarter * 2)


def apply(model: "VisionTransformer", params: Params) -> "VisionTransformer":
    """A copy of `model` that drops tokens by predicted scores.

    Raises `Unsupported` as `fit` does, `FileNotFoundError` for a checkpoint that is not there, and
    `RuntimeError` for one without the weights of these predictors.
    """
    import timm
    import torch

    from workers.token_reduction.patch_vit import fit_stages

    weights: dict[str, Tensor] = {}
    if params.predictor is not None:
        weights = timm.models.load_state_dict(params.predictor, use_ema=False, device="cpu")

    def scored(stage: "Stage") -> "BeforeAttention":
        number = params.layers.index(stage.block)
        start = f"score_predictor.{number}."
        own = {
            name.removeprefix(start): weights[name] for name in weights if name.startswith(start)
        }
        with torch.random.fork_rng(devices=[]), torch.inference_mode(mode=False):
            torch.manual_seed(params.seed + number)
            predictor = random_predictor(model.embed_dim)
        if params.predictor is not None:
            predictor.load_state_dict(own)
        return keep_scored(stage, predictor.to(model.patch_embed.proj.weight).eval())

    return fit_stages(model, params, scored)


def random_predictor(width: int) -> "nn.ModuleDict":
    """The layers of a predictor by the authors' names, with weights as they begin training."""
    from torch import nn

    first, half, quarter = nn.Linear(width, width), width // 2, width // 4
    layers = (nn.Linear(width, half), nn.Linear(half, quarter), nn.Linear(quarter, 2))
    for layer in (first, *layers):
        nn.init.trunc_normal_(layer.weight, std=0.02)
        nn.init.zeros_(layer.bias)
    scoring = nn.Sequential(
        layers[0], nn.GELU(), layers[1], nn.GELU(), layers[2], nn.LogSoftmax(-1)
    )
    reading = nn.Sequential(nn.LayerNorm(width), first, nn.GELU())
    return nn.ModuleDict({"in_conv": reading, "out_conv": scoring}).requires_grad_(False)


def keep_scored(stage: "Stage", predictor: Any) -> "BeforeAttention":
    """Keeps the prefix tokens and the patch tokens with the best scores."""
    import torch
    from torch import nn

    from workers.token_reduction.patch_vit import BeforeAttention
    from workers.token_reduction.token_ops import behind_prefix, select

    _, prefix, _, left = stage

    class KeepScored(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.predictor = predictor

        def forward(
            self, x_BND: "Tensor", size_BN1: "Tensor | None", place_BNP: "Tensor | None"
        ) -> "Reduced":
            read_BND = self.predictor["in_conv"](x_BND[:, prefix:])
            half = read_BND.shape[-1] // 2
            mean_B1D = read_BND[..., half:].mean(1, keepdim=True)
            both_BND = torch.cat(
                (read_BND[..., :half], mean_B1D.expand_as(read_BND[..., half:])), -1
            )
            score_BN = self.predictor["out_conv"](both_BND)[..., 0]
            index_BK = behind_prefix(score_BN.topk(left).indices, prefix)
            place_BKP = None if place_BNP is None else select(place_BNP, index_BK)
            return select(x_BND, index_BK), size_BN1, place_BKP

    return BeforeAttention(KeepScored())
