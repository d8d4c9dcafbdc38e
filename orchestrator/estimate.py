"""Estimate: how long measuring the jobs of a plan takes at most, from their protocols and the sizes of their models."""

import math
from collections.abc import Iterable, Mapping

from sweeps.catalogue import networks
from sweeps.folder import geometry, is_folder
from sweeps.job import PASS_SECONDS, Device, Dtype, Job
from sweeps.language import LanguageNetwork, languages

WARM_UP_SECONDS = 2.0
"""What building, checking and warming up the arms of one small job takes."""
WARM_UP_RUNS = 6
"""Runs of a generation job's workload before its first pair, for each arm: the warm-up, and the passes after timing."""
TRAINING_SECONDS: Mapping[str, float] = {"tiny_lm": 480.0}
"""What training a model on demand may take; counted once for each model, since nobody looks here whether it is there already."""
OTHER_TRAINING_SECONDS = 150.0
COMPILE_SECONDS = 60.0
"""What compiling one arm may take: eager code and a cold cache on two CPU cores."""
GMACS_PER_SECOND: Mapping[Device, float] = {"cpu": 20.0, "cuda": 1000.0}
"""How fast a job is taken to multiply at least: two CPU cores, or a small GPU, on the work of the unmodified model."""
GIGABYTES_PER_SECOND: Mapping[Device, float] = {"cpu": 10.0, "cuda": 200.0}
"""How fast the same read weights, which is what decoding one token at a time waits for."""
BYTES: Mapping[Dtype, int] = {"float32": 4, "bfloat16": 2, "float16": 2, "autocast-float16": 4}
IMAGE_SECONDS = 0.02
"""Reading and preparing one image."""
DIGITS_IMAGES = 360
"""Held-out images of the digits; how many a folder has is not known here: the time-out is then the estimate."""
CHARACTERS_PER_TOKEN = 2.0
"""At least so many, in English prose, even with a small vocabulary."""


def at_most(jobs: Iterable[Job]) -> float:
    """Upper estimate in seconds, one job after the other."""
    asked = list(jobs)
    trained = {job.condition.model for job in asked if job.condition.weights == "trained"}
    training = math.fsum(TRAINING_SECONDS.get(model, OTHER_TRAINING_SECONDS) for model in trained)
    return math.fsum(map(seconds, asked)) + training


def seconds(job: Job) -> float:
    """Upper estimate for one job, its time-out at most."""
    measuring = {"latency": _latency, "accuracy": _accuracy, "generation": _generation, "quality": _quality}[job.kind](job)
    compiling = len(job.compiled) * min(COMPILE_SECONDS, job.protocol.compile_timeout_s)
    return min(measuring, job.protocol.timeout_s) + compiling


def _latency(job: Job) -> float:
    """The whole budget, and a pass for each arm."""
    return WARM_UP_SECONDS + job.protocol.budget_s + len(job.arms) * PASS_SECONDS


def _accuracy(job: Job) -> float:
    """Each arm like the unmodified model on all images."""
    condition, images = job.condition, job.protocol.images or math.inf
    if condition.data == "digits":
        images = min(images, DIGITS_IMAGES)
    network = networks().get(condition.model)
    if network is None or images == math.inf:
        return math.inf
    gmacs = network.macs(condition.pixels, network.dense_tokens(condition.pixels)) / 1e9
    return WARM_UP_SECONDS * len(job.arms) + images * (IMAGE_SECONDS + len(job.arms) * gmacs / GMACS_PER_SECOND[condition.device])


def _generation(job: Job) -> float:
    """The budget or the fewest pairs, whichever takes longer, each arm like the unmodified model."""
    condition, network = job.condition, _language(job.condition.model)
    if network is None:
        return math.inf
    prompt, new = condition.prompt_tokens or 0, condition.new_tokens or 0
    prefill = condition.batch_size * network.macs(prompt, 0) / 1e9 / GMACS_PER_SECOND[condition.device]
    step = (network.layers * network.layer_macs + network.head_macs) * BYTES[condition.dtype] / 1e9
    run = prefill + new * step / GIGABYTES_PER_SECOND[condition.device]
    pairs = max(job.protocol.budget_s, job.protocol.pairs_min * len(job.arms) * run)
    return len(job.arms) * (WARM_UP_SECONDS + WARM_UP_RUNS * run) + pairs


def _quality(job: Job) -> float:
    """Each arm like the unmodified model on all characters; how long tasks are is not known here."""
    condition, network = job.condition, _language(job.condition.model)
    if network is None or job.protocol.characters is None or job.protocol.tasks:
        return math.inf
    tokens = job.protocol.characters / CHARACTERS_PER_TOKEN
    gmacs = tokens * (network.layers * network.layer_macs + network.head_macs) / 1e9
    return len(job.arms) * (WARM_UP_SECONDS + gmacs / GMACS_PER_SECOND[condition.device])


def _language(model: str) -> LanguageNetwork | None:
    """The geometry of a model, where it is known without a network."""
    if not is_folder(model):
        return languages().get(model)
    try:
        return geometry(model)
    except ValueError:  # gone since the sweep was read; the worker says so
        return None
