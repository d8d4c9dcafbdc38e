"""Generation: all arms of a job say the same text side by side; the first token, each further token and the whole are timed.

Then each arm alone: memory, energy, and what the cache holds; and once more in a process of its own.
"""

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from sweeps.job import PASS_SECONDS, Arm, Job, Pair
from sweeps.outcome import ArmOutcome, Metric, Samples
from workers.caches import CacheMemory, cache_memory
from workers.decoding import Run
from workers.kinds import Findings
from workers.kinds.faults import Faults
from workers.kinds.speakers import Voice, proofs, texts, voice
from workers.kinds.timing import Deadline, interleaved
from workers.measure.bandwidth import bandwidth
from workers.measure.clock import stopwatch
from workers.measure.energy import energy
from workers.measure.environment import PROJECT
from workers.measure.memory import peak_memory
from workers.measure.monitors import Watch, watch
from workers.measure.rounds import BLOCK_SAMPLES, WARMUP_S, Warmup, measure, warm_up
from workers.measure.threads import use_threads
from workers.models import Unsupported

SERIES = ("ttft", "tpot", "time_per_char")
LONG_S = 0.2
"""A run longer than this holds enough forwards that two of each arm warm it up, however long they take."""
FRESH_S = 10.0
"""What a process of its own takes at least; it is started only where twice as much is left."""


@dataclass(frozen=True)
class Timed:
    """The samples of the arms that could be timed, and how they were warmed up."""

    samples: Samples
    warmup: Warmup
    watch: Watch


def answer(job: Job, *, pass_seconds: float = PASS_SECONDS, fresh: bool = True) -> Findings:
    """Measure the job's arms; a fault of an arm becomes a failure and the others are measured.

    A pass below 2 s, and none in fresh processes, is for tests. Raises what loading the model or its text raises, for no arm is to
    blame for that.
    """
    faults = Faults()
    deadline = Deadline(job, faults)
    use_threads(job.condition)
    with torch.inference_mode():
        said = texts(job)
        voices: list[Voice] = []
        for index, arm in enumerate(job.arms):
            with faults.of(index, f"preparing {arm}"):
                voices.append(voice(job, index, said))
        reserve_s = (pass_seconds + (FRESH_S if fresh else 0)) * len(voices)
        timed = _timed(job, voices, faults, deadline, reserve_s)
        flags = set(timed.watch.flags if timed else ())
        if timed and not timed.warmup.steady:
            flags.add("unsteady")
        arms = []
        for each in voices:
            outcome = each.outcome()
            if timed and each.index in timed.samples.arms:
                outcome = _with_times(outcome, each, timed)
                with faults.of(each.index, f"measuring memory of {each.arm}, after it was timed"):
                    outcome = _with_pass(outcome, each, pass_seconds, deadline)
                    if fresh:
                        outcome = _with_fresh(outcome, job, deadline)
            arms.append(outcome)
            flags.update({"identity_violated"} & set(outcome.flags))
    return Findings(
        arms=tuple(arms),
        failures=tuple(faults.rows),
        samples=timed.samples if timed else None,
        readings=timed.watch.readings if timed else {},
        flags=tuple(sorted(flags)),
    )


def _timed(job: Job, voices: Sequence[Voice], faults: Faults, deadline: Deadline, reserve_s: float) -> Timed | None:
    """Time the arms that stand (see `interleaved`); rounds beyond the fewest asked for end when only `reserve_s` is left."""

    def take(arms: Sequence[Voice], pairs: Sequence[Pair]) -> Timed:
        steps = [each.step for each in arms]
        clock = stopwatch(job.condition.device)
        once_s = sum(each.first.seconds for each in arms)
        brief = once_s < LONG_S * len(arms)
        warmup = warm_up(
            steps,
            1,
            seed=job.job_id,
            stopwatch=clock,
            deadline=time.monotonic() + deadline.left,
            samples=BLOCK_SAMPLES if brief else 1,
            limit_s=WARMUP_S if brief else max(WARMUP_S, 3 * once_s),
        )
        for each in arms:
            each.runs.clear()
        budget_s = min(job.protocol.budget_s, deadline.left - reserve_s)
        with watch(job.condition.device, torch.get_num_threads()) as seen:
            samples = measure(
                steps,
                1,
                arms=[each.index for each in arms],
                pairs=pairs,
                protocol=job.protocol.model_copy(update={"budget_s": budget_s}),
                seed=job.job_id,
                stopwatch=clock,
                deadline=time.monotonic() + deadline.left,
                parts=lambda: _series(arms).values(),
            )
        return Timed(samples.model_copy(update={"series": _series(arms)}), warmup, seen)

    return interleaved(job, voices, faults, take)


def _series(arms: Sequence[Voice]) -> dict[str, tuple[tuple[float, ...], ...]]:
    """The times of `SERIES` in seconds, each of shape [rounds, arms]."""
    rounds = list(zip(*(each.runs for each in arms), strict=True))
    return {name: tuple(tuple(_part(run, name) for run in runs) for runs in rounds) for name in SERIES}


def _part(run: Run, name: str) -> float:
    if name == "time_per_char":
        return run.seconds / run.characters
    return run.ttft_s if name == "ttft" else run.tpot_s


def _with_times(outcome: ArmOutcome, arm: Voice, timed: Timed) -> ArmOutcome:
    """What the timed runs say, and a flag where one of them did other work than the first."""
    column = timed.samples.arms.index(outcome.arm)
    device = arm.condition.device
    metrics = [*arm.timings(), Metric(name="machine_gb_per_s", value=bandwidth(device), unit="GB/s", n=1), *proofs(arm.speaker)]
    done = {(run.texts, run.decoded, run.cached) for run in (arm.first, *arm.runs)}
    flags = [*outcome.flags, *(["identity_violated"] if len(done) > 1 else [])]
    return outcome.model_copy(
        update={
            "warmup_s": timed.warmup.seconds[column],
            "warmup_forwards": timed.warmup.forwards * len(arm.first.steps_s),
            "metrics": (*outcome.metrics, *metrics),
            "flags": tuple(flags),
        }
    )


def _with_pass(outcome: ArmOutcome, arm: Voice, seconds: float, deadline: Deadline) -> ArmOutcome:
    """The arm alone for `seconds`: peak memory, energy, and what its cache holds at the end of a run."""
    if deadline.left < seconds:
        return outcome.model_copy(update={"flags": (*outcome.flags, "pass_skipped")})
    device, runs, seen = arm.condition.device, 0, Seen()
    with peak_memory(device) as memory, energy(device) as spent:
        start = time.perf_counter()
        while not runs or time.perf_counter() - start < seconds:
            arm.workload.run(arm.speaker, keep=seen)
            runs += 1
    metrics = [*memory.metrics, *seen.metrics]
    if spent.joules is not None:
        for name, count in (("energy_per_token", arm.first.decoded), ("energy_per_char", arm.first.characters)):
            metrics.append(Metric(name=name, value=spent.joules / (runs * count), unit="J", n=runs))
        metrics.append(Metric(name="mean_power", value=spent.joules / spent.seconds, unit="W", n=1))
    flags = list(outcome.flags)
    if not memory.metrics:
        flags.append("memory_unmeasured")
    if seen.length != arm.first.cached:
        flags.append("identity_violated")
    return outcome.model_copy(update={"metrics": (*outcome.metrics, *metrics), "flags": tuple(dict.fromkeys(flags))})


@dataclass
class Seen:
    """What the caches of a pass held when their run ended; all hold the same."""

    length: int | None = None
    """Tokens."""
    memory: CacheMemory | None = None

    def __call__(self, cache: Any) -> None:
        if self.length is None:
            self.length = int(cache.get_seq_length())
            with contextlib.suppress(Unsupported):
                self.memory = cache_memory(cache)

    @property
    def metrics(self) -> list[Metric]:
        found = {} if self.memory is None else self.memory._asdict()
        return [Metric(name=f"kv_bytes_{name}", value=size, unit="B", n=1) for name, size in found.items()]


def _with_fresh(outcome: ArmOutcome, job: Job, deadline: Deadline) -> ArmOutcome:
    """The arm in a process that runs nothing else (see `workers.fresh`): what it takes to load, and its peak memory."""
    skipped = outcome.model_copy(update={"flags": (*outcome.flags, "fresh_skipped")})
    if deadline.left < 2 * FRESH_S:
        return skipped
    arm = job.arms[outcome.arm]
    alone = job.model_copy(update={"condition": arm.condition(job.condition), "arms": (Arm(stack=arm.stack),), "pairs": ()})
    path = os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), str(PROJECT))))
    try:
        done = subprocess.run(
            [sys.executable, "-m", "workers.fresh"],
            input=alone.model_dump_json(),
            capture_output=True,
            text=True,
            timeout=deadline.left,
            check=True,
            env={**os.environ, "PYTHONPATH": path},
        )
    except (OSError, subprocess.SubprocessError):
        return skipped
    metrics = [Metric.model_validate(each) for each in json.loads(done.stdout.splitlines()[-1])]
    return outcome.model_copy(update={"metrics": (*outcome.metrics, *metrics)})
