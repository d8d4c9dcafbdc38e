"""Samples of a GPU as readings and flags, on stand-ins for the device's queries: no GPU is
needed.
"""

from types import SimpleNamespace
from typing import Any

import pynvml
import pytest

from sweeps.model.metrics import SYSTEM_METRICS
from workers.measure.counters import EVENT_REASONS, GpuSamples, competing, foreign_mib, slowdowns

MIB = 2**20


def test_gpu_samples_become_readings_and_flags() -> None:
    """Heat and hardware reasons are slowdowns; power caps and idle clocks are only read."""
    capped, heat = EVENT_REASONS["sw_power_cap"], EVENT_REASONS["hw_thermal_slowdown"]
    graphics = GpuSamples()
    graphics.values = {
        "sm_clock": [1500.0, 1980.0],
        "memory_clock": [2619.0, 2619.0],
        "temperature": [50.0, 61.0],
        "power": [100.0, 300.0],
        "reasons": [1.0, float(capped)],
        "processes": [1.0],
        "memory_used": [900.0, 1000.0],
        "memory_foreign": [0.0],
    }
    readings, flags = graphics.findings()
    assert readings == {
        "gpu_sm_clock_min": 1500.0,
        "gpu_sm_clock_max": 1980.0,
        "gpu_memory_clock_min": 2619.0,
        "gpu_temperature_max": 61.0,
        "gpu_power_mean": 200.0,
        "gpu_event_reasons": 5.0,
        "gpu_power_capped": 0.5,
        "gpu_reason_gpu_idle": 0.5,
        "gpu_reason_sw_power_cap": 0.5,
        "gpu_processes": 1.0,
        "gpu_memory_used_max": 1000.0,
        "gpu_memory_foreign_max": 0.0,
    }
    assert not flags
    assert {name for name in readings if "reason_" not in name} <= set(SYSTEM_METRICS)
    graphics.values |= {"reasons": [float(heat)], "processes": [1.0, 2.0]}
    assert graphics.findings()[1] == {"thermal_slowdown", "contended"}


@pytest.mark.parametrize(
    ("names", "flags"),
    [
        ([], set()),
        (
            [
                "gpu_idle",
                "sw_power_cap",
                "applications_clocks_setting",
                "sync_boost",
                "display_clock_setting",
            ],
            set(),
        ),
        (["sw_thermal_slowdown"], {"thermal_slowdown"}),
        (["hw_slowdown", "hw_thermal_slowdown"], {"thermal_slowdown"}),
        (["hw_slowdown", "hw_power_brake_slowdown"], {"power_brake"}),
        (["hw_slowdown"], {"hardware_slowdown"}),
        (["sw_thermal_slowdown", "hw_power_brake_slowdown"], {"thermal_slowdown", "power_brake"}),
    ],
)
def test_reasons_by_name(names: list[str], flags: set[str]) -> None:
    """`hw_slowdown` comes with heat and brakes; alone it is a reason of its own."""
    assert slowdowns(sum(EVENT_REASONS[name] for name in names)) == flags


def process(pid: int, mib: int | None) -> SimpleNamespace:
    """A process as NVML lists it."""
    return SimpleNamespace(pid=pid, usedGpuMemory=None if mib is None else mib * MIB)


@pytest.mark.parametrize(
    ("processes", "expected"),
    [
        ([], None),  # not even this process is listed
        ([process(10, 700)], 0.0),
        ([process(10, 700), process(11, 300), process(12, 20)], 320.0),
        ([process(99, 700)], 0.0),  # numbered otherwise, as inside a container
        ([process(98, 700), process(99, 20)], None),
        ([process(10, 700), process(11, None)], None),
    ],
    ids=["none", "alone", "others", "container", "container with others", "amount not stated"],
)
def test_memory_of_others(processes: list[Any], expected: float | None) -> None:
    """Only where this process is found among those listed, or is the only one."""
    assert foreign_mib(processes, own=10) == expected


def test_a_process_that_waits_for_this_one_does_not_compete() -> None:
    """Such as one that started it for the rest of its jobs, and still holds a CUDA context."""
    processes = [SimpleNamespace(pid=pid) for pid in (7, 10, 11)]
    assert [competing(processes, waiting) for waiting in ((), (7,), (7, 11))] == [3, 2, 1]


def refused(_: Any) -> float:
    raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)


def test_what_the_device_does_not_offer_is_absent() -> None:
    """Queries that are refused or know nothing leave no reading, and no column of a series."""
    device = SimpleNamespace(clock=1500.0)
    samples = GpuSamples(
        {
            "sm_clock": lambda handle: handle.clock,
            "power": refused,
            "memory_foreign": lambda _: None,
        }
    )
    samples.add(device)
    device.clock = 1410.0
    samples.add(device)
    assert samples.findings() == ({"gpu_sm_clock_min": 1410.0, "gpu_sm_clock_max": 1500.0}, set())
    assert samples.last() == {"gpu_sm_clock": 1410.0}
