"""How threads wait, pinning and their number: speed and noise on quiet cores and beside a busy one.

From the project's folder, on a quiet machine: `uv run python -m tests.benchmarks.threads` (seven
minutes on two cores), or with `--default` only what the default is compared by (three minutes).
"""

import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sweeps.model.condition import Condition
from sweeps.model.job import DENSE, Job, Pair, Protocol
from sweeps.stats.pooling import within_process
from sweeps.stats.timing import Rounds
from workers.measure.environment import PROJECT, cores
from workers.measure.threads import requested_policy, set_policy

SIZES = (64, 224)
ARMS, PAIR = (0, 1, 0), Pair(0, 1)
BUDGET_S, DEFAULT_BUDGET_S, DEFAULT_REPEATS = 2.5, 10.0, 3
"""Seconds of a job; the default, which the check is about, is measured longer and several times:
medians count."""
MIN_SPEED, MAX_WIDTH = 1 / 3, 2.5
"""Beside a busy core: the least share of the pairs per second, and the widest interval of equal
pairs, both against quiet cores."""


class Measured(NamedTuple):
    """One job of A/A: seconds per forward of each round, and the rounds in a second."""

    seconds: tuple[tuple[float, ...], ...]
    rate: float

    @property
    def forward_ms(self) -> float:
        return 1e3 * statistics.median(itertools.chain.from_iterable(self.seconds))

    def half_width(self, rounds: int) -> float:
        """Of the interval of the first so many rounds, as a share, by `within_process`: how threads
        wait shows in its errors.
        """
        return within_process(
            Rounds(self.seconds[:rounds], ARMS).contrast(*PAIR), rounds
        ).half_width


Found = Mapping[str, Measured]
"""By size and noise, such as `64 quiet`."""


def measure_all(condition: Mapping[str, Any], budget_s: float) -> None:
    """Print what jobs of each size take under a condition, quiet and beside a busy core; in a
    process of its own.
    """
    set_policy(requested_policy(Condition(model="m", **condition)))
    from tests.benchmarks.null import busy_neighbour  # loads torch, and OpenMP with it
    from workers.run import run

    found: dict[str, Any] = {}

    def measure(noise: str) -> None:
        for size in SIZES:
            job = Job(
                condition=Condition(model="deit_tiny_patch16_224", image_size=size, **condition),
                arms=(DENSE, DENSE.model_copy(update={"replicate": 1})),
                pairs=(PAIR,),
                protocol=Protocol(pairs_min=10, pairs_max=1000, half_width=1e-6, budget_s=budget_s),
            )
            outcome = run(job, pass_seconds=0.01)
            if outcome.samples is None:
                raise RuntimeError(f"{condition}: {outcome.failures}")
            rounds = outcome.samples.seconds
            found[f"{size} {noise}"] = Measured(
                rounds, len(rounds) / outcome.system_metrics["seconds"]
            )

    measure("quiet")
    with busy_neighbour():
        measure("busy")
    print(json.dumps(found))


def elsewhere(condition: Mapping[str, Any], budget_s: float = BUDGET_S) -> Found:
    """What `measure_all` prints in a new process."""
    command = [
        sys.executable,
        "-m",
        "tests.benchmarks.threads",
        "--condition",
        json.dumps(condition),
        "--budget",
        str(budget_s),
    ]
    done = subprocess.run(command, cwd=PROJECT, stdout=subprocess.PIPE, text=True, check=True)
    return {
        name: Measured(*each) for name, each in json.loads(done.stdout.splitlines()[-1]).items()
    }


def line(found: Sequence[Found], reference: Found, size: int) -> tuple[str, bool]:
    """A row of the table, medians of what is found, and whether the default is fast and sure enough
    beside a busy core.
    """
    pairs = [(each[f"{size} quiet"], each[f"{size} busy"]) for each in found]
    rounds = [min(len(quiet.seconds), len(busy.seconds)) for quiet, busy in pairs]
    fastest = reference[f"{size} quiet"].rate
    own = statistics.median(quiet.rate for quiet, _ in pairs) / fastest
    speed = statistics.median(busy.rate for _, busy in pairs) / fastest
    quiet_width = statistics.median(
        quiet.half_width(n) for (quiet, _), n in zip(pairs, rounds, strict=True)
    )
    width = statistics.median(
        busy.half_width(n) / quiet.half_width(n)
        for (quiet, busy), n in zip(pairs, rounds, strict=True)
    )
    times = [
        statistics.median(one.forward_ms for one in column) for column in zip(*pairs, strict=True)
    ]
    numbers = (
        f"{size:>4} {times[0]:9.2f} {times[1]:9.2f} {own:9.2f} {speed:9.2f} {quiet_width:9.2%}"
        f" {width:9.2f} {min(rounds):>7}"
    )
    return numbers, speed >= MIN_SPEED and width <= MAX_WIDTH


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0 when the default is fast and sure enough beside a busy core."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.threads")
    parser.add_argument(
        "--default",
        action="store_true",
        help="only the default, and threads that spin, which it is compared with",
    )
    parser.add_argument("--condition", type=json.loads, help=argparse.SUPPRESS)
    parser.add_argument("--budget", type=float, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.condition is not None:
        measure_all(options.condition, options.budget)
        return 0
    counts = dict.fromkeys((int(cores()), max(1, int(cores()) - 1), 1))
    ways: list[dict[str, Any]] = [
        {"threads": count, "wait_policy": wait, "pinning": pinning}
        for count, wait, pinning in itertools.product(
            counts, ("active", "passive", None), (None, "cores")
        )
    ]
    default = {"threads": int(cores()), "wait_policy": None, "pinning": None}
    print(
        f"load average {os.getloadavg()[0]:.2f} on {cores():g} cores; A/A of DeiT-tiny,"
        f" {BUDGET_S:g} s each"
    )
    print(f"the default: medians of {DEFAULT_REPEATS} of {DEFAULT_BUDGET_S:g} s")
    print(
        "pairs/s: against threads that spin, unpinned, on quiet cores; half-width busy: against"
        " quiet at equal pairs"
    )
    titles = (
        ("ms quiet", 9),
        ("ms busy", 9),
        ("pairs/s q", 9),
        ("pairs/s b", 9),
        ("half-w. q", 9),
        ("half-w. b", 9),
        ("pairs", 7),
    )
    print(
        f"{'threads':>7} {'wait':<8} {'pin':<6} {'px':>4}"
        f" {' '.join(title.rjust(width) for title, width in titles)}"
    )
    passed, reference = True, None
    for way in [ways[0], default] if options.default else ways:
        checked = way == default
        found = (
            [elsewhere(way, DEFAULT_BUDGET_S) for _ in range(DEFAULT_REPEATS)]
            if checked
            else [elsewhere(way)]
        )
        reference = reference or found[0]
        for size in SIZES:
            numbers, enough = line(found, reference, size)
            passed &= enough or not checked
            words = (
                f"{way['threads']:>7} {way['wait_policy'] or 'brief':<8}"
                f" {way['pinning'] or 'no':<6}"
            )
            print(f"{words} {numbers}{' <- default' if checked else ''}", flush=True)
    print("\npassed" if passed else "\nnot passed (is the machine quiet?)")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
