from pathlib import Path

import psutil
import pytest

from orchestrator.cluster.cluster import Cluster
from sweeps.model.condition import Condition
from sweeps.model.job import DENSE, Arm, Job, Pair, Protocol, Step
from sweeps.model.outcome import WORKER_UNFIT
from tests.orchestrator.conftest import Store

pytestmark = pytest.mark.ray

TOPK = Step(method="topk", params={"keep_rate": 0.5, "layers": [1, 2, 3]})
ANSWERS = """SELECT c.method, c.params, coalesce(f.reason, 'measured') AS answer, f.message FROM comparison_attempt AS p
             JOIN comparison AS c ON c.comparison_id = p.comparison_id LEFT JOIN failure AS f ON f.id = p.failure"""


def tiny(*steps: Step, image_size: int = 32, timeout_s: float = 30.0) -> Job:
    """Dense against arms of one step each, on a real model, as short as the protocol allows."""
    arms = (DENSE, *(Arm(stack=(step,)) for step in steps))
    return Job(
        condition=Condition(model="test_vit", image_size=image_size, threads=1),
        arms=arms,
        pairs=tuple(Pair(0, index) for index in range(1, len(arms))),
        protocol=Protocol(
            pairs_min=30, pairs_max=30, half_width=0.5, budget_s=0.1, timeout_s=timeout_s
        ),
    )


def faulty(what: str) -> Step:
    return Step(method="faulty", params={"what": what})


def test_raising_and_nan_arms_and_the_hog_answer_for_themselves_alone(
    store: Store, cluster: Cluster
) -> None:
    """Failures that Python can catch need no bisecting: one job, one attempt, each arm with its own
    answer.
    """
    summary, _ = store.dispatch(
        store.submit([tiny(faulty("raise"), TOPK, faulty("nan"), faulty("hog"))]), cluster
    )
    assert summary == (1, 2, 1, False)
    answers = dict(store.table(ANSWERS)[["params", "answer"]].itertuples(index=False))
    assert answers == {
        '{"what":"raise"}': "error",
        '{"what":"nan"}': "not_a_number",
        '{"what":"hog"}': "out_of_memory",
        '{"keep_rate":0.5,"layers":[1,2,3]}': "measured",
    }
    assert len(store.table("SELECT id FROM attempt")) == 1


def test_daemon_of_a_method_is_gone_before_the_next_job(
    store: Store, cluster: Cluster, tmp_path: Path
) -> None:
    """Its job is answered and flagged, in the store too; the process is dead when the next job
    begins, in the same worker, which has the model still.
    """
    file = tmp_path / "pid"
    step = Step(method="untidy", params={"what": "daemon", "file": str(file)})
    summary, events = store.dispatch(store.submit([tiny(step), tiny(TOPK)]), cluster)
    assert summary == (2, 0, 0, False)
    daemons = [*map(int, file.read_text().split())]
    assert len(daemons) == 2  # of two copies of the arm
    assert not any(map(psutil.pid_exists, daemons))
    first, second = [event.outcome for event in events if event.outcome]
    for reading in ("pid", "models_built"):
        assert first.system_metrics[reading] == second.system_metrics[reading] >= 1
    assert "state_changed" in first.flags
    assert "state_changed" not in second.flags
    assert any("child processes were left running" in note for note in first.notes)
    assert store.table("SELECT flags FROM attempt ORDER BY id")["flags"].str.contains(
        "state_changed"
    ).tolist() == [True, False]


def test_arm_that_changes_all_others_is_measured_apart(store: Store, cluster: Cluster) -> None:
    """The other arm is answered in a clean process, unflagged; the arm itself in its own, flagged;
    nothing stays open.
    """
    step = Step(method="untidy", params={"what": "process"})
    summary, events = store.dispatch(store.submit([tiny(step, TOPK)]), cluster)
    assert summary == (2, 0, 0, False)
    found = {
        event.outcome.job.arms[1].stack[0].method: event.outcome
        for event in events
        if event.outcome
    }
    assert {name: "state_changed" in outcome.flags for name, outcome in found.items()} == {
        "topk": False,
        "untidy": True,
    }
    assert [WORKER_UNFIT in found[name].system_metrics for name in ("topk", "untidy")] == [
        False,
        True,
    ]
    shown = store.table("SELECT method, flags, verdict FROM effect").set_index("method")
    flagged = shown["flags"].fillna("").str.contains("state_changed")
    assert flagged.loc[["untidy"]].all()
    assert not flagged.loc[["topk"]].any()


@pytest.mark.slow
def test_hanging_arm_is_named_and_the_other_one_measured(store: Store, cluster: Cluster) -> None:
    """A hang that no Python code can end costs only its own arm; the other arm is measured beside
    dense.
    """
    summary, _ = store.dispatch(
        store.submit([tiny(TOPK, faulty("hang"), timeout_s=25.0)]), cluster, max_attempts=1
    )
    assert summary == (1, 1, 0, False)
    rows = store.table(ANSWERS).set_index("method")
    assert rows["answer"].to_dict() == {"topk": "measured", "faulty": "timeout"}
    assert "killed after 25 s" in rows.loc["faulty", "message"]
    assert (
        "faulty.py" in store.table("SELECT detail FROM failure WHERE arm IS NOT NULL")["detail"][0]
    )
