"""Rows of frames as typed values."""

import math
from dataclasses import MISSING, dataclass, fields

import pandas as pd
import pytest

from store.rows.frames import rows_of
from store.views.public import TABLES
from sweeps.analysis import rows

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
