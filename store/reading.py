"""Reading: what is answered already, and small tables for people. Plain SQL, never table models, because reading must be quick."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from sqlalchemy import Engine, bindparam, text

from store.connection import StoreError, explained, shown
from store.describing import timestamp
from store.views import ANSWERS as ANSWER_ROWS
from sweeps.job import Protocol
from sweeps.outcome import ANSWERS

if TYPE_CHECKING:
    import pandas as pd

FIGURES = text(
    """SELECT comparison_id, environment, pairs, speedup, speedup_low, speedup_high FROM speedup_row
       WHERE environment IN :environments"""
).bindparams(bindparam("environments", expanding=True))

EXECUTIONS = text(
    """SELECT DISTINCT p.comparison_id, t.round, t.protocol, f.reason, e.images + e.unreadable AS seen, s.complete
       FROM pairing AS p JOIN attempt AS t ON t.id = p.attempt LEFT JOIN failure AS f ON f.id = p.failure
         LEFT JOIN evaluation AS e ON e.attempt = t.id LEFT JOIN scores AS s ON s.attempt = t.id
       WHERE t.environment IN :environments"""
).bindparams(bindparam("environments", expanding=True))

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

    with explained(shown(engine.url)), engine.connect() as connection:
        found = connection.execute(text(sql), params)
        rows = [tuple(row) for row in found]
        return pd.DataFrame.from_records(rows, columns=list(found.keys()), coerce_float=True)


def answered(engine: Engine, comparisons: Mapping[str, Protocol], environment_ids: Collection[str]) -> set[tuple[str, int]]:
    """Which rounds of which comparison ids need not be measured again, in any of the environments, as (comparison id, round).

    The protocol beside each id says how precisely it is asked now. A round is answered if it was measured, and the interval
    of all rounds (by every metric) is as narrow as asked or the round was measured under a protocol that satisfies the one
    asked. A failure that is an answer (`sweeps.outcome.ANSWERS`) answers all rounds, a time-out only if it was allowed as long
    as it would be now, for no more images, characters or tasks. Accuracy and quality are answered by as many images or
    characters as are asked now, or by all there are, quality by the tasks that are asked now too. Flagged results count: they
    are shown, with their flags.
    """
    environments = {"environments": sorted(environment_ids)}
    found: set[tuple[str, int]] = set()
    protocols: dict[str, Protocol] = {}
    with explained(shown(engine.url)), engine.connect() as connection:
        figures: dict[tuple[str, str], list[bool]] = defaultdict(list)
        for row in connection.execute(FIGURES, environments):
            figures[row.comparison_id, row.environment].append(_narrow(row, comparisons))
        narrow = {comparison_id for (comparison_id, _), metrics in figures.items() if all(metrics)}
        for comparison_id, number, text_of_protocol, reason, seen, complete in connection.execute(EXECUTIONS, environments):
            asked = comparisons.get(comparison_id)
            if asked is None:
                continue
            made = protocols.get(text_of_protocol) or Protocol.model_validate_json(text_of_protocol)
            protocols[text_of_protocol] = made
            # fewer images than were asked for: there are no more
            if made.images is not None and seen is not None and seen < made.images:
                made = made.model_copy(update={"images": None})
            if complete:
                made = made.model_copy(update={"characters": None})
            if reason is None and (comparison_id in narrow or made.satisfies(asked)):
                found.add((comparison_id, number))
            elif reason in ANSWERS and (reason != "timeout" or _no_easier(asked, made)):
                found |= {(comparison_id, each) for each in range(asked.rounds)}
    return found


def sweeps(engine: Engine) -> list[dict[str, Any]]:
    """The newest revision of each sweep, newest first, with counts of its comparisons and of its jobs by state."""
    with explained(shown(engine.url)), engine.connect() as connection:
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
    with explained(shown(engine.url)), engine.connect() as connection:
        found = connection.execute(SWEEP, {"name": name}).one_or_none()
        if found is not None:
            return dict(found._mapping)
        names = list(connection.execute(NAMES).scalars())
    near = get_close_matches(name, names, n=3) or names[:5]
    hint = (
        f"did you mean {' or '.join(near)}?" if near else "there is none yet; run one first: breakeven run sweeps/quickstart.yaml"
    )
    raise StoreError(f"{shown(engine.url)} holds no sweep called {name}; {hint}")


def environments(engine: Engine) -> list[dict[str, Any]]:
    """The machines that were measured, with how many attempts each."""
    with explained(shown(engine.url)), engine.connect() as connection:
        return [dict(row._mapping) for row in connection.execute(ENVIRONMENTS)]


def _no_easier(asked: Protocol, made: Protocol) -> bool:
    """Whether what ran out of time under `made` would again under `asked`."""
    amounts = ((asked.images, made.images), (asked.characters, made.characters), (asked.documents, made.documents))
    fewer = any(now is not None and (then is None or now < then) for now, then in amounts)
    fewer = fewer or not set(made.tasks or ()) <= set(asked.tasks or ())
    longer = asked.timeout_s > made.timeout_s or asked.compile_timeout_s > made.compile_timeout_s
    return not (fewer or longer)


def _narrow(figure: Any, comparisons: Mapping[str, Protocol]) -> bool:
    asked = comparisons.get(figure.comparison_id)
    if (
        asked is None
        or figure.speedup is None
        or figure.speedup_low is None
        or figure.speedup_high is None
        or figure.pairs < asked.pairs_min
    ):
        return False
    width = max(figure.speedup_high - figure.speedup, figure.speedup - figure.speedup_low)
    return bool(width <= asked.half_width * figure.speedup)
