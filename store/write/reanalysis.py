"""`breakeven reanalyse`: all derived rows made again from raw data, in steps that a later call goes
on with.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from itertools import groupby

from sqlalchemy import Connection, Engine, delete, func, insert, select

from store.derive.break_evens import BATCH, CURVE_ORDER, derive_break_evens
from store.derive.effects import derive_effects
from store.derive.panels import derive_all_panels
from store.derive.payloads import STORES
from store.rows.transactions import batches, reading, writing
from store.schema.tables import ATTEMPT, CALIBRATION, COMPARISON, PAIR, PENDING, STAGES
from store.views.public import TABLES
from store.write.analysis_pool import spread_over
from store.write.calibrations import recalibrate
from sweeps.stats.timing import ANALYSIS_VERSION, load_distributions

DERIVE: Mapping[str, Callable[..., None]] = {
    "effects": derive_effects,
    "curves": derive_break_evens,
}


def reanalyse(
    engine: Engine,
    sweep: str | None = None,
    *,
    processes: int | None = None,
    show: Callable[[str, int, int], None] = lambda *_: None,
) -> int:
    """Rebuild all derived rows (or those of the sweep of that name) from raw data, with the newest
    calibrations.

    `processes` compute (default: as many as there are cores, for a store that is worth it) and this
    one writes, to the same rows whatever their number. After a call that did not end, the next one
    derives what that has left, unless the program or a calibration is another one since. `show`
    gets the stage and the comparisons done and all of it. Returns how many comparisons were derived
    here.
    """
    load_distributions()
    analysis = _begin(engine, sweep)
    of_analysis = select(PENDING).where(PENDING.c.analysis == analysis).order_by(PENDING.c.id)
    with reading(engine) as connection:
        steps = connection.execute(of_analysis).all()
    concerned = dict.fromkeys(STAGES, 0)
    for step in steps:
        concerned[step.stage] += len(json.loads(step.comparisons))
    done = dict.fromkeys(STAGES, 0)
    with spread_over(engine, concerned[STAGES[-1]], processes) as spread:
        for step in steps:
            show(step.stage, done[step.stage], concerned[step.stage])
            comparisons = json.loads(step.comparisons)
            with writing(engine) as connection:
                DERIVE[step.stage](connection, comparisons, step.environment, spread=spread)
                connection.execute(delete(PENDING).where(PENDING.c.id == step.id))
                if step is steps[-1]:
                    derive_all_panels(connection)
            done[step.stage] += len(comparisons)
    return done[STAGES[-1]]


def _begin(engine: Engine, sweep: str | None) -> str:
    """Put down what is to be derived, unless a call that did not end has. Returns what this
    analysis is called.
    """
    versions = [store.analysis_version for store in STORES.values()]
    newest = select(func.max(CALIBRATION.c.created_at))
    with reading(engine) as connection:
        calibrated = connection.execute(newest).scalar()
        analysis = json.dumps([sweep, ANALYSIS_VERSION, *versions, calibrated])
        left = select(PENDING.c.id).where(PENDING.c.analysis == analysis).limit(1)
        if connection.execute(left).first() is not None:
            return analysis
        found = list(comparisons_by_environment(connection, sweep))
    for environment, comparisons in found:
        with writing(engine) as connection:
            recalibrate(connection, comparisons, environment)
    same_sweep = PENDING.c.analysis.startswith(json.dumps([sweep])[:-1] + ",", autoescape=True)
    steps = [
        {
            "analysis": analysis,
            "stage": stage,
            "environment": environment,
            "comparisons": json.dumps(comparisons),
        }
        for stage in STAGES  # no curve may mix points of two analyses
        for environment, comparisons in found
    ]
    with writing(engine) as connection:
        connection.execute(delete(PENDING).where(same_sweep))
        if steps:
            connection.execute(insert(PENDING), steps)
    return analysis


def comparisons_by_environment(
    connection: Connection, sweep: str | None = None
) -> Iterator[tuple[str, list[str]]]:
    """The comparisons (of the sweep of that name) that were measured or failed in each environment,
    in batches.

    Those of one curve are together where possible, because a curve is derived for each batch
    that has one of its points.
    """
    source = PAIR.join(ATTEMPT).join(COMPARISON)
    pairs = (
        select(ATTEMPT.c.environment, *CURVE_ORDER, PAIR.c.comparison_id)
        .select_from(source)
        .distinct()
    )
    if sweep is not None:
        link = TABLES["sweep_comparison"]
        pairs = pairs.where(
            PAIR.c.comparison_id.in_(select(link.c.comparison_id).where(link.c.sweep == sweep))
        )
    found = connection.execute(
        pairs.order_by(ATTEMPT.c.environment, *CURVE_ORDER, PAIR.c.comparison_id)
    ).all()
    for environment, rows in groupby(found, key=lambda row: str(row.environment)):
        for batch in batches([row.comparison_id for row in rows], BATCH):
            yield environment, batch
