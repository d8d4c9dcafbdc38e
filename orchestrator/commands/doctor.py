"""Command `doctor`: what this machine is, what could disturb a measurement on it, and how far two
equal arms seem to differ.
"""

import platform
import sys
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import typer
from rich.console import Console
from rich.table import Table

from orchestrator.commands.options import Database
from orchestrator.text_table import output
from store.open.engine import Engine, connect, disposing
from store.read.queries import calibration_rows
from store.rows.frames import rows_of
from store.rows.location import location, sqlite_path
from store.rows.profiles import best_peaks, keep_peaks
from sweeps.model.condition import Condition, Device, Dtype
from sweeps.model.job import DENSE, Arm, Job, Pair, Protocol
from sweeps.model.metrics import SPEED_FLOOR, notes_on
from sweeps.model.outcome import Environment
from sweeps.model.profile import Peaks
from sweeps.number_format import age, count
from sweeps.stats.visits import FLOOR, Visit, pool_visits
from workers.measure.counters import GpuSamples, HostCounters, energy_problem
from workers.measure.environment import (
    ROOT,
    allowed_cores,
    chosen_by,
    cpu_quotas,
    devices,
    environment_of,
    gpu,
    host_facts,
    read_text,
    spin_turns,
)
from workers.measure.optional import optional, optional_value, take_unmeasured
from workers.waiting import WaitTimes, times_file, wait_note

BUSY = 0.5
"""Load from which on a machine counts as busy."""
REPLICATES = 2
PEAK_DTYPES: Mapping[Device, tuple[Dtype, ...]] = {
    "cpu": ("float32", "bfloat16"),
    "cuda": ("float32", "float16", "bfloat16"),
}
"""Whose matrix products are measured."""
NULL_TEST_SECONDS, NULL_VISITS = 6.0, 6
UNTESTED_ON_CUDA = (
    "Profiles of kernels, `exclusive: device` and language models in sweeps have run on no GPU yet;"
    " `python -m tests.gpu.accept --out DIR` tests them here"
)


@dataclass(frozen=True, kw_only=True)
class CalibrationRow:
    """A row of `store.read.queries.calibration_rows`."""

    calibration_id: str
    size_class: str
    made_of: str
    processes: int
    process_sd: float
    tau: float
    tau_low: float
    tau_high: float
    created_at: float


def doctor(db: Database = None) -> None:
    """Print the findings; exit code 0 when measurements can be trusted here, else 1.

    Times of waiting threads that were measured beside a busy core, or failed, are measured again.
    Calibrations are those of the store at `db`, which keeps the peaks that are measured.
    """
    console, table = output(), Table(box=None, show_header=False, pad_edge=False)
    table.add_row("python", f"{platform.python_version()} ({sys.executable})")
    if (times := chosen_by()) and wait_note(times):
        times_file(host_facts()).unlink()
    environments = {device: environment_of(device) for device in devices()}
    for device, environment in environments.items():
        table.add_row(device, environment.device_name, style="bold")
        for key, value in sorted(environment.facts.items()):
            table.add_row("", f"{key} {value}")
        table.add_row("", f"environment {environment.environment_id}")
        if device == "cuda":
            table.add_row("", UNTESTED_ON_CUDA)
    cores = len(allowed_cores())
    table.add_row(
        "threads",
        f"{count(cores, 'core')} for this process; a CPU job uses all unless the sweep sets"
        " `threads`",
    )
    table.add_row("", waiting_line(spin_turns(), chosen_by()))
    for label, line in disturbances():
        table.add_row(label, line)
    with ExitStack() as opened:
        engine = optional_value("store", lambda: opened.enter_context(_store(db)), None)
        with optional("calibrations"):
            for line in calibration_lines(
                engine, [environment.environment_id for environment in environments.values()]
            ):
                table.add_row("processes", line)
        console.print(table)
        _print_notes(console, take_unmeasured())
        passed = [
            optional_value(f"noise on {device}", partial(_null_test, console, device), False)
            for device in environments
        ]
        for device, environment in environments.items():
            with optional(f"peaks of {device}"):
                _measure_peaks(console, environment, engine)
        _print_notes(console, take_unmeasured())
    stored = (
        "stored with the environment"
        if engine is not None
        else "not stored: there is no store here; --db names another"
    )
    console.print(f"peaks are {stored}", style="dim")
    raise typer.Exit(0 if all(passed) else 1)


def waiting_line(turns: str, times: WaitTimes | None) -> str:
    """The turns for which threads spin, and the times by which they were chosen."""
    chosen = f"waiting threads spin for {turns} turns (GOMP_SPINCOUNT)"
    if times is None:
        return f"{chosen}, as the environment sets"
    if times.problem:
        return f"{chosen}; {wait_note(times)}"
    measured = (
        f"a turn takes {1e9 * times.turn_s:.3g} ns, a wake-up {1e6 * times.wake_s:.3g} us, the gap"
        f" between operators {1e6 * times.gap_s:.3g} us"
    )
    return "; ".join(filter(None, (chosen, wait_note(times), measured)))


def _print_notes(console: Console, notes: Iterable[str]) -> None:
    """What could not be measured, and why."""
    for note in notes:
        console.print(note, style="yellow", highlight=False)


def _store(db: str | None) -> AbstractContextManager[Engine | None]:
    """The store at `db`, or at its default place if there is one."""
    path = sqlite_path(location(db))
    return disposing(connect(db)) if db or path is None or path.exists() else nullcontext()


def calibration_lines(
    engine: Engine | None, environment_ids: Collection[str], now: float | None = None
) -> Iterator[str]:
    """What is known of the differences between processes here: the newest calibration of each size
    of models, with its age.
    """
    known = pd.DataFrame() if engine is None else calibration_rows(engine)
    here = known[known["environment"].isin(environment_ids)] if len(known) else known
    if here.empty:
        yield (
            f"before visits are compared, intervals count {100 * FLOOR.sd:.3g} % between them, the"
            " default; measured by: breakeven calibrate"
        )
        return
    newest = here.drop_duplicates(["environment", "size_class"], keep="last")
    for row in rows_of(newest, CalibrationRow):
        yield (
            f"models of {row.size_class} parameters: before visits are compared, intervals count"
            f" {100 * row.process_sd:.2f} %, measured {100 * row.tau:.2f} %"
            f" ({100 * row.tau_low:.2f} to {100 * row.tau_high:.2f} %) in {row.processes}"
            f" {row.made_of} {age((time.time() if now is None else now) - row.created_at)} ago,"
            f" calibration {row.calibration_id}"
        )


def _measure_peaks(console: Console, environment: Environment, engine: Engine | None) -> None:
    """Measure what the device reaches at best, print it beside what the store has, and store it
    with the environment.
    """
    from workers.measure.peaks import measure_peaks  # imports torch

    host, device = platform.node(), environment.device
    known = {} if engine is None else best_peaks(engine, environment.environment_id, host)
    found = measure_peaks(device, PEAK_DTYPES[device])
    for line in peak_lines(found, known):
        console.print(f"peak of {device}: {line}", highlight=False)
    if engine is not None:
        keep_peaks(engine, environment, host, found)


def peak_lines(
    found: Iterable[Peaks],
    known: Mapping[tuple[str, int | None], tuple[Peaks, float]],
    now: float | None = None,
) -> Iterator[str]:
    """What was measured for each dtype, beside the best stored peaks (with when they were measured
    last) and their age.
    """
    for peak in found:
        threads = "" if peak.threads is None else f" by {count(peak.threads, 'thread')}"
        kernel = f" ({peak.kernel})" if peak.kernel else ""
        products = f"{_figure(peak.gflops)} GFLOP/s in {peak.dtype} matrix products{kernel}"
        line = f"{products}, {_figure(peak.gb_per_s)} GB/s read from memory{threads}"
        if (peak.dtype, peak.threads) in known:
            before, measured_at = known[peak.dtype, peak.threads]
            ago = age((time.time() if now is None else now) - measured_at)
            line += f"; {ago} before: {_figure(before.gflops)} and {_figure(before.gb_per_s)}"
        yield line


def _figure(value: float) -> str:
    """Three digits, and no exponent."""
    return f"{float(f'{value:.3g}'):,g}"


def _null_test(console: Console, device: Device) -> bool:
    """Time the same small model against itself and print how far the ratios are from 1."""
    from workers.run import run  # torch takes seconds to import

    arms = (DENSE, *(Arm(replicate=number) for number in range(1, REPLICATES + 1)))
    job = Job(
        condition=Condition(model="deit_tiny_patch16_224", image_size=64, device=device),
        arms=arms,
        pairs=tuple(Pair(0, index) for index in range(1, len(arms))),
        protocol=Protocol(
            pairs_min=3, budget_s=NULL_TEST_SECONDS / NULL_VISITS, passes=NULL_VISITS
        ),
    )
    visits: list[list[Visit]] = [[] for _ in job.pairs]
    flags: set[str] = set()
    notes: dict[str, None] = {}
    for turn in range(NULL_VISITS):
        # memory and throughput are not needed
        outcome = run(job.model_copy(update={"round": turn}), pass_seconds=0.1)
        if outcome.samples is None:
            for failure in outcome.failures:
                console.print(
                    f"noise on {device}: no measurement, {failure.reason}: {failure.message}",
                    style="red",
                )
            return False
        table, columns = np.asarray(outcome.samples.seconds), np.asarray(outcome.samples.arms)
        for pair, own in zip(job.pairs, visits, strict=True):
            own.append(Visit(*(table[:, columns == arm] for arm in pair)))
        flags.update(outcome.flags)
        notes |= dict.fromkeys(outcome.notes)
    ratios = [pool_visits(own, range(NULL_VISITS), run_sd=0.0).speedup for own in visits]
    worst = max(abs(ratio.log) for ratio in ratios)
    wrong = [ratio for ratio in ratios if ratio.verdict() in {"faster", "slower"}]
    width = max(ratio.half_width for ratio in ratios)
    console.print(
        f"noise on {device}: equal arms seem to differ by at most {worst:.2%}, intervals"
        f" ±{width:.2%} after {count(ratios[0].pairs, 'pair')} (within {SPEED_FLOOR:.0%} they are"
        " the same)" + (f"; flags: {', '.join(sorted(flags))}" if flags else "")
    )
    _print_notes(console, notes)
    if wrong:
        console.print(
            f"{len(wrong)} of {count(len(ratios), 'equal arm')} were called faster or slower:"
            " do not trust verdicts here",
            style="red",
        )
    return not wrong


def disturbances(root: Path = ROOT) -> Iterator[tuple[str, str]]:
    """A label and a line for each; `root` holds `proc` and `sys`. What the machine does not state
    is called so.
    """
    counters: dict[str, float] = optional_value(
        "counters of the host", lambda: HostCounters(len(allowed_cores()), root).read(), {}
    )
    readers = {
        "load": lambda: _load(counters["load"]),
        "quota": lambda: _quota(counters, root),
        "heat": lambda: _heat(counters),
        "clocks": lambda: _clocks(counters, root),
        "steal": lambda: _steal(counters) if "stolen" in counters else "",
        "energy": lambda: (
            energy_problem(root / "sys/class/powercap") or "of the CPU packages: readable (RAPL)"
        ),
        "gpu": _gpu,
    }
    for label, read in readers.items():
        if line := optional_value(label, read, ""):
            yield label, line


def _load(load: float) -> str:
    busy = " (something else is running: intervals will be wide)" if load > BUSY else ""
    return f"{load:.2f} in the last minute{busy}"


def _steal(counters: dict[str, float]) -> str:
    stolen, whole = counters["stolen"], counters["busy"] + counters["stolen"]
    share = stolen / whole if whole else 0
    return f"{share:.2%} of the CPU time since it started went to other virtual machines"


def _gpu() -> str:
    with gpu() as handle:
        if handle is None:
            return ""
        samples = GpuSamples()
        samples.add(handle)
        readings, flags = samples.findings()
        found = [*notes_on(readings), *sorted(flags)]
        return ", ".join(found) or "no clocks event reason that slows it, no other process"


def _quota(counters: dict[str, float], root: Path) -> str:
    limits = cpu_quotas(root)
    allowed = (
        f"cgroups allow {min(limits):g} core{'' if min(limits) == 1 else 's'}"
        if limits
        else "no cgroup limits the CPU time"
    )
    if "throttled" not in counters:
        return f"{allowed}; what they withheld is not stated here" if limits else allowed
    times = f" in {counters['throttles']:.0f} periods" if "throttles" in counters else ""
    return f"{allowed}; withheld so far: {counters['throttled']:.3g} s{times}"


def _heat(counters: dict[str, float]) -> str:
    if "thermal" not in counters:
        return "the kernel offers no counters of thermal throttling here"
    seconds = f", {counters['thermal_s']:.3g} s in all" if "thermal_s" in counters else ""
    return f"cores were slowed {counters['thermal']:.0f} times since the machine started{seconds}"


def _clocks(counters: dict[str, float], root: Path) -> str:
    now = (
        f"{counters['mhz']:.0f} MHz now"
        if "mhz" in counters
        else "the kernel states no frequency here"
    )
    governor = read_text(root / "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").strip()
    return now + (f", governor {governor}" if governor else "")
