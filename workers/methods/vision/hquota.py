"""Keeps hubs of attention and the tokens farthest from them in how heads attend, and merges the
others into these ("ours").

The signature of a token is the attention that flows into it in each head. Of the K patch tokens
kept, a quota are hubs, those with the most inflow times size; the rest are found farthest first
among the signatures. Every other token is merged into its most similar kept token, as a mean
weighted by size. Prefix tokens (class, distillation, registers) stay as they are. Sizes are passed
on, and later attention adds log(size) to each key's logits. At most half of the patch tokens
present are removed in a block. `implementation` is as in `workers.token_reduction`; both
implementations select the same tokens, and merged tokens are equal to rounding.

What the summary leaves open, and the choice made here:

- inflow: the column of the attention matrix summed over all queries. Blocks that reduce form their
  matrix for that, whatever `attention` is, and use it for their own output too, so that it is
  computed once.
- distance of signatures: that of unit vectors, so that the pattern over heads decides and the
  amount of inflow does not. Farthest is the least greatest similarity to the selected tokens. Hubs:
  `ceil(quota x K)`, and one even at quota 0, as a first token.
- match: `k` is the keys' mean over heads, `xnorm` the normalised tokens that the attention read.
- merge: `kv` merges whole tokens, from which later keys and values are made; `v` merges what the
  attention added to them (its values), and the kept token and its keys stay as they are. Around the
  attention, `kv` merges the input of queries, keys and values, `v` that of values only.
- place `around`: a merge before the attention cannot use its matrix. Queries and keys of all tokens
  are computed for the selection alone, at half the cost of a block's attention; groups are
  therefore held for `hold` neighbouring blocks that remove as many tokens.
- push-lite: a kept token moves toward the mean of its `top_r` most similar removed tokens,
  whichever tokens these were merged into, by alpha x their mean cosine, at most by beta x (size /
  mean size)^delta.
- size normalisation of the merged patch tokens, in this order: `recentre` replaces their mean by
  the mean weighted by size; `tau` clips lengths at tau x their mean; `temperature` multiplies by
  (size / mean size)^temperature. With `recentre` the last two act on the difference from the mean.
  The stabiliser `eta` comes first: (1 - eta) x the merged token + eta x the token before the merge.
- rotary embeddings (RoPE): a merged token is where the kept token was; `rope: mean_position` puts
  it at the patch nearest to the mean place of its group, weighted by size. Keys are turned.
- push-lite, normalisation and `early_keep` are off by default: the summary attributes its best
  result to selection and merge.

Differs from the author's code (token_reduction_JM), which implements only parts of the summary:

- selection: there signatures are lengths of keys or of normalised tokens, and farthest-first tracks
  the least similarity to the selected tokens instead of the greatest; sizes are counted anew in
  each block, and attention ignores them.
- `alpha`: there the share of itself that a kept token keeps, (1 - alpha) x the group's mean + alpha
  x the token, which is `eta` = alpha here (a path that the published runs do not take has the two
  shares exchanged); here push-lite's step.
- `eta`: there the exponent of the size in the temperature; here the stabiliser of the summary, a
  share of the token itself.
- `tau`: there an absolute length for values and keys (`clip: absolute` does this for whole tokens);
  here a multiple of the mean length, which means the same in every block and model.
- `recentre`: there the mean over tokens is subtracted for good, which shifts the residual stream of
  a model not trained so.
- `temperature`: there divides the queries; here scales merged tokens, since no query is left to
  scale after the attention.
"""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from sweeps.model.condition import ImageSize
from sweeps.model.method import BlockTokens, Network
from workers.token_reduction import (
    ROUNDING,
    UNSOLVED,
    AlignField,
    BudgetField,
    CompiledParams,
    ImplementationField,
    RopeField,
    ScheduleParams,
    TokenCount,
    aligned,
    beyond,
    one_amount,
    ordered_blocks,
)

if TYPE_CHECKING:
    from timm.models.vision_transformer import VisionTransformer

    from workers.token_reduction.patch_vit import FusedReduction, MergeAroundAttention, Reduction

PAPER = (
    "none: 'ours' of the project's research summary, Vision Transformer Token Reduction (2025),"
    " sections 1.2 and 3.2"
)
VERSION = 1
SOLVES = "keep_rate"
EARLY = 3
"""Blocks that the summary calls early: L0 to L2."""
HOLD = 3
"""Default of `hold`: as many blocks as are early."""


class Params(CompiledParams, ScheduleParams):
    """How many tokens are removed: exactly one of `r`, `keep_rate` and `budget`. Where: `layers`.
    The rest is how.
    """

    amounts: ClassVar[Mapping[str, Any]] = {"r": 0, "keep_rate": 1, "budget": None}
    at_most_half = True
    r: TokenCount | tuple[TokenCount, ...] | None = Field(
        default=None,
        description=(
            "tokens removed in each of the layers, or {per_block: […]} with a number for each of"
            " them"
        ),
    )
    keep_rate: float | None = Field(
        default=None,
        gt=0,
        le=1,
        description=(
            "share of the patch tokens left that each of the layers keeps; or give r or a budget"
        ),
    )
    layers: Literal["all", "early"] | tuple[int, ...] = Field(
        default="all", description="blocks that reduce, counted from 0; `early` are 0, 1 and 2"
    )
    early_keep: float | None = Field(
        default=None,
        gt=0,
        le=1,
        description="keep rate of those layers that are early; the summary has 0.66 to 0.68",
    )
    last_free: int = Field(
        default=0,
        ge=0,
        description="so many of the model's last blocks do not reduce, whatever `layers` is",
    )
    place: Literal["after", "around"] = Field(
        default="after",
        description=(
            "merge after the attention for good, or around it: all tokens are restored before"
            " the MLP"
        ),
    )
    hold: int | None = Field(
        default=None,
        ge=1,
        description=f"blocks that one grouping around the attention serves ({HOLD} if not given)",
    )
    quota: float = Field(
        default=0.3, ge=0, le=1, description="share of the kept tokens that are hubs"
    )
    match: Literal["k", "xnorm"] = Field(
        default="k", description="what makes tokens similar: their keys or the normalised tokens"
    )
    merge: Literal["kv", "v"] = Field(
        default="kv", description="merge whole tokens, or only what their values add"
    )
    prop_attn: bool = Field(default=True, description="attention in proportion to token sizes")
    alpha: float = Field(
        default=0,
        ge=0,
        le=0.15,
        description="push-lite: the step toward similar removed tokens; 0: none",
    )
    beta: float = Field(
        default=0.1, ge=0, le=1, description="push-lite: cap of the step for a token of mean size"
    )
    delta: float = Field(
        default=0.5,
        ge=-4,
        le=4,
        description="push-lite: the cap grows with (size / mean size)^delta",
    )
    top_r: int = Field(
        default=2, ge=1, description="push-lite: similar removed tokens that are averaged"
    )
    eta: float = Field(
        default=0,
        ge=0,
        lt=1,
        description="stabiliser: share of itself that a kept token keeps beside the mean",
    )
    tau: float | None = Field(
        default=None,
        gt=0,
        description="clips lengths of merged tokens at tau x their mean; not given: no clip",
    )
    temperature: float = Field(
        default=0,
        ge=-4,
        le=4,
        description="merged tokens times (size / mean size)^temperature; 0: none",
    )
    clip: Literal["absolute"] | None = Field(
        default=None,
        description=(
            "absolute: tau is a length, as in the author's code; not given: a multiple of the mean"
            " length"
        ),
    )
    recentre: bool = Field(
        default=False, description="the merged tokens' mean becomes the mean weighted by size"
    )
    implementation: ImplementationField = "auto"
    rope: RopeField = None
    budget: BudgetField = None
    align: AlignField = None

    @field_validator("layers")
    @classmethod
    def _ordered(cls, layers: str | tuple[int, ...]) -> str | tuple[int, ...]:
        return (
            layers if isinstance(layers, str) else ordered_blocks(layers, ", or `all` or `early`")
        )

    @model_validator(mode="after")
    def _fitting(self) -> "Params":
        one_amount(r=self.r, keep_rate=self.keep_rate, budget=self.budget)
        if self.clip is not None and self.tau is None:
            raise ValueError("clip is about tau, and there is none; give tau too")
        if self.hold is not None and self.place != "around":
            raise ValueError(
                "hold is for place: around only; after the attention every block groups anew"
            )
        if (
            isinstance(self.r, tuple)
            and isinstance(self.layers, tuple)
            and len(self.r) != len(self.layers)
        ):
            raise ValueError(f"r lists {len(self.r)} numbers for {len(self.layers)} layers")
        if isinstance(self.r, tuple) and self.early_keep is not None:
            raise ValueError(
                "r lists a number for each layer; early_keep would overrule some of them"
            )
        return self

    @property
    def plain(self) -> bool:
        """Whether merged tokens are means, and nothing else is done to them."""
        adjusted = (self.alpha, self.eta, self.temperature, self.recentre, self.tau is not None)
        return not any(adjusted)

    def uncompiled(self, implementation: str, /) -> str | None:
        usual = self.place == "after" and self.match == "k" and self.merge == "kv"
        if implementation == "triton" and not (usual and self.plain):
            return "its kernels compute plain means of whole tokens matched by keys"
        return None

    def schedule_length(self, depth: int) -> int:
        """One number for each of the `layers`."""
        return len(self.named(depth))

    def named(self, depth: int) -> tuple[int, ...]:
        """The blocks that `layers` names in a model of `depth` blocks."""
        if isinstance(self.layers, tuple):
            return self.layers
        return tuple(range(depth if self.layers == "all" else min(EARLY, depth)))

    def goals(self, depth: int, patches: int) -> Mapping[int, tuple[int, int]]:
        """For each block that reduces, in order: patch tokens that enter it, and tokens requested
        to be removed, before the cap.
        """
        if self.budget is not None:
            raise ValueError(UNSOLVED)
        goals = {}
        for index, block in enumerate(self.named(depth)):
            if block >= depth - self.last_free:
                break
            rate = (
                self.early_keep if block < EARLY and self.early_keep is not None else self.keep_rate
            )
            if rate is not None:
                r = patches - math.ceil(round(rate * patches, ROUNDING))
            else:
                assert self.r is not None  # there is exactly one amount
                r = self.r if isinstance(self.r, int) else (*self.r, *(0,) * depth)[index]
            goals[block] = (patches, r)
            if self.place == "after":
                patches -= min(r, patches // 2)
        return goals

    def requested(self, depth: int, patches: int) -> Mapping[int, int]:
        goals = self.goals(depth, patches).items()
        return {block: present - min(r, present // 2) for block, (present, r) in goals}

    def left(self, depth: int, patches: int, prefix: int = 0) -> dict[int, int]:
        """As in `ScheduleParams`; around the attention all tokens enter every block."""
        if self.place == "after":
            return super().left(depth, patches, prefix)
        requested = self.requested(depth, patches).items()
        counts = {block: aligned(count, prefix, self.align) for block, count in requested}
        return {block: count for block, count in counts.items() if count < patches}

    def tokens(self, network: Network, image_size: ImageSize) -> tuple[BlockTokens, ...]:
        """Tokens in each block; around the attention all are restored before the MLP."""
        if self.place == "after":
            return super().tokens(network, image_size)
        patches, prefix = network.patch_tokens(image_size), network.prefix_tokens
        left = self.left(network.depth, patches, prefix)
        return tuple(
            BlockTokens(left.get(block, patches) + prefix, patches + prefix)
            for block in range(network.depth)
        )

    def solved(self, network: Network, image_size: ImageSize) -> dict[str, float]:
        """`r_capped_blocks`: in how many blocks more than half of the patch tokens were to go, so
        that fewer did.
        """
        goals = self.goals(network.depth, network.patch_tokens(image_size)).values()
        capped = sum(r > present // 2 for present, r in goals)
        return {"r_capped_blocks": capped} if capped else {}

    def grouping(self, left: Mapping[int, int]) -> tuple[int, ...]:
        """Of the blocks that reduce those that group tokens; the others hold the groups of the
        block before.
        """
        if self.place == "after":
            return tuple(left)
        grouping: list[int] = []
        for block, count in left.items():
            held = grouping and block - grouping[-1] < (self.hold or HOLD)
            if not held or left.get(block - 1) != count:
                grouping.append(block)
        return tuple(grouping)

    def geometry_refusal(self, network: Network) -> str | None:
        named = self.named(network.depth)
        if (reason := beyond(named, network)) is not None:
            return reason
        if isinstance(self.r, tuple) and len(self.r) > len(named):
            return f"r lists {len(self.r)} blocks, but {len(named)} of {network.name} reduce"
        return None


tokens, refuses = Params.tokens, Params.unfit
NEUTRAL = Params(r=0)
EXAMPLES = (
    Params(r=3),
    Params(r=(5, 0, 2), layers=(0, 1, 3), match="xnorm", merge="v", quota=0.5),
    Params(
        keep_rate=0.8,
        early_keep=0.66,
        last_free=1,
        alpha=0.15,
        eta=0.1,
        tau=1.2,
        temperature=0.3,
        recentre=True,
    ),
    Params(r=100, prop_attn=False, quota=0, tau=1, recentre=True),
    Params(keep_rate=0.66, layers="early", place="around"),
    Params(r=4, place="around", merge="v", match="xnorm", hold=1, alpha=0.1, eta=0.1),
    Params(r=3, align=8, merge="v", alpha=0.1),
)


def macs(params: Params, network: Network, image_size: ImageSize) -> int:
    """Similarities of signatures and of matched tokens; around the attention also what only the
    selection needs.

    After the attention the inflow costs nothing more: the attention forms its matrix itself.
    """
    patches, prefix = network.patch_tokens(image_size), network.prefix_tokens
    left = params.left(network.depth, patches, prefix)
    grouping, width = params.grouping(left), network.heads * network.head_dim
    feature = network.head_dim if params.match == "k" else network.width
    total, all_tokens = 0, patches + prefix
    for block, kept in left.items():
        if block in grouping:
            total += patches**2 * network.heads + (patches - kept) * kept * feature
        if params.place == "after":
            patches = kept
            continue
        if block in grouping:  # queries and keys of all tokens, and their products
            total += 2 * all_tokens * network.width * width + all_tokens**2 * width
        # values of the kept tokens come with their queries and keys, and are not used
        if params.merge == "v":
            total += (kept + prefix) * network.width * width
    return total


def apply(model: "VisionTransformer", params: Params) -> "VisionTransformer":
    """A copy of `model` that merges tokens into hubs and the farthest from them.

    Raises `Unsupported` as `fit` does, and where the implementation that is requested cannot run.
    """
    from workers.token_reduction import hquota_ops
    from workers.token_reduction.patch_vit import fit, stages
    from workers.token_reduction.token_ops import check_native

    adjustment = hquota_ops.MergeAdjustment()
    if not params.plain:
        adjustment = hquota_ops.MergeAdjustment(
            **{name: getattr(params, name) for name in hquota_ops.MergeAdjustment._fields}
        )
    native = params.implementation == "native"
    if native:
        check_native(model.patch_embed.proj.weight)
    if params.implementation == "triton":
        from workers.token_reduction import fused

        fused.check_device(model)
    reductions: dict[int, Reduction | FusedReduction | MergeAroundAttention] = {}
    after, by_key, whole = params.place == "after", params.match == "k", params.merge == "kv"
    found = tuple(stages(model, params))
    grouping_blocks = params.grouping({stage.block: stage.left for stage in found})
    for block, prefix, _, left in found:
        grouping = hquota_ops.Grouping(prefix, left, params.quota, by_key, adjustment, native)
        if params.implementation == "triton":
            reductions[block] = fused.grouping(prefix, left, grouping.hubs)
        elif after:
            reductions[block] = hquota_ops.merge_after(grouping, whole=whole)
        else:
            reductions[block] = hquota_ops.merge_around(
                grouping,
                whole=whole,
                by_size=params.prop_attn,
                groups=block in grouping_blocks,
            )
    return fit(
        model,
        reductions,
        proportional=after and params.prop_attn,
        by_size=after,
        inflow=after,
        mean=params.rope is not None,
    )
