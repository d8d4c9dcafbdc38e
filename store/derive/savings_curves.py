"""Curves along the share of GMACs saved, on which one parameter of a method varies while the work stays the same."""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Row, Select, and_, bindparam, or_, select

from store.tables.derived import EffectRow
from store.tables.planned import ComparisonRow, SweepComparisonRow, core
from store.views.columns import gmacs_saved, gmacs_total, newest_answer
from sweeps.aliases import former
from sweeps.identity import canonical, digest

GMACS_SAVED = "gmacs_saved"
MIN_SETTINGS = 3
"""A parameter with fewer values than this was set, not varied: no curve is made of them."""

SETTING = (
    *("kind", "model", "weights", "device", "image_size", "batch_size", "threads"),
    *("dtype", "attention", "runtime", "seed", "method", "baseline"),
    *("data", "prompt_tokens", "new_tokens", "kv_cache", "decoding", "exclusive"),
)
"""Columns of `comparison` that are equal along such a curve: everything but the parameters."""
EFFECT, COMPARISON, LINK = core(EffectRow), core(ComparisonRow), core(SweepComparisonRow)
_GIVEN = COMPARISON.alias("given")
_SETTINGS = (
    select(*(_GIVEN.c[name] for name in SETTING))
    .where(_GIVEN.c.comparison_id.in_(bindparam("comparisons", expanding=True)))
    .distinct()
    .subquery("settings")
)
_EQUAL = and_(
    *(
        or_(COMPARISON.c[name] == _SETTINGS.c[name], and_(COMPARISON.c[name].is_(None), _SETTINGS.c[name].is_(None)))
        if COMPARISON.c[name].nullable
        else COMPARISON.c[name] == _SETTINGS.c[name]
        for name in SETTING
    )
)
_SAME = _SETTINGS.join(COMPARISON, _EQUAL)
SAME_CURVES = select(COMPARISON.c.comparison_id).select_from(_SAME)


def _with_setting(*columns: Any) -> Select[Any]:
    return select(LINK.c.sweep, *(COMPARISON.c[name] for name in SETTING), COMPARISON.c.params, *columns)


_LINKED = _SAME.join(LINK, LINK.c.comparison_id == COMPARISON.c.comparison_id)
SAME_WORK = (
    _with_setting(
        *(
            EFFECT.c[name]
            for name in ("comparison_id", "metric", "host", "measured_at", "effect", "effect_low", "effect_high", "n")
        ),
        *(EFFECT.c[name] for name in ("effect_se", "effect_freedom", "rounds")),
        *(EFFECT.c.gmacs_baseline, gmacs_total(EFFECT).label("gmacs_arm")),
        *(EFFECT.c.verdict, EFFECT.c.flags, EFFECT.c.floor, EFFECT.c.threads.label("ran_threads")),
        gmacs_saved(EFFECT).label(GMACS_SAVED),
    )
    .select_from(_LINKED.join(EFFECT, EFFECT.c.comparison_id == COMPARISON.c.comparison_id))
    .where(EFFECT.c.environment == bindparam("environment"), EFFECT.c.compared == "ratio", EFFECT.c.effect.is_not(None))
    .where(EFFECT.c.gmacs_baseline > 0, newest_answer(EFFECT))
    .order_by(LINK.c.sweep, EFFECT.c.measured_at, EFFECT.c.comparison_id)
)
"""The points on the curves of the given comparisons."""
REQUESTED = (
    _with_setting(COMPARISON.c.question_id, EFFECT.c.host)
    .select_from(
        _LINKED.outerjoin(
            EFFECT, and_(EFFECT.c.question_id == COMPARISON.c.question_id, EFFECT.c.environment == bindparam("environment"))
        )
    )
    .distinct()
)
"""The questions of sweeps on those curves, with the hosts that answered them."""


Line = tuple[int, tuple[Any, ...], str, str]
"""What points along GMACs saved have in common: sweep, values of `SETTING`, the other parameters, name of the one that varies."""


class SavedCurve(NamedTuple):
    """Points that differ in one parameter alone, all measured on one host."""

    curve_id: str
    varied_parameter: str
    """The parameter, such as `keep_rate`; `budget.gmacs_ratio` for one inside another."""
    points: list[Row[Any]]
    """Rows of `SAME_WORK`, oldest first."""
    line: Line


def curves(rows: Sequence[Row[Any]]) -> Iterator[SavedCurve]:
    """The curves in the rows of `SAME_WORK`: one for each parameter with at least `MIN_SETTINGS` values while the others stay.

    Values that save equally much count once.
    """
    found: dict[tuple[Line, str, str], list[Row[Any]]] = {}
    for row in rows:
        for line in _lines(row):
            found.setdefault((line, row.metric, row.host), []).append(row)
    for (line, metric, _), points in found.items():
        if len({getattr(point, GMACS_SAVED) for point in points}) >= MIN_SETTINGS:
            sweep, values, rest, parameter = line
            setting = dict(zip(SETTING, values, strict=True)) | ({} if metric == "latency" else {"metric": metric})
            key = digest({"sweep": sweep, "setting": former(setting), "params": rest, "varies": parameter})
            yield SavedCurve(key, parameter, points, line)


def missing_work(rows: Iterable[Row[Any]]) -> dict[tuple[Line, str], int]:
    """How many of the requested questions along each line have no answer on each host, from the rows of `REQUESTED`."""
    requested: dict[Line, set[str]] = {}
    answered: dict[tuple[Line, str], set[str]] = {}
    for row in rows:
        for line in _lines(row):
            requested.setdefault(line, set()).add(row.question_id)
            if row.host is not None:
                answered.setdefault((line, row.host), set()).add(row.question_id)
    return {(line, host): len(requested[line] - questions) for (line, host), questions in answered.items()}


def _lines(row: Row[Any]) -> Iterator[Line]:
    """The lines that a comparison lies on: one for each of its parameters that is a number."""
    params = flat(former(json.loads(row.params)))  # which identities of curves hash
    values = tuple(getattr(row, name) for name in SETTING)
    for name in [name for name, value in params.items() if _is_number(value)]:
        yield row.sweep, values, canonical({key: value for key, value in params.items() if key != name}), name


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
