"""Untrusted outcomes: what contradicts itself or fits no database is refused in a line that names it."""

import pytest
from pydantic import ValidationError

from sweeps.outcome import MetricValue, Outcome
from tests.fixtures.outcomes import HOSTILE, OUTCOME, changed


@pytest.mark.parametrize("which", HOSTILE)
def test_hostile_outcomes_are_refused(which: str) -> None:
    """Each contradiction is a validation error that names it."""
    change, message = HOSTILE[which]
    with pytest.raises(ValidationError, match=message):
        Outcome.model_validate_json(changed(change))


def test_an_honest_outcome_is_read_back() -> None:
    """What a worker writes is taken in, not-a-number metrics included."""
    assert Outcome.model_validate_json(OUTCOME.model_dump_json()) == OUTCOME
    broken = OUTCOME.arms[0].model_copy(update={"metrics": (MetricValue(name="power", value=float("inf"), unit="W"),)})
    assert OUTCOME.model_copy(update={"arms": (broken, OUTCOME.arms[1])}).arms[0].metrics[0].value == float("inf")
