"""Token counts aligned to hardware tiles, and r beyond the cap: what is promised, and what is
recorded.
"""

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeps.geometry.vit_catalogue import networks
from tests.workers.vision_jobs import planned
from workers import methods
from workers.arms.budget import solve
from workers.token_reduction import ScheduleParams

FOUND = methods.of_modality("vision")
DEIT_S = networks()["deit_small_patch16_224"]
ALIGNING = sorted(name for name, method in FOUND.items() if "align" in method.Params.model_fields)


def mlps(name, **params):
    return [block.mlp for block in methods.promised_tokens(planned(name, **params), DEIT_S, 224)]


class Counts(ScheduleParams):
    """A schedule given block by block."""

    counts: tuple[int, ...]
    align: int | None = None

    def requested(self, depth, patches):
        return dict(enumerate(self.counts[:depth]))

    def geometry_refusal(self, network):
        return None


@given(
    st.lists(st.integers(0, 300), min_size=1, max_size=12), st.integers(0, 5), st.integers(1, 128)
)
def test_rounds_up_to_a_multiple_of_what_is_there(counts, prefix, align):
    """At least what was requested, at most what there was, and whole tiles unless none is gone."""
    counts = sorted(counts, reverse=True)
    patches = counts[0] + 7
    left = Counts(counts=counts, align=align).left(len(counts), patches, prefix)
    kept = patches
    for block, requested in enumerate(counts):
        before, kept = kept, left.get(block, kept)
        assert requested <= kept <= before
        assert kept == patches or ((kept + prefix) % align == 0 and kept - requested < align)
    exact = {
        block: count
        for block, (before, count) in enumerate(pairwise((patches, *counts)))
        if count < before
    }
    assert Counts(counts=counts).left(len(counts), patches, prefix) == exact
    assert Counts(counts=counts, align=1).left(len(counts), patches, prefix) == exact


def test_keeps_whole_tiles():
    """TopK at 0.5 of 197 tokens: 99, 50 and 26 become 128, 64 and 64 when aligned to 64."""
    assert mlps("topk", keep_rate=0.5) == [197] * 3 + [99] * 3 + [50] * 3 + [26] * 3
    assert mlps("topk", keep_rate=0.5, align=64) == [197] * 3 + [128] * 3 + [64] * 6
    assert mlps("topk", keep_rate=0.7, align=64) == [197] * 3 + [192] * 3 + [128] * 6


@pytest.mark.parametrize("name", ALIGNING)
def test_every_method_rounds_up(name):
    """`align` adds less than a tile to any block, and what came on top is recorded."""
    plain = FOUND[name].EXAMPLES[0]
    params = plain.model_copy(update={"align": 32})
    network = DEIT_S
    without, with_ = (FOUND[name].tokens(each, network, 224) for each in (plain, params))
    extra = [rounded.mlp - exact.mlp for rounded, exact in zip(with_, without, strict=True)]
    assert extra
    assert all(count >= 0 for count in extra)
    assert sum(extra) > 0
    solved = solve(planned(name, **params.model_dump(exclude_none=True)), network, 224)
    assert solved.values["align_extra_tokens"] == pytest.approx(sum(extra) / network.depth)


def test_r_beyond_the_cap_is_capped_and_recorded():
    """r=100 of 196 tokens is capped in every block and recorded so; r=13 never is."""
    assert solve(planned("tome", r=100), DEIT_S, 224).values == {"r_capped_blocks": 12}
    assert solve(planned("tome", r=(98, 98)), DEIT_S, 224).values == {"r_capped_blocks": 1}
    assert solve(planned("tome", r=13), DEIT_S, 224).values == {}
    assert math.isclose(sum(mlps("tome", r=100)), 99 + 50 + 26 + 14 + 8 + 5 + 3 + 2 * 5)
