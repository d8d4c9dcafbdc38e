"""How long OpenMP's threads spin before they sleep, chosen by times that are measured once per
host.

A thread that sleeps between two operators costs a wake-up for each of them; one that spins takes
its core from others. The same number of turns takes a different time on each CPU.
"""

import json
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from sweeps.model.identity import digest
from workers.cache import cache_folder, cached

WAIT_VARIABLE = "OMP_WAIT_POLICY"
SPIN_VARIABLE = "GOMP_SPINCOUNT"
TURNS_VARIABLE = "BREAKEVEN_TURNS"
"""Variable of a worker: the turns of the process that started it; it precedes `SPIN_VARIABLE`."""
UNSET = "unset"
"""What libgomp does without `SPIN_VARIABLE`: threads spin for some milliseconds."""
TURNS = ("1000", "3000", "10000", UNSET)
DEFAULT_TURNS = "3000"
"""Where nothing was measured, and the most beside a busy core: as fast as unset on quiet cores of
two CPUs, and steady beside a busy one (`tests.benchmarks.spins`, `tests.benchmarks.plain`)."""
MARGIN = 1.5
"""How much longer than in the probe the gaps of other models may be."""
PROBE_SPINS = "100000"
PROBE_LIMIT_S = 60.0
"""For a second of measurement, and the import of torch."""


class WaitTimes(NamedTuple):
    """What was measured on this host, in seconds."""

    turn_s: float = 0.0
    """One turn of the loop in which a thread of libgomp waits."""
    wake_s: float = 0.0
    """From the call that wakes a sleeping thread until that thread runs."""
    gap_s: float = 0.0
    """Between two parallel operators of a small model; nine of ten gaps are shorter."""
    busy: bool = False
    """Whether others kept a core busy meanwhile."""
    problem: str = ""
    """Why nothing was measured."""


def choose_turns(times: WaitTimes) -> str:
    """The fewest of `TURNS` that last for a gap and a wake-up more; `DEFAULT_TURNS` at most beside
    a busy core, and where nothing was measured.
    """
    if times.problem:
        return DEFAULT_TURNS
    needed = (MARGIN * times.gap_s + times.wake_s) / times.turn_s
    turns = next((turns for turns in TURNS[:-1] if int(turns) >= needed), UNSET)
    return min(turns, DEFAULT_TURNS, key=TURNS.index) if times.busy else turns


def wait_note(times: WaitTimes) -> str:
    """Why the choice is not the one of a quiet host; else empty."""
    if times.problem:
        return f"threads spin for {DEFAULT_TURNS} turns, the default; not measured: {times.problem}"
    if choose_turns(times) != choose_turns(times._replace(busy=False)):
        return f"threads spin for {DEFAULT_TURNS} turns only, since others kept a core busy"
    return ""


def times_file(host: Mapping[str, str]) -> Path:
    """Where the times of a host with these facts are kept; without it they are measured anew."""
    return cache_folder() / f"wait-{digest(host)}.json"


def stored_times(host: Mapping[str, str]) -> WaitTimes | None:
    """The times of this host, if they were measured before."""
    with suppress(OSError, ValueError, TypeError):
        times = WaitTimes(*json.loads(times_file(host).read_text()))
        if [*map(type, times)] == [*map(type, WaitTimes())]:
            return times
    return None


def wait_times(host: Mapping[str, str], variables: Mapping[str, str]) -> WaitTimes:
    """The times of this host, where none are stored measured by a process with these variables
    (some seconds), once for all processes.
    """
    try:
        cached(times_file(host).name, lambda file: _probe(file, variables))
    except OSError as error:
        return WaitTimes(problem=str(error))
    return stored_times(host) or WaitTimes(problem="the stored times cannot be read")


def _probe(file: Path, variables: Mapping[str, str]) -> None:
    """A failure is stored too: all processes of a run need the same choice."""
    try:
        text = subprocess.run(
            [sys.executable, "-P", "-m", "workers.wait_probe"],
            env={**variables, SPIN_VARIABLE: PROBE_SPINS},
            capture_output=True,
            text=True,
            timeout=PROBE_LIMIT_S,
            check=True,
        ).stdout
    except (OSError, subprocess.SubprocessError) as error:
        text = json.dumps(WaitTimes(problem=type(error).__name__))
    file.write_text(text)
