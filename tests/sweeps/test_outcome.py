"""Untrusted outcomes: what contradicts itself or fits no database is refused in a line that names
it.
"""

import json

import pytest
from pydantic import ValidationError

from sweeps.model.outcome import MetricValue, Outcome
from tests.fixtures.outcomes import HOSTILE, OUTCOME, changed


@pytest.mark.parametrize("which", HOSTILE)
def test_hostile_outcomes_are_refused(which: str) -> None:
    """Each contradiction is a validation error that names it."""
    change, message = HOSTILE[which]
    with pytest.raises(ValidationError, match=message):
        Outcome.model_validate_json(changed(change))


def test_an_arm_may_be_timed_twice_in_every_round() -> None:
    """Two columns of samples then name it; a row of bursts has one value for each arm, not for each
    column.
    """
    slots = {
        "arms": [0, 1, 0],
        "seconds": [[0.1, 0.2, 0.1]],
        "order": [[2, 0, 1]],
        "inner": [1, 1, 1],
        "series": {},
    }
    document = json.loads(OUTCOME.model_dump_json())
    document["samples"] |= {**slots, "bursts": [[0.09, 0.18], [0.08, 0.19]]}
    read = Outcome.model_validate(document)
    assert read.samples is not None
    assert (read.samples.arms, read.samples.bursts) == ((0, 1, 0), ((0.09, 0.18), (0.08, 0.19)))
    document["samples"]["bursts"] = [[0.09, 0.18, 0.09]]
    with pytest.raises(
        ValidationError, match="a row of bursts has not one value for each of 2 arms"
    ):
        Outcome.model_validate(document)


def test_an_honest_outcome_is_read_back() -> None:
    """What a worker writes is taken in, not-a-number metrics included."""
    assert Outcome.model_validate_json(OUTCOME.model_dump_json()) == OUTCOME
    broken = OUTCOME.arms[0].model_copy(
        update={"metrics": (MetricValue(name="power", value=float("inf"), unit="W"),)}
    )
    assert OUTCOME.model_copy(update={"arms": (broken, OUTCOME.arms[1])}).arms[0].metrics[
        0
    ].value == float("inf")
