"""The workflows of docs/ci.md, run in a clean clone of a small repository."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.orchestrator.commands import ROOT

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PACKAGE = "def parse(text):\n    return [line.split(', ') for line in text.splitlines()]\n"
SLOW = PACKAGE.replace(
    "text.splitlines()", "(text + text + text).splitlines()[: text.count('\\n')]"
)


def blocks(language: str) -> list[str]:
    text = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
    return [body for name, body in BLOCK.findall(text) if name == language]


def scripts() -> dict[str, str]:
    """By forge what its workflow runs once breakeven is installed and the commits are there."""
    github, gitlab = map(yaml.safe_load, blocks("yaml"))
    steps = {step.get("name"): step for step in github["jobs"]["compare"]["steps"]}
    return {"github": steps["Compare"]["run"], "gitlab": "\n".join(gitlab["speed"]["script"])}


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """On `main` the page's own file and a package; on `slow` one that does more."""
    folder = tmp_path_factory.mktemp("origin")
    (bench,) = blocks("python")
    versions = {"main": PACKAGE, "slow": SLOW}
    git(folder, "init", "--quiet", "--initial-branch", "main")
    for branch, source in versions.items():
        if branch != "main":
            git(folder, "checkout", "--quiet", "-b", branch, "main")
        (folder / "mypackage.py").write_text(source)
        (folder / "bench.py").write_text(bench)
        git(folder, "add", "-A")
        git(folder, "commit", "--quiet", "-m", branch)
    return folder


def git(folder: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=n", "-c", "user.email=n@example.org")
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.mark.parametrize("forge", ["github", pytest.param("gitlab", marks=pytest.mark.slow)])
def test_a_slower_branch_fails(origin: Path, tmp_path: Path, forge: str) -> None:
    """With a comment for the pull request; nothing else is left in the clone."""
    git(tmp_path, "clone", "--quiet", "--branch", "slow", str(origin), "clone")
    clone = tmp_path / "clone"
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", scripts()[forge]],
        cwd=clone,
        env={
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "GITHUB_BASE_REF": "main",
            "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main",
            "TIME": "8s",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (1, "")
    comment = (clone / "comment.md").read_text()
    assert re.match(r"\*\*HEAD \(\w{7}\): slower than \S+ \(\w{7}\), 0\.\d", comment)
    status = subprocess.run(
        ["git", "status", "--short"], cwd=clone, capture_output=True, text=True, check=True
    )
    assert status.stdout == "?? comment.md\n"
