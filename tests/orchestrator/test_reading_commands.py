"""Commands that read a store or the code, as their users meet them: what they print, in each
format, and what they import.
"""

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.plan.planning import job_arm_labels
from store.open.engine import connect
from store.rows.row_mapping import arm_columns
from store.write.submission import label_stored_arms
from sweeps.model.condition import Overrides
from sweeps.model.identity import canonical
from sweeps.model.job import DENSE
from tests.orchestrator.commands import ROOT, breakeven
from tests.webapp import simulated
from workers.methods import all_methods
from workers.methods.arm_labels import params_label


def test_help_imports_nothing_slow(tmp_path: Path) -> None:
    """`breakeven --help` is there at once because neither torch, Ray, SQLAlchemy nor pandas is
    imported for it.
    """
    program = (
        "import sys; from orchestrator.__main__ import main; sys.argv = ['breakeven', '--help']\ntry:"
        " main()\nexcept SystemExit: pass\nprint(sorted({'torch', 'timm', 'ray', 'sqlalchemy',"
        " 'pandas', 'numpy', 'streamlit'} & set(sys.modules)))"
    )
    shown = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    assert shown.endswith("[]\n")
    assert "Exit codes: 0 answered" in shown


def test_quick_commands_import_nothing_slow(stored: Path) -> None:
    """A plan, a state and a query load no models, Ray, statistics, data frames, migrations or table
    models.
    """
    commands = [
        ("plan", str(ROOT / "sweeps/quickstart.yaml")),
        ("status",),
        ("query", "SELECT count(*) AS n FROM speedup"),
    ]
    program = (
        "import sys; from orchestrator.__main__ import main\nslow = {'torch', 'timm', 'ray',"
        " 'transformers', 'scipy', 'pandas', 'sklearn', 'streamlit', 'altair'}\nslow |= {'alembic',"
        " 'sqlmodel', 'sqlalchemy.orm', 'rich.console', 'rich.table'}\n"
        f"for words in {commands!r}:\n    sys.argv = ['breakeven', *words]\n    try: main()\n"
        "    except SystemExit as end: print(end.code, sorted(slow & set(sys.modules)))"
    )
    environment = {"PYTHONPATH": str(ROOT), "BREAKEVEN_DB": str(stored / "breakeven.db")}
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=stored,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.count("0 []\n") == 3
    assert "9 points x 4 arms, 36 comparisons in 99 jobs (11 passes)" in done.stdout
    assert "quickstart" in done.stdout


def test_report_in_every_format(stored: Path) -> None:
    """The report shows speed-up, interval, what the MACs promise, and break-evens in tokens and
    GMACs, in each format.
    """
    shown = breakeven("report", "quickstart", "--detail", folder=stored).stdout
    assert "Break-even in tokens" in shown
    assert "Break-even in GMACs" in shown
    assert "pays at every point measured from" in shown
    assert "random weights" in shown

    rows = list(
        csv.DictReader(
            io.StringIO(breakeven("report", "quickstart", "--format", "csv", folder=stored).stdout)
        )
    )
    data = json.loads(breakeven("report", "quickstart", "--format", "json", folder=stored).stdout)
    assert len(rows) == len(data["speedups"]) > 0
    for row, record in zip(rows, data["speedups"], strict=True):
        promised = record["gmacs_baseline"] / record["gmacs_total"]
        assert record["speedup_macs"] == pytest.approx(promised, rel=1e-5)
        assert float(row["speedup"]) == pytest.approx(record["speedup"])
    text = breakeven("report", "quickstart", "--format", "markdown", folder=stored).stdout
    assert text.startswith("# quickstart\n")
    assert "| method | tokens |" in text


def test_unknown_sweep_names_the_nearest(stored: Path) -> None:
    """A name that is not in the store gets exit code 2 and the nearest one that is."""
    done = breakeven("report", "quikstart", folder=stored)
    assert done.returncode == 2
    assert "did you mean quickstart?" in done.stderr


def test_missing_store_names_the_command_to_run(tmp_path: Path) -> None:
    """Without a store, reading commands name the command that makes one, and make none
    themselves.
    """
    for command in (["report", "x"], ["status"], ["query", "SELECT 1"]):
        done = breakeven(*command, folder=tmp_path)
        assert done.returncode == 2
        assert "breakeven run quickstart" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_methods_come_from_the_code(tmp_path: Path) -> None:
    """`breakeven methods` lists every method file with its paper and each of its parameters."""
    listed = {
        one["method"]: one
        for one in json.loads(breakeven("methods", "--format", "json", folder=tmp_path).stdout)
    }
    assert set(listed) == set(all_methods())
    for name, method in all_methods().items():
        assert set(listed[name]["params"]) == set(method.Params.model_fields)
        assert listed[name]["paper"] == method.PAPER
    shown = breakeven("methods", folder=tmp_path).stdout
    assert "arXiv 2210.09461" in shown


def test_json_schema_is_current(tmp_path: Path) -> None:
    """`sweeps/schema.json` is what the code generates today: breakeven schema >
    sweeps/schema.json.
    """
    assert breakeven("schema", folder=tmp_path).stdout == (ROOT / "sweeps/schema.json").read_text(
        encoding="utf-8"
    )


@pytest.mark.slow
def test_doctor_names_the_machine_and_its_noise(tmp_path: Path) -> None:
    """`breakeven doctor` shows device, versions, disturbances, how far equal arms seem to differ,
    and peaks, which it keeps.

    Without a store nothing is created; with one the next call shows the peaks of this one with
    their age.
    """
    done = breakeven("doctor", folder=tmp_path)
    assert done.returncode in {0, 1}, done.stderr
    words = (
        "cpu",
        "torch",
        "threads",
        "load",
        "quota",
        "heat",
        "clocks",
        "energy",
        "between them, the default",
    )
    for word in (
        *words,
        "noise on cpu: equal arms seem to differ by at most",
        "peak of cpu: ",
        "GFLOP/s in float32",
        "not stored",
    ):
        assert word in done.stdout
    assert list(tmp_path.iterdir()) == []
    for number, age in enumerate(("", " before: ")):
        done = breakeven("doctor", "--db", "store.db", folder=tmp_path)
        assert "peaks are stored with the environment" in done.stdout
        assert age in done.stdout
        counted = breakeven(
            "query",
            "SELECT count(*) AS n FROM peak_row",
            "--format",
            "csv",
            "--db",
            "store.db",
            folder=tmp_path,
        )
        assert counted.stdout == f"n\n{2 * (number + 1)}\n"


def test_reanalyse_rebuilds_the_same_rows(stored: Path) -> None:
    """Rebuilding the derived rows from the raw samples changes nothing that the views show."""
    engine = connect(str(stored / "breakeven.db"))
    label_stored_arms(engine, params_label)  # which commands that submit a sweep do
    engine.dispose()
    before = breakeven("report", "quickstart", "--format", "json", folder=stored).stdout
    assert "comparisons analysed again" in breakeven("reanalyse", folder=stored).stdout
    assert breakeven("report", "quickstart", "--format", "json", folder=stored).stdout == before


def test_labels_of_the_view_are_those_of_reports(stored: Path) -> None:
    """Whether a sweep is submitted or analysed again; parameters are objects in JSON."""
    breakeven("reanalyse", folder=stored)
    sql = "SELECT method, params, arm_label FROM speedup"
    records = json.loads(breakeven("query", sql, "--format", "json", folder=stored).stdout)
    assert records
    for record in records:
        assert record["arm_label"] == params_label(record["method"], canonical(record["params"]))
    job = simulated.job(
        64,
        arms=(
            *simulated.ARMS,
            DENSE.model_copy(update={"overrides": Overrides(runtime="compile")}),
        ),
    )
    labels = job_arm_labels([job])
    for index, arm in enumerate(job.arms):
        columns = arm_columns(job, index)
        assert labels[arm.arm_id] == params_label(columns["method"], columns["params"])
