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
from sweeps.outcome import ArmOutcome, MetricValue
from workers.arms.generation_workload import Run
from workers.arms.language import PreparedLanguageArm, proofs, texts, voice
from workers.errors import Unsupported
from workers.kinds import KindResult
from workers.kinds.failures import FailureCollector
from workers.kinds.timed_job import Deadline, Timed, added, concluded, interleaved, prepared, stopwatch_for
from workers.kv_caches import CacheMemory, cache_memory
from workers.measure.bandwidth import bandwidth
from workers.measure.energy import energy
from workers.measure.environment import PROJECT
from workers.measure.interleaved import BLOCK_SAMPLES, WARMUP_S, measure, warm_up
from workers.measure.memory import peak_memory
from workers.measure.monitors import watch
from workers.measure.threads import use_threads

SERIES = ("ttft", "tpot", "time_per_char")
LONG_S = 0.2
"""A run longer than this is a block of its own in the warm-up; of shorter ones three are."""
WARMUP_RUNS = 24
"""Warm-up ends, steady or not, after so many runs of each arm, unless that is less than `WARMUP_S`."""
FRESH_S = 10.0
"""What a process of its own takes at least; it is started only where twice as much is left."""


def answer(job: Job, *, pass_seconds: float = PASS_SECONDS, fresh: bool = True) -> KindResult:
    """Measure the job's arms; a fault of an arm becomes a failure and the others are measured.

    A pass below 2 s, and none in fresh processes, is for tests. Raises what loading the model or its text raises, for no arm is to
    blame for that.
    """
    faults = FailureCollector()
    deadline = Deadline(job, faults)
    use_threads(job.condition)
    with torch.inference_mode():
        said = texts(job)
        voices = prepared(job, faults, deadline, lambda index: voice(job, index, said))
        reserve_s = (pass_seconds + (FRESH_S if fresh else 0)) * len(voices)
        timed = _timed(job, voices, faults, deadline, reserve_s)
        passes = [lambda done, arm: _with_pass(done, arm, pass_seconds, deadline)]
        if fresh:
            passes.append(lambda done, _: _with_isolated(done, job, deadline))
        return concluded(voices, timed, faults, _with_times, *passes)


def _timed(
    job: Job, voices: Sequence[PreparedLanguageArm], faults: FailureCollector, deadline: Deadline, reserve_s: float
) -> Timed | None:
    """Time the arms that stand (see `interleaved`); rounds beyond the fewest asked for end when only `reserve_s` is left."""

    def take(arms: Sequence[PreparedLanguageArm], pairs: Sequence[Pair]) -> Timed:
        steps = [each.step for each in arms]
        once_s = sum(each.first.seconds for each in arms)
        brief = once_s < LONG_S * len(arms)
        with stopwatch_for(job, arms, steps, faults) as clock:
            warmup = warm_up(
                steps,
                1,
                seed=job.job_id,
                stopwatch=clock,
                deadline=deadline.at,
                samples=BLOCK_SAMPLES if brief else 1,
                limit_s=max(WARMUP_S, WARMUP_RUNS * once_s),
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
                    deadline=deadline.at,
                    parts=lambda: _series(arms).values(),
                )
        return Timed(samples.model_copy(update={"series": _series(arms)}), warmup, seen)

    return interleaved(job, voices, faults, take)


def _series(arms: Sequence[PreparedLanguageArm]) -> dict[str, tuple[tuple[float, ...], ...]]:
    """The times of `SERIES` in seconds, each of shape [rounds, arms]."""
    rounds = list(zip(*(each.runs for each in arms), strict=True))
    return {name: tuple(tuple(_part(run, name) for run in runs) for runs in rounds) for name in SERIES}


def _part(run: Run, name: str) -> float:
    if name == "time_per_char":
        return run.seconds / run.characters
    return run.ttft_s if name == "ttft" else run.tpot_s


def _with_times(outcome: ArmOutcome, arm: PreparedLanguageArm, timed: Timed) -> ArmOutcome:
    """What the timed runs say, and a flag where one of them did other work than the first."""
    column = timed.samples.arms.index(outcome.arm)
    device = arm.condition.device
    metrics = [*arm.timings(), MetricValue(name="peak_gb_per_s", value=bandwidth(device), unit="GB/s", n=1), *proofs(arm.speaker)]
    done = {(run.texts, run.decoded, run.cached) for run in (arm.first, *arm.runs)}
    flags = ["consistency_check_failed"] if len(done) > 1 else []
    forwards = timed.warmup.forwards * len(arm.first.steps_s)
    return added(outcome, metrics, flags, warmup_s=timed.warmup.seconds[column], warmup_forwards=forwards)


def _with_pass(outcome: ArmOutcome, arm: PreparedLanguageArm, seconds: float, deadline: Deadline) -> ArmOutcome:
    """The arm alone for `seconds`: peak memory, energy, and what its cache holds at the end of a run."""
    if deadline.left < seconds:
        return added(outcome, flags=["pass_skipped"])
    device, runs, seen = arm.condition.device, 0, Seen()
    with peak_memory(device) as memory, energy(device) as spent:
        start = time.perf_counter()
        while not runs or time.perf_counter() - start < seconds:
            arm.workload.run(arm.speaker, keep=seen)
            runs += 1
    work = {"token": runs * arm.first.decoded, "char": runs * arm.first.characters}
    flags = [] if memory.metrics else ["memory_unmeasured"]
    flags += [] if seen.length == arm.first.cached else ["consistency_check_failed"]
    return added(outcome, [*memory.metrics, *seen.metrics, *spent.metrics(work, runs)], flags)


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
    def metrics(self) -> list[MetricValue]:
        found = {} if self.memory is None else self.memory._asdict()
        return [MetricValue(name=f"kv_bytes_{name}", value=size, unit="B", n=1) for name, size in found.items()]


def _with_isolated(outcome: ArmOutcome, job: Job, deadline: Deadline) -> ArmOutcome:
    """The arm in a process that runs nothing else (see `workers.kinds.isolated_run`): what it takes to load, and its peak memory.

    What is compiled is compiled there again, which takes no longer than the first call, because the code is found on disk.
    """
    skipped = added(outcome, flags=["fresh_skipped"])
    compile_s = outcome.first_call_s or 0 if outcome.arm in job.compiled else 0
    if deadline.left < 2 * FRESH_S + compile_s:
        return skipped
    arm = job.arms[outcome.arm]
    alone = job.model_copy(update={"condition": arm.condition(job.condition), "arms": (Arm(stack=arm.stack),), "pairs": ()})
    path = os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), str(PROJECT))))
    try:
        done = subprocess.run(
            [sys.executable, "-m", "workers.kinds.isolated_run"],
            input=alone.model_dump_json(),
            capture_output=True,
            text=True,
            timeout=deadline.left,
            check=True,
            env={**os.environ, "PYTHONPATH": path},
        )
    except (OSError, subprocess.SubprocessError):
        return skipped
    return added(outcome, [MetricValue.model_validate(each) for each in json.loads(done.stdout.splitlines()[-1])])
