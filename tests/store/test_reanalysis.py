"""`reanalyse`: several processes derive the rows that one does, and a call that was killed is gone on
with.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, insert, text

from store.rows.transactions import writing
from store.schema.tables import CALIBRATION
from store.write import queue
from store.write.reanalysis import comparisons_by_environment, reanalyse
from store.write.record import derive_pending, record, record_imported
from sweeps.model.outcome import Failure
from tests.orchestrator.commands import in_process
from tests.store.conftest import (
    CPU,
    a_job,
    an_evaluation,
    an_outcome,
    in_visits,
    keep,
    submit,
    table,
)

DERIVED = ("effect_row", "break_even_row", "cost_model_row", "panel_row", "panel_progress")
PENDING = "SELECT * FROM pending_derivation"
BATCH = 4
MARK = "BREAKEVEN_TEST_OF_REANALYSIS"
KILLED = f"""
import os, signal, sys
from store.open.engine import connect
from store.write import reanalysis
reanalysis.BATCH = {BATCH}
steps = iter(range(int(sys.argv[2])))
def show(*_):
    if next(steps, None) is None:
        os.kill(os.getpid(), signal.SIGKILL)
if __name__ == "__main__":
    reanalysis.reanalyse(connect(sys.argv[1]), processes=int(sys.argv[3]), show=show)
"""
"""A program that is killed after so many steps."""


def derived(engine: Engine) -> dict[str, Any]:
    """All derived rows, in the order in which they were inserted."""
    return {of: table(engine, f"SELECT * FROM {of}") for of in DERIVED}


def ordered(engine: Engine) -> dict[str, Any]:
    return {of: sorted(map(str, found)) for of, found in derived(engine).items()}


@pytest.fixture
def filled(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Engine:
    """Curves of two batches in two environments with one failure, and an accuracy, whose derived
    rows were spoilt.
    """
    monkeypatch.setattr("store.write.reanalysis.BATCH", BATCH)
    jobs = [a_job(size, (0.5, 0.7), batch_size=batch) for size in (32, 64, 96) for batch in (1, 4)]
    accuracy = a_job(32, kind="accuracy")
    submit(engine, [*jobs, accuracy])
    failed = Failure(arm=1, reason="error", message="so")
    lost = an_outcome(jobs[0], speedups=(1.5, 0.6), failures=[failed])
    elsewhere = CPU.model_copy(update={"device_name": "Another CPU"})
    visits = [
        visit
        for number, job in enumerate(jobs)
        for visit in in_visits(job, 2, speedups=(1.5, 0.6 + number / 5), seed=number)
    ]
    more = [an_outcome(job, speedups=(1.2, 0.9), environment=elsewhere) for job in jobs[:3]]
    record_imported(engine, [*visits, *more, lost, an_evaluation(accuracy)])
    return engine


def spoil(engine: Engine) -> None:
    with writing(engine) as connection:
        connection.execute(text("DELETE FROM break_even_row"))
        connection.execute(text("UPDATE effect_row SET effect = 7 WHERE compared = 'ratio'"))


def steps(engine: Engine) -> list[int]:
    """Comparisons of each step of a stage."""
    with engine.connect() as connection:
        return [len(batch) for _, batch in comparisons_by_environment(connection)]


def killed(path: Path, after: int, processes: int = 1) -> None:
    command = [sys.executable, "-c", KILLED, str(path), str(after), str(processes)]
    ended = subprocess.run(command, env={**os.environ, MARK: str(path)}, check=False)
    assert ended.returncode == -signal.SIGKILL


def alive(path: Path) -> list[str]:
    """Processes that a killed program left."""
    mark, found = f"{MARK}={path}".encode(), []
    for each in Path("/proc").glob("[0-9]*/environ"):
        try:
            found += [each.parent.name] if mark in each.read_bytes() else []
        except OSError:
            continue  # it has ended, or is another user's
    return found


def test_several_processes_derive_the_rows_that_one_does(filled: Engine, path: Path) -> None:
    """And end with their parent where that is killed; the next call goes on."""
    assert reanalyse(filled, processes=1) == 19
    before = derived(filled)
    assert {of for of, found in before.items() if not found} == set()
    spoil(filled)
    killed(path, 2, processes=2)
    until = time.monotonic() + 30
    while (left := alive(path)) and time.monotonic() < until:
        time.sleep(0.2)
    assert not left
    assert reanalyse(filled, processes=2) == 19
    assert derived(filled) == before


def test_a_killed_call_is_gone_on_with(filled: Engine, path: Path) -> None:
    """Nothing that it derived is derived again, and the rows are those of one call."""
    after = 8
    reanalyse(filled, processes=1)
    before, parts = derived(filled), steps(filled)
    assert len(parts) == 6
    spoil(filled)
    killed(path, after)
    shown: list[tuple[str, int, int]] = []
    curves = reanalyse(filled, processes=1, show=lambda *step: shown.append(step))
    assert len(shown) == 2 * len(parts) - after
    assert curves == sum(parts[after - len(parts) :])
    assert derived(filled) == before
    assert not table(filled, PENDING)
    assert reanalyse(filled, processes=1) == sum(parts)  # a new analysis of everything


def test_what_changed_since_is_derived_anew(filled: Engine, path: Path) -> None:
    """A newer calibration; neither another sweep's analysis nor a dispatcher goes on with it. What
    is measured between a kill and the next call is part of what that derives.
    """
    killed(path, 3)
    left = table(filled, PENDING)
    derive_pending(filled)
    assert reanalyse(filled, "no such sweep") == 0
    assert table(filled, PENDING) == left
    again = an_outcome(a_job(32, (0.5, 0.7)), speedups=(1.5, 0.6), seed=7, ended_at=1.79e9 + 100)
    keep(filled, again)
    assert reanalyse(filled, processes=1) == sum(steps(filled))
    resumed = ordered(filled)
    reanalyse(filled, processes=1)
    assert ordered(filled) == resumed
    killed(path, 3)
    term = dict.fromkeys(("process_sd", "tau", "tau_low", "tau_high"), 0.01)
    of = dict.fromkeys(("freedom", "processes", "contrasts"), 5) | {"calibration_id": "newer"}
    where = {
        "environment": CPU.environment_id,
        "size_class": "10M",
        "created_at": 1.79e9,
        "made_of": "processes",
    }
    with writing(filled) as connection:
        connection.execute(insert(CALIBRATION), {**term, **of, **where})
    assert reanalyse(filled, processes=1) == sum(steps(filled))
    assert not table(filled, PENDING)


def test_curves_that_a_killed_dispatcher_left(engine: Engine, path: Path, tmp_path: Path) -> None:
    """Effects are there at once; curves and panels before a command shows them, as if derived with
    each outcome.
    """
    sweep = submit(engine, [a_job(size) for size in (32, 64, 96)])
    for number, queued in enumerate(queue.claim(engine, sweep, owner="me", limit=9)):
        truth = an_outcome(queued.job, speedups=(0.7 + 0.4 * number,))
        assert record(engine, queued.row, "me", truth, defer=True)
    counts = [len(table(engine, f"SELECT * FROM {of}")) for of in DERIVED[:2]]
    assert (counts, len(table(engine, PENDING))) == ([3, 0], 3)
    counted = ("query", "SELECT count(*) AS n FROM break_even", "--db", str(path))
    shown = in_process(*counted, folder=tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert not table(engine, PENDING)
    before = derived(engine)
    assert before["break_even_row"]
    assert before["panel_row"]
    reanalyse(engine, processes=1)
    assert derived(engine) == before
