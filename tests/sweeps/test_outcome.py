"""Untrusted outcomes: what contradicts itself or fits no database is refused in a line that names it."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import ValidationError

from sweeps.job import DENSE, Arm, Condition, Job, Pair, Step
from sweeps.outcome import ArmOutcome, Environment, Failure, MetricValue, Outcome, Samples

JOB = Job(
    condition=Condition(model="deit_tiny_patch16_224", image_size=224),
    arms=(DENSE, Arm(stack=(Step(method="topk", params={"keep_rate": 0.5}),))),
    pairs=(Pair(0, 1),),
)
COUNTS = {"parameters": 5, "trainable_parameters": 5, "batch": 1, "tokens": 196, "tokens_final": 197, "threads": 2}
OUTCOME = Outcome(
    job=JOB,
    environment=Environment(device="cpu", device_name="a CPU"),
    host="here",
    started_at=1_790_000_000.0,
    ended_at=1_790_000_010.0,
    arms=tuple(ArmOutcome(arm=arm, gmacs=1.0, gmacs_overhead=0.0, trace=(), **COUNTS) for arm in (0, 1)),
    failures=(Failure(arm=None, reason="error", message="so"),),
    samples=Samples(
        arms=(0, 1),
        seconds=((0.1, 0.2),) * 2,
        order=((0, 1), (1, 0)),
        inner=(1, 1),
        stopped="budget",
        series={"ttft": ((0.1, 0.2),) * 2},
    ),
)


def changed(change: Callable[[Any], None]) -> str:
    """The outcome as JSON, with one change."""
    document = json.loads(OUTCOME.model_dump_json())
    change(document)
    return json.dumps(document)


def assign(*path: str | int) -> Callable[[Any], Callable[[Any], None]]:
    """What sets the value at `path`."""

    def to(value: Any) -> Callable[[Any], None]:
        def change(document: Any) -> None:
            for step in path[:-1]:
                document = document[step]
            document[path[-1]] = value

        return change

    return to


HOSTILE = {
    "parameters of 64 bits": (assign("arms", 0, "parameters")(2**63), "an integer of 64 bits is too large"),
    "tokens of 32 bits": (assign("arms", 0, "tokens")(2**31), "less than 2147483648"),
    "a batch below zero": (assign("arms", 0, "batch")(-1), "greater than or equal to 0"),
    "a huge seed": (assign("job", "condition", "seed")(10**400), "an integer of 1329 bits is too large"),
    "a huge trace": (assign("arms", 0, "trace")([[2**70, 1]]), "an integer of 71 bits is too large"),
    "a start beyond all calendars": (assign("started_at")(1e300), "less than 32503680000"),
    "no start": (assign("started_at")(float("nan")), "finite number"),
    "an end before the start": (assign("ended_at")(1.0), "lies before started_at"),
    "an end at infinity": (assign("ended_at")(float("inf")), "finite number"),
    "arm 99": (assign("arms", 0, "arm")(99), "arms names arm 99; the job has arms 0 to 1"),
    "arm -1": (assign("arms", 0, "arm")(-1), "arms names arm -1"),
    "an arm twice": (assign("arms", 0, "arm")(1), "arms names an arm twice"),
    "failure of arm 7": (assign("failures", 0, "arm")(7), "failures names arm 7"),
    "samples of arm 99": (assign("samples", "arms")([0, 99]), "samples.arms names arm 99"),
    "samples of one arm twice": (assign("samples", "arms")([1, 1]), "samples.arms names an arm twice"),
    "a ragged round": (assign("samples", "seconds", 0)([0.1]), "a round of seconds has 1 values, but there are 2 columns"),
    "a round too many": (assign("samples", "order")([[0, 1]] * 3), "order has 3 rounds, seconds has 2"),
    "an order of other columns": (assign("samples", "order", 0)([0, 2**40]), "a round of order is no order of the columns 0 to 1"),
    "a series of other shape": (assign("samples", "series", "ttft", 1)([1, 2, 3]), "a round of ttft has 3 values"),
    "device times of other shape": (assign("samples", "device_seconds")([[1, 1]]), "device_seconds has 1 rounds"),
    "no inner loops": (assign("samples", "inner")([1]), "one positive number for each of the 2 arms"),
    "an inner loop of none": (assign("samples", "inner")([1, 0]), "one positive number for each of the 2 arms"),
}


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
