"""Folders of users: packages of theirs with our names in the current folder, and method files that
cannot be used.
"""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.orchestrator.commands import breakeven

BREAKEVEN = Path(sys.executable).with_name("breakeven")
OURS = ("workers", "store", "webapp", "sweeps", "orchestrator")
SWEEP = """
schema: 1
name: own
question: Does a folder of the user disturb?
defaults: {device: cpu, threads: 1}
axes: {model: [test_vit], image_size: [32]}
methods: [{method: topk, keep_rate: 0.5, layers: {list: [1]}}]
jobs: {latency: {pairs: {min: 10, max: 10}, budget: 5s, timeout: 2m}}
"""


def variables() -> dict[str, str]:
    """Of a user who has installed the project: nothing of the checkout is on the path."""
    return {
        key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "BREAKEVEN_DB")
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A user's folder with packages that end whatever imports them."""
    for name in OURS:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise SystemExit(77)\n")
    (tmp_path / "own.yaml").write_text(SWEEP)
    return tmp_path


@pytest.mark.ray
def test_packages_of_the_user_disturb_no_command(folder: Path) -> None:
    """`run`, `plot` and `app`, as the installed command, in a folder with packages of our
    names.
    """

    def command(*arguments: str) -> None:
        done = subprocess.run(
            [BREAKEVEN, *arguments],
            cwd=folder,
            env=variables(),
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
        assert done.returncode == 0, (arguments, done.stdout, done.stderr)

    command("run", "own.yaml")
    with socket.create_server(("localhost", 0)) as free:
        port = free.getsockname()[1]
    served = subprocess.Popen(
        [BREAKEVEN, "app", "--no-browser", "--port", str(port)],
        cwd=folder,
        env=variables(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        command("plot", "own", "-o", "own.svg")  # while the app starts
        assert (folder / "own.svg").read_text().startswith("<svg")
        assert served.stdout is not None
        shown = next(line for line in served.stdout if "http://" in line)
        assert "localhost" in shown
    finally:
        served.kill()
        served.communicate()


BROKEN = {
    "syntax.py": "def broken(:\n",
    "leaves.py": "import sys\nsys.exit(5)\n",
    "lacks.py": '"""Lacks all."""\n',
}


@pytest.mark.parametrize("where", ["files", "folder"])
def test_methods_that_cannot_be_used_disturb_no_command(
    stored: Path, tmp_path: Path, where: str
) -> None:
    """`methods`, `plan` and `report` work, with a line for each file or folder; a sweep that needs
    one ends with exit code 2.
    """
    own = tmp_path / "methods"
    if where == "files":
        own.mkdir()
        for name, text in BROKEN.items():
            (own / name).write_text(text)
    sweep = tmp_path / "own.yaml"
    sweep.write_text(SWEEP)
    places = [str(own / name) for name in BROKEN] if where == "files" else [str(own)]
    commands = {"files": [("plan", str(sweep)), ("report", "quickstart")], "folder": [("methods",)]}
    for arguments in commands[where]:
        done = subprocess.run(
            [BREAKEVEN, *arguments],
            cwd=stored,
            env=variables() | {"BREAKEVEN_METHODS": str(own)},
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
        assert done.returncode == 0, (arguments, done.stderr)
        assert "Traceback" not in done.stderr
        assert [sum(place in line for line in done.stderr.splitlines()) for place in places] == [
            1
        ] * len(places)
    sweep.write_text(
        SWEEP.replace("method: topk, keep_rate: 0.5, layers: {list: [1]}", "method: syntax")
    )
    assert breakeven("plan", str(sweep), folder=stored, BREAKEVEN_METHODS=str(own)).returncode == 2
