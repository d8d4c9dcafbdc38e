"""Conditions in words: model, workload, settings and device of what was measured together."""

from collections.abc import Mapping
from typing import Any

from sweeps.number_format import image_text, is_missing

PARTS = (
    "{pixels}{patches}",
    "{predictions:.0f} images of {data}",
    "with {corruption}, severity {severity:.0f}",
    "{characters_scored:.0f} characters of {data} in {text_scores:.0f} windows",
    "{prompt_tokens:.0f} tokens of {data} and {new_tokens:.0f} new ({decoding})",
    "batch {batch_size:.0f}{zeros}",
    "{dtype}",
    "{attention} attention",
    "{runtime}",
    "{kv_cache} cache",
    "on {device_name}{place}{exclusive}",
    "{threads:.0f} threads{waiting}{pinned}",
    "against {baseline}",
)
"""What a title holds of a condition, in order; a part with a field that the condition lacks is left
out."""


def describe_condition(condition: Mapping[str, Any], place: str = "") -> str:
    """A condition as the title of a section: model, workload, settings and device.

    `place` names the host or environment where there are several. With `tokens`, the size of images
    is named in both units.
    """
    known = {name: value for name, value in condition.items() if not is_missing(value)}
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
    weights = "random weights" if known["weights"] == "random" else f"weights {known['weights']}"
    parts = [f"{known['model']} ({weights})"]
    for part in PARTS:
        try:
            parts.append(part.format_map(known))
        except KeyError:
            continue
    return ", ".join(parts)
