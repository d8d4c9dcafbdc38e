"""What is known after the first pass and after Ctrl-C, in the state and in the report; and the
limit of one stretch in a plan.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.plan.planning import load_sweep
from orchestrator.plan.preview import preview
from store.open.engine import connect
from store.write.record import record
from store.write.submission import NewSweep, submit_sweep
from tests.fixtures.sql_rows import rows
from tests.orchestrator.commands import ROOT, SWEEP, breakeven, in_process
from tests.orchestrator.conftest import Store
from tests.store.conftest import a_job, in_visits

TEXT = SWEEP.replace(
    "pairs: {min: 30, max: 30}, budget: 15s",
    "pairs: {min: 180, max: 6000}, budget: 60s, passes: 60",
)


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


@pytest.mark.parametrize("visits", [1, 4])
def test_the_state_of_a_sweep_shows_every_point(store: Store, visits: int) -> None:
    """After one pass each point has a value with a wide interval, and the curve a claim."""
    store_visits(store, visits)
    shown = breakeven("status", "grid", "--db", str(store.path), folder=store.path.parent).stdout
    points = [
        line
        for line in shown.splitlines()
        if line.startswith("topk keep_rate=0.5") and line.endswith(f" {visits}")
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


@pytest.mark.ray
@pytest.mark.usefixtures("shared_ray")
def test_a_run_that_is_ended_leaves_a_whole_coarser_curve(
    tmp_path: Path,
) -> None:
    """By Ctrl-C in its second pass or later, or by the time that is up: all sizes have an interval,
    from visits that differ by one at most.
    """
    (tmp_path / "tiny.yaml").write_text(TEXT)
    command = [sys.executable, "-u", "-m", "orchestrator", "run", "tiny.yaml"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "BREAKEVEN_DB": "breakeven.db"}
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        next(line for line in process.stdout if "pass 2 of 60" in line)
        process.send_signal(signal.SIGINT)
        shown, _ = process.communicate(timeout=60)
    assert process.returncode == 130, shown
    assert "the same command goes on from here" in shown
    before = visits(tmp_path)
    assert [size for size, _ in before] == [32, 48, 64], shown
    assert {number for _, number in before} <= {1, 2, 3, 4}
    assert breakeven("report", "tiny", "--detail", folder=tmp_path).stdout.count("[") >= 3
    after = before
    for _ in range(4):  # a busy machine may start its workers for 10 s
        in_process("run", "tiny.yaml", "--time", "10s", folder=tmp_path)
        after = visits(tmp_path)
        assert max(number for _, number in after) - min(number for _, number in after) <= 1
        if all(new > old for (_, new), (_, old) in zip(after, before, strict=True)):
            break
    else:
        pytest.fail(f"no size has more visits: {before}, then {after}")
    assert "180 jobs" in in_process("plan", "tiny.yaml", folder=tmp_path).stdout


def visits(folder: Path) -> list[tuple[int, int]]:
    """Size and visits of each speed-up that has an interval, smallest first."""
    engine = connect(str(folder / "breakeven.db"))
    found = rows(
        engine,
        "SELECT image_size, rounds FROM speedup WHERE speedup_low IS NOT NULL ORDER BY image_size",
    )
    engine.dispose()
    return [(row["image_size"], row["rounds"]) for row in found]
