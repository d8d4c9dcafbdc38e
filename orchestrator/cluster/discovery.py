"""Discovery of nodes: which nodes of a Ray cluster can be used, as they join and leave."""

import time
from collections.abc import Callable, Collection
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from orchestrator.cluster.connect import ClusterOutageError
from orchestrator.cluster.nodes import Node, check_node, excluded, node_name
from orchestrator.cluster.supervisors import PLACEMENT_S, Supervisors

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
