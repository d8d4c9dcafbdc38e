"""What the orchestration of one job costs, side by side with Ray Tune: no-op jobs, every outcome
durably stored.

Run from the project's folder, on a quiet machine with no other sweep under way (they take turns on a host):
uv run python -m tests.benchmarks.overhead
"""

import itertools
import logging
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from orchestrator.cluster.cluster import Cluster
from orchestrator.loop.dispatcher import dispatch
from store.open.engine import connect
from store.write.submission import NewSweep, submit_sweep
from sweeps.language.file_schema import Retry
from sweeps.model.condition import Condition
from sweeps.model.job import DENSE, Arm, Job, Pair

JOBS = 300
POINTS = 15
"""Image sizes on one curve, whose break-even is derived anew with every outcome."""
TRIALS = 30
ROUNDS = 3


def breakeven(cluster: Cluster, folder: Path) -> tuple[float, float]:
    """Seconds per no-op job of ours: claimed, run by a warm worker, outcome and statistics
    committed to SQLite.

    With them the CPU seconds of the dispatching process, which vary less where others use the
    machine.
    """
    conditions = itertools.product(range(1, JOBS // POINTS + 2), range(16, 16 * (POINTS + 1), 16))
    jobs = [
        Job(
            condition=Condition(model="noop", image_size=size, batch_size=batch),
            arms=(DENSE, Arm(replicate=1)),
            pairs=(Pair(0, 1),),
        )
        for batch, size in itertools.islice(conditions, JOBS + 1)
    ]
    engine = connect(str(folder / "breakeven.db"))
    warm_up = submit_sweep(engine, NewSweep("warm-up", "", ""), [], jobs[:1])
    dispatch(engine, warm_up, cluster, retry=Retry())
    sweep = submit_sweep(engine, NewSweep("overhead", "", ""), jobs[1:], jobs[1:])
    began, began_cpu = time.perf_counter(), time.process_time()
    summary = dispatch(engine, sweep, cluster, retry=Retry())
    took, cpu = time.perf_counter() - began, time.process_time() - began_cpu
    engine.dispose()
    assert summary.measured == JOBS, summary
    return took / JOBS, cpu / JOBS


def ray_tune(folder: Path) -> float:
    """Seconds per trivial trial of Ray Tune, one at a time, actors reused, no loggers."""
    from ray import tune

    def trivial(config: dict[str, Any]) -> None:
        tune.report({"y": config["x"]})

    tuner = tune.Tuner(
        trivial,
        param_space={"x": tune.grid_search(list(range(TRIALS)))},
        tune_config=tune.TuneConfig(reuse_actors=True, max_concurrent_trials=1),
        run_config=tune.RunConfig(storage_path=str(folder), verbose=0, log_to_file=False),
    )
    began = time.perf_counter()
    results = tuner.fit()
    took = time.perf_counter() - began
    assert len(results) == TRIALS
    assert not results.errors
    return took / TRIALS


def main() -> None:
    os.environ |= {"TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1", "RAY_AIR_NEW_OUTPUT": "0"}
    with Cluster.start(entry="tests.orchestrator.worker_entrypoints:noop") as cluster:
        logging.getLogger("ray.tune").setLevel(logging.ERROR)
        print(
            f"{ROUNDS} rounds in turn; load average {os.getloadavg()[0]:.1f} on {os.cpu_count()}"
            " cores"
        )
        heads = (
            "breakeven, ms per job",
            "CPU of the dispatcher",
            "Ray Tune with reuse_actors, ms per trial",
            "ratio",
        )
        print("{:>23}{:>23}{:>42}{:>8}".format(*heads))
        rounds = []
        for _ in range(ROUNDS):
            with tempfile.TemporaryDirectory() as folder:
                (ours, cpu), tune = (
                    breakeven(cluster, Path(folder)),
                    ray_tune(Path(folder) / "tune"),
                )
            rounds.append((ours, cpu, tune, tune / ours))
            _print_row(rounds[-1])
        print("medians")
        _print_row(tuple(map(statistics.median, zip(*rounds, strict=True))))


def _print_row(row: tuple[float, ...]) -> None:
    ours, cpu, tune, ratio = row
    print(f"{ours * 1e3:23.2f}{cpu * 1e3:23.2f}{tune * 1e3:42.2f}{ratio:8.1f}", flush=True)


if __name__ == "__main__":
    main()
