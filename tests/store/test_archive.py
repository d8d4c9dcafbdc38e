"""`archive`: samples in Parquet files are those of the store for all that reads them, and a kill
loses none.
"""

import os
import signal
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
from tests.orchestrator.commands import in_process
from tests.store.conftest import (
    a_job,
    an_outcome,
    in_visits,
    seconds_of,
    submit,
    table,
    two_slots,
)
from tests.store.language_fixtures import a_generation, a_generation_job

DAY = 86_400.0
NEW, OLD = 1_790_000_000.0, 1_780_000_000.0
KILLED = """
import os, signal, sys
from store.open.engine import connect
from store.write import archive
archive.ATTEMPTS_IN_A_FILE = 3
real, left = getattr(archive, sys.argv[2]), 2
def stop(*given):
    global left
    left -= 1
    found = real(*given)
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)
    return found
setattr(archive, sys.argv[2], stop)
archive.archive_samples(connect(sys.argv[1]), float(sys.argv[3]))
"""
"""A program that is killed after it calls a function of the module a second time."""


@pytest.fixture
def outcomes(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> list[Outcome]:
    """Old visits, one with bursts and device times, a generation with series, and a new outcome, all
    recorded.
    """
    monkeypatch.setattr(archive, "ATTEMPTS_IN_A_FILE", 3)
    monkeypatch.setattr(archive, "GROUP", 2)
    jobs, generation = [a_job(size) for size in (32, 64, 96)], a_generation_job()
    submit(engine, [*jobs, generation])
    visits = [visit for job in jobs for visit in in_visits(job, 2, ended_at=OLD, speedups=(1.3,))]
    plain = an_outcome(jobs[0], ended_at=OLD + 60)
    device = tuple(map(tuple, seconds_of(two_slots(plain)).tolist()))
    full = two_slots(plain, event_seconds=device, bursts=[[0.01, 0.02], [0.03, 0.04]])
    generated = a_generation(generation, ended_at=OLD + 80)
    recorded = [*visits, full, generated, an_outcome(jobs[1], ended_at=NEW)]
    assert record_imported(engine, recorded) == len(recorded)
    return recorded


def shown(engine: Engine) -> dict[str, Any]:
    """All that reads samples, or could."""
    reanalyse(engine)
    found: dict[str, Any] = {
        view: sorted(map(str, table(engine, f"SELECT * FROM {view}"))) for view in public.VIEWS
    }
    with engine.connect() as connection:
        attempts = table(engine, "SELECT attempt FROM sample ORDER BY 1")
        found["outcomes"] = [stored_outcome(connection, attempt) for (attempt,) in attempts]
    places = set(table(engine, "SELECT comparison_id, environment, host FROM speedup"))
    found["evidence"] = sorted(str(point_evidence(engine, *place)) for place in places)
    sweeps = [name for (name,) in table(engine, "SELECT DISTINCT sweep FROM sweep_comparison")]
    found["published"] = public_frames(engine, sweeps, "all")["sample"].to_csv()
    return found


def kept(engine: Engine) -> list[str | None]:
    """By attempt where its samples are."""
    return [name for (name,) in table(engine, "SELECT archive FROM sample ORDER BY attempt")]


def test_everything_answers_from_the_archive(
    engine: Engine, outcomes: list[Outcome], tmp_path: Path
) -> None:
    """Views, `reanalyse`, evidence, what is published, and merging; the new outcome stays."""
    before = shown(engine)
    assert before["outcomes"] == outcomes
    moved = archive_samples(engine, NEW - DAY)
    assert (moved.folder, moved.attempts) == (tmp_path / "breakeven-samples", len(outcomes) - 1)
    files = sorted(moved.folder.iterdir())
    assert moved.file_bytes == sum(file.stat().st_size for file in files)
    assert (len(files), moved.stored_bytes > 0) == (3, True)
    assert [name is None for name in kept(engine)] == [False] * (len(outcomes) - 1) + [True]
    assert not table(engine, "SELECT 1 FROM sample WHERE archive <> '' AND seconds IS NOT NULL")
    assert shown(engine) == before
    assert archive_samples(engine, NEW - DAY) == Archived(moved.folder)
    other = connect(str(tmp_path / "other.db"))
    assert merge_stores(other, engine).attempts == len(outcomes)
    assert set(kept(other)) == {None}
    with other.connect() as connection:
        numbers = range(1, len(outcomes) + 1)
        assert [stored_outcome(connection, number) for number in numbers] == outcomes
    other.dispose()
    read = pd.concat(map(pd.read_parquet, files)).query("metric == 'wall'")
    row = read.set_index("attempt").loc[1]
    first = row["seconds"].reshape(row["rounds"], row["columns"])
    assert first.tolist() == seconds_of(outcomes[0]).tolist()


@pytest.mark.parametrize("function", ["_write", "_forget"])
def test_a_kill_loses_nothing(
    engine: Engine, outcomes: list[Outcome], path: Path, function: str
) -> None:
    """What the transaction that was killed had written is removed by the next call."""
    before = shown(engine)
    command = [sys.executable, "-c", KILLED, str(path), function, str(NEW - DAY)]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    assert sum(name is not None for name in kept(engine)) == 3
    moved = archive_samples(engine, NEW - DAY)
    assert moved.attempts == len(outcomes) - 4
    names = {name for name in kept(engine) if name}
    assert {f"{moved.folder.name}/{file.name}" for file in moved.folder.iterdir()} == names
    assert shown(engine) == before


@pytest.mark.usefixtures("outcomes")
def test_marks_of_other_stores_and_of_ended_transactions(
    engine: Engine, path: Path, tmp_path: Path
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
def test_what_is_missing_is_named(engine: Engine, tmp_path: Path) -> None:
    """In one line; views answer all the same."""
    before = table(engine, "SELECT * FROM speedup")
    folder = archive_samples(engine, NEW - DAY).folder
    first, last = (tmp_path / str(kept(engine)[place]) for place in (0, -2))
    content = first.read_bytes()
    for damage, back in ((last.read_bytes(), False), (b"", True), (None, True)):
        first.write_bytes(damage or b"")
        if damage is None:
            first.write_bytes(content)
            folder.rename(tmp_path / "moved")
        samples._row_group.cache_clear()
        samples._first_attempts.cache_clear()
        assert table(engine, "SELECT * FROM speedup") == before
        with pytest.raises(StoreError) as raised:
            reanalyse(engine)
        message = str(raised.value)
        assert str(first) in message
        assert "\n" not in message
        assert ("bring the folder" in message) == back


def test_the_command(outcomes: list[Outcome], path: Path, tmp_path: Path) -> None:
    """The command prints what was moved; a folder that cannot be made is refused in one line."""

    def archived(day: str, folder: str) -> Any:
        arguments = ("archive", "--before", day, "--db", str(path), "--to", folder)
        return in_process(*arguments, folder=tmp_path)

    (tmp_path / "file").touch()
    refused = archived("2027-01-01", "file/below")
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert os.fspath(tmp_path / "file/below") in refused.stderr
    day = datetime.fromtimestamp(NEW - DAY, UTC).strftime("%Y-%m-%d")
    first, again = (archived(day, "there").stdout for _ in range(2))
    assert first.startswith(f"samples of {len(outcomes) - 1} attempts moved to {tmp_path}/there: ")
    assert f"python -m sqlite3 {path} VACUUM" in first
    assert again.startswith("samples of 0 attempts moved")
