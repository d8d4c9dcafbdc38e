"""Shares of a host's cores: disjoint, equal, whole physical cores; and a process that is pinned to
one.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeps.model.condition import Condition
from sweeps.model.job import DENSE, Job, Pair
from workers.measure.environment import PROJECT, environment_of
from workers.measure.threads import divide_cores, parse_core_list, share_of_gpu, thread_siblings
from workers.run import run


@given(st.sets(st.integers(0, 63), min_size=1), st.integers(1, 8), st.sampled_from([1, 16, 32]))
def test_shares_are_disjoint_and_allowed(allowed: set[int], count: int, half: int) -> None:
    """No core twice or forbidden, no physical core split, equal shares, for any mask."""
    threads = {core: (core % half, core % half + half) for core in range(2 * half)}
    groups = {frozenset({core, *threads.get(core, ())} & allowed) for core in allowed}
    if len(groups) < count:
        with pytest.raises(ValueError, match="a physical core for each"):
            divide_cores(allowed, threads, count)
        return
    found = divide_cores(allowed, threads, count)
    assert len(found) == count
    assert sum(map(len, found)) == len(set().union(*found))
    assert set().union(*found) <= allowed
    assert {sum(group <= set(part) for group in groups) for part in found} == {len(groups) // count}
    assert all(group <= set(part) or not group & set(part) for group in groups for part in found)


def test_topology_is_read_as_the_kernel_writes_it(tmp_path: Path) -> None:
    """Ranges and lists; a core without a file is left out."""
    for core, text in {0: "0,4\n", 1: "1-2\n"}.items():
        folder = tmp_path / f"cpu{core}" / "topology"
        folder.mkdir(parents=True)
        (folder / "thread_siblings_list").write_text(text)
    assert thread_siblings([0, 1, 2], tmp_path) == {0: (0, 4), 1: (1, 2)}
    assert parse_core_list("0-2,8,10-11\n") == (0, 1, 2, 8, 10, 11)


def test_unknown_gpu_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without NVML an index must name one of the node's GPUs."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "99")
    with pytest.raises(ValueError, match="CUDA_VISIBLE_DEVICES=99 names none of 2"):
        share_of_gpu(2)


PINNED = """
import json, os, threading
from workers.measure.environment import cores, environment_of
from workers.measure.threads import Share, pin, pinned
own = min(os.sched_getaffinity(0))
pin(Share(0, (own,), 2))
import torch
from sweeps.model.condition import Condition
from workers.measure.process_state import use_threads
use_threads(Condition(model="m"))
torch.ones(300, 300) @ torch.ones(300, 300)
threads = {tuple(os.sched_getaffinity(int(task))) for task in os.listdir("/proc/self/task")}
print(json.dumps([own, sorted(threads), cores(), torch.get_num_threads(), pinned(), environment_of("cpu").environment_id]))
"""


def test_pinned_process_has_its_share_and_the_same_environment() -> None:
    """Torch's threads are held to it; the fingerprint is the whole machine's."""
    done = subprocess.run(
        [sys.executable, "-c", PINNED], cwd=PROJECT, capture_output=True, text=True, check=True
    )
    own, threads, may_use, used, held, identity = json.loads(done.stdout)
    assert threads == [[own]]
    assert may_use <= 1
    assert used == 1
    assert held == [own]
    assert identity == environment_of("cpu").environment_id


def test_job_on_one_gpu_is_refused_without_cores_of_its_own() -> None:
    """`python -m workers.run` pins nothing, so its times would be of another condition."""
    condition = Condition(model="m", image_size=32, exclusive="device")
    job = Job(
        condition=condition,
        arms=(DENSE, DENSE.model_copy(update={"replicate": 1})),
        pairs=(Pair(0, 1),),
    )
    (failure,) = run(job).failures
    assert (failure.arm, failure.reason) == (None, "error")
    assert "exclusive: device needs a worker that is pinned to its GPU's cores" in failure.message
