"""The gain in effective samples on simulated noise, and on a stored dump."""

from pathlib import Path

import numpy as np
import pytest

from tests.benchmarks.estimator import Recorded, main, noise
from tests.fixtures.timing_noise import simulated_rounds

DUMP = Path(__file__).parents[1] / "store" / "version_7.sql"
ARMS = (0, 1, 2, 3, 4, 0)


def test_the_gain_on_simulated_noise() -> None:
    """With five arms and a second column of the baseline, quiet noise is worth 1.4 times the samples in the same time."""
    seconds = simulated_rounds(np.random.default_rng(1), "quiet", np.full(6, np.log(0.02)), 30 * 200)
    found = noise(Recorded(1000.0, ARMS, (1,) * 6, seconds), 30)
    assert found is not None
    assert found.columns_time == pytest.approx(5 / 6, rel=0.01)
    assert 1.2 < found.per_second < 1.8
    assert found.estimates == 200 * 4


def test_an_attempt_without_enough_rounds_has_none() -> None:
    """Four stretches and a second arm are needed."""
    seconds = np.full((100, 2), 0.01)
    assert noise(Recorded(10.0, (0, 1), (1, 1), seconds), 30) is None
    assert noise(Recorded(10.0, (0, 0), (1, 1), seconds), 10) is None


def test_a_dump_is_read(capsys: pytest.CaptureFixture[str]) -> None:
    """The samples of a stored dump are analysed, or it is stated that they are too few."""
    assert main([str(DUMP), "--rounds", "6"]) == 0
    shown = capsys.readouterr().out
    assert "times" in shown or "no attempt has" in shown
