"""Cluster: the nodes that Ray gives us, each with one warm worker per device class; the only Ray calls of the project."""

import logging
import os
import secrets
import sys
import sysconfig
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from orchestrator.folder import Folder
from orchestrator.joining import MODE, TOKEN, TOKEN_PATH, ClusterError, join
from orchestrator.worker import Fault, Keeper, Setting, Survey
from sweeps.job import Device, Job
from sweeps.outcome import Environment, Outcome

__all__ = ["Cluster", "ClusterError", "Finished", "Node", "Running"]

OBJECT_STORE_BYTES = 100_000_000
"""Jobs and outcomes are a few kilobytes; tensors never travel."""
PLACEMENT_S = 60.0
"""A keeper that Ray has not placed after this long will not be placed while others hold what it needs."""
NEW_PROCESS_S = 20.0
OURS = "BREAKEVEN_"


@dataclass(frozen=True, eq=False)
class Node:
    """One machine of the cluster."""

    node_id: str
    host: str
    devices: tuple[Device, ...]
    environments: Mapping[Device, Environment]
    cpus: int
    gpus: int


@dataclass(frozen=True, eq=False)
class Running:
    """A job that a worker has."""

    node: Node
    job: Job
    reference: Any
    """Ray's promise of the result."""


class Finished(NamedTuple):
    """A job that came back."""

    running: Running
    result: Outcome | Fault


class Cluster:
    """A running Ray cluster, our own on this machine or somebody's by address; use as a context manager.

    Ray neither retries nor restarts anything: what happens after a fault is for the dispatcher to decide.
    """

    def __init__(self, setting: Setting, folder: Folder | None) -> None:
        self._setting, self._folder = setting, folder
        self._keepers: dict[tuple[str, Device], Any] = {}
        self._running: dict[Any, Running] = {}
        self._nodes: list[Node] = []

    @classmethod
    def start(
        cls,
        address: str | None = None,
        *,
        entry: str = Setting().entry,
        survey: str = Setting().survey,
        memory_bytes: int | None = None,
    ) -> Self:
        """Start Ray here, or connect to the cluster at `address`, and ask every node what it offers.

        `entry` and `survey` name the functions that the workers call (`module:function`); `memory_bytes` limits what a CPU
        worker may allocate. Raises `ClusterError` when Ray cannot be started or reached, or no node answers.
        """
        ours = tuple(sorted((key, value) for key, value in os.environ.items() if key.startswith(OURS)))
        setting = Setting(entry, survey, str(Path.cwd()), _import_path(), ours, memory_bytes)
        folder = None if address else Folder()
        try:
            _init(address, folder)
        except BaseException:
            if folder:
                folder.remove()
            raise
        cluster = cls(setting, folder)
        try:
            cluster._nodes = cluster._survey()
        except BaseException:
            cluster.close()
            raise
        return cluster

    def nodes(self) -> list[Node]:
        """The nodes that were there at the start and are still alive."""
        return list(self._nodes)

    def require(self, devices: Iterable[Device]) -> None:
        """Raise `ClusterError` naming what is there unless some node offers each of `devices`."""
        offered = {device for node in self._nodes for device in node.devices}
        missing = sorted(set(devices) - offered)
        if missing:
            there = "; ".join(f"{node.host}: {', '.join(node.devices)}" for node in self._nodes) or "no node"
            raise ClusterError(f"no node offers device {', '.join(missing)}; there is {there}")

    def submit(self, job: Job, node: Node, *, fresh: bool = False) -> Running:
        """Hand `job` to the worker of its device class on `node`, which must be idle; in a new process if `fresh`.

        Raises `ClusterError` when the node does not offer the device, or others keep its GPUs.
        """
        device = job.condition.device
        if device not in node.devices:
            raise ClusterError(f"{node.host} does not offer device {device}; it offers {', '.join(node.devices)}")
        keeper = self._keepers.get((node.node_id, device)) or self._place(node.node_id, device)
        reference = keeper.run.remote(job.model_dump_json(), job.timeout_s, fresh=fresh)
        running = Running(node, job, reference)
        self._running[reference] = running
        return running

    def wait(self, timeout_s: float | None = None) -> list[Finished]:
        """Jobs that have come back, none after `timeout_s` seconds; returns as soon as there is one."""
        import ray

        ready, _ = ray.wait(list(self._running), num_returns=1, timeout=timeout_s)
        return [Finished(running, self._result(running)) for running in map(self._running.pop, ready)]

    def kill(self, running: Running) -> None:
        """Kill the job and its worker at once; the next job on that node and device class gets new ones."""
        self._running.pop(running.reference, None)
        self._discard(running.node, running.job.condition.device)

    def close(self) -> None:
        """Kill all workers and leave the cluster; our own is shut down and its files are removed."""
        import ray

        if ray.is_initialized():  # else `ray.kill` would start a Ray
            for keeper in self._keepers.values():
                ray.kill(keeper)
            ray.shutdown()
        self._running.clear()
        self._keepers.clear()
        if self._folder:
            self._folder.remove()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _survey(self) -> list[Node]:
        import ray

        facts = {node["NodeID"]: node for node in ray.nodes() if node["Alive"]}  # type: ignore[no-untyped-call]
        asked = {node_id: self._place(node_id, "cpu").survey.remote() for node_id in facts}
        nodes = []
        for node_id, reference in asked.items():
            address = facts[node_id]["NodeManagerAddress"]
            try:
                survey: Survey = ray.get(reference, timeout=PLACEMENT_S)
            except ray.exceptions.GetTimeoutError as error:
                raise ClusterError(f"node {address} has not answered for {PLACEMENT_S:g} s; is it overloaded?") from error
            except ray.exceptions.RayError as error:
                last = str(error).strip().splitlines()[-1]
                raise ClusterError(
                    f"node {address} cannot run our worker ({last}); install this version of breakeven there"
                ) from error
            counted = facts[node_id]["Resources"]
            cpus, gpus = int(counted.get("CPU", 0)), int(counted.get("GPU", 0))
            environments = {device: found for device, found in survey.environments.items() if device == "cpu" or gpus}
            nodes.append(Node(node_id, survey.host, tuple(environments), environments, cpus, gpus))
        if not nodes:
            raise ClusterError("the Ray cluster has no living node; start one with: ray start")
        return nodes

    def _place(self, node_id: str, device: Device) -> Any:
        import ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        keeper: Any = (
            ray.remote(Keeper)
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
        self._keepers[node_id, device] = keeper
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
        self._discard(node, "cpu")
        self._discard(node, running.job.condition.device)
        try:
            # Ray takes a while to call a node dead, and its old processes may answer meanwhile; a new one needs a living node.
            ray.get(self._place(node.node_id, "cpu").survey.remote(), timeout=NEW_PROCESS_S)
        except ray.exceptions.RayError:
            self._discard(node, "cpu")
            self._nodes.remove(node)
            return Fault("node_died", f"node {node.host} left the cluster", str(error))
        return Fault("node_died", f"Ray lost our process on {node.host}", str(error))

    def _discard(self, node: Node, device: Device) -> None:
        import ray

        keeper = self._keepers.pop((node.node_id, device), None)
        if keeper is not None:
            ray.kill(keeper)


def _init(address: str | None, folder: Folder | None) -> None:
    """Start or join a Ray cluster, quietly. Raises `ClusterError`."""
    quiet = {
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",  # under `uv run` Ray would build a second environment for its workers
        "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # the next default, without the warning; we hide GPUs from CPU jobs ourselves
    }
    if not address:
        quiet["RAY_memory_monitor_refresh_ms"] = "0"  # it would kill the keeper, not the worker, and print pages
        if not {MODE, TOKEN, TOKEN_PATH} & os.environ.keys():
            quiet[TOKEN] = secrets.token_hex(32)  # else Ray writes one into the home folder, which may be read-only
    else:
        address, os.environ[MODE] = join(address)
    for key, value in quiet.items():
        os.environ.setdefault(key, value)
    import ray

    local = {
        "address": "local",
        "object_store_memory": OBJECT_STORE_BYTES,
        "include_dashboard": False,
        "_temp_dir": folder and folder.path,
    }
    try:
        ray.init(**(local if not address else {"address": address}), log_to_driver=False, logging_level=logging.ERROR)
    except Exception as error:  # Ray raises plain `Exception` too
        problem = f"the Ray cluster at {address} cannot be joined" if address else "Ray cannot be started here"
        cause = error.__cause__ or error
        first = next(iter(str(cause).strip().splitlines()), type(cause).__name__)
        raise ClusterError(f"{problem}: {first}") from error


def _import_path() -> tuple[str, ...]:
    """The folders on the import path that are no part of Python's installation: the checkout, a test's folder."""
    installed = [Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "purelib", "platlib")]
    folders = [Path(entry or ".").resolve() for entry in sys.path]
    return tuple(
        str(folder) for folder in folders if folder.is_dir() and not any(folder.is_relative_to(place) for place in installed)
    )
