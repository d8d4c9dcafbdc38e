"""Sites: what the machines of a run offer, and which of them meet what a sweep demands of a node's
labels.
"""

import platform
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec

from store.rows.placement import Capacity, Place
from sweeps.errors import UserError
from sweeps.model.condition import Device, Runtime
from sweeps.model.identity import canonical
from sweeps.model.outcome import Environment
from workers.measure.environment import devices, environment_of

NodeRequirement = Mapping[str, str | float]
"""Labels that a node must have: text is a label's value, a number the least amount of a
resource."""


class InfeasibleError(UserError):
    """A sweep requires a device or a label that no node has; one line for people."""


@dataclass(frozen=True, eq=False)
class Site:
    """One machine."""

    host: str
    environments: Mapping[Device, Environment]
    labels: Mapping[str, str] = field(default_factory=dict)
    """As in `ray start --labels`."""
    resources: Mapping[str, float] = field(default_factory=dict)
    """As in `ray start --resources`."""

    def place(self, device: Device) -> Place:
        """Where it measures jobs for `device`."""
        return Place(self.environments[device].environment_id, self.host)

    def meets(self, demand: NodeRequirement) -> bool:
        """Whether it has all that is demanded."""
        return all(self._has(name, value) for name, value in demand.items())

    def offer(self, device: Device, demands: Mapping[str, NodeRequirement]) -> Capacity:
        """What it can run for `device`, of jobs with `demands` (by their text in the queue)."""
        return Capacity(
            device,
            self.place(device),
            ("", *(text for text, demand in demands.items() if self.meets(demand))),
        )

    def _has(self, name: str, value: str | float) -> bool:
        if isinstance(value, str):
            return self.labels.get(name) == value
        return self.resources.get(name, 0.0) >= value

    def __str__(self) -> str:
        labels = {name: value for name, value in self.labels.items() if name != "ray.io/node-id"}
        known = [f"{name}={value}" for name, value in (*labels.items(), *self.resources.items())]
        return f"{self.host} ({', '.join(known) or 'no labels'})"


def local_sites() -> list[Site]:
    """This machine, as a site without labels."""
    return [Site(platform.node(), {device: environment_of(device) for device in devices()})]


def by_device(sites: Iterable[Site]) -> dict[Device, list[Environment]]:
    """The environments that the sites offer, by class of device."""
    offered: dict[Device, list[Environment]] = {}
    for site in sites:
        for device, environment in site.environments.items():
            offered.setdefault(device, []).append(environment)
    return offered


def places_of(sites: Iterable[Site]) -> set[Place]:
    """Where the sites measure."""
    return {site.place(device) for site in sites for device in site.environments}


def environment_ids(sites: Iterable[Site]) -> set[str]:
    """The environments of the sites."""
    return {found.environment_id for site in sites for found in site.environments.values()}


def demand_text(demand: NodeRequirement) -> str:
    """A demand as it stands in the queue; empty where nothing is demanded."""
    return canonical(demand) if demand else ""


def require_sites(
    devices: Collection[Device], demands: Collection[NodeRequirement], sites: Collection[Site]
) -> None:
    """Refuse at once what no machine here can run. Raises `InfeasibleError` that names the device
    or label.
    """
    environments = by_device(sites)
    missing = sorted(set(devices) - set(environments))
    if missing:
        there = "; ".join(
            f"{device}: {next(iter(found)).device_name}"
            for device, found in environments.items()
            if found
        )
        raise InfeasibleError(
            f"the sweep requires device {', '.join(missing)}, and there is only"
            f" {there or 'nothing'}"
        )
    for demand in demands:
        able = [site for site in sites if site.meets(demand)]
        lacking = [
            name
            for name, value in demand.items()
            if not any(site.meets({name: value}) for site in sites)
        ]
        there = "; ".join(map(str, sites)) or "none"
        if lacking:
            labels = _labels({name: demand[name] for name in lacking})
            raise InfeasibleError(
                f"`resources` requires a node with {labels}, and no node has it; nodes: {there}"
            )
        if not able:
            raise InfeasibleError(
                f"`resources` requires one node with {_labels(demand)}, and no node has it all;"
                f" nodes: {there}"
            )
        absent = sorted(set(devices) - {device for site in able for device in site.environments})
        if absent:
            raise InfeasibleError(
                f"no node with {_labels(demand)} offers device {', '.join(absent)}; nodes: {there}"
            )


RUNTIME_PACKAGES: Mapping[Runtime, tuple[str, ...]] = {
    "openvino": ("openvino",),
    "onnxruntime": ("onnxruntime", "onnxscript"),
    "llamacpp": ("gguf", "xllamacpp"),
}
"""Packages besides torch that a runtime needs, see `workers.errors.extra_library`."""


def missing_packages(runtimes: Iterable[Runtime], sites: Collection[Site]) -> dict[Runtime, str]:
    """What this machine lacks for each of the runtimes that it cannot run, in words; nothing where
    other machines may run them.
    """
    if {site.host for site in sites} != {platform.node()}:
        return {}
    missing: dict[Runtime, str] = {}
    for runtime in runtimes:
        lacking = [name for name in RUNTIME_PACKAGES.get(runtime, ()) if find_spec(name) is None]
        if lacking:
            missing[runtime] = (
                f"{' and '.join(lacking)} {'is' if len(lacking) == 1 else 'are'} not installed"
                " here: uv sync --extra runtimes"
            )
    return missing


def _labels(demand: NodeRequirement) -> str:
    return ", ".join(f"{name}={value}" for name, value in demand.items())
