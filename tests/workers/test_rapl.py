"""Energy counters of CPU packages: what counts, wrap-around, and what cannot be read."""

from pathlib import Path

import pytest

from tests.workers.made_machine import MadeMachine
from workers.measure.counters import PackageEnergy, energy_domains, energy_problem
from workers.measure.readings import measured_energy, measures_energy


@pytest.fixture
def made(tmp_path: Path) -> MadeMachine:
    """A machine of two packages, one with memory of its own."""
    machine = MadeMachine(tmp_path)
    machine.energy("intel-rapl:0", "package-0", 5_000_000)
    machine.energy("intel-rapl:0:0", "core", 1_000_000)
    machine.energy("intel-rapl:0:1", "dram", 2_000_000)
    machine.energy("intel-rapl:1", "package-1", 7_000_000)
    machine.energy("intel-rapl:2", "psys", 90_000_000)
    machine.energy("intel-rapl-mmio:0", "package-0", 5_000_000)
    (tmp_path / "sys/class/powercap/intel-rapl").mkdir()  # the control type, which has no counter
    return machine


def folder(made: MadeMachine) -> Path:
    return made.root / "sys/class/powercap"


def test_packages_and_memory_count_once(made: MadeMachine) -> None:
    """Parts of a package, the platform and second ways to a counter are left out."""
    assert [each.name for each in energy_domains(folder(made))] == [
        "intel-rapl:0",
        "intel-rapl:0:1",
        "intel-rapl:1",
    ]
    energy = PackageEnergy(folder(made))
    assert energy.joules() == 0
    made.energy("intel-rapl:0", "package-0", 8_000_000)
    made.energy("intel-rapl:0:0", "core", 99_000_000)
    made.energy("intel-rapl:0:1", "dram", 2_500_000)
    assert energy.joules() == pytest.approx(3.5)
    assert energy.joules() == pytest.approx(3.5)


def test_counters_wrap(made: MadeMachine) -> None:
    """A counter that fell has begun anew at its range, once between two readings."""
    made.energy("intel-rapl:1", "package-1", 9_000_000, largest=10_000_000)
    energy = PackageEnergy(folder(made))
    for now, expected in ((2_000_000, 3.0), (9_500_000, 10.5), (500_000, 11.5)):
        made.energy("intel-rapl:1", "package-1", now, largest=10_000_000)
        assert energy.joules() == pytest.approx(expected)


def test_a_wrap_of_unknown_range_is_no_number(made: MadeMachine) -> None:
    """Without the range of the counter a fall leaves the energy unknown, and it stays so."""
    (folder(made) / "intel-rapl:1/max_energy_range_uj").unlink()
    energy = PackageEnergy(folder(made))
    made.energy("intel-rapl:1", "package-1", 6_000_000, largest=None)
    assert energy.joules() is None
    made.energy("intel-rapl:1", "package-1", 8_000_000, largest=None)
    assert energy.joules() is None


def test_what_cannot_be_read_is_absent(tmp_path: Path) -> None:
    """No counters, or one that this user may not read: no energy, and the reason names the file."""
    made = MadeMachine(tmp_path)
    assert PackageEnergy(folder(made)).joules() is None
    assert "no counters of the packages" in energy_problem(folder(made))
    made.energy("intel-rapl:0", "package-0", 1)
    made.energy("intel-rapl:1", "package-1", None)
    assert PackageEnergy(folder(made)).joules() is None
    assert energy_problem(folder(made)).startswith(
        f"{folder(made)}/intel-rapl:1/energy_uj cannot be read by this user"
    )


def test_a_counter_that_disappears_leaves_no_number(made: MadeMachine) -> None:
    """What was read before does not stand for the whole."""
    energy = PackageEnergy(folder(made))
    (folder(made) / "intel-rapl:1/energy_uj").write_text("not a number\n")
    assert energy.joules() is None


def test_energy_of_a_stretch_of_work(made: MadeMachine) -> None:
    """Joules by thing made and mean power; nothing where no counter can be read."""
    assert energy_problem(folder(made)) == ""
    assert measures_energy("cpu", folder(made))
    with measured_energy("cpu", folder(made)) as spent:
        made.energy("intel-rapl:0", "package-0", 11_000_000)
    found = {metric.name: metric.value for metric in spent.metrics({"image": 3}, 1)}
    assert found["energy_per_image"] == pytest.approx(2.0)
    assert found["mean_power"] == pytest.approx(6.0 / spent.seconds)
    nowhere = made.root / "nowhere"
    assert not measures_energy("cpu", nowhere)
    with measured_energy("cpu", nowhere) as unknown:
        pass
    assert (unknown.joules, unknown.metrics({"image": 3}, 1)) == (None, [])
