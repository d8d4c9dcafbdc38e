"""Savings: the curves along the share of GMACs saved, on which one parameter of a method moves while the work stays the same."""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Row, bindparam, text

from store.views.public import NEWEST
from sweeps.aliases import former
from sweeps.identity import canonical, digest

SAVED = "gmacs_saved"
MIN_SETTINGS = 3
"""A parameter with fewer values than this was set, not varied: no curve is made of them."""

SETTING = (
    *("kind", "model", "weights", "device", "image_size", "batch_size", "threads"),
    *("dtype", "attention", "runtime", "seed", "method", "baseline"),
    *("data", "prompt_tokens", "new_tokens", "kv_cache", "decoding", "exclusive"),
)
"""Columns of `comparison` that are equal along such a curve: everything but the parameters."""
NULLABLE = ("image_size", "threads", "data", "prompt_tokens", "new_tokens", "kv_cache", "decoding", "exclusive")
_EQUAL = " AND ".join(
    f"(c.{name} = d.{name} OR (c.{name} IS NULL AND d.{name} IS NULL))" if name in NULLABLE else f"c.{name} = d.{name}"
    for name in SETTING
)

_SETTINGS = f"(SELECT DISTINCT {', '.join(SETTING)} FROM comparison WHERE comparison_id IN :comparisons)"  # noqa: S608 - constants

SAME_WORK = text(
    f"""SELECT l.sweep, {", ".join(f"c.{name}" for name in SETTING)}, c.params,
          r.comparison_id, r.metric, r.host, r.measured_at, r.threads AS ran_threads,
          r.speedup, r.speedup_low, r.speedup_high, r.pairs, r.verdict, r.flags, r.floor,
          1 - (r.gmacs + coalesce(r.gmacs_method, 0)) / r.gmacs_baseline AS {SAVED}
        FROM {_SETTINGS} AS d
        JOIN comparison AS c ON {_EQUAL}
        JOIN sweep_comparison_row AS l ON l.comparison_id = c.comparison_id
        JOIN speedup_row AS r ON r.comparison_id = c.comparison_id
        WHERE r.environment = :environment AND r.speedup IS NOT NULL AND r.gmacs_baseline > 0 AND {NEWEST}
        ORDER BY l.sweep, r.measured_at, r.comparison_id"""  # noqa: S608 - made of constants
).bindparams(bindparam("comparisons", expanding=True))

ASKED_WORK = text(
    f"""SELECT DISTINCT l.sweep, {", ".join(f"c.{name}" for name in SETTING)}, c.params, c.question_id, r.host
        FROM {_SETTINGS} AS d
        JOIN comparison AS c ON {_EQUAL}
        JOIN sweep_comparison_row AS l ON l.comparison_id = c.comparison_id
        LEFT JOIN speedup_row AS r ON r.question_id = c.question_id AND r.environment = :environment"""  # noqa: S608 - made of constants
).bindparams(bindparam("comparisons", expanding=True))

FORGET_SAVED = text(
    f"""DELETE FROM break_even_row WHERE axis = '{SAVED}' AND environment = :environment AND comparison_id IN (
          SELECT c.comparison_id FROM {_SETTINGS} AS d JOIN comparison AS c ON {_EQUAL})"""  # noqa: S608 - made of constants
).bindparams(bindparam("comparisons", expanding=True))


Line = tuple[int, tuple[Any, ...], str, str]
"""What points along GMACs saved have in common: sweep, values of `SETTING`, the other parameters, name of the one that moves."""


class SavedCurve(NamedTuple):
    """Points that differ in one parameter alone, all measured on one host."""

    curve_id: str
    varies: str
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
        if len({getattr(point, SAVED) for point in points}) >= MIN_SETTINGS:
            sweep, values, rest, varies = line
            setting = dict(zip(SETTING, values, strict=True)) | ({} if metric == "latency" else {"metric": metric})
            key = digest({"sweep": sweep, "setting": former(setting), "params": rest, "varies": varies})
            yield SavedCurve(key, varies, points, line)


def missing_work(rows: Iterable[Row[Any]]) -> dict[tuple[Line, str], int]:
    """How many of the questions asked along each line have no answer on each host, from the rows of `ASKED_WORK`."""
    asked: dict[Line, set[str]] = {}
    answered: dict[tuple[Line, str], set[str]] = {}
    for row in rows:
        for line in _lines(row):
            asked.setdefault(line, set()).add(row.question_id)
            if row.host is not None:
                answered.setdefault((line, row.host), set()).add(row.question_id)
    return {(line, host): len(asked[line] - questions) for (line, host), questions in answered.items()}


def _lines(row: Row[Any]) -> Iterator[Line]:
    """The lines that a comparison lies on: one for each of its parameters that is a number."""
    params = flat(json.loads(row.params))
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
