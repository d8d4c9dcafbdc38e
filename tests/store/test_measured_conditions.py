"""Conditions that were timed, the fullest first, and advice that rests on some of them alone."""

from sqlalchemy import Engine

from store.read.advice.advice import AdviceRequest, MethodFacts, at_batch
from store.read.advice.timed_arms import measured_conditions, timed_conditions, timed_sizes
from sweeps.model.job import Arm, Step
from sweeps.model.outcome import Failure
from sweeps.text.advice_text import advice_dict
from tests.store.conftest import a_job, an_outcome, keep, submit

DEIT = "deit_tiny_patch16_224"
METHODS = MethodFacts(lambda method, params: f"{method} {params}", lambda _: "optimisation")


def swept(engine: Engine, threads: int, sizes: tuple[int, ...]) -> None:
    """Two arms at each size, with so many threads, as a sweep requested them."""
    jobs = [a_job(size, (0.5, 0.7), threads=threads) for size in sizes]
    submit(engine, jobs, name=f"threads-{threads}")
    for number, job in enumerate(jobs):
        keep(engine, an_outcome(job, speedups=(1.2, 1.4), seed=number, ended_at=1.79e9 + number))


def test_the_fullest_condition_is_first(engine: Engine) -> None:
    """Conditions of a model and batch by their points; those of other batches and metrics are
    none.
    """
    swept(engine, 1, (64, 96))
    swept(engine, 2, (64, 96, 128))
    found = timed_conditions(engine, DEIT, 1)
    assert [each.points for each in found] == [6, 4]
    assert (
        timed_conditions(engine, DEIT, 8) == timed_conditions(engine, DEIT, 1, metric="tpot") == []
    )
    assert (
        timed_conditions(engine, DEIT, 1, runtime="compile")
        == timed_conditions(engine, DEIT, 1, device="cuda")
        == []
    )
    assert timed_sizes(engine, DEIT, 1) == {16: 2, 36: 2, 64: 2}, "those of the fullest condition"
    assert measured_conditions(engine)["points"].sum() == 10


def test_one_condition_is_read_as_among_all(engine: Engine) -> None:
    """What some conditions are read alone is what they are among all of them."""
    swept(engine, 1, (64, 96))
    swept(engine, 2, (64, 96, 128))
    request = AdviceRequest(DEIT, 36, 1)
    both = {each.condition.threads: each for each in at_batch(engine, request, METHODS)}
    fullest = timed_conditions(engine, DEIT, 1)
    assert set(both) == {1, 2}
    for condition, threads in zip(fullest, (2, 1), strict=True):
        (alone,) = at_batch(engine, request, METHODS, (condition,))
        assert advice_dict(alone.advice(36)) == advice_dict(both[threads].advice(36))


def test_an_arm_that_always_failed(engine: Engine) -> None:
    """It has no point anywhere, and is named all the same where its condition is read alone."""
    planned = a_job(64, (0.5, 0.7))
    other = Arm(stack=(Step(method="tome", params={"r_ratio": 0.06}, version=1),))
    job = planned.model_copy(update={"arms": (*planned.arms[:2], other)})
    submit(engine, [job])
    failed = Failure(arm=2, reason="out_of_memory", message="no memory left")
    keep(engine, an_outcome(job, speedups=(1.2, 1.4), failures=(failed,)))
    (condition,) = timed_conditions(engine, DEIT, 1)
    (alone,) = at_batch(engine, AdviceRequest(DEIT, 16, 1), METHODS, (condition,))
    assert condition.points == 1
    assert [(each.method, each.tokens) for each in alone.failures] == [("tome", 16)]
