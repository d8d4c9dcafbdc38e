"""What contradicts a reference, which bounds are tight, and the spread between processes, on made
data.
"""

import math

import pytest

from sweeps.model.condition import Condition
from sweeps.model.job import DENSE, Arm, Job, Pair, Step
from sweeps.model.outcome import ArmOutcome, Outcome, Samples
from tests.benchmarks.reference import Claim, Known, contradictions, fixed, known, tight
from tests.orchestrator.worker_entrypoints import ENVIRONMENTS


def curve(**speedups: float) -> list[Known]:
    """Points `t10=0.9`: at 10 tokens the reference is 0.9, known to about 1 %."""
    same = {
        "model": "m",
        "arm_id": "a",
        "arm": "topk",
        "image_size": 32,
        "se": 0.0025,
        "processes": 8,
    }
    return [
        Known(**same, tokens=float(name[1:]), log=math.log(value))
        for name, value in speedups.items()
    ]


RISING = curve(t4=0.8, t16=0.95, t36=1.1, t100=1.3)


@pytest.mark.parametrize(
    ("claim", "points", "places"),
    [
        (Claim("unclear"), RISING, []),
        (Claim("always"), RISING, [4, 16]),
        (Claim("always"), curve(t4=1.0, t16=1.1), []),
        (Claim("never", largest_gain=0.04), RISING, [36, 100]),
        (Claim("never", largest_gain=0.5), RISING, []),
        (Claim("pays_from", [(None, 36, "gains")], worst_loss=0.3), RISING, []),
        (Claim("pays_from", [(None, 16, "gains")], worst_loss=0.3), RISING, [16]),
        (Claim("pays_from", [(None, 36, "gains")], worst_loss=0.1), RISING, [4]),
        (Claim("pays_up_to", [(16, None, "loses")], worst_loss=0.1), RISING, [4, 16]),
        (Claim("crossing", [(16, 36, "gains")]), RISING, []),
        (Claim("crossing", [(4, 10, "gains")]), RISING, [16]),
        (Claim("crossing", [(50, 90, "gains")]), RISING, [36]),
        (Claim("crossing", [(16, 36, "loses")]), RISING, [4, 16, 36, 100]),
        (Claim("crossing", [(4, 16, "gains"), (36, 100, "loses")]), RISING, [16, 100]),
        (Claim("no_effect"), curve(t4=1.0, t16=0.99, t36=1.1), [36]),
    ],
)
def test_contradictions(claim: Claim, points: list[Known], places: list[int]) -> None:
    """Each claim is contradicted at the places where the reference is clear and otherwise, and
    nowhere else.
    """
    assert [int(reason.split()[1]) for reason in contradictions(claim, points)] == places


@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        (Claim("crossing", [(20, 40, "gains")]), True),
        (Claim("crossing", [(16, 36, "gains")]), False),
        (Claim("pays_from", [(None, 30, "gains")]), True),
        (Claim("pays_from", [(None, 100, "gains")]), None),
        (Claim("pays_from", [(None, 60, "gains")]), False),
        (Claim("never"), False),
    ],
)
def test_tight(claim: Claim, expected: bool | None) -> None:
    """An interval within a factor of 2, or a bound with a point that does not pay within a factor
    of 2 beyond it.
    """
    assert tight(claim, RISING) is expected


def made(round_: int, ratio: float) -> Outcome:
    """An outcome whose arm takes 1 / `ratio` of the baseline's 1 ms."""
    job = Job(
        condition=Condition(model="m", image_size=32),
        arms=(DENSE, Arm(stack=(Step(method="topk"),))),
        pairs=(Pair(0, 1),),
        round=round_,
    )
    sizes = {
        "gmacs": 1.0,
        "gmacs_overhead": 0.0,
        "parameters": 1,
        "trainable_parameters": 1,
        "batch": 1,
        "tokens_final": 5,
    }
    samples = Samples(
        arms=(0, 1),
        seconds=((1e-3, 1e-3 / ratio),) * 30,
        order=((0, 1),) * 30,
        inner=(1, 1),
        stopped="pairs_max",
        bursts=((1e-3, 1e-3),),
    )
    arms = tuple(ArmOutcome(arm=index, trace=(), threads=1, tokens=4, **sizes) for index in (0, 1))
    host = {"environment": ENVIRONMENTS["cpu"], "host": "here", "started_at": 1.0, "ended_at": 2.0}
    return Outcome(job=job, arms=arms, samples=samples, **host)


def test_the_interval_is_of_the_spread_between_processes() -> None:
    """By hand: of logs 0.01, 0.03 and 0.05 the mean is 0.03, the standard error 0.02 / sqrt(3), and
    t of 2 degrees is 9.925.
    """
    (found,) = known(made(number, math.exp(log)) for number, log in enumerate((0.01, 0.03, 0.05)))
    assert (found.arm, found.tokens, found.processes) == ("topk()", 4, 3)
    assert found.log == pytest.approx(0.03)
    assert math.log(found.high) == pytest.approx(0.03 + 9.9248 * 0.02 / 3**0.5, rel=1e-4)
    (lone,) = known([made(0, 1.1)])
    assert (lone.low, lone.high) == (0.0, math.inf)


def test_a_fixed_job_ends_after_its_rounds() -> None:
    """Neither its width nor a budget ends it before, and its questions are the same."""
    job = made(0, 1).job
    assert (fixed(job, 50).protocol.pairs_min, fixed(job, 50).protocol.pairs_max) == (50, 50)
    assert fixed(job, 50).comparison_ids() == job.comparison_ids()
