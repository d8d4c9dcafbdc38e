"""The old rules on made pairs, and both sets of rules on a stored dump."""

import math
from pathlib import Path

import numpy as np
import pytest

from tests.benchmarks.old_and_new import compared, old_claim, old_speedup, opened, table

DUMP = Path(__file__).parents[1] / "store" / "version_6.sql"


def test_the_sign_interval_of_the_median() -> None:
    """Of 30 ordered values it ends at the 10th from either side; a fifth faster is `faster`, and 6 pairs are too few."""
    found = old_speedup([np.log(1.2) + np.linspace(-0.01, 0.01, 30)])
    assert math.log(found.high / 1.2) == pytest.approx(-0.01 + 20 * 0.02 / 29)
    assert math.log(found.low / 1.2) == pytest.approx(-0.01 + 9 * 0.02 / 29)
    assert found.verdict == "faster"
    assert old_speedup([np.zeros(30)]).verdict == "same"
    assert old_speedup([np.full(6, 0.2)]).verdict == "unclear"


def test_attempts_that_differ_widen_the_interval() -> None:
    """Student's t on their medians, beyond the hull of their own intervals where these are apart: 12.7 standard errors."""
    found = old_speedup([np.full(30, 0.1), np.full(30, 0.2)])
    assert math.log(found.high) == pytest.approx(0.15 + 12.706 * 0.05, rel=1e-3)
    assert found.verdict == "unclear"


def test_old_claims() -> None:
    """A crossing needs clear points of both signs; flagged points count if there are no others."""
    points = [(4.0, "slower", False), (16.0, "unclear", False), (36.0, "faster", False)]
    assert old_claim(points) == "gains (4 to 36)"
    assert old_claim([*points[1:], (4.0, "slower", True)]) == "unclear"
    assert old_claim([(x, verdict, True) for x, verdict, _ in points]) == "gains (4 to 36)"
    assert old_claim([(4.0, "same", False), (36.0, "slower", False)]) == "never"


def test_a_dump_is_analysed_by_both(tmp_path: Path) -> None:
    """Every comparison of forwards has two answers that agree on its value, and every curve two claims."""
    store = opened(DUMP, tmp_path)
    found = list(compared(store))
    assert len(found) == 4
    assert all(both.old.value == pytest.approx(both.new.value, rel=0.01) for both in found)
    shown = "\n".join(table(store))
    assert "median half-width: old 0.59%" in shown
    assert "old gains (16 to 64); new gains (16 to 64)" in shown
