"""The command line as a user calls it, and a small sweep for it."""

import contextlib
import io
import os
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

import pytest

from orchestrator.__main__ import exit_code
from webapp.__main__ import main as run_webapp

ROOT = Path(__file__).parents[2]
SWEEP = """\
schema: 1
name: tiny
question: Does it run from one end to the other?
defaults: {threads: 1}
axes:
  model: [deit_tiny_patch16_224]
  image_size: [32, 48, 64]
methods:
  - {method: topk, keep_rate: 0.5}
jobs:
  latency: {pairs: {min: 30, max: 30}, budget: 15s, timeout: 1m}
"""


OWN_PROCESS = ("run", "app")
"""Commands that start Ray, or serve until they are ended."""


def breakeven(
    *arguments: str, folder: Path, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run the command in `folder`, as a user would; some in a process of their own."""
    if arguments[0] not in OWN_PROCESS:
        return in_process(*arguments, folder=folder, **environment)
    return subprocess.run(
        [sys.executable, "-m", "orchestrator", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "BREAKEVEN_DB": "", **environment},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def in_process(
    *arguments: str, folder: Path, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a command in this process: the same, without seconds of imports. `run` needs the fixture
    `shared_ray`.
    """
    output, errors = io.StringIO(), io.StringIO()

    def become(_: str, command: list[str]) -> NoReturn:
        """Run the command of the web app, which `plot` puts in its own place."""
        sys.exit(run_webapp(command[4:]))

    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(output),
        contextlib.redirect_stderr(errors),
    ):
        patch.chdir(folder)
        patch.setattr(sys, "argv", ["breakeven", *arguments])
        patch.setattr(os, "execv", become)
        for name, value in {"BREAKEVEN_DB": "", **environment}.items():
            patch.setenv(name, value)
        code = exit_code()
    return subprocess.CompletedProcess(arguments, code, output.getvalue(), errors.getvalue())
