"""Hover texts without the rows that have no value at a point, which Vega-Lite would show as `null`
or empty.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

_FORMATS: Mapping[str, str] = {"quantitative": "format", "temporal": "utcFormat"}


def omit_empty_rows(chart: alt.TopLevelMixin) -> None:
    """From now on the chart's specification shows at each point only those rows of the hover text
    that have a value there.
    """
    inner: Any = chart.to_dict

    def to_dict(*args: Any, **kwargs: Any) -> dict[str, Any]:
        found: dict[str, Any] = with_known_rows(inner(*args, **kwargs))
        return found

    object.__setattr__(chart, "to_dict", to_dict)


def with_known_rows(spec: Any) -> Any:
    """A Vega-Lite specification whose hover texts of several rows leave out the empty ones, point
    by point.
    """
    if isinstance(spec, list):
        return [with_known_rows(each) for each in spec]
    if not isinstance(spec, dict):
        return spec
    found = {
        name: value if name in {"data", "datasets"} else with_known_rows(value)
        for name, value in spec.items()
    }
    tooltip = found["encoding"].get("tooltip") if isinstance(found.get("encoding"), dict) else None
    if isinstance(tooltip, list) and tooltip:
        found["encoding"] = found["encoding"] | {"tooltip": {"value": {"expr": _rows(tooltip)}}}
    return found


def _rows(tooltip: Sequence[Mapping[str, Any]]) -> str:
    """A Vega expression: the rows as one object, of which each is there if its value is."""
    return f"merge({', '.join(_row(each) for each in tooltip)})"


def _row(tip: Mapping[str, Any]) -> str:
    value = f"datum[{json.dumps(tip['field'])}]"
    form = _FORMATS.get(tip.get("type", ""))
    shown = f"{form}({value}, {json.dumps(tip['format'])})" if form and tip.get("format") else value
    return (
        f"isValid({value}) && {value} !== '' ? {{{json.dumps(tip.get('title') or tip['field'])}:"
        f" {shown}}} : {{}}"
    )
