import contextlib
import itertools
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from orchestrator.host.host_lock import host_lock, host_taken
from orchestrator.host.worker_supervisor import WorkerConfig, WorkerFailure, WorkerSupervisor
from sweeps.model.condition import Condition
from sweeps.model.job import DENSE, Arm, Job, Pair
from sweeps.model.outcome import Outcome

ROOT = str(Path(__file__).parents[2])
JOB = Job(
    condition=Condition(model="tiny", image_size=32),
    arms=(DENSE, Arm(replicate=1)),
    pairs=(Pair(0, 1),),
).model_dump_json()
MakeSupervisor = Callable[..., WorkerSupervisor]


@pytest.fixture
def supervisor() -> Iterator[MakeSupervisor]:
    """Make supervisors of a worker with a given entry; their workers end with the test."""
    made: list[WorkerSupervisor] = []

    def make(entry: str, **config: object) -> WorkerSupervisor:
        made.append(
            WorkerSupervisor(
                "cpu",
                WorkerConfig(
                    entry=f"tests.orchestrator.worker_entrypoints:{entry}",
                    path=(ROOT,),
                    folder=ROOT,
                )._replace(**config),
            )
        )
        return made[-1]

    yield make
    for one in made:
        one.stop()


def outcome(result: str | WorkerFailure) -> Outcome:
    assert isinstance(result, str), result
    return Outcome.model_validate_json(result)


def test_worker_stays_warm_and_is_replaced_on_request(supervisor: MakeSupervisor) -> None:
    """Jobs share one process until a fresh one is requested."""
    one = supervisor("noop")
    readings = [
        outcome(one.run(JOB, 10.0, fresh=fresh)).system_metrics
        for fresh in (False, False, True, False)
    ]
    assert [reading["calls"] for reading in readings] == [1, 2, 1, 2]
    assert len({reading["pid"] for reading in readings}) == 2


def test_worker_is_replaced_where_threads_are_to_wait_otherwise(supervisor: MakeSupervisor) -> None:
    """OpenMP reads that once per process: a job that spins gets a new worker, and the next one that
    does not too.
    """
    one, plain = supervisor("noop"), Job.model_validate_json(JOB)
    spinning = plain.model_copy(
        update={"condition": plain.condition.model_copy(update={"wait_policy": "active"})}
    )
    found = [
        outcome(one.run(each.model_dump_json(), 10.0))
        for each in (plain, plain, spinning, spinning, plain)
    ]
    assert [each.system_metrics["calls"] for each in found] == [1, 2, 1, 2, 1]


def test_worker_sees_no_gpu_and_no_thread_limit_of_ray(
    supervisor: MakeSupervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A CPU worker has CUDA hidden, no OMP_NUM_THREADS, our own variables, and the user's
    folder.
    """
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    flags = outcome(
        supervisor("surroundings", variables=(("BREAKEVEN_TEST", "yes"),)).run(JOB, 60.0)
    ).flags
    assert flags == (
        "CUDA_VISIBLE_DEVICES=",
        "OMP_NUM_THREADS=None",
        "BREAKEVEN_TEST=yes",
        f"folder={ROOT}",
    )


@pytest.mark.parametrize(
    ("entry", "kind", "message", "detail"),
    [
        ("segfault", "crash", "the worker died of SIGSEGV while running", "worker_entrypoints.py"),
        ("hang", "timeout", "killed after 0.5 s of running without a result", "in hang"),
        ("raise_exit", "error", "the worker raised SystemExit: no licence found", "in raise_exit"),
        ("missing", "error", "has no attribute 'missing'", "Traceback"),
    ],
)
def test_failures_are_distinguished(
    supervisor: MakeSupervisor, entry: str, kind: str, message: str, detail: str
) -> None:
    """A dead, hanging or raising worker gives its kind, a line for people, and the stack that its
    log holds.
    """
    before = time.time()
    failure = supervisor(entry).run(JOB, 0.5 if entry == "hang" else 60.0)
    assert isinstance(failure, WorkerFailure)
    assert failure.kind == kind
    assert message in failure.message
    assert detail in failure.detail
    assert before <= failure.started_at < failure.ended_at <= time.time()


def test_memory_hog_fails_within_its_limit(supervisor: MakeSupervisor) -> None:
    """An allocation beyond the limit raises in the worker; the machine's memory is not used up."""
    failure = supervisor("hog", memory_bytes=400_000_000).run(JOB, 30.0)
    assert isinstance(failure, WorkerFailure)
    assert failure.message == "the worker raised MemoryError"


def gone(pid: int) -> bool:
    """Whether the process ends within a minute."""
    deadline = time.monotonic() + 60
    while psutil.pid_exists(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not psutil.pid_exists(pid)


def test_worker_that_is_unfit_is_replaced_before_the_next_job(supervisor: MakeSupervisor) -> None:
    """The outcome counts, and the process that gave it gets no other job."""
    one = supervisor("unfit")
    assert len({outcome(one.run(JOB, 60.0)).system_metrics["pid"] for _ in range(2)}) == 2


def test_process_that_left_its_group_dies_with_a_killed_worker(
    supervisor: MakeSupervisor, tmp_path: Path
) -> None:
    """After `setsid` and a double fork, and a SIGKILL of the worker, nothing is left when the
    failure comes back.
    """
    failure = supervisor(
        "leave_daemon", variables=(("BREAKEVEN_TEST", str(tmp_path / "pid")),)
    ).run(JOB, 60.0)
    assert isinstance(failure, WorkerFailure)
    assert failure.message == "the worker died of SIGKILL while running"
    assert not psutil.pid_exists(int((tmp_path / "pid").read_text()))


def test_process_that_left_its_group_dies_with_the_worker_that_is_stopped(
    supervisor: MakeSupervisor, tmp_path: Path
) -> None:
    """The same when a worker is replaced."""
    one = supervisor("daemon", variables=(("BREAKEVEN_TEST", str(tmp_path / "pid")),))
    outcome(one.run(JOB, 60.0))
    one.stop()
    assert not psutil.pid_exists(int((tmp_path / "pid").read_text()))


def test_what_a_killed_supervisor_started_is_gone(tmp_path: Path) -> None:
    """`kill -9` of a supervisor ends its worker although that hangs in C, and a process that left
    its group, and gives the host back.
    """
    code = (
        "import sys\nfrom orchestrator.host.worker_supervisor import WorkerConfig,"
        " WorkerSupervisor\nvariables, entry = (('BREAKEVEN_TEST', sys.argv[1]),),"
        " 'tests.orchestrator.worker_entrypoints:daemon_and_hang'\nconfig = WorkerConfig(entry,"
        f" path=({ROOT!r},), variables=variables)\none = WorkerSupervisor('cpu', config)\n"
        f"one._start(); print(one._worker.pid, flush=True); one.run({JOB!r}, 100.0)"
    )
    file = tmp_path / "pid"
    with subprocess.Popen(
        [sys.executable, "-c", code, str(file)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        worker = int(process.stdout.readline())
        while not file.exists():
            assert process.poll() is None
            time.sleep(0.05)
        time.sleep(0.1)
        process.kill()
    with host_lock("latency"):
        assert gone(worker)
        assert gone(int(file.read_text()))


def test_log_of_endless_output_stays_short_and_keeps_its_end(supervisor: MakeSupervisor) -> None:
    """A worker that prints without end fills no disk; the end is there for people to read."""
    one, sizes, failures = supervisor("chatter"), list[int](), list[str | WorkerFailure]()
    thread = threading.Thread(target=lambda: failures.append(one.run(JOB, 3.0)))
    thread.start()
    while thread.is_alive():
        with contextlib.suppress(AttributeError, ValueError, OSError):
            sizes.append(os.fstat(one._log.fileno()).st_size)
        time.sleep(0.01)
    assert isinstance(failures[0], WorkerFailure)
    assert "x" * 1000 in failures[0].detail
    assert any(later < earlier for earlier, later in itertools.pairwise(sizes)), "it is never cut"


def test_supervisors_of_one_host_take_turns_and_waiting_is_no_time_out(
    supervisor: MakeSupervisor,
) -> None:
    """Jobs of two supervisors never overlap, and the one that waits longer than its time-out is
    answered all the same.
    """
    supervisors = [supervisor("slow"), supervisor("slow")]
    for one in supervisors:
        one.run(JOB, 60.0)
    spans: list[tuple[float, float]] = []

    def work(one: WorkerSupervisor) -> None:
        for _ in range(3):
            found = outcome(one.run(JOB, 1.5))
            spans.append((found.started_at, found.ended_at))

    threads = [threading.Thread(target=work, args=(one,)) for one in supervisors]
    with host_lock("latency"):
        assert host_taken()
        for thread in threads:
            thread.start()
        time.sleep(1.6)
    for thread in threads:
        thread.join()
    spans.sort()
    assert len(spans) == 6
    assert all(before[1] <= after[0] for before, after in itertools.pairwise(spans))
