"""Waterfalls from the baseline's time to the arm's: steps by MACs, ceiling, profile and cost model,
and what operators show of the reasons.
"""

from dataclasses import replace
from typing import Any

import pytest

from sweeps.analysis.rows import CeilingRow, CostModelRow
from sweeps.analysis.waterfall import (
    OperatorPair,
    Part,
    model_parts,
    operator_reasons,
    profile_parts,
    waterfall,
)
from sweeps.model.profile import ArmProfile, IntervalEstimate
from sweeps.text.explanation import waterfall_headline
from tests.fixtures.typed_rows import row_of

TIMES = {"baseline_ms": 4.0, "arm_ms": 3.2}
HALF = {"gmacs_baseline": 2.0, "gmacs_total": 1.0}


def a_row(**known: Any) -> CeilingRow:
    return row_of(CeilingRow, **TIMES, **known)


def steps(row: CeilingRow, parts: list[Part]) -> list[tuple[str, float, float]]:
    return [(each.kind, round(each.start, 6), round(each.end, 6)) for each in waterfall(row, parts)]


@pytest.mark.parametrize(
    ("known", "between"),
    [
        ({}, [("rest", 4, 3.2)]),
        (HALF, [("promise", 4, 2), ("rest", 2, 3.2)]),
        (HALF | {"ceiling": 1.6}, [("promise", 4, 2), ("ceiling", 2, 2.5), ("rest", 2.5, 3.2)]),
    ],
)
def test_steps_lead_from_one_time_to_the_other(
    known: dict[str, float], between: list[tuple[str, float, float]]
) -> None:
    """Each begins where the one before ended; without a time there is none."""
    expected = [("baseline", 0, 4), *between, ("arm", 0, 3.2)]
    assert steps(a_row(**known), []) == expected
    assert waterfall(row_of(CeilingRow, baseline_ms=4.0, **known), []) == []


def test_small_parts_are_in_the_rest() -> None:
    """And a rest that is as small is not named beside parts."""
    parts = [Part("work", 1.195), Part("class", 0.004, "idle")]
    assert [each[0] for each in steps(a_row(**HALF), parts)][2:-1] == ["work"]
    assert [each[0] for each in steps(a_row(**HALF), [Part("work", 1.0)])][2:-1] == ["work", "rest"]


def test_a_profile_splits_what_is_beyond_the_promise() -> None:
    """In ms of the timing, by the change of each class; operators beyond what fewer MACs, or the
    same tokens cut for nothing, save.
    """
    baseline = ArmProfile(arm=0, tool="torch", forwards=1, wall_s=0.008, times={"device": 0.006})
    changes = {"device": IntervalEstimate(value=-0.4), "host": IntervalEstimate(value=0.2)}
    arm = ArmProfile(
        arm=1, tool="torch", forwards=1, times={"device": 0.003, "host": 1.0}, changes=changes
    )
    parts = profile_parts(a_row(**HALF), baseline, arm)
    found = {part.time_class: part.ms for part in parts}
    assert found == pytest.approx({"device": -1.6 + 2.0, "host": 0.8})
    (device, _) = profile_parts(a_row(**HALF, ceiling=1.6), baseline, arm)
    assert device.ms == pytest.approx(-1.6 + 1.5)
    assert profile_parts(a_row(**HALF), baseline.model_copy(update={"wall_s": None}), arm) == []


@pytest.mark.parametrize("unit", ["GMAC", "token"])
def test_a_cost_model_adds_up_to_its_own_time(unit: str) -> None:
    """Fixed cost that stays, fixed cost added and cost of work lead from the fitted baseline's
    promise to the fitted arm; a fit that describes nothing gives none.
    """
    known = {"alpha": 0.0015, "alpha_baseline": 0.001, "beta": 0.002, "beta_baseline": 0.0015}
    costs = row_of(CostModelRow, work_unit=unit, verdict="fits", **known)
    whole, left = (2, 2) if unit == "token" else (2.0, 1.0)
    row = a_row(**HALF, tokens=2)
    fitted = 1e3 * (0.001 + 0.0015 * whole), 1e3 * (0.0015 + 0.002 * left)
    parts = model_parts(row, costs)
    assert sum(part.ms for part in parts) == pytest.approx(fitted[1] - fitted[0] / 2)
    assert {part.kind: part.ms for part in parts}["fixed kept"] == pytest.approx(0.5)
    cut = model_parts(a_row(**HALF, ceiling=1.6, tokens=2), costs)
    assert [part.kind for part in cut] == ["fixed added", "work"]
    assert model_parts(row, replace(costs, verdict="misfit")) == []


def test_reasons_are_ordered_by_the_time_that_they_take() -> None:
    """Operators with less work that move as many bytes apart from others, added and longer ones;
    three at most.
    """
    addmm = OperatorPair("aten::addmm", 3.0, 2.8, 48, 48, 0.09, 0.045, 24.6e6, 23.4e6)
    bmm = OperatorPair("aten::bmm", 1.0, 0.6, 24, 24, 0.02, 0.01, 2e6, 1e6)
    sort = OperatorPair("aten::sort", 0.0, 0.3, 0, 3)
    norm = OperatorPair("aten::norm", 0.5, 0.7, 25, 25)
    found = operator_reasons([norm, sort, bmm, addmm])
    kinds = [(each.kind, each.pairs[0].short_name) for each in found]
    assert kinds == [("weights", "addmm"), ("added", "sort"), ("longer", "norm")]
    assert found[0].lost_ms == pytest.approx(2.8 - 1.5)
    fewer = addmm._replace(arm_bytes=12e6)
    assert [each.kind for each in operator_reasons([fewer, bmm])] == ["products"]
    assert operator_reasons([]) == []


def test_the_headline_names_the_largest_loss() -> None:
    row = a_row(**HALF)
    parts = [Part("class", 0.9, "host"), Part("class", 0.3, "device")]
    text = waterfall_headline("topk", waterfall(row, parts), "cpu")
    assert text == "topk: 4 → 3.2 ms, promised 2; lost to Python and dispatch"
    as_promised = row_of(CeilingRow, baseline_ms=4.0, arm_ms=2.0, **HALF)
    assert waterfall_headline("topk", waterfall(as_promised, []), "cpu").endswith("promised 2")
