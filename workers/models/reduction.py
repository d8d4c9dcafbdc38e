"""Fits a token reduction into the blocks of a timm vision transformer: what all such methods share.

Shapes: B images, N tokens, D channels, H heads, d channels of a head. Nothing is kept between forwards: tokens and sizes are
handed on from block to block.
"""

import copy
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar, cast

from timm.layers.attention import Attention
from timm.models.vision_transformer import Block
from torch import Tensor, nn

from workers.models import Unsupported

M = TypeVar("M", bound=nn.Module)


class Attended(NamedTuple):
    """What a block's attention leaves for a reduction to choose by."""

    q_BHNd: Tensor
    k_BHNd: Tensor
    attention_BHNN: Tensor | None
    """The attention matrix after the softmax; `None` where attention is fused and never forms it."""
    scale: float


Reduction = Callable[[Tensor, Tensor | None, Attended], tuple[Tensor, Tensor | None]]
"""What removes tokens between a block's attention and its MLP.

It gets the tokens [B, N, D], their sizes [B, N, 1] (how many input tokens each stands for; `None`: one each) and what the attention
computed, and returns the tokens left, prefix tokens first, and their sizes.
"""


class ReducingBlock(nn.Module):
    """timm's `Block` with a reduction after its attention and, if asked, attention in proportion to token sizes."""

    def __init__(self, block: nn.Module, reduction: Reduction | None, *, proportional: bool) -> None:
        super().__init__()
        parts = dict(block.named_children())  # under their own names, so that the weights keep theirs
        self.norm1, self.attn, self.ls1, self.drop_path1 = (parts[name] for name in ("norm1", "attn", "ls1", "drop_path1"))
        self.norm2, self.mlp, self.ls2, self.drop_path2 = (parts[name] for name in ("norm2", "mlp", "ls2", "drop_path2"))
        self.reduction = reduction
        self.proportional = proportional

    def forward(self, x_BND: Tensor, size_BN1: Tensor | None) -> tuple[Tensor, Tensor | None]:
        size_in = size_BN1 if self.proportional else None
        y_BND, attended = attend(self.attn, self.norm1(x_BND), size_in)
        x_BND = x_BND + self.drop_path1(self.ls1(y_BND))
        if self.reduction is not None:
            x_BND, size_BN1 = self.reduction(x_BND, size_BN1, attended)
        return x_BND + self.drop_path2(self.ls2(self.mlp(self.norm2(x_BND)))), size_BN1


class Average(NamedTuple):
    """The average pooling of a model whose tokens have sizes."""

    tokens: int
    """Tokens that the unmodified model averages: the sum of all sizes."""
    left_out: int
    """Prefix tokens that are not averaged."""


class Trunk(nn.Sequential):
    """The blocks one after the other, with the sizes of the tokens handed from each to the next."""

    def __init__(self, *blocks: nn.Module, average: Average | None) -> None:
        super().__init__(*blocks)
        self.average = average

    def forward(self, x_BND: Tensor) -> Tensor:
        size_BN1 = None
        for block in self:
            if isinstance(block, ReducingBlock):
                x_BND, size_BN1 = block(x_BND, size_BN1)
            else:
                x_BND = block(x_BND)
        if self.average is not None and size_BN1 is not None:
            # The plain mean over tokens that follows becomes their mean weighted by size.
            x_BND = x_BND * (size_BN1 * ((x_BND.shape[1] - self.average.left_out) / self.average.tokens))
        return x_BND


def attend(attn: Any, x_BND: Tensor, size_BN1: Tensor | None) -> tuple[Tensor, Attended]:
    """What timm's `Attention` computes (less dropout), and what a reduction may choose by.

    Where sizes are given, log(size) is added to each key's logits: proportional attention, Bolya et al., ICLR 2023,
    arXiv 2210.09461, section 3.
    """
    B, N, _ = x_BND.shape
    q_BHNd, k_BHNd, v_BHNd = attn.qkv(x_BND).view(B, N, 3, attn.num_heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
    q_BHNd, k_BHNd = attn.q_norm(q_BHNd), attn.k_norm(k_BHNd)
    bias_B11N = None if size_BN1 is None else size_BN1.log().to(q_BHNd.dtype).mT[:, None]
    if attn.fused_attn:
        attention_BHNN = None
        y_BHNd = nn.functional.scaled_dot_product_attention(q_BHNd, k_BHNd, v_BHNd, attn_mask=bias_B11N)
    else:
        logits_BHNN = (q_BHNd * attn.scale) @ k_BHNd.mT
        attention_BHNN = (logits_BHNN if bias_B11N is None else logits_BHNN + bias_B11N).softmax(-1)
        y_BHNd = attention_BHNN @ v_BHNd
    y_BND = attn.norm(y_BHNd.transpose(1, 2).reshape(B, N, -1))
    if attn.gate is not None:
        y_BND = y_BND * attn.gate(x_BND).sigmoid()
    return attn.proj(y_BND), Attended(q_BHNd, k_BHNd, attention_BHNN, attn.scale)


def twin(model: M) -> M:
    """The same model in modules of its own but with the very same parameters and buffers, so that it can be changed alone."""
    shared = {id(tensor): tensor for tensor in (*model.parameters(), *model.buffers())}
    return copy.deepcopy(model, shared)


def fit(model: M, reductions: Mapping[int, Reduction], *, proportional: bool = False, by_size: bool = False) -> M:
    """A twin of `model` that runs each reduction in the block of its index; all other blocks stay timm's own.

    `proportional`: attention of the blocks after the first reduction is in proportion to token sizes. `by_size`: average
    pooling is too. Raises `Unsupported` unless every block is timm's plain `Block` with plain `Attention`.
    """
    fitted: Any = twin(model)
    parts = [part for block in fitted.blocks for part in (block, getattr(block, "attn", None))]
    strange = next((part for part in parts if type(part) not in (Block, Attention)), None)
    if type(fitted.blocks) is not nn.Sequential or strange is not None:
        made_of = type(fitted.blocks if strange is None else strange).__name__
        raise Unsupported(f"tokens can be removed from plain timm blocks only, and this model's are made of {made_of}")
    if not reductions:
        return cast(M, fitted)
    first = min(reductions)
    blocks = [
        ReducingBlock(block, reductions.get(index), proportional=proportional and index > first)
        if index in reductions or (proportional and index > first)
        else block
        for index, block in enumerate(fitted.blocks)
    ]
    average = None
    if by_size and fitted.global_pool == "avg":
        left_out = 0 if fitted.pool_include_prefix else fitted.num_prefix_tokens
        average = Average(fitted.patch_embed.num_patches + fitted.num_prefix_tokens - left_out, left_out)
    fitted.blocks = Trunk(*blocks, average=average)
    return cast(M, fitted)
