"""Dispatcher: gives waiting jobs to idle nodes, records their outcomes, and isolates the failing
arm when a worker dies.
"""

import contextlib
import json
import time
from collections.abc import Callable, Collection, Iterator
from itertools import count
from typing import Literal, NamedTuple

from orchestrator.cluster.cluster import Cluster, Finished, Running
from orchestrator.cluster.nodes import Node, can_start, has_capacity
from orchestrator.cluster.supervisors import WorkerPlace
from orchestrator.host.worker_supervisor import WorkerFailure
from orchestrator.loop.failure_isolation import (
    Task,
    baseline_alone,
    baseline_key,
    bisect,
    failed_outcome,
    isolated_outcome,
)
from orchestrator.loop.interruption import stop_requested
from store.errors import StoreError
from store.open.engine import Engine
from store.rows import owners
from store.write import queue
from store.write.record import LeaseError, record
from sweeps.language.file_schema import Retry
from sweeps.model.condition import Condition
from sweeps.model.job import Arm, Job
from sweeps.model.outcome import ANSWERING_FAILURES, FailureReason, Outcome

POLL_S = 0.5
"""How often the wait for results checks whether it was interrupted."""
RENEW_S = 15.0
"""How often the lease is renewed; a lease that is 60 s old counts as abandoned on another host."""
REPLACED_AFTER: frozenset[FailureReason] = frozenset({"out_of_memory", "timeout", "error"})
"""Failures that may leave a process in a bad state, such as a broken CUDA context: the next job
gets a new one."""

EventType = Literal[
    "started",
    "answered",
    "retried",
    "split",
    "baseline_check",
    "waiting",
    "begun",
    "taken",
    "dropped",
]


class Event(NamedTuple):
    """Something that progress may want to show."""

    what: EventType
    node: Node
    job: Job
    outcome: Outcome | None = None
    """With `answered`: what was recorded."""
    message: str = ""
    """What went wrong, with `retried`, `split`, `baseline_check` (the baseline runs alone) and
    `dropped` (another dispatcher has taken over the job); with `waiting` which jobs have the host
    that the job waits for (`begun` once it has it, `taken` if it does not wait any longer)."""


class Summary(NamedTuple):
    """Numbers of comparisons of the jobs that ran, by result."""

    measured: int = 0
    failed: int = 0
    """Comparisons whose answer is a failure, such as out of memory."""
    unanswered: int = 0
    interrupted: bool = False


def dispatch(
    engine: Engine,
    sweep_id: int,
    cluster: Cluster,
    *,
    retry: Retry,
    observer: Callable[[Event], None] = lambda _: None,
    tick: Callable[[], None] = lambda: None,
    admits: Callable[[Job], bool] = lambda _: True,
    may_wait: Callable[[float], bool] = lambda _: True,
    repeated: Collection[str] = (),
) -> Summary:
    """Run the sweep's waiting jobs until none is left, and record every outcome before its node
    gets the next job.

    A timed job has its node alone, or its GPU (`exclusive: device`); others share a node while it
    has cores and GPUs left. Jobs of owners that have died meanwhile are run too. A result whose
    lease was lost (this process stood still for longer than a lease) is dropped. Jobs that `admits`
    refuses are left waiting; comparisons that are `repeated` get a new process each time, so that
    attempts differ by what processes differ by. A job whose host is taken waits as long as
    `may_wait` allows, of the seconds that it has waited; then it goes back to the queue, and no
    other is started. Ctrl-C, SIGTERM and SIGHUP stop at once: jobs in flight go back to the queue.
    `tick` is called about every `POLL_S`. Raises `ClusterError` before anything runs when a job
    waits for a device class that no node offers, and at the end when the nodes that offered it
    died.
    """
    queue.recover(engine)
    dispatcher = Dispatcher(
        engine,
        sweep_id,
        cluster,
        retry,
        observer,
        admits=admits,
        may_wait=may_wait,
        repeated=repeated,
    )
    with stop_requested() as stopped:
        return dispatcher.run(stopped, tick)


class Dispatcher:
    """The state of one `dispatch`: which node runs what, and which baselines have run alone with or
    without a failure.
    """

    def __init__(
        self,
        engine: Engine,
        sweep_id: int,
        cluster: Cluster,
        retry: Retry,
        observer: Callable[[Event], None],
        *,
        admits: Callable[[Job], bool],
        may_wait: Callable[[float], bool],
        repeated: Collection[str],
    ) -> None:
        self._admits, self._may_wait, self._repeated = admits, may_wait, frozenset(repeated)
        self._waiting: dict[Running, float] = {}
        """Jobs that wait for their host, and since when."""
        self._taken = False
        self._engine, self._sweep_id, self._cluster, self._retry, self._observer = (
            engine,
            sweep_id,
            cluster,
            retry,
            observer,
        )
        self._owner = owners.owner()
        self._demands = {text: json.loads(text) for text in queue.demands(engine, sweep_id) if text}
        self._tasks: dict[Running, Task] = {}
        self._baselines_ok: set[tuple[Condition, Arm]] = set()
        self._baselines_failed: dict[tuple[Condition, Arm], Outcome | WorkerFailure] = {}
        self._replace_worker: set[WorkerPlace] = set()
        self._summary = Summary()

    def run(self, stopped: Callable[[], bool], tick: Callable[[], None]) -> Summary:
        self._require_devices()
        renewed = time.monotonic()
        try:
            self._fill()
            while self._tasks and not stopped():
                finished = self._cluster.wait(POLL_S)
                for one in finished:
                    self._handle(one)
                for running, message in self._cluster.waits():
                    self._observer(
                        Event(
                            "waiting" if message else "begun",
                            running.node,
                            running.job,
                            message=message,
                        )
                    )
                    if message:
                        self._waiting.setdefault(running, time.monotonic())
                    else:
                        self._waiting.pop(running, None)
                self._release_waiting()
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
                self._require_devices()  # the node that offered the device may have died
            return self._summary._replace(interrupted=stopped())
        finally:
            for running in self._tasks:
                self._cluster.kill(running)
            for task in self._tasks.values():
                self._give_back(task)

    def _release_waiting(self) -> None:
        """Give back the jobs whose host is not waited for any longer; what waits behind them is not
        started either.
        """
        for running, since in list(self._waiting.items()):
            if running in self._tasks and not self._may_wait(time.monotonic() - since):
                self._taken = True
                self._cluster.kill(running)
                task = self._tasks.pop(running)
                self._give_back(task)
                self._observer(
                    Event("taken", running.node, task.queued.job, message="its host is not free")
                )
        self._waiting = {
            running: since for running, since in self._waiting.items() if running in self._tasks
        }

    def _require_devices(self) -> None:
        self._cluster.require(queue.waiting_devices(self._engine, self._sweep_id))

    def _fill(self) -> None:
        """Fill every node, those without a GPU first, so that GPUs are left for the jobs that need
        them.
        """
        for node in sorted(self._cluster.nodes(), key=lambda node: len(node.devices)):
            while not self._taken and (claimed := self._next(node)):
                self._start(node, Task(claimed))

    def _next(self, node: Node) -> queue.QueuedJob | None:
        """A waiting job that the node has capacity for: any if it is idle, else one that may run
        beside what runs there.
        """
        there = self._jobs_on(node)
        if there and not has_capacity(node, there):
            return None
        for device in reversed(node.devices):
            offer, beside = (
                node.offer(device, self._demands),
                there[0].occupation if there else None,
            )
            limit, refused = 1, list[queue.QueuedJob]()
            while claimed := queue.claim(
                self._engine,
                self._sweep_id,
                owner=self._owner,
                offer=offer,
                limit=limit,
                beside=beside,
            ):
                admitted = [queued for queued in claimed if self._admits(queued.job)]
                chosen = (
                    admitted[0] if admitted and can_start(admitted[0].job, node, there) else None
                )
                refused += [queued for queued in claimed if queued is not chosen]
                if admitted:
                    break
                limit *= 2  # of many jobs that take too long, a shorter one is found in a few steps
            else:
                chosen = None
            for queued in refused:
                queue.release(self._engine, queued.row, self._owner)
            if chosen is not None:
                return chosen
        return None

    def _jobs_on(self, node: Node) -> list[Job]:
        return [running.job for running in self._tasks if running.node.node_id == node.node_id]

    def _start(self, node: Node, task: Task) -> None:
        job = task.queued.job if task.failure is None else baseline_alone(task.queued.job)
        taken = {
            running.slot
            for running in self._tasks
            if running.place[:2] == (node.node_id, job.condition.device)
        }
        slot = next(slot for slot in count() if slot not in taken)
        place = (node.node_id, job.condition.device, slot)
        again = job.protocol.passes == 1 and not self._repeated.isdisjoint(job.comparison_ids())
        fresh = job.protocol.rounds > 1 or place in self._replace_worker or again
        try:
            running = self._cluster.submit(job, node, slot=slot, fresh=fresh)
        except BaseException:
            self._give_back(task)
            raise
        self._replace_worker.discard(place)
        self._tasks[running] = task
        self._notify("baseline_check" if task.failure else "started", node, task, task.failure)

    def _handle(self, finished: Finished) -> None:
        task = self._tasks.pop(finished.running)
        try:
            self._settle(finished.running, finished.result, task)
        except LeaseError as error:
            self._observer(
                Event("dropped", finished.running.node, task.queued.job, message=str(error))
            )
        except BaseException:
            self._give_back(task)
            raise

    def _settle(self, running: Running, result: Outcome | WorkerFailure, task: Task) -> None:
        if isinstance(result, Outcome):
            # a driver or library may have changed since the node was checked: what is pinned to its
            # former environment stays there
            running.node.environments[result.job.condition.device] = result.environment
            self._note_baselines_ok(result)
            if any(failure.reason in REPLACED_AFTER for failure in result.failures):
                self._replace_worker.add(running.place)
            if (
                result.suspects
                and task.failure is None
                and (parts := task.queued.job.apart(result.suspects))
            ):
                queue.split(self._engine, task.queued.row, self._owner, parts, result)
                self._notify(
                    "split", running.node, task, WorkerFailure("error", result.failures[0].message)
                )
                return
            self._record(
                running.node,
                task,
                result if task.failure is None else self._isolate(running.node, task, result),
            )
        elif result.kind == "node_died":
            if "node_died" in self._retry.when and task.executions < self._retry.max_attempts:
                self._retry_later(running.node, task, result)
            else:
                self._record(running.node, task, failed_outcome(task, running.node, result, None))
        elif (
            result.kind == "out_of_memory"
            and self._jobs_on(running.node)
            and task.executions < self._retry.max_attempts
        ):
            # the memory may have been that of another job there
            self._retry_later(running.node, task, result)
        elif task.failure is not None:
            self._record(running.node, task, self._isolate(running.node, task, result))
        else:
            self._after_failure(running.node, task, result)

    def _after_failure(self, node: Node, task: Task, failure: WorkerFailure) -> None:
        job = task.queued.job
        if len(job.pairs) > 1:
            queue.split(
                self._engine,
                task.queued.row,
                self._owner,
                bisect(job),
                failed_outcome(task, node, failure, None),
            )
            self._notify("split", node, task, failure)
        elif not job.pairs:
            self._record(node, task, failed_outcome(task, node, failure, None))
        elif (alone := self._baselines_failed.get(baseline_key(job))) is not None:
            self._record(node, task, isolated_outcome(task, node, failure, alone))
        elif (
            failure.kind == "crash"
            and "worker_crash" in self._retry.when
            and task.executions < self._retry.max_attempts
        ):
            self._retry_later(node, task, failure)
        elif baseline_key(job) in self._baselines_ok:
            self._record(node, task, failed_outcome(task, node, failure, job.pairs[0].arm))
        else:
            self._start(node, task._replace(failure=failure))

    def _retry_later(self, node: Node, task: Task, failure: WorkerFailure) -> None:
        queue.release(
            self._engine, task.queued.row, self._owner, failed_outcome(task, node, failure, None)
        )
        self._notify("retried", node, task, failure)

    def _isolate(self, node: Node, task: Task, alone: Outcome | WorkerFailure) -> Outcome:
        """The outcome, with the failing arm named, now that the baseline has run alone."""
        assert task.failure is not None
        if isinstance(alone, WorkerFailure) or alone.failures:
            self._baselines_failed[baseline_key(task.queued.job)] = alone
        return isolated_outcome(task, node, task.failure, alone)

    def _give_back(self, task: Task) -> None:
        # it may be recorded already; if the store is out of reach the next run recovers it
        with contextlib.suppress(StoreError):
            queue.release(self._engine, task.queued.row, self._owner)

    def _record(self, node: Node, task: Task, outcome: Outcome) -> None:
        record(self._engine, task.queued.row, self._owner, outcome)
        measured, answers, unanswered, _ = self._summary
        for reasons in map(set, failure_reasons(outcome)):
            measured += not reasons
            answers += bool(reasons) and reasons <= ANSWERING_FAILURES
            unanswered += bool(reasons - ANSWERING_FAILURES)
        self._summary = Summary(measured, answers, unanswered)
        self._observer(Event("answered", node, outcome.job, outcome))

    def _note_baselines_ok(self, outcome: Outcome) -> None:
        baselines = {pair.baseline for pair in outcome.job.pairs} or {0}
        ran = {arm.arm for arm in outcome.arms}
        self._baselines_ok |= {
            (outcome.job.condition, outcome.job.arms[index]) for index in baselines & ran
        }

    def _notify(
        self, what: EventType, node: Node, task: Task, failure: WorkerFailure | None
    ) -> None:
        self._observer(
            Event(what, node, task.queued.job, message=failure.message if failure else "")
        )


def failure_reasons(outcome: Outcome) -> Iterator[list[FailureReason]]:
    """For each pair of the outcome's job, why it has no measurement; empty if it has one."""
    for pair in outcome.job.pairs:
        yield [failure.reason for failure in outcome.failures if failure.arm in {None, *pair}]
