"""What the monitors read in a quiet block, of a busy neighbour, and of hand-made counters."""

import math
import multiprocessing
import multiprocessing.synchronize
import os
import time

import pytest

from workers.measure.monitors import FOREIGN_S, THROTTLE_REASONS, GpuSamples, cpu_findings, watch

pytestmark = pytest.mark.alone

CORES = len(os.sched_getaffinity(0))
ZERO = {"wall": 0.0, "own": 0.0, "load": 0.5, "involuntary": 3.0, "busy": 100.0, "stolen": 2.0, "throttled": 0.0}


def spin(seconds: float, begun: "multiprocessing.synchronize.Event | None" = None) -> None:
    """Keep one core busy, from when `begun` is set."""
    if begun:
        begun.set()
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


def test_readings_of_real_work() -> None:
    """Every reading that Linux offers is there and finite, and own work differs from idling."""
    with watch("cpu", CORES) as seen:
        spin(0.3)
    assert all(math.isfinite(value) for value in seen.readings.values())
    assert {"seconds", "load_before", "load_after", "process_cores", "foreign_cores", "stolen_cores"} <= set(seen.readings)
    assert seen.readings["seconds"] >= 0.3
    with watch("cpu", CORES) as idle:
        time.sleep(0.3)
    assert idle.readings["process_cores"] < seen.readings["process_cores"]


def test_another_process_on_our_cores_is_contention() -> None:
    """A neighbour that keeps a core busy is seen and flagged when all cores are ours to use."""
    context = multiprocessing.get_context("spawn")
    begun = context.Event()
    neighbour = context.Process(target=spin, args=(600.0, begun), daemon=True)
    neighbour.start()
    try:
        assert begun.wait(60)
        with watch("cpu", CORES) as seen:
            time.sleep(1)
    finally:
        neighbour.terminate()
        neighbour.join()
    assert seen.readings["foreign_cores"] > 0.3
    assert "contended" in seen.flags


def later(**changed: float) -> dict[str, float]:
    """The counters ten seconds on, our process having used one core."""
    return {**ZERO, "wall": 10.0, "own": 10.0, "busy": 110.0, **changed}


def test_own_work_alone_is_no_contention() -> None:
    """Ten busy seconds, all of them ours."""
    readings, flags = cpu_findings(ZERO, later(), CORES)
    assert not flags
    assert readings["foreign_cores"] == 0
    assert readings["process_cores"] == 1


def test_foreign_and_stolen_time_count_alike() -> None:
    """Two foreign seconds in ten are contention, be they another process' or another virtual machine's."""
    assert cpu_findings(ZERO, later(busy=112.0), CORES)[1] == {"contended"}
    assert cpu_findings(ZERO, later(stolen=4.0), CORES)[1] == {"contended"}
    assert not cpu_findings(ZERO, later(busy=110.5, stolen=2.4), CORES)[1]


def test_idle_cores_take_foreign_work() -> None:
    """With a core left over, one foreign core is no contention; a second one is."""
    assert not cpu_findings(ZERO, later(busy=120.0), CORES - 1)[1]
    assert cpu_findings(ZERO, later(busy=130.0), CORES - 1)[1] == {"contended"}


def test_a_tick_more_or_less_is_not_contention() -> None:
    """In a block of a tenth of a second the kernel's ticks alone reach 10 % of a core."""
    after = {**ZERO, "wall": 0.1, "own": 0.1, "busy": 100.1 + FOREIGN_S * 0.9}
    assert not cpu_findings(ZERO, after, CORES)[1]


def test_a_quota_that_stops_us_is_throttling() -> None:
    """Time in which a cgroup kept us from running is flagged."""
    readings, flags = cpu_findings(ZERO, later(throttled=0.25), CORES)
    assert flags == {"throttled"}
    assert readings["quota_throttled_s"] == 0.25


def test_what_the_machine_does_not_offer_is_absent() -> None:
    """No kernel counters: no readings made of them, rather than zeros."""
    bare = {name: ZERO[name] for name in ("wall", "own", "load")}
    readings, flags = cpu_findings(bare, {**bare, "wall": 10.0}, CORES)
    assert set(readings) == {"seconds", "load_before", "load_after", "process_cores"}
    assert not flags


def test_gpu_samples_become_readings_and_flags() -> None:
    """Thermal and hardware reasons are throttling; a power cap, idle clocks and a lone process are only read."""
    capped, heat = 0x4, 0x40
    graphics = GpuSamples()
    graphics.values = {
        "sm_clock": [1500.0, 1980.0],
        "temperature": [50.0, 61.0],
        "power": [100.0, 300.0],
        "reasons": [1.0, float(capped)],
        "processes": [1.0],
    }
    readings, flags = graphics.findings()
    assert readings == {
        "gpu_sm_clock_min": 1500.0,
        "gpu_sm_clock_max": 1980.0,
        "gpu_temperature_max": 61.0,
        "gpu_power_mean": 200.0,
        "gpu_event_reasons": 5.0,
        "gpu_power_capped": 0.5,
        "gpu_processes": 1.0,
    }
    assert not flags
    graphics.values |= {"reasons": [float(heat)], "processes": [1.0, 2.0]}
    assert graphics.findings()[1] == {"throttled", "contended"}
    assert not capped & THROTTLE_REASONS
