"""Arms as people read them: a short name, a colour and a dash for every arm of a data frame."""

import json
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any, NamedTuple

import pandas as pd

QUALIFIERS = ("dtype", "attention", "runtime", "kv_cache", "baseline")
"""Columns that tell arms apart besides method and parameters; named only where they differ within the frame."""

KEY = ("method", "params", *QUALIFIERS)
"""Columns of the `speedup` and `break_even` views that together identify one arm along a curve."""

RAMPS: Mapping[str, tuple[str, str]] = {
    "topk": ("#1a70b8", "#3f9bdc"),
    "tome": ("#c2500c", "#cf7c28"),
    "random": ("#6b7280", "#8a93a2"),
    "dense": ("#6b7280", "#8a93a2"),
    "slowed": ("#7c6f64", "#9e9182"),
}
"""Dark and light end of each family's colours: safe for colour-blind readers, contrast 3 or more on white and on black."""

OTHER_RAMPS = (("#00795a", "#1fa580"), ("#994691", "#c573bb"), ("#8a7000", "#aa8f18"), ("#5560c9", "#828ce4"))
DASHES: tuple[list[int], ...] = ([1, 0], [7, 3], [3, 2], [9, 3, 2, 3])


class Style(NamedTuple):
    """How one arm is drawn."""

    color: str
    dash: list[int]


def named(points: pd.DataFrame, break_evens: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Both frames with a column `arm`: the method and whatever tells its arms apart, such as `topk, keep rate 0.5`.

    A frame that has the column already is left as it is, so that a name stays the same while a page filters rows.
    """
    if "arm" in points.columns and "arm" in break_evens.columns:
        return points, break_evens
    keys = pd.concat([frame[list(KEY)] for frame in (points, break_evens) if len(frame)] or [points[list(KEY)]]).drop_duplicates()
    names = {_key(row): name for row, name in zip(keys.itertuples(index=False), _names(keys), strict=True)}
    return tuple(  # type: ignore[return-value]
        frame.assign(arm=[names[_key(row)] for row in frame[list(KEY)].itertuples(index=False)]) for frame in (points, break_evens)
    )


def styles(frame: pd.DataFrame) -> dict[str, Style]:
    """A style for every `arm` of the frame: one family of colour per method, shade and dash per arm within it, in reading order."""
    found: dict[str, Style] = {}
    for method, family in frame.drop_duplicates("arm").groupby("method", sort=True):
        dark, light = _ramp(str(method))
        ordered = sorted(family["arm"], key=_reading_order)
        for rank, arm in enumerate(ordered):
            share = rank / (len(ordered) - 1) if len(ordered) > 1 else 0.25
            found[arm] = Style(_mixed(dark, light, share), DASHES[rank % len(DASHES)])
    return found


def _key(row: Iterable[Any]) -> tuple[str, ...]:
    return tuple(map(str, row))


def _names(keys: pd.DataFrame) -> list[str]:
    params = [_flat(text) for text in keys["params"]]
    varying: dict[str, set[str]] = {}
    for method in set(keys["method"]):
        own = [flat for flat, other in zip(params, keys["method"], strict=True) if other == method]
        names = {name for flat in own for name in flat}
        varying[method] = {name for name in names if len({flat.get(name) for flat in own}) > 1}
    qualifiers = [column for column in QUALIFIERS if keys[column].nunique(dropna=False) > 1]
    result = []
    for row, flat in zip(keys.to_dict("records"), params, strict=True):
        shown = varying[row["method"]] or {name for name, value in flat.items() if _is_number(value)}
        parts = [f"{name.replace('_', ' ')} {value}" for name, value in flat.items() if name in shown]
        parts += [_qualified(column, row[column]) for column in qualifiers]
        result.append(", ".join([str(row["method"]), *parts]))
    return result


def _qualified(column: str, value: Any) -> str:
    form = {"baseline": "against {}", "kv_cache": "{} cache"}.get(column, "{}")
    return form.format(value)


def _flat(text: Any) -> dict[str, str]:
    """Parameters by name, values as text; those of a stack carry their step's name. Qualifiers have columns of their own."""
    value = json.loads(text) if isinstance(text, str) and text else {}
    steps = value if isinstance(value, list) else [value]
    flat: dict[str, str] = {}
    for step in steps:
        prefix = f"{step['method']} " if len(steps) > 1 and "method" in step else ""
        flat |= {prefix + name: _plain(entry) for name, entry in step.items() if name not in ("method", *QUALIFIERS)}
    return flat


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return "/".join(map(_plain, value))
    return f"{value:g}" if isinstance(value, int | float) else str(value)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _reading_order(name: str) -> list[tuple[int, float, str]]:
    """Orders `r 8` before `r 13`: numbers by size, words by letters."""
    words = name.replace(",", " ").replace("/", " ").split()
    return [(0, float(word), "") if _is_number(word) else (1, 0.0, word) for word in words]


def _ramp(method: str) -> tuple[str, str]:
    place = int(sha256(method.encode()).hexdigest(), 16) % len(OTHER_RAMPS)
    return RAMPS.get(method, OTHER_RAMPS[place])


def _mixed(dark: str, light: str, share: float) -> str:
    pairs = [(int(dark[at : at + 2], 16), int(light[at : at + 2], 16)) for at in (1, 3, 5)]
    return "#" + "".join(f"{round(low + share * (high - low)):02x}" for low, high in pairs)
