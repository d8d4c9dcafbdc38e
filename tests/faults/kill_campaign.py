"""A campaign of random SIGKILLs over two stores on one host: `python -m tests.faults.kill_campaign
--kills 50 --seed 1`.

Dispatchers (`breakeven run` with `tests.faults.toy`) and what they start are killed at random
times; whatever ends is started again until every sweep is answered. Then what must hold is checked
(see `tests.faults.kill_checks`) and a table is printed; the exit code is 0 if everything holds.
Only descendants of this process are ever killed.
"""

import argparse
import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import psutil

from tests.faults.kill_checks import answered, problems_of
from workers.measure.descendants import adopt_orphans, end_all, is_running

ROOT = Path(__file__).parents[2]
KINDS = ("dispatcher", "supervisor", "worker", "reaper", "raylet", "gcs")
SWEEP = """\
schema: 1
name: {name}
question: Is anything lost or counted twice?
defaults: {{device: cpu, batch_size: {batch}}}
axes: {{model: [deit_tiny_patch16_224], image_size: {{range: {{start: 32, stop: {stop}, step: 16}}}}}}
methods:
  - {{method: topk, keep_rate: [0.5, 0.7], layers: {{list: [3, 6, 9]}}}}
  - {{method: tome, r_ratio: 0.06}}
jobs: {{latency: {{pairs: {{min: 30, max: 100}}, budget: 1s, timeout: 60s}}}}
retry: {{max_attempts: 50, when: [worker_crash, node_died]}}
"""
METHODS = 3
STUCK_S = 300.0
"""A run that answers nothing for so long hangs."""
PAUSE_S = (0.2, 2.0)
"""Between two kills."""
CHANCE = 0.1
"""That a victim that is due is killed at a look: it may be starting, working or waiting."""
PATIENCE_S = 30.0
"""Another kind is drawn if no process of the one that was drawn runs for so long."""


class Kill(NamedTuple):
    kind: str
    run: int
    """The run that the process belonged to."""


class Run:
    """One `breakeven run` of the newest sweep of a store."""

    def __init__(self, number: int, store: "Store") -> None:
        self.number, self.store, self.sweep = number, store, store.sweep
        self.log = store.folder / f"run-{number}-{store.name}.log"
        self.killed = False
        self.progress, self.since = -1, time.monotonic()
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "tests.faults.toy",
                    "run",
                    str(store.file),
                    "--db",
                    str(store.path),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=ROOT,
                start_new_session=True,
            )

    def stuck(self) -> bool:
        now = answered(self.store.path, self.sweep)
        if now != self.progress:
            self.progress, self.since = now, time.monotonic()
        return time.monotonic() - self.since > STUCK_S


class Store:
    """A store with one sweep after the other."""

    def __init__(self, name: str, folder: Path, points: int) -> None:
        self.name, self.folder, self.points = name, folder, points
        self.path, self.file, self.sweeps = (
            folder / f"{name}.db",
            folder / f"{name}.yaml",
            list[str](),
        )
        self.next_sweep()

    @property
    def sweep(self) -> str:
        return self.sweeps[-1]

    @property
    def comparisons(self) -> int:
        """Of each sweep."""
        return METHODS * self.points

    @property
    def complete(self) -> bool:
        return answered(self.path, self.sweep) == self.comparisons

    def next_sweep(self) -> None:
        batch = len(self.sweeps) + 1
        self.sweeps.append(f"{self.name}_{batch}")
        self.file.write_text(
            SWEEP.format(name=self.sweep, batch=batch, stop=32 + 16 * (self.points - 1))
        )


class Campaign:
    """The state of a campaign; `report` gets each line about it."""

    def __init__(
        self,
        folder: Path,
        *,
        kills: int,
        seed: int,
        points: int,
        report: Callable[[str], object] = print,
    ) -> None:
        self.wanted, self.random, self.report = kills, random.Random(seed), report
        self.stores = [Store(name, folder, points) for name in ("a", "b")]
        self.slots: list[tuple[Store, Run | None]] = [
            (self.stores[0], None),
            (self.stores[0], None),
            (self.stores[1], None),
        ]
        """Two dispatchers share the first store, one has the second."""
        self.kills: list[Kill] = []
        self.codes: dict[int, int] = {}
        """Exit code of each run that has ended."""
        self.problems: list[str] = []
        self.folders: set[str] = set()
        """Session folders of every Ray that was seen."""

    def run(self) -> None:
        """Kill until there were enough kills, then let the last sweeps end, and check."""
        adopt_orphans()
        began = time.monotonic()
        kind, due = self._next()
        try:
            while self._tend():
                late = time.monotonic() - due
                if (
                    len(self.kills) < self.wanted
                    and late > 0
                    and (self._kill(kind) or late > PATIENCE_S)
                ):
                    kind, due = self._next()
                time.sleep(0.1)
            self._await_silence()
            for store in self.stores:
                self.problems += problems_of(
                    store.path, dict.fromkeys(store.sweeps, store.comparisons)
                )
        finally:
            end_all()
        self.problems += problems_of_host([store.path for store in self.stores], self.folders)
        self.report(self.table())
        self.report(
            f"{len(self.kills)} kills, {len(self.codes)} runs, {time.monotonic() - began:.0f} s"
        )
        self.report(
            "\n".join(self.problems)
            or "nothing lost, nothing double, exit codes true, nothing left behind"
        )

    def table(self) -> str:
        """For each kind of victim how the runs that it belonged to ended."""
        lines = [f"{'victim':<12}{'kills':>6}  the run that it belonged to ended with"]
        for kind in KINDS:
            ends = Counter(self._ending(kill) for kill in self.kills if kill.kind == kind)
            counts = ", ".join(f"{ending}: {count}" for ending, count in sorted(ends.items()))
            lines.append(f"{kind:<12}{sum(ends.values()):>6}  {counts}")
        return "\n".join(lines)

    def _ending(self, kill: Kill) -> str:
        code = self.codes.get(kill.run)
        return (
            "?"
            if code is None
            else f"killed by {signal.Signals(-code).name}"
            if code < 0
            else f"exit {code}"
        )

    def _tend(self) -> bool:
        """Look after the runs: note how they ended and start new ones. False once all is done."""
        _reap([run.process.pid for _, run in self.slots if run])
        for place, (store, run) in enumerate(self.slots):
            if run is not None and run.process.poll() is None:
                if run.stuck():
                    self.problems.append(f"run {run.number} hangs (see {run.log})")
                    run.process.send_signal(signal.SIGABRT)
                    run.process.wait()
                continue
            if run is not None:
                self._ended(run)
            if store.complete and len(self.kills) < self.wanted:
                store.next_sweep()
            again = not store.complete
            self.slots[place] = store, Run(self._number(), store) if again else None
        return any(run for _, run in self.slots)

    def _number(self) -> int:
        return len(self.codes) + sum(run is not None for _, run in self.slots)

    def _ended(self, run: Run) -> None:
        code = run.process.returncode
        self.codes[run.number] = code
        left = run.store.comparisons - answered(run.store.path, run.sweep)
        self.report(f"run {run.number} of {run.sweep} ended with {code}, {left} comparisons left")
        text = run.log.read_text(errors="replace")
        if code == 0 and left:
            self.problems.append(
                f"run {run.number} ended with 0 and {left} comparisons of {run.sweep} left (see"
                f" {run.log})"
            )
        if code < 0 and not run.killed:
            self.problems.append(
                f"run {run.number} died of {signal.Signals(-code).name} (see {run.log})"
            )
        if "Traceback" in text:
            self.problems.append(f"run {run.number} printed a traceback (see {run.log})")

    def _next(self) -> tuple[str, float]:
        """The kind of the next victim, and from when on it is killed (a reading of
        `time.monotonic()`).
        """
        return self.random.choice(KINDS), time.monotonic() + self.random.uniform(*PAUSE_S)

    def _kill(self, kind: str) -> bool:
        """Kill a random process of that kind, if one runs."""
        runs = {run.process.pid: run for _, run in self.slots if run and run.process.poll() is None}
        victims: dict[str, list[tuple[int, Run]]] = {}
        for pid, run in runs.items():
            victims.setdefault("dispatcher", []).append((pid, run))
            tree = psutil.Process(pid).children(recursive=True)
            for process in tree:
                with contextlib.suppress(psutil.NoSuchProcess):  # it has ended
                    if (found := self._kind(process, tree)) is not None:
                        victims.setdefault(found, []).append((process.pid, run))
        if kind not in victims or self.random.random() > CHANCE:
            return False
        pid, run = self.random.choice(victims[kind])
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            run.killed |= kind == "dispatcher"
            self.kills.append(Kill(kind, run.number))
            self.report(f"kill {len(self.kills)}: {kind} of run {run.number}")
            return True
        return False

    def _kind(self, process: psutil.Process, tree: Sequence[psutil.Process]) -> str | None:
        command = _command(process)
        if "orchestrator.host.worker_process" in command:
            parent = process.parent()
            below = parent in tree and "orchestrator.host.worker_process" in _command(parent)
            return "worker" if below else "reaper"
        if command.startswith("ray::WorkerSupervisor"):
            return "supervisor"
        program = command.split(" ")[0].rpartition("/")[2]
        if program in {"raylet", "gcs_server"}:
            self.folders |= {
                word.partition("=")[2]
                for word in command.split(" ")
                if word.startswith("--session-dir=")
            }
            return "gcs" if program == "gcs_server" else "raylet"
        return None

    def _await_silence(self) -> None:
        """When all runs have ended nothing that they started may be left."""
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            _reap([])
            tree = psutil.Process().children(recursive=True)
            if not (left := [process for process in tree if is_running(process)]):
                return
            time.sleep(0.2)
        self.problems.append(f"left running after all runs had ended: {', '.join(map(str, left))}")


def problems_of_host(paths: Sequence[Path], folders: set[str]) -> list[str]:
    """What is wrong beside the stores: jobs that overlapped on this host, and folders of a Ray that
    ended, which the next start removes: a process of a killed run may have outlived the last one.
    """
    from orchestrator.cluster.connect import Folder
    from tests.faults.kill_checks import overlaps

    Folder().remove()
    found = (
        [f"{count} pairs of jobs ran on this host at the same time"]
        if (count := overlaps(paths))
        else []
    )
    return found + [
        f"Ray's folder is left: {folder}" for folder in sorted(folders) if Path(folder).exists()
    ]


def _reap(own: Sequence[int]) -> None:
    """Collect adopted processes that have ended; those of `own` are collected by who started
    them.
    """
    for process in psutil.Process().children():
        if not is_running(process) and process.pid not in own:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(process.pid, os.WNOHANG)


def _command(process: psutil.Process) -> str:
    with contextlib.suppress(psutil.NoSuchProcess):
        return " ".join(process.cmdline())
    return ""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.faults.kill_campaign", description=__doc__
    )
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--points", type=int, default=12, help="points of a sweep, each a job of three comparisons"
    )
    parser.add_argument(
        "--folder",
        type=Path,
        help="where stores and logs are kept (default: a new temporary folder)",
    )
    requested = parser.parse_args(arguments)
    folder = requested.folder or Path(tempfile.mkdtemp(prefix="kills-"))
    folder.mkdir(parents=True, exist_ok=True)
    print(f"stores and logs: {folder}", flush=True)
    campaign = Campaign(
        folder,
        kills=requested.kills,
        seed=requested.seed,
        points=requested.points,
        report=lambda line: print(line, flush=True),
    )
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # so that what was started is ended
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    campaign.run()
    return 1 if campaign.problems else 0


if __name__ == "__main__":
    sys.exit(main())
