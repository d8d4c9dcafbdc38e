"""Latency jobs on the smallest input of the smallest model of timm."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from sweeps.model.condition import Condition
from sweeps.model.job import Arm, Job, Pair, Protocol, Step
from sweeps.model.outcome import ArmOutcome, Outcome
from workers.methods import all_methods

MODEL = "test_vit"
SIZE = 32
QUICK = Protocol(pairs_min=6, pairs_max=6)
PASS_S = 0.05
DENSE = Arm()
TOPK = Arm(stack=(Step(method="topk", params={"keep_rate": 0.5, "layers": [1, 2, 3]}),))


def job(
    arms: Iterable[Arm],
    protocol: Protocol = QUICK,
    pairs: Iterable[Pair] | None = None,
    **condition: Any,
) -> Job:
    """A job on the smallest input and one thread, each arm compared with the first unless `pairs`
    are given.
    """
    point = Condition(**({"model": MODEL, "image_size": SIZE, "threads": 1} | condition))
    found = compared("latency", point, *arms, protocol=protocol)
    return found if pairs is None else found.model_copy(update={"pairs": tuple(pairs)})


def compared(kind: Any, condition: Condition, *arms: Arm, **fields: Any) -> Job:
    """A job that compares each arm with the first."""
    pairs = tuple(Pair(0, index) for index in range(1, len(arms)))
    return Job(**{"kind": kind, "condition": condition, "arms": arms, "pairs": pairs, **fields})


def planned(method: str, **params: Any) -> Arm:
    """An arm of one step, its parameters spelled out as planning does."""
    known = all_methods()[method]
    spelled = known.Params(**params).model_dump(mode="json")
    return Arm(stack=(Step(method=method, params=spelled, version=known.VERSION),))


def image_folder(root: Path, images: int = 12) -> str:
    """Data of random images in three classes, whose outputs are 7, 2 and 5; written to `root`."""
    random = np.random.default_rng(0)
    for index in range(images):
        folder = root / "abc"[index % 3]
        folder.mkdir(parents=True, exist_ok=True)
        pixels = random.integers(0, 256, (40, 50, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{index}.png")
    (root / "class_map.txt").write_text("a 7\nb 2\nc 5\n")
    return f"imagefolder:{root}"


def metrics(arm: ArmOutcome) -> dict[str, float]:
    """The arm's metrics by name."""
    return {metric.name: metric.value for metric in arm.metrics}


def reasons(outcome: Outcome) -> dict[int | None, str]:
    """Why which arm failed."""
    return {failure.arm: failure.reason for failure in outcome.failures}
