"""The three caches of keys and values side by side on this CPU: `python -m tests.benchmarks.caches
[speed|memory|cap]`.

speed: decoding, arms interleaved in one process. One sample is 8 tokens written behind a context of
random keys and values, with a model of random weights in float32; the cache is made and filled
outside of it. Ratios are `dynamic` over the other, with intervals. memory: a fresh process for each
cache, at every length: what is needed, resident, reserved, and what the process really grew by.
cap: how many sequences, and how long a one, fit under a cap of resident memory. RLIMIT_AS and
RLIMIT_DATA count reserved addresses too, so neither can be the cap: the resident pages of the
process are counted, and the first sequence above the cap is not.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any, NamedTuple, get_args

import torch

from sweeps.model.condition import Condition, KvCache
from sweeps.model.job import Pair, Protocol
from sweeps.model.outcome import Samples
from tests.benchmarks.ratios import column, speedup
from tests.workers.cache_growth import GEOMETRY, private_bytes
from tests.workers.tiny_llms import tiny_llm
from workers.kv_caches import make_cache
from workers.measure.interleaved import time_rounds, warm_up
from workers.measure.readings import peak_memory
from workers.measure.timer import SampleTime
from workers.models.language import LanguageModel, load_language

KINDS: tuple[KvCache, ...] = get_args(KvCache)
MIB = 2**20
NEW = 8
LENGTHS = (1, 16, 17, 100, 500, 501, 1000, 2000, 2001, 4000)
CAP = 256 * MIB
PROTOCOL = Protocol(pairs_min=30, pairs_max=120, half_width=0.01, budget_s=30, timeout_s=600)


class Case(NamedTuple):
    model: str
    batch: int
    context: int
    threads: int


CASES = (
    Case("llama-15m", 1, 64, 1),
    Case("llama-15m", 1, 1024, 1),
    Case("llama-15m", 1, 4000, 1),
    Case("llama-15m", 8, 512, 1),
    Case("llama-220m", 1, 64, 1),
    Case("llama-220m", 1, 512, 1),
    Case("llama-220m", 1, 2048, 1),
    Case("llama-220m", 1, 512, 2),
)


def filled(kind: KvCache, lm: LanguageModel, batch: int, context: int, tokens: int) -> Any:
    """A cache for `tokens` tokens that holds `context` random ones."""
    cache = make_cache(kind, lm, batch, tokens)
    shape = (batch, lm.network.kv_heads, context, lm.network.head_dim)
    states = torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=lm.model.dtype)
    for layer in range(lm.network.layers):
        cache.update(states, states, layer)
    return cache


def decoding(kind: KvCache, lm: LanguageModel, case: Case) -> Callable[[], float]:
    """A step that gives its seconds for each token."""
    tokens = torch.zeros(case.batch, 1, dtype=torch.long)

    def step() -> float:
        cache = filled(kind, lm, case.batch, case.context, case.context + NEW)
        began = time.perf_counter()
        for _ in range(NEW):
            lm.model(input_ids=tokens, cache=cache, logits_to_keep=1)
        return (time.perf_counter() - began) / NEW

    return step


def updating(kind: KvCache, lm: LanguageModel, case: Case) -> Callable[[], float]:
    """The same of the cache alone: its updates in all layers."""
    shape = (case.batch, lm.network.kv_heads, 1, lm.network.head_dim)
    states = torch.randn(shape)

    def step() -> float:
        cache = filled(kind, lm, case.batch, case.context, case.context + NEW)
        began = time.perf_counter()
        for _ in range(NEW):
            for layer in range(lm.network.layers):
                cache.update(states, states, layer)
        return (time.perf_counter() - began) / NEW

    return step


def compared(steps: list[Callable[[], float]], seed: str) -> Samples:
    """Times of the steps, in rounds of random order."""

    def stopwatch(step: Any, _inner: int) -> SampleTime:
        return SampleTime(step(), None)

    deadline = time.monotonic() + PROTOCOL.timeout_s
    warm_up(steps, 1, seed=seed, stopwatch=stopwatch, deadline=deadline)
    return time_rounds(
        steps,
        1,
        arms=range(len(steps)),
        pairs=[Pair(0, column) for column in range(1, len(steps))],
        protocol=PROTOCOL,
        seed=seed,
        stopwatch=stopwatch,
        deadline=deadline,
    )


def speed() -> None:
    print(f"{'':<42} ms for a token; dynamic over static and over virtual [interval]")
    for case in CASES:
        torch.set_num_threads(case.threads)
        lm = load_language(Condition(model=case.model))
        for what, make in (("decode", decoding), ("update", updating)):
            samples = compared([make(kind, lm, case) for kind in KINDS], f"{case}{what}")
            ratios = [speedup(samples, 0, other) for other in range(1, len(KINDS))]
            text = "   ".join(
                f"{ratio.value:7.3f} [{ratio.low:.3f}, {ratio.high:.3f}]" for ratio in ratios
            )
            label = f"{case.model} {case.batch} x {case.context}, {case.threads} threads: {what}"
            print(f"{label:<42} {median(column(samples, 0)) * 1e3:>8.3f}   {text}", flush=True)


def fresh(*arguments: str) -> list[dict[str, Any]]:
    """The lines of JSON that a process of its own prints."""
    done = subprocess.run(
        [sys.executable, "-m", *arguments], capture_output=True, text=True, check=True
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def memory() -> None:
    print(
        f"{'cache':<8} {'tokens':>6} {'needed':>10} {'resident':>10} {'reserved':>10}"
        f" {'process':>10}  KiB"
    )
    for row in fresh("tests.workers.cache_growth", ",".join(KINDS), *map(str, LENGTHS)):
        sizes = " ".join(
            f"{row[name] // 1024:>10}" for name in ("needed", "resident", "virtual", "process")
        )
        print(f"{row['kind']:<8} {row['tokens']:>6} {sizes}")


def sequences(kind: KvCache, tokens: int, longest: int) -> int:
    """Sequences of `tokens` tokens, each with a cache of its own that must be able to hold
    `longest`, under the cap.
    """
    lm = tiny_llm("llama", **GEOMETRY)
    before, caches = private_bytes(), []
    while private_bytes() - before <= CAP:
        caches.append(filled(kind, lm, 1, tokens, longest))
    return len(caches) - 1


def context(kind: KvCache, piece: int = 256) -> int:
    """Tokens of one sequence under the cap, while it grows piece by piece. The peak counts: a copy
    needs room for old and new.

    A static cache holds its maximum from the first token on: its longest context is the largest
    maximum that fits.
    """
    lm = tiny_llm("llama", **GEOMETRY)
    states = torch.randn(1, lm.network.kv_heads, piece, lm.network.head_dim)
    cache, tokens, start = make_cache(kind, lm, 1, piece), 0, None
    while True:
        if kind == "static" and tokens:
            del cache
            cache = make_cache(kind, lm, 1, tokens + piece)
        with peak_memory("cpu") as peak:
            for layer in range(lm.network.layers):
                cache.update(states, states, layer)
        values = {metric.name: metric.value for metric in peak}
        start = values["rss_before"] if start is None else start
        if values["peak_rss"] - start > CAP / MIB:
            return tokens
        tokens += piece


def cap() -> None:
    longest, lengths = 4096, (100, 500, 2000)
    print(f"under {CAP // MIB} MiB of resident keys and values, 32 KiB for a token")
    print(
        f"{'cache':<8} {'longest context':>15}   sequences of {lengths} tokens that may each reach"
        f" {longest}"
    )
    for kind in KINDS:
        tokens = fresh("tests.benchmarks.caches", "context", kind)[0]["tokens"]
        counts = [
            fresh("tests.benchmarks.caches", "sequences", kind, str(length), str(longest))[0][
                "count"
            ]
            for length in lengths
        ]
        print(f"{kind:<8} {tokens:>15}   {counts}", flush=True)


def main(arguments: list[str]) -> None:
    with torch.inference_mode():
        if arguments[:1] == ["sequences"]:
            print(
                json.dumps({"count": sequences(arguments[1], int(arguments[2]), int(arguments[3]))})
            )
        elif arguments[:1] == ["context"]:
            print(json.dumps({"tokens": context(arguments[1])}))
        else:
            tables: dict[str, Callable[[], None]] = {"speed": speed, "memory": memory, "cap": cap}
            print(f"load average {os.getloadavg()[0]:.2f} on {os.cpu_count()} cores")
            for name in arguments or tables:
                tables[name]()
            print(f"load average {os.getloadavg()[0]:.2f}")


if __name__ == "__main__":
    main(sys.argv[1:])
