"""Inserts token reductions into the blocks of a timm vision transformer.

Shapes: B images, N tokens, M of them after merging, D channels, H heads, d channels of a head, C
channels of a projection, L blocks, P numbers of a place. Nothing is stored between forwards:
tokens, sizes, places and groups are passed from block to block.

Rotary embeddings turn queries and keys by the place of their token in the image. The places of the
tokens left are therefore passed on too, and the embedding is looked up at them, as timm does for
patches dropped in training. Keys, as reductions get them, are turned already.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import torch
from timm.layers.attention import Attention, AttentionRope
from timm.layers.layer_scale import LayerScale
from timm.layers.pos_embed_sincos import apply_rot_embed_cat
from timm.models.eva import Eva, EvaAttention, EvaBlock
from timm.models.vision_transformer import Block
from torch import Tensor, nn

from sweeps.model.condition import Condition
from sweeps.model.method import Network
from workers import kernels
from workers.errors import Unsupported
from workers.models.share_weights import M, clone_shared
from workers.token_reduction import ScheduleParams

CACHE_BYTES = 2 << 20
"""Largest attention matrix that is formed for all images at once: about the level-2 cache of two
cores."""


class AttentionState(NamedTuple):
    """What a block's attention computed, as input of a reduction."""

    q_BHNd: Tensor
    k_BHNd: Tensor
    attention_BHNN: Tensor | None
    """The attention matrix after the softmax; `None` where attention is fused, or formed some
    images at a time."""
    scale: float
    v_BHNd: Tensor
    read_BND: Tensor
    """The normalised tokens that the attention read."""
    added_BND: Tensor
    """What the attention adds to the tokens, before layer scale in `attend`, after it in a
    reduction."""
    inflow_BHN: Tensor | None = None
    """The attention that each token receives in each head, summed over all queries, in float32;
    `None` unless requested."""
    place_BNP: Tensor | None = None
    """The place of each token, that of prefix tokens being of no use; `None` without rotary
    embeddings. P is 1, a number among the image's patches, or 2, a mean row and column."""
    bias_B11N: Tensor | None = None
    """What attention in proportion to token sizes adds to the logits of each key, log(size)."""


Reduced = tuple[Tensor, Tensor | None, Tensor | None]
"""The tokens left, prefix tokens first, their sizes, and their places where the attention has
some."""
Reduction = Callable[[Tensor, Tensor | None, AttentionState], Reduced]
"""Removes tokens between a block's attention and its MLP.

It takes the tokens [B, N, D], their sizes [B, N, 1] (how many input tokens each stands for; `None`:
one each) and the state of the attention.
"""


class Left(NamedTuple):
    """What a `FusedReduction` leaves."""

    x_BMD: Tensor
    normed_BMD: Tensor
    """The tokens, prefix tokens first, and what the block's MLP takes: their norm."""
    size_BM1: Tensor | None


@dataclass(frozen=True)
class FusedReduction:
    """A reduction in one piece with what stands before and behind it: the addition of the
    attention's output, and the block's second norm.
    """

    reduce: Callable[[Tensor, Tensor | None, AttentionState, nn.Module], Left]
    """From the tokens that entered the block, [B, N, D], their sizes, the state of its attention,
    and the norm. Places are not passed on."""


class Rope(NamedTuple):
    """Rotary embeddings of the patches, and the places at which the tokens left have them."""

    table: Tensor
    """Of all patches of the image: [N, d], or of each block and head, [L, H, N, d]."""
    columns: int
    """Patches in a row of the image."""
    prefix: int
    """Tokens without an embedding, before the patches."""
    mean: bool
    """Whether a merged token has the mean place of its parts; else that of its destination."""
    place_BNP: Tensor | None = None
    """See `AttentionState`; `None` while all tokens are there."""

    def of_block(self, index: int) -> Tensor:
        """What timm's block takes: [N, d] or [H, N, d], once tokens were removed [B, 1, M, d] or
        [B, H, M, d].
        """
        table = self.table[index] if self.table.ndim > 2 else self.table
        if self.place_BNP is None:
            return table
        place_BMP = self.place_BNP[:, self.prefix :]
        index_BM = place_BMP[..., 0]
        if self.mean:  # the patch nearest to the mean
            row_BM, column_BM = place_BMP.round().unbind(-1)
            index_BM = (row_BM * self.columns + column_BM).long()
        if table.ndim == 2:
            return table[index_BM][:, None]
        return table[:, index_BM].transpose(0, 1)

    def placed(self, images: int) -> "Rope":
        """With the places of all tokens, if none was removed yet."""
        if self.place_BNP is not None:
            return self
        index_N = torch.arange(-self.prefix, self.table.shape[-2], device=self.table.device)
        place_NP = index_N[:, None]
        if self.mean:
            row_N = index_N // self.columns
            place_NP = torch.stack((row_N, index_N - row_N * self.columns), -1).float()
        return self._replace(place_BNP=place_NP.expand(images, -1, -1))


class Merged(NamedTuple):
    """Input of a block's attention instead of all tokens."""

    x_BMD: Tensor
    """Tokens from which queries and keys are made."""
    value_BMD: Tensor | None
    """Tokens from which values are made; `None`: the same."""
    size_BM1: Tensor | None
    """How many tokens each stands for; `None`: attention ignores sizes."""
    place_BMP: Tensor | None = None
    """Their places, as in `AttentionState`."""


@dataclass(frozen=True)
class MergeAroundAttention:
    """Merges tokens for a block's attention only: all are restored before its MLP."""

    group: Callable[[Any, Tensor, Tensor | None], Any] | None
    """From the attention module, all normalised tokens [B, N, D] and their rotary embedding to
    groups; `None`: those of the block before are used."""
    merge: Callable[[Tensor, Any, Tensor | None], Merged]
    """From all normalised tokens, the groups and the places to the attention's input."""
    unmerge: Callable[[Tensor, Any], Tensor]
    """From the attention's output for the merged tokens [B, M, D], and the groups, to its output
    for all [B, N, D]."""


class BeforeAttention(NamedTuple):
    """A reduction before a block instead of after its attention."""

    reduction: Callable[[Tensor, Tensor | None, Tensor | None], Reduced]
    """From tokens, sizes and places to those left."""


class FittedBlock(nn.Module):
    """The parts of timm's `Block` or `EvaBlock`."""

    final: nn.Module

    def __init__(self, block: nn.Module) -> None:
        super().__init__()
        parts = dict(block.named_children())
        self.norm1, self.attn, self.drop_path1 = (
            parts[name] for name in ("norm1", "attn", "drop_path1")
        )
        self.norm2, self.mlp, self.drop_path2 = (
            parts[name] for name in ("norm2", "mlp", "drop_path2")
        )
        self.final = nn.Identity()
        self.ls1, self.ls2 = (
            parts.get(f"ls{half}") or _layer_scale(getattr(block, f"gamma_{half}"))
            for half in (1, 2)
        )

    def after(self, x_BND: Tensor, normed_BND: Tensor | None = None) -> Tensor:
        """The block's second half: its MLP on the tokens left, whose norm may be known."""
        if normed_BND is None:
            normed_BND = self.norm2(x_BND)
        return x_BND + cast(Tensor, self.drop_path2(self.ls2(self.mlp(normed_BND))))


class ReducingBlock(FittedBlock):
    """timm's `Block` with a reduction after its attention and, optionally, attention in proportion
    to token sizes.
    """

    def __init__(
        self,
        block: nn.Module,
        reduction: Reduction | FusedReduction | None,
        *,
        proportional: bool,
        inflow: bool = False,
    ) -> None:
        super().__init__(block)
        self.reduction = reduction
        self.proportional = proportional
        self.inflow = inflow
        self.before: Callable[[Tensor, Tensor | None, Tensor | None], Reduced] | None = None

    def forward(
        self,
        x_BND: Tensor,
        size_BN1: Tensor | None,
        rope: Tensor | None = None,
        place_BNP: Tensor | None = None,
    ) -> Reduced:
        size_in = size_BN1 if self.proportional else None
        fused = self.reduction is None or isinstance(self.reduction, FusedReduction)
        y_BND, attended = attend(
            self.attn, self.norm1(x_BND), size_in, rope=rope, inflow=self.inflow, fused=fused
        )
        added_BND = self.drop_path1(self.ls1(y_BND))
        if self.reduction is None:
            return self.after(x_BND + added_BND), size_BN1, place_BNP
        # Not `_replace`, which torch.compile of 2.8 does not trace.
        state = AttentionState(
            *attended[:6], added_BND, attended.inflow_BHN, place_BNP, attended.bias_B11N
        )
        if isinstance(self.reduction, FusedReduction):
            left = self.reduction.reduce(x_BND, size_BN1, state, self.norm2)
            return self.after(left.x_BMD, left.normed_BMD), left.size_BM1, place_BNP
        x_BND, size_BN1, place_BNP = self.reduction(x_BND + added_BND, size_BN1, state)
        return self.after(x_BND), size_BN1, place_BNP


class MergingBlock(FittedBlock):
    """timm's `Block` with tokens merged around its attention."""

    def __init__(self, block: nn.Module, around: MergeAroundAttention) -> None:
        super().__init__(block)
        self.around = around

    def forward(
        self, x_BND: Tensor, groups: Any, rope: Rope | None = None, index: int = 0
    ) -> tuple[Tensor, Any]:
        read_BND, near = self.norm1(x_BND), None
        if self.around.group is not None:
            near = None if rope is None else rope.of_block(index)
            groups = self.around.group(self.attn, read_BND, near)
        place_BNP = None if rope is None else rope.placed(len(x_BND)).place_BNP
        x_BMD, value_BMD, size_BM1, place_BMP = self.around.merge(read_BND, groups, place_BNP)
        near = None if rope is None else rope._replace(place_BNP=place_BMP).of_block(index)
        y_BMD, _ = attend(self.attn, x_BMD, size_BM1, value_BMD, rope=near)
        x_BND = x_BND + self.drop_path1(self.ls1(self.around.unmerge(y_BMD, groups)))
        return self.after(x_BND), groups


class Trunk(nn.Sequential):
    """The blocks one after the other, with the token sizes passed from each to the next.

    `average`: for average pooling by size, the sum of the sizes (0: to be summed), and the prefix
    tokens that it leaves out; the last block then holds the model's norm, which would undo
    weights before it. `rope`: the fields of a `Rope` between its table and its places.
    """

    def __init__(
        self, *blocks: nn.Module, average: tuple[int, int] | None, rope: tuple[int, int, bool]
    ) -> None:
        super().__init__(*blocks)
        self.average = average
        self.rope = rope

    def forward(self, x_BND: Tensor, table: Tensor | None = None) -> Tensor:
        size_BN1 = groups = place_BNP = None
        rope = None if table is None else Rope(table, *self.rope)
        near: Tensor | None = None
        for index, block in enumerate(self):
            if (before := getattr(block, "before", None)) is not None:
                if rope is not None:
                    place_BNP = rope.placed(len(x_BND)).place_BNP
                x_BND, size_BN1, place_BNP = before(x_BND, size_BN1, place_BNP)
                if rope is not None:
                    rope, near = rope._replace(place_BNP=place_BNP), None
            if rope is not None and (near is None or rope.table.ndim > 2):
                near = rope.of_block(index)
            if isinstance(block, ReducingBlock):
                if rope is not None:
                    place_BNP = rope.placed(len(x_BND)).place_BNP
                x_BND, size_BN1, place_BNP = block(x_BND, size_BN1, near, place_BNP)
                if rope is not None and block.reduction is not None:
                    rope, near = rope._replace(place_BNP=place_BNP), None
            elif isinstance(block, MergingBlock):
                x_BND, groups = block(x_BND, groups, rope, index)
            else:
                x_BND = block(x_BND) if near is None else block(x_BND, rope=near)
        if self.average is not None and size_BN1 is not None:
            # Turns the plain mean over tokens that follows into their mean weighted by size.
            averaged, left_out = self.average
            final_BND = cast(FittedBlock, self[-1]).final(x_BND)
            size_BN1 = size_BN1.to(final_BND.dtype)
            total = averaged or size_BN1[:, left_out:].sum(1, keepdim=True)
            x_BND = final_BND * (size_BN1 * ((x_BND.shape[1] - left_out) / total))
        return x_BND


class FittedEva(Eva):
    """timm's `Eva` with a `Trunk`, which gets the rotary embeddings of all blocks."""

    def forward_features(self, x: Tensor, *_: object, **__: object) -> Tensor:
        x_BND, table = self._pos_embed(self.patch_embed(x))
        return cast(Tensor, self.norm(self.blocks(self.norm_pre(x_BND), table)))


def _layer_scale(gamma: nn.Parameter | None) -> nn.Module:
    """The layer scale with this weight, which an `EvaBlock` holds itself."""
    if gamma is None:
        return nn.Identity()
    scale = LayerScale(len(gamma), device="meta")
    scale.gamma = gamma
    return scale


def attend(
    attn: Any,
    x_BND: Tensor,
    size_BN1: Tensor | None,
    value_BND: Tensor | None = None,
    *,
    rope: Tensor | None = None,
    inflow: bool = False,
    fused: bool = False,
) -> tuple[Tensor, AttentionState]:
    """The output of timm's attention (without dropout), and the input of a reduction.

    Where sizes are given, log(size) is added to each key's logits: proportional attention, Bolya et
    al., ICLR 2023, arXiv 2210.09461, section 3. Values are made from `value_BND` if given, `rope`
    is the rotary embedding of the patch tokens.
    `inflow`: the column sums of the attention matrix are returned too; the matrix is then formed
    even where attention is fused, unless `fused`: by Triton's kernels, which form none. `fused`: no
    reduction by torch's operators follows, which reads the bias of the sizes.
    """
    B, N, _ = x_BND.shape
    if isinstance(attn, Attention):
        q_BHNd, k_BHNd, v_BHNd = heads(attn, attn.qkv(x_BND))
    else:
        q_BHNd, k_BHNd, v_BHNd = project(attn, x_BND, slice(0, 3))
    q_BHNd, k_BHNd = turned(attn, q_BHNd, k_BHNd, rope)
    if value_BND is not None:
        (v_BHNd,) = project(attn, value_BND, slice(2, 3))
    by_kernel = fused if inflow else isinstance(attn, KernelAttention)
    bias_B11N = None
    # at one image operators without effect cost time too
    if size_BN1 is not None and not (by_kernel and fused):
        bias_B11N = size_BN1.reshape(B, 1, 1, N).log()
        if bias_B11N.dtype != q_BHNd.dtype:
            bias_B11N = bias_B11N.to(q_BHNd.dtype)
    attention_BHNN = inflow_BHN = None
    if by_kernel:
        sizes = None if size_BN1 is None else size_BN1[..., 0].float()
        given = (q_BHNd, k_BHNd, v_BHNd, attn.scale, sizes)
        y_BHNd, inflow_BHN = attend_by_kernel(*given, inflow=inflow)
    elif inflow:
        y_BHNd, inflow_BHN = attend_with_inflow(q_BHNd, k_BHNd, v_BHNd, attn.scale, bias_B11N)
    elif attn.fused_attn:
        y_BHNd = nn.functional.scaled_dot_product_attention(
            q_BHNd, k_BHNd, v_BHNd, attn_mask=bias_B11N
        )
    else:
        attention_BHNN = attention_matrix(q_BHNd, k_BHNd, attn.scale, bias_B11N)
        y_BHNd = attention_BHNN @ v_BHNd
    y_BND = attn.norm(y_BHNd.transpose(1, 2).reshape(B, N, -1))
    if attn.gate is not None:
        y_BND = y_BND * attn.gate(x_BND).sigmoid()
    y_BND = attn.proj(y_BND)
    return y_BND, AttentionState(
        q_BHNd,
        k_BHNd,
        attention_BHNN,
        attn.scale,
        v_BHNd,
        x_BND,
        y_BND,
        inflow_BHN,
        None,
        bias_B11N,
    )


def attend_by_kernel(*given: Any, inflow: bool) -> tuple[Tensor, Tensor | None]:
    """`workers.kernels.attention`'s operators, as [B, H, N, d]."""
    from workers.kernels import attention

    if not inflow:
        return attention.sized_attention(*given).transpose(1, 2), None
    y_BNHd, inflow_BHN = attention.sized_attention_inflow(*given)
    return y_BNHd.transpose(1, 2), inflow_BHN


class KernelAttention(Attention):
    """timm's attention, with the product of queries, keys and values by Triton's kernel."""

    def forward(
        self, x: Tensor, attn_mask: Tensor | None = None, is_causal: bool = False
    ) -> Tensor:
        """As timm's. Raises `Unsupported` for a mask, which the kernel does not take."""
        if attn_mask is not None or is_causal:
            raise Unsupported("attention: triton takes no mask")
        return attend(self, x, None)[0]


def use_kernel(model: nn.Module, condition: Condition, network: Network) -> None:
    """Give all attention of an arm's model Triton's kernel, in place. Raises `Unsupported` where it
    cannot run.
    """
    reason = kernels.refusal(condition, network)
    blocks = (part for part in model.modules() if hasattr(part, "attn") and hasattr(part, "mlp"))
    other = {type(block.attn).__name__ for block in blocks}
    if reason is None and other != {"Attention"}:
        reason = f"it runs timm's plain attention, not {', '.join(sorted(other)) or 'none'}"
    if reason is not None:
        raise Unsupported(f"attention: triton cannot run here: {reason}")
    for part in model.modules():
        if type(part) is Attention:
            part.__class__ = KernelAttention


def attend_with_inflow(
    q_BHNd: Tensor, k_BHNd: Tensor, v_BHNd: Tensor, scale: float, bias_B11N: Tensor | None
) -> tuple[Tensor, Tensor]:
    """The output of the attention, [B, H, N, d], and the attention that each token receives, [B, H,
    N] in float32.

    On a CPU a matrix that exceeds the cache is formed image by image, so that the passes over it
    (softmax, column sums, product with the values) do not read it from memory. On a GPU and in
    compiled code all images are processed at once.
    """
    B, H, N, _ = q_BHNd.shape
    small = B * H * N * N * q_BHNd.element_size() <= CACHE_BYTES
    if B == 1 or small or not q_BHNd.is_cpu or torch.compiler.is_compiling():
        attention_BHNN = attention_matrix(q_BHNd, k_BHNd, scale, bias_B11N)
        return attention_BHNN @ v_BHNd, attention_BHNN.sum(2, dtype=torch.float32)
    bias = [None] * B if bias_B11N is None else bias_B11N[:, None]
    images = zip(q_BHNd[:, None], k_BHNd[:, None], v_BHNd[:, None], bias, strict=True)
    y, inflow = zip(
        *(attend_with_inflow(q, k, v, scale, own) for q, k, v, own in images), strict=True
    )
    # Concatenated in the memory order that the output projection reads, so that this is the only
    # copy.
    return torch.cat([each.transpose(1, 2) for each in y]).transpose(1, 2), torch.cat(inflow)


def attention_before(attn: Any, x_BND: Tensor, rope: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The attention matrix [B, H, N, N] and the keys [B, H, N, d] that `attn` would have on all
    tokens, without its values.
    """
    q_BHNd, k_BHNd = project(attn, x_BND, slice(0, 2))
    q_BHNd, k_BHNd = turned(attn, q_BHNd, k_BHNd, rope)
    return attention_matrix(q_BHNd, k_BHNd, attn.scale, None), k_BHNd


def attention_matrix(
    q_BHNd: Tensor, k_BHNd: Tensor, scale: float, bias_B11N: Tensor | None
) -> Tensor:
    """The attention matrix after the softmax, [B, H, N, N]."""
    if bias_B11N is None:
        return ((q_BHNd * scale) @ k_BHNd.mT).softmax(-1)
    # Scale and bias inside the product: the matrix is the largest tensor of a block, and each pass
    # over it takes time.
    B, H, N, d = q_BHNd.shape
    bias_X1N = bias_B11N.expand(B, H, 1, N).reshape(B * H, 1, N)
    q_XNd, k_XdN = q_BHNd.reshape(B * H, N, d), k_BHNd.reshape(B * H, N, d).mT
    return torch.baddbmm(bias_X1N, q_XNd, k_XdN, alpha=scale).view(B, H, N, N).softmax(-1)


def turned(attn: Any, q_BHNd: Tensor, k_BHNd: Tensor, rope: Tensor | None) -> tuple[Tensor, Tensor]:
    """Queries and keys after their norms and, of patch tokens, turned by the rotary embedding."""
    q_BHNd, k_BHNd = attn.q_norm(q_BHNd), attn.k_norm(k_BHNd)
    if rope is None:
        return q_BHNd, k_BHNd
    prefix, half = attn.num_prefix_tokens, attn.rotate_half
    q_BHNd, k_BHNd = (
        torch.cat((x[:, :, :prefix], apply_rot_embed_cat(x[:, :, prefix:], rope, half=half)), 2)
        for x in (q_BHNd, k_BHNd)
    )
    return q_BHNd, k_BHNd


def project(attn: Any, x_BND: Tensor, parts: slice) -> tuple[Tensor, ...]:
    """Some of queries (0), keys (1) and values (2) for all heads, before their norms: [B, H, N, d]
    each.
    """
    if attn.qkv is None:
        layers = (attn.q_proj, attn.k_proj, attn.v_proj)[parts]
        return tuple(heads(attn, layer(x_BND))[0] for layer in layers)
    width = attn.num_heads * attn.head_dim
    rows, bias = slice(parts.start * width, parts.stop * width), attn.qkv.bias
    if getattr(attn, "q_bias", None) is not None:
        bias = torch.cat((attn.q_bias, attn.k_bias, attn.v_bias))
    bias = None if bias is None else bias[rows]
    return heads(attn, nn.functional.linear(x_BND, attn.qkv.weight[rows], bias))


def heads(attn: Any, projected_BNC: Tensor) -> tuple[Tensor, ...]:
    """The output of a projection split by part (queries, keys, values) and head: [B, H, N, d]
    each.
    """
    B, N, _ = projected_BNC.shape
    parts = projected_BNC.view(B, N, -1, attn.num_heads, attn.head_dim)
    return parts.permute(2, 0, 3, 1, 4).unbind(0)


class Stage(NamedTuple):
    """A block that removes patch tokens: how many enter and leave it, beside the prefix tokens."""

    block: int
    prefix: int
    patches: int
    left: int


def stages(model: Any, params: ScheduleParams) -> Iterator[Stage]:
    """The blocks of `model` that remove tokens, in order."""
    prefix, patches = model.num_prefix_tokens, model.patch_embed.num_patches
    for block, left in params.left(len(model.blocks), patches, prefix).items():
        yield Stage(block, prefix, patches, left)
        patches = left


def fit_stages(
    model: M,
    params: ScheduleParams,
    make: Callable[[Stage], Reduction | FusedReduction | BeforeAttention],
    *,
    proportional: bool = False,
    by_size: bool = False,
    pruned: bool = False,
) -> M:
    """`fit` with `make(stage)` in each block that removes tokens."""
    reductions = {stage.block: make(stage) for stage in stages(model, params)}
    mean = getattr(params, "rope", None) is not None
    return fit(
        model, reductions, proportional=proportional, by_size=by_size, mean=mean, pruned=pruned
    )


def fit(
    model: M,
    reductions: Mapping[int, Reduction | FusedReduction | BeforeAttention | MergeAroundAttention],
    *,
    proportional: bool = False,
    by_size: bool = False,
    inflow: bool = False,
    mean: bool = False,
    pruned: bool = False,
) -> M:
    """A copy of `model` on shared weights that runs each reduction in the block of its index; all
    other blocks stay timm's own.

    `proportional`: attention of the blocks after the first reduction is in proportion to token
    sizes. `by_size`: average pooling is too. `inflow`: reductions get the attention that each token
    receives. `mean`: a merged token gets the mean place of its parts. `pruned`: sizes do not add up
    to the tokens of the image. Raises `Unsupported` unless
    every block is timm's plain `Block` or `EvaBlock` with its plain attention.
    """
    fitted: Any = clone_shared(model)
    eva = type(fitted) is Eva
    parts = [part for block in fitted.blocks for part in (block, getattr(block, "attn", None))]
    plain = (EvaBlock, EvaAttention, AttentionRope) if eva else (Block, Attention)
    other = next(
        (
            part
            for part in parts
            if type(part) not in plain or getattr(part, "num_kv_groups", 1) > 1
        ),
        None,
    )
    if not (eva or type(fitted.blocks) is nn.Sequential) or other is not None:
        found = type(fitted.blocks if other is None else other).__name__
        raise Unsupported(
            "tokens can be removed from plain timm blocks only, and this model's are made of"
            f" {found}"
        )
    if not reductions:
        return cast(M, fitted)
    first = min(reductions)

    def fit_one(index: int, block: nn.Module) -> nn.Module:
        reduction, by_sizes = reductions.get(index), proportional and index > first
        if isinstance(reduction, MergeAroundAttention):
            return MergingBlock(block, reduction)
        if reduction is None and not by_sizes:
            return block
        if isinstance(reduction, BeforeAttention):
            before = ReducingBlock(block, None, proportional=by_sizes)
            before.before = reduction.reduction
            return before
        return ReducingBlock(
            block, reduction, proportional=by_sizes, inflow=inflow and reduction is not None
        )

    blocks = [fit_one(index, block) for index, block in enumerate(fitted.blocks)]
    average = None
    prefix, patches = fitted.num_prefix_tokens, fitted.patch_embed
    if by_size and fitted.global_pool == "avg":
        left_out = 0 if getattr(fitted, "pool_include_prefix", False) else prefix
        average = 0 if pruned else patches.num_patches + prefix - left_out, left_out
        if not isinstance(blocks[-1], FittedBlock):
            blocks[-1] = ReducingBlock(blocks[-1], None, proportional=False)
        blocks[-1].final, fitted.norm = fitted.norm, nn.Identity()
    if eva:
        fitted.__class__ = FittedEva
    rope = patches.grid_size[1], prefix, mean
    fitted.blocks = Trunk(*blocks, average=average, rope=rope)
    return cast(M, fitted)
