"""Rows: how requested arms and comparisons look in columns, rows of frames as typed values, and the
quality that belongs to a speed-up.
"""

import math
from collections.abc import Sequence
from dataclasses import MISSING, dataclass, fields

import pandas as pd
import pytest
from sqlalchemy import Engine

from store.read.quality import beside_controls, join_quality, states
from store.rows.frames import rows_of
from store.rows.row_mapping import (
    comparison_row,
    curve_id,
    quality_ids,
    requested_params,
    shown_baseline,
    timestamp,
)
from store.views.public import TABLES
from store.write.submission import NewSweep, submit_sweep
from sweeps.analysis import rows
from sweeps.model.condition import Condition, Overrides
from sweeps.model.job import DENSE, Arm, Comparison, Pair, Step
from tests.fixtures.quality_states import filled, found_states
from tests.store.conftest import keep
from tests.store.language_fixtures import NOW, a_quality_job, a_reading

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


WHERE = {"model": "m", "weights": "trained", "dtype": "float32", "attention": "sdpa"}
WHERE |= dict.fromkeys(("image_size", "image_shape"))


def speed(method: str, params: str, baseline: Arm = DENSE) -> dict[str, object]:
    columns = {**WHERE, "method": method, "params": params}
    return {**columns, **quality_ids(columns, baseline), "verdict": "faster"}


def quality(
    method: str, params: str, at: str, bits: float, baseline: Arm = DENSE, **more: object
) -> dict[str, object]:
    own = speed(method, params, baseline)
    return {**own, "measured_at": at, "bits_per_byte": bits, **more}


def test_the_newest_quality_of_the_same_arm() -> None:
    """Caches and runtimes are left out on both sides; other overrides, parameters and baselines are
    not. Without a quality the columns are empty.
    """
    stack = '[{"method":"a","r":1},{"method":"b"}%s]'
    cached, half = (
        Arm(overrides=Overrides(kv_cache="dynamic", dtype=of)) for of in (None, "bfloat16")
    )
    speeds = [
        speed("a", '{"r":1}'),
        speed("a", '{"r":1,"kv_cache":"virtual"}', cached),
        speed("a+b", stack % ',{"kv_cache":"virtual","runtime":"compile"}', half),
        speed("a", '{"r":2}'),
        speed("a", '{"r":1}', Arm(stack=(Step(method="b", params={"r": 1}),))),
    ]
    qualities = [
        quality("a", '{"r":1}', "2026-02", 2.0),
        quality("a", '{"r":1}', "2026-01", 9.0),
        quality("a+b", stack % "", "2026-01", 3.0, Arm(overrides=Overrides(dtype="bfloat16"))),
    ]
    found = join_quality(pd.DataFrame(speeds), pd.DataFrame(qualities))
    assert list(found["bits_per_byte"].fillna(0)) == [2.0, 2.0, 3.0, 0, 0]
    assert list(found["verdict"]) == ["faster"] * 5
    assert list(found.columns) == [*speeds[0], "measured_at", "bits_per_byte"]
    found = join_quality(pd.DataFrame(speeds[:1]), pd.DataFrame(columns=list(qualities[0])))
    assert found["bits_per_byte"].isna().tolist() == [True]


def test_images_as_they_are_come_before_corrupted_ones() -> None:
    """The change on clean images stands beside a speed-up, also where corrupted ones were evaluated
    later.
    """
    rows = [
        quality("a", "{}", "2026-01", 2.0, corruption=None),
        quality("a", "{}", "2026-02", 9.0, corruption="fog"),
        quality("b", "{}", "2026-01", 8.0, corruption="fog"),
    ]
    found = join_quality(pd.DataFrame([speed("a", "{}"), speed("b", "{}")]), pd.DataFrame(rows))
    assert list(found["bits_per_byte"]) == [2.0, 8.0]
    assert list(found["corruption"].fillna("none")) == ["none", "fog"]


KINDS = {
    "speedup": rows.SpeedupRow,
    "effect": rows.EffectRow,
    "break_even": rows.BreakEvenRow,
    "cost_model": rows.CostModelRow,
    "failures": rows.FailureRow,
    "accuracy": rows.AccuracyRow,
    "arm": rows.ArmRow,
    "profile": rows.ProfileRow,
    "kernel": rows.KernelRow,
}
SHARED = {field.name for field in fields(rows.ConditionRow)} | {"panel_id"}
"""Optional columns, which some views leave out."""


@dataclass(frozen=True, kw_only=True)
class Sizes:
    name: str
    tokens: int | None = None
    low: float | None = None
    wide: bool = False


def test_every_field_is_a_column_of_its_view() -> None:
    """But columns of a condition that no row of the view has."""
    for view, kind in KINDS.items():
        own = {field.name: field for field in fields(kind)}
        missing = set(own) - set(TABLES[view].columns.keys())
        assert missing <= SHARED
        assert [name for name in missing if own[name].default is MISSING] == []


def test_null_is_none_and_numbers_are_those_of_python() -> None:
    """Whole numbers beside a NULL are floats in a frame; a column without a default must be
    there.
    """
    cells = {"name": ["a", "b"], "tokens": [4, math.nan], "low": [1, 2], "wide": [1, 0], "more": 0}
    first, second = rows_of(pd.DataFrame(cells), Sizes)
    assert first == Sizes(name="a", tokens=4, low=1.0, wide=True)
    assert second == Sizes(name="b", tokens=None, low=2.0)
    assert [type(first.tokens), type(first.low), type(first.wide)] == [int, float, bool]
    with pytest.raises(KeyError, match="name"):
        rows_of(pd.DataFrame({"tokens": [1]}), Sizes)
    assert rows_of(pd.DataFrame({"name": []}), Sizes) == []


def tuned(ngrams: int) -> Arm:
    return Arm(stack=(Step(method="tuned", params={"ngrams": ngrams}),))


def control_of(arm: Arm, among: Sequence[Arm]) -> tuple[Arm, int | None] | None:
    """The control of an arm with n-grams is that without."""
    if arm.method != "tuned" or not arm.stack[0].params["ngrams"]:
        return None
    return tuned(0), next((place for place, other in enumerate(among) if other == tuned(0)), None)


def test_each_comparison_has_a_state(engine: Engine) -> None:
    """Measured, failed with its reason, queued, and requested without being in the queue."""
    filled(engine)
    expected = (
        ("measured", None),
        ("failed", "out_of_memory"),
        ("queued", None),
        ("not measured", None),
    )
    arms = [f'{{"form":"absorbed","sparsity":{sparsity}}}' for sparsity in (0.2, 0.3, 0.4, 0.5)]
    assert found_states(engine) == dict(zip(arms, expected, strict=True))
    assert states(engine, "requested", "accuracy").empty
    assert states(engine, "unknown", "quality").empty


def test_a_tuned_arm_is_paired_with_its_control(engine: Engine) -> None:
    """The newest unflagged attempt with both counts; without the control in the job there is a row,
    and no change.
    """
    with_control, without = a_quality_job([tuned(500), tuned(0)]), a_quality_job([tuned(300)])
    requested = [
        (job.comparison(Pair(*pair)), job.content_hashes)
        for job in (with_control, without)
        for pair in job.pairs
    ]
    submit_sweep(engine, NewSweep("tuned", "text", "What does tuning do?"), requested, [])
    spoilt = a_reading(with_control, (0.0, 1.0, 0.0), noise=0.001, ended_at=NOW + 9).model_copy(
        update={"flags": ("contended",)}
    )
    for outcome in (
        a_reading(with_control, (0.0, -0.47, -0.5), noise=0.001),
        spoilt,
        a_reading(without, (0.0, -0.4)),
    ):
        keep(engine, outcome)
    found = beside_controls(engine, "tuned", control_of).set_index("params")
    row = found.loc['{"ngrams":500}']
    assert (row["control"], row["control_params"]) == ("tuned", '{"ngrams":0}')
    assert row["change_low"] < 0.03 < row["change_high"]
    assert row["change_high"] - row["change_low"] < 0.01
    assert found.loc['{"ngrams":300}', ["change", "change_low", "change_high"]].isna().all()
    assert len(found) == 2
