"""Arms as people read them: a short name, a colour and a dash for every arm of a data frame, and a name for every baseline."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

import pandas as pd

from store.derive.savings_curves import flat

QUALIFIERS = ("dtype", "attention", "runtime", "kv_cache")
"""Columns that tell arms apart besides method and parameters."""

KEY = ("method", "params", *QUALIFIERS)
"""Columns of the views that together identify one arm along a curve."""

RAMPS: Mapping[str, tuple[str, str]] = {
    "topk": ("#1a70b8", "#3f9bdc"),
    "tome": ("#c2500c", "#cf7c28"),
    "random": ("#6b7280", "#8a93a2"),
    "dense": ("#6b7280", "#8a93a2"),
    "slowed": ("#7c6f64", "#9e9182"),
    "larosa": ("#1a70b8", "#3f9bdc"),
    "topk_activation": ("#c2500c", "#cf7c28"),
    "teal": ("#00795a", "#1fa580"),
    "adaptivocab": ("#994691", "#c573bb"),
}
"""Dark and light end of each family's colours: safe for colour-blind readers, contrast 3 or more on white and on black."""

OTHER_RAMPS = (("#00795a", "#1fa580"), ("#994691", "#c573bb"), ("#8a7000", "#aa8f18"), ("#5560c9", "#828ce4"))
DASHES: tuple[list[int], ...] = ([1, 0], [7, 3], [3, 2], [9, 3, 2, 3])


class Style(NamedTuple):
    """How one arm is drawn."""

    color: str
    dash: list[int]


class Step(NamedTuple):
    """A method of an arm with its parameters as text; no method: what an arm sets beside its methods."""

    method: str
    params: dict[str, str]


class Spelt(NamedTuple):
    """An arm or a baseline taken apart."""

    steps: list[Step]
    qualifiers: dict[str, str]
    """By column of `QUALIFIERS`; of a baseline those that differ from its arms'."""
    own: frozenset[str]
    """The columns that it overrides; the others are the condition's."""


def named(points: pd.DataFrame, break_evens: pd.DataFrame, *, doses: bool = True) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Both frames with the columns `arm`, such as `topk, keep rate 0.5`, and `against`, the same for the baseline.

    A name holds what tells the frame's arms of a method apart: numbers that vary always, words unless they are those of most of
    these arms; then what overrides the condition, and what differs between conditions. With `doses` it also holds numbers that
    vary between methods, or all but zero of a method where nothing varies. No two arms have the same name. A column that is there
    already is left as it is, so that names stay while a page filters rows.
    """
    frames = (points, break_evens)
    if all("arm" in frame.columns for frame in frames):
        return points, break_evens
    columns = [*KEY, "baseline", "baseline_id"]
    both = pd.concat([frame[columns] for frame in frames if len(frame)] or [points[columns]])
    keys = both[list(KEY)].drop_duplicates()
    texts = {str(key): min(own["baseline"], key=len) for key, own in both.groupby(_baseline_keys(both))}
    spelt = [_arm(row) for row in keys.to_dict("records")]
    baselines = [_baseline(text) for text in texts.values()]
    told = _Told(spelt, baselines, doses=doses)
    wholes = [", ".join(_key(row)) for row in keys.itertuples(index=False)]
    arms = dict(zip(map(_key, keys.itertuples(index=False)), _distinct(map(told.name, spelt), wholes), strict=True))
    against = dict(zip(texts, _distinct(map(told.name, baselines), texts.values()), strict=True))
    return tuple(  # type: ignore[return-value]
        frame.assign(
            arm=[arms[_key(row)] for row in frame[list(KEY)].itertuples(index=False)],
            against=frame["against"] if "against" in frame.columns else _baseline_keys(frame).map(against),
        )
        for frame in frames
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


class _Told:
    """Which parameters and qualifiers are told of each arm."""

    def __init__(self, arms: Sequence[Spelt], baselines: Sequence[Spelt], *, doses: bool) -> None:
        self.doses = doses
        pool: dict[str, list[dict[str, str]]] = {}
        for step in (step for spelt in (*arms, *baselines) for step in spelt.steps):
            pool.setdefault(step.method, []).append(step.params)
        self.varying = {method: _varying(own) for method, own in pool.items()}
        every = [params for own in pool.values() for params in own]
        self.numbers = {
            name
            for name in {name for params in every for name in params}
            if len(values := {params[name] for params in every if name in params}) > 1 and all(map(_is_number, values))
        }
        self.usual = {method: _usual(own) for method, own in pool.items()}
        self.qualifiers = {
            column for column in QUALIFIERS if len({spelt.qualifiers.get(column) for spelt in arms if column not in spelt.own}) > 1
        }

    def name(self, spelt: Spelt) -> str:
        steps = [step for step in spelt.steps if step.method]
        gap = ", " if len(steps) == 1 else " "
        methods = [gap.join([step.method, *self._params(step)]) for step in steps]
        beside = [part for step in spelt.steps if not step.method for part in self._params(step)]
        qualified = [
            f"{value} cache" if column == "kv_cache" else value
            for column, value in spelt.qualifiers.items()
            if column in spelt.own or column in self.qualifiers
        ]
        return ", ".join([" + ".join(methods), *beside, *qualified])

    def _params(self, step: Step) -> list[str]:
        shown = self.varying[step.method]
        if self.doses:
            shown = shown | (self.numbers & step.params.keys())
            shown = shown or {name for name, value in step.params.items() if _is_number(value) and float(value)}
        usual = self.usual[step.method]
        return [
            f"{name.replace('_', ' ').replace('.', ' ')} {value}"
            for name, value in step.params.items()
            if name in shown and usual.get(name) != value
        ]


def _varying(pool: Sequence[Mapping[str, str]]) -> set[str]:
    return {name for name in {name for own in pool for name in own} if len({own.get(name) for own in pool}) > 1}


def _usual(pool: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Words that more than half of them say; a number is always told where it varies."""
    found = {}
    for name in {name for own in pool for name in own}:
        value, times = Counter(own.get(name) for own in pool).most_common(1)[0]
        if value is not None and not _is_number(value) and times > len(pool) / 2:
            found[name] = value
    return found


def _arm(row: Mapping[Any, Any]) -> Spelt:
    """From the columns of `KEY`; qualifiers have columns of their own, and are left out of the parameters."""
    value = json.loads(row["params"]) if isinstance(row["params"], str) and row["params"] else {}
    entries = value if isinstance(value, list) else [{"method": row["method"], **value}]
    steps = [
        Step(entry.get("method", ""), _plain({name: own for name, own in entry.items() if name not in ("method", *QUALIFIERS)}))
        for entry in entries
    ]
    own = frozenset(name for entry in entries for name in entry if name in QUALIFIERS)
    return Spelt(steps, {column: str(row[column]) for column in QUALIFIERS if not pd.isna(row[column])}, own)


def _baseline(text: str) -> Spelt:
    """From its text in the views, such as `topk(keep_rate=0.5) [dtype=bfloat16]`; a text of another form is a name of its own."""
    steps, rest, values = [], text, json.JSONDecoder()
    try:
        while match := re.match(r"(?: \+ )?(\w+)(\(?)", rest):
            rest, params = rest[match.end() :], {}
            while match[2] and not rest.startswith(")"):
                name, _, rest = rest.partition("=")
                params[name], end = values.raw_decode(rest)
                rest = rest[end:].removeprefix(", ")
            rest = rest.removeprefix(")") if match[2] else rest
            steps.append(Step(match[1], _plain(params)))
        beside = dict(part.split("=", 1) for part in rest.strip(" []").split(", ") if part)
    except ValueError:
        return Spelt([Step(text, {})], {}, frozenset())
    others = {name: value for name, value in beside.items() if name not in QUALIFIERS}
    more = [Step("", others)] if others else []
    qualifiers = {column: beside[column] for column in QUALIFIERS if column in beside}
    return Spelt([*steps, *more], qualifiers, frozenset(qualifiers))


def _distinct(names: Iterable[str], wholes: Iterable[str]) -> list[str]:
    """The names, and for those that several would have the whole."""
    found = list(names)
    times = Counter(found)
    return [name if times[name] == 1 else whole for name, whole in zip(found, wholes, strict=True)]


def _baseline_keys(frame: pd.DataFrame) -> "pd.Series[Any]":
    """What tells baselines apart: their text differs with the arms beside them, but rows of old stores have nothing else."""
    return frame["baseline_id"].fillna(frame["baseline"])


def _key(row: Iterable[Any]) -> tuple[str, ...]:
    return tuple(map(str, row))


def _plain(params: Mapping[str, Any]) -> dict[str, str]:
    return {name: _said(value) for name, value in flat(dict(params)).items()}


def _said(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return "/".join(map(_said, value))
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


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
