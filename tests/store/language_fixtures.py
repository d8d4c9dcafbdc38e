"""Outcomes of language jobs as a worker would hand them back, made from simulated times and
likelihoods.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from sweeps.geometry.llm_geometry import languages
from sweeps.model.condition import Condition, KvCache, Overrides
from sweeps.model.job import DENSE, Arm, Job, Pair, Protocol, Step
from sweeps.model.outcome import (
    ArmOutcome,
    ArmScores,
    Environment,
    Failure,
    MetricValue,
    Outcome,
    PairScores,
    Samples,
    TextScores,
    pack,
)
from tests.store.conftest import CPU, arms_that_ran

NOW = 1_790_000_000.0
MODEL = "llama-220m"


def larosa(sparsity: float, **overrides: Any) -> Arm:
    """A sparse arm."""
    return Arm(
        stack=(Step(method="larosa", params={"form": "absorbed", "sparsity": sparsity}),),
        overrides=Overrides(**overrides),
    )


def stacked(sparsity: float, kv_cache: KvCache | None = None) -> Arm:
    """A vocabulary and a sparse arm together."""
    steps = (Step(method="adaptivocab", params={"tokens": 500}), *larosa(sparsity).stack)
    return Arm(stack=steps, overrides=Overrides(kv_cache=kv_cache))


def a_generation_job(
    prompt_tokens: int = 64,
    arms: Sequence[Arm] = (larosa(0.5),),
    baselines: Sequence[Arm] = (DENSE,),
    **condition: Any,
) -> Job:
    """A block of arms, each compared with all baselines."""
    fields = {
        "model": MODEL,
        "new_tokens": 32,
        "kv_cache": "dynamic",
        "decoding": "teacher_forcing",
        "data": "docs",
        **condition,
    }
    return Job(
        kind="generation",
        condition=Condition(prompt_tokens=prompt_tokens, **fields),
        arms=(*baselines, *arms),
        pairs=_pairs(len(baselines), len(arms)),
    )


def a_quality_job(
    arms: Sequence[Arm] = (larosa(0.5),),
    baselines: Sequence[Arm] = (DENSE,),
    characters: int | None = None,
    **condition: Any,
) -> Job:
    """The same arms judged."""
    fields = {"model": MODEL, "data": "docs", **condition}
    return Job(
        kind="quality",
        condition=Condition(**fields),
        arms=(*baselines, *arms),
        pairs=_pairs(len(baselines), len(arms)),
        protocol=Protocol(characters=characters),
    )


def a_generation(
    job: Job,
    speedups: Sequence[float] = (1.0, 1.5),
    *,
    pairs: int = 40,
    noise: float = 0.01,
    seed: int = 0,
    ended_at: float = NOW,
    failures: Sequence[Failure] = (),
    flags: Sequence[str] = (),
    environment: Environment = CPU,
) -> Outcome:
    """What a worker would report of `job` had its arms these true speed-ups of decoding, and none
    for the first token.
    """
    random = np.random.default_rng(seed)
    ran = arms_that_ran(job, failures)
    tpot = 0.030 / np.array(speedups)[list(ran)]
    series = {"ttft": np.full(len(ran), 0.2), "tpot": tpot, "time_per_char": (0.2 + 31 * tpot) / 96}
    spoilt = {
        name: times * np.exp(noise * random.standard_normal((pairs, len(ran))))
        for name, times in series.items()
    }
    network, prompt = languages()[job.condition.model], job.condition.prompt_tokens or 0
    first = network.macs(prompt, 0) / 1e9
    further = network.macs(prompt, 31) / 1e9 - first
    return Outcome(
        job=job,
        environment=environment,
        host="here",
        started_at=ended_at - 10,
        ended_at=ended_at,
        arms=tuple(
            ArmOutcome(
                arm=index,
                gmacs=first + further * _kept(job, index),
                gmacs_overhead=0.01 * len(job.arms[index].stack),
                parameters=(size := 222_000_000 + 100_000_000 * bool(job.arms[index].stack)),
                trainable_parameters=size,
                batch=1,
                tokens=prompt,
                tokens_final=prompt + 31,
                trace=(),
                threads=2,
                metrics=(
                    *_metrics(job, index, float(times)),
                    *_work(job, index, first, further / 31),
                ),
            )
            for index, times in zip(ran, tpot, strict=True)
        ),
        failures=tuple(failures),
        samples=Samples(
            arms=ran,
            seconds=_rows(96 * spoilt["time_per_char"]),
            order=tuple(tuple(random.permutation(len(ran)).tolist()) for _ in range(pairs)),
            inner=(1,) * len(ran),
            stopped="half_width",
            series={name: _rows(times) for name, times in spoilt.items()},
        )
        if ran
        else None,
        flags=tuple(flags),
    )


def generation_visits(
    job: Job, speedups: Sequence[float] = (1.0, 1.5), visits: int = 6, **more: Any
) -> list[Outcome]:
    """What a worker would report of so many visits to `job` in one run; `more` as for
    `a_generation`.
    """
    protocol = job.protocol.model_copy(update={"passes": visits})
    turns = [job.model_copy(update={"protocol": protocol, "round": turn}) for turn in range(visits)]
    return [
        a_generation(one, speedups, seed=turn, ended_at=NOW + turn, **more)
        for turn, one in enumerate(turns)
    ]


def a_reading(
    job: Job,
    losses: Sequence[float] = (0.0, 0.05),
    *,
    windows: int = 200,
    noise: float = 0.02,
    ended_at: float = NOW,
    failures: Sequence[Failure] = (),
    tokens: Sequence[int] | None = None,
    complete: bool = False,
) -> Outcome:
    """What a worker would report of a quality job did its arms need so many more bits a byte;
    `tokens` are those of a window.
    """
    random = np.random.default_rng(1)
    ran = arms_that_ran(job, failures)
    size = random.integers(200, 600, windows)
    hardness = 2.2 + 0.4 * random.standard_normal(windows)
    each = tokens or (100,) * len(job.arms)

    def nll(arm: int) -> np.ndarray[Any, np.dtype[np.float64]]:
        return np.asarray(
            np.log(2)
            * size
            * (hardness + losses[arm] + (noise * random.standard_normal(windows) if arm else 0.0))
        )

    positions = np.full(windows, 100)
    scores = TextScores(
        windows=windows,
        listing="ab",
        complete=complete,
        bytes=pack(size, "i4"),
        characters=pack(size - 3, "i4"),
        documents=pack(np.arange(windows) // 2, "i4"),
        arms=tuple(
            ArmScores(
                arm=arm, nll=pack(nll(arm), "f8"), tokens=pack(np.full(windows, each[arm]), "i4")
            )
            for arm in ran
        ),
        pairs=tuple(
            PairScores(
                baseline=pair.baseline,
                arm=pair.arm,
                positions=pack(positions, "i4"),
                agree=pack(random.binomial(100, 0.9, windows), "i4"),
                kl=pack(random.lognormal(-4, 1, windows), "f4"),
            )
            for pair in job.pairs
            if {*pair} <= {*ran} and each[pair.baseline] == each[pair.arm]
        ),
    )
    timed = a_generation(job, (1.0,) * len(job.arms), ended_at=ended_at, failures=failures)
    arms = tuple(arm.model_copy(update={"metrics": ()}) for arm in timed.arms)
    return timed.model_copy(
        update={"samples": None, "arms": arms, "text_scores": scores if ran else None}
    )


def _pairs(baselines: int, arms: int) -> tuple[Pair, ...]:
    first = [Pair(0, other) for other in range(1, baselines)]
    return (
        *first,
        *(Pair(baseline, baselines + arm) for arm in range(arms) for baseline in range(baselines)),
    )


def _kept(job: Job, index: int) -> float:
    """Share of a decoded token's MACs that an arm does not leave out."""
    return 1.0 - sum(float(step.params.get("sparsity", 0)) for step in job.arms[index].stack) / 2


def _work(job: Job, index: int, first: float, further: float) -> list[MetricValue]:
    """MACs of the parts of a run; the methods' own are all in the first token."""
    own = 0.01 * len(job.arms[index].stack)
    parts = {
        "gmacs_ttft": first,
        "gmacs_overhead_ttft": own,
        "gmacs_tpot": further * _kept(job, index),
        "gmacs_overhead_tpot": 0.0,
    }
    return [MetricValue(name=name, value=value, unit="GMAC") for name, value in parts.items()]


def _metrics(job: Job, index: int, tpot: float) -> list[MetricValue]:
    needed = 2 * 4 * 16 * 128 * 95 * 4.0
    more = (
        [("achieved_sparsity", 0.5, "1"), ("kernel_calls", 28.0, "1"), ("fallback_calls", 0.0, "1")]
        if job.arms[index].stack
        else []
    )
    values = [
        *(
            ("ttft", 200.0, "ms"),
            ("tpot", 1000 * tpot, "ms"),
            ("tpot_p95", 1100 * tpot, "ms"),
            ("characters", 96.0, "1"),
        ),
        *(
            ("chars_per_s", 96 / (0.2 + 31 * tpot), "1/s"),
            ("kv_bytes_needed", needed, "B"),
            ("kv_bytes_resident", needed + 4096, "B"),
        ),
        *(
            ("peak_rss_isolated", 1024.0, "MiB"),
            ("decode_tokens_per_s", 1 / tpot, "1/s"),
            ("peak_gb_per_s", 30.0, "GB/s"),
        ),
        *more,
    ]
    return [MetricValue(name=name, value=value, unit=unit, n=1) for name, value, unit in values]


def _rows(times: Any) -> tuple[tuple[float, ...], ...]:
    return tuple(map(tuple, times.tolist()))
