"""Signals that request a run to end."""

import os
import pty
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import psutil
import pytest

from orchestrator.loop.interruption import stop_requested
from store.open.engine import connect
from tests.faults import toy
from tests.fixtures.sql_rows import rows
from tests.orchestrator.commands import ROOT, SWEEP, in_process
from workers.measure.descendants import is_running

RUN = [sys.executable, "-m", "tests.faults.toy", "run"]
STARTS = b"starting Ray"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_first_signal_is_a_request(number: int) -> None:
    """Ctrl-C, SIGTERM and SIGHUP alike end nothing at once; the handlers from before are back
    afterwards.
    """
    # under nohup SIGHUP is ignored
    inherited = signal.signal(number, before := signal.default_int_handler)
    try:
        with stop_requested() as stopped:
            assert not stopped()
            signal.raise_signal(number)
            assert stopped()
            # which may come twice
            assert signal.getsignal(number) == (
                signal.SIG_IGN if number == signal.SIGHUP else before
            )
        assert signal.getsignal(number) == before
    finally:
        signal.signal(number, inherited)


def test_an_ignored_hangup_stays_ignored() -> None:
    """Under `nohup` a closed terminal ends nothing."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with stop_requested() as stopped:
            signal.raise_signal(signal.SIGHUP)
            assert not stopped()
    finally:
        signal.signal(signal.SIGHUP, before)


PASSES = 6
TEXT = SWEEP.replace(
    "pairs: {min: 30, max: 30}, budget: 15s", f"budget: 6s, passes: {PASSES}"
).replace("threads: 1", f"threads: 1, seed: {toy.SEED}")
"""Whose workers answer in a fraction of a second."""


def run_until(file: int, shown: bytes, seconds: float = 120.0) -> None:
    """Read what a run prints until it contains `shown`."""
    printed, until = b"", time.monotonic() + seconds
    while shown not in printed:
        assert time.monotonic() < until, printed
        printed += os.read(file, 1000)


ENDS = """\
import atexit, os, sys
import ray
from orchestrator.__main__ import main
from orchestrator.cli import app

@app.command("probe")
def probe() -> None:
    print("answered")
    atexit.register(os.abort)

sys.argv = ["breakeven", "probe"]
main()
"""


def test_a_crash_at_the_end_of_the_interpreter_is_no_exit_code() -> None:
    """Threads of Ray may crash there: a command that has loaded Ray ends before it, with all that
    it printed.
    """
    ended = subprocess.run(
        [sys.executable, "-c", ENDS], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stdout) == (0, "answered\n"), ended.stderr


@pytest.mark.ray
def test_a_request_to_end_while_ray_starts_is_an_interruption(tmp_path: Path) -> None:
    """SIGTERM ends the command with 130 wherever Ray is, whose own handler would end it with
    another code, and nothing stays.
    """
    (tmp_path / "sweep.yaml").write_text(SWEEP)
    environment = {**os.environ, "BREAKEVEN_DB": str(tmp_path / "x.db"), "RAY_TMPDIR": "/tmp"}
    command = [*RUN, str(tmp_path / "sweep.yaml")]
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        assert process.stdout is not None
        run_until(process.stdout.fileno(), STARTS)
        time.sleep(1.0)
        started = psutil.Process(process.pid).children(recursive=True)
        process.terminate()
        process.communicate(timeout=60)
    assert process.returncode == 130
    # Ray's processes see a moment later that their parent has ended
    _, left = psutil.wait_procs(started, timeout=30)
    assert [each for each in left if is_running(each)] == []


def visits(folder: Path) -> dict[int, int]:
    """Visits of each size that has an interval."""
    engine = connect(str(folder / "breakeven.db"))
    found = rows(engine, "SELECT image_size, rounds FROM speedup WHERE speedup_low IS NOT NULL")
    engine.dispose()
    return {row["image_size"]: row["rounds"] for row in found}


@contextmanager
def acting_after(folder: Path, number: int, act: Callable[[], object]) -> Iterator[None]:
    """`act` is called once the store has so many visits, unless the block ends before."""
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(0.05):
            if sum(visits(folder).values()) >= number:
                act()
                return

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()


@pytest.mark.ray
@pytest.mark.usefixtures("shared_ray")
def test_a_run_whose_store_is_deleted_stops(tmp_path: Path) -> None:
    """The next visit that ends cannot be stored: one line names the file, the exit code is 1, and
    no other store is made in its place.
    """
    (tmp_path / "tiny.yaml").write_text(TEXT)
    store = tmp_path / "breakeven.db"
    with acting_after(tmp_path, 1, store.unlink):
        ended = in_process("run", "tiny.yaml", folder=tmp_path)
    assert ended.returncode == 1, ended.stdout + ended.stderr
    assert f"breakeven: {store} was deleted" in ended.stderr
    assert not store.exists()


@pytest.mark.ray
@pytest.mark.usefixtures("shared_ray")
def test_a_run_that_is_interrupted_goes_on(tmp_path: Path) -> None:
    """Where its terminal is closed a run ends with 130, although it can print nothing more; so
    after Ctrl-C. In its second pass or later all sizes have an interval then, from visits that
    differ by one at most. The next run measures the rest, once, and reports.
    """
    (tmp_path / "tiny.yaml").write_text(TEXT)
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(ROOT)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        store = str(tmp_path / "breakeven.db")
        os.execv(sys.executable, [*RUN, str(tmp_path / "tiny.yaml"), "--db", store])
    run_until(terminal, f"pass 2 of {PASSES}".encode())
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 130
    first = visits(tmp_path)
    assert set(first) == {32, 48, 64}
    assert max(first.values()) - min(first.values()) <= 1
    interrupt = partial(signal.raise_signal, signal.SIGINT)
    with acting_after(tmp_path, sum(first.values()) + 2, interrupt):
        stopped = in_process("run", "tiny.yaml", folder=tmp_path)
    assert stopped.returncode == 130, stopped.stdout
    assert "the same command goes on from here" in stopped.stdout
    second = visits(tmp_path)
    assert sum(second.values()) >= sum(first.values()) + 2
    assert max(second.values()) - min(second.values()) <= 1
    ended = in_process("run", "tiny.yaml", folder=tmp_path)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert f"pass {PASSES} of {PASSES}" in ended.stdout
    assert ended.stdout.count("break-even, tokens") == 1
    assert "breakeven run FILE" not in ended.stdout
    assert visits(tmp_path) == dict.fromkeys((32, 48, 64), PASSES)
    assert not list(tmp_path.glob("breakeven.db-*")), "the file alone holds all of it"
    again = in_process("run", "tiny.yaml", folder=tmp_path)
    assert "3 of 3 comparisons are answered in this environment; 0 jobs left" in again.stdout
    assert "starting Ray" not in again.stdout
