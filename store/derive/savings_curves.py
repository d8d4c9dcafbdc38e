"""Curves on which one parameter of a method, or one number of the condition, varies while all else
stays the same.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from sqlalchemy import Row, Select, and_, bindparam, select

from store.schema.tables import (
    COMPARISON,
    EFFECT,
    SWEEP_COMPARISON,
    gmacs_saved,
    gmacs_total,
    named,
    newest_answer,
)
from sweeps.model.identity import canonical, digest

GMACS_SAVED = "gmacs_saved"
PARAMETER = "parameter"
"""Axis of the values of a parameter itself."""
VARIED_FIELDS = {"batch_size": "batch_size", "threads": "ran_threads"}
"""Fields of the condition that are axes, and the columns of `ALONG_FIELDS` with x; `break_evens.py`
has curves along sizes."""
MIN_SETTINGS = 3
"""What has fewer values than this was set, not varied: no curve is made of them."""

SETTING = (
    "kind",
    "model",
    "weights",
    "device",
    "image_size",
    "batch_size",
    "threads",
    "dtype",
    "attention",
    "runtime",
    "seed",
    "method",
    "baseline",
    "data",
    "prompt_tokens",
    "new_tokens",
    "kv_cache",
    "decoding",
    "exclusive",
    "inputs",
    "spare_cores",
    "wait_policy",
    "pinning",
    "axis_values",
    "x_axis",
)
"""Columns of `comparison` that are equal along this curve but for the one that varies: everything
but the parameters."""
_PLACES = {name: SETTING.index(name) for name in VARIED_FIELDS}
_GIVEN = COMPARISON.alias("given")
_FIXED = tuple(name for name in SETTING if name not in VARIED_FIELDS)
_SETTINGS = (
    select(*named(_GIVEN, _FIXED))
    .where(_GIVEN.c.comparison_id.in_(bindparam("comparisons", expanding=True)))
    .distinct()
    .subquery("settings")
)
# SQLite's IS, which uses an index
_EQUAL = and_(*(COMPARISON.c[name].is_not_distinct_from(_SETTINGS.c[name]) for name in _FIXED))
_SAME = _SETTINGS.join(COMPARISON, _EQUAL)


def _with_setting(*columns: Any) -> Select[Any]:
    return select(
        SWEEP_COMPARISON.c.sweep,
        *named(COMPARISON, SETTING),
        COMPARISON.c.params,
        *columns,
    )


_LINKED = _SAME.join(SWEEP_COMPARISON)
ALONG_FIELDS = (
    _with_setting(
        *named(EFFECT, "comparison_id metric host measured_at effect effect_low effect_high n"),
        *named(EFFECT, "effect_se effect_freedom compared"),
        *(EFFECT.c.gmacs_baseline, gmacs_total(EFFECT).label("gmacs_arm")),
        *(EFFECT.c.verdict, EFFECT.c.flags, EFFECT.c.floor, EFFECT.c.threads.label("ran_threads")),
        gmacs_saved(EFFECT).label(GMACS_SAVED),
    )
    .select_from(_LINKED.join(EFFECT))
    .where(
        EFFECT.c.environment == bindparam("environment"),
        EFFECT.c.compared.in_(("ratio", "amount")),
        EFFECT.c.effect.is_not(None),
    )
    .where(newest_answer(EFFECT))
    .order_by(SWEEP_COMPARISON.c.sweep, EFFECT.c.measured_at, EFFECT.c.comparison_id)
)
"""The points on the curves of the given comparisons."""
REQUESTED = (
    _with_setting(COMPARISON.c.question_id, COMPARISON.c.comparison_id, EFFECT.c.host)
    .select_from(
        _LINKED.outerjoin(
            EFFECT,
            and_(
                EFFECT.c.question_id == COMPARISON.c.question_id,
                EFFECT.c.environment == bindparam("environment"),
            ),
        )
    )
    .distinct()
)
"""The questions of sweeps on those curves, with the hosts that answered them."""


class Line(NamedTuple):
    """What the points of the curve have in common."""

    sweep: int
    setting: tuple[Any, ...]
    """Values of `SETTING`; `None` instead of the field that varies."""
    params: str
    """Canonical JSON of the parameters that stay."""
    varied_parameter: str
    """The parameter that varies, such as `keep_rate`, or `budget.gmacs_ratio` for one inside
    another; or the field."""
    is_field: bool

    def curve_id(self, metric: str) -> str:
        setting = dict(zip(SETTING, self.setting, strict=True)) | (
            {} if metric == "latency" else {"metric": metric}
        )
        key = {
            "sweep": self.sweep,
            "setting": setting,
            "params": self.params,
            "varies": self.varied_parameter,
        }
        return digest(key | ({"field": True} if self.is_field else {}))


class LineCurve(NamedTuple):
    """Points that differ in one number alone, all measured on one host."""

    line: Line
    axis: str
    """`gmacs_saved` or `parameter`, where a parameter varies; else the field that does."""
    points: list[Row[Any]]
    """Rows of `ALONG_FIELDS`, oldest first."""
    places: list[float | None]
    """x of each."""


def points_by_line(
    rows: Sequence[Row[Any]], given: Collection[str]
) -> dict[tuple[Line, str, str], list[Row[Any]]]:
    """The rows of `ALONG_FIELDS` by line, metric and host, for the lines that one of the given
    comparisons lies on.
    """
    wanted = {line for row in rows if row.comparison_id in given for line in lines(row)}
    found: dict[tuple[Line, str, str], list[Row[Any]]] = {}
    for row in rows:
        for line in lines(row):
            if line in wanted:
                found.setdefault((line, row.metric, row.host), []).append(row)
    return found


def curves(found: Mapping[tuple[Line, str, str], list[Row[Any]]]) -> Iterator[LineCurve]:
    """The curves in the result of `points_by_line`, each with `MIN_SETTINGS` places at least.

    Values that save equally much count once along the share saved, which is an axis only where the
    MACs are known.
    """
    for (line, _, _), points in found.items():
        axes = (line.varied_parameter,) if line.is_field else (GMACS_SAVED, PARAMETER)
        for axis in axes:
            places = [_place(line, axis, point) for point in points]
            if len({place for place in places if place is not None}) >= MIN_SETTINGS:
                yield LineCurve(line, axis, points, places)


def _place(line: Line, axis: str, row: Row[Any]) -> float | None:
    if line.is_field:
        found = getattr(row, VARIED_FIELDS[axis])
    elif axis == GMACS_SAVED:
        found = getattr(row, GMACS_SAVED) if row.gmacs_baseline else None
    else:
        found = flat(json.loads(row.params))[line.varied_parameter]
    return None if found is None else float(found)


def missing_work(rows: Iterable[Row[Any]]) -> dict[tuple[Line, str], int]:
    """How many of the requested questions along each line have no answer on each host, from the
    rows of `REQUESTED`.
    """
    requested: dict[Line, set[str]] = {}
    answered: dict[tuple[Line, str], set[str]] = {}
    for row in rows:
        for line in lines(row):
            requested.setdefault(line, set()).add(row.question_id)
            if row.host is not None:
                answered.setdefault((line, row.host), set()).add(row.question_id)
    return {
        (line, host): len(requested[line] - questions)
        for (line, host), questions in answered.items()
    }


def lines(row: Row[Any]) -> Iterator[Line]:
    """The lines that a comparison lies on: one for each of its parameters that is a number, and for
    each of `VARIED_FIELDS`.
    """
    setting = tuple([getattr(row, name) for name in SETTING])
    whole, varied = _rests(row.params)
    for name, rest in varied:
        yield Line(row.sweep, setting, rest, name, is_field=False)
    for name, place in _PLACES.items():
        yield Line(
            row.sweep, (*setting[:place], None, *setting[place + 1 :]), whole, name, is_field=True
        )


@lru_cache(maxsize=10_000)
def _rests(params: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Parameters as identities of curves hash them, and for each that is a number its name and the
    others.
    """
    known = flat(json.loads(params))
    numbers = [name for name, value in known.items() if _is_number(value)]
    return canonical(known), tuple(
        (name, canonical({key: value for key, value in known.items() if key != name}))
        for name in numbers
    )


def flat(params: Any, prefix: str = "") -> dict[str, Any]:
    """Parameters with those inside mappings, and in the steps of a stack, under dotted names."""
    steps = isinstance(params, list) and all(isinstance(step, dict) for step in params)
    inner = {str(place): step for place, step in enumerate(params)} if steps else params
    if not isinstance(inner, dict) or not inner:
        return {prefix: params} if prefix else {}
    found: dict[str, Any] = {}
    for name, value in inner.items():
        found |= flat(value, f"{prefix}.{name}" if prefix else name)
    return found


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
