"""Cluster: the nodes that Ray gives us, each with one warm worker per device class; the only Ray calls of the project."""

import os
import sys
import sysconfig
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from orchestrator.nodes import Node, judged, left_out, name
from orchestrator.ray_start import ClusterError, start_ray
from orchestrator.ray_tempdir import Folder
from orchestrator.worker_process import Fault, Setting, WorkerSupervisor
from sweeps.job import Device, Job
from sweeps.outcome import Outcome
from workers.measure.descendants import Process, descendants, lives

__all__ = ["Cluster", "ClusterError", "Finished", "Node", "Place", "Running"]

PLACEMENT_S = 60.0
"""A keeper that Ray has not placed after this long will not be placed while others hold what it needs."""
NEW_PROCESS_S = 20.0
STATUS = "status"
"""Concurrency group of a keeper's calls that are answered while a job runs or waits."""
WAITS_S, REPEAT_S = 2.0, 30.0
"""How often a running job is asked whether it waits for its host, and how often that is reported."""
DISCOVERY_S = 5.0
"""How often the cluster is asked for nodes that joined or left."""
DAEMONS = ("gcs_server", "raylet")
OURS, STORE = "BREAKEVEN_", "BREAKEVEN_DB"
"""Our environment variables, which workers get, and the one that they do not: it may hold a password."""


Place = tuple[str, Device, int]
"""A worker's place: node, device class, and a number among those that run there at once."""


@dataclass(frozen=True, eq=False)
class Running:
    """A job that a worker has."""

    node: Node
    job: Job
    reference: Any
    """Ray's promise of the result."""
    slot: int = 0

    @property
    def place(self) -> Place:
        return self.node.node_id, self.job.condition.device, self.slot


class Finished(NamedTuple):
    """A job that came back."""

    running: Running
    result: Outcome | Fault


class Cluster:
    """A running Ray cluster, our own on this machine or somebody's by address; use as a context manager.

    Ray neither retries nor restarts anything: what happens after a fault is for the dispatcher to decide.
    """

    def __init__(self, setting: Setting, folder: Folder | None, notify: Callable[[str], None]) -> None:
        self._setting, self._folder, self._notify = setting, folder, notify
        self._keepers: dict[Place, Any] = {}
        self._running: dict[Any, Running] = {}
        self._nodes: list[Node] = []
        self._known: set[str] = set()
        """Nodes that were surveyed, or are being surveyed; one that died and returned has a new id."""
        self._surveys: dict[Any, dict[str, Any]] = {}
        self._surveyed_twice: set[str] = set()
        """Nodes whose first survey ended because our process there was killed."""
        self._asked: dict[Any, Running] = {}
        self._asked_at = time.monotonic()
        self._reported: dict[Any, float] = {}
        """When it was last reported, by `Running.reference`, that a job waits for its host."""
        self._asking: ThreadPoolExecutor | None = None
        self._listed: Future[list[dict[str, Any]]] | None = None
        self._listed_at = time.monotonic()
        self._daemons = [process for process in descendants(os.getpid()) if process.name in DAEMONS] if folder else []
        """Those of our own Ray, which cannot go on without one of them."""

    @classmethod
    def start(
        cls,
        address: str | None = None,
        *,
        entry: str = Setting().entry,
        survey: str = Setting().survey,
        memory_bytes: int | None = None,
        notify: Callable[[str], None] = lambda _: None,
    ) -> Self:
        """Start Ray here, or connect to the cluster at `address`, and ask every node what it offers.

        `entry` and `survey` name the functions that the workers call (`module:function`); `memory_bytes` limits what a CPU
        worker may allocate; `notify` gets a line for each node that is left out, joins or leaves. Raises `ClusterError` when Ray
        cannot be started or reached, or no node can be used.
        """
        ours = tuple(sorted((key, value) for key, value in os.environ.items() if key.startswith(OURS) and key != STORE))
        setting = Setting(entry, survey, str(Path.cwd()), _import_path(), ours, memory_bytes)
        try:
            folder = None if address else Folder()
        except OSError as error:
            raise ClusterError(f"Ray cannot be started here, because it has no place for its files: {error}") from error
        try:
            start_ray(address, folder)
        except BaseException:
            if folder:
                folder.remove()
            raise
        cluster = cls(setting, folder, notify)
        try:
            cluster._survey_all()
        except BaseException:
            cluster.close()
            raise
        return cluster

    def nodes(self) -> list[Node]:
        """The nodes that can be used; those that joined meanwhile are among them once `refresh` has found them."""
        return list(self._nodes)

    def refresh(self) -> bool:
        """Take in nodes that joined and let go of idle ones that left, without waiting for any; whether there are new ones."""
        if self._folder:
            return False  # our own Ray has one node
        if self._listed is not None and self._listed.done():
            listed, self._listed = self._listed, None
            if listed.exception() is None:
                self._take_in(listed.result())
        elif self._listed is None and time.monotonic() - self._listed_at > DISCOVERY_S:
            self._asking = self._asking or ThreadPoolExecutor(1, "nodes")
            self._listed, self._listed_at = self._asking.submit(_alive), time.monotonic()
        joined = self._collect(0.0)
        for node in joined:
            self._notify(f"node {node.host} joined: {', '.join(node.devices)}")
        return bool(joined)

    def require(self, devices: Iterable[Device]) -> None:
        """Raise `ClusterError` naming what is there unless some node offers each of `devices`."""
        offered = {device for node in self._nodes for device in node.devices}
        missing = sorted(set(devices) - offered)
        if missing:
            there = "; ".join(f"{node.host}: {', '.join(node.devices)}" for node in self._nodes) or "no node"
            raise ClusterError(f"no node offers device {', '.join(missing)}; there is {there}")

    def submit(self, job: Job, node: Node, *, slot: int = 0, fresh: bool = False) -> Running:
        """Hand `job` to the worker of its device class and `slot` on `node`, which must be idle; in a new process if `fresh`.

        Raises `ClusterError` when the node does not offer the device, or others keep its GPUs.
        """
        device = job.condition.device
        if device not in node.devices:
            raise ClusterError(f"{node.host} does not offer device {device}; it offers {', '.join(node.devices)}")
        place = (node.node_id, device, slot)
        keeper = self._keepers.get(place) or self._place(place)
        reference = keeper.run.remote(job.model_dump_json(), job.timeout_s, fresh=fresh, gpus=node.gpus)
        running = Running(node, job, reference, slot)
        self._running[reference] = running
        return running

    def wait(self, timeout_s: float | None = None) -> list[Finished]:
        """Jobs that have come back, none after `timeout_s` seconds; returns as soon as there is one."""
        import ray

        if lost := self._lost_daemon():
            self._nodes.clear()
            running, fault = list(self._running.values()), Fault("node_died", f"Ray's process {lost} was killed")
            self._running.clear()
            return [Finished(one, fault) for one in running]
        ready, _ = ray.wait(list(self._running), num_returns=1, timeout=timeout_s)
        return [Finished(running, self._result(running)) for running in map(self._running.pop, ready)]

    def waits(self) -> list[tuple[Running, str]]:
        """Jobs that wait for their host, with what they wait for; each when it is first seen, and then every `REPEAT_S`.

        A job that waits no more comes once with an empty text.
        """
        import ray

        found, now = [], time.monotonic()
        ready = ray.wait(list(self._asked), num_returns=len(self._asked), timeout=0)[0] if self._asked else []
        for asked, running in [(reference, self._asked.pop(reference)) for reference in ready]:
            try:
                message = ray.get(asked)
            except ray.exceptions.RayError:
                continue  # its keeper has died, which the job's own result will show
            if (
                message
                and running.reference in self._running
                and now - self._reported.get(running.reference, -REPEAT_S) >= REPEAT_S
            ):
                self._reported[running.reference] = now
                found.append((running, message))
            elif not message and running.reference in self._running and self._reported.pop(running.reference, None) is not None:
                found.append((running, ""))
        if now - self._asked_at > WAITS_S:
            self._asked_at = now
            for running in set(self._running.values()) - set(self._asked.values()):
                keeper = self._keepers[running.place]
                self._asked[keeper.waiting.options(concurrency_group=STATUS).remote()] = running
            self._reported = {reference: told for reference, told in self._reported.items() if reference in self._running}
        return found

    def kill(self, running: Running) -> None:
        """Kill the job and its worker at once; the next job on that node and device class gets new ones."""
        self._running.pop(running.reference, None)
        self._discard(running.place)

    def close(self) -> None:
        """Kill all workers and leave the cluster; our own is shut down and its files are removed."""
        import ray

        if self._folder and self._lost_daemon():
            self._folder.end_processes()  # nothing that is asked of this Ray is answered
            self._keepers.clear()
        if ray.is_initialized():  # else `ray.kill` would start a Ray
            for keeper in self._keepers.values():
                ray.kill(keeper)
            ray.shutdown()
        self._running.clear()
        self._keepers.clear()
        if self._folder:
            self._folder.end_processes()
            self._folder.remove()
        if self._asking:
            self._asking.shutdown(wait=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _survey_all(self) -> None:
        """NodeInfo the nodes that are there. Raises `ClusterError` unless one can be used."""
        told: list[str] = []
        notify, self._notify = self._notify, told.append
        self._take_in(_alive())
        until = time.monotonic() + PLACEMENT_S
        while self._surveys and time.monotonic() < until:
            self._collect(until - time.monotonic())
        self._notify = notify
        late = [
            f"node {name(facts)} has not answered for {PLACEMENT_S:g} s; it is used once it does"
            for facts in self._surveys.values()
        ]
        for line in [*told, *late]:
            notify(line)
        if not self._nodes:
            raise ClusterError("; ".join([*told, *late]) or "the Ray cluster has no living node; start one with: ray start")

    def _take_in(self, alive: list[dict[str, Any]]) -> None:
        """Begin to survey the nodes that are new, and let go of those that left while they were idle."""
        present = {facts["NodeID"] for facts in alive}
        busy = {running.node.node_id for running in self._running.values()}
        for node in [node for node in self._nodes if node.node_id not in present | busy]:
            self._nodes.remove(node)
            self._notify(f"node {node.host} left the cluster")
        for facts in alive:
            if facts["NodeID"] not in self._known:
                self._known.add(facts["NodeID"])
                self._surveys[self._place((facts["NodeID"], "cpu", 0)).survey.remote()] = facts

    def _collect(self, timeout_s: float) -> list[Node]:
        """Judge the surveys that have come in; the nodes that can be used since."""
        import ray

        ready, _ = ray.wait(list(self._surveys), num_returns=1, timeout=timeout_s) if self._surveys else ([], [])
        before = len(self._nodes)
        for reference in ready:
            facts = self._surveys.pop(reference)
            try:
                found = judged(facts, ray.get(reference))
            except ray.exceptions.RayError as error:
                if isinstance(error, ray.exceptions.RayActorError) and facts["NodeID"] not in self._surveyed_twice:
                    self._surveyed_twice.add(facts["NodeID"])
                    self._surveys[self._place((facts["NodeID"], "cpu", 0)).survey.remote()] = facts
                    continue
                last = str(error).strip().splitlines()[-1]
                found = left_out(facts, f"it cannot run our worker ({last}); install this version of breakeven there")
            if found.node is None:
                ray.kill(self._keepers.pop((facts["NodeID"], "cpu", 0)))
            else:
                self._nodes.append(found.node)
            for line in found.lines:
                self._notify(line)
        return self._nodes[before:]

    def _place(self, place: Place) -> Any:
        import ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        node_id, device, _ = place
        remote: Any = ray.remote  # its annotations leave concurrency groups out
        keeper = (
            remote(concurrency_groups={STATUS: 1})(WorkerSupervisor)
            .options(
                num_cpus=0,
                num_gpus=1 if device == "cuda" else 0,
                max_restarts=0,
                max_task_retries=0,
                scheduling_strategy=NodeAffinitySchedulingStrategy(node_id, soft=False),
            )
            .remote(device, self._setting)
        )
        if device == "cuda":
            try:
                ray.get(keeper.__ray_ready__.remote(), timeout=PLACEMENT_S)
            except ray.exceptions.GetTimeoutError as error:
                ray.kill(keeper)
                raise ClusterError(
                    f"other Ray jobs have kept the GPUs of node {node_id} for {PLACEMENT_S:g} s; try again later"
                ) from error
            except ray.exceptions.RayError:
                pass  # the node has died, which the job's own result will tell
        self._keepers[place] = keeper
        return keeper

    def _result(self, running: Running) -> Outcome | Fault:
        import ray

        try:
            reply: str | Fault = ray.get(running.reference)
        except ray.exceptions.RayError as error:
            return self._lost(running, error)
        if isinstance(reply, Fault):
            return reply
        try:
            return Outcome.model_validate_json(reply)
        except ValueError as error:
            return Fault("error", "the worker's outcome is not valid", str(error))

    def _lost(self, running: Running, error: Exception) -> Fault:
        """The keeper itself is gone: its node died, or something killed it. Neither speaks against the job."""
        import ray

        node = running.node
        if self._lost_daemon():
            self._nodes.clear()
            return Fault("node_died", f"Ray on {node.host} was killed", str(error))
        probe: Place = (node.node_id, "cpu", -1)
        self._discard(running.place)
        try:
            # Ray takes a while to call a node dead, and its old processes may answer meanwhile; a new one needs a living node.
            ray.get(self._place(probe).survey.remote(), timeout=NEW_PROCESS_S)
        except ray.exceptions.RayError:
            if node in self._nodes:
                self._nodes.remove(node)
            self._known.discard(node.node_id)  # if it lives after all it is surveyed again
            return Fault("node_died", f"node {node.host} left the cluster", str(error))
        finally:
            self._discard(probe)
        return Fault("node_died", f"Ray lost our process on {node.host}", str(error))

    def _lost_daemon(self) -> Process | None:
        """A process of our own Ray that has ended, if one has."""
        return next((daemon for daemon in self._daemons if not lives(daemon)), None)

    def _discard(self, place: Place) -> None:
        import ray

        keeper = self._keepers.pop(place, None)
        if keeper is not None and not self._lost_daemon():
            ray.kill(keeper)


def _alive() -> list[dict[str, Any]]:
    """The rows of `ray.nodes()` of the nodes that live."""
    import ray

    return [facts for facts in ray.nodes() if facts["Alive"]]  # type: ignore[no-untyped-call]


def _import_path() -> tuple[str, ...]:
    """The folders on the import path that are no part of Python's installation: the checkout, a test's folder."""
    installed = [Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "purelib", "platlib")]
    folders = [Path(entry or ".").resolve() for entry in sys.path]
    return tuple(
        str(folder) for folder in folders if folder.is_dir() and not any(folder.is_relative_to(place) for place in installed)
    )
