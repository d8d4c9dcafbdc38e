"""Arms of other engines beside each other: `python -m tests.benchmarks.engines`, about ten minutes
on a quiet machine.

Per job, with the unmodified model twice and one arm of each engine: the speed-up of the equal arms,
which must contain 1. Then the time of each arm in a job of its own over that in the mixed jobs,
jobs of both kinds in turns: how far an engine changes its neighbours.
"""

import argparse
from statistics import median

import numpy as np
from scipy.stats import sem, t

from sweeps.model.condition import Condition, Overrides, Runtime
from sweeps.model.job import DENSE, Arm, Job, Pair, Protocol
from sweeps.model.outcome import Outcome
from sweeps.stats.visits import Visit, pool_visits
from tests.benchmarks.ratios import column, restart_with_default_threads
from workers.run import run

ENGINES: tuple[Runtime, ...] = ("openvino", "onnxruntime")


def measured(job: Job, turn: int) -> Outcome:
    outcome = run(job.model_copy(update={"round": turn}), pass_seconds=0.1)
    for failure in outcome.failures:
        raise SystemExit(f"{failure.reason}: {failure.message}")
    return outcome


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=5)
    parser.add_argument("--size", type=int, default=128, help="pixels")
    parser.add_argument("--visits", type=int, default=10, help="of each job")
    given = parser.parse_args()
    restart_with_default_threads()
    condition = Condition(model="deit_small_patch16_224", image_size=given.size)
    protocol = Protocol(pairs_min=30, pairs_max=30, budget_s=60, passes=given.visits)
    engines = [Arm(overrides=Overrides(runtime=engine)) for engine in ENGINES]
    arms = (DENSE, Arm(replicate=1), *engines)
    pairs = tuple(Pair(0, index) for index in range(1, len(arms)))
    mixed = Job(condition=condition, arms=arms, pairs=pairs, protocol=protocol, warm=True)
    alone = [
        Job(condition=condition, arms=(arm,), protocol=protocol, warm=True)
        for arm in (DENSE, *engines)
    ]
    ratios: dict[str, list[float]] = {str(arm): [] for arm in (DENSE, *engines)}
    for number in range(given.jobs):
        visits = []
        for visit in range(given.visits):
            turn = number * given.visits + visit
            beside = measured(mixed, turn).samples
            assert beside is not None
            table, columns = np.asarray(beside.seconds), np.asarray(beside.arms)
            visits.append(Visit(*(table[:, columns == arm] for arm in (0, 1))))
            for index, job in zip((0, 2, 3), alone, strict=True):
                own = measured(job, turn).samples
                assert own is not None
                ratio = median(column(own, 0)) / median(column(beside, index))
                ratios[str(arms[index])].append(ratio)
        found = pool_visits(visits, range(given.visits)).speedup
        print(
            f"job {number + 1}: equal arms {found.value:.4f} ±{found.half_width:.2%},"
            f" {found.verdict()}"
        )
    for name, found_ratios in ratios.items():
        logs = np.log(found_ratios)
        half = t.ppf(0.9975, len(logs) - 1) * sem(logs)
        print(f"{name}: alone over beside the others {np.exp(logs.mean()):.4f} ±{half:.2%}")


if __name__ == "__main__":
    main()
