"""The page docs/cluster.md, each command of it, with three nodes on this machine and a PostgreSQL
server.
"""

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest
import yaml

from tests.orchestrator.commands import ROOT, SWEEP
from tests.orchestrator.machines import RAY, free_port, started
from tests.store import postgresql

PROGRAMS = postgresql.programs()
CHAPTER = (ROOT / "docs/cluster.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(console|yaml)\n(.*?)```", CHAPTER, re.DOTALL)
COMMANDS, SLURM = [text for language, text in BLOCKS if language == "console"]
(KUBERAY,) = [text for language, text in BLOCKS if language == "yaml"]
PRIVATE = ("unshare", "--pid", "--fork", "--mount-proc")
"""Runs a command where it sees no processes but its own, so that its `ray stop` stops no other
Ray."""


class Shell:
    """A user's shell, in which exported variables stay."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        search = os.pathsep.join([str(RAY.parent), os.environ["PATH"]])
        kept = {
            key: value
            for key, value in os.environ.items()
            if not key.startswith(("RAY_", "BREAKEVEN_"))
        }
        self.variables = {**kept, "HOME": str(folder), "PATH": search}

    def run(self, command: str, *before: str) -> str:
        """What it prints; fails unless it ends with exit code 0."""
        done = subprocess.run(
            [*before, "bash", "-c", command],
            cwd=self.folder,
            env=self.variables,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        return done.stdout


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """In a folder where `sweeps/quickstart.yaml` takes seconds."""
    (tmp_path / "sweeps").mkdir()
    (tmp_path / "sweeps" / "quickstart.yaml").write_text(SWEEP.replace("[32, 48, 64]", "[32, 48]"))
    return Shell(tmp_path)


@pytest.fixture
def url() -> Iterator[str]:
    """The URL of an empty database, as SQLAlchemy writes it with its driver."""
    assert PROGRAMS is not None
    with postgresql.serving(PROGRAMS) as folder:
        yield postgresql.database(folder, "breakeven").replace(
            "postgresql://", "postgresql+psycopg://"
        )


@pytest.mark.slow
@pytest.mark.ray
@pytest.mark.skipif(PROGRAMS is None, reason="needs PostgreSQL: apt-get install postgresql")
def test_each_command_of_the_chapter_runs(shell: Shell, url: str) -> None:
    """Token, head, two nodes, store, run and status; then KubeRay's entry point, with the address
    that Ray sets there.
    """
    port = str(free_port())
    commands = [line.partition("  #")[0].strip() for line in COMMANDS.splitlines()]
    ran = []
    with ExitStack() as stack:
        for command in commands:
            here = command.replace("HEAD", "127.0.0.1").replace("6379", port)
            ran.append(here.split()[:2])
            match here.split():
                case ["ray", "start", *options]:
                    variables = {
                        key: value
                        for key, value in shell.variables.items()
                        if key.startswith("RAY_")
                    }
                    for _ in range(1 if "--head" in options else 2):
                        stack.enter_context(started(*options, home=shell.folder, **variables))
                case ["export", assignment]:
                    name, _, value = assignment.partition("=")
                    shell.variables[name] = value.replace(
                        "postgresql+psycopg://USER@DATABASE/breakeven", url
                    )
                case ["breakeven", "run", *_]:
                    shown = shell.run(here)
                    assert "gets no jobs: it offers no CPU to Ray" in shown
                    assert "[2/2]" in shown
                case _:
                    shown = shell.run(here)
        assert [words[0] for words in ran] == [
            "ray",
            "export",
            "ray",
            "ray",
            "export",
            "breakeven",
            "breakeven",
        ]
        assert shell.variables["BREAKEVEN_DB"] == url
        assert (shell.folder / ".ray" / "auth_token").exists()
        assert re.search(r"tiny +.*\b2\b", shown)
        shell.variables["RAY_ADDRESS"] = f"127.0.0.1:{port}"
        again = shell.run(yaml.safe_load(KUBERAY)["spec"]["entrypoint"])
        assert "2 of 2 comparisons are answered" in again
    with psycopg.connect(url.replace("+psycopg", "")) as connection:
        assert connection.execute("SELECT count(*) FROM attempt").fetchone() == (2,)


def test_kuberay_file_is_what_kuberay_reads() -> None:
    """A RayJob whose containers share one image, and whose head gets no jobs; no Kubernetes is here
    to take it.
    """
    job = yaml.safe_load(KUBERAY)
    cluster = job["spec"]["rayClusterSpec"]
    groups = [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]
    assert (job["apiVersion"], job["kind"]) == ("ray.io/v1", "RayJob")
    assert {
        container["image"]
        for group in groups
        for container in group["template"]["spec"]["containers"]
    } == {"IMAGE"}
    assert cluster["headGroupSpec"]["rayStartParams"] == {"num-cpus": "0"}
    assert "BREAKEVEN_DB" in json.dumps(cluster["headGroupSpec"])


@pytest.mark.slow
@pytest.mark.ray
@pytest.mark.skipif(
    sys.platform != "linux"
    or subprocess.run([*PRIVATE, "true"], capture_output=True, check=False).returncode != 0,
    reason=(
        "needs the right to make a process name space, or `ray symmetric-run` would stop other"
        " people's Ray"
    ),
)
def test_symmetric_run_measures_on_one_node(shell: Shell) -> None:
    """What `srun` starts on each node, on the only one."""
    _, command = SLURM.strip().splitlines()
    words = shlex.split(command)
    words = words[words.index("ray") :]
    words[words.index("--min-nodes") + 1] = "1"
    words[words.index("--address") + 1] = f"127.0.0.1:{free_port()}"
    options = [
        "--include-dashboard=false",
        "--object-store-memory",
        "80000000",
        "--disable-usage-stats",
    ]
    words[words.index("--") : words.index("--")] = options
    shown = shell.run(shlex.join(words), *PRIVATE)
    assert "[2/2]" in shown
    assert "Command failed" not in shown
