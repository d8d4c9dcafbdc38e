"""Vision jobs and their outcomes with known speed-ups and losses, and reports as text."""

import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rich.console import Console

from orchestrator.report.data import Report, load_report
from orchestrator.report.render import ReportFormat, write_report
from store.open.engine import connect
from store.write.record import record
from store.write.submission import NewSweep, submit_sweep
from sweeps.model.condition import Condition, Kind, Overrides
from sweeps.model.job import DENSE, Arm, Job, Pair, Step
from sweeps.model.outcome import (
    ArmImages,
    ArmOutcome,
    Environment,
    Failure,
    Outcome,
    PairImages,
    Predictions,
    Samples,
    pack,
)

CPU = Environment(device="cpu", device_name="Imaginary CPU")
IMAGES = 4000
RATES = (0.2, 0.4, 0.6, 0.8)
LOSSES = (0.3, 0.1, 0.0005, 0.0)
SPEEDUPS = (2.0, 1.5, 1.2, 0.9)


def topk(rate: float, **overrides: str) -> Arm:
    return Arm(
        stack=(Step(method="topk", params={"keep_rate": rate}),), overrides=Overrides(**overrides)
    )


def job(kind: Kind, arms: Sequence[Arm], batch_size: int = 1) -> Job:
    data = {"data": "digits"} if kind == "accuracy" else {}
    condition = Condition(
        model="digits_vit_64", weights="trained", image_size=32, batch_size=batch_size, **data
    )
    pairs = tuple(Pair(0, index) for index in range(1, len(arms) + 1))
    return Job(kind=kind, condition=condition, arms=(DENSE, *arms), pairs=pairs)


def outcome(requested: Job, *, failures: Sequence[Failure] = ()) -> Outcome:
    """What a worker returns; the MACs of an arm are those of the baseline times its keep rate."""
    known = {
        "gmacs_overhead": 0.0,
        "parameters": 1,
        "trainable_parameters": 1,
        "batch": 1,
        "tokens": 64,
        "tokens_final": 9,
    }
    failed = {failure.arm for failure in failures}
    ran = [index for index in range(len(requested.arms)) if index not in failed]
    gmacs = [
        0.02 * (arm.stack[0].params["keep_rate"] if arm.stack else 1) for arm in requested.arms
    ]
    arms = tuple(
        ArmOutcome(arm=index, gmacs=gmacs[index], trace=(), threads=2, **known) for index in ran
    )
    plain = {
        "job": requested,
        "environment": CPU,
        "host": "here",
        "started_at": 1.0,
        "ended_at": 2.0,
        "arms": arms,
    }
    if requested.kind == "accuracy":
        return Outcome(**plain, failures=tuple(failures), predictions=evaluation(requested, ran))
    times = tuple(
        (0.01, *(0.01 / speedup for speedup in SPEEDUPS[: len(requested.arms) - 1]))
        for _ in range(40)
    )
    columns = tuple(range(len(requested.arms)))
    timed = Samples(
        arms=columns,
        seconds=times,
        order=(columns,) * 40,
        inner=(1,) * len(columns),
        stopped="half_width",
    )
    return Outcome(**plain, samples=timed)


def evaluation(requested: Job, ran: Sequence[int]) -> Predictions:
    random = np.random.default_rng(0)
    right = 0.95 - 0.05 * (requested.condition.severity or 0)
    dense = np.where(random.random(IMAGES) < right, 0, 2)
    ranks = [dense, *(np.where(random.random(IMAGES) < loss, 7, dense) for loss in LOSSES)]
    images = [
        ArmImages(
            arm=arm,
            predicted=pack(ranks[arm], "i2"),
            rank=pack(ranks[arm], "i2"),
            margin=pack(5.0 - ranks[arm], "f4"),
        )
        for arm in ran
    ]
    apart = [
        PairImages(baseline=0, arm=arm, kl=pack(random.lognormal(-3, 0.5, IMAGES), "f4"))
        for arm in ran
        if arm
    ]
    labels = pack(np.zeros(IMAGES), "i2")
    return Predictions(
        images=IMAGES,
        classes=10,
        labels=labels,
        listing="ab",
        arms=tuple(images),
        pairs=tuple(apart),
    )


def report_of(path: Path, *outcomes: Outcome) -> Report:
    """The report of a sweep that requested what the outcomes answer."""
    engine = connect(str(path))
    requested = [
        (found.job.comparison(pair), found.job.content_hashes)
        for found in outcomes
        for pair in found.job.pairs
    ]
    submit_sweep(engine, NewSweep("trial", "text", "What pays?"), requested, [])
    for found in outcomes:
        record(engine, None, None, found)
    engine.dispose()
    return load_report(str(path), "trial")


def printed(report: Report, form: ReportFormat = "table") -> str:
    """A report as the command line prints it."""
    console = Console(file=io.StringIO(), width=1000)
    write_report(report, form, console, detail=True)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()
