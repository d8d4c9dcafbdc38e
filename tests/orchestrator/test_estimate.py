"""The estimate of a plan: its arithmetic done again by hand, what is counted once, and that what
was measured lay below it.
"""

from pathlib import Path

import pytest

from orchestrator.plan import planning, time_budget
from store.write.record import record
from sweeps.model.condition import Condition
from sweeps.model.job import DENSE, Arm, Job, Pair, Protocol, Step
from tests.orchestrator.conftest import Store
from tests.orchestrator.sites import A, planned
from tests.store.conftest import a_job, an_outcome

MEASURED = {"llm_cpu": 265.0}
"""Seconds that shipped sweeps took on two cores in November 2026, weights and vocabularies being
there."""


def job(*steps: Step, rounds: int = 1, **condition: int) -> Job:
    """A generation job of dense and an arm for each step."""
    arms = (DENSE, *(Arm(stack=(step,)) for step in steps))
    requested = Condition(model="llama-220m", prompt_tokens=100, new_tokens=10, **condition)
    protocol = Protocol(pairs_min=30, budget_s=10, timeout_s=3000, rounds=rounds)
    return Job(
        kind="generation",
        condition=requested,
        arms=arms,
        pairs=tuple(Pair(0, n) for n in range(1, len(arms))),
        protocol=protocol,
    )


def test_a_generation_job_by_hand() -> None:
    """Llama of 4 layers, 2048 wide: a run of 100 and 10 tokens, what two arms take beside the
    rounds, and the budget of 10 s.
    """
    layer = 2048 * 2048 * 4 + 3 * 2048 * 5632
    head = 2048 * 4096
    prefill = (4 * (100 * layer + 2 * (100 * 101 // 2) * 2048) + head) / 20e9
    token = (4 * layer + head) * 4 / 10e9 + 4 * 0.001
    run = prefill + 10 * token
    assert time_budget.job_seconds(job(Step(method="x"))) == pytest.approx(
        20 + 2 * (2 + 28 * run + 2 + 20) + 10
    )
    assert time_budget.job_seconds(job(Step(method="x"), rounds=3)) == pytest.approx(
        time_budget.job_seconds(job(Step(method="x"))) + 20
    )


def test_what_is_made_is_counted_once() -> None:
    """Calibration and tuning read tokens at 20 GMACs a second; two jobs that need the same share
    it, and dense needs nothing.
    """
    calibrated = Step(method="teal", params={"sparsity": 0.5, "calibration_tokens": 1000})
    tuned = Step(method="adaptivocab", params={"ngrams": 0, "finetune_steps": 10})
    plain, one, two = (
        job(Step(method="topk_activation", params={"sparsity": 0.5})),
        job(calibrated),
        job(calibrated, batch_size=2),
    )
    matrices = 4 * (2048 * 2048 * 4 + 3 * 2048 * 5632) + 2048 * 4096
    assert time_budget.upper_bound_seconds([plain]) == pytest.approx(
        20 + time_budget.job_seconds(plain)
    )
    made = time_budget.upper_bound_seconds([one]) - 20 - time_budget.job_seconds(one)
    assert made == pytest.approx(10 + (1000 * matrices + 10 * 4 * 2048**3) / 20e9)
    assert time_budget.upper_bound_seconds([one, two]) == pytest.approx(
        20 + made + time_budget.job_seconds(one) + time_budget.job_seconds(two)
    )
    learnt = (
        time_budget.upper_bound_seconds([job(tuned)]) - 20 - time_budget.job_seconds(job(tuned))
    )
    assert learnt == pytest.approx(10 + 6 * 10 * 3072 * matrices / 20e9)
    assert time_budget.upper_bound_seconds([]) == 0


def test_no_job_takes_longer_than_its_time_out() -> None:
    """A job that would is killed, and what is made for it is estimated apart."""
    brief = job(Step(method="x")).model_copy(update={"protocol": Protocol(timeout_s=5)})
    assert time_budget.job_seconds(brief) == 5


@pytest.mark.parametrize("name", MEASURED)
def test_shipped_sweeps_took_less(name: str) -> None:
    """The estimate lies above what was measured, and not so far that it is useless."""
    expansion = planning.load_sweep(Path("sweeps") / f"{name}.yaml", auto="cpu")
    assert MEASURED[name] < time_budget.upper_bound_seconds(expansion.jobs) < 5 * MEASURED[name]


def test_large_images_take_their_macs() -> None:
    """A forward that takes minutes is in the estimate, at 20 GMACs a second or at the rate that
    was measured; the time-out bounds it.
    """
    sizes = {}
    for size, timeout_s in ((2048, 9e8), (16000, 300.0)):
        arms = (DENSE, Arm(stack=(Step(method="x"),)))
        requested = Condition(model="deit_tiny_patch16_224", image_size=size)
        protocol = Protocol(pairs_min=30, budget_s=10, timeout_s=timeout_s)
        sizes[size] = Job(condition=requested, arms=arms, pairs=(Pair(0, 1),), protocol=protocol)
    depth, tokens = 12, 128 * 128 + 1
    layer = tokens * 192 * 192 * 12 + 2 * tokens * tokens * 192
    gmacs = (depth * layer + 128 * 128 * 192 * 768 + 192 * 1000) / 1e9
    slow, fast = (time_budget.job_seconds(sizes[2048], rate) for rate in (None, 40.0))
    assert slow - fast == pytest.approx(2 * 10 * gmacs * (1 / 20 - 1 / 40), rel=0.01)
    assert fast > 2 * 10 * gmacs / 40
    assert time_budget.job_seconds(sizes[16000]) == 300.0


def test_the_rate_of_a_plan_is_that_of_the_store(tmp_path: Path) -> None:
    """Of what was measured in this environment the largest work counts; without a store there is
    no rate.
    """
    store = Store(tmp_path / "store.db")
    assert planned(store, [A], [a_job(64)]).gmacs_per_second == {}
    outcomes = [an_outcome(a_job(size), environment=A.environments["cpu"]) for size in (64, 128)]
    for outcome in outcomes:
        record(store.engine, None, None, outcome)
    frame = store.table(
        "SELECT batch_size * gmacs_baseline AS gmacs, baseline_ms FROM speedup ORDER BY tokens"
    )
    gmacs, milliseconds = frame.iloc[-1]
    rates = planned(store, [A], [a_job(64)]).gmacs_per_second
    assert rates == {"cpu": pytest.approx(1e3 * gmacs / milliseconds)}
    store.engine.dispose()
