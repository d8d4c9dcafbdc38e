"""Outcomes from files of anyone: read without guessing, and refused in one line where no
measurement gives a number or a name.
"""

import json
import math
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any

from pydantic import ValidationError

from sweeps.errors import UserError
from sweeps.model.flags import FLAGS
from sweeps.model.kinds import KINDS
from sweeps.model.metrics import find_metric
from sweeps.model.outcome import YEAR_3000, ArmOutcome, Outcome
from sweeps.model.profile import ArmProfile

YEAR_S = 31_557_600.0
"""Nothing that is measured takes longer."""
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
    ("system_*", -LARGEST_FIGURE, LARGEST_FIGURE),
    ("profiles.changes.*", -LARGEST_FIGURE, LARGEST_FIGURE),
    ("*_at", 0, YEAR_3000),
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
)
UNITS = {"ms": ("ms", "s"), "B": ("B", "MiB"), "MiB": ("B", "MiB")}
"""Units in which a worker may report a metric that is declared in one of these; others only in
their own."""
NEVER_NEGATIVE = frozenset({"ms", "s", "B", "MiB"})
"""Units of figures that are never below zero."""


class OutcomeFileError(UserError):
    """What is wrong with an outcome, in one line."""


def read_outcome(text: str) -> Outcome:
    """The outcome in a JSON text. Raises `OutcomeFileError` for what is none, or holds what no
    measurement gives.
    """
    try:
        outcome = Outcome.model_validate_json(text)
        given = json.loads(text)
    except ValidationError as error:
        first = error.errors()[0]
        raise OutcomeFileError(f"{_place(first['loc'])}: {first['msg']}") from None
    except (ValueError, RecursionError) as error:
        raise OutcomeFileError(f"the whole: {error}") from None
    for problem in (
        *_reinterpreted(given, outcome.model_dump(mode="json"), ()),
        *_impossible(given),
        *_contradictions(outcome),
    ):
        raise OutcomeFileError(problem)
    return outcome


def _place(path: tuple[Any, ...]) -> str:
    return ".".join(map(str, path)) or "the whole"


def _reinterpreted(given: Any, read: Any, path: tuple[Any, ...]) -> Iterator[str]:
    """Values that were read as something else than what stands there: `true` as 1, `"1"` as 1,
    `2.0` as 2.
    """
    if isinstance(given, dict) and isinstance(read, dict):
        for key in given.keys() & read.keys():
            yield from _reinterpreted(given[key], read[key], (*path, key))
    elif isinstance(given, list) and isinstance(read, list):
        for place, (one, other) in enumerate(zip(given, read, strict=True)):
            yield from _reinterpreted(one, other, (*path, place))
    elif (
        type(given) is not type(read)
        and not (type(given) is int and type(read) is float)
        and not _not_finite(given)
    ):
        yield (
            f"{_place(path)}: {json.dumps(given)[:40]} is no"
            f" {_KINDS_OF_VALUES.get(type(read), 'such value')}"
        )


_KINDS_OF_VALUES = {
    int: "whole number",
    float: "number",
    str: "text",
    bool: "truth value",
    list: "list",
    dict: "mapping",
}


def _not_finite(value: Any) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


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
    job, kind = outcome.job, KINDS[outcome.job.kind]
    condition = job.condition
    if condition.device != outcome.environment.device:
        yield (
            f"environment.device: {outcome.environment.device}, and the job is for"
            f" {condition.device}"
        )
    required = (*kind.required, *(("image_size",) if kind.modality == "vision" else ()))
    if lacking := [name for name in required if getattr(condition, name) is None]:
        yield f"job.condition.{lacking[0]}: a job of kind {job.kind} needs it"
    if outcome.ended_at - outcome.started_at > YEAR_S:
        yield f"ended_at: more than a year after started_at ({outcome.started_at})"
    yield from _longer_than_the_job(outcome)
    seen = {arm.arm for arm in outcome.arms} | {failure.arm for failure in outcome.failures}
    timed = {
        *(outcome.samples.arms if outcome.samples else ()),
        *(profile.arm for profile in outcome.profiles or ()),
    }
    if unseen := sorted(timed - seen):
        yield f"arms: lack arm {unseen[0]}, which was timed"
    for place, profile in enumerate(outcome.profiles or ()):
        yield from _of_profile(profile, len(job.arms), f"profiles.{place}")
    for name in ("samples", "predictions", "text_scores", "profiles"):
        if getattr(outcome, name) is not None and name != kind.payload:
            yield f"{name}: a job of kind {job.kind} has {kind.payload}"
    for name in outcome.samples.series if outcome.samples else ():
        if find_metric(name) is None:
            yield f"samples.series.{name}: no metric has this name"
    for flag in (*outcome.flags, *(flag for arm in outcome.arms for flag in arm.flags)):
        if flag not in FLAGS:
            yield f"flags: unknown flag {flag[:40]!r}"
    for place, arm in enumerate(outcome.arms):
        yield from _of_metrics(arm, f"arms.{place}.metrics")


def _longer_than_the_job(outcome: Outcome) -> Iterator[str]:
    """Times that together are longer than the job took, by clocks that may be set meanwhile."""
    most = ALLOWED * (outcome.ended_at - outcome.started_at) + SLACK_S
    spent = {
        f"arms.{arm.arm}: warm-up": (arm.warmup_s or 0) + (arm.first_call_s or 0)
        for arm in outcome.arms
    }
    if (samples := outcome.samples) is not None:
        tables = {
            "seconds": samples.seconds,
            "event_seconds": samples.event_seconds or (),
            **samples.series,
        }
        for name, table in tables.items():
            spent[f"samples: {name}"] = sum(
                a * b for row in table for a, b in zip(row, samples.inner, strict=True)
            )
        spent["samples: bursts"] = sum(map(sum, samples.bursts or ()))
    for profile in outcome.profiles or ():
        ran = sum(each.seconds for each in profile.activities)
        spent[f"profiles: arm {profile.arm}"] = max(
            profile.wall_s or 0, profile.profiled_wall_s or 0, ran
        )
    for name, seconds in spent.items():
        if seconds > most:
            yield (
                f"{name}: {seconds:.3g} s in a job that took"
                f" {outcome.ended_at - outcome.started_at:.3g} s"
            )


def _of_profile(profile: ArmProfile, arms: int, where: str) -> Iterator[str]:
    if profile.baseline is not None and profile.baseline >= arms:
        yield f"{where}.baseline: arm {profile.baseline}; the job has arms 0 to {arms - 1}"
    total = sum(profile.times.values())
    if (
        profile.times
        and profile.wall_s is not None
        and not math.isclose(total, profile.wall_s, rel_tol=0.01, abs_tol=1e-9)
    ):
        yield f"{where}.times: add up to {total:g} s of a wall of {profile.wall_s:g} s"
    bounded = [
        ("speedup", profile.speedup),
        ("profiled_speedup", profile.profiled_speedup),
        *profile.changes.items(),
    ]
    for name, found in bounded:
        if found is not None and not _bounded(found.low, found.value, found.high):
            yield f"{where}.{name}: {found.value:g} does not lie in its interval"


def _bounded(low: float | None, value: float, high: float | None) -> bool:
    """Whether an interval has both ends or none, in their order, and the value between them."""
    return (low is None and high is None) or (
        low is not None and high is not None and low <= value <= high
    )


def _of_metrics(arm: ArmOutcome, where: str) -> Iterator[str]:
    for each in arm.metrics:
        spec = find_metric(each.name)
        units = () if spec is None else UNITS.get(spec.unit, (spec.unit,))
        if units and each.unit not in units:
            yield f"{where}: {each.name} in {each.unit[:40]!r}, expected {' or '.join(units)}"
        if each.unit in NEVER_NEGATIVE and not 0 <= each.value <= YEAR_S * 1e3 * (
            1 if each.unit in {"s", "ms"} else 1e6
        ):
            yield f"{where}: {each.name} of {each.value:g} {each.unit}"
        if (each.low is None) != (each.high is None) or (each.low or 0) > (each.high or 0):
            yield f"{where}: the interval of {each.name} is from {each.low} to {each.high}"
    if arm.trainable_parameters > arm.parameters:
        yield f"{where}: {arm.trainable_parameters} trainable parameters of {arm.parameters}"
