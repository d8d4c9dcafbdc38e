"""Conditions in words: model, workload, settings and device of what was measured together, and what
these measurements do not show.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from statistics import median
from typing import Any

from sweeps.analysis.labels import PeakShare
from sweeps.analysis.memory_limits import MemoryLimit
from sweeps.analysis.rows import SizedRow, SpeedupRow
from sweeps.model.flags import split_flags
from sweeps.model.identity import canonical
from sweeps.model.job import Job
from sweeps.model.kinds import KINDS
from sweeps.number_format import count, image_text, is_missing
from sweeps.text.curves import token_unit

PARTS = (
    "{pixels}{patches}",
    "{predictions:.0f} images of {data}",
    "with {corruption}, severity {severity:.0f}",
    "{characters_scored:.0f} characters of {data} in {text_scores:.0f} windows",
    "{fixed}",
    "{prompt_tokens:.0f} tokens of {data} and {new_tokens:.0f} new ({decoding})",
    "batch {batch_size:.0f}{zeros}",
    "{dtype}",
    "{attention} attention",
    "{runtime}",
    "{kv_cache} cache",
    "on {device_name}{place}{exclusive}",
    "{counted_threads}{waiting}{pinned}",
    "against {baseline}",
)
"""What a title holds of a condition, in order; a part with a field that the condition lacks is left
out."""


def values_text(values: str) -> str:
    """The columns `axis_values` and `fixed_values`: `height 256, width 512`."""
    return ", ".join(f"{name} {value:,}" for name, value in json.loads(values).items())


def size_text(row: SizedRow) -> str:
    """The size of an input: `64 px`, `512 tokens`, `n 64`, `-` without one."""
    if row.axis_values is not None:
        return values_text(row.axis_values)
    if row.image_size is not None:
        return image_text(row.image_size, row.image_shape)
    if row.prompt_tokens is None:
        return "-"
    return f"{row.prompt_tokens:.0f} token{'' if row.prompt_tokens == 1 else 's'}"


def limit_text(limit: MemoryLimit, label: str) -> str:
    """Where an arm does not fit: `topk of deit_tiny_patch16_224: out of memory from 1024 px on`."""
    row = limit.row
    batch = "" if row.batch_size in (None, 1) else f", batch {row.batch_size}"
    return f"{label} of {row.model}{batch}: out of memory {limit_place(limit)}"


def limit_place(limit: MemoryLimit) -> str:
    """`from 1024 px on`."""
    size = size_text(limit.row)
    return f"from {size} on" if limit.from_here_on else f"at {size}"


def describe_condition(condition: Mapping[str, Any], place: str = "") -> str:
    """A condition as the title of a section: `condition_parts` joined."""
    return ", ".join(condition_parts(condition, place))


def condition_parts(condition: Mapping[str, Any], place: str = "") -> list[str]:
    """A condition in words, one by one: model, workload, settings and device.

    `place` names the host or environment where there are several. With `tokens`, the size of images
    is named in both units.
    """
    hidden = KINDS[condition["kind"]].independent_of if "kind" in condition else ()
    known = {
        name: value
        for name, value in condition.items()
        if not is_missing(value) and name not in hidden
    }
    exclusive = (
        ", one GPU of several at work (exclusive: device)"
        if known.get("exclusive") == "device"
        else ""
    )
    if "image_size" in known:
        known["pixels"] = image_text(known["image_size"], known.get("image_shape"))
    known["patches"] = f" ({known['tokens']:,.0f} tokens)" if "tokens" in known else ""
    known |= {"place": place and f" ({place})", "exclusive": exclusive}
    known["zeros"] = " of zeros" if known.get("inputs") == "zeros" else ""
    waiting = {"active": ", spinning while they wait", "passive": ", asleep while they wait"}
    known["waiting"] = waiting.get(str(known.get("wait_policy")), "")
    known["pinned"] = ", each on a core of its own" if known.get("pinning") == "cores" else ""
    if "threads" in known:
        known["counted_threads"] = count(int(known["threads"]), "thread")
    parts = [known["model"].rpartition("/")[2]]
    if "weights" in known:
        weights = "random weights" if known["weights"] == "random" else "weights {weights}"
        parts = [f"{known['model']} ({weights.format_map(known)})"]
    if "values" in known:
        known["fixed"] = values_text(canonical(dict(known["values"])))
    if "fixed_values" in known:
        known["fixed"] = values_text(known["fixed_values"])
    for part in PARTS:
        try:
            parts.append(part.format_map(known))
        except KeyError:
            continue
    return parts


def job_label(job: Job) -> str:
    """Model, workload and device of a job: `deit_tiny_patch16_224 224 px, batch 1, cpu, round
    2`.
    """
    condition, kind = job.condition, KINDS[job.kind]
    size = "" if condition.image_size is None else f" {condition.image_size} px"
    if condition.prompt_tokens is not None:
        size += f" {condition.prompt_tokens} + {condition.new_tokens} tokens"
    if condition.values is not None:
        size += f" {values_text(canonical(dict(condition.values)))}"
    corruption = f", {condition.corruption} {condition.severity}" if condition.corruption else ""
    work = (
        f"batch {condition.batch_size}"
        if kind.timed
        else f"{kind.name} on {condition.data}{corruption}"
    )
    label = f"{condition.model}{size}, {work}, {condition.device}"
    if job.protocol.turns == 1:
        return label
    turn = "pass" if job.protocol.passes > 1 else "round"
    return f"{label}, {turn} {job.round + 1} of {job.protocol.turns}"


_OTHER_RUNTIME = "another runtime may gain more than any method; try `runtime: openvino`"
MAX_NAMED = 3
"""Points that a caution names; more are counted."""
SMALL_MODEL = 1e9
"""Parameters below which a model ranks methods only."""
SLOW_SPEED = 0.9
"""Share of the quickest known speed below which that is said."""


def peak_caution(found: PeakShare | None) -> Iterator[str]:
    """That the unmodified model leaves most of a CPU unused, where it does."""
    if found is not None and found.is_far_below:
        yield (
            f"{found.peak.dtype} eager reaches {100 * found.share:.0f} % of this CPU's"
            f" {found.peak.gflops:.3g} GFLOP/s: {_OTHER_RUNTIME}"
        )


def describe_peak(found: PeakShare) -> str:
    """What the unmodified model reaches, and the kernel that reached the peak."""
    kernel = f"; peak by {found.peak.kernel}" if found.peak.kernel else ""
    advice = f": {_OTHER_RUNTIME}" if found.is_far_below else ""
    return (
        f"the unmodified model reaches {found.gflops:.3g} of this CPU's {found.peak.gflops:.3g}"
        f" GFLOP/s in {found.peak.dtype} ({100 * found.share:.0f} %{kernel}){advice}"
    )


def cautions(model: str, weights: str, parameters: float | None) -> Iterator[str]:
    """Sentences for one model, the same in the report and in the app; `parameters` of the
    unmodified model, `None` if not known.
    """
    small = (
        f" of {parameters / 1e6:.3g} M parameters"
        if parameters is not None and parameters < SMALL_MODEL
        else ""
    )
    if weights == "random":
        yield (
            f"{model} has random weights: its times are real, its quality does not predict that of"
            " a trained model."
        )
    if small or weights == "trained":
        yield (
            f"{model}{small} ranks methods; it does not predict speed-ups or losses of models of 7B"
            " parameters."
        )


def slow_caution(speeds: Iterable[float | None]) -> Iterator[str]:
    """A sentence where the machine ran slower than it can in the newest runs; `speeds` are
    `host_speed` of each speed-up.
    """
    known = [speed for speed in speeds if speed is not None]
    if known and (usual := median(known)) < SLOW_SPEED:
        yield (
            f"this host ran at {usual:.2f} of its quickest known speed; run again when it is quick,"
            " which adds visits to these"
        )


def states_caution(points: Iterable[tuple[str, SpeedupRow]]) -> Iterator[str]:
    """A sentence where speed-ups are clearly others while the machine is slow; `points` as for
    `mean_caution`.
    """
    named = [
        f"{label} at {_at(row)} {row.speedup:.2f}x when the host is quick,"
        f" {row.speedup_slow:.2f}x when it is slow"
        for label, row in _flagged(points, "states_differ")
    ]
    if named:
        yield f"speed-ups change with the state of the host: {_shortened(named)}"


def mean_caution(points: Iterable[tuple[str, SpeedupRow]]) -> Iterator[str]:
    """A sentence where mean times disagree with speed-ups; `points` are rows of the view `speedup`,
    each behind its label.
    """
    named = [
        f"{label} at {_at(row)} is {row.ratio_of_means:.2f}x as fast, not {row.speedup:.2f}x"
        for label, row in _flagged(points, "mean_disagrees")
    ]
    if named:
        yield f"some forwards take much longer than typical ones: by mean times {_shortened(named)}"


def _at(row: SpeedupRow) -> str:
    place = f"{row.tokens or 0:.0f}"
    return (
        f"{place} {token_unit(row)}" if row.x_axis in (None, "tokens") else f"{row.x_axis} {place}"
    )


def _flagged(
    points: Iterable[tuple[str, SpeedupRow]], flag: str
) -> Iterator[tuple[str, SpeedupRow]]:
    return ((label, row) for label, row in points if flag in split_flags(row.flags))


def _shortened(named: list[str]) -> str:
    """The first ones, and the number of the others."""
    more = [f"{count(len(named) - MAX_NAMED, 'more speed-up')}"] if len(named) > MAX_NAMED else []
    return "; ".join(named[:MAX_NAMED] + more)


def load_caution(flags: Iterable[str | None]) -> Iterator[str]:
    """A sentence where speed-ups were measured beside other programs; `flags` are the joined ones
    of each speed-up.

    Beside a busy core some ratios are others, and not only noisier.
    """
    each = [split_flags(joined) for joined in flags]
    if loaded := sum("contended" in names for names in each):
        yield (
            f"measured beside other programs: {loaded} of {count(len(each), 'speed-up')}; on a"
            " quiet machine they may differ"
        )
