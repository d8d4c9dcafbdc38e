"""Speed of the token reductions on this CPU, beside the unmodified model: `python -m tests.benchmarks.reduction`.

Each row is one job as a sweep would run it: float32, fused attention, arms interleaved in one process. Beside the speed-up stand
what the MACs promise and, where there is one, the least that is wanted on two quiet cores. Takes about four minutes.
"""

import os
import sys
from typing import Any, NamedTuple

from sweeps.job import DENSE, Arm, Condition, Job, Pair, Protocol, Step
from sweeps.statistics import speedup
from workers.methods import methods
from workers.run import run

PASS_S = 0.1
PROTOCOL = Protocol(pairs_min=30, pairs_max=200, half_width=0.01, budget_s=15, timeout_s=300)


class Case(NamedTuple):
    """One comparison with the unmodified model, and the speed-up wanted."""

    model: str
    image_size: int
    batch_size: int
    method: str
    params: dict[str, Any]
    wanted: float | None = None


CASES = (
    Case("deit_base_patch16_224", 224, 1, "topk", {"keep_rate": 0.1}, 2.5),
    Case("deit_base_patch16_224", 224, 8, "topk", {"keep_rate": 0.1}, 3.1),
    Case("deit_base_patch16_224", 448, 1, "topk", {"keep_rate": 0.1}, 3.0),
    Case("deit_tiny_patch16_224", 224, 1, "tome", {"r": 13}, 1.3),
    Case("deit_small_patch16_224", 224, 1, "tome", {"r": 13}, 1.5),
    Case("deit_small_patch16_224", 224, 8, "tome", {"r": 13}, 1.65),
    Case("deit_small_patch16_224", 224, 8, "pitome", {"r": 13}),
    Case("deit_small_patch16_224", 224, 8, "evit", {"keep_rate": 0.6}),
    Case("deit_small_patch16_224", 224, 8, "dpcknn", {"keep_rate": 0.62}),
    Case("deit_small_patch16_224", 224, 8, "random", {"keep_rate": 0.62}),
)


def job(case: Case) -> Job:
    """The case as a job of two arms."""
    method = methods()[case.method]
    params = method.Params.model_validate(case.params).model_dump(mode="json")
    return Job(
        condition=Condition(model=case.model, image_size=case.image_size, batch_size=case.batch_size),
        arms=(DENSE, Arm(stack=(Step(method=case.method, params=params, version=method.VERSION),))),
        pairs=(Pair(0, 1),),
        protocol=PROTOCOL,
    )


def main() -> int:
    """Exit code 0 when every speed-up that is wanted is reached."""
    reached = True
    print(f"load average {os.getloadavg()[0]:.2f} on {os.cpu_count()} cores")
    ratios = f"{'ratio':>6} {'low':>6} {'high':>6} {'MACs':>6} {'want':>5}"
    print(f"{'model':<24} {'px':>3} {'batch':>5} {'method':<22} {'ms dense':>8} {ratios}")
    for case in CASES:
        outcome = run(job(case), pass_seconds=PASS_S)
        if outcome.samples is None or outcome.failures:
            raise RuntimeError(f"{case}: {outcome.failures}")
        dense, ours = zip(*outcome.samples.seconds, strict=True)
        ratio = speedup(dense, ours)
        costs = [arm.gmacs + arm.gmacs_method for arm in outcome.arms]
        label = f"{case.method} {' '.join(f'{key}={value}' for key, value in case.params.items())}"
        wanted = f"{case.wanted:5.2f}" if case.wanted else "    -"
        short = case.wanted is not None and ratio.value < case.wanted
        reached &= not short
        print(
            f"{case.model:<24} {case.image_size:>3} {case.batch_size:>5} {label:<22} {sorted(dense)[len(dense) // 2] * 1e3:>8.1f} "
            f"{ratio.value:>6.3f} {ratio.low:>6.3f} {ratio.high:>6.3f} {costs[0] / costs[1]:>6.3f} {wanted} "
            f"{'short of it ' if short else ''}{', '.join(outcome.flags)}",
            flush=True,
        )
    print(f"load average {os.getloadavg()[0]:.2f}")
    return 0 if reached else 1


if __name__ == "__main__":
    sys.exit(main())
