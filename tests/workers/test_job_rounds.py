"""The rounds of latency jobs: two columns of the baseline, bursts, a budget that binds, and what
removes nothing.
"""

from dataclasses import replace

import pytest

from sweeps.model.condition import Overrides
from sweeps.model.job import Arm, Job, Pair, Protocol, Step
from tests.workers.vision_jobs import DENSE, PASS_S, TOPK, job, metrics
from workers.kinds.failures import FailureCollector
from workers.kinds.latency import LatencyKind
from workers.run import run

MANY = 10**6
"""More pairs than any test has time for."""


def test_a_job_out_of_time_keeps_its_pairs_and_skips_its_passes() -> None:
    """Too short a time-out hands back the pairs that are in; skipped passes are flagged."""
    run(job([DENSE]), pass_seconds=PASS_S)  # loading the model is not what is to be cut short here
    outcome = run(
        job([DENSE, TOPK], Protocol(pairs_min=MANY, pairs_max=MANY, budget_s=60, timeout_s=4))
    )
    assert outcome.samples is not None
    assert outcome.samples.stopped == "budget"
    assert 1 <= len(outcome.samples.seconds) < MANY
    for arm in outcome.arms:
        assert "pass_skipped" in arm.flags
        assert "peak_rss" not in metrics(arm)
        assert {"latency", "throughput"} <= set(metrics(arm))


def test_time_is_kept_for_the_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds beyond the fewest end when as much time is left as the arms' passes take."""
    init = LatencyKind.__init__

    def with_a_counter(
        kind: LatencyKind, requested: Job, failures: FailureCollector, **options: float
    ) -> None:
        init(kind, requested, failures, **options)
        kind.passes = [replace(each, reserve_s=1.5, needed_s=lambda _: 1.0) for each in kind.passes]

    monkeypatch.setattr(LatencyKind, "__init__", with_a_counter)
    run(job([DENSE]), pass_seconds=PASS_S)
    outcome = run(
        job(
            [DENSE, TOPK],
            Protocol(pairs_min=2, pairs_max=MANY, half_width=0.0001, budget_s=60, timeout_s=8),
        )
    )
    assert outcome.samples is not None
    assert outcome.samples.stopped in {"budget", "plateau"}
    assert not any("pass_skipped" in arm.flags for arm in outcome.arms)


def test_the_baseline_of_most_pairs_is_timed_twice() -> None:
    """Which one that is the pairs decide, not the order of the arms; a lone arm is timed once."""
    pairs = [Pair(1, 0), Pair(1, 2), Pair(0, 2)]
    outcome = run(job([TOPK, DENSE, Arm(replicate=1)], pairs=pairs), pass_seconds=PASS_S)
    assert outcome.samples is not None
    assert outcome.samples.arms == (0, 1, 2, 1)
    assert all(sorted(order) == [0, 1, 2, 3] for order in outcome.samples.order)
    assert [
        metric.n for arm in outcome.arms for metric in arm.metrics if metric.name == "latency"
    ] == [6, 12, 6]
    lone = run(job([DENSE]), pass_seconds=PASS_S)
    assert lone.samples is not None
    assert lone.samples.arms == (0,)


def test_a_method_that_removes_nothing_at_a_size_is_flagged() -> None:
    """ToMe at 6 % of 4 tokens merges none; overrides and a wait are no such thing."""
    tome = Step(method="tome", params={"r_ratio": 0.06})
    arms = [
        DENSE,
        Arm(stack=(tome,)),
        Arm(stack=(tome,), overrides=Overrides(dtype="bfloat16")),
        Arm(stack=(Step(method="slowed", params={"fraction": 0.05}),)),
        TOPK,
        Arm(replicate=1),
    ]
    outcome = run(job(arms), pass_seconds=PASS_S)
    assert not outcome.failures
    assert [arm.arm for arm in outcome.arms if "no_effect" in arm.flags] == [1]
    dense, without = outcome.arms[:2]
    assert (without.trace, without.gmacs) == (dense.trace, dense.gmacs)
    larger = run(job(arms[:2], image_size=96), pass_seconds=PASS_S)
    assert not any("no_effect" in arm.flags for arm in larger.arms)
