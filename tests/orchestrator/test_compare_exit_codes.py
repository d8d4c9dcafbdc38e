"""Exit codes of `compare` and `history`: 1 is a slowdown that was measured, whatever else happens is
2 or 3; a result is printed before it is written anywhere.
"""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from errno import EPIPE
from pathlib import Path
from typing import NoReturn

import pytest
import typer

from store.errors import StoreOutageError
from sweeps.errors import UserError
from tests.fixtures.nightly import chain
from tests.orchestrator.commands import ROOT, breakeven

COMPARE = ("compare", "--command", "sleep 0.01", "sleep 0.1", "--timeout", "2m", "--time", "0.3s")
"""The second one is slower by any clock."""


@pytest.fixture(scope="module")
def nightly(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store whose `history` ends with exit code 1."""
    path = tmp_path_factory.mktemp("nightly") / "nightly.db"
    chain(path, 0, falls=6)
    return path


def raising(error: BaseException) -> Callable[..., NoReturn]:
    def fail(*_: object, **__: object) -> NoReturn:
        raise error

    return fail


@pytest.mark.parametrize(
    ("layer", "error"),
    [
        ("orchestrator.commands.compare.parse_seconds", KeyError("x")),
        ("orchestrator.api.commands.parse_command", UserError("no")),
        ("orchestrator.api.commands.MeasuredProcess.__init__", OSError(24, "Too many open files")),
        ("orchestrator.api.commands.Commands.slots", ZeroDivisionError()),
        ("orchestrator.api.comparison.time_rounds", MemoryError()),
        ("orchestrator.api.comparison.watch", RecursionError()),
        ("orchestrator.api.comparison.compare_pooled", SystemExit(1)),
        ("orchestrator.api.comparison.environment_of", SystemExit("text")),
        ("orchestrator.api.commands.Commands.usages", AssertionError()),
        ("orchestrator.api.render.ComparisonReport.exit_code", GeneratorExit()),
        ("orchestrator.api.render.ComparisonReport.table", BrokenPipeError(EPIPE, "Broken pipe")),
        ("orchestrator.api.commands.Commands.close", StoreOutageError("away")),
        ("store.write.queue.derive_before_reading", StoreOutageError("away")),
    ],
)
def test_an_error_of_any_layer_is_not_slower(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layer: str, error: BaseException
) -> None:
    """Each layer of `compare` raises, each another error: exit code 2."""
    monkeypatch.setattr(layer, raising(error))
    assert breakeven(*COMPARE, folder=tmp_path).returncode == 2


@pytest.mark.parametrize(
    ("layer", "error"),
    [
        ("orchestrator.commands.history.connect_readonly", StoreOutageError("away")),
        ("orchestrator.commands.history.sweep_trends", ValueError("broken row")),
        ("sweeps.stats.trends.change_points", ZeroDivisionError()),
        ("orchestrator.commands.history.rows_of", KeyError("metric")),
        ("orchestrator.commands.history.trends_text", typer.Abort()),
        ("orchestrator.text_table.table_lines", BrokenPipeError(EPIPE, "Broken pipe")),
    ],
)
def test_an_error_of_any_layer_of_history_is_no_fall(
    nightly: Path, monkeypatch: pytest.MonkeyPatch, layer: str, error: BaseException
) -> None:
    """A store with a fall, whose exit code is 1, ends with 2 where a layer raises."""
    command = ("history", "nightly", "--db", str(nightly))
    assert breakeven(*command, folder=nightly.parent).returncode == 1
    monkeypatch.setattr(layer, raising(error))
    assert breakeven(*command, folder=nightly.parent).returncode == 2


def run(
    *command: str, folder: Path, output: int = subprocess.PIPE, **environment: str
) -> subprocess.CompletedProcess[str]:
    """In a process of its own, with an output of its own."""
    return subprocess.run(
        [sys.executable, "-m", "orchestrator", *command],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "BREAKEVEN_DB": "", **environment},
        stdout=output,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )


def test_a_program_that_cannot_be_loaded_is_not_slower(tmp_path: Path) -> None:
    """An installation without typer: the error is printed, with exit code 2."""
    (tmp_path / "typer.py").write_text("raise ImportError('broken')\n")
    done = run(*COMPARE, folder=tmp_path, PYTHONPATH=f"{tmp_path}{os.pathsep}{ROOT}")
    assert (done.returncode, done.stderr.splitlines()[-1]) == (2, "ImportError: broken")


def test_output_that_nothing_reads_is_refused_before_measuring(tmp_path: Path) -> None:
    """A pipe whose reader ended is one line; a full disk is an error, and neither is a slowdown."""
    reading, writing = os.pipe()
    os.close(reading)
    done = run(*COMPARE[:-1], "1h", folder=tmp_path, output=writing)
    os.close(writing)
    message = "breakeven: the output is closed: nothing reads the result\n"
    assert (done.returncode, done.stderr) == (2, message)
    full = os.open("/dev/full", os.O_WRONLY)
    done = run(*COMPARE, folder=tmp_path, output=full)
    os.close(full)
    assert (done.returncode, "No space left on device" in done.stderr) == (2, True)


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("missing/comment.md", "No such file or directory"),
        ("folder", "Is a directory"),
        ("x" * 300, "File name too long"),
    ],
)
def test_a_comment_that_cannot_be_written_is_refused_before_measuring(
    tmp_path: Path, target: str, reason: str
) -> None:
    """In one line, and an hour before the end."""
    (tmp_path / "folder").mkdir()
    done = breakeven(*COMPARE[:-1], "1h", "--comment", target, folder=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"breakeven: --comment {target} cannot be written: {reason}\n"


def test_a_store_that_cannot_be_written_is_refused_before_measuring(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that another program keeps locked, one that is no store, one in a missing folder: a line
    each.
    """
    monkeypatch.setattr("store.open.engine.BUSY_S", 0.1)
    command = (*COMPARE[:-1], "1h", "--store", "--db")
    chain(tmp_path / "locked.db", 0, days=1)
    other = sqlite3.connect(tmp_path / "locked.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    (tmp_path / "text.db").write_text("no store, but a text that is longer than a header" * 9)
    for name, reason in {
        "locked.db": "was kept locked by another program",
        "text.db": "is not an SQLite database",
        "missing/x.db": "does not exist",
    }.items():
        done = breakeven(*command, name, folder=tmp_path)
        assert (done.returncode, done.stdout) == (2, "")
        assert reason in done.stderr
        assert done.stderr.count("\n") == 1
    other.close()


def test_a_result_that_cannot_be_written_is_printed_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that fills up and a store that goes away meanwhile: the table is there, a line has the
    reason, and each is tried although the other one failed.
    """
    done = breakeven(*COMPARE, "--comment", "/dev/full", "--store", folder=tmp_path)
    assert "two copies of sleep 0.01: " in done.stdout
    assert (
        done.stderr == "breakeven: --comment /dev/full cannot be written: No space left on device\n"
    )
    assert done.returncode == 2
    assert "Stored as a sweep" in done.stdout
    monkeypatch.setattr("orchestrator.api.result.save_results", raising(StoreOutageError("away")))
    done = breakeven(*COMPARE, "--comment", "comment.md", "--store", folder=tmp_path)
    assert "two copies of sleep 0.01: " in done.stdout
    assert (done.returncode, done.stderr) == (2, "breakeven: away\n")
    assert "two copies of sleep 0.01: " in (tmp_path / "comment.md").read_text()


@pytest.mark.parametrize("other", ["frozen", "chatters"])
def test_a_function_cannot_break_the_measurement(tmp_path: Path, other: str) -> None:
    """One of a file that replaces the clock is timed by the real one; one that writes into the pipe
    of replies is an arm that fails.
    """
    (tmp_path / "frozen.py").write_text(
        "import time\ntime.perf_counter = lambda: 5.0\ndef f(): return sum(range(1000))\n"
    )
    (tmp_path / "chatters.py").write_text(
        "import contextlib, os\ndef f():\n    for fd in range(3, 20):\n"
        "        with contextlib.suppress(OSError):\n            os.write(fd, b'{\"a\": 1}\\n')\n"
        "    return sum(range(1000))\n"
    )
    (tmp_path / "plain.py").write_text("def f(): return sum(range(1000))\n")
    done = breakeven(
        "compare",
        "plain.py:f",
        f"{other}.py:f",
        "--timeout",
        "2m",
        "--time",
        "0.5s",
        folder=tmp_path,
    )
    if other == "frozen":
        assert (done.returncode != 2, done.stderr) == (True, "")
    else:
        reason = "chatters.py:f: its process sent something that is no reply"
        assert (done.returncode, done.stderr) == (2, f"breakeven: {reason}\n")
