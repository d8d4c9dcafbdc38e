"""The command line as its users meet it: exit codes, messages, formats, and a whole run in its own process."""

import csv
import io
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.sweeps import test_outcome
from tests.webapp import simulated

ROOT = Path(__file__).parents[2]
SWEEP = """\
schema: 1
name: tiny
question: Does it run from one end to the other?
defaults: {threads: 1}
axes:
  model: [deit_tiny_patch16_224]
  image_size: [32, 48, 64]
methods:
  - {method: topk, keep_rate: 0.5}
jobs:
  latency: {pairs: {min: 30, max: 30}, budget: 500ms, timeout: 1m}
"""


def breakeven(*arguments: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command in `folder`, as a user would."""
    return subprocess.run(
        [sys.executable, "-m", "orchestrator", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "BREAKEVEN_DB": "", **environment},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose `breakeven.db` holds a sweep with simulated timings."""
    folder = tmp_path_factory.mktemp("stored")
    jobs = [simulated.job(size) for size in simulated.SIZES]
    simulated.store_sweep(str(folder / "breakeven.db"), "quickstart", jobs, simulated.quickstart_answer)
    return folder


def test_help_imports_nothing_slow(tmp_path: Path) -> None:
    """`breakeven --help` is there at once because neither torch, Ray, SQLAlchemy nor pandas is imported for it."""
    program = (
        "import sys; from orchestrator.cli import main; sys.argv = ['breakeven', '--help']\n"
        "try: main()\nexcept SystemExit: pass\n"
        "print(sorted({'torch', 'timm', 'ray', 'sqlalchemy', 'pandas', 'numpy', 'streamlit'} & set(sys.modules)))"
    )
    shown = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert shown.endswith("[]\n")
    assert "Exit codes: 0 answered" in shown


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("plan", str(ROOT / "sweeps/quickstart.yaml")), "8 points x 4 arms, 32 comparisons in 8 jobs"),
        (("status",), "quickstart"),
        (("query", "SELECT count(*) AS n FROM speedup"), "n"),
    ],
    ids=["plan", "status", "query"],
)
def test_quick_commands_import_nothing_slow(stored: Path, arguments: tuple[str, ...], said: str) -> None:
    """A plan, a state and a query are shown without models, Ray, statistics, data frames, table models or migrations."""
    program = (
        f"import sys; from orchestrator.cli import main; sys.argv = ['breakeven', *{arguments!r}]\n"
        "try: main()\nexcept SystemExit as end: code = end.code\n"
        "slow = {'torch', 'timm', 'ray', 'transformers', 'scipy', 'pandas', 'sklearn', 'streamlit', 'altair'}\n"
        "print(code, sorted((slow | {'sqlmodel', 'sqlalchemy.orm', 'alembic', 'rich.console', 'rich.table'}) & set(sys.modules)))"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "BREAKEVEN_DB": str(stored / "breakeven.db")}
    done = subprocess.run([sys.executable, "-c", program], cwd=stored, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.endswith("0 []\n")
    assert said in done.stdout


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("batch_sise: [1]", "did you mean 'batch_size'?"),
        ("image_size: [33]", "not a multiple of"),
        ("model: [deit_tiny_patch16_225]", "did you mean 'deit_tiny_patch16_224'?"),
        ("dtype: [no]", "axes.dtype"),
        ("batch_size: []", "axes.batch_size"),
    ],
)
def test_wrong_sweep_is_told_and_nothing_is_stored(tmp_path: Path, wrong: str, said: str) -> None:
    """A wrong sweep ends with exit code 2 and one line with file, line, key and what would be right; no store appears."""
    lines = SWEEP.splitlines()
    key = wrong.partition(":")[0]
    lines = [text for text in lines if not text.strip().startswith(f"{key}:")]
    at = next(number for number, text in enumerate(lines) if text.startswith("axes:")) + 1
    lines.insert(at, f"  {wrong}")
    (tmp_path / "wrong.yaml").write_text("\n".join(lines) + "\n")

    done = breakeven("run", "wrong.yaml", folder=tmp_path)

    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert f"wrong.yaml:{at + 1}: " in done.stderr
    assert said in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["wrong.yaml"]


def test_device_that_is_not_there_is_refused_at_once(tmp_path: Path) -> None:
    """A sweep for a GPU on a machine without one ends with exit code 2 and the reason, before Ray starts or a store is made."""
    from workers.measure.environment import devices

    if "cuda" in devices():
        pytest.skip("this machine has a GPU")
    (tmp_path / "sweep.yaml").write_text(SWEEP)

    done = breakeven("run", "sweep.yaml", "--device", "cuda", folder=tmp_path)
    assert done.returncode == 2
    assert "the sweep asks for device cuda, and there is only cpu" in done.stderr
    assert not (tmp_path / "breakeven.db").exists()


def test_ray_that_cannot_start_is_one_line(tmp_path: Path) -> None:
    """Where Ray has no place for its files a run ends with exit code 2 and a line that names the place."""
    (tmp_path / "sweep.yaml").write_text(SWEEP)
    done = breakeven("run", "sweep.yaml", folder=tmp_path, RAY_TMPDIR="/nowhere")
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "Ray cannot be started here, because it has no place for its files" in done.stderr
    assert "/nowhere/breakeven-" in done.stderr


@pytest.mark.slow
def test_plan_writes_jobs_that_the_worker_runs_and_import_takes_in(tmp_path: Path) -> None:
    """Plan writes job files, `python -m workers.run` answers one without Ray or store, import stores it once, report shows it."""
    (tmp_path / "sweep.yaml").write_text(SWEEP)
    planned = breakeven("plan", "sweep.yaml", "--jobs", "jobs", "--format", "json", folder=tmp_path)
    files = sorted((tmp_path / "jobs").iterdir())
    assert planned.returncode == 0
    assert json.loads(planned.stdout)["comparisons"] == len(files) == 3
    assert not (tmp_path / "breakeven.db").exists()

    command = [sys.executable, "-m", "workers.run", str(files[0]), "--out", "outcome.json"]
    subprocess.run(command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=True, capture_output=True)
    first = breakeven("import", "outcome.json", "--sweep", "sweep.yaml", folder=tmp_path)
    second = breakeven("import", "outcome.json", folder=tmp_path)

    assert "1 outcomes imported" in first.stdout
    assert "1 of 3 comparisons are answered" in first.stdout
    assert "0 outcomes imported, 1 were in the store already" in second.stdout
    report = json.loads(breakeven("report", "tiny", "--format", "json", folder=tmp_path).stdout)
    assert [(row["source"], row["tokens"], row["model"]) for row in report["speedups"]] == [
        ("imported", 4, "deit_tiny_patch16_224")
    ]


def test_file_that_is_no_outcome_is_refused(tmp_path: Path) -> None:
    """Importing something else says what is wrong with it, and stores nothing."""
    (tmp_path / "wrong.json").write_text('{"job": 1}\n')
    done = breakeven("import", "wrong.json", folder=tmp_path)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "is not an outcome" in done.stderr
    assert not (tmp_path / "breakeven.db").exists()


@pytest.mark.parametrize("which", ["a huge seed", "a start beyond all calendars", "arm 99"])
def test_hostile_outcome_is_one_line_and_nothing_is_imported(tmp_path: Path, which: str) -> None:
    """An outcome that contradicts itself among honest ones is refused with exit code 2, and the honest ones are not stored."""
    change, said = test_outcome.HOSTILE[which]
    (tmp_path / "outcomes").mkdir()
    (tmp_path / "outcomes/1.json").write_text(test_outcome.OUTCOME.model_dump_json())
    (tmp_path / "outcomes/2.json").write_text(test_outcome.changed(change))
    done = breakeven("import", "outcomes", folder=tmp_path)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "2.json is not an outcome" in done.stderr
    assert said in done.stderr
    assert not (tmp_path / "breakeven.db").exists()


def test_run_measures_survives_kill_and_resumes(tmp_path: Path) -> None:
    """A run that is killed with -9 loses at most the job in flight; the next one measures the rest, once, and reports."""
    (tmp_path / "sweep.yaml").write_text(SWEEP)
    command = [sys.executable, "-m", "orchestrator", "run", "sweep.yaml"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "BREAKEVEN_DB": "breakeven.db"}
    process = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("[1/3]"):
            break
    process.send_signal(signal.SIGKILL)
    process.communicate()

    done = breakeven("run", "sweep.yaml", folder=tmp_path)

    assert done.returncode == 0, done.stderr
    assert "1 of 3 comparisons are answered in this environment; 2 jobs left" in done.stdout
    assert "Break-even in tokens" in done.stdout
    assert "Break-even in GMACs" in done.stdout
    assert done.stdout.count("MACs promise") == done.stdout.count("Break-even in tokens") == 1
    assert "breakeven run FILE" not in done.stdout
    with sqlite3.connect(tmp_path / "breakeven.db") as connection:
        assert connection.execute("SELECT count(*), count(DISTINCT comparison_id) FROM pairing").fetchone() == (3, 3)
    connection.close()

    again = breakeven("run", "sweep.yaml", folder=tmp_path)
    assert "3 of 3 comparisons are answered in this environment; 0 jobs left" in again.stdout
    assert "starting Ray" not in again.stdout


def test_a_time_out_before_the_pairs_asked_for_is_no_answer(tmp_path: Path) -> None:
    """A run whose time is up before `pairs: min` ends with exit code 1, the count, and the command that adds pairs."""
    few = SWEEP.replace("[32, 48, 64]", "[32]").replace("min: 30, max: 30", "min: 99999, max: 99999").replace("1m", "8s")
    (tmp_path / "sweep.yaml").write_text(few)

    done = breakeven("run", "sweep.yaml", folder=tmp_path)

    assert done.returncode == 1, done.stderr
    said = " ".join(done.stdout.split())
    assert "1 comparison is insufficient: time was up before the pairs that `pairs: min` asks for" in said
    assert "this adds pairs to them: breakeven run sweep.yaml" in said
    assert "0 of 1 comparisons are answered" in " ".join(breakeven("plan", "sweep.yaml", folder=tmp_path).stdout.split())
    with sqlite3.connect(tmp_path / "breakeven.db") as connection:
        assert connection.execute("SELECT verdict FROM speedup").fetchall() == [("insufficient",)]
    connection.close()


def test_ctrl_c_stops_within_seconds_and_leaves_the_rest_waiting(tmp_path: Path) -> None:
    """Ctrl-C ends a run with exit code 130 within seconds, and what was not measured waits in the queue."""
    (tmp_path / "sweep.yaml").write_text(SWEEP.replace("max: 30}", "max: 100000}").replace("500ms", "40s"))
    command = [sys.executable, "-m", "orchestrator", "run", "sweep.yaml"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "BREAKEVEN_DB": "breakeven.db"}
    process = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        time.sleep(0.2)
        if (tmp_path / "breakeven.db").exists() and "running" in breakeven("status", folder=tmp_path).stdout:
            break
    asked_at = time.monotonic()
    process.send_signal(signal.SIGINT)
    shown, _ = process.communicate(timeout=60)

    assert process.returncode == 130
    assert time.monotonic() - asked_at < 20
    assert "stopped with 3 jobs left; the same command goes on from here" in shown
    assert "3 waiting" in breakeven("status", folder=tmp_path).stdout


def test_report_in_every_format(stored: Path) -> None:
    """The report shows speed-up, interval, what the MACs promise, and break-evens in tokens and GMACs, in each format."""
    shown = breakeven("report", "quickstart", folder=stored).stdout
    assert "Break-even in tokens" in shown
    assert "Break-even in GMACs" in shown
    assert "pays from" in shown
    assert "random weights" in shown

    rows = list(csv.DictReader(io.StringIO(breakeven("report", "quickstart", "--format", "csv", folder=stored).stdout)))
    data = json.loads(breakeven("report", "quickstart", "--format", "json", folder=stored).stdout)
    assert len(rows) == len(data["speedups"]) > 0
    for row, record in zip(rows, data["speedups"], strict=True):
        promised = record["gmacs_baseline"] / (record["gmacs"] + record["gmacs_method"])
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


def test_missing_store_says_what_to_run(tmp_path: Path) -> None:
    """Without a store, reading commands say which command makes one, and make none themselves."""
    for command in (["report", "x"], ["status"], ["query", "SELECT 1"]):
        done = breakeven(*command, folder=tmp_path)
        assert done.returncode == 2
        assert "breakeven run sweeps/quickstart.yaml" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_query_prints_each_format_and_refuses_to_write(stored: Path) -> None:
    """`query` prints tables, CSV, JSON and Markdown, and a write is refused with exit code 2."""
    sql = "SELECT method, count(*) AS n FROM speedup GROUP BY method ORDER BY method"
    as_csv = breakeven("query", sql, "--format", "csv", folder=stored).stdout
    assert as_csv.splitlines()[0] == "method,n"
    records = json.loads(breakeven("query", sql, "--format", "json", folder=stored).stdout)
    assert [record["method"] for record in records] == [line.split(",")[0] for line in as_csv.splitlines()[1:]]
    assert breakeven("query", sql, "--format", "markdown", folder=stored).stdout.startswith("| method | n |")
    refused = breakeven("query", "DELETE FROM sweep", folder=stored)
    assert refused.returncode == 2
    assert len(refused.stderr.splitlines()) == 1


def test_methods_come_from_the_code(tmp_path: Path) -> None:
    """`breakeven methods` lists every method file with its paper and each of its parameters."""
    from workers.methods import every

    listed = {one["method"]: one for one in json.loads(breakeven("methods", "--format", "json", folder=tmp_path).stdout)}
    assert set(listed) == set(every())
    for name, method in every().items():
        assert set(listed[name]["params"]) == set(method.Params.model_fields)
        assert listed[name]["paper"] == method.PAPER
    shown = breakeven("methods", folder=tmp_path).stdout
    assert "arXiv 2210.09461" in shown


def test_json_schema_is_current(tmp_path: Path) -> None:
    """`sweeps/schema.json` is what the code generates today: breakeven schema > sweeps/schema.json."""
    assert breakeven("schema", folder=tmp_path).stdout == (ROOT / "sweeps/schema.json").read_text(encoding="utf-8")


@pytest.mark.slow
def test_doctor_names_the_machine_and_its_noise(tmp_path: Path) -> None:
    """`breakeven doctor` shows device, versions, threads, load, and how far equal arms seem to differ."""
    done = breakeven("doctor", folder=tmp_path)
    assert done.returncode in {0, 1}, done.stderr
    for word in ("cpu", "torch", "threads", "load", "noise on cpu: equal arms seem to differ by at most"):
        assert word in done.stdout


def test_reanalyse_rebuilds_the_same_rows(stored: Path) -> None:
    """Rebuilding the derived rows from the raw samples changes nothing that the views show."""
    before = breakeven("report", "quickstart", "--format", "json", folder=stored).stdout
    assert "comparisons analysed again" in breakeven("reanalyse", folder=stored).stdout
    assert breakeven("report", "quickstart", "--format", "json", folder=stored).stdout == before
