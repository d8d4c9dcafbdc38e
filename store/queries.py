"""Reading: small tables for people. Plain SQL, never table models, because reading must be quick."""

from collections import defaultdict
from collections.abc import Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from sqlalchemy import (
    ColumnElement,
    Engine,
    ScalarSelect,
    Select,
    Table,
    TextClause,
    case,
    column,
    distinct,
    func,
    literal_column,
    select,
    text,
)
from sqlalchemy import table as from_name

from store.errors import StoreError
from store.location import display_name
from store.row_mapping import timestamp
from store.tables.derived import EffectRow
from store.tables.planned import SweepComparisonRow, SweepRow, core
from store.transactions import reading
from store.views.public import TABLES, newest_revision

if TYPE_CHECKING:
    import pandas as pd

_SWEEP, _LINK, _EFFECT, _FAILURES = core(SweepRow), core(SweepComparisonRow), core(EffectRow), TABLES["failures"]


def _count(answers: Table, *where: ColumnElement[bool]) -> ScalarSelect[int]:
    """How many comparisons of a sweep have a row among the answers."""
    linked = _LINK.join(answers, answers.c.comparison_id == _LINK.c.comparison_id)
    counted = select(func.count(distinct(_LINK.c.comparison_id))).select_from(linked)
    return counted.where(_LINK.c.sweep == _SWEEP.c.id, *where).correlate(_SWEEP).scalar_subquery()


SWEEPS = (
    select(
        *(_SWEEP.c[name] for name in ("id", "name", "revision", "question", "submitted_at")),
        select(func.count()).where(_LINK.c.sweep == _SWEEP.c.id).correlate(_SWEEP).scalar_subquery().label("comparisons"),
        _count(_EFFECT, _EFFECT.c.effect.is_not(None)).label("measured"),
        _count(_FAILURES).label("failures"),
    )
    .where(newest_revision(_SWEEP))
    .order_by(_SWEEP.c.submitted_at.desc(), _SWEEP.c.id.desc())
)
STATES = text(
    "SELECT l.sweep, j.state, count(*) AS jobs FROM sweep_job AS l JOIN job AS j ON j.id = l.job GROUP BY l.sweep, j.state"
)
SWEEP = text("SELECT * FROM sweep WHERE name = :name ORDER BY revision DESC LIMIT 1")
NAMES = text("SELECT DISTINCT name FROM sweep ORDER BY name")
ENVIRONMENTS = text(
    """SELECT e.environment_id, e.device, e.device_name, e.facts,
         (SELECT count(*) FROM attempt AS t WHERE t.environment = e.environment_id) AS attempts
       FROM environment AS e ORDER BY e.device, e.device_name, e.environment_id"""
)


def table(engine: Engine, sql: str, **params: Any) -> "pd.DataFrame":
    """The rows of a query as a data frame; `:name` in `sql` stands for the keyword argument of that name."""
    return _frame(engine, text(sql).bindparams(**params))


def sweeps(engine: Engine) -> list[dict[str, Any]]:
    """The newest revision of each sweep, newest first, with counts of its comparisons and of its jobs by state."""
    with reading(engine) as connection:
        found = [dict(row._mapping) for row in connection.execute(SWEEPS)]
        states: dict[int, dict[str, int]] = defaultdict(dict)
        for row in connection.execute(STATES):
            states[row.sweep][row.state] = row.jobs
    for sweep in found:
        sweep["submitted_at"] = timestamp(sweep["submitted_at"])
        sweep |= {state: states[sweep["id"]].get(state, 0) for state in ("waiting", "running", "done", "failed", "cancelled")}
    return found


def sweep(engine: Engine, name: str) -> dict[str, Any]:
    """The newest revision of the sweep called `name`. Raises `StoreError` that names the nearest ones if there is none."""
    with reading(engine) as connection:
        found = connection.execute(SWEEP, {"name": name}).one_or_none()
        if found is not None:
            return dict(found._mapping)
        names = list(connection.execute(NAMES).scalars())
    near = get_close_matches(name, names, n=3) or names[:5]
    hint = (
        f"did you mean {' or '.join(near)}?" if near else "there is none yet; run one first: breakeven run sweeps/quickstart.yaml"
    )
    raise StoreError(f"{display_name(engine.url)} holds no sweep called {name}; {hint}")


def environments(engine: Engine) -> list[dict[str, Any]]:
    """The machines that were measured, with how many attempts each."""
    with reading(engine) as connection:
        return [dict(row._mapping) for row in connection.execute(ENVIRONMENTS)]


SWEEP_ROWS: Mapping[str, tuple[str, ...]] = {
    "speedup": ("method", "params", "tokens"),
    "accuracy": ("method", "params", "image_size"),
    "quality": ("method", "params"),
    "failures": ("method", "params", "image_size"),
    "generation": ("prompt_tokens", "method", "params"),
    "break_even": ("method", "params", "x"),
}
"""Views whose rows belong to sweeps, and the columns by which their rows are ordered."""


def sweep_rows(engine: Engine, name: str, view: str) -> "pd.DataFrame":
    """The rows of one of `SWEEP_ROWS` that belong to the newest revision of a sweep.

    Rows of `break_even` are ordered by axis first: tokens, GMACs, share of GMACs saved. Those of `accuracy` have one column more:
    `classes`, the number of outputs that accuracy is about.
    """
    linked: Select[Any] = select(column("comparison_id")).select_from(from_name("sweep_comparison")).where(column("sweep") == name)
    attempts = from_name("comparison_attempt", column("attempt"), column("comparison_id"))
    order: list[ColumnElement[Any]] = [column(each) for each in SWEEP_ROWS[view]]
    columns: list[ColumnElement[Any]] = [literal_column(f"{view}.*")]
    belongs: ColumnElement[bool] = column("comparison_id").in_(linked)
    if view == "break_even":
        belongs = column("sweep") == name
        order.insert(0, case({"tokens": 0, "gmacs": 1}, value=column("axis"), else_=2))
    elif view == "generation":
        belongs = column("attempt").in_(select(attempts.c.attempt).where(attempts.c.comparison_id.in_(linked)))
    elif view == "accuracy":
        images = from_name("image_predictions", column("attempt"), column("classes"))
        classes = select(func.max(images.c.classes)).join_from(images, attempts, images.c.attempt == attempts.c.attempt)
        same = attempts.c.comparison_id == literal_column("accuracy.comparison_id")
        columns.append(classes.where(same).scalar_subquery().label("classes"))
    return _frame(engine, select(*columns).select_from(from_name(view)).where(belongs).order_by(*order))


# Plain text: seven joins of views on each other, which constructs would make no easier to read or to check.
ZEROSHOT = text("""
SELECT q.environment, q.device_name, q.model, q.weights, q.baseline, q.method, q.params, m.metric, m.value, m.n,
       b.value AS value_baseline, d.value AS task_drop, d.low AS task_drop_low, d.high AS task_drop_high
FROM quality AS q
JOIN comparison_attempt AS p ON p.comparison_id = q.comparison_id
JOIN attempt AS t ON t.id = p.attempt AND t.environment = q.environment
JOIN metric AS m ON m.attempt = p.attempt AND m.arm = p.arm AND m.metric LIKE 'zeroshot%' AND m.metric NOT LIKE '%_drop'
JOIN metric AS b ON b.attempt = p.attempt AND b.arm = p.baseline AND b.metric = m.metric
LEFT JOIN metric AS d ON d.attempt = p.attempt AND d.arm = p.arm AND d.metric = m.metric || '_drop'
WHERE q.comparison_id IN (SELECT comparison_id FROM sweep_comparison WHERE sweep = :name)
  AND NOT EXISTS (SELECT 1 FROM comparison_attempt AS o WHERE o.attempt = p.attempt AND o.arm = p.arm AND o.baseline < p.baseline)
  AND NOT EXISTS (
    SELECT 1 FROM comparison_attempt AS o JOIN attempt AS u ON u.id = o.attempt
    JOIN metric AS s ON s.attempt = o.attempt AND s.arm = o.arm
    WHERE o.comparison_id = p.comparison_id AND u.environment = t.environment AND u.id > t.id AND s.metric = m.metric)
ORDER BY q.model, q.method, q.params, m.metric""")


def zeroshot_rows(engine: Engine, name: str) -> "pd.DataFrame":
    """Zero-shot tasks of a sweep: each arm's results of the newest attempt, beside those of its first baseline.

    `task_drop` with its interval is the share of documents that the arm loses against that baseline.
    """
    return _frame(engine, ZEROSHOT.bindparams(name=name))


def _frame(engine: Engine, statement: Select[Any] | TextClause) -> "pd.DataFrame":
    import pandas as pd

    with reading(engine) as connection:
        found = connection.execute(statement)
        return pd.DataFrame.from_records([tuple(row) for row in found], columns=list(found.keys()), coerce_float=True)
