"""Conditions and break-evens in words: the titles of sections and the sentences on curves."""

from collections.abc import Mapping, Sequence
from typing import Any

from sweeps.curve_labels import describe_break_even
from sweeps.number_format import is_missing
from workers.methods.arm_labels import params_label

PARTS = (
    "{image_size:.0f} px",
    "{predictions:.0f} images of {data}",
    "with {corruption}, severity {severity:.0f}",
    "{characters_scored:.0f} characters of {data} in {text_scores:.0f} windows",
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


def break_even_line(rows: Sequence[Any]) -> str:
    """The break-even of one curve along one axis with its reason, from its rows of the view `break_even`."""
    why = rows[0].why
    if rows[0].verdict == "crossing":
        why = ". ".join(part.rstrip(".") for part in why.split(". ") if "flagged" in part.lower())
    return ". ".join(filter(None, (describe_break_even(rows, "tokens", brief=True), why)))
