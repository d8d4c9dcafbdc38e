"""`breakeven compare --revision` on regressions and on a renamed variable."""

from pathlib import Path

import pytest

from tests.benchmarks.regressions import EXPECTED, UNDECIDED, exit_codes, make_repository


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.parametrize("branch", EXPECTED)
def test_a_regression_is_found_and_a_renaming_is_none(tmp_path: Path, branch: str) -> None:
    """Twice the work, and less than 30 % of a renaming: far more than a busy machine hides. Ten
    runs with 5 and 2.5 % are `tests/benchmarks/regressions.py`.
    """
    make_repository(tmp_path, 1.0)
    assert exit_codes(tmp_path, branch, 2, "1m", "30%") == {EXPECTED[branch]: 2}


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.parametrize("branch", EXPECTED)
def test_a_small_regression_is_never_called_none(tmp_path: Path, branch: str) -> None:
    """Of 5 %: what a busy machine hides is undecided."""
    make_repository(tmp_path, 0.05)
    codes = exit_codes(tmp_path, branch, 1, "30s", "2.5%")
    assert codes.keys() <= {EXPECTED[branch], UNDECIDED}
