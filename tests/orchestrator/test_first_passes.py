"""What is known after the first pass and after Ctrl-C, in the state and in the report; and the
limit of one stretch in a plan.
"""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from orchestrator.plan.planning import load_sweep
from orchestrator.plan.preview import preview
from store.open.engine import connect
from store.write.record import record
from store.write.submission import NewSweep, submit_sweep
from tests.faults import toy
from tests.fixtures.sql_rows import rows
from tests.orchestrator.commands import ROOT, SWEEP, breakeven, in_process
from tests.orchestrator.conftest import Store
from tests.store.conftest import a_job, in_visits

PASSES = 6
TEXT = SWEEP.replace(
    "pairs: {min: 30, max: 30}, budget: 15s", f"budget: 6s, passes: {PASSES}"
).replace("threads: 1", f"threads: 1, seed: {toy.SEED}")
"""Whose workers answer in a fraction of a second."""


def store_visits(store: Store, visits: int) -> None:
    """The first visits of a sweep of twelve at three sizes."""
    jobs = [a_job(size) for size in (64, 96, 224)]
    submit_sweep(
        store.engine,
        NewSweep("grid", "text", "Does it pay?"),
        [one for job in jobs for one in job.comparisons()],
        [],
    )
    for job in jobs:
        for outcome in in_visits(job, 12, speedups=(1.3,))[:visits]:
            record(store.engine, None, None, outcome)


def test_the_state_of_a_sweep_shows_every_point(store: Store) -> None:
    """After one pass each point has a value with a wide interval, and the curve a claim."""
    store_visits(store, 1)
    shown = breakeven("status", "grid", "--db", str(store.path), folder=store.path.parent).stdout
    points = [
        line
        for line in shown.splitlines()
        if line.startswith("topk keep_rate=0.5") and line.endswith(" 1")
    ]
    assert [line.split()[2] for line in points] == ["16", "36", "196"]
    assert all("[" in line and "faster" in line for line in points)
    assert "pays at every point measured, 16 to 196 tokens" in shown
    assert (
        "speed-up ["
        not in breakeven("status", "--db", str(store.path), folder=store.path.parent).stdout
    )


def test_a_sweep_of_which_nothing_is_known_has_no_answer(store: Store) -> None:
    """Only its jobs are listed."""
    jobs = [a_job(64)]
    submit_sweep(
        store.engine, NewSweep("grid", "text", "Does it pay?"), list(jobs[0].comparisons()), jobs
    )
    shown = breakeven("status", "grid", "--db", str(store.path), folder=store.path.parent).stdout
    assert "1 waiting" in shown
    assert "speed-up" not in shown


@pytest.mark.parametrize(("passes", "limits"), [("", 1), (", passes: 12", 0)])
def test_a_plan_names_what_one_stretch_can_show(passes: str, limits: int) -> None:
    """Without passes no interval is narrower than what is assumed of visits."""
    text = SWEEP.replace("budget: 15s", f"budget: 50s{passes}")
    found = preview(load_sweep("tiny.yaml", auto="cpu", text=text)).limits
    assert len(found) == limits
    for line in found:
        assert "no interval of a speed-up is narrower than ±7.7 %: `passes: 12`" in line


def visits(folder: Path) -> dict[int, int]:
    """Visits of each size that has an interval."""
    engine = connect(str(folder / "breakeven.db"))
    found = rows(engine, "SELECT image_size, rounds FROM speedup WHERE speedup_low IS NOT NULL")
    engine.dispose()
    return {row["image_size"]: row["rounds"] for row in found}


@contextmanager
def interrupted_after(folder: Path, number: int) -> Iterator[None]:
    """Ctrl-C in this process once the store has so many visits, unless the block ends before."""
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(0.05):
            if sum(visits(folder).values()) >= number:
                signal.raise_signal(signal.SIGINT)
                return

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()


@pytest.mark.ray
@pytest.mark.usefixtures("shared_ray")
def test_a_run_that_is_killed_and_interrupted_goes_on(tmp_path: Path) -> None:
    """Killed with -9 in its second pass or later it loses at most the visit in flight, and all
    sizes have an interval, from visits that differ by one at most; so after Ctrl-C. The next run
    measures the rest, once, and reports.
    """
    (tmp_path / "tiny.yaml").write_text(TEXT)
    command = [sys.executable, "-u", "-m", "tests.faults.toy", "run", "tiny.yaml"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "BREAKEVEN_DB": "breakeven.db"}
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        next(line for line in process.stdout if f"pass 2 of {PASSES}" in line)
        process.kill()
    first = visits(tmp_path)
    assert set(first) == {32, 48, 64}
    assert max(first.values()) - min(first.values()) <= 1
    with interrupted_after(tmp_path, sum(first.values()) + 2):
        stopped = in_process("run", "tiny.yaml", folder=tmp_path)
    assert stopped.returncode == 130, stopped.stdout
    assert "the same command goes on from here" in stopped.stdout
    second = visits(tmp_path)
    assert sum(second.values()) >= sum(first.values()) + 2
    assert max(second.values()) - min(second.values()) <= 1
    ended = in_process("run", "tiny.yaml", folder=tmp_path)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert f"pass {PASSES} of {PASSES}" in ended.stdout
    assert ended.stdout.count("break-even, tokens") == 1
    assert "breakeven run FILE" not in ended.stdout
    assert visits(tmp_path) == dict.fromkeys((32, 48, 64), PASSES)
    assert not list(tmp_path.glob("breakeven.db-*")), "the file alone holds all of it"
    again = in_process("run", "tiny.yaml", folder=tmp_path)
    assert "3 of 3 comparisons are answered in this environment; 0 jobs left" in again.stdout
    assert "starting Ray" not in again.stdout
