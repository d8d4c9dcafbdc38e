"""Dispatcher: gives waiting jobs to idle nodes, records their outcomes, and isolates the failing
arm when a worker dies.

A job is bisected down to a single pair (`bisect`). Then its baseline runs alone: if that fails too,
the baseline is the failing arm, else the other one is.
"""

import contextlib
import json
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Literal, NamedTuple

from orchestrator.cluster.cluster import Cluster, Finished, Running, WorkerPlace
from orchestrator.cluster.nodes import Node, can_start, has_capacity
from orchestrator.host.worker_supervisor import WorkerFailure
from orchestrator.loop.interruption import stop_requested
from store.errors import StoreError
from store.open.engine import Engine
from store.rows import owners
from store.write import queue
from store.write.record import LeaseError, record
from sweeps.language.file_schema import Retry
from sweeps.model.condition import Condition
from sweeps.model.job import Arm, Job
from sweeps.model.outcome import ANSWERING_FAILURES, Failure, FailureReason, Outcome


class Task(NamedTuple):
    """A claimed job that is being run."""

    queued: queue.QueuedJob
    failure: WorkerFailure | None = None
    """Set while the baseline runs alone: how the whole job ended."""

    @property
    def executions(self) -> int:
        """Executions of the job so far, the present one included."""
        return self.queued.attempts + 1


def bisect(job: Job) -> list[Job]:
    """The two halves of a job with several pairs."""
    middle = len(job.pairs) // 2
    return [job.only(job.pairs[:middle]), job.only(job.pairs[middle:])]


def baseline_key(job: Job) -> tuple[Condition, Arm]:
    """The baseline of a single-pair job in its condition: whether it runs alone holds for every
    other job with it.
    """
    return job.condition, job.arms[job.pairs[0].baseline]


def baseline_alone(job: Job) -> Job:
    """The job of running the baseline of a single pair alone."""
    return job.model_copy(update={"arms": (job.arms[job.pairs[0].baseline],), "pairs": ()})


def failed_outcome(
    task: Task, node: Node, failure: WorkerFailure, failing_arm: int | None
) -> Outcome:
    """The outcome of a job that came back without one; `failing_arm` is `None` when it is
    unknown.
    """
    job = task.queued.job
    reason: FailureReason = "error" if failure.kind == "node_died" else failure.kind
    times = f" ({task.executions} executions)" if task.executions > 1 else ""
    now = time.time()
    return Outcome(
        job=job,
        environment=node.environments[job.condition.device],
        host=node.host,
        started_at=failure.started_at or now,
        ended_at=failure.ended_at or now,
        failures=(
            Failure(
                arm=failing_arm,
                reason=reason,
                message=f"{failure.message}{times}",
                detail=failure.detail,
            ),
        ),
    )


def isolated_outcome(
    task: Task, node: Node, failure: WorkerFailure, alone: Outcome | WorkerFailure
) -> Outcome:
    """The outcome of a single-pair job that ended in `failure`, given the result of its baseline
    `alone`.

    If the baseline failed alone, it is the failing arm; if not, the other arm is, and what was
    measured of the baseline is kept.
    """
    job = task.queued.job
    baseline, arm = job.pairs[0]
    if isinstance(alone, Outcome) and not alone.failures:
        return failed_outcome(task, node, failure, arm).model_copy(
            update={
                "arms": tuple(
                    measured.model_copy(update={"arm": baseline}) for measured in alone.arms
                ),
                "samples": alone.samples and alone.samples.model_copy(update={"arms": (baseline,)}),
            }
        )
    outcome = failed_outcome(
        task, node, alone if isinstance(alone, WorkerFailure) else failure, baseline
    )
    cause = (
        outcome.failures[0]
        if isinstance(alone, WorkerFailure)
        else alone.failures[0].model_copy(update={"arm": baseline})
    )
    consequence = cause.model_copy(
        update={
            "arm": arm,
            "message": (
                f"not measured: its baseline {job.arms[baseline]} failed alone: {cause.message}"
            ),
        }
    )
    return outcome.model_copy(update={"failures": (cause, consequence)})


POLL_S = 0.5
"""How often the wait for results checks whether it was interrupted."""
RENEW_S = 15.0
"""How often the lease is renewed; a lease that is 60 s old counts as abandoned on another host."""
DERIVE_S = 1.0
"""Curves are derived at most so often while outcomes come; never while none does, since that would
disturb what is timed here."""
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
    queue.derive_left_over(engine)
    dispatcher = Dispatcher(
        engine, sweep_id, cluster, retry, observer, admits, may_wait, frozenset(repeated)
    )
    with stop_requested() as stopped:
        return dispatcher.run(stopped, tick)


@dataclass
class Dispatcher:
    """The state of one `dispatch`: which node runs what, and which baselines have run alone with or
    without a failure.
    """

    engine: Engine
    sweep_id: int
    cluster: Cluster
    retry: Retry
    observer: Callable[[Event], None]
    admits: Callable[[Job], bool]
    may_wait: Callable[[float], bool]
    repeated: frozenset[str]

    def __post_init__(self) -> None:
        self.waiting: dict[Running, float] = {}
        """Jobs that wait for their host, and since when."""
        self.taken = False
        self.derived = 0.0
        """When curves were derived last."""
        self.owner = owners.owner()
        demands = queue.demands(self.engine, self.sweep_id)
        self.demands = {text: json.loads(text) for text in demands if text}
        self.tasks: dict[Running, Task] = {}
        self.baselines_ok: set[tuple[Condition, Arm]] = set()
        self.baselines_failed: dict[tuple[Condition, Arm], Outcome | WorkerFailure] = {}
        self.replace_worker: set[WorkerPlace] = set()
        self.summary = Summary()

    def run(self, stopped: Callable[[], bool], tick: Callable[[], None]) -> Summary:
        self._require_devices()
        renewed = time.monotonic()
        try:
            self._fill()
            while self.tasks and not stopped():
                finished = self.cluster.wait(POLL_S)
                for one in finished:
                    self._handle(one)
                if finished and time.monotonic() - self.derived >= DERIVE_S:
                    queue.derive_left_over(self.engine)
                    self.derived = time.monotonic()
                for running, message in self.cluster.waits():
                    what: EventType = "waiting" if message else "begun"
                    self.observer(Event(what, running.node, running.job, message=message))
                    if message:
                        self.waiting.setdefault(running, time.monotonic())
                    else:
                        self.waiting.pop(running, None)
                self._release_waiting()
                joined = self.cluster.refresh()
                recovered = 0
                if time.monotonic() - renewed > RENEW_S:
                    queue.renew(self.engine, self.owner)
                    recovered = queue.recover(self.engine)
                    renewed = time.monotonic()
                if (finished or recovered or joined) and not stopped():
                    self._fill()
                tick()
            if not stopped():
                self._require_devices()  # the node that offered the device may have died
            return self.summary._replace(interrupted=stopped())
        finally:
            for running in self.tasks:
                self.cluster.kill(running)
            for task in self.tasks.values():
                self._give_back(task)
            with contextlib.suppress(StoreError):  # or the next command does
                queue.derive_left_over(self.engine)

    def _release_waiting(self) -> None:
        """Give back the jobs whose host is not waited for any longer; what waits behind them is not
        started either.
        """
        for running, since in list(self.waiting.items()):
            if running in self.tasks and not self.may_wait(time.monotonic() - since):
                self.taken = True
                self.cluster.kill(running)
                task = self.tasks.pop(running)
                self._give_back(task)
                self._notify("taken", running.node, task, "its host is not free")
        self.waiting = {
            running: since for running, since in self.waiting.items() if running in self.tasks
        }

    def _require_devices(self) -> None:
        self.cluster.require(queue.waiting_devices(self.engine, self.sweep_id))

    def _fill(self) -> None:
        """Fill every node, those without a GPU first, so that GPUs are left for the jobs that need
        them.
        """
        for node in sorted(self.cluster.nodes(), key=lambda node: len(node.devices)):
            while not self.taken and (claimed := self._next(node)):
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
                node.offer(device, self.demands),
                there[0].occupation if there else None,
            )
            limit, refused = 1, list[queue.QueuedJob]()
            while claimed := queue.claim(
                self.engine,
                self.sweep_id,
                owner=self.owner,
                offer=offer,
                limit=limit,
                beside=beside,
            ):
                admitted = [queued for queued in claimed if self.admits(queued.job)]
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
                queue.release(self.engine, queued.row, self.owner)
            if chosen is not None:
                return chosen
        return None

    def _jobs_on(self, node: Node) -> list[Job]:
        return [running.job for running in self.tasks if running.node.node_id == node.node_id]

    def _start(self, node: Node, task: Task) -> None:
        job = task.queued.job if task.failure is None else baseline_alone(task.queued.job)
        taken = {
            running.slot
            for running in self.tasks
            if running.place[:2] == (node.node_id, job.condition.device)
        }
        slot = next(slot for slot in count() if slot not in taken)
        place = (node.node_id, job.condition.device, slot)
        again = job.protocol.passes == 1 and not self.repeated.isdisjoint(job.comparison_ids())
        fresh = job.protocol.rounds > 1 or place in self.replace_worker or again
        try:
            running = self.cluster.submit(job, node, slot=slot, fresh=fresh)
        except BaseException:
            self._give_back(task)
            raise
        self.replace_worker.discard(place)
        self.tasks[running] = task
        if task.failure is None:
            self._notify("started", node, task)
        else:
            self._notify("baseline_check", node, task, task.failure.message)

    def _handle(self, finished: Finished) -> None:
        task = self.tasks.pop(finished.running)
        try:
            self._settle(finished.running, finished.result, task)
        except LeaseError as error:
            self._notify("dropped", finished.running.node, task, str(error))
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
                self.replace_worker.add(running.place)
            if (
                result.suspects
                and task.failure is None
                and (parts := task.queued.job.apart(result.suspects))
            ):
                queue.split(self.engine, task.queued.row, self.owner, parts, result)
                self._notify("split", running.node, task, result.failures[0].message)
                return
            self._record(
                running.node,
                task,
                result if task.failure is None else self._isolate(running.node, task, result),
            )
        elif result.kind == "node_died":
            if "node_died" in self.retry.when and task.executions < self.retry.max_attempts:
                self._retry_later(running.node, task, result)
            else:
                self._record(running.node, task, failed_outcome(task, running.node, result, None))
        elif (
            result.kind == "out_of_memory"
            and self._jobs_on(running.node)
            and task.executions < self.retry.max_attempts
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
                self.engine,
                task.queued.row,
                self.owner,
                bisect(job),
                failed_outcome(task, node, failure, None),
            )
            self._notify("split", node, task, failure.message)
        elif not job.pairs:
            self._record(node, task, failed_outcome(task, node, failure, None))
        elif (alone := self.baselines_failed.get(baseline_key(job))) is not None:
            self._record(node, task, isolated_outcome(task, node, failure, alone))
        elif (
            failure.kind == "crash"
            and "worker_crash" in self.retry.when
            and task.executions < self.retry.max_attempts
        ):
            self._retry_later(node, task, failure)
        elif baseline_key(job) in self.baselines_ok:
            self._record(node, task, failed_outcome(task, node, failure, job.pairs[0].arm))
        else:
            self._start(node, task._replace(failure=failure))

    def _retry_later(self, node: Node, task: Task, failure: WorkerFailure) -> None:
        queue.release(
            self.engine, task.queued.row, self.owner, failed_outcome(task, node, failure, None)
        )
        self._notify("retried", node, task, failure.message)

    def _isolate(self, node: Node, task: Task, alone: Outcome | WorkerFailure) -> Outcome:
        """The outcome, with the failing arm named, now that the baseline has run alone."""
        assert task.failure is not None
        if isinstance(alone, WorkerFailure) or alone.failures:
            self.baselines_failed[baseline_key(task.queued.job)] = alone
        return isolated_outcome(task, node, task.failure, alone)

    def _give_back(self, task: Task) -> None:
        # it may be recorded already; if the store is out of reach the next run recovers it
        with contextlib.suppress(StoreError):
            queue.release(self.engine, task.queued.row, self.owner)

    def _record(self, node: Node, task: Task, outcome: Outcome) -> None:
        record(self.engine, task.queued.row, self.owner, outcome, defer=True)
        measured, answers, unanswered, _ = self.summary
        for reasons in map(set, failure_reasons(outcome)):
            measured += not reasons
            answers += bool(reasons) and reasons <= ANSWERING_FAILURES
            unanswered += bool(reasons - ANSWERING_FAILURES)
        self.summary = Summary(measured, answers, unanswered)
        self.observer(Event("answered", node, outcome.job, outcome))

    def _note_baselines_ok(self, outcome: Outcome) -> None:
        baselines = {pair.baseline for pair in outcome.job.pairs} or {0}
        ran = {arm.arm for arm in outcome.arms}
        self.baselines_ok |= {
            (outcome.job.condition, outcome.job.arms[index]) for index in baselines & ran
        }

    def _notify(self, what: EventType, node: Node, task: Task, message: str = "") -> None:
        self.observer(Event(what, node, task.queued.job, message=message))


def failure_reasons(outcome: Outcome) -> Iterator[list[FailureReason]]:
    """For each pair of the outcome's job, why it has no measurement; empty if it has one."""
    for pair in outcome.job.pairs:
        yield [failure.reason for failure in outcome.failures if failure.arm in {None, *pair}]
