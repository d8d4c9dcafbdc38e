"""What `doctor` prints of disturbances, from made files of the kernel, and of calibrations, from a
store.
"""

import os
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from orchestrator.commands import doctor
from orchestrator.commands.doctor import calibration_lines, disturbances, peak_lines, waiting_line
from store.open.engine import connect
from store.write.calibrations import freeze_calibrations
from store.write.record import record_imported
from store.write.submission import NewSweep, submit_sweep
from sweeps.model.profile import Peaks
from tests.fixtures.sql_rows import rows
from tests.orchestrator.commands import in_process
from tests.store.conftest import CPU, a_job, an_outcome
from tests.workers.made_machine import CORES, MadeMachine
from workers.measure import peaks
from workers.waiting import WaitTimes

DAY = 86400.0


def lines(made: MadeMachine) -> dict[str, str]:
    with made.procfs():
        return dict(disturbances(made.root))


def test_a_machine_that_states_nothing(tmp_path: Path) -> None:
    """What cannot be read is named so, and never 0."""
    found = lines(MadeMachine(tmp_path))
    found.pop("gpu", None)
    assert found.pop("load").endswith(("in the last minute", "intervals will be wide)"))
    assert found == {
        "quota": "no cgroup limits the CPU time",
        "heat": "the kernel offers no counters of thermal throttling here",
        "clocks": "the kernel states no frequency here",
        "energy": (
            "the kernel offers no counters of the packages"
            f" ({tmp_path}/sys/class/powercap/intel-rapl:*), as in most virtual machines"
        ),
    }


def test_a_machine_that_states_everything(tmp_path: Path) -> None:
    """Quota and what it withheld, heat, frequency with its governor, steal, and whether energy can
    be read.
    """
    made = MadeMachine(tmp_path)
    made.stat(busy=700, steal=300)
    made.cgroup2("box", usec=3_250_000, times=12)
    made.write("sys/fs/cgroup/box/cpu.max", "150000 100000\n")
    for core in CORES:
        made.frequency(core, 2_450_000)
        made.thermal(core, times=0, milliseconds=0, package=4)
    made.write("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n")
    made.energy("intel-rapl:0", "package-0", 12)
    found = lines(made)
    assert found["quota"] == "cgroups allow 1.5 cores; withheld so far: 3.25 s in 12 periods"
    assert found["heat"] == "cores were slowed 4 times since the machine started, 0 s in all"
    assert found["clocks"] == "2450 MHz now, governor powersave"
    assert (
        found["steal"] == "30.00% of the CPU time since it started went to other virtual machines"
    )
    assert found["energy"] == "of the CPU packages: readable (RAPL)"


def test_counters_that_only_root_reads(tmp_path: Path) -> None:
    """The file and the reason are named."""
    made = MadeMachine(tmp_path)
    made.energy("intel-rapl:0", "package-0", None)
    assert lines(made)["energy"].endswith(
        "intel-rapl:0/energy_uj cannot be read by this user; by default only root may"
    )


@pytest.mark.parametrize(
    ("times", "line"),
    [
        (
            WaitTimes(27.3e-9, 16.2e-6, 25.5e-6),
            "waiting threads spin for 3000 turns (GOMP_SPINCOUNT); a turn takes 27.3 ns, a wake-up"
            " 16.2 us, the gap between operators 25.5 us",
        ),
        (
            WaitTimes(27.3e-9, 16.2e-6, 90e-6, busy=True),
            "waiting threads spin for 3000 turns (GOMP_SPINCOUNT); threads spin for 3000 turns"
            " only, since others kept a core busy; a turn takes 27.3 ns, a wake-up 16.2 us, the gap"
            " between operators 90 us",
        ),
        (
            WaitTimes(problem="RuntimeError: no torch"),
            "waiting threads spin for 3000 turns (GOMP_SPINCOUNT); threads spin for 3000 turns, the"
            " default; not measured: RuntimeError: no torch",
        ),
        (None, "waiting threads spin for 3000 turns (GOMP_SPINCOUNT), as the environment sets"),
    ],
)
def test_the_choice_for_waiting_threads_has_its_times(times: WaitTimes | None, line: str) -> None:
    """Choice and times; why it is shorter, or the default; or that the user has set it."""
    assert waiting_line("3000", times) == line


@pytest.fixture
def calibrated(tmp_path: Path) -> str:
    """A store with repeats of one comparison in eight processes, and calibrations of them."""
    path = str(tmp_path / "store.db")
    engine, job = connect(path), a_job(64)
    submit_sweep(engine, NewSweep("calibration", "text", "?"), [job], [])
    for n, bias in enumerate(np.random.default_rng(3).normal(0, 0.02, 8)):
        outcome = an_outcome(job, speedups=(1.5 * np.exp(bias),), noise=0.005, seed=n)
        record_imported(engine, [outcome.model_copy(update={"process": f"p{n}"})])
    assert freeze_calibrations(engine, "calibration", [CPU.environment_id])
    engine.dispose()
    return path


def test_calibrations_have_their_age(calibrated: str) -> None:
    """The newest of each size of models in these environments; elsewhere, or without a store, the
    default.
    """
    engine = connect(calibrated)
    (stored,) = rows(engine, "SELECT * FROM calibration")
    (line,) = calibration_lines(engine, [CPU.environment_id], now=stored["created_at"] + 3 * DAY)
    assert (
        line == "models of up to 10 M parameters: before visits are compared, intervals count"
        f" {100 * stored['process_sd']:.2f} %, measured {100 * stored['tau']:.2f} %"
        f" ({100 * stored['tau_low']:.2f} to {100 * stored['tau_high']:.2f} %) in 8 processes 3"
        f" days ago, calibration {stored['calibration_id']}"
    )
    default = (
        "before visits are compared, intervals count 1.05 % between them, the default; measured by:"
        " breakeven calibrate"
    )
    assert list(calibration_lines(engine, ["elsewhere"])) == [default]
    assert list(calibration_lines(None, [CPU.environment_id])) == [default]
    engine.dispose()


def test_peaks_stand_beside_stored_ones() -> None:
    """What was measured now for each dtype, and before with its age where dtype and threads are the
    same.
    """
    single = Peaks(gflops=91.237, gb_per_s=12.34, dtype="float32", threads=2)
    half = Peaks(gflops=30.0, gb_per_s=12.34, dtype="bfloat16", threads=2)
    known = {
        ("float32", 2): (single.model_copy(update={"gflops": 95.0}), 1000.0),
        ("bfloat16", 4): (half, 1000.0),
    }
    assert list(peak_lines([single, half], known, now=1000.0 + 3 * DAY)) == [
        (
            "91.2 GFLOP/s in float32 matrix products, 12.3 GB/s read from memory by 2 threads; 3"
            " days before: 95 and 12.3"
        ),
        "30 GFLOP/s in bfloat16 matrix products, 12.3 GB/s read from memory by 2 threads",
    ]
    graphics = Peaks(gflops=50_000.0, gb_per_s=3000.0, dtype="float16")
    assert list(peak_lines([graphics], {})) == [
        "50,000 GFLOP/s in float16 matrix products, 3,000 GB/s read from memory"
    ]


def raises(*_: Any, **__: Any) -> Any:
    raise RuntimeError("forced")


def test_what_cannot_be_measured_is_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Load, CPU time, energy, calibrations, the products of one library and the store of peaks raise;
    the rest is printed.
    """
    monkeypatch.setattr(doctor, "NULL_TEST_SECONDS", 0.6)
    monkeypatch.setattr(peaks, "ENOUGH_S", 0.0)
    peaks._fastest_product.cache_clear()
    forced = ((os, "getloadavg"), (psutil, "cpu_times"), (peaks, "linear"))
    ours = ("energy_problem", "calibration_rows", "keep_peaks")
    for owner, name in (*forced, *((doctor, name) for name in ours)):
        monkeypatch.setattr(owner, name, raises)
    done = in_process("doctor", "--db", str(tmp_path / "x.db"), folder=tmp_path)
    peaks._fastest_product.cache_clear()
    assert done.returncode in {0, 1}, done.stderr
    notes = [line for line in done.stdout.splitlines() if line.startswith("not measured: ")]
    found = {note.split(": ")[1]: note for note in notes}
    assert all(note.endswith("RuntimeError: forced") for note in notes if "KeyError" not in note)
    assert {"counters of the host (_load)", "counters of the host (_cpu_seconds)", "energy"} <= set(
        found
    )
    assert {"calibrations", "peaks of cpu", "bfloat16 products by oneDNN"} <= set(found)
    assert "noise on cpu: equal arms seem to differ by at most" in done.stdout
    assert "GFLOP/s in bfloat16 matrix products (torch.mm)" in done.stdout
    assert "no cgroup limits the CPU time" in done.stdout or "cgroups allow" in done.stdout
