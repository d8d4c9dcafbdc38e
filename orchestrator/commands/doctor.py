"""Command `doctor`: what this machine is, what could disturb a measurement on it, and how far two equal arms seem to differ."""

import os
import platform
import sys

from rich.console import Console
from rich.table import Table

from orchestrator.terminal import output
from sweeps.job import DENSE, Arm, Condition, Device, Job, Pair
from sweeps.metrics import SPEED_FLOOR
from sweeps.protocol import Protocol
from sweeps.stats.pooling import SAME_WORK, pool
from sweeps.stats.two_way import Rounds
from workers.measure.environment import devices, environment_of

REPLICATES = 2
NULL_TEST_SECONDS = 6.0


def examine() -> int:
    """Print the findings; returns exit code 0 when measurements can be trusted here, else 1."""
    console, table = output(), Table(box=None, show_header=False, pad_edge=False)
    table.add_row("python", f"{platform.python_version()} ({sys.executable})")
    for device in devices():
        environment = environment_of(device)
        table.add_row(device, environment.device_name, style="bold")
        for key, value in sorted(environment.facts.items()):
            table.add_row("", f"{key} {value}")
        table.add_row("", f"environment {environment.environment_id}")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    table.add_row("threads", f"{cores} cores for this process; a CPU job uses them all unless the sweep sets `threads`")
    load = os.getloadavg()[0]
    table.add_row(
        "load", f"{load:.2f} in the last minute" + (" (something else is running: intervals will be wide)" if load > 0.5 else "")
    )
    console.print(table)
    passed = [_null_test(console, device) for device in devices()]
    return 0 if all(passed) else 1


def _null_test(console: Console, device: Device) -> bool:
    """Time the same small model against itself and print how far the ratios are from 1."""
    from workers.run import run  # torch takes seconds to import

    arms = (DENSE, *(Arm(replicate=number) for number in range(1, REPLICATES + 1)))
    job = Job(
        condition=Condition(model="deit_tiny_patch16_224", image_size=64, device=device),
        arms=arms,
        pairs=tuple(Pair(0, index) for index in range(1, len(arms))),
        protocol=Protocol(budget_s=NULL_TEST_SECONDS),
    )
    outcome = run(job, pass_seconds=0.1)  # memory and throughput are not needed
    if outcome.samples is None:
        for failure in outcome.failures:
            console.print(f"noise on {device}: no measurement, {failure.reason}: {failure.message}", style="red")
        return False
    rounds = Rounds(outcome.samples.seconds, outcome.samples.arms)
    ratios = [pool([[rounds.contrast(*pair)]], rounds.rounds, [SAME_WORK]) for pair in job.pairs]
    worst = max(abs(ratio.log) for ratio in ratios)
    wrong = [ratio for ratio in ratios if ratio.verdict() in {"faster", "slower"}]
    width = max(ratio.half_width for ratio in ratios)
    console.print(
        f"noise on {device}: equal arms seem to differ by at most {worst:.2%}, intervals ±{width:.2%} after {rounds.rounds} pairs "
        f"(within {SPEED_FLOOR:.0%} they are the same)" + (f"; flags: {', '.join(outcome.flags)}" if outcome.flags else "")
    )
    if wrong:
        console.print(
            f"{len(wrong)} of {len(ratios)} equal arms were called faster or slower: do not trust verdicts here", style="red"
        )
    return not wrong
