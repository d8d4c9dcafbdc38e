"""The command line as a user calls it, and a small sweep for it."""

import contextlib
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.cli import main

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
  latency: {pairs: {min: 30, max: 30}, budget: 50s, timeout: 1m}
"""


OWN_PROCESS = ("run", "doctor", "plot", "app")
"""Commands that start processes of their own."""


def breakeven(
    *arguments: str, folder: Path, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run the command in `folder`, as a user would: in a process of its own if it starts others."""
    if arguments[0] not in OWN_PROCESS and "--confirm" not in arguments:
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
    """Run a command that starts no process in this one: the same, without two seconds of
    imports.
    """
    output, errors = io.StringIO(), io.StringIO()
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(output),
        contextlib.redirect_stderr(errors),
    ):
        patch.chdir(folder)
        patch.setattr(sys, "argv", ["breakeven", *arguments])
        for name, value in {"BREAKEVEN_DB": "", **environment}.items():
            patch.setenv(name, value)
        with pytest.raises(SystemExit) as ended:
            main()
    code = ended.value.code
    assert code is None or isinstance(code, int)
    return subprocess.CompletedProcess(arguments, code or 0, output.getvalue(), errors.getvalue())
