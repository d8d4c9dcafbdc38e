"""Counters of the host, read from made files of the kernel's formats: both versions of cgroups,
heat, clocks, what is missing.
"""

from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from sweeps.model.metrics import SYSTEM_METRICS, SYSTEM_SERIES
from tests.workers.made_machine import CORES, MadeMachine
from workers.measure.counters import FREQUENCY_CORES, ONLINE, HostCounters
from workers.measure.monitors import cpu_findings, watch

THREADS = len(CORES)
TICK = 0.01
CPUINFO = """\
processor\t: 0
model name\t: Some CPU @ 2.60GHz
cpu MHz\t\t: 2599.998
cache size\t: 36608 KB

processor\t: 1
cpu MHz\t\t: 3100.250
"""


@pytest.fixture
def made(tmp_path: Path) -> Iterator[MadeMachine]:
    machine = MadeMachine(tmp_path)
    with machine.procfs():
        yield machine


def test_what_is_not_there_is_absent(made: MadeMachine) -> None:
    """An empty machine has its clocks and load alone: no counter is 0 because it cannot be read."""
    assert set(HostCounters(THREADS, made.root).read()) == {"wall", "own", "load"}


def test_unreadable_files_are_absent(made: MadeMachine) -> None:
    """Folders instead of files, and texts that are no numbers."""
    for core in CORES:
        (made.root / f"sys/devices/system/cpu/cpu{core}/cpufreq/scaling_cur_freq").mkdir(
            parents=True
        )
        made.write(f"sys/devices/system/cpu/cpu{core}/thermal_throttle/core_throttle_count", "?\n")
    (made.root / "proc/stat").mkdir(parents=True)
    made.write("proc/self/cgroup", "0::/\n")
    made.write("sys/fs/cgroup/cpu.stat", "nr_throttled\nthrottled_usec none\n")
    made.energy("intel-rapl:0", "package-0", None)
    assert set(HostCounters(THREADS, made.root).read()) == {"wall", "own", "load"}


def test_cores_that_are_offline_have_no_row(made: MadeMachine) -> None:
    """The first of two rows is that of the first core that is online, whatever its number."""
    made.write(ONLINE, f"{CORES[-1]},{CORES[-1] + 8}\n")
    made.write(
        "proc/stat",
        "cpu  9 0 0 0 0 0 0 0 0 0\ncpu7 300 0 0 0 0 0 0 4 0 0\ncpu9 1 0 0 0 0 0 0 0 0 0\n",
    )
    found = HostCounters(THREADS, made.root).look()
    assert (found["busy"], found["stolen"]) == (pytest.approx(300 * TICK), pytest.approx(4 * TICK))


def test_quotas_of_both_versions(made: MadeMachine) -> None:
    """Version 2 counts microseconds, version 1 nanoseconds; the counters of all levels add up."""
    made.cgroup2("pod/box", usec=1_500_000, times=7)
    found = HostCounters(THREADS, made.root).look()
    assert (found["throttled"], found["throttles"]) == (1.5, 7)
    made.write("sys/fs/cgroup/pod/cpu.stat", "nr_throttled 2\nthrottled_usec 500000\n")
    found = HostCounters(THREADS, made.root).look()
    assert (found["throttled"], found["throttles"]) == (2.0, 9)
    made.cgroup1(nanoseconds=250_000_000, times=3)
    found = HostCounters(THREADS, made.root).look()
    assert (found["throttled"], found["throttles"]) == (0.25, 3)


def test_heat_of_cores_and_package(made: MadeMachine) -> None:
    """Events of cores add up; those of the package, which each of its cores counts, count once."""
    for core in CORES:
        made.thermal(core, times=2, milliseconds=300, package=5)
    found = HostCounters(THREADS, made.root).read()
    assert found["thermal"] == 2 * THREADS + 5
    assert found["thermal_s"] == pytest.approx(0.3 * THREADS)


def test_frequency_as_set_or_as_listed(made: MadeMachine) -> None:
    """The mean over the cores; what psutil lists where there is no governor."""
    made.write("proc/cpuinfo", CPUINFO)
    listed = [
        each.current
        for core, each in enumerate(psutil.cpu_freq(percpu=True))
        if core in CORES[:FREQUENCY_CORES]
    ]
    if not Path("/sys/devices/system/cpu/cpu0/cpufreq").exists():
        assert listed == [mhz for core, mhz in enumerate((2599.998, 3100.25)) if core in CORES]
    if listed:
        assert HostCounters(THREADS, made.root).look()["mhz"] == pytest.approx(
            sum(listed) / len(listed)
        )
    for core in CORES:
        made.frequency(core, 2_000_000)
    counters = HostCounters(THREADS, made.root)
    assert counters.look()["mhz"] == 2000
    for core in CORES:
        made.frequency(core, 1_200_000)
    counters.look()
    assert counters.clocks == [2000, 1200]


def test_everything_that_changes_meanwhile_is_a_reading(made: MadeMachine) -> None:
    """Heat, quota, energy, clocks and steal over a block and between its rounds."""
    made.stat(busy=100, steal=0)
    made.cgroup2("box", usec=0, times=0)
    made.energy("intel-rapl:0", "package-0", 90, largest=100)
    for core in CORES:
        made.frequency(core, 3_000_000)
        made.thermal(core, times=0, milliseconds=0)
    with watch("cpu", THREADS, made.root) as seen:
        seen.look(1)
        made.stat(busy=100, steal=300)
        made.cgroup2("box", usec=2_000_000, times=4)
        made.energy("intel-rapl:0", "package-0", 40, largest=100)
        for core in CORES:
            made.frequency(core, 1_500_000)
        made.thermal(CORES[0], times=3, milliseconds=900)
    readings = seen.readings
    assert (readings["cpu_mhz_min"], readings["cpu_mhz_max"]) == (1500, 3000)
    assert (readings["quota_throttled_s"], readings["quota_throttles"]) == (2.0, 4)
    assert (readings["thermal_throttles"], readings["thermal_throttled_s"]) == (3, 0.9)
    assert readings["cpu_energy_j"] == pytest.approx(50e-6)
    assert readings["cpu_power_mean"] == pytest.approx(50e-6 / readings["seconds"])
    assert readings["stolen_cores"] == pytest.approx(3.0 * THREADS / readings["seconds"])
    assert {"contended", "quota_throttled", "thermal_slowdown"} == set(seen.flags)
    assert set(readings) <= set(SYSTEM_METRICS)
    assert seen.series is not None
    assert set(seen.series) <= set(SYSTEM_SERIES)
    assert (seen.series["rounds"], seen.series["cpu_mhz"], seen.series["cpu_energy_j"]) == (
        (1.0,),
        (3000.0,),
        (0.0,),
    )


def counters(**values: float) -> dict[str, float]:
    return {"wall": 0.0, "own": 0.0, "load": 0.0, **values}


@pytest.mark.parametrize(
    ("before", "after", "flags"),
    [
        ({"throttled": 1.0}, {"throttled": 1.05}, set()),  # half a per cent of ten seconds
        ({"throttled": 1.0}, {"throttled": 1.2}, {"quota_throttled"}),
        ({"thermal": 5.0}, {"thermal": 5.0}, set()),
        ({"thermal": 5.0}, {"thermal": 6.0}, {"thermal_slowdown"}),  # of unknown duration
        (
            {"thermal": 5.0, "thermal_s": 1.0},
            {"thermal": 6.0, "thermal_s": 1.001},
            set(),
        ),  # a millisecond
        (
            {"thermal": 5.0, "thermal_s": 1.0},
            {"thermal": 6.0, "thermal_s": 2.0},
            {"thermal_slowdown"},
        ),
    ],
    ids=["short quota", "quota", "no heat", "heat of old kernels", "short heat", "heat"],
)
def test_slowdowns_of_more_than_a_hundredth_are_flagged(
    before: dict[str, float], after: dict[str, float], flags: set[str]
) -> None:
    """Less moves no median, and is only read."""
    found = cpu_findings(counters(**before), counters(**after) | {"wall": 10.0}, THREADS)
    assert found[1] == flags
