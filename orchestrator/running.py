"""Running: the commands that read a sweep file: plan it, run it, or take in what was measured of it elsewhere."""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Literal

from pydantic import ValidationError
from rich.console import Console

from orchestrator import planning
from orchestrator.report import read, render
from store import queue
from store.connection import Engine, StoreError, connect, connect_readonly, location, sqlite_path
from store.recording import record
from sweeps.job import Device
from sweeps.outcome import Environment, Outcome
from workers.measure.environment import devices, fingerprint

ANSWERED, UNANSWERED, INTERRUPTED = 0, 1, 130
"""Exit codes."""


def run(file: Path, *, db: str | None, ray_address: str | None, device: Device | None) -> int:
    """Measure what is left of the sweep and print its report. Returns the exit code."""
    console = _console()
    if ray_address is None:
        expansion = planning.read(file, auto=device or planning.preferred(devices()))
        engine = connect(db)
        plan = planning.plan(expansion, engine, here())
        if not plan.jobs:
            return _conclude(console, engine, _submit(engine, plan), plan, unanswered=0)
    return _measure(console, file, db=db, ray_address=ray_address, device=device)


def _measure(console: Console, file: Path, *, db: str | None, ray_address: str | None, device: Device | None) -> int:
    from orchestrator.cluster import Cluster
    from orchestrator.dispatching import dispatch
    from orchestrator.progress import Display

    console.print("starting Ray …" if ray_address is None else f"connecting to Ray at {ray_address} …", style="dim")
    with Cluster.start(ray_address) as cluster:
        environments = _offered(cluster.nodes())
        expansion = planning.read(file, auto=device or planning.preferred(environments))
        cluster.require({job.condition.device for job in expansion.jobs})
        engine = connect(db)
        plan = planning.plan(expansion, engine, environments)
        _say_plan(console, plan)
        sweep = _submit(engine, plan)
        with Display(console, sum(len(job.pairs) for job in plan.jobs)) as display:
            summary = dispatch(engine, sweep, cluster, retry=expansion.sweep.retry, observer=display)
    if summary.interrupted:
        console.print(f"stopped; {queue.progress(engine, sweep).unfinished} jobs left. Run the same command again to go on.")
        return INTERRUPTED
    return _conclude(console, engine, sweep, plan, unanswered=summary.unanswered)


def here() -> dict[Device, list[Environment]]:
    """The environments of this machine, by device class."""
    return {device: [fingerprint(device)] for device in devices()}
