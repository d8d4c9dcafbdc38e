"""Null test and positive control of this machine: `python -m tests.benchmarks.null` prints ratios, verdicts and spreads.

Times are read on a quiet machine; the part with a busy neighbour makes its own noise. Takes about six minutes.
"""

import contextlib
import math
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch

from sweeps.geometry.vit_catalogue import networks
from sweeps.job import Job
from sweeps.parsing.expand import expand_file
from sweeps.stats.pooling import SpeedUp, Verdict
from tests.benchmarks.ratios import speedup
from workers.arms.vision import prepare_vision
from workers.measure.environment import PROJECT
from workers.measure.threads import use_threads
from workers.methods import of_modality
from workers.models.vision import shared_vision
from workers.run import run

PASS_S = 0.1


class Row(NamedTuple):
    """One comparison: measured in interleaved rounds, and (`apart`) as the ratio of the medians of one arm after the other."""

    image_size: int
    arm: str
    speedup: SpeedUp
    verdict: Verdict
    stopped: str
    flags: tuple[str, ...]
    apart: float | None = None


def jobs(name: str) -> tuple[Job, ...]:
    """The jobs of the sweep `sweeps/NAME.yaml`, on the CPU."""
    return expand_file(PROJECT / "sweeps" / f"{name}.yaml", methods=of_modality("vision"), networks=networks(), auto="cpu").jobs


def compare(name: str, *, apart: bool = False, **protocol: Any) -> list[Row]:
    """Every comparison of the sweep, with fields of `Protocol` instead of the sweep's own.

    `apart` times each job's arms one after the other as well, in as many samples.
    """
    rows = []
    for asked in jobs(name):
        job = asked.model_copy(update={"protocol": asked.protocol.model_copy(update=protocol)})
        outcome = run(job, pass_seconds=PASS_S)
        if outcome.samples is None or outcome.failures:
            raise RuntimeError(f"{name}: {outcome.failures}")
        samples = outcome.samples
        medians = one_after_the_other(job, len(samples.seconds)) if apart else None
        for baseline, arm in job.pairs:
            found = speedup(samples, baseline, arm)
            ratio = medians[baseline] / medians[arm] if medians else None
            size, label = job.condition.image_size, str(job.arms[arm])
            verdict = found.verdict(job.protocol.pairs_min)
            rows.append(Row(size, label, found, verdict, samples.stopped, outcome.flags, ratio))
    return rows


def one_after_the_other(job: Job, samples: int) -> list[float]:
    """Median seconds per forward of each arm when all its samples are taken before the next arm's: how not to compare."""
    use_threads(job.condition)
    inputs: dict[tuple[int, object], torch.Tensor] = {}
    medians = []
    with torch.inference_mode():
        model = shared_vision(job.condition, job.content_hashes)
        for index in range(len(job.arms)):
            step = prepare_vision(job, index, model, inputs).step
            times = []
            for _ in range(samples):
                start = time.perf_counter()
                step()
                times.append(time.perf_counter() - start)
            medians.append(statistics.median(times))
    return medians


def spread(ratios: Sequence[float]) -> str:
    """Range and standard deviation of ratios, for people."""
    deviation = statistics.stdev(map(math.log, ratios))
    return f"{min(ratios):.3f} to {max(ratios):.3f}, standard deviation {deviation:.2%}"


@contextlib.contextmanager
def busy_neighbour() -> Iterator[None]:
    """Another process keeps one core busy."""
    neighbour = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        neighbour.kill()
        neighbour.wait()


def show(title: str, rows: Sequence[Row]) -> Counter[Verdict]:
    """Print the rows and their summary; the verdicts counted."""
    print(f"\n{title}")
    print(f"{'px':>4} {'arm':<36} {'ratio':>7} {'low':>7} {'high':>7} {'pairs':>5} {'stopped':<10} {'verdict':<12} flags")
    for row in rows:
        found = row.speedup
        interval = f"{found.value:7.4f} {found.low:7.4f} {found.high:7.4f}"
        why = f"{row.stopped:<10} {row.verdict:<12} {', '.join(row.flags)}"
        print(f"{row.image_size:>4} {row.arm:<36} {interval} {found.pairs:>5} {why}")
    counts = Counter(row.verdict for row in rows)
    print(f"verdicts: {', '.join(f'{count} {name}' for name, count in counts.most_common())}")
    print(f"ratios in interleaved rounds:        {spread([row.speedup.value for row in rows])}")
    if apart := [row.apart for row in rows if row.apart is not None]:
        print(f"ratios timed one after the other:    {spread(apart)}")
    return counts


def main() -> int:
    """Exit code 0 when the machine passes: 15 of 20 `same` and at most 1 false alarm when quiet, 18 of 20 slowdowns seen."""
    quiet = show("A/A, dense against dense", compare("null", apart=True))
    with busy_neighbour():
        busy = show("A/A while another process keeps one core busy", compare("null", apart=True))
    slowed = show("dense against dense slowed by 5 %", compare("slowed"))
    passed = (
        quiet["same"] >= 15 and all(counts["faster"] + counts["slower"] <= 1 for counts in (quiet, busy)) and slowed["slower"] >= 18
    )
    print("\npassed" if passed else "\nnot passed (is the machine quiet?)")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
