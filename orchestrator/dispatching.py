"""Dispatching: hands a sweep's waiting jobs to idle nodes, records what comes back, and finds the guilty arm when a worker dies."""

import contextlib
import json
import time
from collections.abc import Callable, Iterator
from itertools import count
from typing import Literal, NamedTuple, get_args

from orchestrator.cluster import Cluster, Finished, Node, Place, Running
from orchestrator.interruption import stop_requested
from orchestrator.occupancy import fits, room
from orchestrator.worker import Fault
from store import queue
from store.connection import Engine, StoreError
from store.recording import LeaseError, record
from sweeps.job import Arm, Condition, Device, Job
from sweeps.outcome import ANSWERS, Failure, FailureReason, Outcome
from sweeps.spec import Retry

LOOK_S = 0.5
"""How often the wait for results looks whether it was interrupted."""
RENEW_S = 15.0
"""How often the lease is renewed; a lease that is 60 s old counts as abandoned on another host."""
REPLACED_AFTER: frozenset[FailureReason] = frozenset({"out_of_memory", "timeout", "error"})
"""Failures that may leave a process unsound, such as a broken CUDA context: the next job gets a new one."""

Happening = Literal["started", "answered", "retried", "split", "suspected", "waiting", "dropped"]


class Event(NamedTuple):
    """Something that progress may want to show."""

    what: Happening
    node: Node
    job: Job
    outcome: Outcome | None = None
    """With `answered`: what was recorded."""
    message: str = ""
    """What went wrong, with `retried`, `split`, `suspected` (the baseline runs alone to tell whether it is guilty) and `dropped`
    (another dispatcher has taken the job over); with `waiting` who has the host that the job waits for."""


class Summary(NamedTuple):
    """What came of the comparisons of the jobs that ran."""

    measured: int = 0
    failed: int = 0
    """Comparisons whose answer is a failure, such as out of memory."""
    unanswered: int = 0
    interrupted: bool = False


class Task(NamedTuple):
    """A claimed job on its way."""

    queued: queue.QueuedJob
    fault: Fault | None = None
    """Set while the baseline runs alone: how the job ended that it is suspected of."""

    @property
    def executions(self) -> int:
        """Executions of the job so far, the present one included."""
        return self.queued.attempts + 1


def dispatch(
    engine: Engine,
    sweep_id: int,
    cluster: Cluster,
    *,
    retry: Retry,
    observer: Callable[[Event], None] = lambda _: None,
    tick: Callable[[], None] = lambda: None,
) -> Summary:
    """Run the sweep's waiting jobs until none is left, and record every outcome before its node gets the next job.

    A timed job has its node alone, others share one as far as its cores and GPUs reach. Jobs of owners that have died meanwhile
    are run too. A result whose lease was lost (this process stood still for longer than a lease) is dropped. Ctrl-C, SIGTERM and
    SIGHUP stop at once: jobs in flight go back to the queue. `tick` is called about every `LOOK_S`. Raises `ClusterError` before
    anything runs when a job waits for a device class that no node offers, and at the end when the nodes that offered it died.
    """
    queue.recover(engine)
    dispatcher = Dispatcher(engine, sweep_id, cluster, retry, observer)
    with stop_requested() as stopped:
        return dispatcher.run(stopped, tick)


class Dispatcher:
    """The state of one `dispatch`: which node runs what, and which baselines have proved innocent."""

    def __init__(self, engine: Engine, sweep_id: int, cluster: Cluster, retry: Retry, observer: Callable[[Event], None]) -> None:
        self._engine, self._sweep_id, self._cluster, self._retry, self._observer = engine, sweep_id, cluster, retry, observer
        self._owner = queue.owner()
        self._demands = {text: json.loads(text) for text in queue.demands(engine, sweep_id) if text}
        self._tasks: dict[Running, Task] = {}
        self._innocent: set[tuple[Condition, Arm]] = set()
        self._guilty: dict[tuple[Condition, Arm], Outcome | Fault] = {}
        self._unsound: set[Place] = set()
        self._summary = Summary()

    def run(self, stopped: Callable[[], bool], tick: Callable[[], None]) -> Summary:
        self._refuse_infeasible()
        renewed = time.monotonic()
        try:
            self._fill()
            while self._tasks and not stopped():
                finished = self._cluster.wait(LOOK_S)
                for one in finished:
                    self._handle(one)
                for running, message in self._cluster.waits():
                    self._observer(Event("waiting", running.node, running.job, message=message))
                joined = self._cluster.refresh()
                recovered = 0
                if time.monotonic() - renewed > RENEW_S:
                    queue.renew(self._engine, self._owner)
                    recovered = queue.recover(self._engine)
                    renewed = time.monotonic()
                if (finished or recovered or joined) and not stopped():
                    self._fill()
                tick()
            if not stopped():
                self._refuse_infeasible()  # the node that offered the device may have died
            return self._summary._replace(interrupted=stopped())
        finally:
            for running in self._tasks:
                self._cluster.kill(running)
            for task in self._tasks.values():
                self._give_back(task)

    def _refuse_infeasible(self) -> None:
        offered = {device for node in self._cluster.nodes() for device in node.devices}
        for device in set(get_args(Device)) - offered:
            for queued in self._claim(device):
                queue.release(self._engine, queued.row, self._owner)
                self._cluster.require([device])

    def _fill(self) -> None:
        """Give every node what it has room for, machines that can do little first, so that the GPU is left to those who need it."""
        for node in sorted(self._cluster.nodes(), key=lambda node: len(node.devices)):
            while claimed := self._next(node):
                self._start(node, Task(claimed))

    def _next(self, node: Node) -> queue.QueuedJob | None:
        """A waiting job that the node has room for: any if it is idle, else one that may run beside what runs there."""
        there = self._jobs_on(node)
        if there and not room(node, there):
            return None
        for device in reversed(node.devices):
            for queued in self._claim(device, node, timing=not there):
                if fits(queued.job, node, there):
                    return queued
                queue.release(self._engine, queued.row, self._owner)
        return None

    def _jobs_on(self, node: Node) -> list[Job]:
        return [running.job for running in self._tasks if running.node.node_id == node.node_id]

    def _claim(self, device: Device, node: Node | None = None, *, timing: bool = True) -> list[queue.QueuedJob]:
        offer = None if node is None else node.offer(device, self._demands)
        return queue.claim(self._engine, self._sweep_id, owner=self._owner, device=device, offer=offer, limit=1, timing=timing)

    def _start(self, node: Node, task: Task) -> None:
        job = task.queued.job if task.fault is None else baseline_alone(task.queued.job)
        taken = {running.slot for running in self._tasks if running.place[:2] == (node.node_id, job.condition.device)}
        slot = next(slot for slot in count() if slot not in taken)
        place = (node.node_id, job.condition.device, slot)
        fresh = job.protocol.rounds > 1 or job.round > 0 or place in self._unsound
        try:
            running = self._cluster.submit(job, node, slot=slot, fresh=fresh)
        except BaseException:
            self._give_back(task)
            raise
        self._unsound.discard(place)
        self._tasks[running] = task
        self._tell("suspected" if task.fault else "started", node, task, task.fault)

    def _handle(self, finished: Finished) -> None:
        task = self._tasks.pop(finished.running)
        try:
            self._settle(finished.running, finished.result, task)
        except LeaseError as error:
            self._observer(Event("dropped", finished.running.node, task.queued.job, message=str(error)))
        except BaseException:
            self._give_back(task)
            raise

    def _settle(self, running: Running, result: Outcome | Fault, task: Task) -> None:
        if isinstance(result, Outcome):
            # a driver or library may have changed since the node was asked: what is pinned to its former environment stays there
            running.node.environments[result.job.condition.device] = result.environment
            self._acquit(result)
            if any(failure.reason in REPLACED_AFTER for failure in result.failures):
                self._unsound.add(running.place)
            self._record(running.node, task, result if task.fault is None else self._convict(running.node, task, result))
        elif result.kind == "node_died":
            self._after_node_death(running.node, task, result)
        elif result.kind == "out_of_memory" and self._jobs_on(running.node) and task.executions < self._retry.max_attempts:
            self._retry_later(running.node, task, result)  # the memory may have been a neighbour's
        elif task.fault is not None:
            self._record(running.node, task, self._convict(running.node, task, result))
        else:
            self._after_fault(running.node, task, result)

    def _after_node_death(self, node: Node, task: Task, fault: Fault) -> None:
        if "node_died" in self._retry.when and task.executions < self._retry.max_attempts:
            self._retry_later(node, task, fault)
        else:
            self._record(node, task, failed(task, node, fault, None))

    def _after_fault(self, node: Node, task: Task, fault: Fault) -> None:
        job = task.queued.job
        if len(job.pairs) > 1:
            middle = len(job.pairs) // 2
            halves = [job.only(job.pairs[:middle]), job.only(job.pairs[middle:])]
            queue.split(self._engine, task.queued.row, self._owner, halves, failed(task, node, fault, None))
            self._tell("split", node, task, fault)
        elif not job.pairs:
            self._record(node, task, failed(task, node, fault, None))
        elif (alone := self._guilty.get(suspect(job))) is not None:
            self._record(node, task, convict(task, node, fault, alone))
        elif fault.kind == "crash" and "worker_crash" in self._retry.when and task.executions < self._retry.max_attempts:
            self._retry_later(node, task, fault)
        elif suspect(job) in self._innocent:
            self._record(node, task, failed(task, node, fault, job.pairs[0].arm))
        else:
            self._start(node, task._replace(fault=fault))

    def _retry_later(self, node: Node, task: Task, fault: Fault) -> None:
        queue.release(self._engine, task.queued.row, self._owner, failed(task, node, fault, None))
        self._tell("retried", node, task, fault)

    def _convict(self, node: Node, task: Task, alone: Outcome | Fault) -> Outcome:
        """Settle who is guilty now that the baseline has run alone."""
        assert task.fault is not None
        if isinstance(alone, Fault) or alone.failures:
            self._guilty[suspect(task.queued.job)] = alone
        return convict(task, node, task.fault, alone)

    def _give_back(self, task: Task) -> None:
        with contextlib.suppress(StoreError):  # it may be recorded already; if the store is out of reach the next run recovers it
            queue.release(self._engine, task.queued.row, self._owner)

    def _record(self, node: Node, task: Task, outcome: Outcome) -> None:
        record(self._engine, task.queued.row, self._owner, outcome)
        measured, answers, unanswered, _ = self._summary
        for reasons in map(set, reasons_by_pair(outcome)):
            measured += not reasons
            answers += bool(reasons) and reasons <= ANSWERS
            unanswered += bool(reasons - ANSWERS)
        self._summary = Summary(measured, answers, unanswered)
        self._observer(Event("answered", node, outcome.job, outcome))

    def _acquit(self, outcome: Outcome) -> None:
        baselines = {pair.baseline for pair in outcome.job.pairs} or {0}
        ran = {arm.arm for arm in outcome.arms}
        self._innocent |= {(outcome.job.condition, outcome.job.arms[index]) for index in baselines & ran}

    def _tell(self, what: Happening, node: Node, task: Task, fault: Fault | None) -> None:
        self._observer(Event(what, node, task.queued.job, message=fault.message if fault else ""))


def reasons_by_pair(outcome: Outcome) -> Iterator[list[FailureReason]]:
    """For each pair of the outcome's job, why it has no measurement; empty if it has one."""
    for pair in outcome.job.pairs:
        yield [failure.reason for failure in outcome.failures if failure.arm in {None, *pair}]


def suspect(job: Job) -> tuple[Condition, Arm]:
    """What a single-pair job's baseline is: it is as guilty or innocent in every other job."""
    return job.condition, job.arms[job.pairs[0].baseline]


def baseline_alone(job: Job) -> Job:
    """The job of running the baseline of a single pair by itself, to tell whose fault a fault is."""
    return job.model_copy(update={"arms": (job.arms[job.pairs[0].baseline],), "pairs": ()})


def failed(task: Task, node: Node, fault: Fault, arm: int | None) -> Outcome:
    """The outcome of a job that came back without one: `arm` is the guilty one, `None` when no arm is to blame."""
    job = task.queued.job
    reason: FailureReason = "error" if fault.kind == "node_died" else fault.kind
    times = f" ({task.executions} executions)" if task.executions > 1 else ""
    now = time.time()
    return Outcome(
        job=job,
        environment=node.environments[job.condition.device],
        host=node.host,
        started_at=fault.started_at or now,
        ended_at=fault.ended_at or now,
        failures=(Failure(arm=arm, reason=reason, message=f"{fault.message}{times}", detail=fault.detail),),
    )


def convict(task: Task, node: Node, fault: Fault, alone: Outcome | Fault) -> Outcome:
    """The outcome of a single-pair job that ended in `fault`, given what came of its baseline `alone`.

    If the baseline failed there too it is the guilty one; if not, it is the arm, and what was learned of the baseline is kept.
    """
    job = task.queued.job
    baseline, arm = job.pairs[0]
    if isinstance(alone, Outcome) and not alone.failures:
        return failed(task, node, fault, arm).model_copy(
            update={
                "arms": tuple(measured.model_copy(update={"arm": baseline}) for measured in alone.arms),
                "samples": alone.samples and alone.samples.model_copy(update={"arms": (baseline,)}),
            }
        )
    outcome = failed(task, node, alone if isinstance(alone, Fault) else fault, baseline)
    cause = outcome.failures[0] if isinstance(alone, Fault) else alone.failures[0].model_copy(update={"arm": baseline})
    orphan = cause.model_copy(
        update={"arm": arm, "message": f"not measured: its baseline {job.arms[baseline]} failed alone: {cause.message}"}
    )
    return outcome.model_copy(update={"failures": (cause, orphan)})
