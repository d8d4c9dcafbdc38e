"""A metric and a kind are recorded, derived and shown by their declarations alone; a column of
`speedup` needs two files.
"""

import dataclasses
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, inspect, text

from store.open.engine import connect
from store.write.reanalysis import reanalyse
from sweeps.model.kinds import KINDS, KindSpec
from sweeps.model.metrics import METRICS, MetricSpec
from sweeps.model.outcome import MetricValue, Outcome
from tests.store.conftest import a_job, an_outcome, keep, submit

ROOT = Path(__file__).parents[2]
MIGRATION = '''"""What a worker reports of the first call, in the tables of arms and effects."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    for table in ("arm_result", "effect_row"):
        op.add_column(table, sa.Column("first_call_s", sa.Float(), nullable=True))
'''
PROGRAM = """
import sys
from pathlib import Path
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from store.open.engine import connect
from store.write.record import record
from store.schema.tables import model_metadata
from store.read.user_sql import run_query
from sweeps.model.outcome import Outcome
engine = connect(sys.argv[1])
outcome = Outcome.model_validate_json(Path(sys.argv[2]).read_text())
print(record(engine, None, None, outcome))
arms = tuple(arm.model_copy(update={"first_call_s": 1.5}) for arm in outcome.arms)
print(record(engine, None, None, outcome.model_copy(update={"arms": arms, "host": "new"})))
print(run_query(sys.argv[1], "SELECT host, first_call_s FROM speedup ORDER BY host").rows)
with engine.connect() as connection:
    print(compare_metadata(MigrationContext.configure(connection), model_metadata()))
"""


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A metric `toy` that is timed beside latency, a metric `toy_energy` that is read once, and a
    kind `toy_kind` of the first.
    """
    spec = dataclasses.replace(METRICS["latency"], name="toy", label="toy", series=True)
    energy = MetricSpec(name="toy_energy", unit="J", label="toy energy")
    latency = dataclasses.replace(KINDS["latency"], metrics=("latency", "toy"))
    kind: KindSpec = dataclasses.replace(KINDS["latency"], name="toy_kind", metrics=("toy",))
    for name, declared in {"toy": spec, "toy_energy": energy}.items():
        monkeypatch.setitem(METRICS, name, declared)
    for name, changed in {"latency": latency, "toy_kind": kind}.items():
        monkeypatch.setitem(KINDS, name, changed)


def rows(engine: Engine, view: str) -> list[dict[str, Any]]:
    with engine.connect() as connection:
        return [dict(row._mapping) for row in connection.execute(text(f"SELECT * FROM {view}"))]


def with_toy(outcome: Outcome) -> Outcome:
    """The outcome with samples of the metric `toy`, in which the arm is twice as fast, and with the
    energy of each arm.
    """
    assert outcome.samples is not None
    times = tuple((seconds[0], seconds[0] / 2) for seconds in outcome.samples.seconds)
    samples = outcome.samples.model_copy(update={"series": {"toy": times}})
    energy = MetricValue(name="toy_energy", value=3.0, unit="J")
    arms = tuple(arm.model_copy(update={"metrics": (*arm.metrics, energy)}) for arm in outcome.arms)
    return outcome.model_copy(update={"samples": samples, "arms": arms})


@pytest.mark.parametrize(
    ("kind", "metrics"), [("latency", {"latency", "toy"}), ("toy_kind", {"toy"})]
)
@pytest.mark.usefixtures("toy")
def test_a_declared_metric_and_kind_are_stored_and_shown(
    *, path: Path, engine: Engine, kind: str, metrics: set[str]
) -> None:
    """The views `effect`, `speedup` and `arm` have them once the store is opened again."""
    engine.dispose()
    again = connect(str(path))
    assert "toy_energy" in {column["name"] for column in inspect(again).get_columns("arm")}
    job = a_job().model_copy(update={"kind": kind})
    assert keep(again, with_toy(an_outcome(job)))
    for view, value in (("effect", "effect"), ("speedup", "speedup")):
        found: dict[str, Any] = {row["metric"]: row for row in rows(again, view)}
        assert set(found) == metrics
        assert found["toy"][value] == pytest.approx(2)
        assert found["toy"]["kind"] == kind
    assert [row["toy_energy"] for row in rows(again, "arm")] == [3.0, 3.0]
    assert reanalyse(again) == 1
    again.dispose()


def test_a_metric_added_as_contributing_describes_is_read_on_a_store_made_before(
    *, tmp_path: Path, path: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Commands that only read have its column, and leave the store as it is."""
    submit(engine, [job := a_job()], "tiny")
    keep(engine, an_outcome(job))
    engine.dispose()
    source = tmp_path / "source"
    for folder in ("sweeps", "store", "orchestrator", "workers", "webapp"):
        shutil.copytree(ROOT / folder, source / folder)
    declarations = source / "sweeps/model/metrics.py"
    declared = '*_shown("ms", "vision", "lower", device_latency='
    assert declarations.read_text().count(declared) == 1
    added = f'*_shown("ms", "vision", "lower", latency_p95="95th percentile"),\n    {declared}'
    declarations.write_text(declarations.read_text().replace(declared, added))
    before = path.read_bytes()
    monkeypatch.setenv("BREAKEVEN_DB", str(path))
    results = {}
    for command in (
        ["report", "tiny"],
        ["query", "SELECT latency_p95_ms FROM arm", "--format", "json"],
        ["status"],
    ):
        done = subprocess.run(
            [sys.executable, "-m", "orchestrator", *command],
            cwd=source,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.stderr == ""
        results[command[0]] = (done.returncode, done.stdout)
    assert {name: code for name, (code, _) in results.items()} == {
        "report": 0,
        "query": 0,
        "status": 0,
    }
    assert json.loads(results["query"][1]) == [{"latency_p95_ms": None}] * 2
    assert path.read_bytes() == before


def test_a_column_of_speedup_needs_two_files(tmp_path: Path, path: Path, engine: Engine) -> None:
    """A field of an outcome becomes a column by its name in `ReportedColumns` and a migration;
    stores of today gain it.
    """
    outcome = an_outcome(a_job())
    keep(engine, outcome)
    engine.dispose()
    (tmp_path / "outcome.json").write_text(outcome.model_dump_json())
    source = tmp_path / "source"
    for folder in ("sweeps", "store"):
        shutil.copytree(ROOT / folder, source / folder)
    tables = source / "store/schema/measured.py"
    declared = "    implementation: str | None = None\n"
    assert tables.read_text().count(declared) == 1
    tables.write_text(
        tables.read_text().replace(declared, f"{declared}    first_call_s: float | None = None\n")
    )
    command = [sys.executable, "-c", PROGRAM, str(path), str(tmp_path / "outcome.json")]
    migration = source / "store/migrations/versions/0002_first_call.py"
    refused = subprocess.run(command, cwd=source, capture_output=True, text=True, check=False)
    assert "StoreError" in refused.stderr
    migration.write_text(MIGRATION)
    done = subprocess.run(command, cwd=source, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == ["False", "True", "[('here', None), ('new', 1.5)]", "[]"], (
        done.stderr
    )
