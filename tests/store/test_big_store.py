"""An import derives the curves of outcomes recorded one by one."""

from pathlib import Path
from typing import Any

from store.open.engine import connect
from store.write.record import record_imported
from tests.fixtures.big_outcomes import ARMS, outcome, vision_job
from tests.store.conftest import submit, table


def test_an_import_derives_the_curves_of_outcomes_one_by_one(tmp_path: Path) -> None:
    """Curves are derived when all points are there, to the same rows."""
    sizes = [(size, batch) for size in (32, 64, 96) for batch in (1, 4, 16)]
    jobs = [vision_job("latency", size, ARMS[:16:5], batch_size=batch) for size, batch in sizes]
    outcomes = [outcome(job, number) for number, job in enumerate(jobs)]

    def rows(name: str, parts: list[list[Any]]) -> list[list[str]]:
        engine = connect(str(tmp_path / name))
        submit(engine, jobs)
        for part in parts:
            record_imported(engine, part)
        tables = ("break_even_row", "cost_model_row")
        found = [sorted(map(repr, table(engine, f"SELECT * FROM {of}"))) for of in tables]
        engine.dispose()
        return found

    whole = rows("whole.db", [outcomes])
    assert all(whole)
    assert whole == rows("parts.db", [[one] for one in outcomes])
