"""Ways of running a model: compiled, captured, in mixed precision; and the time that compiling may
take.
"""

import time

import pytest
import torch

from sweeps.model.condition import Condition, Overrides
from sweeps.model.job import DENSE, Arm, Job, Pair, Protocol, Step
from tests.workers.tiny_vits import calm, images, small
from workers.errors import CompilationTimedOut, TimedOut, Unsupported, alarm, compiling
from workers.kinds.failures import FailureCollector
from workers.models.runtime import Autocast
from workers.models.share_weights import clone_shared
from workers.run import run

calm = pytest.fixture(autouse=True)(calm)
COMPILED = Arm(overrides=Overrides(runtime="compile"))


def test_each_job_gets_the_time_that_compiling_takes():
    """Its time-out and that of a compilation for each compiled arm."""
    protocol = Protocol(timeout_s=60, compile_timeout_s=100)
    point = Condition(model="test_vit", image_size=64)
    eager = Job(condition=point, arms=(DENSE, COMPILED), pairs=(Pair(0, 1),), protocol=protocol)
    assert (eager.compiled, eager.timeout_s) == ((1,), 160)
    both = Job(
        condition=point.model_copy(update={"runtime": "compile"}),
        arms=(DENSE, COMPILED),
        protocol=protocol,
    )
    assert (both.compiled, both.timeout_s) == ((0, 1), 260)
    one = both.model_copy(update={"arms": (DENSE, Arm(overrides=Overrides(runtime="eager")))})
    assert (one.compiled, one.timeout_s) == ((0,), 160)


def test_compiling_has_a_limit_of_its_own():
    """What takes too long is given up, and the alarm around it stood still."""
    with alarm(1.0):
        with pytest.raises(CompilationTimedOut, match=r"not compiled after 0\.2 s"), compiling(0.2):
            time.sleep(5)
        with compiling(5):
            time.sleep(1.2)
        with pytest.raises(TimedOut, match="still running after 1 s"):
            time.sleep(5)


def test_compiling_does_not_shorten_the_measuring():
    """The deadline moves on by what compiling took, also after a failed one."""
    failures = FailureCollector(
        Job(condition=Condition(model="test_vit", image_size=64), arms=(DENSE,))
    )
    failures.deadline -= 100  # as if the job had run for so long
    for _ in range(2):
        before = failures.left_s
        with failures.stopped():
            time.sleep(0.6)
        assert failures.left_s == pytest.approx(before, abs=0.5)
        with failures.collect(0, "trying"):
            raise CompilationTimedOut("too long")
        assert before - 10 < failures.left_s < before
        failures.deadline = time.monotonic() - 50 + failures.allowed_s


def test_autocast_computes_in_half_precision_on_a_cpu():
    """Weights stay float32, products come in float16, near the float32 answer."""
    model = Autocast(clone_shared(small("plain")))
    out = model(images())
    assert out.dtype == torch.float16
    assert {value.dtype for value in model.parameters()} == {torch.float32}
    torch.testing.assert_close(out.float(), small("plain")(images()), rtol=0.05, atol=0.05)


def test_cuda_graphs_on_a_cpu_are_a_failure_row():
    """That arm gets a reason and the others an answer."""
    graph = Arm(overrides=Overrides(runtime="cudagraph"))
    topk = Arm(stack=(Step(method="topk", params={"keep_rate": 0.5, "layers": [3]}),))
    point = Condition(model="test_vit", image_size=32, threads=1)
    job = Job(
        condition=point,
        arms=(DENSE, graph, topk),
        pairs=(Pair(0, 1), Pair(0, 2)),
        protocol=Protocol(pairs_min=6, pairs_max=6),
    )
    outcome = run(job, pass_seconds=0.1)
    assert [(row.arm, row.reason) for row in outcome.failures] == [(1, "unsupported")]
    assert "needs a CUDA device" in outcome.failures[0].message
    assert outcome.samples is not None
    assert outcome.samples.arms == (0, 2, 0, 2)


@pytest.mark.slow
def test_compiled_arms_are_measured_like_any_other(monkeypatch, tmp_path):
    """First calls stand apart, count against no time-out, and are shorter with code on disk."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    stages = [Step(method="topk", params={"keep_rate": rate, "layers": [0]}) for rate in (0.5, 0.6)]
    arms = (
        DENSE,
        *(Arm(stack=(step,)) for step in stages),
        Arm(overrides=Overrides(runtime="eager")),
    )
    point = Condition(model="test_vit", image_size=64, runtime="compile", threads=1)
    protocol = Protocol(pairs_min=6, pairs_max=6, timeout_s=30, compile_timeout_s=300)
    job = Job(
        condition=point,
        arms=arms,
        pairs=tuple(Pair(0, arm) for arm in (1, 2, 3)),
        protocol=protocol,
    )
    with alarm(protocol.timeout_s):
        outcome = run(job, pass_seconds=0.1)
    assert not outcome.failures
    assert outcome.samples is not None
    assert len(outcome.samples.seconds) == 6
    first = [arm.first_call_s for arm in outcome.arms]
    print("\nfirst calls in seconds:", [round(each, 2) for each in first])
    assert first[0] > 10 * first[3]
    assert not {flag for arm in outcome.arms for flag in arm.flags} & {
        "token_trace_mismatch",
        "consistency_check_failed",
    }
    with alarm(protocol.timeout_s):
        again = run(job.model_copy(update={"round": 1}), pass_seconds=0.1)
    print("once more:", [round(arm.first_call_s, 2) for arm in again.arms])
    assert again.arms[0].first_call_s < first[0]


def test_autocast_where_torch_ignores_it():
    """A kind of device for which torch has no autocast is refused with the reason."""
    with pytest.raises(Unsupported, match="casts nothing to float16 on meta"):
        Autocast(clone_shared(small("plain")).to("meta"))
