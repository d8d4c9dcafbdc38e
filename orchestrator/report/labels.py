"""Phrases: how a report and a progress line name arms, ratios, places on an axis and verdicts."""

import json
import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from store.host_labels import incomplete
from sweeps.identity import canonical
from sweeps.job import Arm
from sweeps.method import Params
from workers import methods

if TYPE_CHECKING:
    import pandas as pd

STYLES = {
    "faster": "green",
    "slower": "red",
    "better": "green",
    "worse": "red",
    "same": "",
    "within floor": "",
    "unclear": "dim",
    **{f"probably {side}": "dim" for side in ("faster", "slower", "better", "worse")},
    "too few pairs": "dim",
    "no interval": "dim",
    "crossing": "bold",
    "always": "green",
    "never": "red",
}
"""How each word of a verdict (`sweeps.labels`) or of a break-even looks on a terminal."""


def absent(value: Any) -> bool:
    """Whether a cell holds nothing: `None`, or what a frame has in a column of numbers for it."""
    return value is None or (isinstance(value, float) and math.isnan(value))


def of_several(exclusive: Any) -> str:
    """What follows the name of a GPU that was timed beside others of its node."""
    return ", one GPU of several at work (exclusive: device)" if exclusive == "device" else ""


def rows(frame: "pd.DataFrame") -> Iterator[Any]:
    """The rows of a frame as named tuples, whose fields have no types."""
    yield from frame.itertuples()


def amount(value: float | None, axis: str) -> str:
    """A position on an axis: whole tokens, GMACs with three significant digits, or a share saved in per cent."""
    if value is None or absent(value):
        return "?"
    if axis == "gmacs_saved":
        return f"{100 * value:.3g} %"
    return f"{value:.0f}" if axis == "tokens" else f"{value:.3g}"


def label(row: Any, without: str | None = None) -> str:
    """Method with the parameters that are not its defaults: `topk keep_rate=0.5`; `without` leaves one of them out."""
    return named_label(row.method, row.params, without)


def named_label(method: str, text: str | None, without: str | None = None) -> str:
    """As `label`, for a method and its parameters as canonical JSON."""
    params = json.loads(text) if text else {}
    if isinstance(params, list):
        return stack_label(params)
    return " ".join([method, *_said(method, params, (without or "").partition(".")[0])])


def stack_label(steps: list[dict[str, Any]]) -> str:
    """The steps of a stack, and in brackets what overrides the condition: `a k=500 + b p=0.5 [kv_cache="virtual"]`."""
    named = [
        " ".join([step["method"], *_said(step["method"], {key: value for key, value in step.items() if key != "method"})])
        for step in steps_of(steps)
    ]
    beside = [part for step in steps if "method" not in step for part in _said("", step)]
    return " + ".join(named) + (f" [{' '.join(beside)}]" if beside else "")


def arm_label(arm: Arm) -> str:
    """As `label`, for an arm of a job."""
    name = " + ".join(" ".join([step.method, *_said(step.method, step.params)]) for step in arm.stack) or "dense"
    beside = {key: value for key, value in arm.overrides if value is not None}
    if arm.replicate:
        beside["replicate"] = arm.replicate
    return f"{name} [{' '.join(_said('', beside))}]" if beside else name


def steps_of(params: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The steps of a stack without the overrides beside them."""
    return [step for step in params if "method" in step]


def _said(method: str, params: Mapping[str, Any], without: str = "") -> list[str]:
    usual, names = _defaults(method), _present(method)
    return [
        f"{names.get(key, key)}={canonical(value)}"
        for key, value in params.items()
        if value is not None and key != without and not (key in usual and usual[key] == value)
    ]


def _defaults(method: str) -> Mapping[str, Any]:
    """The parameters that need not be said, as plain JSON values; none for a method that is not here (any more)."""
    params = _params(method)
    return {} if params is None else params.model_construct().model_dump(mode="json", by_alias=True, warnings=False)


def _present(method: str) -> Mapping[str, str]:
    """What parameters are called in a sweep where the store has them by an older name."""
    params = _params(method)
    fields = {} if params is None else params.model_fields
    return {info.serialization_alias: name for name, info in fields.items() if info.serialization_alias}


def _params(method: str) -> type[Params] | None:
    """The parameters of a method, or `None` if it is not here (any more)."""
    try:
        found = methods.every().get(method)
    except methods.InvalidMethod:
        return None
    return None if found is None else found.Params


UNITS = {"tokens": "tokens", "gmacs": "GMACs of the baseline", "gmacs_saved": "of the baseline's GMACs saved"}
AXES = {"tokens": "tokens", "gmacs": "GMACs", "gmacs_saved": "GMACs saved"}


def named(row: Any) -> str:
    """The arm of a break-even; along GMACs saved the parameter that moves is named without a value."""
    if absent(row.varies):
        return label(row)
    return f"{label(row, row.varies)}, {row.varies} moving"


def sentence(row: Any) -> str:
    """The break-even of one curve along one axis, in words; first what the curve lacks."""
    lacking = incomplete(row)
    return f"{lacking}; {_crossing(row)}" if lacking else _crossing(row)


def _crossing(row: Any) -> str:
    unit = UNITS[row.axis]
    if row.verdict == "crossing":
        what = "pays from" if row.direction == "gains" else "stops paying at"
        limited = ", neighbours on the grid" if row.grid_limited else ""
        between = f"between {amount(row.x_low, row.axis)} and {amount(row.x_high, row.axis)}{limited}"
        on = " on" if row.direction == "gains" else ""
        return f"{what} {amount(row.x, row.axis)} {unit}{on} ({between}){_flagged(row.why)}"
    return {"always": "always pays", "never": "never pays", "unclear": "cannot tell"}[row.verdict] + (
        f": {row.why}" if row.why else ""
    )


def _flagged(why: str) -> str:
    """The sentence of `why` on flagged points, which the others carry in full."""
    return "".join(f". {part.rstrip('.')}" for part in why.split(". ") if "flagged" in part.lower())


def bounded(value: float | None, low: float | None, high: float | None, form: str = ".2f") -> str:
    """`1.10 [0.31, 1.92]` in the given format, or without the interval where there is none."""
    if value is None or absent(value):
        return "-"
    interval = "" if absent(low) or absent(high) else f" [{low:{form}}, {high:{form}}]"
    return f"{value:{form}}{interval}"


def markdown_row(cells: Any) -> str:
    """One row of a table in GitHub-flavoured Markdown."""
    return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"
