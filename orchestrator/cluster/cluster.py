"""Cluster: nodes with workers as they join and leave, jobs submitted to them and results that come
back.

Supervisors of workers are Ray actors: one for each place, placed on demand; Ray neither retries nor
restarts any.
"""

import os
import sys
import sysconfig
import threading
import time
from collections.abc import Callable, Collection, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self

import psutil

from orchestrator.cluster.connect import ClusterError, ClusterOutageError, Folder, outage, start_ray
from orchestrator.cluster.nodes import Node, check_node, excluded, node_name
from orchestrator.host.worker_supervisor import WorkerConfig, WorkerFailure, WorkerSupervisor
from sweeps.model.condition import Device
from sweeps.model.job import Job
from sweeps.model.outcome import Outcome
from workers.measure.descendants import is_running, running_descendants

PLACEMENT_S = 60.0
"""A supervisor that Ray has not placed after this long will not be placed while others hold what it
needs."""
STATUS = "status"
"""Concurrency group of the calls that a supervisor answers while a job runs or waits."""
DAEMONS = ("gcs_server", "raylet")
DAEMONS_S = 0.1
"""How often it is looked while Ray starts whether they live."""

WorkerPlace = tuple[str, Device, int]
"""Where a worker runs: node, device class, and a number among the workers there at once."""


class Supervisors:
    """The actors of one cluster by place."""

    def __init__(self, config: WorkerConfig, *, own_ray: bool) -> None:
        """`own_ray` if this process has started the Ray whose actors these are."""
        self._config = config
        self._actors: dict[WorkerPlace, Any] = {}
        self._daemons: dict[psutil.Process, str] = {}
        if own_ray:
            started = running_descendants().items()
            self._daemons = {process: name for process, name in started if name in DAEMONS}

    def lost_daemon(self) -> str | None:
        """A process of our own Ray that has ended, without which it cannot go on: its name and
        number.
        """
        lost = (daemon for daemon in self._daemons if not is_running(daemon))
        return next((f"{self._daemons[daemon]} ({daemon.pid})" for daemon in lost), None)

    def at(self, place: WorkerPlace) -> Any:
        """The actor of a place, new if there is none. Raises `ClusterOutageError` when others keep
        the GPUs of the node.
        """
        return self._actors.get(place) or self.start(place)

    def start(self, place: WorkerPlace) -> Any:
        """A new actor in a place. Raises `ClusterOutageError` as `at` does."""
        import ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        node_id, device, _ = place
        remote: Any = ray.remote  # its annotations leave concurrency groups out
        actor = (
            remote(concurrency_groups={STATUS: 1})(WorkerSupervisor)
            .options(
                num_cpus=0,
                num_gpus=1 if device == "cuda" else 0,
                max_restarts=0,
                max_task_retries=0,
                scheduling_strategy=NodeAffinitySchedulingStrategy(node_id, soft=False),
            )
            .remote(device, self._config)
        )
        if device == "cuda":
            try:
                ray.get(actor.__ray_ready__.remote(), timeout=PLACEMENT_S)
            except ray.exceptions.GetTimeoutError as error:
                ray.kill(actor)
                raise ClusterOutageError(
                    f"other Ray jobs have kept the GPUs of node {node_id} for {PLACEMENT_S:g} s;"
                    " try again later"
                ) from error
            except ray.exceptions.RayError:
                pass  # the node has died, which the result of the job will show
        self._actors[place] = actor
        return actor

    def discard(self, place: WorkerPlace) -> None:
        """Kill the actor of a place and its worker, if there is one."""
        import ray

        actor = self._actors.pop(place, None)
        if actor is not None and not self.lost_daemon():
            ray.kill(actor)

    def discard_all(self) -> None:
        for place in list(self._actors):
            self.discard(place)


DISCOVERY_S = 5.0
"""How often nodes that joined or left are looked for."""


class Discovery:
    """The nodes of one cluster; `notify` gets a line for each that is excluded, joins or leaves."""

    def __init__(self, supervisors: Supervisors, notify: Callable[[str], None]) -> None:
        self.nodes: list[Node] = []
        """Those that can be used."""
        self._supervisors, self._notify = supervisors, notify
        self._known: set[str] = set()
        """Nodes that were checked or are being checked; one that died and returned has a new id."""
        self._checks: dict[Any, dict[str, Any]] = {}
        """Rows of `ray.nodes()` by Ray's reference to the `NodeInfo` of the node."""
        self._checked_twice: set[str] = set()
        """Nodes whose first check ended because our process there was killed."""
        self._executor: ThreadPoolExecutor | None = None
        self._listing: Future[list[dict[str, Any]]] | None = None
        self._listed_at = time.monotonic()

    def discover_all(self) -> None:
        """Check the nodes that are there. Raises `ClusterOutageError` unless one can be used."""
        lines: list[str] = []
        notify, self._notify = self._notify, lines.append
        self._update(_living_nodes(), busy=())
        until = time.monotonic() + PLACEMENT_S
        while self._checks and time.monotonic() < until:
            self._collect(until - time.monotonic())
        self._notify = notify
        lines += [
            f"node {node_name(row)} has not answered for {PLACEMENT_S:g} s; it is used once it does"
            for row in self._checks.values()
        ]
        for line in lines:
            notify(line)
        if not self.nodes:
            raise ClusterOutageError(
                "; ".join(lines) or "the Ray cluster has no living node; start one with: ray start"
            )

    def refresh(self, busy: Collection[str]) -> bool:
        """Add nodes that joined and remove those that left, without waiting; whether there are new
        ones.

        `busy` are the ids of nodes with jobs, which stay until these have come back.
        """
        if self._listing is not None and self._listing.done():
            listing, self._listing = self._listing, None
            if listing.exception() is None:
                self._update(listing.result(), busy)
        elif self._listing is None and time.monotonic() - self._listed_at > DISCOVERY_S:
            self._executor = self._executor or ThreadPoolExecutor(1, "nodes")
            self._listing, self._listed_at = self._executor.submit(_living_nodes), time.monotonic()
        joined = self._collect(0.0)
        for node in joined:
            self._notify(f"node {node.host} joined: {', '.join(node.devices)}")
        return bool(joined)

    def remove(self, node: Node) -> None:
        """Remove a node that died; if it lives after all it is checked again."""
        if node in self.nodes:
            self.nodes.remove(node)
        self._known.discard(node.node_id)

    def close(self) -> None:
        if self._executor:
            self._executor.shutdown(wait=False)

    def _update(self, living: list[dict[str, Any]], busy: Collection[str]) -> None:
        """Begin to check new nodes, and remove idle ones that left."""
        present = {row["NodeID"] for row in living} | set(busy)
        for node in [node for node in self.nodes if node.node_id not in present]:
            self.nodes.remove(node)
            self._notify(f"node {node.host} left the cluster")
        for row in living:
            if row["NodeID"] not in self._known:
                self._known.add(row["NodeID"])
                self._check(row)

    def _check(self, row: dict[str, Any]) -> None:
        self._checks[self._supervisors.start((row["NodeID"], "cpu", 0)).node_info.remote()] = row

    def _collect(self, timeout_s: float) -> list[Node]:
        """Nodes whose checks have come in and that can be used."""
        import ray

        ready, _ = (
            ray.wait(list(self._checks), num_returns=1, timeout=timeout_s)
            if self._checks
            else ([], [])
        )
        before = len(self.nodes)
        for reference in ready:
            row = self._checks.pop(reference)
            try:
                found = check_node(row, ray.get(reference))
            except ray.exceptions.RayError as error:
                if (
                    isinstance(error, ray.exceptions.RayActorError)
                    and row["NodeID"] not in self._checked_twice
                ):
                    self._checked_twice.add(row["NodeID"])
                    self._check(row)
                    continue
                last = str(error).strip().splitlines()[-1]
                found = excluded(
                    row,
                    f"it cannot run our worker ({last}); install this version of breakeven there",
                )
            if found.node is None:
                self._supervisors.discard((row["NodeID"], "cpu", 0))
            else:
                self.nodes.append(found.node)
            for line in found.lines:
                self._notify(line)
        return self.nodes[before:]


def _living_nodes() -> list[dict[str, Any]]:
    """The rows of `ray.nodes()` of the nodes that live."""
    import ray

    return [row for row in ray.nodes() if row["Alive"]]  # type: ignore[no-untyped-call]


NEW_PROCESS_S = 20.0
WAITS_S, REPEAT_S = 2.0, 30.0
"""How often it is checked whether a running job waits for its host, and how often that is
reported."""
OURS, STORE = "BREAKEVEN_", "BREAKEVEN_DB"
"""Prefix of our environment variables, which workers get, and the one that they do not get: it may
hold a password."""


@dataclass(frozen=True, eq=False)
class Running:
    """A job that a worker has."""

    node: Node
    job: Job
    reference: Any
    """Ray's reference to the result."""
    slot: int = 0

    @property
    def place(self) -> WorkerPlace:
        return self.node.node_id, self.job.condition.device, self.slot


class Finished(NamedTuple):
    """A job that came back."""

    running: Running
    result: Outcome | WorkerFailure


class Cluster:
    """A running Ray cluster, our own on this machine or one by address; use as a context manager.

    Ray neither retries nor restarts anything: what follows a failure is the dispatcher's decision.
    """

    def __init__(
        self, config: WorkerConfig, folder: Folder | None, notify: Callable[[str], None]
    ) -> None:
        self._folder = folder
        self._supervisors = Supervisors(config, own_ray=folder is not None)
        self._discovery = Discovery(self._supervisors, notify)
        self._running: dict[Any, Running] = {}
        self._status_calls: dict[Any, Running] = {}
        self._status_at = time.monotonic()
        self._reported: dict[Any, float] = {}
        """When it was last reported, by `Running.reference`, that a job waits for its host."""

    @classmethod
    def start(
        cls,
        address: str | None = None,
        *,
        entry: str = WorkerConfig().entry,
        environments: str = WorkerConfig().environments,
        memory_bytes: int | None = None,
        notify: Callable[[str], None] = lambda _: None,
    ) -> Self:
        """Start Ray here, or connect to the cluster at `address`, and check what every node offers.

        `entry` and `environments` name the functions that workers call (`module:function`);
        `memory_bytes` limits what a CPU worker may allocate; `notify` gets a line for each node
        that is excluded, joins or leaves. Raises `ClusterError` when Ray cannot be started or
        reached, or no node can be used.
        """
        ours = tuple(
            sorted(
                (key, value)
                for key, value in os.environ.items()
                if key.startswith(OURS) and key != STORE
            )
        )
        config = WorkerConfig(
            entry, environments, str(Path.cwd()), _import_path(), ours, memory_bytes
        )
        try:
            folder = None if address else Folder()
        except OSError as error:
            raise ClusterError(
                f"Ray cannot be started here, because it has no place for its files: {error}"
            ) from error
        try:
            start_ray(address, folder)
        except BaseException:
            if folder:
                folder.end_processes()
                folder.remove()
            raise
        import ray

        cluster = cls(config, folder, notify)
        try:
            cluster._discover_all()
        except BaseException as error:
            cluster.close()
            if isinstance(error, ray.exceptions.RayError):  # such as of a GCS that was killed
                raise outage("Ray was lost while it started", error) from error
            raise
        return cluster

    def _discover_all(self) -> None:
        """In a thread, since calls to a Ray that was lost block until Ray ends this process."""
        found: Future[None] = Future()

        def discover() -> None:
            try:
                self._discovery.discover_all()
                found.set_result(None)
            except BaseException as error:
                found.set_exception(error)

        threading.Thread(target=discover, daemon=True).start()
        while not wait([found], DAEMONS_S).done:
            if lost := self._supervisors.lost_daemon():
                killed = RuntimeError(f"its process {lost} was killed")
                raise outage("Ray was lost while it started", killed)
        found.result()

    def nodes(self) -> list[Node]:
        """The nodes that can be used; those that joined meanwhile are among them once `refresh` has
        found them.
        """
        return list(self._discovery.nodes)

    def refresh(self) -> bool:
        """Add nodes that joined and remove idle ones that left, without waiting for any; whether
        there are new ones.
        """
        if self._folder:
            return False  # our own Ray has one node
        return self._discovery.refresh({running.node.node_id for running in self._running.values()})

    def require(self, devices: Iterable[Device]) -> None:
        """Raise `ClusterOutageError` naming what is there unless some node offers each of
        `devices`.
        """
        nodes = self._discovery.nodes
        missing = sorted(set(devices) - {device for node in nodes for device in node.devices})
        if missing:
            there = (
                "; ".join(f"{node.host}: {', '.join(node.devices)}" for node in nodes) or "no node"
            )
            raise ClusterOutageError(
                f"no node offers device {', '.join(missing)}; there is {there}"
            )

    def submit(self, job: Job, node: Node, *, slot: int = 0, fresh: bool = False) -> Running:
        """Give `job` to the worker of its device class and `slot` on `node`, which must be idle; to
        a new process if `fresh`.

        Raises `ClusterError` when the node does not offer the device, or others keep its GPUs.
        """
        device = job.condition.device
        if device not in node.devices:
            raise ClusterError(
                f"{node.host} does not offer device {device}; it offers {', '.join(node.devices)}"
            )
        supervisor = self._supervisors.at((node.node_id, device, slot))
        reference = supervisor.run.remote(
            job.model_dump_json(), job.timeout_s, fresh=fresh, gpus=node.gpus
        )
        running = Running(node, job, reference, slot)
        self._running[reference] = running
        return running

    def wait(self, timeout_s: float | None = None) -> list[Finished]:
        """Jobs that have come back, none after `timeout_s` seconds; returns as soon as there is
        one.
        """
        import ray

        if lost := self._supervisors.lost_daemon():
            self._discovery.nodes.clear()
            running, failure = (
                list(self._running.values()),
                WorkerFailure("node_died", f"Ray's process {lost} was killed"),
            )
            self._running.clear()
            return [Finished(one, failure) for one in running]
        ready, _ = ray.wait(list(self._running), num_returns=1, timeout=timeout_s)
        return [
            Finished(running, self._result(running)) for running in map(self._running.pop, ready)
        ]

    def waits(self) -> list[tuple[Running, str]]:
        """Jobs that wait for their host, with what they wait for; each when it is first seen, and
        then every `REPEAT_S`.

        A job that waits no more comes once with an empty text.
        """
        import ray

        found, now = [], time.monotonic()
        ready = (
            ray.wait(list(self._status_calls), num_returns=len(self._status_calls), timeout=0)[0]
            if self._status_calls
            else []
        )
        for call, running in [
            (reference, self._status_calls.pop(reference)) for reference in ready
        ]:
            try:
                message = ray.get(call)
            except ray.exceptions.RayError:
                continue  # its supervisor has died, which the result of the job will show
            if running.reference not in self._running:
                continue
            if message and now - self._reported.get(running.reference, -REPEAT_S) >= REPEAT_S:
                self._reported[running.reference] = now
                found.append((running, message))
            elif not message and self._reported.pop(running.reference, None) is not None:
                found.append((running, ""))
        if now - self._status_at > WAITS_S:
            self._status_at = now
            for running in set(self._running.values()) - set(self._status_calls.values()):
                supervisor = self._supervisors.at(running.place)
                self._status_calls[
                    supervisor.waiting.options(concurrency_group=STATUS).remote()
                ] = running
            self._reported = {
                reference: at
                for reference, at in self._reported.items()
                if reference in self._running
            }
        return found

    def kill(self, running: Running) -> None:
        """Kill the job and its worker at once; the next job on that node and device class gets new
        ones.
        """
        self._running.pop(running.reference, None)
        self._supervisors.discard(running.place)

    def close(self) -> None:
        """Kill all workers and leave the cluster; our own is shut down and its files are
        removed.
        """
        import ray

        if self._folder and self._supervisors.lost_daemon():
            self._folder.end_processes()  # this Ray answers no more
        if ray.is_initialized():  # else `ray.kill` would start a Ray
            self._supervisors.discard_all()
            ray.shutdown()
        self._running.clear()
        if self._folder:
            self._folder.end_processes()
            self._folder.remove()
        self._discovery.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _result(self, running: Running) -> Outcome | WorkerFailure:
        import ray

        try:
            reply: str | WorkerFailure = ray.get(running.reference)
        except ray.exceptions.RayError as error:
            return self._lost(running, error)
        if isinstance(reply, WorkerFailure):
            return reply
        try:
            return Outcome.model_validate_json(reply)
        except ValueError as error:
            return WorkerFailure("error", "the worker's outcome is not valid", str(error))

    def _lost(self, running: Running, error: Exception) -> WorkerFailure:
        """The failure where the supervisor itself is gone: its node died, or something killed it.
        The job is not the cause.
        """
        import ray

        node = running.node
        if self._supervisors.lost_daemon():
            self._discovery.nodes.clear()
            return WorkerFailure("node_died", f"Ray on {node.host} was killed", str(error))
        probe: WorkerPlace = (node.node_id, "cpu", -1)
        self._supervisors.discard(running.place)
        try:
            # Ray takes a while to call a node dead, and its old processes may answer meanwhile; a
            # new one needs a living node.
            ray.get(self._supervisors.start(probe).node_info.remote(), timeout=NEW_PROCESS_S)
        except ray.exceptions.RayError:
            self._discovery.remove(node)
            return WorkerFailure("node_died", f"node {node.host} left the cluster", str(error))
        finally:
            self._supervisors.discard(probe)
        return WorkerFailure("node_died", f"Ray lost our process on {node.host}", str(error))


def _import_path() -> tuple[str, ...]:
    """The folders on the import path that are no part of Python's installation: the checkout, a
    test's folder.
    """
    installed = [
        Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "purelib", "platlib")
    ]
    folders = [Path(entry or ".").resolve() for entry in sys.path]
    return tuple(
        str(folder)
        for folder in folders
        if folder.is_dir() and not any(folder.is_relative_to(place) for place in installed)
    )
