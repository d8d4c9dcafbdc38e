"""A fixed-allocation reference of a sweep's speed-ups, measured in several fresh processes, and
what contradicts it.

`python -m tests.benchmarks.answers --make-reference FILE` writes one; the reports' estimates rest
on nothing of it.
"""

import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from sweeps.geometry.vit_catalogue import networks
from sweeps.language.expand import expand_file
from sweeps.model.condition import Device, ImageSize, square_side
from sweeps.model.identity import FrozenModel
from sweeps.model.job import Job
from sweeps.model.metrics import SPEED_FLOOR
from sweeps.model.outcome import Outcome
from sweeps.stats.pooling import ALPHA, quantile
from sweeps.stats.timing import MIN_ROUNDS, Rounds
from workers.kinds.latency import BURST
from workers.measure.environment import PROJECT, commit
from workers.measure.threads import policy_variables, requested_policy
from workers.methods import of_modality

PROBE_ROUNDS = MIN_ROUNDS
MIN_PROCESSES = 3
"""Of a reference on a machine that became slower than during the trial."""
ENDLESS_S = 3600.0
"""Budget and time-out of a job whose rounds are fixed."""


class Known(FrozenModel):
    """The speed-up of one arm at one size, with what the processes differ by."""

    model: str
    arm_id: str
    arm: str
    image_size: int
    tokens: float
    log: float
    """Mean over processes of the log speed-up."""
    se: float | None
    """Standard error of `log`, from the spread between processes; `None` with one process."""
    processes: int
    no_effect: bool = False

    @property
    def half_width(self) -> float:
        return math.inf if self.se is None else quantile(ALPHA, self.processes - 1) * self.se

    @property
    def low(self) -> float:
        """Lower end of the 99 % interval of the speed-up by Student's t over processes."""
        return math.exp(self.log - self.half_width)

    @property
    def high(self) -> float:
        return math.exp(self.log + self.half_width)


class Reference(FrozenModel):
    """What a reference file holds."""

    sweep: str
    commit: str | None
    processes: int
    pairs: int
    """Rounds of each comparison in each process."""
    seconds: float
    known: tuple[Known, ...]

    def curve(self, model: str, arm_id: str) -> list[Known]:
        """The points of a curve where the arm does something, by size."""
        points = [
            each
            for each in self.known
            if (each.model, each.arm_id) == (model, arm_id) and not each.no_effect
        ]
        return sorted(points, key=lambda each: each.tokens)


class Claim(NamedTuple):
    """The rows of `break_even` of one curve: its verdict, its crossings in order, and the bounds
    beside it.
    """

    verdict: str
    crossings: Sequence[tuple[float | None, float | None, str]] = ()
    """Low, high and direction of each."""
    worst_loss: float | None = None
    largest_gain: float | None = None


def contradictions(claim: Claim, points: Sequence[Known]) -> list[str]:
    """The points of a reference that a claim cannot be true with, each with the reason; none for
    `unclear`, which claims nothing.

    `always`: a point is slower (its interval lies below 1). `never`: a point gains more than
    `largest_gain`. `pays_from` b: a point from b on is slower, or one below b loses more than
    `worst_loss`; `pays_up_to` and `pays_at_both_ends` likewise. `crossing`: outside the intervals
    of the crossings, a point is slower where it should pay, or faster where it should not.
    `no_effect`: a point differs from 1 by more than the floor of the verdict `same`.
    """
    found = []
    for point in points:
        should = _claimed_at(claim, point.tokens)
        at = (
            f"at {point.tokens:g} tokens the reference is {math.exp(point.log):.3f}"
            f" [{point.low:.3f}, {point.high:.3f}]"
        )
        if should == "pays" and point.high < 1:
            found.append(f"{at}: slower, where {claim.verdict} states that it pays")
        if should == "does not pay" and point.low > 1:
            found.append(f"{at}: faster, where {claim.verdict} states that it does not pay")
        if (
            should == "bounded loss"
            and claim.worst_loss is not None
            and point.high < 1 / (1 + claim.worst_loss)
        ):
            found.append(f"{at}: slower by more than {claim.worst_loss:.1%}")
        if (
            claim.verdict == "never"
            and claim.largest_gain is not None
            and point.low > 1 + claim.largest_gain
        ):
            found.append(f"{at}: faster by more than {claim.largest_gain:.1%}")
        if claim.verdict == "no_effect" and (
            point.low > 1 + SPEED_FLOOR or point.high < 1 / (1 + SPEED_FLOOR)
        ):
            found.append(f"{at}: an effect of more than {SPEED_FLOOR:.0%}")
    return found


def _claimed_at(claim: Claim, x: float) -> str:
    """What a claim states of the place x: `pays`, `does not pay`, `bounded loss`, or nothing."""
    if claim.verdict == "always":
        return "pays"
    if claim.verdict in ("pays_from", "pays_up_to", "pays_at_both_ends"):
        pays = any(
            (high is not None and x >= high) or (low is not None and x <= low)
            for low, high, _ in claim.crossings
        )
        return "pays" if pays else "bounded loss"
    if claim.verdict != "crossing":
        return ""
    side = ""
    for low, high, direction in claim.crossings:
        before, after = (
            ("does not pay", "pays") if direction == "gains" else ("pays", "does not pay")
        )
        if low is not None and x <= low:
            return side or before
        if high is None or x < high:
            return ""
        side = after
    return side


def tight(claim: Claim, points: Sequence[Known], factor: float = 2.0) -> bool | None:
    """Whether a crossing's interval has high / low of at most `factor`, or a bound on one side lies
    as near to the break-even.

    A bound does if the reference is not faster at a point within `factor` beyond it; `None` where
    there is none.
    """
    known = [high / low <= factor for low, high, _ in claim.crossings if low and high]
    if known or claim.verdict not in ("pays_from", "pays_up_to"):
        return any(known)
    low, high, _ = claim.crossings[0]
    beyond = [
        point
        for point in points
        if (high and high / factor <= point.tokens < high)
        or (low and low < point.tokens <= low * factor)
    ]
    return any(point.low <= 1 for point in beyond) if beyond else None


def sweep_jobs(sweep: Path, device: Device = "cpu", sizes: Sequence[int] = ()) -> list[Job]:
    """The jobs of a sweep, smallest first; with `sizes` its largest set of arms at these sizes
    instead.
    """
    jobs = list(
        expand_file(sweep, methods=of_modality("vision"), networks=networks(), auto=device).jobs
    )
    if sizes:
        whole = max(jobs, key=lambda job: len(job.arms))
        jobs = [
            whole.model_copy(
                update={"condition": whole.condition.model_copy(update={"image_size": size})}
            )
            for size in sizes
        ]
    return sorted(jobs, key=lambda job: square_side(job.condition.pixels))


def fixed(job: Job, rounds: int) -> Job:
    """The same job, whose number of rounds no noise and no budget changes."""
    protocol = {
        "pairs_min": rounds,
        "pairs_max": rounds,
        "budget_s": ENDLESS_S,
        "timeout_s": ENDLESS_S,
    }
    return job.model_copy(update={"protocol": job.protocol.model_copy(update=protocol)})


def measured(jobs: Sequence[Job], folder: Path) -> list[Outcome]:
    """Outcomes of the jobs, in this order, by the shipped worker in a process of its own; those
    that are in when it is stopped.

    Raises `RuntimeError` when a job fails.
    """
    (folder / "jobs").mkdir(parents=True)
    for index, job in enumerate(jobs):
        (folder / "jobs" / f"{index:03}.json").write_text(job.model_dump_json())
    command = [
        sys.executable,
        "-m",
        "workers.run",
        str(folder / "jobs"),
        "--out",
        str(folder / "out"),
    ]
    # so that one process measures all jobs
    environment = policy_variables(requested_policy(jobs[0].condition), os.environ)
    process = subprocess.Popen(
        command, cwd=PROJECT, env=environment, stderr=subprocess.PIPE, text=True
    )
    try:
        _, errors = process.communicate()
    except BaseException:
        process.kill()
        process.wait()
        raise
    finally:
        shutil.rmtree(folder / "jobs")
    if process.returncode:
        raise RuntimeError(errors[-2000:])
    return read(folder / "out")


def read(folder: Path) -> list[Outcome]:
    """The outcomes in a folder."""
    found = []
    for path in sorted(folder.glob("*.json")):
        try:
            found.append(Outcome.model_validate_json(path.read_bytes()))
        except ValidationError as error:
            raise RuntimeError(f"{path}: not an outcome: {error.errors()[0]['msg']}") from error
    return found


def rounds_within(seconds: float, jobs: Sequence[Job], processes: int) -> tuple[int, float]:
    """How many rounds of every job fit into `seconds` of so many processes, by a trial of a few;
    and the seconds of that trial.
    """
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        trial = measured([fixed(job, PROBE_ROUNDS) for job in jobs], Path(folder) / "trial")
    took = time.monotonic() - began
    one_round = sum(_in_rounds(outcome) / PROBE_ROUNDS for outcome in trial)
    beside = took - PROBE_ROUNDS * one_round
    left = max(0.0, seconds - took - processes * beside)
    return max(PROBE_ROUNDS, int(left / processes / one_round)), took


def _in_rounds(outcome: Outcome) -> float:
    """Seconds in samples and bursts."""
    if outcome.samples is None:
        raise RuntimeError(f"nothing was measured: {outcome.failures}")
    samples = outcome.samples
    return samples.inner[0] * (
        sum(map(sum, samples.seconds)) + BURST * sum(map(sum, samples.bursts or ()))
    )


def known(outcomes: Iterable[Outcome]) -> Iterator[Known]:
    """The comparisons of the outcomes with their spread between processes; one outcome of a process
    and size counts once.
    """
    logs: dict[tuple[str, str, ImageSize], list[float]] = defaultdict(list)
    named: dict[tuple[str, str, ImageSize], dict[str, Any]] = {}
    for outcome in outcomes:
        if outcome.samples is None or outcome.failures:
            raise RuntimeError(f"nothing was measured: {outcome.failures}")
        rounds = Rounds(outcome.samples.seconds, outcome.samples.arms)
        arms = {arm.arm: arm for arm in outcome.arms}
        for baseline, arm in outcome.job.pairs:
            condition, requested = outcome.job.condition, outcome.job.arms[arm]
            key = condition.model, requested.arm_id, condition.pixels
            logs[key].append(rounds.contrast(baseline, arm).effect)
            named[key] = {
                "arm": str(requested),
                "tokens": arms[baseline].tokens,
                "no_effect": "no_effect" in arms[arm].flags,
            }
    for key, effects in logs.items():
        se = statistics.stdev(effects) / math.sqrt(len(effects)) if len(effects) > 1 else None
        same = dict(zip(("model", "arm_id", "image_size"), key, strict=True))
        yield Known(
            **same, **named[key], log=statistics.fmean(effects), se=se, processes=len(effects)
        )


def make(
    path: Path, sweep: Path, *, minutes: float, processes: int, sizes: Sequence[int] = ()
) -> Reference:
    """Measure a reference within about `minutes` and write it to `path`, anew after each process;
    Ctrl-C keeps what is there.

    Each process measures all sizes with the same number of rounds, the p-th beginning with the p-th
    size, in orders of its own.
    """
    began = time.monotonic()
    jobs = sweep_jobs(sweep, sizes=sizes)
    rounds, took = rounds_within(60 * minutes, jobs, processes)
    print(
        f"trial of {took:.0f} s: {rounds} rounds of each of {len(jobs)} jobs in each of {processes}"
        " processes",
        flush=True,
    )
    outcomes: list[Outcome] = []
    found: Reference | None = None
    with tempfile.TemporaryDirectory() as folder:
        for number in range(processes):
            if number >= MIN_PROCESSES and time.monotonic() - began > 60 * minutes:
                print(f"time is up after {number} processes", flush=True)
                break
            turn = [*jobs[number % len(jobs) :], *jobs[: number % len(jobs)]]
            again = [fixed(job, rounds).model_copy(update={"round": number}) for job in turn]
            try:
                outcomes += measured(again, Path(folder) / str(number))
            except KeyboardInterrupt:
                print("stopped; the processes that ended are kept", flush=True)
                break
            except RuntimeError as error:
                print(f"process {number + 1} is left out: {error}", flush=True)
                continue
            seconds = time.monotonic() - began
            found = Reference(
                sweep=sweep.name,
                commit=commit(),
                processes=len(outcomes) // len(jobs),
                pairs=rounds,
                seconds=seconds,
                known=tuple(known(outcomes)),
            )
            part = path.with_name(f".{path.name}.part")
            part.write_text(json.dumps(found.model_dump(mode="json"), indent=1))
            part.replace(path)
            print(f"process {number + 1} of {processes} after {seconds:.0f} s: {path}", flush=True)
    if found is None:
        raise SystemExit("no process ended; nothing is written")
    return found
