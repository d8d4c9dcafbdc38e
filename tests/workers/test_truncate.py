"""The method that cuts tokens for nothing: its token counts are those of the schedules it copies,
and nothing is added.
"""

from typing import Any

import pytest
import torch
from pydantic import ValidationError

from sweeps.geometry.vit_catalogue import networks
from tests.workers.tiny_vits import images, small, small_network
from workers import methods
from workers.methods.vision.truncate import truncation
from workers.models.runtime import trace
from workers.token_reduction.patch_vit import AttentionState

DEIT_S = networks()["deit_small_patch16_224"]
FREE = methods.of_modality("vision")["truncate"]
COPIED: list[tuple[str, dict[str, Any]]] = [
    ("topk", {"keep_rate": 0.7}),
    ("topk", {"keep_rate": 0.1, "layers": (2, 5, 8)}),
    ("topk", {"keep_rate": 0.62, "align": 64}),
    ("tome", {"r": 13}),
    ("tome", {"r": (20, 0, 8)}),
    ("tome", {"r_ratio": 0.08}),
]


@pytest.mark.parametrize(("method", "params"), COPIED)
@pytest.mark.parametrize("size", [96, 224])
def test_its_schedule_is_the_other_method_s(method: str, params: dict[str, Any], size: int) -> None:
    """Block for block the same tokens, and no MACs of its own."""
    other = methods.of_modality("vision")[method]
    requested = FREE.Params(**params)
    assert FREE.tokens(requested, DEIT_S, size) == other.tokens(
        other.Params(**params), DEIT_S, size
    )
    assert FREE.macs(requested, DEIT_S, size) == 0


@pytest.mark.parametrize(
    "params",
    [{"keep_rate": 0.7}, {"keep_rate": 0.1, "layers": (2, 5, 8)}, {"keep_rate": 0.62, "align": 64}],
)
def test_a_fused_token_counts(params: dict[str, Any]) -> None:
    """With one token more the schedule is that of a method that fuses what it drops."""
    other = methods.of_modality("vision")["evit"]
    requested = FREE.Params(**params, fused=True)
    assert FREE.tokens(requested, DEIT_S, 224) == other.tokens(other.Params(**params), DEIT_S, 224)


def test_the_first_tokens_stay() -> None:
    """Prefix tokens and the first patch tokens, as a cut of the model's own tensors."""
    params = FREE.Params(keep_rate=0.5, layers=(1,))
    seen = trace(FREE.apply(small("registers"), params), images())
    assert seen.blocks == FREE.tokens(params, small_network("registers"), 40)
    x_BND = torch.arange(12.0).reshape(1, 6, 2)
    place_BNP = torch.arange(6.0).reshape(1, 6, 1)
    attended = AttentionState(*(x_BND, x_BND, None, 1.0), *(x_BND,) * 3, place_BNP=place_BNP)
    left_BMD, size, left_BMP = truncation(4)(x_BND, None, attended)
    assert torch.equal(left_BMP, place_BNP[:, :4])
    assert torch.equal(left_BMD, x_BND[:, :4])
    assert size is None
    assert left_BMD.data_ptr() == x_BND.data_ptr(), "nothing is copied"


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({}, "give either keep_rate, r or r_ratio"),
        ({"keep_rate": 0.5, "r": 3}, "not both keep_rate and r"),
        ({"r": 3, "layers": (1, 2)}, "layers belong to keep_rate"),
        ({"r": 3, "fused": True}, "fused belongs to keep_rate"),
        ({"keep_rate": 0.5, "layers": (1, 1)}, "must be different blocks"),
    ],
)
def test_one_schedule_is_needed(params: dict[str, Any], message: str) -> None:
    """Each message names what would be right."""
    with pytest.raises(ValidationError, match=message):
        FREE.Params(**params)


def test_its_purpose_is_known() -> None:
    """Controls and ceilings are no optimisations; a stack with one of them is none either."""
    assert {
        name: methods.purpose(name)
        for name in ("truncate", "slowed", "topk", "dense", "topk+slowed", "unknown")
    } == {
        "truncate": "ceiling",
        "slowed": "control",
        "topk": "optimisation",
        "dense": "optimisation",
        "topk+slowed": "control",
        "unknown": "optimisation",
    }
