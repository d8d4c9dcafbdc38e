"""Null test and positive control of this machine: how often equal arms are called different, and
slowed ones are seen.

From the project's folder, on a quiet machine:
uv run python -m tests.benchmarks.null (A/A, A/A beside a busy core, and slowed by 5 %: six minutes; passes or not)
uv run python -m tests.benchmarks.null --busy --repeats 5 (A/A in five processes beside a busy core: 100 comparisons)
uv run python -m tests.benchmarks.null --slowed 0.03 (`sweeps/slowed.yaml` with another share)
uv run python -m tests.benchmarks.null --power --repeats 10 (60 s of a job of five arms: equal, equal, slowed by 3 %, by 5 %)
"""

import argparse
import contextlib
import math
import multiprocessing
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import torch

from sweeps.geometry.vit_catalogue import networks
from sweeps.language.expand import expand_file
from sweeps.model.condition import Condition
from sweeps.model.job import DENSE, Arm, Job, Pair, Protocol, Step
from sweeps.model.outcome import Outcome, Samples
from sweeps.stats.pooling import ALPHA, SpeedUp, Verdict
from sweeps.stats.visits import Visit, pool_visits
from tests.benchmarks.ratios import restart_with_default_threads
from tests.fixtures.timing_noise import simulated_rounds
from workers.arms.vision import prepare_vision
from workers.kinds import timed_job
from workers.measure.environment import PROJECT
from workers.measure.process_state import use_threads
from workers.methods import of_modality
from workers.models.vision import shared_vision
from workers.run import run

PASS_S = 0.1
VISITS = 12
POWER = {"equal": ("same", 0.8), "slowed by 3 %": ("slower", 0.6), "slowed by 5 %": ("slower", 0.9)}
"""What is to be seen of each pair of arms in 60 s of a job of five arms, and in which share of the
jobs at least."""
FRACTIONS = {"slowed by 3 %": 0.03, "slowed by 5 %": 0.05}


class Row(NamedTuple):
    """One comparison: measured in interleaved rounds, and (`apart`) as the ratio of the medians of
    one arm after the other.
    """

    image_size: int
    arm: str
    speedup: SpeedUp
    verdict: Verdict
    stopped: str
    flags: tuple[str, ...]
    apart: float | None = None


def jobs(name: str) -> tuple[Job, ...]:
    """The jobs of the sweep `sweeps/NAME.yaml`, on the CPU."""
    return expand_file(
        PROJECT / "sweeps" / f"{name}.yaml",
        methods=of_modality("vision"),
        networks=networks(),
        auto="cpu",
    ).jobs


def compare(
    name: str,
    *,
    apart: bool = False,
    fraction: float | None = None,
    visits: int | None = None,
    **protocol: Any,
) -> list[Row]:
    """Every comparison of the sweep, with fields of `Protocol` instead of the sweep's own, and
    another `fraction` of `slowed`.

    `apart` times each job's arms one after the other as well, in as many samples; `visits` are
    fewer than the sweep's.
    """
    turns: dict[Condition, list[Job]] = {}
    for requested in jobs(name):
        job = requested.model_copy(
            update={"protocol": requested.protocol.model_copy(update=protocol)}
        )
        if fraction is not None:
            arms = tuple(
                arm.model_copy(update={"stack": (slowed(fraction),)}) if arm.stack else arm
                for arm in job.arms
            )
            job = job.model_copy(update={"arms": arms})
        turns.setdefault(job.condition, []).append(job)
    outcomes = {
        job.job_id: answered(job)
        for turn in list(zip(*turns.values(), strict=True))[:visits]
        for job in turn
    }
    return [
        row
        for own in turns.values()
        for row in read([outcomes[job.job_id] for job in own[:visits]], apart=apart)
    ]


def compare_at_once(name: str, **protocol: Any) -> list[Row]:
    """`compare` in a process of its own, whose jobs do not wait until the other processes end."""
    timed_job.WAIT_S = 0.0
    return compare(name, **protocol)


def slowed(fraction: float) -> Step:
    return Step(method="slowed", params={"fraction": fraction})


def answered(job: Job) -> Outcome:
    """The outcome of one visit. Raises `RuntimeError` where an arm failed."""
    outcome = run(job, pass_seconds=PASS_S)
    if outcome.samples is None or outcome.failures:
        raise RuntimeError(f"{job.condition.image_size} px: {outcome.failures}")
    return outcome


def measured(visits: Sequence[Job]) -> list[Row]:
    """Every comparison of a job, by all visits to it."""
    return read([answered(job) for job in visits])


def read(visits: Sequence[Outcome], *, apart: bool = False) -> list[Row]:
    """Every comparison of a job, by the outcomes of all visits to it."""
    job = visits[0].job
    samples = [outcome.samples for outcome in visits if outcome.samples is not None]
    medians = (
        one_after_the_other(job, sum(len(each.seconds) for each in samples)) if apart else None
    )
    flags = tuple(sorted({flag for outcome in visits for flag in outcome.flags}))
    short = min(len(each.seconds) for each in samples) < job.protocol.pairs_min
    rows = []
    for baseline, arm in job.pairs:
        found = pool_visits(
            [visit(each, baseline, arm) for each in samples], range(len(samples))
        ).speedup
        ratio = medians[baseline] / medians[arm] if medians else None
        size, label = job.condition.image_size, str(job.arms[arm])
        rows.append(
            Row(
                size,
                label,
                found,
                "insufficient" if short else found.verdict(),
                samples[-1].stopped,
                flags,
                ratio,
            )
        )
    return rows


def visit(samples: Samples, baseline: int, arm: int) -> Visit:
    """The times of two arms in one visit."""
    table, columns = np.array(samples.seconds), np.array(samples.arms)
    return Visit(table[:, columns == baseline], table[:, columns == arm])


def five_arms(image_size: int, budget_s: float) -> list[Job]:
    """Visits of DeiT-tiny beside itself twice, slowed by 3 % and slowed by 5 %, of `budget_s` in
    all.
    """
    arms = (
        DENSE,
        Arm(replicate=1),
        Arm(replicate=2),
        *(Arm(stack=(slowed(fraction),)) for fraction in FRACTIONS.values()),
    )
    return visited(arms, [Pair(0, arm) for arm in range(1, len(arms))], image_size, budget_s)


def visited(
    arms: Sequence[Arm], pairs: Sequence[Pair], image_size: int, budget_s: float
) -> list[Job]:
    """Visits of `budget_s` in all to a job of DeiT-tiny."""
    job = Job(
        condition=Condition(model="deit_tiny_patch16_224", image_size=image_size),
        arms=tuple(arms),
        pairs=tuple(pairs),
        protocol=Protocol(
            pairs_min=3,
            pairs_max=100_000,
            budget_s=budget_s / VISITS,
            timeout_s=budget_s + 240,
            passes=VISITS,
        ),
    )
    return [job.model_copy(update={"round": turn}) for turn in range(VISITS)]


def large_working_sets(image_size: int, budget_s: float) -> list[Row]:
    """Every comparison of a job of DeiT-tiny, the same, twice one that reads 4 MB more, and one
    that reads 40 (`tests/fixtures/reading_method`): equal, equal, slower.
    """
    small, large = (Step(method="reads", params={"megabytes": size}) for size in (4, 40))
    arms = (
        *(DENSE, Arm(stack=(small,)), Arm(stack=(large,))),
        *(Arm(replicate=1), Arm(stack=(small,), replicate=1)),
    )
    return measured(visited(arms, (Pair(0, 3), Pair(1, 4), Pair(0, 2)), image_size, budget_s))


def in_new_process(work: Callable[..., list[Row]], *given: Any, **options: Any) -> list[Row]:
    """What `work` returns in a new process, as a sweep's jobs run; one that has trained and
    compiled much times less evenly.
    """
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool_of_one:
        return pool_of_one.submit(work, *given, **options).result()


def simulated_rate(noise: str, jobs_made: int = 250, rounds: int = 60) -> float:
    """Share of simulated A/A comparisons of four arms with a baseline timed twice that are called
    faster or slower.
    """
    rng = np.random.default_rng(1)
    arms, wrong = (0, 1, 2, 3, 4, 0), 0
    for _ in range(jobs_made):
        parts = np.split(
            np.asarray(simulated_rounds(rng, noise, np.zeros(len(arms)), rounds)), VISITS
        )
        found = (
            pool_visits([Visit(part[:, [0, 5]], part[:, [arm]]) for part in parts], range(VISITS))
            for arm in range(1, 5)
        )
        wrong += sum(each.found.verdict() in ("faster", "slower") for each in found)
    return wrong / (4 * jobs_made)


def one_after_the_other(job: Job, samples: int) -> list[float]:
    """Median seconds per forward of each arm when all its samples are taken before the next arm's:
    how not to compare.
    """
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
    print(
        f"{'px':>4} {'arm':<36} {'ratio':>7} {'low':>7} {'high':>7} {'pairs':>5} {'stopped':<10}"
        f" {'verdict':<12} flags"
    )
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


def repeated(title: str, repeats: int, name: str, **options: Any) -> list[Row]:
    """The rows of the sweep in as many new processes, printed as they come with their seconds, and
    how many verdicts in all.
    """
    rows: list[Row] = []
    for number in range(1, repeats + 1):
        began = time.monotonic()
        found = in_new_process(compare, name, **options)
        rows += found
        show(f"{title}, process {number} of {repeats}", found)
        print(f"seconds: {time.monotonic() - began:.0f}", flush=True)
    counts = Counter(row.verdict for row in rows)
    print(
        f"\n{title}, in all {len(rows)}:"
        f" {', '.join(f'{count} {verdict}' for verdict, count in counts.most_common())}"
    )
    return rows


def power(repeats: int, image_size: int, budget_s: float) -> bool:
    """Print what jobs of five arms see, each in a new process; whether the shares of `POWER` are
    reached.
    """
    visits, verdicts = (
        five_arms(image_size, budget_s),
        dict[str, list[Verdict]]({name: [] for name in POWER}),
    )
    for number in range(1, repeats + 1):
        began = time.monotonic()
        rows = in_new_process(measured, visits)
        for name, row in zip(("equal", "equal", *FRACTIONS), rows, strict=True):
            verdicts[name].append(row.verdict)
        show(f"five arms, {image_size} px, job {number} of {repeats}", rows)
        print(f"seconds: {time.monotonic() - began:.0f}", flush=True)
    print()
    reached = True
    for name, (verdict, share) in POWER.items():
        found = verdicts[name].count(verdict) / len(verdicts[name])
        false = sum(
            each in ("faster", "slower") if name == "equal" else each in ("faster", "same")
            for each in verdicts[name]
        )
        reached &= found >= share and not false
        print(
            f"{name}: {verdict} in {found:.0%} of {len(verdicts[name])} (aim {share:.0%}), {false}"
            " false"
        )
    return reached


def passes() -> bool:
    """Whether 15 of 20 are `same` and at most 1 is a false alarm when quiet, and 18 of 20 slowdowns
    of 5 % are seen.
    """
    quiet = show("A/A, dense against dense", compare("null", apart=True))
    with busy_neighbour():
        busy = show("A/A while another process keeps one core busy", compare("null", apart=True))
    slower = show("dense against dense slowed by 5 %", compare("slowed"))
    false = (counts["faster"] + counts["slower"] for counts in (quiet, busy))
    return quiet["same"] >= 15 and all(count <= 1 for count in false) and slower["slower"] >= 18


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0 when the machine passes."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.null")
    parser.add_argument("--quiet", action="store_true", help="A/A as the machine is")
    parser.add_argument(
        "--busy",
        action="store_true",
        help="A/A (or the others) beside a process that keeps one core busy",
    )
    parser.add_argument(
        "--slowed",
        type=float,
        metavar="SHARE",
        help="against an arm slowed by this share, such as 0.03",
    )
    parser.add_argument(
        "--power", action="store_true", help="a job of five arms: what is seen in `--seconds`"
    )
    parser.add_argument("--repeats", type=int, default=1, help="processes, one after the other")
    parser.add_argument("--seconds", type=float, default=60.0, help="of the job of --power")
    parser.add_argument("--size", type=int, default=224, help="pixels of the job of --power")
    options = parser.parse_args(arguments)
    restart_with_default_threads()
    if not (options.quiet or options.busy or options.power or options.slowed is not None):
        passed = passes()
    else:
        with busy_neighbour() if options.busy else contextlib.nullcontext():
            if options.power:
                passed = power(options.repeats, options.size, options.seconds)
            elif options.slowed is not None:
                found = repeated(
                    f"slowed by {options.slowed:.0%}",
                    options.repeats,
                    "slowed",
                    fraction=options.slowed,
                )
                passed = all(row.verdict not in ("faster", "same") for row in found)
            else:
                found = repeated("A/A", options.repeats, "null")
                false = sum(row.verdict in ("faster", "slower") for row in found)
                rates = [f"{simulated_rate(noise):.1%} {noise}" for noise in ("quiet", "neighbour")]
                print(
                    f"false alarms: {false} of {len(found)}; allowed {ALPHA:.0%} of the"
                    f" comparisons; simulated {', '.join(rates)}"
                )
                passed = false <= max(1, 0.03 * len(found))
    print("\npassed" if passed else "\nnot passed (is the machine quiet?)")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
