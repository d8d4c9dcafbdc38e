"""Stores with quality beside speed: a vision sweep with corrupted images, and a language sweep over
lengths with a stack.
"""

from pathlib import Path

from sweeps.model.job import Job
from sweeps.model.outcome import Failure
from tests.orchestrator.vision_fixtures import RATES, topk
from tests.orchestrator.vision_fixtures import job as vision_job
from tests.orchestrator.vision_fixtures import outcome as vision_outcome
from tests.store.language_fixtures import (
    a_generation,
    a_generation_job,
    a_quality_job,
    a_reading,
    larosa,
    stacked,
)
from tests.webapp.simulated import store_outcomes

ARMS = tuple(map(topk, RATES))
LANGUAGE_ARMS = (larosa(0.5), stacked(0.5), larosa(0.3))
LENGTHS = (64, 128, 512)
CORRUPTIONS = (("fog", 1), ("fog", 3), ("gaussian_noise", 3))


def corrupted(requested: Job, corruption: str, severity: int) -> Job:
    condition = requested.condition.model_copy(
        update={"corruption": corruption, "severity": severity}
    )
    return Job(kind="accuracy", condition=condition, arms=requested.arms, pairs=requested.pairs)


def accuracy_store(path: Path, *, failing: bool = False) -> str:
    """Sweep `accurate`: four arms timed and evaluated on clean and on corrupted images; `failing`:
    one arm has no accuracy.
    """
    clean = vision_job("accuracy", ARMS)
    failures = (Failure(arm=4, reason="out_of_memory", message="out of memory"),) if failing else ()
    evaluated = [vision_outcome(clean, failures=failures)]
    evaluated += [
        vision_outcome(corrupted(clean, name, severity)) for name, severity in CORRUPTIONS
    ]
    return store_outcomes(path, "accurate", vision_outcome(vision_job("latency", ARMS)), *evaluated)


def language_store(path: Path) -> str:
    """Sweep `lengths`: sparse arms and a stack at three lengths of the prompt, and what they cost
    in bits per byte.
    """
    timed = [
        a_generation(a_generation_job(length, LANGUAGE_ARMS), (1.0, 1.4, 1.7, 1.2))
        for length in LENGTHS
    ]
    read = a_reading(
        a_quality_job(LANGUAGE_ARMS), (0.0, 0.01, 0.05, 0.004), tokens=(100, 100, 80, 100)
    )
    return store_outcomes(path, "lengths", *timed, read)
