"""Section on why: where the time of a profiled arm goes beside its baseline's, the sentence that follows, what is left to gain."""

from collections.abc import Iterator

from orchestrator.report.data import Report
from orchestrator.report.section import Column, Section, TextLine
from store.explanations import CLASSES_OF_TIME, ProfiledArm, explain_profiles
from sweeps.condition_text import describe_condition
from sweeps.job import Device
from sweeps.number_format import is_missing
from sweeps.profile import TimeClass
from workers.methods.arm_labels import params_label

_TITLE = (
    *("model", "weights", "image_size", "prompt_tokens", "new_tokens", "data", "decoding", "batch_size", "dtype", "attention"),
    *("kv_cache", "device_name", "exclusive", "threads", "wait_policy", "pinning"),
)


def why_sections(report: Report) -> Iterator[Section]:
    """For each condition and phase that was profiled a table of classes of time, and sentences on what they show."""
    for found in explain_profiles(report.profiles, report.effects, params_label):
        yield Section(
            title=_title(found.arms),
            columns=list(_columns(found.arms, found.device)),
            rows=found.arms,
            lines=[TextLine(reason.line) for reason in found.reasons],
            note=found.note,
        )


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
    for name, label in CLASSES_OF_TIME[device].items():
        if any(arm.profile.times.get(name) for arm in own):
            yield _time_column(f"{label}, ms" if name == "device" else label, name)
    yield Column("launches" if device == "cuda" else "operator calls", lambda arm: f"{arm.profile.launches:.0f}")
    for field, label in (("gflops", "GFLOP/s"), ("gb_per_s", "GB/s")):
        if any(_rate(arm, field) is not None for arm in own):
            yield _rate_column(label, field)
    if any(arm.roofline is not None and arm.peaks is not None for arm in own):
        yield Column("limit", lambda arm: "-" if arm.roofline is None else arm.roofline.limit, left=True)
    if any(_rate(arm, "ceiling") is not None for arm in own):
        yield Column("without products", lambda arm: "-" if (most := _rate(arm, "ceiling")) is None else f"{most:.2f}x at most")
    if any(arm.flags for arm in own):
        yield Column("flags", lambda arm: arm.flags, left=True, wraps=True)


def _time_column(label: str, name: TimeClass) -> Column:
    return Column(label, lambda arm: f"{1e3 * arm.profile.times[name]:.3g}" if name in arm.profile.times else "-")


def _rate_column(label: str, field: str) -> Column:
    return Column(label, lambda arm: "-" if (rate := _rate(arm, field)) is None else f"{rate:.3g}")


def _rate(arm: ProfiledArm, field: str) -> float | None:
    found: float | None = getattr(arm.roofline, field, None)
    return found
