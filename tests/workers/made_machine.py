"""A folder with `proc` and `sys` files of the kernel's documented formats, for counters that this
machine may not have.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import psutil

from workers.measure.environment import allowed_cores

CORES = allowed_cores()


class MadeMachine:
    """Writes files below `root`; each method may be called again with later values."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @contextlib.contextmanager
    def procfs(self) -> Iterator[None]:
        """In the block psutil reads `proc` from here."""
        before, psutil.PROCFS_PATH = psutil.PROCFS_PATH, str(self.root / "proc")
        try:
            yield
        finally:
            psutil.PROCFS_PATH = before

    def write(self, name: str, text: str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def stat(self, busy: int, steal: int) -> None:
        """Ticks of each core: user, nice, system, idle, iowait, irq, softirq, steal, guest,
        guest_nice.
        """
        rows = [f"cpu{core} {busy} 0 0 900 5 0 0 {steal} 0 0" for core in range(max(CORES) + 1)]
        self.write(
            "proc/stat",
            "\n".join(["cpu  1 2 3 4 5 6 7 8 9 10", *rows, "intr 12 0", "ctxt 99"]) + "\n",
        )

    def thermal(self, core: int, times: int, milliseconds: int | None, package: int = 0) -> None:
        """Events of one core; `milliseconds` None: a kernel before 5.5."""
        folder = f"sys/devices/system/cpu/cpu{core}/thermal_throttle"
        self.write(f"{folder}/core_throttle_count", f"{times}\n")
        self.write(f"{folder}/package_throttle_count", f"{package}\n")
        if milliseconds is not None:
            self.write(f"{folder}/core_throttle_total_time_ms", f"{milliseconds}\n")
            self.write(f"{folder}/package_throttle_total_time_ms", "0\n")

    def frequency(self, core: int, khz: int) -> None:
        self.write(f"sys/devices/system/cpu/cpu{core}/cpufreq/scaling_cur_freq", f"{khz}\n")

    def cgroup2(self, path: str, usec: int, times: int) -> None:
        """The process is in the group at `path` of version 2."""
        self.write("proc/self/cgroup", f"0::/{path}\n")
        text = (
            "usage_usec 5\nuser_usec 3\nsystem_usec 2\nnr_periods 20\nnr_throttled"
            f" {times}\nthrottled_usec {usec}\n"
        )
        self.write(f"sys/fs/cgroup/{path}/cpu.stat", text)

    def cgroup1(self, nanoseconds: int, times: int) -> None:
        """The process is in a group of version 1."""
        self.write("proc/self/cgroup", "4:cpu,cpuacct:/box\n3:memory:/box\n")
        text = f"nr_periods 20\nnr_throttled {times}\nthrottled_time {nanoseconds}\n"
        self.write("sys/fs/cgroup/cpu,cpuacct/box/cpu.stat", text)

    def energy(
        self, domain: str, name: str, microjoules: int | None, largest: int | None = 262_143_328_850
    ) -> None:
        """A domain of RAPL; `None`: that file cannot be read (a folder stands in its place, since
        tests may run as root).
        """
        folder = f"sys/class/powercap/{domain}"
        self.write(f"{folder}/name", f"{name}\n")
        if largest is not None:
            self.write(f"{folder}/max_energy_range_uj", f"{largest}\n")
        if microjoules is None:
            (self.root / folder / "energy_uj").mkdir(parents=True, exist_ok=True)
        else:
            self.write(f"{folder}/energy_uj", f"{microjoules}\n")
