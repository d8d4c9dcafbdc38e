"""The workflows of docs/ci.md, run in a clean clone of a small repository."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from tests.orchestrator.commands import ROOT

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PACKAGE = "def parse(text):\n    return [line.split(', ') for line in text.splitlines()]\n"
SLOW = PACKAGE.replace("text.splitlines()", "(text * 30).splitlines()[: text.count('\\n')]")
EQUAL = f"# another comment\n{PACKAGE}"
OF_GITHUB = "gh pr comment "
"""Begin of the one line that needs GitHub itself."""


class Recipe(NamedTuple):
    """What the workflow of a forge runs."""

    scripts: Sequence[str]
    """One after another, each in a shell of its own, until one fails."""
    variables: Mapping[str, str]
    passes: frozenset[int]
    """Exit codes of a change of which nothing is decided, or which is not slower."""


def blocks(language: str) -> list[str]:
    text = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
    return [body for name, body in BLOCK.findall(text) if name == language]


def recipes() -> dict[str, Recipe]:
    """By forge."""
    github, gitlab = map(yaml.safe_load, blocks("yaml"))
    job, speed = github["jobs"]["compare"], gitlab["speed"]
    scripts = [step["run"] for step in job["steps"] if "run" in step]
    assert sum(script.startswith(OF_GITHUB) for script in scripts) == 1
    return {
        "github": Recipe(
            [script for script in scripts if not script.startswith(OF_GITHUB)],
            job["env"],
            frozenset({0}),
        ),
        "gitlab": Recipe(
            ["\n".join([*speed["before_script"], *speed["script"]])],
            speed["variables"],
            frozenset({0, *speed["allow_failure"]["exit_codes"]}),
        ),
    }


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """On `main` the page's own file and a package; on `slow` one that does more, on `equal` one that
    does the same.
    """
    folder = tmp_path_factory.mktemp("origin")
    (bench,) = blocks("python")
    git(folder, "init", "--quiet", "--initial-branch", "main")
    for branch, source in {"main": PACKAGE, "slow": SLOW, "equal": EQUAL}.items():
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


def run(
    scripts: Sequence[str], clone: Path, **environment: Any
) -> subprocess.CompletedProcess[str]:
    """As both forges do, with their own variables; the last one that ran."""
    for script in scripts:
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
            cwd=clone,
            env={
                **os.environ,
                "GITHUB_BASE_REF": "main",
                "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main",
                **{name: str(value) for name, value in environment.items()},
            },
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            break
    return done


def assert_comment(clone: Path, verdict: str) -> None:
    """A comment for the pull request was written, and nothing else is left in the clone."""
    comment = (clone / "comment.md").read_text()
    assert re.match(rf"\*\*HEAD \(\w{{7}}\): {verdict} \S+ \(\w{{7}}\)", comment), comment
    status = subprocess.run(
        ["git", "status", "--short"], cwd=clone, capture_output=True, text=True, check=True
    )
    assert status.stdout == "?? comment.md\n"


def test_a_slower_branch_fails(origin: Path, tmp_path: Path) -> None:
    """What the workflow runs once it has installed this project."""
    git(tmp_path, "clone", "--quiet", "--branch", "slow", str(origin), "clone")
    (script,) = (text for text in recipes()["github"].scripts if "compare" in text)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = run([script], tmp_path / "clone", PATH=path, TIME="8s")
    assert (done.returncode, done.stderr) == (1, ""), done.stdout
    assert_comment(tmp_path / "clone", "slower than")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this project, as the page makes it."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        ["uv", "build", "--wheel", "--out-dir", folder, ROOT], check=True, capture_output=True
    )
    (path,) = folder.glob("*.whl")
    return path


@pytest.mark.slow
@pytest.mark.parametrize("forge", ["github", "gitlab"])
def test_the_recipe_runs_as_it_is_written(
    origin: Path, wheel: Path, tmp_path: Path, forge: str
) -> None:
    """All commands of a workflow, from the installation on, in a new environment: a branch that is
    equal passes, a slower one fails. Only `TIME` is shorter, the actions that `uses:` names are done
    here (a clone, uv in the path), and what is installed has the versions of `uv sync`.
    """
    recipe = recipes()[forge]
    newest = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["uv"]["exclude-newer"]
    tools, image = tmp_path / "tools", tmp_path / "image"
    subprocess.run([sys.executable, "-m", "venv", image], check=True)
    others = [
        entry
        for entry in os.environ["PATH"].split(os.pathsep)
        if Path(entry) != Path(sys.executable).parent
    ]
    path = [image / "bin", *([tools] if forge == "github" else []), *others]
    environment = {
        **recipe.variables,
        "TIME": "10s",
        "PATH": os.pathsep.join(map(str, path)),
        "UV_TOOL_DIR": tmp_path / "environments",
        "UV_TOOL_BIN_DIR": tools,
        "UV_EXCLUDE_NEWER": newest,
        "UV_PYTHON": f"{sys.version_info.major}.{sys.version_info.minor}",
        "VIRTUAL_ENV": "",
        "PYTHONPATH": "",
    }
    for branch in ("equal", "slow"):
        git(tmp_path, "clone", "--quiet", "--branch", branch, str(origin), branch)
        clone = tmp_path / branch
        target = clone / recipe.variables["BREAKEVEN"]
        target.parent.mkdir()
        shutil.copy(wheel, target.parent)
        assert target.exists()
        git(clone, "add", "-A")
        git(clone, "commit", "--quiet", "-m", "the wheel")
        done = run(recipe.scripts, clone, **environment)
        if branch == "slow":
            assert done.returncode == 1, done.stderr
            assert_comment(clone, "slower than")
        else:
            assert done.returncode in recipe.passes, done.stderr
            assert_comment(clone, "(equal to|faster than|undecided against)")
    assert (tools / "breakeven").resolve().is_relative_to(tmp_path)
