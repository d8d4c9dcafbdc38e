"""Energy counters of the CPU packages (RAPL): joules since a start, across the wrap-around of the
counters.
"""

from pathlib import Path

from workers.measure.machine.environment import read_text

POWERCAP = Path("/sys/class/powercap")
"""Folder of the kernel's powercap framework (Documentation/power/powercap in Linux); AMD's
processors are in it as well."""


class PackageEnergy:
    """What the packages of this machine and their memory took since this was made, whoever used
    them.
    """

    def __init__(self, powercap: Path = POWERCAP) -> None:
        self._domains = [_Domain(folder) for folder in energy_domains(powercap)]
        self._readable = bool(self._domains) and all(
            domain.last is not None for domain in self._domains
        )

    def joules(self) -> float | None:
        """Joules since the start; `None` where a counter cannot be read, from then on.

        A counter that wrapped is only right if it was read since its last wrap, which takes minutes
        or more.
        """
        spent = [domain.spent_uj() for domain in self._domains] if self._readable else []
        self._readable = bool(spent) and None not in spent
        return sum(each for each in spent if each is not None) / 1e6 if self._readable else None


class _Domain:
    """One counter in microjoules, and how much it has counted."""

    def __init__(self, folder: Path) -> None:
        self._file, self._range = folder / "energy_uj", _number(folder / "max_energy_range_uj")
        self.last = _number(self._file)
        self._total = 0

    def spent_uj(self) -> int | None:
        """What it counted since it was made; `None` once it cannot be read, or wrapped at a range
        that cannot.
        """
        now, before = _number(self._file), self.last
        if now is None or before is None:
            return None
        step = now - before if now >= before else now - before + (self._range or 0)
        if step < 0:
            return None
        self._total, self.last = self._total + step, now
        return self._total


def energy_domains(powercap: Path = POWERCAP) -> list[Path]:
    """Folders of the packages and of the memory beside them.

    Not of parts of a package (cores, uncore), of the platform, which holds the packages, nor of a
    second way to the same counters (`intel-rapl-mmio`).
    """
    folders = sorted(powercap.glob("intel-rapl:*"))
    return [
        folder
        for folder in folders
        if read_text(folder / "name").strip().partition("-")[0] in ("package", "dram")
    ]


def energy_problem(powercap: Path = POWERCAP) -> str:
    """Why no energy of the CPU can be read here; empty where it can."""
    domains = energy_domains(powercap)
    if not domains:
        return (
            f"the kernel offers no counters of the packages ({powercap}/intel-rapl:*), as in most"
            " virtual machines"
        )
    unreadable = [folder for folder in domains if _number(folder / "energy_uj") is None]
    if unreadable:
        return (
            f"{unreadable[0] / 'energy_uj'} cannot be read by this user; by default only root may"
        )
    return ""


def _number(path: Path) -> int | None:
    text = read_text(path).strip()
    return int(text) if text.isdigit() else None
