"""How threads wait, and whether they are pinned: set before torch is loaded, checked after, and
stored.
"""

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from sweeps.model.condition import Condition
from sweeps.model.job import DENSE, Job, Pair, Protocol
from sweeps.model.outcome import Outcome
from workers.measure.environment import PROJECT, allowed_cores, environment_of
from workers.measure.threads import ThreadPolicy, physical_first, policy_variables
from workers.run import main, run

REPLICA = DENSE.model_copy(update={"replicate": 1})
IN_EFFECT = """
import json, os, sys
from sweeps.model.condition import Condition
from sweeps.model.job import Job
from workers.measure.threads import requested_policy, set_policy
from workers.run import run
outcomes = [run(Job.model_validate_json(each), pass_seconds=0.05) for each in sys.argv[1:]]
places = {task: sorted(os.sched_getaffinity(int(task))) for task in os.listdir("/proc/self/task")}
names = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "OMP_PROC_BIND")
print(json.dumps([[each.model_dump(mode="json") for each in outcomes], places,
                  [os.environ.get(name) for name in names]]))
"""


def job(**condition: Any) -> Job:
    """A/A of a tiny model in six rounds."""
    return Job(
        condition=Condition(model="test_vit", image_size=32, **condition),
        arms=(DENSE, REPLICA),
        pairs=(Pair(0, 1),),
        protocol=Protocol(pairs_min=6, pairs_max=6, budget_s=0.5),
    )


def measured(
    *requested: Job, **variables: str
) -> tuple[list[Outcome], dict[str, list[int]], list[str | None]]:
    """The outcomes of jobs in a new process, where its threads might run, and OpenMP's
    variables.
    """
    command = [sys.executable, "-c", IN_EFFECT, *(each.model_dump_json() for each in requested)]
    done = subprocess.run(
        command, cwd=PROJECT, env=variables, capture_output=True, text=True, check=True
    )
    outcomes, places, found = json.loads(done.stdout)
    return list(map(Outcome.model_validate, outcomes)), places, found


def test_threads_spin_briefly_unless_the_condition_requests_otherwise() -> None:
    """For the turns that a user has set; whatever else the environment requested, nothing pinned; a
    spare core is left free.
    """
    (outcome, spare), places, variables = measured(
        job(),
        job(spare_cores=1),
        OMP_WAIT_POLICY="ACTIVE",
        GOMP_SPINCOUNT="9000",
        OMP_PROC_BIND="true",
    )
    assert not outcome.failures
    assert variables == [None, "9000", None]
    assert outcome.environment.facts["spin_turns"] == "9000"
    assert (outcome.system_metrics["threads_spin"], outcome.system_metrics["threads_pinned"]) == (
        0,
        0,
    )
    assert outcome.cores is None
    assert set(map(tuple, places.values())) == {allowed_cores()}
    assert {arm.threads for arm in spare.arms} == {max(1, len(allowed_cores()) - 1)}


def test_spinning_pinned_threads_are_set_and_stored() -> None:
    """Each thread has a core, which the outcome names, and counts as no change."""
    (outcome,), places, variables = measured(
        job(wait_policy="active", pinning="cores"), GOMP_SPINCOUNT=os.environ["GOMP_SPINCOUNT"]
    )
    assert not outcome.failures
    assert "state_changed" not in outcome.flags
    assert variables == ["ACTIVE", None, "close"]
    assert (outcome.system_metrics["threads_spin"], outcome.system_metrics["threads_pinned"]) == (
        1,
        1,
    )
    assert outcome.cores == physical_first(allowed_cores())
    assert {core for held in places.values() if len(held) == 1 for core in held} == set(
        allowed_cores()
    )
    assert {arm.threads for arm in outcome.arms} == {len(allowed_cores())}
    assert outcome.environment == environment_of("cpu")


def test_a_process_with_another_policy_refuses_the_job() -> None:
    """Nothing is measured, and the message has both policies and what to do."""
    importlib.import_module("torch")
    (failure,) = run(job(wait_policy="active")).failures
    assert (failure.arm, failure.reason) == (None, "error")
    assert (
        "started with threads whose wait is brief, and the job needs threads whose wait is active"
        in failure.message
    )
    assert "start a new process" in failure.message


def test_the_command_starts_a_process_for_each_policy(tmp_path: Path) -> None:
    """One command answers all; jobs of the process's own policy run in it."""
    wanted = {"1.json": job(), "2.json": job(pinning="cores"), "3.json": job()}
    for name, each in wanted.items():
        (tmp_path / name).write_text(each.model_dump_json())
    importlib.import_module("torch")
    assert main([str(tmp_path), "--out", str(tmp_path / "out")]) == 0
    found = {
        name: Outcome.model_validate_json((tmp_path / "out" / name).read_text()) for name in wanted
    }
    readings = {
        name: (each.system_metrics["threads_spin"], each.system_metrics["threads_pinned"])
        for name, each in found.items()
    }
    assert readings == {"1.json": (0, 0), "2.json": (0, 1), "3.json": (0, 0)}
    processes = [each.process for each in found.values()]
    assert processes[0] == processes[2] != processes[1]


def test_variables_of_a_policy() -> None:
    """What the process had for its threads is replaced, and all else is kept."""
    inherited = {"HOME": "h", "GOMP_SPINCOUNT": "9000", "OMP_PROC_BIND": "true"}
    brief = policy_variables(ThreadPolicy("brief", pinned=False), inherited)
    turns = os.environ["GOMP_SPINCOUNT"]
    assert brief == {"HOME": "h", "GOMP_SPINCOUNT": turns, "BREAKEVEN_TURNS": turns}
    active = policy_variables(ThreadPolicy("active", pinned=True), inherited)
    order = physical_first(allowed_cores())
    assert active.pop("OMP_PLACES") == ",".join(f"{{{core}}}" for core in order)
    assert {"HOME": "h", "OMP_WAIT_POLICY": "ACTIVE", "OMP_PROC_BIND": "close"}.items() <= (
        active.items()
    )
    assert "GOMP_SPINCOUNT" not in active
