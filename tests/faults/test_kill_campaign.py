"""The campaign of kills, short, and that its checks find what they look for."""

import contextlib
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from store.open.engine import connect
from store.rows.owners import owner
from store.write.queue import claim
from store.write.record import record
from store.write.submission import NewSweep, submit_sweep
from sweeps.model.condition import Condition
from sweeps.model.job import DENSE, Arm, Job, Pair, Step
from tests.faults import toy
from tests.faults.kill_campaign import SWEEP
from tests.faults.kill_checks import answered, overlaps, problems_of
from workers.measure.descendants import is_running

pytestmark = pytest.mark.ray

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_five_kills_lose_nothing_and_count_nothing_twice(tmp_path: Path) -> None:
    """Two stores, three dispatchers with a Ray each: after five SIGKILLs every comparison is
    answered once, nothing is left.
    """
    command = [
        sys.executable,
        "-m",
        "tests.faults.kill_campaign",
        "--kills",
        "5",
        "--points",
        "6",
        "--folder",
        str(tmp_path),
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (
        done.stdout.splitlines()[-1]
        == "nothing lost, nothing double, exit codes true, nothing left behind"
    )


@pytest.mark.slow
@pytest.mark.parametrize("daemon", ["raylet", "gcs_server"])
def test_run_whose_only_node_is_lost_ends_with_one_and_names_the_next_step(
    tmp_path: Path, daemon: str
) -> None:
    """A process of Ray is killed while jobs run: not wrong usage (2), and not answered (0); the
    same command measures the rest.

    Ray prints nothing about it, and none of its processes is left.
    """
    (tmp_path / "sweep.yaml").write_text(SWEEP.format(name="lost", batch=1, stop=32 + 16 * 29))
    command = [
        sys.executable,
        "-m",
        "tests.faults.toy",
        "run",
        str(tmp_path / "sweep.yaml"),
        "--db",
        str(tmp_path / "store.db"),
    ]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        while answered(tmp_path / "store.db", "lost") == 0:
            assert process.poll() is None
            time.sleep(0.05)
        tree = psutil.Process(process.pid).children(recursive=True)
        next(one for one in tree if is_running(one) and one.name() == daemon).kill()
        printed, _ = process.communicate(timeout=120)
    assert process.returncode == 1, printed
    assert "the last node was lost, with " in printed.splitlines()[-1]
    assert "raylet)" not in printed
    assert "state-dump" not in printed
    assert [one for one in tree if is_running(one)] == []
    assert subprocess.run(command, cwd=ROOT, capture_output=True, check=False).returncode == 0
    assert problems_of(tmp_path / "store.db", {"lost": 90}) == []


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    """A store with a sweep of two jobs, of which each was answered once."""
    found = tmp_path / "store.db"
    engine = connect(str(found))
    jobs = [
        Job(
            condition=Condition(model="deit_tiny_patch16_224", image_size=size),
            arms=(DENSE, Arm(stack=(Step(method="topk", params={"keep_rate": 0.5}),))),
            pairs=(Pair(0, 1),),
        )
        for size in (32, 48)
    ]
    sweep = submit_sweep(engine, NewSweep("kills", "text", "Why?"), jobs, jobs)
    for _ in jobs:
        (queued,) = claim(engine, sweep, owner=owner(), limit=1)
        record(engine, queued.row, owner(), toy.run(queued.job))
    yield found
    engine.dispose()


def test_a_sound_store_has_no_problem(path: Path) -> None:
    """Both comparisons are measured, once, one after the other."""
    assert problems_of(path, {"kills": 2}) == []
    assert answered(path, "kills") == 2
    assert overlaps([path]) == 0
    assert answered(path.with_name("none.db"), "kills") == 0


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (
            "DELETE FROM comparison_attempt WHERE attempt = 1",
            "kills has 2 comparisons; 2 are stored, 1 are measured",
        ),
        (
            "DELETE FROM sweep_comparison_row WHERE rowid = 1",
            "kills has 2 comparisons; 1 are stored, 1 are measured",
        ),
        ("UPDATE job SET state = 'waiting' WHERE id = 1", "1 jobs are waiting"),
        (
            (
                "UPDATE comparison_attempt SET comparison_id = (SELECT comparison_id FROM"
                " comparison_attempt WHERE attempt = 2) WHERE attempt = 1"
            ),
            "2 measurements of",
        ),
    ],
)
def test_what_is_lost_or_double_is_found(path: Path, damage: str, problem: str) -> None:
    """Each kind of loss gives a line that names it."""
    with contextlib.closing(sqlite3.connect(path)) as store, store:
        assert store.execute(damage).rowcount == 1
    assert any(problem in line for line in problems_of(path, {"kills": 2})), problems_of(
        path, {"kills": 2}
    )


def test_measurements_at_the_same_time_are_counted(path: Path) -> None:
    """Two attempts whose spans overlap, in one store or in two."""
    with contextlib.closing(sqlite3.connect(path)) as store, store:
        store.execute(
            "UPDATE attempt SET started_at = (SELECT started_at FROM attempt WHERE id = 1) WHERE"
            " id = 2"
        )
    assert overlaps([path]) == 1
