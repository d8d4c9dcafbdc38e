"""What is known after the first pass and after Ctrl-C, in the state and in the report; and the
limit of one stretch in a plan.
"""

import pytest

from orchestrator.plan.planning import load_sweep
from orchestrator.plan.preview import preview
from store.write.record import record
from store.write.submission import NewSweep, submit_sweep
from tests.orchestrator.commands import SWEEP, breakeven
from tests.orchestrator.conftest import Store
from tests.store.conftest import a_job, in_visits


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
        assert "no interval of a speed-up is narrower than ±8.1 %: `passes: 12`" in line
