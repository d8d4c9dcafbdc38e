"""Section on why: where the time of a profiled arm goes beside its baseline's, the sentence that follows, what is left to gain."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import pandas as pd

from orchestrator.report.conditions import describe_condition
from orchestrator.report.data import Report
from orchestrator.report.section import Column, Section, TextLine, groups, rows_of
from sweeps.job import Device
from sweeps.kinds import KINDS
from sweeps.number_format import count, is_missing
from sweeps.profile import ArmProfile, Peaks, TimeClass
from sweeps.stats.explanation import explain_capture, explain_wall
from sweeps.stats.roofline import Roofline, describe_roofline, roofline
from workers.methods.arm_labels import params_label

_CONDITION = ("environment", "host", "condition_id", "phase")
_TITLE = (
    *("model", "weights", "image_size", "prompt_tokens", "new_tokens", "data", "decoding", "batch_size", "dtype", "attention"),
    *("kv_cache", "device_name", "exclusive", "threads", "wait_policy", "pinning"),
)
_CAPTURED = (
    "environment",
    "host",
    "phase",
    "method",
    "model",
    "weights",
    "image_size",
    "prompt_tokens",
    "batch_size",
    "dtype",
    "attention",
)
"""Equal for an eager arm and the same arm captured as a CUDA graph, besides what is requested of it but for the runtime."""
_CLASSES: Mapping[Device, Mapping[TimeClass, str]] = {
    "cuda": {"device": "device, ms", "launch": "launch", "host": "host", "sync": "waits", "idle": "idle"},
    "cpu": {"device": "operators, ms", "host": "Python, dispatch", "idle": "idle"},
}
_NOTES: Mapping[Device, str] = {
    "cuda": "ms of one forward without a profiler: device work as recorded, the rest shared by what the host did in its gaps.",
    "cpu": "ms of one forward without a profiler, shared as in the profiled forwards.",
}


class ProfiledArm(NamedTuple):
    """An arm and phase of the view `profile`."""

    row: Any
    """The first of its rows."""
    profile: ArmProfile
    """Without its kernels or operators."""
    peaks: Peaks | None
    roofline: Roofline | None

    @property
    def label(self) -> str:
        if is_missing(self.row.method):
            return str(self.row.label or self.row.file)
        return params_label(self.row.method, self.row.params)


def profiled_arms(frame: pd.DataFrame) -> list[ProfiledArm]:
    """The profiles of rows of the view `profile`, of each arm and phase the newest attempt's; imported files all."""
    newest = frame.groupby([*_CONDITION, "arm_id"], dropna=False)["attempt"].transform("max")
    shown = frame[(frame["attempt"] == newest) | frame["attempt"].isna()]
    return [_profiled_arm(rows_of(rows)) for _, rows in groups(shown, ("profile_id",))]


def _profiled_arm(rows: list[Any]) -> ProfiledArm:
    row = rows[0]
    profile = ArmProfile(
        arm=row.arm,
        tool=row.tool,
        phase=row.phase,
        forwards=row.forwards,
        wall_s=None if is_missing(row.wall_ms) else row.wall_ms / 1e3,
        times={each.time_class: each.ms / 1e3 for each in rows},
        launches=row.launches,
    )
    known = not is_missing(row.peak_gflops) and not is_missing(row.peak_gb_per_s)
    peaks = Peaks(gflops=row.peak_gflops, gb_per_s=row.peak_gb_per_s, dtype=row.dtype) if known else None
    work = {"gmacs": _amount(row.gmacs), "bytes_moved": _amount(row.bytes_moved), "products": _amount(row.product_share)}
    return ProfiledArm(row, profile, peaks, roofline(profile, peaks, **work))


def _amount(value: Any) -> float | None:
    return None if is_missing(value) else float(value)


def why_sections(report: Report) -> Iterator[Section]:
    """For each condition and phase that was profiled a table of classes of time, and sentences on what they show."""
    arms = profiled_arms(report.profiles)
    pairs = _pairs(report.effects)
    for _, group in groups(pd.DataFrame({"key": [_key(arm) for arm in arms], "place": range(len(arms))}), ("key",)):
        own = [arms[place] for place in group["place"]]
        device: Device = "cuda" if own[0].row.device == "cuda" or own[0].profile.tool != "torch" else "cpu"
        lines = [*_explanations(own, arms, pairs, device), *_limits(own), *_imported(own)]
        yield Section(
            title=_title(own),
            columns=list(_columns(own, device)),
            rows=own,
            lines=[TextLine(line) for line in lines],
            note=_note(own, device),
        )


def _note(own: list[ProfiledArm], device: Device) -> str:
    """How the classes of time follow from a profile, and what a flag of theirs means for them."""
    notes = [_NOTES[device]] if any(arm.profile.times for arm in own) else []
    if any(_flags(arm) for arm in own):
        notes.append("Flagged walls are medians of a few disturbed forwards: speed-ups count, or profile again when it is quiet.")
    return " ".join(notes)


def _key(arm: ProfiledArm) -> str:
    """Equal for arms of one condition and phase."""
    return json.dumps([None if is_missing(value := getattr(arm.row, name)) else value for name in _CONDITION])


def _title(own: list[ProfiledArm]) -> str:
    plain = next((arm for arm in own if arm.row.method == "dense"), own[0])
    phase = {"forward": "", "prefill": ", prefill", "decode": ", one decode step"}[own[0].profile.phase]
    if is_missing(plain.row.model):
        return f"Why{phase}: imported profiles"
    return f"Why{phase}: {describe_condition({name: getattr(plain.row, name) for name in _TITLE})}"


def _columns(own: list[ProfiledArm], device: Device) -> Iterator[Column]:
    """The classes that some arm has, what was started, and rates where they are known."""
    yield Column("arm", lambda arm: arm.label, left=True)
    yield Column("wall, ms", lambda arm: "-" if arm.profile.wall_s is None else f"{1e3 * arm.profile.wall_s:.3g}")
    for name, label in _CLASSES[device].items():
        if any(arm.profile.times.get(name) for arm in own):
            yield _time_column(label, name)
    yield Column("launches" if device == "cuda" else "operator calls", lambda arm: f"{arm.profile.launches:.0f}")
    for field, label in (("gflops", "GFLOP/s"), ("gb_per_s", "GB/s")):
        if any(_rate(arm, field) is not None for arm in own):
            yield _rate_column(label, field)
    if any(arm.roofline is not None and arm.peaks is not None for arm in own):
        yield Column("limit", lambda arm: "-" if arm.roofline is None else arm.roofline.limit, left=True)
    if any(_rate(arm, "ceiling") is not None for arm in own):
        yield Column("without products", lambda arm: "-" if (most := _rate(arm, "ceiling")) is None else f"{most:.2f}x at most")
    if any(_flags(arm) for arm in own):
        yield Column("flags", _flags, left=True, wraps=True)


def _time_column(label: str, name: TimeClass) -> Column:
    return Column(label, lambda arm: f"{1e3 * arm.profile.times[name]:.3g}" if name in arm.profile.times else "-")


def _rate_column(label: str, field: str) -> Column:
    return Column(label, lambda arm: "-" if (rate := _rate(arm, field)) is None else f"{rate:.3g}")


def _rate(arm: ProfiledArm, field: str) -> float | None:
    found: float | None = getattr(arm.roofline, field, None)
    return found


def _flags(arm: ProfiledArm) -> str:
    joined = (getattr(arm.row, name) for name in ("arm_flags", "job_flags"))
    return ", ".join(sorted({flag for flags in joined if not is_missing(flags) for flag in flags.split(",") if flag}))


def _pairs(effects: pd.DataFrame) -> dict[tuple[str, str], list[str]]:
    """By condition and arm the baselines that profile jobs compare it with."""
    kinds = [name for name, kind in KINDS.items() if kind.payload == "profiles"]
    own = effects[effects["kind"].isin(kinds)][["condition_id", "arm_id", "baseline_id"]].drop_duplicates()
    found: dict[tuple[str, str], list[str]] = {}
    for row in rows_of(own):
        found.setdefault((row.condition_id, row.arm_id), []).append(row.baseline_id)
    return found


def _explanations(
    own: list[ProfiledArm], every: list[ProfiledArm], pairs: Mapping[tuple[str, str], list[str]], device: Device
) -> Iterator[str]:
    """A sentence for each arm and baseline, and for an arm that was captured too what that shows."""
    for arm in own:
        names = pairs.get((arm.row.condition_id, arm.row.arm_id), [])
        baselines = [each for each in own if each.row.arm_id in names]
        for baseline in baselines:
            against = f" against {baseline.label}" if len(baselines) > 1 else ""
            if sentence := explain_wall(baseline.profile, arm.profile, device):
                yield f"{arm.label}{against}: {sentence}"
        captured = next((each for each in every if _is_capture(each, arm)), None)
        if captured is not None and captured.profile.wall_s and arm.profile.wall_s:
            yield f"{arm.label}: {explain_capture(arm.profile.wall_s, captured.profile.wall_s)}"


def _is_capture(captured: ProfiledArm, eager: ProfiledArm) -> bool:
    """Whether an arm is the other one, captured as a CUDA graph."""
    if (captured.row.runtime, eager.row.runtime) != ("cudagraph", "eager"):
        return False
    sides = [[None if is_missing(value := getattr(arm.row, name)) else value for name in _CAPTURED] for arm in (captured, eager)]
    return sides[0] == sides[1] and _requested(captured) == _requested(eager)


def _requested(arm: ProfiledArm) -> Any:
    """What is requested of an arm but for its runtime."""
    params = json.loads(arm.row.params)
    parts = params if isinstance(params, list) else [params]
    return [rest for part in parts if (rest := {key: value for key, value in part.items() if key != "runtime"})]


def _limits(own: list[ProfiledArm]) -> Iterator[str]:
    """Where the first arm, a baseline, stands beside the peaks of the machine; the table has the limits of the others."""
    first = next((arm for arm in own if arm.roofline is not None and arm.peaks is not None), None)
    if first is not None and first.roofline is not None and first.peaks is not None:
        yield f"{first.label}: {describe_roofline(first.roofline, first.peaks)}"


def _imported(own: list[ProfiledArm]) -> Iterator[str]:
    """Of profiles from files of outside profilers, whose times are those with the profiler, how much of the arm they show."""
    for arm in own:
        if not is_missing(arm.row.file):
            share = "not known" if is_missing(arm.row.covered) else f"{100 * arm.row.covered:.3g} %"
            forwards = count(arm.row.forwards, "forward")
            yield (
                f"{arm.label}: recorded by {arm.profile.tool} in {arm.row.file}, {forwards} under the profiler; "
                f"share of the arm's kernel time that its kernels take: {share}"
            )
