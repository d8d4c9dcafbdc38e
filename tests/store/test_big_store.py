"""The generated big store has content for every page, and its curves are those of outcomes recorded
one by one.
"""

from pathlib import Path
from typing import Any

from sqlalchemy import text

from store.open.engine import connect, connect_readonly
from store.read.queries import sweep_summaries
from store.write.record import record_imported
from store.write.submission import NewSweep, submit_sweep
from tests.fixtures import big_store
from tests.fixtures.big_outcomes import ARMS, outcome, vision_job

VIEWS = (
    "speedup",
    "break_even",
    "cost_model",
    "accuracy",
    "quality",
    "generation",
    "failures",
    "profile",
    "kernel",
    "execution",
)


def test_every_view_has_rows(tmp_path: Path) -> None:
    """Also failures with a traceback, flags, jobs in every state and a sweep in two
    environments.
    """
    path = tmp_path / "big.db"
    big_store.fill(path, 300)
    engine = connect_readonly(str(path))
    found = {sweep["name"]: sweep for sweep in sweep_summaries(engine)}
    assert list(found) == ["large", "repeated", "language", "running"]
    assert found["large"]["comparisons"] > 300
    assert (found["running"]["waiting"], found["running"]["running"]) == (3, 1)
    with engine.connect() as connection:
        empty = [
            view
            for view in VIEWS
            if not connection.execute(text(f"SELECT count(*) FROM {view}")).scalar()
        ]
        environments = connection.execute(
            text("SELECT count(DISTINCT environment) FROM speedup")
        ).scalar()
    engine.dispose()
    assert (empty, environments) == ([], 3)


def test_an_import_derives_the_curves_of_outcomes_one_by_one(tmp_path: Path) -> None:
    """Curves are derived when all points are there, to the same rows."""
    jobs = [
        vision_job("latency", size, ARMS[:16:3], batch_size=batch)
        for size in (32, 64, 96, 128)
        for batch in (1, 4, 16)
    ]
    outcomes = [outcome(job, number) for number, job in enumerate(jobs)]

    def rows(name: str, parts: list[list[Any]]) -> list[list[tuple[Any, ...]]]:
        engine = connect(str(tmp_path / name))
        submit_sweep(engine, NewSweep("sweep", "text", "Does it pay?"), jobs, [])
        for part in parts:
            record_imported(engine, part)
        with engine.connect() as connection:
            found = [
                sorted(map(tuple, connection.execute(text(f"SELECT * FROM {table}"))), key=repr)
                for table in ("break_even_row", "cost_model_row")
            ]
        engine.dispose()
        return found

    assert rows("whole.db", [outcomes]) == rows("parts.db", [[one] for one in outcomes])
