"""Explanations of a stored sweep: profiled arms beside their baselines, ceilings, predicted break-evens, each in sentences."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from sweeps.curve_labels import describe_cost_model, token_unit
from sweeps.job import Device
from sweeps.kinds import KINDS
from sweeps.number_format import count, is_missing
from sweeps.profile import ArmProfile, Peaks, TimeClass
from sweeps.stats.explanation import explain_capture, explain_wall
from sweeps.stats.roofline import Roofline, describe_roofline, roofline

if TYPE_CHECKING:
    import pandas as pd

LabelOf = Callable[[str, str], str]
"""The label of a method and its parameters (JSON)."""
CLASSES_OF_TIME: Mapping[Device, Mapping[TimeClass, str]] = {
    "cuda": {"device": "device", "launch": "launch", "host": "host", "sync": "waits", "idle": "idle"},
    "cpu": {"device": "operators", "host": "Python, dispatch", "idle": "idle"},
}
"""How the classes of time are named, by device."""
_NOTES: Mapping[Device, str] = {
    "cuda": "ms of one forward without a profiler: device work as recorded, the rest shared by what the host did in its gaps.",
    "cpu": "ms of one forward without a profiler, shared as in the profiled forwards.",
}
_CONDITION = ("environment", "host", "condition_id", "phase")
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


class ProfiledArm(NamedTuple):
    """An arm and phase of the view `profile`."""

    row: Any
    """The first of its rows."""
    label: str
    profile: ArmProfile
    """Without its kernels or operators."""
    peaks: Peaks | None
    roofline: Roofline | None

    @property
    def flags(self) -> str:
        """Flags of arm and job, joined by commas."""
        joined = (getattr(self.row, name) for name in ("arm_flags", "job_flags"))
        return ", ".join(sorted({flag for flags in joined if not is_missing(flags) for flag in flags.split(",") if flag}))


class Reason(NamedTuple):
    """A sentence on an arm; `baseline` is what it is set beside, if anything."""

    arm: ProfiledArm
    text: str
    baseline: ProfiledArm | None = None
    against: str = ""
    """After the arm's label, where there are several baselines."""

    @property
    def line(self) -> str:
        """The sentence after the arm's label."""
        return f"{self.arm.label}{self.against}: {self.text}"


class ProfiledCondition(NamedTuple):
    """The profiled arms of one condition and phase on one host, and what they show."""

    arms: list[ProfiledArm]
    device: Device
    reasons: list[Reason]
    note: str
    """How the classes of time follow from a profile, and what a flag of theirs means for them."""


def profiled_arms(frame: "pd.DataFrame", label: LabelOf) -> list[ProfiledArm]:
    """The profiles of rows of the view `profile`, of each arm and phase the newest attempt's; imported files all."""
    newest = frame.groupby([*_CONDITION, "arm_id"], dropna=False)["attempt"].transform("max")
    shown = frame[(frame["attempt"] == newest) | frame["attempt"].isna()]
    return [_profiled_arm(list(rows.itertuples()), label) for _, rows in shown.groupby("profile_id", sort=False)]


def _profiled_arm(rows: list[Any], label: LabelOf) -> ProfiledArm:
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
    name = str(row.label or row.file) if is_missing(row.method) else label(row.method, row.params)
    return ProfiledArm(row, name, profile, peaks, roofline(profile, peaks, **work))


def _amount(value: Any) -> float | None:
    return None if is_missing(value) else float(value)


def explain_profiles(profiles: "pd.DataFrame", effects: "pd.DataFrame", label: LabelOf) -> list[ProfiledCondition]:
    """For each condition and phase that was profiled its arms, with a sentence for each arm and baseline, and on their limits.

    `profiles` and `effects` are rows of the views `profile` and `effect`.
    """
    arms = profiled_arms(profiles, label)
    pairs = _pairs(effects)
    grouped: dict[str, list[ProfiledArm]] = {}
    for arm in arms:
        grouped.setdefault(json.dumps([_value(arm.row, name) for name in _CONDITION]), []).append(arm)
    found = []
    for own in grouped.values():
        device: Device = "cuda" if own[0].row.device == "cuda" or own[0].profile.tool != "torch" else "cpu"
        reasons = [*_explanations(own, arms, pairs, device), *_limits(own), *_imported(own)]
        found.append(ProfiledCondition(own, device, reasons, _note(own, device)))
    return found


def _note(own: Sequence[ProfiledArm], device: Device) -> str:
    notes = [_NOTES[device]] if any(arm.profile.times for arm in own) else []
    if any(arm.flags for arm in own):
        notes.append("Flagged walls are medians of a few disturbed forwards: speed-ups count, or profile again when it is quiet.")
    return " ".join(notes)


def _value(row: Any, name: str) -> Any:
    value = getattr(row, name)
    return None if is_missing(value) else value


def _pairs(effects: "pd.DataFrame") -> dict[tuple[str, str], list[str]]:
    """By condition and arm the baselines that profile jobs compare it with."""
    kinds = [name for name, kind in KINDS.items() if kind.payload == "profiles"]
    own = effects[effects["kind"].isin(kinds)][["condition_id", "arm_id", "baseline_id"]].drop_duplicates()
    found: dict[tuple[str, str], list[str]] = {}
    for condition_id, arm_id, baseline_id in own.itertuples(index=False, name=None):
        found.setdefault((condition_id, arm_id), []).append(baseline_id)
    return found


def _explanations(
    own: Sequence[ProfiledArm], every: Sequence[ProfiledArm], pairs: Mapping[tuple[str, str], list[str]], device: Device
) -> Iterator[Reason]:
    """A sentence for each arm and baseline, and for an arm that was captured too what that shows."""
    for arm in own:
        names = pairs.get((arm.row.condition_id, arm.row.arm_id), [])
        baselines = [each for each in own if each.row.arm_id in names]
        for baseline in baselines:
            against = f" against {baseline.label}" if len(baselines) > 1 else ""
            if sentence := explain_wall(baseline.profile, arm.profile, device):
                yield Reason(arm, sentence, baseline, against)
        captured = next((each for each in every if _is_capture(each, arm)), None)
        if captured is not None and captured.profile.wall_s and arm.profile.wall_s:
            yield Reason(arm, explain_capture(arm.profile.wall_s, captured.profile.wall_s))


def _is_capture(captured: ProfiledArm, eager: ProfiledArm) -> bool:
    """Whether an arm is the other one, captured as a CUDA graph."""
    if (captured.row.runtime, eager.row.runtime) != ("cudagraph", "eager"):
        return False
    sides = [[_value(arm.row, name) for name in _CAPTURED] for arm in (captured, eager)]
    return sides[0] == sides[1] and _requested(captured) == _requested(eager)


def _requested(arm: ProfiledArm) -> Any:
    """What is requested of an arm but for its runtime."""
    params = json.loads(arm.row.params)
    parts = params if isinstance(params, list) else [params]
    return [rest for part in parts if (rest := {key: value for key, value in part.items() if key != "runtime"})]


def _limits(own: Sequence[ProfiledArm]) -> Iterator[Reason]:
    """Where the first arm, a baseline, stands beside the peaks of the machine; tables have the limits of the others."""
    for arm in own:
        if arm.roofline is not None and arm.peaks is not None:
            yield Reason(arm, describe_roofline(arm.roofline, arm.peaks))
            return


def _imported(own: Sequence[ProfiledArm]) -> Iterator[Reason]:
    """Of profiles from files of outside profilers, whose times are those with the profiler, how much of the arm they show."""
    for arm in own:
        if not is_missing(arm.row.file):
            share = "not known" if is_missing(arm.row.covered) else f"{100 * arm.row.covered:.3g} %"
            forwards = count(arm.row.forwards, "forward")
            yield Reason(
                arm,
                f"recorded by {arm.profile.tool} in {arm.row.file}, {forwards} under the profiler; "
                f"share of the arm's kernel time that its kernels take: {share}",
            )


def with_ceilings(points: "pd.DataFrame", is_ceiling: Callable[[str], bool]) -> "pd.DataFrame":
    """Points of one condition with `ceiling`: the speed-up of an arm that reaches the same tokens by cutting, if there is one.

    `points` are rows of the view `speedup`; `is_ceiling` is whether a method only cuts. GMACs of the network and the tokens at the
    end follow from the tokens of each block, and are equal where these are.
    """
    import pandas as pd  # imported late: a command that prints no points does not need it

    same = ["tokens", "tokens_final", "gmacs"]
    cut = points[points["method"].map(is_ceiling).astype(bool)]
    known = {tuple(key): speedup for *key, speedup in cut[[*same, "speedup"]].itertuples(index=False)}
    found = [known.get(tuple(key)) for key in points[same].itertuples(index=False)]
    return points.assign(ceiling=pd.Series(found, index=points.index, dtype=float))


def predicted_break_evens(cost_models: "pd.DataFrame", curves: "pd.DataFrame") -> Iterator[tuple[Any, str]]:
    """Rows of the view `cost_model` of these `curves` (rows of `break_even`), each with what its model predicts in words."""
    same = ["curve_id", "environment", "host", "metric"]
    known = {tuple(key) for key in curves[same].itertuples(index=False)}
    for row in cost_models.itertuples():
        if tuple(getattr(row, name) for name in same) in known and (text := describe_cost_model(row, token_unit(row))):
            yield row, text
