"""Visits to a job: models copied anew, two copies of the baseline, no arm after itself, the least
rounds whatever the budget.
"""

import functools
from collections import Counter
from itertools import chain, pairwise

import pytest
import torch

from sweeps.model.condition import Overrides
from sweeps.model.job import DENSE, Arm, Job, Protocol
from sweeps.model.outcome import WORKER_UNFIT
from tests.workers.vision_jobs import PASS_S, TOPK, job, metrics
from workers.arms.vision import VisionArm
from workers.kinds.failures import FailureCollector
from workers.kinds.latency import LatencyKind
from workers.measure.interleaved import VISIT_WARMUP, spread_order
from workers.measure.process_state import FLAG
from workers.run import run

VISIT = Protocol(pairs_min=3, pairs_max=50, budget_s=0.1, passes=4)


def kind_of(one: Job) -> LatencyKind:
    return LatencyKind(one, FailureCollector(one), pass_seconds=PASS_S)


def test_a_visit_measures_like_a_job() -> None:
    """Pairs for its budget, equal warm-up, memory and throughput, no unsteady flag."""
    outcome = run(job([DENSE, TOPK], VISIT), pass_seconds=PASS_S)
    assert not outcome.failures
    assert outcome.samples is not None
    assert outcome.samples.arms == (0, 1, 0, 1)
    assert 3 <= len(outcome.samples.seconds) <= 50
    assert {arm.warmup_forwards for arm in outcome.arms} == {
        VISIT_WARMUP * outcome.samples.inner[0]
    }
    assert "warmup_not_converged" not in outcome.flags
    assert all("consistency_check_failed" not in arm.flags for arm in outcome.arms)
    assert {"latency", "throughput", "peak_rss"} <= metrics(outcome.arms[1]).keys()
    later = run(job([DENSE, TOPK], VISIT).model_copy(update={"round": 1}), pass_seconds=PASS_S)
    assert later.samples is not None
    assert later.samples.inner == outcome.samples.inner
    assert metrics(later.arms[1])["peak_rss"] == metrics(outcome.arms[1])["peak_rss"]
    assert {"latency", "throughput"} <= metrics(later.arms[1]).keys()


def test_a_second_copy_that_fails_fails_its_arm(monkeypatch: pytest.MonkeyPatch) -> None:
    """With what it raised; the others are measured."""
    prepare, seen = LatencyKind.prepare, Counter[int]()

    def once(kind: LatencyKind, index: int) -> VisionArm:
        seen[index] += 1
        if index == 1 and seen[index] > 1:
            raise ValueError("on purpose")
        return prepare(kind, index)

    monkeypatch.setattr(LatencyKind, "prepare", once)
    outcome = run(job([DENSE, TOPK], VISIT), pass_seconds=PASS_S)
    (failure,) = outcome.failures
    assert (failure.arm, failure.reason) == (1, "error")
    assert "again: on purpose" in failure.message
    assert outcome.samples is None or 1 not in outcome.samples.arms


def test_a_later_visit_sees_what_an_arm_changed() -> None:
    """Weights written to at the second visit, after a first that changed nothing."""
    visits = [
        job([DENSE, TOPK], VISIT, seed=5).model_copy(update={"round": turn}) for turn in range(2)
    ]
    assert not run(visits[0], pass_seconds=PASS_S).suspects
    prepare = LatencyKind.prepare

    def writing(kind: LatencyKind, index: int) -> VisionArm:
        arm = prepare(kind, index)
        if index:
            next(iter(arm.model.parameters())).data.view(-1)[0] += 1
        return arm

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LatencyKind, "prepare", writing)
        outcome = run(visits[1], pass_seconds=PASS_S)
    assert FLAG in outcome.flags
    assert WORKER_UNFIT in outcome.system_metrics


def test_the_least_rounds_come_before_the_budget() -> None:
    """A visit whose forwards take longer than its share of the time still has three rounds."""
    spent = VISIT.model_copy(update={"budget_s": 1e-4})
    outcome = run(job([DENSE, TOPK], spent), pass_seconds=PASS_S)
    assert outcome.samples is not None
    assert len(outcome.samples.seconds) == 3


def test_every_visit_copies_the_weights_once() -> None:
    """Arms of a visit share weights with each other, and with nothing else."""
    first, second = (kind_of(job([DENSE, TOPK], VISIT)) for _ in range(2))
    dense, topk = (first.prepare(index) for index in (0, 1))
    twin, other = first.twin(dense), second.prepare(0)

    dense_at, topk_at, twin_at, other_at, kept_at = (
        next(iter(model.parameters())).data_ptr()
        for model in (dense.model, topk.model, twin.model, other.model, first.kept.model)
    )
    assert twin.model is not dense.model
    assert dense_at == topk_at == twin_at
    assert len({dense_at, other_at, kept_at}) == 3
    assert first.kept is second.kept


def test_a_compiled_arm_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Later visits run what the first has made, one copy in both slots."""
    monkeypatch.setattr(torch, "compile", functools.partial(torch.compile, backend="eager"))
    compiled = Arm(overrides=Overrides(runtime="compile"))
    jobs = [job([DENSE, compiled], VISIT).model_copy(update={"round": turn}) for turn in range(2)]
    first, second = (kind_of(one).prepare(1) for one in jobs)
    assert first.model is second.model
    assert kind_of(jobs[0]).twin(first) is first


@pytest.mark.parametrize(
    "arms", [(0, 1, 0, 1), (0, 1, 2, 0, 1, 2), (0, 1, 2, 3, 4, 0), (0, 1, 2, 0), (0, 1, 0)]
)
def test_no_arm_follows_itself_where_another_order_exists(arms: tuple[int, ...]) -> None:
    """Also across rounds; with three columns every second round begins as the last ended. Columns
    of an arm take turns.
    """
    orders: list[tuple[int, ...]] = []
    for turn in range(200):
        orders.append(spread_order(arms, f"seed:{turn}", orders[-1][-1] if orders else None))
    assert all(sorted(order) == list(range(len(arms))) for order in orders)
    ran = [arms[column] for column in chain(*orders)]
    repeats = sum(one == other for one, other in pairwise(ran))
    assert repeats == 0 if len(arms) > 3 else repeats <= 200
    firsts = Counter(order[0] for order in orders)
    if len(arms) > 4:
        assert len(firsts) == len(arms)
    if len(arms) > 4 or arms == (0, 1, 0, 1):
        assert max(firsts.values()) < 3 * min(firsts.values())
