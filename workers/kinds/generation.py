"""Generation: all arms of a job decode the same text side by side; the first token, each further
token and the whole are timed.

Then each arm alone: memory, energy, and what the cache holds; and once more in a process of its
own.
"""

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from torch import Tensor

from sweeps.model.job import PASS_SECONDS, Arm, Job
from sweeps.model.outcome import MetricValue, Samples
from sweeps.stats.timing import median
from workers.arms.generation_workload import EnoughStepsError
from workers.arms.language import LanguageArm, counters, cut_texts, prepare_language
from workers.arms.prepared import raised
from workers.errors import Unsupported
from workers.kinds.failures import FailureCollector, KindResult
from workers.kinds.timed_job import ArmMetrics, SoloPass, TimedKind, run_timed
from workers.kv_caches import cache_memory
from workers.measure.environment import module_variables
from workers.measure.interleaved import BLOCK_SAMPLES, WARMUP_S
from workers.measure.optional import optional
from workers.measure.peaks import bandwidth
from workers.measure.readings import (
    measured_energy,
    peak_memory,
)
from workers.measure.samples import estimated, median_time, metric_value, sampled_metrics
from workers.measure.timer import repeat

LONG_S = 0.2
"""A run longer than this is a block of its own in the warm-up; of shorter ones three are."""
WARMUP_RUNS = 24
"""Warm-up ends, steady or not, after so many runs of each arm, unless that is less than
`WARMUP_S`."""
CHECKED_STEPS = 2
"""Of a run: logits are compared after the prompt and after one token."""
ISOLATED_S = 10.0
"""What a process of its own takes at least; it is started only where twice as much is left."""


def run(job: Job, *, pass_seconds: float = PASS_SECONDS, isolated: bool = True) -> KindResult:
    """Measure the job's arms (see `run_timed`); a pass below 2 s, and none in isolated processes,
    is for tests.
    """
    return run_timed(job, partial(GenerationKind, pass_seconds=pass_seconds, isolated=isolated))


class GenerationKind(TimedKind[LanguageArm]):
    """Runs of the workload, one a sample; their parts are series of the samples."""

    def __init__(
        self, job: Job, failures: FailureCollector, *, pass_seconds: float, isolated: bool
    ) -> None:
        super().__init__(job, failures)
        self.pass_seconds = pass_seconds
        self.counted: dict[int, list[MetricValue]] = {}
        """By arm what its methods counted in its last timed run."""
        self.texts = cut_texts(job)
        passes = [SoloPass(self._run_alone, pass_seconds, "pass_skipped", lambda _: pass_seconds)]
        if isolated:
            passes.append(
                SoloPass(self._run_isolated, ISOLATED_S, "isolated_run_skipped", self._isolated_s)
            )
        self.passes = list(map(self.once, passes))

    def build(self, index: int, *, kept: bool) -> LanguageArm:  # noqa: ARG002 - texts do not depend on the visit
        return prepare_language(self.job, index, self.texts)

    def output(self, arm: LanguageArm) -> list[Tensor]:
        """Logits [V] of the first sequence behind the prompt and behind the first token; none of
        another engine, which runs no code of a method.
        """
        kept: list[Tensor] = []

        def keep(logits_BV: Tensor) -> None:
            kept.append(logits_BV[0].clone())
            if len(kept) == CHECKED_STEPS:
                raise EnoughStepsError

        with contextlib.suppress(EnoughStepsError):
            if arm.model.engine is None:
                arm.workload.run(arm.model, check=keep)
        return kept

    def verify(self, arm: LanguageArm) -> None:
        self.counted[arm.index] = counters(arm.model)  # of a whole run, before one that ends early
        super().verify(arm)

    def prepare(self, index: int) -> LanguageArm:
        return replace(super().prepare(index), runs=[])

    def warmup_options(self, arms: Sequence[LanguageArm]) -> Mapping[str, Any]:
        once_s = sum(arm.first.seconds for arm in arms)
        samples = BLOCK_SAMPLES if once_s < LONG_S * len(arms) else 1
        return {"samples": samples, "limit_s": max(WARMUP_S, WARMUP_RUNS * once_s)}

    @contextlib.contextmanager
    def observed(self, arm: LanguageArm) -> Iterator[None]:
        arm.runs.clear()
        yield

    def series(self, arm: LanguageArm) -> Mapping[str, Sequence[float]]:
        parts = [run.parts_s for run in arm.runs]
        return {name: [each[name] for each in parts] for name in arm.first.parts_s}

    def read(self, arm: LanguageArm, samples: Samples) -> ArmMetrics:
        """Times, and the rates that follow from them; the flag where a run did other work than the
        first.
        """
        runs, first = arm.runs, arm.first
        seconds = np.array([run.seconds for run in runs])
        steps_s = np.concatenate([run.steps_s for run in runs])
        tpot_s = np.array([run.tpot_s for run in runs])
        characters = np.array([run.characters for run in runs])
        # equal in all runs
        base_tokens = sum(len(arm.base.tokenizer.encode(text)) for text in runs[-1].texts)
        prefill_s = np.array([run.ttft_s - run.encoding_s for run in runs])
        metrics = [
            *sampled_metrics(samples, arm.index),
            metric_value("tpot_p95", float(np.quantile(steps_s, 0.95)) * 1e3, n=steps_s.size),
            estimated("prefill_tokens_per_s", median(first.prompt_tokens / prefill_s)),
            estimated("decode_tokens_per_s", median(arm.sequences / tpot_s)),
            estimated("chars_per_s", median(characters / seconds)),
            estimated("base_tokens_per_s", median(base_tokens / seconds)),
            median_time("tokenizer_s", [run.tokenizer_s for run in runs]),
            estimated("achieved_gb_per_s", median(arm.weight_bytes / tpot_s), 1e-9),
            *self.counted[arm.index],
        ]
        with optional("bandwidth of the memory"):
            reached = arm.weight_bytes / float(tpot_s.min()) / 1e9
            peak = bandwidth(arm.condition.device, reached)
            metrics.append(metric_value("peak_gb_per_s", peak, n=1))
        return ArmMetrics(
            metrics,
            raised(consistency_check_failed=bool({run.work for run in runs} - {first.work})),
        )

    def _run_alone(self, arm: LanguageArm) -> ArmMetrics:
        """Peak memory, energy, and what the cache holds at the end of a run."""
        device = arm.condition.device
        held: list[tuple[int, list[MetricValue]]] = []

        def keep(cache: Any) -> None:
            if not held:  # equal for all runs
                held.append((int(cache.get_seq_length()), _cache_metrics(cache)))

        with peak_memory(device, arm.captured_bytes) as memory, measured_energy(device) as spent:
            runs = repeat(device, lambda: arm.workload.run(arm.model, keep=keep), self.pass_seconds)
        work = {"token": runs * arm.first.decoded, "char": runs * arm.first.characters}
        # another engine does not say what its cache holds
        cached, cache_metrics = held[0] if held else (arm.first.cached, [])
        metrics = [*memory, *cache_metrics, *spent.metrics(work, runs)]
        return ArmMetrics(
            metrics,
            raised(
                memory_unmeasured=not memory,
                consistency_check_failed=cached != arm.first.cached,
            ),
        )

    def _isolated_s(self, arm: LanguageArm) -> float:
        """What is compiled is compiled there again, which takes no longer than the first call,
        because its code is on disk.
        """
        return 2 * ISOLATED_S + (arm.first_call_s if arm.index in self.job.compiled else 0)

    def _run_isolated(self, arm: LanguageArm) -> ArmMetrics:
        """The arm in a process that runs nothing else (see `workers.kinds.isolated_run`): its load
        time and peak memory.
        """
        alone = {"condition": arm.condition, "arms": (Arm(stack=arm.arm.stack),), "pairs": ()}
        try:
            done = subprocess.run(
                [sys.executable, "-P", "-m", "workers.kinds.isolated_run"],
                input=self.job.model_copy(update=alone).model_dump_json(),
                capture_output=True,
                text=True,
                timeout=self.failures.left_s,
                check=True,
                env=module_variables(),
            )
        except (OSError, subprocess.SubprocessError):
            return ArmMetrics(flags=["isolated_run_skipped"])
        return ArmMetrics(
            [MetricValue.model_validate(each) for each in json.loads(done.stdout.splitlines()[-1])]
        )


def _cache_metrics(cache: Any) -> list[MetricValue]:
    """What a cache holds; nothing for one that does not say."""
    with contextlib.suppress(Unsupported):
        held = cache_memory(cache)._asdict()
        return [metric_value(f"kv_bytes_{name}", size, n=1) for name, size in held.items()]
    return []
