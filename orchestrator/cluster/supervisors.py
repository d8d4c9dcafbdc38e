"""Supervisors of workers as Ray actors: one for each place, placed on demand; Ray neither retries
nor restarts any.
"""

from typing import Any

import psutil

from orchestrator.cluster.connect import ClusterOutageError
from orchestrator.host.worker_supervisor import WorkerConfig, WorkerSupervisor
from sweeps.model.condition import Device
from workers.measure.descendants import is_running, running_descendants

PLACEMENT_S = 60.0
"""A supervisor that Ray has not placed after this long will not be placed while others hold what it
needs."""
STATUS = "status"
"""Concurrency group of the calls that a supervisor answers while a job runs or waits."""
DAEMONS = ("gcs_server", "raylet")

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
