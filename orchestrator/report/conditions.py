"""Conditions and break-evens in words: the titles of sections and the sentences on curves."""

from collections.abc import Mapping
from typing import Any

from store.host_labels import describe_missing
from sweeps.number_format import AXIS_LABELS, axis_value, is_missing
from workers.methods.arm_labels import params_label

PARTS = (
    "{image_size:.0f} px",
    "{images:.0f} images of {data}",
    "with {corruption}, severity {severity:.0f}",
    "{characters:.0f} characters of {data} in {windows:.0f} windows",
    "{prompt_tokens:.0f} tokens of {data} and {new_tokens:.0f} new ({decoding})",
    "batch {batch_size:.0f}",
    "{dtype}",
    "{attention} attention",
    "{runtime}",
    "{kv_cache} cache",
    "on {device_name}{place}{exclusive}",
    "{threads:.0f} threads",
    "against {baseline}",
)
"""What a title holds of a condition, in order; a part with a field that the condition lacks is left out."""


def describe_condition(condition: Mapping[str, Any], place: str = "") -> str:
    """A condition as the title of a section: model, workload, settings and device.

    `place` names the host or environment where there are several.
    """
    known = {name: value for name, value in condition.items() if not is_missing(value)}
    exclusive = ", one GPU of several at work (exclusive: device)" if known.get("exclusive") == "device" else ""
    known |= {"place": place and f" ({place})", "exclusive": exclusive}
    weights = "random weights" if known["weights"] == "random" else f"weights {known['weights']}"
    parts = [f"{known['model']} ({weights})"]
    for part in PARTS:
        try:
            parts.append(part.format_map(known))
        except KeyError:
            continue
    return ", ".join(parts)


def curve_label(row: Any) -> str:
    """The arm of a row of `break_even`; along GMACs saved the parameter that varies is named without a value."""
    if is_missing(row.varied_parameter):
        return params_label(row.method, row.params)
    return f"{params_label(row.method, row.params, without=row.varied_parameter)}, {row.varied_parameter} varies"


def describe_break_even(row: Any) -> str:
    """The break-even of one curve along one axis; what the curve lacks comes first."""
    return "; ".join(filter(None, (describe_missing(row), _crossing(row))))


def _crossing(row: Any) -> str:
    if row.verdict != "crossing":
        text = {"always": "always pays", "never": "never pays", "unclear": "cannot tell"}[row.verdict]
        return f"{text}: {row.why}" if row.why else text
    gains = row.direction == "gains"
    limited = ", neighbours on the grid" if row.grid_limited else ""
    between = f"between {axis_value(row.x_low, row.axis)} and {axis_value(row.x_high, row.axis)}{limited}"
    flagged = "".join(f". {part.rstrip('.')}" for part in row.why.split(". ") if "flagged" in part.lower())
    place = f"{axis_value(row.x, row.axis)} {AXIS_LABELS[row.axis].unit}"
    return f"{f'pays from {place} on' if gains else f'stops paying at {place}'} ({between}){flagged}"
