"""Asked: where those comparisons of a sweep stand that have no numbers (yet): queued, failed, or neither."""

import pandas as pd
from sqlalchemy import Engine, text

from store.transactions import reading
from store.views import public
from sweeps.job import Job, Kind

ANSWERS = text(
    f"""SELECT c.comparison_id, c.model, c.weights, c.method, c.params, c.baseline, c.dtype, c.attention,
          max(r.measured) AS measured, max(f.reason) AS reason
        FROM sweep_comparison AS l
        JOIN comparison AS c ON c.comparison_id = l.comparison_id
        LEFT JOIN ({public.ANSWERS}) AS r ON r.comparison_id = c.comparison_id
        LEFT JOIN failure AS f ON f.id = r.failure
        WHERE l.sweep = :name AND c.kind = :kind
        GROUP BY c.comparison_id, c.model, c.weights, c.method, c.params, c.baseline, c.dtype, c.attention"""  # noqa: S608 - constants
)
QUEUED = text(
    """SELECT DISTINCT j.id, j.document FROM job AS j
       JOIN sweep_job AS l ON l.job = j.id
       JOIN sweep AS s ON s.id = l.sweep
       WHERE s.name = :name AND j.kind = :kind AND j.state IN ('waiting', 'running')"""
)


def states(engine: Engine, name: str, kind: Kind) -> pd.DataFrame:
    """The comparisons of one kind that the newest revision of a sweep asks, in whatever environment they were answered.

    Each has what identifies its arm and baseline, `state` (`measured`, `failed`, `queued` or `not measured`) and the `reason` of
    a failure.
    """
    asked = {"name": name, "kind": kind}
    with reading(engine) as connection:
        answers = connection.execute(ANSWERS, asked)
        found = pd.DataFrame.from_records([tuple(row) for row in answers], columns=list(answers.keys()))
        documents = [row.document for row in connection.execute(QUEUED, asked)]
    queued = {comparison_id for document in documents for comparison_id in Job.model_validate_json(document).comparison_ids()}
    waiting = found["comparison_id"].isin(queued)
    state = found["measured"].map({1: "measured"}).astype(object)
    state = state.mask(state.isna() & waiting, "queued").mask(state.isna() & ~waiting & found["reason"].notna(), "failed")
    return found.assign(state=state.fillna("not measured")).drop(columns="measured")
