"""A metric and a kind are recorded, derived and shown by their declarations alone; a column of
`speedup` needs two files.
"""

import dataclasses
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import Engine, inspect

from store.open.engine import connect
from store.write.reanalysis import reanalyse
from sweeps.model.kinds import KINDS, KindSpec
from sweeps.model.metrics import METRICS, MetricSpec
from sweeps.model.outcome import MetricValue, Outcome
from tests.store.conftest import (
    a_job,
    an_outcome,
    keep,
    seconds_of,
    submit,
    table,
    with_arms,
    with_samples,
)

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


def copied(tmp_path: Path, *folders: str) -> Path:
    """Folders of the source, to be changed."""
    for folder in folders:
        shutil.copytree(ROOT / folder, tmp_path / "source" / folder)
    return tmp_path / "source"


def executed(source: Path, *command: str) -> "subprocess.CompletedProcess[str]":
    done = [sys.executable, *command]
    return subprocess.run(done, cwd=source, capture_output=True, text=True, check=False)


def with_toy(outcome: Outcome) -> Outcome:
    """The outcome with samples of the metric `toy`, in which the arm is twice as fast, and with the
    energy of each arm.
    """
    times = tuple((first, first / 2) for first, _ in seconds_of(outcome).tolist())
    energy = MetricValue(name="toy_energy", value=3.0, unit="J")
    metrics = [{"metrics": (*arm.metrics, energy)} for arm in outcome.arms]
    return with_arms(with_samples(outcome, series={"toy": times}), *metrics)


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
    for view in ("effect", "speedup"):
        found = {
            name: more for name, *more in table(again, f"SELECT metric, kind, {view} FROM {view}")
        }
        assert set(found) == metrics
        assert found["toy"] == [kind, pytest.approx(2)]
    assert table(again, "SELECT toy_energy FROM arm") == [(3.0,), (3.0,)]
    assert reanalyse(again) == 1
    again.dispose()


def test_a_metric_added_as_contributing_describes_is_read_on_a_store_made_before(
    *, tmp_path: Path, path: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Commands that only read have its column, and leave the store as it is."""
    submit(engine, [job := a_job()], "tiny")
    keep(engine, an_outcome(job))
    engine.dispose()
    source = copied(tmp_path, "sweeps", "store", "orchestrator", "workers", "webapp")
    declarations = source / "sweeps/model/metrics.py"
    declared = '*_shown("ms", "vision", "lower", device_latency='
    assert declarations.read_text().count(declared) == 1
    added = f'*_shown("ms", "vision", "lower", latency_p95="95th percentile"),\n    {declared}'
    declarations.write_text(declarations.read_text().replace(declared, added))
    before = path.read_bytes()
    monkeypatch.setenv("BREAKEVEN_DB", str(path))
    column = ["query", "SELECT latency_p95_ms FROM arm", "--format", "json"]
    for command, shown in ((["report", "tiny"], "tiny"), (column, "latency_p95_ms")):
        done = executed(source, "-m", "orchestrator", *command)
        assert (done.returncode, done.stderr, shown in done.stdout) == (0, "", True)
    assert json.loads(done.stdout) == [{"latency_p95_ms": None}] * 2
    assert path.read_bytes() == before


def test_a_column_of_speedup_needs_two_files(tmp_path: Path, path: Path, engine: Engine) -> None:
    """A field of an outcome becomes a column by its name in `ReportedColumns` and a migration;
    stores of today gain it.
    """
    outcome = an_outcome(a_job())
    keep(engine, outcome)
    engine.dispose()
    (tmp_path / "outcome.json").write_text(outcome.model_dump_json())
    source = copied(tmp_path, "sweeps", "store")
    tables = source / "store/schema/measured.py"
    declared = "    implementation: str | None = None\n"
    assert tables.read_text().count(declared) == 1
    tables.write_text(
        tables.read_text().replace(declared, f"{declared}    first_call_s: float | None = None\n")
    )
    command = ("-c", PROGRAM, str(path), str(tmp_path / "outcome.json"))
    assert "StoreError" in executed(source, *command).stderr
    (source / "store/migrations/versions/0002_first_call.py").write_text(MIGRATION)
    done = executed(source, *command)
    shown = ["False", "True", "[('here', None), ('new', 1.5)]", "[]"]
    assert done.stdout.splitlines() == shown, done.stderr
