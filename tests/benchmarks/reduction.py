"""Speed of the token reductions on this CPU, beside the unmodified model: `python -m
tests.benchmarks.reduction`.

Float32, fused attention, arms interleaved in one process as in a job. Beside the speed-up stand
what the MACs promise, what the same token counts give when tokens are cut off for nothing (no
method can be faster on this machine), and, where there is one, the least that is wanted on two
quiet cores: a speed-up, or a share of what the token counts give for nothing. Takes about six
minutes; `--only topk` takes the cases of one method.
"""

import os
import sys
import time
from statistics import median
from typing import Any, NamedTuple

import torch
from torch import nn

from sweeps.model.condition import Condition
from sweeps.model.job import DENSE, Arm, Job, Pair, Protocol, Step
from sweeps.stats.pooling import SpeedUp
from tests.benchmarks.ratios import column, restart_with_default_threads, speedup
from workers import methods
from workers.arms.vision import build_vision
from workers.measure.interleaved import calibrate, time_rounds, warm_up
from workers.measure.monitors import watch
from workers.measure.process_state import use_threads
from workers.measure.timer import stopwatch
from workers.methods.vision.truncate import cut_to
from workers.models.vision import example_input, shared_vision
from workers.run import run
from workers.token_reduction.patch_vit import fit

PROTOCOL = Protocol(pairs_min=30, pairs_max=200, half_width=0.01, budget_s=20, timeout_s=300)
PASS_S = 0.1
HQUOTA_AT_MOST = 1.05
DENSE_STEP, METHOD_STEP, FREE_STEP = range(3)


class Case(NamedTuple):
    """One comparison with the unmodified model, the speed-up wanted, and the share of `free`
    wanted.
    """

    model: str
    image_size: int
    batch_size: int
    method: str
    params: dict[str, Any]
    wanted: float | None = None
    of_free: float | None = None


CASES = (
    Case("deit_base_patch16_224", 224, 1, "topk", {"keep_rate": 0.1}, 2.5),
    Case("deit_base_patch16_224", 224, 8, "topk", {"keep_rate": 0.1}, 3.1),
    Case("deit_base_patch16_224", 448, 1, "topk", {"keep_rate": 0.1}, 3.0),
    Case("deit_tiny_patch16_224", 224, 1, "tome", {"r": 13}, 1.3, of_free=0.95),
    Case("deit_small_patch16_224", 224, 1, "tome", {"r": 13}, 1.5, of_free=0.95),
    Case("deit_small_patch16_224", 224, 8, "tome", {"r": 13}, 1.65, of_free=0.95),
    Case("deit_tiny_patch16_224", 224, 1, "tome", {"r": 13, "implementation": "torch"}),
    Case("deit_small_patch16_224", 224, 1, "tome", {"r": 13, "implementation": "torch"}),
    Case("deit_small_patch16_224", 224, 8, "tome", {"r": 13, "implementation": "torch"}),
    Case("deit_small_patch16_224", 224, 8, "pitome", {"r": 13}),
    Case("deit_small_patch16_224", 224, 8, "evit", {"keep_rate": 0.6}),
    Case("deit_small_patch16_224", 224, 8, "dpcknn", {"keep_rate": 0.62}),
    Case("deit_small_patch16_224", 224, 8, "random", {"keep_rate": 0.62}),
)


class Found(NamedTuple):
    """What one case gave."""

    dense_s: float
    method: SpeedUp
    free: SpeedUp
    promised: float
    """Speed-up if time followed MACs, those that the method adds included."""
    flags: tuple[str, ...]


def found(case: Case) -> Found:
    """Measure the case: the unmodified model, the method, and its token counts for nothing."""
    condition = Condition(model=case.model, image_size=case.image_size, batch_size=case.batch_size)
    method = methods.of_modality("vision")[case.method]
    params = method.Params.model_validate(case.params)
    arm = Arm(
        stack=(
            Step(method=case.method, params=params.model_dump(mode="json"), version=method.VERSION),
        )
    )
    use_threads(condition)
    with torch.inference_mode():
        model = shared_vision(condition, {})
        dense = build_vision(model, condition, DENSE)
        models = (
            dense,
            build_vision(model, condition, arm),
            cut(dense, method.tokens(params, model.network, case.image_size)),
        )
        x_BCHW = example_input(condition, model.network)
        steps = [lambda each=each: each(x_BCHW) for each in models]
        clock, deadline = stopwatch("cpu"), time.monotonic() + PROTOCOL.timeout_s
        inner = calibrate(steps, clock)
        warmup = warm_up(steps, inner, seed=str(case), stopwatch=clock, deadline=deadline)
        with watch("cpu", torch.get_num_threads()) as seen:
            samples = time_rounds(
                steps,
                inner,
                arms=range(len(steps)),
                pairs=[Pair(DENSE_STEP, METHOD_STEP), Pair(DENSE_STEP, FREE_STEP)],
                protocol=PROTOCOL,
                seed=str(case),
                stopwatch=clock,
                deadline=deadline,
            )
    network, size = model.network, case.image_size
    cost = network.macs(size, method.tokens(params, network, size)) + method.macs(
        params, network, size
    )
    return Found(
        dense_s=median(column(samples, DENSE_STEP)),
        method=speedup(samples, DENSE_STEP, METHOD_STEP),
        free=speedup(samples, DENSE_STEP, FREE_STEP),
        promised=network.macs(size, network.dense_tokens(size)) / cost,
        flags=(*seen.flags, *(() if warmup.steady else ("warmup_not_converged",))),
    )


def cut(model: nn.Module, trace: Any) -> nn.Module:
    """The model with the token counts of `trace`, any method's, by the method that cuts for
    nothing.
    """
    return fit(
        model,
        {
            block: cut_to(tokens.mlp)
            for block, tokens in enumerate(trace)
            if tokens.mlp < tokens.attention
        },
    ).eval()


def hquota_over_tome() -> tuple[SpeedUp, tuple[float, ...]]:
    """How much longer hquota takes than ToMe with r=13 at equal MACs, on DeiT-S at batch 8; and the
    GMACs of both.
    """
    steps = {"tome": {"r": 13}, "hquota": {"budget": {"gmacs": 2.707}}}
    arms = []
    for name, requested in steps.items():
        method = methods.of_modality("vision")[name]
        params = method.Params.model_validate(requested).model_dump(mode="json")
        arms.append(Arm(stack=(Step(method=name, params=params, version=method.VERSION),)))
    condition = Condition(model="deit_small_patch16_224", image_size=224, batch_size=8)
    outcome = run(
        Job(condition=condition, arms=tuple(arms), pairs=(Pair(1, 0),), protocol=PROTOCOL),
        pass_seconds=PASS_S,
    )
    if outcome.samples is None or outcome.failures:
        raise RuntimeError(f"hquota against ToMe: {outcome.failures}")
    return speedup(outcome.samples, 1, 0), tuple(
        arm.gmacs + arm.gmacs_overhead for arm in outcome.arms
    )


def main() -> int:
    """Exit code 0 when every speed-up that is wanted is reached."""
    restart_with_default_threads()
    reached = True
    only = sys.argv[sys.argv.index("--only") + 1] if "--only" in sys.argv else ""
    print(f"load average {os.getloadavg()[0]:.2f} on {os.cpu_count()} cores")
    heads = (
        f"{'ratio':>6} {'low':>6} {'high':>6} {'free':>6} {'of free':>7} {'MACs':>6} {'want':>5}"
    )
    print(f"{'model':<24} {'px':>3} {'batch':>5} {'method':<33} {'ms dense':>8} {heads}")
    for case in CASES:
        if only not in case.method:
            continue
        dense_s, ratio, free, promised, flags = found(case)
        label = f"{case.method} {' '.join(f'{key}={value}' for key, value in case.params.items())}"
        wanted = f"{case.wanted:5.2f}" if case.wanted else "    -"
        share = ratio.value / free.value
        short = (case.wanted is not None and ratio.value < case.wanted) or (
            case.of_free is not None and share < case.of_free
        )
        reached &= not short
        print(
            f"{case.model:<24} {case.image_size:>3} {case.batch_size:>5} {label:<33}"
            f" {dense_s * 1e3:>8.1f} {ratio.value:>6.3f} {ratio.low:>6.3f} {ratio.high:>6.3f}"
            f" {free.value:>6.3f} {share:>7.3f} {promised:>6.3f} {wanted}"
            f" {'short of it ' if short else ''}{', '.join(flags)}",
            flush=True,
        )
    if only in "hquota":
        ratio, gmacs = hquota_over_tome()
        reached &= ratio.value <= HQUOTA_AT_MOST
        print(
            f"hquota takes {ratio.value:.3f} [{ratio.low:.3f}, {ratio.high:.3f}] times as long as"
            f" ToMe (DeiT-S, batch 8, {gmacs[1]:.3f} and {gmacs[0]:.3f} GMACs); at most"
            f" {HQUOTA_AT_MOST} is wanted"
        )
    print(f"load average {os.getloadavg()[0]:.2f}")
    return 0 if reached else 1


if __name__ == "__main__":
    sys.exit(main())
