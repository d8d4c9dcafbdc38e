"""Reading: small tables for people. Plain SQL, never table models, because reading must be quick."""

from collections import defaultdict
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from sqlalchemy import Engine, text

from store.errors import StoreError
from store.location import display_name
from store.row_mapping import timestamp
from store.transactions import reading
from store.views.public import ANSWERS as ANSWER_ROWS

if TYPE_CHECKING:
    import pandas as pd

SWEEPS = text(
    f"""SELECT s.id, s.name, s.revision, s.question, s.submitted_at,
         (SELECT count(*) FROM sweep_comparison_row AS l WHERE l.sweep = s.id) AS comparisons,
         (SELECT count(DISTINCT l.comparison_id) FROM sweep_comparison_row AS l
          JOIN ({ANSWER_ROWS}) AS r ON r.comparison_id = l.comparison_id AND r.measured = 1 WHERE l.sweep = s.id) AS measured,
         (SELECT count(DISTINCT l.comparison_id) FROM sweep_comparison_row AS l
          JOIN failures AS r ON r.comparison_id = l.comparison_id WHERE l.sweep = s.id) AS failures
       FROM sweep AS s
       WHERE NOT EXISTS (SELECT 1 FROM sweep AS newer WHERE newer.name = s.name AND newer.revision > s.revision)
       ORDER BY s.submitted_at DESC, s.id DESC"""  # noqa: S608 - made of constants
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
    import pandas as pd

    with reading(engine) as connection:
        found = connection.execute(text(sql), params)
        rows = [tuple(row) for row in found]
        return pd.DataFrame.from_records(rows, columns=list(found.keys()), coerce_float=True)


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
