"""How requested arms and comparisons look in the columns of the views."""

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
COMPILE = Overrides(runtime="compile")


def test_params() -> None:
    """Params are what stands in the sweep file: the method's, and overrides and replicate beside
    them.
    """
    both = [{"method": "topk", "keep_rate": 0.5}, {"method": "tome", "r": 13}]
    for arm, params in (
        (Arm(), {}),
        (Arm(replicate=2), {"replicate": 2}),
        (Arm(stack=(TOPK,), overrides=COMPILE), {"keep_rate": 0.5, "runtime": "compile"}),
        (Arm(stack=(TOPK, TOME)), both),
        (Arm(stack=(TOPK, TOME), overrides=COMPILE), [*both, {"runtime": "compile"}]),
    ):
        assert requested_params(arm) == params


def test_the_baseline_names_where_it_differs() -> None:
    """The condition columns are the arm's; the baseline's text names what is different there."""
    for baseline, arm, text, runtime in (
        (Arm(), Arm(replicate=1), "dense", "eager"),
        (Arm(overrides=COMPILE), Arm(stack=(TOPK,)), "dense [runtime=compile]", "eager"),
        (Arm(), Arm(overrides=COMPILE), "dense [runtime=eager]", "compile"),
        (Arm(overrides=COMPILE), Arm(stack=(TOPK,), overrides=COMPILE), "dense", "compile"),
        (Arm(stack=(TOME,)), Arm(stack=(TOPK,)), "tome(r=13)", "eager"),
    ):
        comparison = Comparison(condition=CONDITION, baseline=baseline, arm=arm)
        assert str(shown_baseline(comparison)) == text
        assert comparison_row(comparison, {})["runtime"] == runtime


def test_points_of_one_curve() -> None:
    """The image size moves along a curve; any other requested value makes another curve, a version
    does not.
    """
    arm = Arm(stack=(TOPK,))
    here = Comparison(condition=CONDITION, baseline=Arm(), arm=arm)

    def other(**fields: int) -> Comparison:
        return here.model_copy(update={"condition": CONDITION.model_copy(update=fields)})

    newer = here.model_copy(update={"arm": Arm(stack=(TOPK.model_copy(update={"version": 2}),))})
    again = here.model_copy(update={"arm": arm.model_copy(update={"replicate": 1})})
    assert curve_id(here) == curve_id(other(image_size=96)) == curve_id(newer)
    assert len({curve_id(each) for each in (here, other(batch_size=8), again)}) == 3


def test_timestamp() -> None:
    """Times are ISO 8601 in UTC with milliseconds, so that their text order is their order."""
    assert timestamp(0) == "1970-01-01T00:00:00.000Z"
    assert timestamp(1_790_000_000.9996) == "2026-09-21T14:13:21.000Z"
