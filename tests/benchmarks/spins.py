"""How long threads spin before they sleep: forwards by OpenMP's settings, and unset, on quiet cores
and beside a busy one.

From the project's folder, on a quiet machine: `uv run python -m tests.benchmarks.spins`. About two
minutes; the ground for the default of `workers/measure/threads.py`, whose other choices
`tests.benchmarks.threads` compares.
"""

import contextlib
import os
import statistics
import subprocess
import sys
import time

from tests.benchmarks.null import busy_neighbour
from workers.measure.environment import PROJECT
from workers.waiting import SPIN_VARIABLE, WAIT_VARIABLE

SIZES = (64, 224)
SECONDS = 2.5
WARM = 15
SETTINGS = {
    "unset": {},
    "passive": {WAIT_VARIABLE: "PASSIVE"},
    "active": {WAIT_VARIABLE: "ACTIVE"},
} | {
    f"{turns} turns": {SPIN_VARIABLE: str(turns)} for turns in (100, 300, 1000, 2000, 4000, 10_000)
}


def forwards(size: int) -> list[float]:
    """Seconds of each forward of DeiT-tiny in this process."""
    import timm
    import torch

    model = timm.create_model("deit_tiny_patch16_224", img_size=size).eval()
    image, times = torch.randn(1, 3, size, size), list[float]()
    with torch.inference_mode():
        for _ in range(WARM):
            model(image)
        end = time.perf_counter() + SECONDS
        while (start := time.perf_counter()) < end:
            model(image)
            times.append(time.perf_counter() - start)
    return times


def main() -> int:
    """Print a row for each setting: median and 90th percentile in ms."""
    if len(sys.argv) > 1:
        times = forwards(int(sys.argv[1]))
        print(1e3 * statistics.median(times), 1e3 * statistics.quantiles(times, n=10)[-1])
        return 0
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name not in (WAIT_VARIABLE, SPIN_VARIABLE)
    }
    print(
        f"{'':<12}"
        + "".join(
            f"{f'{size} px, {noise}: ms, p90':>28}" for noise in ("quiet", "busy") for size in SIZES
        )
    )
    for name, setting in SETTINGS.items():
        row = f"{name:<12}"
        for noise in (contextlib.nullcontext(), busy_neighbour()):
            with noise:
                for size in SIZES:
                    command = [sys.executable, "-m", "tests.benchmarks.spins", str(size)]
                    done = subprocess.run(
                        command,
                        cwd=PROJECT,
                        env=inherited | setting,
                        stdout=subprocess.PIPE,
                        text=True,
                        check=True,
                    )
                    median, slow = map(float, done.stdout.split())
                    row += f"{median:19.2f}{slow:9.2f}"
        print(row, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
