"""Outcomes from files of anyone: read without guessing, and refused in one line where no
measurement gives a number or a name.
"""

import json
import math
import operator
import re
import time
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Any, get_args

from pydantic import ValidationError

from sweeps.errors import UserError
from sweeps.model.flags import FLAGS
from sweeps.model.job import Pair
from sweeps.model.kinds import KINDS, Payload
from sweeps.model.metrics import find_metric
from sweeps.model.outcome import SAME_COUNTS, YEAR_3000, ArmOutcome, Outcome
from sweeps.model.profile import ArmProfile
from sweeps.stats.quality import predictions_problem, scores_problem

YEAR_S = 31_557_600.0
"""Nothing that is measured takes longer."""
FIRST_S = 1_735_689_600.0
"""The beginning of 2025, before which nothing was measured by this project."""
LARGEST_FIGURE = 1e15
"""No figure is further from zero, in its own unit."""
MAX_THREADS = 8192
"""As many cores as Linux can run on."""
ALLOWED, SLACK_S = 2, 60.0
"""The times of a job add up to this many times its own at most, and so many seconds."""
RANGES_OF_VALUES: tuple[tuple[str, float, float], ...] = (
    ("samples.seconds", 1e-12, YEAR_S),
    ("samples.event_seconds", 1e-12, YEAR_S),
    ("samples.series.*", 1e-12, YEAR_S),
    ("samples.bursts", 1e-12, YEAR_S),
    ("job.protocol.*_s", 0, YEAR_S),
    ("arms.*_s", 0, YEAR_S),
    ("profiles.*_s", 0, YEAR_S),
    ("profiles.times.*", 0, YEAR_S),
    ("profiles.activities.seconds", 0, YEAR_S),
    ("profiles.*speedup.*", 1e-12, LARGEST_FIGURE),
    ("*threads", 1, MAX_THREADS),
    ("*spare_cores", 1, MAX_THREADS),
    ("cores", 0, MAX_THREADS - 1),
    ("*.seed", -(2**63), 2**63),
    ("job.arms.stack.version", 1, 2**31 - 1),
    ("job.arms.stack.params*", -LARGEST_FIGURE, LARGEST_FIGURE),
    ("arms.solved.*", -LARGEST_FIGURE, LARGEST_FIGURE),
    ("arms.metrics.n", 0, 2**31 - 1),
    ("arms.metrics.*", -LARGEST_FIGURE, LARGEST_FIGURE),
    ("system_*temperature*", -273, 1e3),
    ("system_*cores", 0, MAX_THREADS),
    ("system_*mhz*", 0, 1e5),
    ("system_*clock*", 0, 1e5),
    ("system_*.threads_*", 0, 1),
    ("system_*", 0, LARGEST_FIGURE),
    ("profiles.changes.*", -LARGEST_FIGURE, LARGEST_FIGURE),
    ("*_at", FIRST_S, YEAR_3000),
    ("arms.parameters", 1, LARGEST_FIGURE),
    ("arms.trainable_parameters", 0, LARGEST_FIGURE),
    ("arms.batch", 1, 2**31 - 1),
    ("arms.tokens*", 1, 2**31 - 1),
    ("*bytes*", 0, LARGEST_FIGURE),
    ("*.gmacs*", 0, LARGEST_FIGURE),
    ("peaks.g*", 0, LARGEST_FIGURE),
    ("*", 0, 2**31 - 1),
)
"""The least and the most of a number by its place without indices; the first that fits counts."""
WITHOUT_CONTROLS = re.compile(r"[^\x00-\x1f\x7f]*")
"""A name has no control characters; texts for people may have them, but no NUL, which no database
holds."""
FREE_TEXTS = (
    "failures.detail",
    "failures.message",
    "notes",
    "environment.facts.*",
    "job.content_hashes.*",
    "job.files.*",
)
UNITS = {"ms": ("ms", "s"), "B": ("B", "MiB"), "MiB": ("B", "MiB")}
"""Units in which a worker may report a metric that is declared in one of these; others only in
their own."""
MAX_FIGURES = {
    **dict.fromkeys(("images/s", "1/s", "GB/s", "J", "W", "GMAC", "bit"), LARGEST_FIGURE),
    **dict.fromkeys(("ms", "s"), YEAR_S * 1e3),
    **dict.fromkeys(("B", "MiB"), YEAR_S * 1e9),
    "%": 100.0,
    "degree": 180.0,
}
"""The most of figures that are never below zero, by their unit."""


class OutcomeFileError(UserError):
    """What is wrong with an outcome, in one line."""


def read_outcome(text: str) -> Outcome:
    """The outcome in a JSON text. Raises `OutcomeFileError` for what is none, or holds what no
    measurement gives.
    """
    try:
        outcome = Outcome.model_validate_json(text, strict=True)
        given = json.loads(text)
    except ValidationError as error:
        first = error.errors()[0]
        given = first["input"]
        value = "" if isinstance(given, dict | list) else f"{given!r:.40}: "
        raise OutcomeFileError(f"{_place(first['loc'])}: {value}{first['msg']}") from None
    except (ValueError, RecursionError) as error:
        raise OutcomeFileError(f"the whole: {error}") from None
    for problem in (*_impossible(given), *_contradictions(outcome)):
        raise OutcomeFileError(problem)
    return outcome


def _place(path: tuple[Any, ...]) -> str:
    return ".".join(map(str, path)) or "the whole"


def _impossible(given: Any) -> Iterator[str]:
    """Numbers and names that no measurement gives."""
    for path, value in _leaves(given, ()):
        name = ".".join(str(step) for step in path if isinstance(step, str))
        if isinstance(value, str):
            text = any(fnmatchcase(name, each) for each in FREE_TEXTS)
            if "\0" in value or (not text and not WITHOUT_CONTROLS.fullmatch(value)):
                yield f"{_place(path)}: holds a control character"
            elif not value and not text:
                yield f"{_place(path)}: is empty"
        elif isinstance(value, int | float) and not isinstance(value, bool):
            least, most = next(
                (low, high) for each, low, high in RANGES_OF_VALUES if fnmatchcase(name, each)
            )
            if not least <= value <= most:
                yield f"{_place(path)}: {value!r:.40} is not between {least:g} and {most:g}"


def _leaves(value: Any, path: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """All values of plain data that hold no others, and the keys of mappings, with their places."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield (*path, "*"), key
            yield from _leaves(inner, (*path, key))
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from _leaves(inner, (*path, place))
    else:
        yield path, value


def _contradictions(outcome: Outcome) -> Iterator[str]:
    """What its parts state differently of one thing."""
    job, kind, samples = outcome.job, KINDS[outcome.job.kind], outcome.samples
    yield from _of_condition(outcome)
    profiles = outcome.profiles or ()
    known = {arm.arm for arm in outcome.arms} | {failure.arm for failure in outcome.failures}
    timed = {*(samples.arms if samples else ()), *(profile.arm for profile in profiles)}
    for unknown in sorted(timed - known):
        yield f"arms: lack arm {unknown}, which was timed"
    for index, profile in enumerate(profiles):
        yield from _of_profile(profile, job.pairs, f"profiles.{index}")
    for name in get_args(Payload):
        if getattr(outcome, name) is not None and name != kind.payload:
            yield f"{name}: a job of kind {job.kind} has {kind.payload}"
    yield from _of_data(outcome)
    for name in samples.series if samples else ():
        if find_metric(name) is None:
            yield f"samples.series.{name}: no metric has this name"
    for flag in (*outcome.flags, *(flag for arm in outcome.arms for flag in arm.flags)):
        if flag not in FLAGS:
            yield f"flags: unknown flag {flag[:40]!r}"
    counted = (*SAME_COUNTS, "tokens", "trainable_parameters")
    for index, arm in enumerate(outcome.arms):
        yield from _of_metrics(arm, f"arms.{index}.metrics")
        for name in counted if "values" in kind.independent_of else ():
            if getattr(arm, name) is None:
                yield f"arms.{index}.{name}: a job of kind {job.kind} needs it"


def _of_data(outcome: Outcome) -> Iterator[str]:
    images, texts = outcome.predictions, outcome.text_scores
    protocol = outcome.job.protocol
    if images is not None and (problem := predictions_problem(images)):
        yield f"predictions: {problem}"
    if images is not None and images.images > (protocol.images or images.images):
        yield f"predictions.images: {images.images}, expected {protocol.images} at most"
    if texts is not None and (problem := scores_problem(texts)):
        yield f"text_scores: {problem}"
    for name, data in (("predictions", images), ("text_scores", texts)):
        pairs = {(pair.baseline, pair.arm) for pair in data.pairs} if data is not None else set()
        if unasked := pairs - {*outcome.job.pairs}:
            yield f"{name}.pairs: {min(unasked)}, expected one of job.pairs"
    for name in ("seconds", "rounds"):
        column = [each or 0 for each in (outcome.system_series or {}).get(name, ())]
        if sorted(column) != column:
            yield f"system_series.{name}: {column[:5]}, expected to rise"


def _of_condition(outcome: Outcome) -> Iterator[str]:
    job, kind = outcome.job, KINDS[outcome.job.kind]
    device, version = outcome.environment.device, kind.protocol_version
    if job.protocol_version > version:
        yield f"job.protocol_version: {job.protocol_version}, expected {version} at most"
    if outcome.ended_at > (last := time.time() + YEAR_S):
        yield f"ended_at: {outcome.ended_at:.0f}, expected {last:.0f} at most, in a year from now"
    if job.condition.device != device:
        yield f"environment.device: {device}, and the job is for {job.condition.device}"
    for name in (*kind.required, *(["image_size"] if kind.modality == "vision" else [])):
        if getattr(job.condition, name) is None:
            yield f"job.condition.{name}: a job of kind {job.kind} needs it"
    took = outcome.ended_at - outcome.started_at
    if took > YEAR_S:
        yield f"ended_at: more than a year after started_at ({outcome.started_at})"
    for name, seconds in _times(outcome):
        # clocks may be set meanwhile
        if seconds > ALLOWED * took + SLACK_S:
            yield f"{name}: {seconds:.3g} s in a job that took {took:.3g} s"


def _times(outcome: Outcome) -> Iterator[tuple[str, float]]:
    """Times that lie within the job, each with its name."""
    for arm in outcome.arms:
        yield f"arms.{arm.arm}: warm-up", (arm.warmup_s or 0) + (arm.first_call_s or 0)
    if (samples := outcome.samples) is not None:
        for table in (samples.seconds, samples.event_seconds or (), *samples.series.values()):
            yield "samples", sum(sum(map(operator.mul, row, samples.inner)) for row in table)
        yield "samples.bursts", sum(map(sum, samples.bursts or ()))
    for profile in outcome.profiles or ():
        name, ran = f"profiles: arm {profile.arm}", sum(each.seconds for each in profile.activities)
        yield name, max(profile.wall_s or 0, profile.profiled_wall_s or 0, ran)


def _of_profile(profile: ArmProfile, pairs: Sequence[Pair], where: str) -> Iterator[str]:
    baselines = [pair.baseline for pair in pairs if pair.arm == profile.arm]
    if profile.baseline is not None and profile.baseline not in baselines:
        yield f"{where}.baseline: {profile.baseline}, expected one of {baselines}, by job.pairs"
    total, wall = sum(profile.times.values()), profile.wall_s
    close = wall is None or math.isclose(total, wall, rel_tol=0.01, abs_tol=1e-9)
    if profile.times and not close:
        yield f"{where}.times: add up to {total:g} s of a wall of {wall:g} s"
    named = {"speedup": profile.speedup, "profiled_speedup": profile.profiled_speedup}
    for name, found in (*named.items(), *profile.changes.items()):
        if found is not None and not _bounded(found.low, found.value, found.high):
            yield f"{where}.{name}: {found.value:g} does not lie in its interval"


def _bounded(low: float | None, value: float, high: float | None) -> bool:
    """Whether an interval has both ends or none, in their order, and the value between them."""
    if low is None or high is None:
        return low is high
    return low <= value <= high


def _of_metrics(arm: ArmOutcome, where: str) -> Iterator[str]:
    for each in arm.metrics:
        spec = find_metric(each.name)
        units = () if spec is None else UNITS.get(spec.unit, (spec.unit,))
        if units and each.unit not in units:
            yield f"{where}: {each.name} in {each.unit[:40]!r}, expected {' or '.join(units)}"
        if each.unit in MAX_FIGURES and not 0 <= each.value <= MAX_FIGURES[each.unit]:
            most = f"0 to {MAX_FIGURES[each.unit]:g}"
            yield f"{where}: {each.name} of {each.value:g} {each.unit}, expected {most}"
        if not _bounded(each.low, each.low or 0, each.high):
            yield f"{where}: the interval of {each.name} is from {each.low} to {each.high}"
    if (arm.trainable_parameters or 0) > (arm.parameters or 0):
        yield f"{where}: {arm.trainable_parameters} trainable parameters of {arm.parameters}"
