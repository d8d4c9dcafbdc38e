"""The wheel, installed as a tool of its own, in an empty folder: the shipped sweep is found by its name, and every command
that is printed works there.
"""

import os
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.orchestrator.commands import ROOT
from tests.orchestrator.printed_commands import commands_in

pytestmark = pytest.mark.ray


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `bin` of an environment of `uv tool install`, with this project's wheel and what it asks
    for, of the versions that `uv sync` takes.
    """
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        ["uv", "build", "--wheel", "--out-dir", folder, ROOT], check=True, capture_output=True
    )
    (wheel,) = folder.glob("*.whl")
    newest = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["uv"]["exclude-newer"]
    subprocess.run(
        ["uv", "tool", "install", "--exclude-newer", newest, "--python", sys.executable, wheel],
        env={**os.environ, "UV_TOOL_DIR": str(folder), "UV_TOOL_BIN_DIR": str(folder / "linked")},
        check=True,
        capture_output=True,
    )
    return folder / "breakeven" / "bin"


@pytest.mark.slow
def test_every_command_works_from_the_wheel(installed: Path, tmp_path: Path) -> None:
    """A run of the shipped sweep, by its name, and then all commands that it and its report
    print.
    """
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("PYTHONPATH", "BREAKEVEN_DB")
    }
    environment["PATH"] = f"{installed}{os.pathsep}{environment['PATH']}"

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            words,
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=550,
            check=False,
        )

    place = run("python", "-c", "import orchestrator; print(orchestrator.__file__)").stdout
    assert Path(place).is_relative_to(installed.parent), place
    nothing = run("breakeven", "report", "quickstart")
    assert nothing.returncode == 2
    assert commands_in(nothing.stderr) == {"breakeven run quickstart"}
    first = run("breakeven", "run", "quickstart", "--time", "12s")
    assert first.returncode in (0, 1), first.stderr
    shown = run("breakeven", "report", "quickstart")
    assert shown.returncode == 0, shown.stderr
    planned = run("breakeven", "plan", "quickstart")
    assert planned.returncode == 0, planned.stderr
    drawn = run("breakeven", "plot", "quickstart", "-o", "x.svg")
    assert (drawn.returncode, (tmp_path / "x.svg").exists()) == (0, True), drawn.stderr
    commands = commands_in(first.stdout + shown.stdout + shown.stderr)
    assert commands
    for command in sorted(commands):
        words = shlex.split(command)
        words += (
            ["--processes", "0"]
            if words[1] == "calibrate"
            else ["--time", "2s"]
            if words[1] == "run"
            else []
        )
        done = run(*words)
        assert done.returncode in (0, 1), (command, done.stderr)
        assert "Traceback" not in done.stderr, command
