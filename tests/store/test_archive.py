"""`archive`: samples in Parquet files are those of the store for all that reads them, and a kill
loses none.
"""

import os
import signal
import sqlite3
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from sqlalchemy import Engine

from store.errors import StoreError
from store.open.engine import connect
from store.read.evidence.evidence import point_evidence
from store.rows import samples
from store.views import public
from store.write import archive
from store.write.archive import Archived, archive_samples
from store.write.merge import merge_stores, stored_outcome
from store.write.public_store import public_frames
from store.write.reanalysis import reanalyse
from store.write.record import record_imported
from sweeps.model.outcome import Outcome
from tests.fixtures.sql_rows import rows
from tests.orchestrator.commands import breakeven
from tests.store.conftest import a_job, an_outcome, in_visits, submit, two_slots
from tests.store.language_fixtures import a_generation, a_generation_job

DAY = 86_400.0
NEW, OLD = 1_790_000_000.0, 1_780_000_000.0
KILLED = """
import os, signal, sys
from store.open.engine import connect
from store.write import archive
archive.ATTEMPTS_IN_A_FILE = 3
real, where, left = getattr(archive, sys.argv[2]), sys.argv[3], 2
def stop(*given):
    global left
    left -= 1
    if not left and where == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    found = real(*given)
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)
    return found
setattr(archive, sys.argv[2], stop)
archive.archive_samples(connect(sys.argv[1]), float(sys.argv[4]))
"""
"""A program that is killed before or after it calls a function of the module a second time."""


@pytest.fixture
def outcomes(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> list[Outcome]:
    """Old visits, one with bursts and device times, a generation with series, and a new outcome, all
    recorded.
    """
    monkeypatch.setattr(archive, "ATTEMPTS_IN_A_FILE", 3)
    monkeypatch.setattr(archive, "GROUP", 2)
    jobs = [a_job(size) for size in (32, 64, 96)]
    generation = a_generation_job()
    submit(engine, [*jobs, generation])
    visits = [visit for job in jobs for visit in in_visits(job, 2, ended_at=OLD, speedups=(1.3,))]
    plain = an_outcome(jobs[0], ended_at=OLD + 60)
    slots = two_slots(plain).samples
    assert slots is not None
    full = two_slots(plain, event_seconds=slots.seconds, bursts=[[0.01, 0.02], [0.03, 0.04]])
    spoken = a_generation(generation, ended_at=OLD + 80)
    recorded = [*visits, full, spoken, an_outcome(jobs[1], ended_at=NEW)]
    assert record_imported(engine, recorded) == len(recorded)
    return recorded


def shown(engine: Engine) -> dict[str, Any]:
    """All that reads samples, or could."""
    reanalyse(engine)
    found: dict[str, Any] = {
        view: sorted(map(str, rows(engine, f"SELECT * FROM {view}"))) for view in public.VIEWS
    }
    attempts = [row["attempt"] for row in rows(engine, "SELECT attempt FROM sample ORDER BY 1")]
    with engine.connect() as connection:
        found["outcomes"] = [stored_outcome(connection, attempt) for attempt in attempts]
    comparisons = rows(engine, "SELECT comparison_id, environment, host FROM speedup")
    places = [tuple(row.values()) for row in comparisons]
    found["evidence"] = sorted(str(point_evidence(engine, *place)) for place in set(places))
    sweeps = {row["sweep"] for row in rows(engine, "SELECT sweep FROM sweep_comparison")}
    found["published"] = public_frames(engine, sweeps, "all")["sample"].to_csv()
    return found


def kept(engine: Engine) -> list[str | None]:
    """By attempt where its samples are."""
    return [row["archive"] for row in rows(engine, "SELECT archive FROM sample ORDER BY attempt")]


def test_everything_answers_from_the_archive(
    engine: Engine, outcomes: list[Outcome], path: Path, tmp_path: Path
) -> None:
    """Views, `reanalyse`, evidence, what is published, and merging; the new outcome stays."""
    before = shown(engine)
    moved = archive_samples(engine, NEW - DAY)
    assert (moved.folder, moved.attempts) == (tmp_path / "breakeven-samples", len(outcomes) - 1)
    assert moved.stored_bytes > 0
    files = sorted(moved.folder.iterdir())
    assert moved.file_bytes == sum(file.stat().st_size for file in files)
    assert len(files) == 3
    assert [name is None for name in kept(engine)] == [False] * (len(outcomes) - 1) + [True]
    assert not rows(
        engine, "SELECT * FROM sample WHERE archive IS NOT NULL AND seconds IS NOT NULL"
    )
    assert shown(engine) == before
    assert archive_samples(engine, NEW - DAY) == Archived(moved.folder)
    other = connect(str(tmp_path / "other.db"))
    assert merge_stores(other, engine).attempts == len(outcomes)
    assert [name for name in kept(other) if name] == []
    assert shown(other)["outcomes"] == before["outcomes"]
    other.dispose()
    table = pd.concat(map(pd.read_parquet, files)).query("metric == 'wall'")
    first = outcomes[0].samples
    assert first is not None
    row = table.set_index("attempt").loc[1]
    assert row["seconds"].reshape(row["rounds"], row["columns"]).tolist() == [
        list(times) for times in first.seconds
    ]


@pytest.mark.parametrize(
    ("function", "when"), [("_write", "before"), ("_write", "after"), ("_forget", "after")]
)
def test_a_kill_loses_nothing(
    engine: Engine, outcomes: list[Outcome], path: Path, function: str, when: str
) -> None:
    """What the transaction that was killed had written is removed by the next call."""
    before = shown(engine)
    command = [sys.executable, "-c", KILLED, str(path), function, when, str(NEW - DAY)]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    assert sum(name is not None for name in kept(engine)) == 3
    assert shown(engine) == before
    moved = archive_samples(engine, NEW - DAY)
    assert moved.attempts == len(outcomes) - 4
    names = {name for name in kept(engine) if name}
    assert {f"{moved.folder.name}/{file.name}" for file in moved.folder.iterdir()} == names
    assert shown(engine) == before


def test_marks_of_other_stores_and_of_ended_transactions(
    engine: Engine, outcomes: list[Outcome], path: Path, tmp_path: Path
) -> None:
    """A folder may be that of several stores."""
    folder = tmp_path / "elsewhere" / "samples"
    archive_samples(engine, NEW - DAY, folder)
    assert {Path(str(name)).parent.name for name in kept(engine)[:-1]} == {"samples"}
    (named, *_) = folder.iterdir()
    ended, foreign = (folder / f"{name}{archive.UNFINISHED}" for name in (named.name, "theirs"))
    ended.write_text(str(path))
    foreign.write_text("postgresql://host/other")
    (folder / "theirs").touch()
    archive_samples(engine, NEW - DAY, folder)
    assert (named.exists(), ended.exists(), foreign.exists()) == (True, False, True)
    assert (folder / "theirs").exists()


@pytest.mark.usefixtures("outcomes")
@pytest.mark.parametrize("damage", ["gone", "empty", "another"])
def test_what_is_missing_is_named(
    engine: Engine, tmp_path: Path, damage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one line; views answer all the same."""
    before = rows(engine, "SELECT * FROM speedup")
    folder = archive_samples(engine, NEW - DAY).folder
    files = sorted(
        folder.iterdir(), key=lambda file: kept(engine).index(f"{folder.name}/{file.name}")
    )
    if damage == "gone":
        folder.rename(tmp_path / "moved")
    elif damage == "empty":
        files[0].write_bytes(b"")
    else:
        files[0].write_bytes(files[-1].read_bytes())
    samples._row_group.cache_clear()
    samples._first_attempts.cache_clear()
    assert rows(engine, "SELECT * FROM speedup") == before
    with pytest.raises(StoreError) as raised:
        reanalyse(engine)
    message = str(raised.value)
    assert str(files[0]) in message
    assert "\n" not in message
    assert ("bring the folder" in message) == (damage != "another")


def test_the_command(engine: Engine, outcomes: list[Outcome], path: Path, tmp_path: Path) -> None:
    day = datetime.fromtimestamp(NEW - DAY, UTC).strftime("%Y-%m-%d")
    arguments = ("archive", "--before", day, "--db", str(path), "--to", "there")
    first, again = (breakeven(*arguments, folder=tmp_path).stdout for _ in range(2))
    assert first.startswith(f"samples of {len(outcomes) - 1} attempts moved to {tmp_path}/there: ")
    assert f"python -m sqlite3 {path} VACUUM" in first
    assert again.startswith("samples of 0 attempts moved")
    size = path.stat().st_size
    engine.dispose()
    with sqlite3.connect(path) as store:
        store.execute("VACUUM")
    store.close()
    assert path.stat().st_size <= size


@pytest.mark.usefixtures("outcomes")
def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    refused = breakeven(
        "archive",
        "--before",
        "2027-01-01",
        "--to",
        "file/below",
        "--db",
        "breakeven.db",
        folder=tmp_path,
    )
    assert refused.returncode == 2
    assert refused.stderr.count("\n") == 1
    assert os.fspath(tmp_path / "file/below") in refused.stderr
