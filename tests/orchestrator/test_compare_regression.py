"""`breakeven compare --revision` on a regression of 5 % and on a renamed variable."""

from pathlib import Path

import pytest

from tests.benchmarks.regressions import EXPECTED, UNDECIDED, exit_codes, make_repository


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.parametrize("branch", EXPECTED)
def test_a_regression_is_found_and_a_renaming_is_none(tmp_path: Path, branch: str) -> None:
    """Never the opposite, and at least once in two runs what is expected; ten runs are
    `tests/benchmarks/regressions.py`.
    """
    make_repository(tmp_path)
    codes = exit_codes(tmp_path, branch, 2, "1m")
    assert codes.keys() <= {EXPECTED[branch], UNDECIDED}
    assert codes[EXPECTED[branch]] >= 1
