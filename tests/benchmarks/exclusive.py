"""Whether timing on one GPU of several (`exclusive: device`) finds what timing alone on the node
(`exclusive: node`) finds.

On a quiet machine with two GPUs or more: uv run python -m tests.benchmarks.exclusive It measures a
sweep of launch-bound and of large forwards both ways and prints their contrasts; takes about ten
minutes. With `--db URL` it measures nothing and prints those of a store whose sweeps requested
`exclusive: [node, device]`.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pynvml

from store.read.user_sql import run_query
from sweeps.model.identity import canonical
from workers.measure.environment import gpu

SWEEP = """\
schema: 1
name: exclusive
question: Does a speed-up depend on what runs on the node's other GPUs?
defaults: {device: cuda, dtype: float16}
axes:
  model: [deit_tiny_patch16_224]
  image_size: [64, 128, 224]
  batch_size: [1, 64]
  exclusive: [node, device]
methods:
  - {method: dense, replicate: 1}
  - {method: dense, runtime: cudagraph}
  - {method: topk, keep_rate: 0.5}
  - {method: tome, r_ratio: 0.06}
"""
EFFECTS = """
SELECT c.payload, r.exclusive, r.environment, r.host, r.metric, r.method, r.params, r.image_size, r.prompt_tokens, r.batch_size,
  r.threads, r.baseline_ms, r.speedup, r.speedup_low, r.speedup_high
FROM speedup AS r JOIN comparison AS c ON c.comparison_id = r.comparison_id
WHERE r.speedup_low IS NOT NULL AND r.speedup_high IS NOT NULL ORDER BY r.image_size, r.batch_size, r.method, r.params"""
SPANS = """
SELECT t.host, t.started_at, t.ended_at FROM attempt AS t JOIN job AS j ON j.id = t.job WHERE j.exclusive = 'device'"""


class Interval(NamedTuple):
    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


class Contrast(NamedTuple):
    """One comparison, measured beside jobs on other GPUs and alone."""

    node: dict[str, Any]
    """Row of `EFFECTS`."""
    device: dict[str, Any]
    ratio: Interval
    """Speed-up beside others over speed-up alone."""

    @property
    def slower(self) -> float:
        """Time of the baseline beside others over its time alone."""
        return float(self.device["baseline_ms"] / self.node["baseline_ms"])


def ratio(over: Interval, under: Interval) -> Interval:
    """The ratio of two independent positive estimates, its interval recovered from theirs on the
    log scale.

    Source: Zou and Donner, "Construction of confidence limits about effect measures: a general
    approach" (2008).
    """
    a, b = (Interval(*map(math.log, each)) for each in (over, under))
    middle = a.value - b.value
    low = middle - math.hypot(a.value - a.low, b.high - b.value)
    high = middle + math.hypot(a.high - a.value, b.value - b.low)
    return Interval(math.exp(middle), math.exp(low), math.exp(high))


def contrasts(db: str) -> Iterator[Contrast]:
    """Every comparison that the store has both ways on one host in one environment."""
    found = run_query(db, EFFECTS)
    alone: dict[tuple[Any, ...], dict[str, Any]] = {}
    beside: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in (dict(zip(found.columns, values, strict=True)) for values in found.rows):
        document = json.loads(row["payload"])
        document["condition"].pop("exclusive", None)
        key = (canonical(document), row["environment"], row["host"], row["metric"])
        (beside if row["exclusive"] == "device" else alone)[key] = row
    for key, device in beside.items():
        if key in alone:
            yield Contrast(alone[key], device, ratio(_effect(device), _effect(alone[key])))


def shared_time(spans: Collection[tuple[str, float, float]]) -> float:
    """Share of the time in which jobs ran (host, begin, end) during which another ran on the same
    host.
    """
    shared = total = 0.0
    for host in {host for host, *_ in spans}:
        own = [(began, ended) for each, began, ended in spans if each == host]
        changes = sorted([(began, 1) for began, _ in own] + [(ended, -1) for _, ended in own])
        running = 0
        for (moment, change), (following, _) in zip(
            changes, [*changes[1:], changes[-1]], strict=True
        ):
            running += change
            total += running * (following - moment)
            shared += running * (following - moment) * (running > 1)
    return shared / total if total else 0.0


def show(db: str) -> int:
    """Print the contrasts of a store; the exit code is 1 when it has none."""
    rows = list(contrasts(db))
    if not rows:
        print(
            "no comparison of this store was measured with exclusive: node and with exclusive:"
            " device on one host"
        )
        return 1
    print(
        f"{'size':>5} {'batch':>5} {'arm':<44} {'alone':>22} {'device':>22} {'device / alone':>22}"
        f" {'baseline':>8} threads"
    )
    for each in rows:
        node, device = each.node, each.device
        size, arm = (
            node["image_size"] or node["prompt_tokens"],
            f"{node['method']} {node['params']}",
        )
        times = f"{each.ratio!s:>22} {each.slower:>8.3f} {node['threads']} and {device['threads']}"
        print(
            f"{size:>5} {node['batch_size']:>5} {arm:<44} {_effect(node)!s:>22}"
            f" {_effect(device)!s:>22} {each.ratio!s:>22} {times}"
        )
    outside = sum(not each.ratio.low <= 1 <= each.ratio.high for each in rows)
    print(
        f"{outside} of {len(rows)} intervals of device / alone leave out 1; about"
        f" {0.05 * len(rows):.1f} would by chance"
    )
    beside = shared_time([(host, began, ended) for host, began, ended in run_query(db, SPANS).rows])
    print(f"{100 * beside:.0f} % of the time of jobs on single GPUs lay beside others")
    return 0


def gpus() -> int:
    """GPUs of this machine that torch can use."""
    with gpu() as handle:
        return 0 if handle is None else int(pynvml.nvmlDeviceGetCount())


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--db", help="print the contrasts of this store instead of measuring")
    requested = parser.parse_args(arguments)
    if requested.db:
        return show(requested.db)
    if (count := gpus()) < 2:
        print(f"needs two GPUs or more, and here is {count}; nothing was measured")
        return 2
    with tempfile.TemporaryDirectory() as folder:
        sweep, db = Path(folder) / "exclusive.yaml", str(Path(folder) / "store.db")
        sweep.write_text(SWEEP, encoding="utf-8")
        environment = {**os.environ, "BREAKEVEN_DB": db}
        subprocess.run(
            [Path(sys.executable).with_name("breakeven"), "run", str(sweep)],
            env=environment,
            check=True,
        )
        return show(db)


def _effect(row: dict[str, Any]) -> Interval:
    return Interval(row["speedup"], row["speedup_low"], row["speedup_high"])


if __name__ == "__main__":
    sys.exit(main())
