"""Signals that request a run to end."""

import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from orchestrator.loop.interruption import stop_requested
from tests.orchestrator.commands import ROOT, SWEEP
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


@pytest.mark.ray
def test_a_closed_terminal_is_an_interruption(tmp_path: Path) -> None:
    """The command ends with 130, although it can print nothing more."""
    (tmp_path / "sweep.yaml").write_text(
        SWEEP.replace("[32, 48, 64]", "{range: {start: 32, stop: 1600, step: 16}}")
    )
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(ROOT)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        os.execv(
            sys.executable, [*RUN, str(tmp_path / "sweep.yaml"), "--db", str(tmp_path / "x.db")]
        )
    run_until(terminal, b"[1/")
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 130
