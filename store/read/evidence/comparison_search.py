"""Comparisons by words or by the beginning of an id."""

from typing import Any

from sqlalchemy import Connection, Engine, or_, select

from store.rows.transactions import reading
from store.schema.tables import COMPARISON, EFFECT, ENVIRONMENT

NEAREST = 8
"""Ids that are named where one is unknown."""
_SIZES = ("image_size", "prompt_tokens")
MAX_FOUND = 40
"""Answers that a search lists."""
MAX_SEARCHED = 400
"""Comparisons among which it takes the newest answers, so that a large store is not sorted."""


def similar_comparisons(engine: Engine, words: str) -> list[dict[str, Any]]:
    """Up to `MAX_FOUND` answers, newest first, whose ids begin with `words` or whose model, method,
    parameters or size hold each.

    A parameter may be written as labels have it, `keep_rate=0.5`. Without words any answers.

    Mappings with `comparison_id`, `kind`, `model`, `method`, `params`, `image_size`, `image_shape`,
    `prompt_tokens`, `environment`, `host`, `device_name` and `measured_at`.
    """
    each = []
    for word in words.split():
        columns = (
            COMPARISON.c[name]
            for name in ("model", "method", "params", "kind", "dtype", "runtime", "image_shape")
        )
        begins = [
            COMPARISON.c[name].startswith(word, autoescape=True)
            for name in ("comparison_id", "question_id")
        ]
        holds = [column.icontains(word, autoescape=True) for column in columns]
        name, _, value = word.partition("=")
        stated = (
            [COMPARISON.c.params.icontains(f'"{name}":{value}', autoescape=True)] if value else []
        )
        sizes = (
            [COMPARISON.c[column] == int(word) for column in _SIZES]
            if word.isascii() and word.isdigit() and len(word) < 8
            else []
        )
        each.append(or_(*begins, *holds, *stated, *sizes))
    matching = select(COMPARISON.c.comparison_id).where(*each).limit(MAX_SEARCHED)
    with reading(engine) as connection:
        ids = connection.execute(matching).scalars().all()
        rows = _listed().where(COMPARISON.c.comparison_id.in_(ids)).limit(MAX_FOUND)
        return [dict(row._mapping) for row in connection.execute(rows)]


def _listed() -> Any:
    columns = (
        *(COMPARISON.c[name] for name in ("comparison_id", "kind", "model", "method", "params")),
        *(COMPARISON.c[name] for name in ("image_size", "image_shape", "prompt_tokens")),
        *(EFFECT.c[name] for name in ("environment", "host", "measured_at")),
        ENVIRONMENT.c.device_name,
    )
    source = EFFECT.join(COMPARISON, COMPARISON.c.comparison_id == EFFECT.c.comparison_id).join(
        ENVIRONMENT, ENVIRONMENT.c.environment_id == EFFECT.c.environment
    )
    return (
        select(*columns)
        .select_from(source)
        .distinct()
        .order_by(EFFECT.c.measured_at.desc(), COMPARISON.c.comparison_id)
    )


def unknown_comparison(connection: Connection, where: str, comparison_id: str) -> str:
    """What is wrong with an id that the store called `where` lacks, with those that begin like
    it.
    """
    ids = COMPARISON.c.comparison_id
    near: list[str] = []
    for length in range(len(comparison_id) - 1, 1, -1):
        begins = ids.startswith(comparison_id[:length], autoescape=True)
        near = list(
            connection.execute(select(ids).where(begins).order_by(ids).limit(NEAREST)).scalars()
        )
        if near:
            break
    hint = f"; nearest: {', '.join(near)}" if near else ""
    same = select(ids).where(COMPARISON.c.question_id == comparison_id).order_by(ids).limit(NEAREST)
    if answering := list(connection.execute(same).scalars()):
        hint = f"; it is a question id, answered by comparison {', '.join(answering)}"
    return f"{where} contains no comparison {comparison_id}{hint}"
