"""Latency jobs on real models: what an outcome holds, and what becomes of arms that fail."""

import time
from statistics import median
from typing import Any

import numpy as np
import pytest
import torch

from sweeps.geometry.vit_catalogue import networks
from sweeps.model.condition import Overrides, Rectangle
from sweeps.model.job import Arm, Pair, Protocol, Step
from sweeps.model.outcome import ANSWERING_FAILURES, Outcome
from tests.workers.scripted_arm import scripted_arm as method_files
from tests.workers.vision_jobs import DENSE, MODEL, PASS_S, SIZE, TOPK, job, metrics, reasons
from workers.errors import alarm
from workers.kinds.latency import consistent
from workers.measure.samples import possible
from workers.models.runtime import Forwards
from workers.run import run

scripted_arm = pytest.fixture(method_files)


def test_an_outcome_holds_everything_that_was_measured() -> None:
    """Times, MACs, tokens, memory and throughput of both arms; nothing invented on a CPU."""
    before = time.time()
    outcome = run(job([DENSE, TOPK], batch_size=3))
    assert not outcome.failures
    assert before <= outcome.started_at <= outcome.ended_at <= time.time()
    assert outcome.environment.device == "cpu"
    samples = outcome.samples
    assert samples is not None
    assert samples.arms == (0, 1, 0, 1), "each is timed twice in every round"
    assert [len(row) for row in samples.seconds] == [4] * 6
    assert all(seconds > 0 for row in samples.seconds for seconds in row)
    assert samples.event_seconds is None
    assert samples.bursts is not None
    assert [len(row) for row in samples.bursts] == [2], (
        "one burst of each arm in the first 20 rounds"
    )
    network = networks()[MODEL]
    dense, topk = outcome.arms
    assert dense.gmacs == network.macs(SIZE, network.dense_tokens(SIZE)) / 1e9
    assert dense.gmacs_overhead == 0 < topk.gmacs_overhead
    assert topk.gmacs < dense.gmacs
    assert (dense.tokens, dense.tokens_final, dense.batch) == (4, 5, 3)
    assert [tokens.mlp for tokens in topk.trace] == [5, 3, 2, 2, 2, 2]
    assert dense.parameters == dense.trainable_parameters == topk.parameters
    assert 3.6e5 < dense.parameters < 3.7e5
    for arm, columns in zip(outcome.arms, ((0, 2), (1, 3)), strict=True):
        found = metrics(arm)
        assert arm.threads == torch.get_num_threads()
        assert arm.first_call_s is not None
        assert arm.first_call_s > 0
        assert arm.warmup_forwards == dense.warmup_forwards
        assert set(found) == {
            "latency",
            "outlier_share",
            "throughput",
            "steady_ratio",
            "peak_rss",
            "rss_before",
        }
        assert found["peak_rss"] >= found["rss_before"] > 50
        assert 0 <= found["outlier_share"] <= 1
        assert "token_trace_mismatch" not in arm.flags
        latency = next(metric for metric in arm.metrics if metric.name == "latency")
        times = [row[column] for row in samples.seconds for column in columns]
        assert latency.n == len(times) == 6 * len(columns)
        assert latency.value == pytest.approx(1e3 * median(times))
        assert latency.low is not None
        assert latency.high is not None
        assert 0 < latency.low <= latency.value <= latency.high
        throughput = next(metric for metric in arm.metrics if metric.name == "throughput")
        assert throughput.n == 1
        assert throughput.low is throughput.high is None, "one burst gives no interval"
        (burst,) = (row[arm.arm] for row in samples.bursts)
        assert throughput.value == pytest.approx(3 / burst)
        assert found["steady_ratio"] == pytest.approx(burst / median(times))
    assert outcome.system_metrics["seconds"] > 0
    assert Outcome.model_validate_json(outcome.model_dump_json()) == outcome


def test_arms_may_override_the_condition() -> None:
    """Another size or dtype is measured in the same job, each on its own input."""
    wide = Rectangle(height=32, width=48)
    other = [Arm(overrides=Overrides(image_size=size)) for size in (64, wide)]
    other.append(Arm(overrides=Overrides(dtype="bfloat16")))
    outcome = run(job([DENSE, *other]), pass_seconds=PASS_S)
    assert not outcome.failures
    assert [arm.tokens for arm in outcome.arms] == [4, 16, 6, 4]

    rectangular = job([DENSE, TOPK])
    condition = rectangular.condition.model_copy(update={"image_size": wide})
    outcome = run(rectangular.model_copy(update={"condition": condition}), pass_seconds=PASS_S)
    assert [(arm.tokens, arm.flags) for arm in outcome.arms] == [(6, ()), (6, ())]


@pytest.mark.parametrize("batch", [1, 2, 64])
def test_a_batch_or_time_mistake_breaks_the_identity(batch: int) -> None:
    """Throughput x latency is the batch: a lost or doubled image or forward is caught."""
    assert consistent(Forwards(forwards=3, images=3 * batch), 3, batch)
    assert not consistent(Forwards(forwards=6, images=6 * batch), 3, batch)
    assert not consistent(Forwards(forwards=3, images=3 * batch - 1), 3, batch)
    assert consistent(Forwards(forwards=3, images=3), 3, batch) == (batch == 1), (
        "the reports' mistake: the batch was always 1"
    )


def test_failing_arms_fail_alone(scripted_arm: Any) -> None:
    """Each failure has reason, arm, message and traceback; the others are measured."""
    arms = [
        DENSE,
        scripted_arm("refusing", refusal="not today"),
        scripted_arm("nan", "output = output * float('nan')"),
        scripted_arm("greedy", "torch.empty(10**15)"),
        scripted_arm("raising", "raise ValueError('an error\\nin two lines')"),
        scripted_arm("raising_late", "if len(calls) > 12: raise ValueError('late')"),
        Arm(stack=(Step(method="missing"),)),
        TOPK,
    ]
    outcome = run(job(arms), pass_seconds=PASS_S)
    assert reasons(outcome) == {
        1: "unsupported",
        2: "not_a_number",
        3: "out_of_memory",
        4: "error",
        5: "error",
        6: "error",
    }
    found = {failure.arm: failure for failure in outcome.failures}
    assert "not today" in found[1].message
    assert "logits are not finite" in found[2].message
    assert "an error" in found[4].message
    assert "\n" not in found[4].message
    assert "ValueError: an error" in found[4].detail
    assert "missing" in found[6].message
    assert outcome.samples is not None
    assert outcome.samples.arms == (0, 7, 0, 7)
    assert len(outcome.samples.seconds) == 6
    assert [arm.arm for arm in outcome.arms if "latency" in metrics(arm)] == [0, 7]


def test_a_result_that_changes_while_it_is_timed_is_wrong(scripted_arm: Any) -> None:
    """From its 31st call on; the others are timed anew, and are right."""
    late = scripted_arm("late", "if len(calls) > 30: output = output * 2")
    protocol = Protocol(pairs_min=31, pairs_max=31)
    outcome = run(job([DENSE, late, TOPK], protocol), pass_seconds=PASS_S)
    assert reasons(outcome) == {1: "wrong_result"}
    (failure,) = outcome.failures
    assert failure.message.startswith(
        "while checking what late() returns after it was timed: it returns something else than at"
        " first: the result["
    )
    assert outcome.samples is not None
    assert outcome.samples.arms == (0, 2, 0, 2)


def test_a_failing_baseline_fails_its_pairs_with_its_reason(scripted_arm: Any) -> None:
    """An arm whose only baseline failed is not measured; one that has another baseline is."""
    pairs = [Pair(0, 1), Pair(0, 2), Pair(3, 2)]
    outcome = run(
        job([scripted_arm("broken", "raise ValueError('broken')"), TOPK, TOPK, DENSE], pairs=pairs),
        pass_seconds=PASS_S,
    )
    assert reasons(outcome) == {0: "error", 1: "error"}
    assert "its baseline broken" in outcome.failures[1].message
    assert "broken" in outcome.failures[1].message
    assert outcome.samples is not None
    assert outcome.samples.arms == (2, 3, 2, 3)


def test_a_broken_promise_of_tokens_is_flagged(scripted_arm: Any) -> None:
    """A method that promises fewer tokens than its blocks see is measured and marked."""
    outcome = run(
        job([DENSE, scripted_arm("liar", promise="[:-1] + ((1, 1),)")]), pass_seconds=PASS_S
    )
    assert [arm.flags for arm in outcome.arms if "token_trace_mismatch" in arm.flags] == [
        outcome.arms[1].flags
    ]
    assert not outcome.failures


@pytest.mark.alone
def test_a_time_out_while_timing_is_the_jobs_and_no_answer(scripted_arm: Any) -> None:
    """Which arm meets the alarm is chance: none is blamed, and nothing is answered."""
    arms = [DENSE, scripted_arm("hanging", "if len(calls) > 12: time.sleep(60)"), TOPK]
    run(job([DENSE]), pass_seconds=PASS_S)  # loading the model is not what is to be cut short here
    with alarm(4):
        outcome = run(
            job(arms, Protocol(pairs_min=6, pairs_max=6, timeout_s=4)), pass_seconds=PASS_S
        )
    assert reasons(outcome) == {None: "error"}
    assert not ANSWERING_FAILURES & {failure.reason for failure in outcome.failures}
    assert outcome.samples is None


@pytest.mark.parametrize(
    ("device_s", "wall_s", "inner", "fits"),
    [
        (1.0, 1.0, 1, True),
        (1.0005, 1.0, 1, True),
        (1.002, 1.0, 1, False),
        (20.5e-6, 20e-6, 1, True),
        (20.5e-6, 20e-6, 100, False),
        (22e-6, 20e-6, 1, False),
    ],
)
def test_event_times_lie_in_the_wall_time_within_a_tolerance(
    device_s: float, wall_s: float, inner: int, fits: bool
) -> None:
    """A thousandth, and a microsecond for a sample's two events, contradict nothing."""
    assert possible(np.array([device_s / 2, device_s]), np.array([wall_s, wall_s]), inner) is fits


LATE = """if "_run_alone" in {frame.function for frame in __import__("inspect").stack(0)}:
            time.sleep(60)"""
"""Hangs where the arm runs alone after it was timed."""


@pytest.mark.alone
def test_a_time_out_after_timing_leaves_the_times(scripted_arm: Any) -> None:
    """An alarm in the pass for memory skips it, and the arm is answered by its samples."""
    arms = [DENSE, scripted_arm("late", LATE), TOPK]
    protocol = Protocol(pairs_min=6, pairs_max=6, budget_s=0.1, timeout_s=5)
    run(job([DENSE]), pass_seconds=PASS_S)
    with alarm(5):
        outcome = run(job(arms, protocol), pass_seconds=PASS_S)
    assert reasons(outcome) == {}
    assert outcome.samples is not None
    assert ["pass_skipped" in arm.flags for arm in outcome.arms] == [False, True, False]
