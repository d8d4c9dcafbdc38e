"""How requested arms and comparisons look in the columns of the views."""

import pytest

from store.rows.row_mapping import (
    comparison_row,
    curve_id,
    requested_params,
    shown_baseline,
    timestamp,
)
from sweeps.model.condition import Condition, Overrides
from sweeps.model.job import Arm, Comparison, Step

CONDITION = Condition(model="deit_tiny_patch16_224", image_size=224)
TOPK = Step(method="topk", params={"keep_rate": 0.5})
TOME = Step(method="tome", params={"r": 13})


@pytest.mark.parametrize(
    ("arm", "params"),
    [
        (Arm(), {}),
        (Arm(replicate=2), {"replicate": 2}),
        (Arm(stack=(TOPK,)), {"keep_rate": 0.5}),
        (
            Arm(stack=(TOPK,), overrides=Overrides(runtime="compile")),
            {"keep_rate": 0.5, "runtime": "compile"},
        ),
        (
            Arm(stack=(TOPK, TOME)),
            [{"method": "topk", "keep_rate": 0.5}, {"method": "tome", "r": 13}],
        ),
        (
            Arm(stack=(TOPK, TOME), overrides=Overrides(dtype="bfloat16")),
            [
                {"method": "topk", "keep_rate": 0.5},
                {"method": "tome", "r": 13},
                {"dtype": "bfloat16"},
            ],
        ),
    ],
)
def test_params(arm: Arm, params: object) -> None:
    """Params are what stands in the sweep file: the method's, and overrides and replicate beside
    them.
    """
    assert requested_params(arm) == params


@pytest.mark.parametrize(
    ("baseline", "arm", "text", "runtime"),
    [
        (Arm(), Arm(stack=(TOPK,)), "dense", "eager"),
        (
            Arm(overrides=Overrides(runtime="compile")),
            Arm(stack=(TOPK,)),
            "dense [runtime=compile]",
            "eager",
        ),
        (Arm(), Arm(overrides=Overrides(runtime="compile")), "dense [runtime=eager]", "compile"),
        (
            Arm(overrides=Overrides(runtime="compile")),
            Arm(stack=(TOPK,), overrides=Overrides(runtime="compile")),
            "dense",
            "compile",
        ),
        (Arm(stack=(TOME,)), Arm(stack=(TOPK,)), "tome(r=13)", "eager"),
        (Arm(), Arm(replicate=1), "dense", "eager"),
    ],
)
def test_the_baseline_names_where_it_differs(
    baseline: Arm, arm: Arm, text: str, runtime: str
) -> None:
    """The condition columns are the arm's; the baseline's text names what is different there."""
    comparison = Comparison(condition=CONDITION, baseline=baseline, arm=arm)
    assert str(shown_baseline(comparison)) == text
    assert comparison_row(comparison, {})["runtime"] == runtime


def test_points_of_one_curve() -> None:
    """The image size moves along a curve; any other requested value makes another curve, a version
    does not.
    """
    here = Comparison(condition=CONDITION, baseline=Arm(), arm=Arm(stack=(TOPK,)))
    along = here.model_copy(update={"condition": CONDITION.model_copy(update={"image_size": 96})})
    newer = here.model_copy(update={"arm": Arm(stack=(TOPK.model_copy(update={"version": 2}),))})
    batch = here.model_copy(update={"condition": CONDITION.model_copy(update={"batch_size": 8})})
    again = here.model_copy(update={"arm": Arm(stack=(TOPK,), replicate=1)})
    assert curve_id(here) == curve_id(along) == curve_id(newer)
    assert len({curve_id(here), curve_id(batch), curve_id(again)}) == 3


def test_timestamp() -> None:
    """Times are ISO 8601 in UTC with milliseconds, so that their text order is their order."""
    assert timestamp(0) == "1970-01-01T00:00:00.000Z"
    assert timestamp(1_790_000_000.9996) == "2026-09-21T14:13:21.000Z"
