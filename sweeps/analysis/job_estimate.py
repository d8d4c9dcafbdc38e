"""Estimate of one job: how long it takes at most, on two idle cores and without failures, from its
protocol and model; and how long the rest of a sweep takes.
"""

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import NamedTuple

from sweeps.geometry.llm_geometry import geometry, is_folder, languages
from sweeps.geometry.vit_catalogue import networks
from sweeps.model.condition import Device, Dtype
from sweeps.model.job import PASS_SECONDS, Job
from sweeps.model.kinds import KINDS, Payload
from sweeps.model.method import LanguageNetwork
from sweeps.model.outcome import CONTEXT, SCORED

START_SECONDS = 20.0
"""Until Ray and a worker have started, with all that it imports; again for each of several rounds,
which get a new worker."""
WARM_UP_SECONDS = 2.0
"""What building, checking and warming up the arms of one small job takes."""
VISIT_SECONDS = 0.2
"""What copying, checking and warming up an arm takes in a further visit to a job."""
WARM_UP_RUNS = 28
"""Runs of a generation job's workload beside the pairs, for each arm: the warm-up, the pass after
timing, the fresh process."""
FRESH_SECONDS = 20.0
"""Until an arm of a generation job runs in a process of its own, which imports and loads everything
again."""
TEXT_SECONDS = 20.0
"""Reading a text from this machine's packages, a tokenizer of it included, and loading a model."""
FORWARDS = 10
"""Of an arm of a timed job beside the rounds: the checks, the warm-up, the peak of memory; and the
last round, which begins within the budget."""
VISIT_FORWARDS = 3
"""The same in a further visit to the job."""
PROFILING_SECONDS = 6.0
"""The forwards of one arm under a profiler, and reading what it recorded."""
ALONE_SECONDS = 0.5
"""An arm's forwards alone, for its peak of memory."""
COMPILE_SECONDS = 60.0
"""What compiling one arm may take: eager code and a cold cache on two CPU cores."""
GMACS_PER_SECOND: Mapping[Device, float] = {"cpu": 20.0, "cuda": 1000.0}
"""How fast a job is taken to multiply at least: two CPU cores, or a small GPU, on the work of the
unmodified model."""
GIGABYTES_PER_SECOND: Mapping[Device, float] = {"cpu": 10.0, "cuda": 200.0}
"""How fast the same read weights, which is what decoding one token at a time waits for."""
LAYER_SECONDS = 0.001
"""What a layer takes for one token however small it is: Python and the start of its kernels."""
_BYTES: Mapping[Dtype, float] = {
    "float32": 4,
    "bfloat16": 2,
    "float16": 2,
    "autocast-float16": 4,
    "int8": 1,
    "int4": 0.625,
}
IMAGE_SECONDS = 0.02
"""Reading and preparing one image."""
DIGITS_IMAGES = 360
"""Held-out images of the digits; how many a folder has is not known here: the time-out is then the
estimate."""
CHARACTERS_PER_TOKEN = 2.0
"""At least so many, in English prose, even with a small vocabulary."""


def estimated_seconds(
    job: Job, *, energy: bool = False, gmacs_per_second: float | None = None
) -> float:
    """Upper estimate for one job, its time-out at most; `energy`: its node reads the energy of its
    CPU; `gmacs_per_second`: what the unmodified model reaches there, where it was measured.
    """
    forward_s = _forward_seconds(job, gmacs_per_second)
    measuring = SECONDS[KINDS[job.kind].payload](job, energy)
    measuring += len(job.arms) * FORWARDS * forward_s
    starting = START_SECONDS if job.protocol.rounds > 1 else 0.0
    if job.protocol.passes > 1 and job.round:
        each = VISIT_SECONDS if job.condition.prompt_tokens is None else WARM_UP_SECONDS
        each += VISIT_FORWARDS * forward_s
        return min(job.protocol.budget_s + len(job.arms) * each, job.protocol.timeout_s)
    return starting + min(measuring, job.protocol.timeout_s) + compiling_seconds(job)


def compiling_seconds(job: Job) -> float:
    """The part of the estimate that compiling takes."""
    return len(job.compiled) * min(COMPILE_SECONDS, job.protocol.compile_timeout_s)


def _timing(job: Job, energy: bool) -> float:
    """The whole budget, and a pass for the energy of each arm where it can be read; with a prompt
    also runs of a language model.
    """
    if job.condition.prompt_tokens is not None:
        return _generation(job, energy)
    alone = PASS_SECONDS if job.condition.device == "cuda" or energy else ALONE_SECONDS
    return WARM_UP_SECONDS + job.protocol.budget_s + len(job.arms) * alone


def _forward_seconds(job: Job, gmacs_per_second: float | None) -> float:
    """A timed forward of the unmodified model on its batch; 0 where its MACs are not known, or
    nothing is timed.
    """
    condition = job.condition
    network = networks().get(condition.model) if KINDS[job.kind].timed else None
    if network is None or condition.image_size is None:
        return 0.0
    gmacs = network.macs(condition.pixels, network.dense_tokens(condition.pixels)) / 1e9
    rate = gmacs_per_second or GMACS_PER_SECOND[condition.device]
    return condition.batch_size * gmacs / rate


def known_images(job: Job) -> float:
    """Images that an accuracy job reads at most; infinite where only its data know."""
    images = job.protocol.images or math.inf
    return min(images, DIGITS_IMAGES) if job.condition.data == "digits" else images


def _image_reading(job: Job, _energy: bool) -> float:
    """Each arm like the unmodified model on all images."""
    condition, images = job.condition, known_images(job)
    network = networks().get(condition.model)
    if network is None or images == math.inf:
        return math.inf
    gmacs = network.macs(condition.pixels, network.dense_tokens(condition.pixels)) / 1e9
    return WARM_UP_SECONDS * len(job.arms) + images * (
        IMAGE_SECONDS + len(job.arms) * gmacs / GMACS_PER_SECOND[condition.device]
    )


def _generation(job: Job, _energy: bool) -> float:
    """The budget, and each arm like the unmodified model."""
    condition, network = job.condition, llm_geometry(job.condition.model)
    if network is None:
        return math.inf
    prompt, new = condition.prompt_tokens or 0, condition.new_tokens or 0
    prefill = (
        condition.batch_size * network.macs(prompt, 0) / 1e9 / GMACS_PER_SECOND[condition.device]
    )
    step = network.token_macs * _BYTES[condition.dtype] / 1e9
    run = prefill + new * (
        step / GIGABYTES_PER_SECOND[condition.device] + network.layers * LAYER_SECONDS
    )
    each = WARM_UP_SECONDS + WARM_UP_RUNS * run + PASS_SECONDS + FRESH_SECONDS
    return TEXT_SECONDS + len(job.arms) * each + job.protocol.budget_s


def _text_reading(job: Job, _energy: bool) -> float:
    """Each arm like the unmodified model on all characters; how long tasks are is not known
    here.
    """
    condition, network = job.condition, llm_geometry(job.condition.model)
    if network is None or job.protocol.characters is None or job.protocol.tasks:
        return math.inf
    tokens = job.protocol.characters / CHARACTERS_PER_TOKEN * (SCORED + CONTEXT) / SCORED
    gmacs = tokens * network.token_macs / 1e9
    return TEXT_SECONDS + len(job.arms) * (
        WARM_UP_SECONDS + gmacs / GMACS_PER_SECOND[condition.device]
    )


def _profiling(job: Job, energy: bool) -> float:
    """The timing before it, and the passes of each arm under the profiler."""
    return _timing(job, energy) + len(job.arms) * PROFILING_SECONDS


SECONDS: Mapping[Payload, Callable[[Job, bool], float]] = {
    "samples": _timing,
    "predictions": _image_reading,
    "text_scores": _text_reading,
    "profiles": _profiling,
}
"""Estimates by what a kind of job collects."""


def llm_geometry(model: str) -> LanguageNetwork | None:
    """The geometry of a language model, where it is known without a connection to the internet."""
    if not is_folder(model):
        return languages().get(model)
    try:
        return geometry(model)
    except ValueError:  # removed since the sweep was read; the worker reports it
        return None


class EndedJob(NamedTuple):
    """A job that was answered: its kind, its estimate (`sweeps.analysis.job_estimate`), and what it
    took, in seconds.
    """

    kind: str
    estimated_s: float
    took_s: float


class OpenJob(NamedTuple):
    """A job without an answer: its kind, its estimate in seconds, and whether it runs."""

    kind: str
    estimated_s: float
    runs: bool


def time_left(
    ended: Iterable[EndedJob], rest: Collection[OpenJob], *, since_s: float, starting: int = 0
) -> float | None:
    """Seconds until `rest` is measured, if its jobs take the same share of their estimates as those
    of their kind that ended.

    As many are taken to run side by side as run now, and `starting` more, which begin at once. What
    has run is taken off: at most `since_s`, the seconds since a job last ended. `None` before the
    first has ended, and where nothing is left.
    """
    took: dict[str, float] = {}
    estimated: dict[str, float] = {}
    for job in ended:
        took[job.kind] = took.get(job.kind, 0.0) + job.took_s
        estimated[job.kind] = estimated.get(job.kind, 0.0) + job.estimated_s
    if not (known := math.fsum(estimated.values())) or not rest:
        return None
    overall = math.fsum(took.values()) / known
    share = {kind: took[kind] / seconds for kind, seconds in estimated.items() if seconds}
    expected = [job.estimated_s * share.get(job.kind, overall) for job in rest]
    gone = [min(since_s, seconds) for job, seconds in zip(rest, expected, strict=True) if job.runs]
    beside = min(len(rest), max(1, len(gone) + starting))
    return (math.fsum(expected) - math.fsum(gone)) / beside
