"""Labels, colours and dashes of the arms in a data frame."""

import json
import re
from collections import Counter
from collections.abc import Iterable
from hashlib import sha256
from typing import Any, NamedTuple

import pandas as pd

from workers.methods.arm_labels import params_label

QUALIFIERS = ("dtype", "attention", "runtime", "kv_cache")
"""Columns that distinguish arms besides method and parameters."""

KEY = ("method", "params", *QUALIFIERS)
"""Columns of the views that together identify one arm along a curve."""

BASELINE_RAMP = ("#6b7280", "#8a93a2")
RAMPS = (
    *(
        ("#5560c9", "#828ce4"),
        ("#7c6f64", "#9e9182"),
        ("#8a7000", "#aa8f18"),
        ("#00795a", "#1fa580"),
    ),
    *(("#c2500c", "#cf7c28"), ("#994691", "#c573bb"), ("#1a70b8", "#3f9bdc")),
)
"""Dark and light end of each method's colours: safe for colour-blind readers, contrast 3 or more on
white and on black."""

DASHES: tuple[list[int], ...] = ([1, 0], [7, 3], [3, 2], [9, 3, 2, 3])


class ArmStyle(NamedTuple):
    """How one arm is drawn."""

    color: str
    dash: list[int]


def label_arms(
    points: pd.DataFrame, break_evens: pd.DataFrame
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Both frames with the columns `arm`, such as `topk keep_rate=0.7, compile`, and `against`, the
    same for the baseline.

    A label is that of `workers.methods.arm_labels`, with the qualifiers in which the conditions of
    these arms differ. No two arms have the same label. Existing columns stay as they are, so that
    labels do not change while a page filters rows.
    """
    frames = (points, break_evens)
    if all("arm" in frame.columns for frame in frames):
        return points, break_evens
    columns = [*KEY, "baseline", "baseline_id"]
    both = pd.concat([frame[columns] for frame in frames if len(frame)] or [points[columns]])
    arms = both[list(KEY)].drop_duplicates()
    arms = arms.assign(overrides=arms["params"].map(_overrides))
    differing = {
        name
        for name in QUALIFIERS
        if arms.loc[[name not in own for own in arms["overrides"]], name].nunique() > 1
    }
    labels = [_label(row, differing - row["overrides"]) for row in arms.to_dict("records")]
    keys = [tuple(map(str, row)) for row in arms[list(KEY)].itertuples(index=False)]
    known = dict(zip(keys, _distinct(labels, map(", ".join, keys)), strict=True))
    # The text of a baseline also names what the arms beside it override: the shortest names the
    # baseline alone.
    baselines = {
        key: min(texts, key=len) for key, texts in both["baseline"].groupby(both["baseline_id"])
    }
    against = dict(zip(baselines, _distinct(baselines.values(), map(str, baselines)), strict=True))
    return tuple(  # type: ignore[return-value]
        frame.assign(
            arm=[known[tuple(map(str, row))] for row in frame[list(KEY)].itertuples(index=False)],
            against=frame["against"]
            if "against" in frame.columns
            else frame["baseline_id"].map(against),
        )
        for frame in frames
    )


def arm_styles(frame: pd.DataFrame) -> dict[str, ArmStyle]:
    """A style for every `arm` of the frame: one ramp of colours per method, shade and dash per arm
    within it, in reading order.
    """
    methods = sorted(frame["method"].unique())
    ramps = _ramps(methods)
    styles: dict[str, ArmStyle] = {}
    for method in methods:
        ordered = sorted(frame.loc[frame["method"] == method, "arm"].unique(), key=_reading_order)
        for rank, arm in enumerate(ordered):
            share = rank / (len(ordered) - 1) if len(ordered) > 1 else 0.25
            styles[arm] = ArmStyle(_mixed(*ramps[method], share), DASHES[rank % len(DASHES)])
    return styles


def method_colors(methods: Iterable[str]) -> dict[str, str]:
    """The colour of every method, the first of its arms' ramp, in reading order."""
    return {method: dark for method, (dark, _) in _ramps(sorted(set(methods))).items()}


def _overrides(params: str | None) -> frozenset[str]:
    """The qualifiers that an arm sets itself; its label has them among the parameters."""
    value = json.loads(params) if params else {}
    steps = value if isinstance(value, list) else [value]
    return frozenset(QUALIFIERS) & {name for step in steps for name in step}


def _label(row: dict[Any, Any], qualifiers: frozenset[str] | set[str]) -> str:
    values = [
        (name, row[name]) for name in QUALIFIERS if name in qualifiers and not pd.isna(row[name])
    ]
    words = [f"{value} cache" if name == "kv_cache" else value for name, value in values]
    return ", ".join([params_label(row["method"], row["params"]), *words])


def _distinct(names: Iterable[str], details: Iterable[str]) -> list[str]:
    """The names, with the details where several are equal."""
    found = list(names)
    times = Counter(found)
    return [
        name if times[name] == 1 else f"{name} ({detail})"
        for name, detail in zip(found, details, strict=True)
    ]


def _reading_order(name: str) -> list[tuple[int, float, str]]:
    """Orders `r=8` before `r=13`: numbers by size, words by letters."""
    words = re.findall(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?|[^\W\d]+", name)
    return [
        (1, 0.0, word) if word[0].isalpha() or word[0] == "_" else (0, float(word), "")
        for word in words
    ]


def _ramps(methods: list[str]) -> dict[str, tuple[str, str]]:
    """A ramp for each method by the hash of its name; of two with the same one the later gets the
    next that is free.
    """
    ramps: dict[str, tuple[str, str]] = {}
    for method in methods:
        first = int(sha256(method.encode()).hexdigest(), 16)
        order = [RAMPS[(first + step) % len(RAMPS)] for step in range(len(RAMPS))]
        ramps[method] = (
            BASELINE_RAMP
            if method == "dense"
            else next((ramp for ramp in order if ramp not in ramps.values()), order[0])
        )
    return ramps


def _mixed(dark: str, light: str, share: float) -> str:
    pairs = [(int(dark[at : at + 2], 16), int(light[at : at + 2], 16)) for at in (1, 3, 5)]
    return "#" + "".join(f"{round(low + share * (high - low)):02x}" for low, high in pairs)
