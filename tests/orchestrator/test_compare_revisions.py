"""`breakeven compare --revision`: commits of a git repository, each in a work tree of its own; nothing
of the repository changes.
"""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from orchestrator.api.revisions import LOCK, TREES_PREFIX, Repository, remove_abandoned
from tests.orchestrator.commands import ROOT, breakeven

WORK = "def total(n):\n    return sum(i * i for i in range({n}))\n"
BENCH = "from part.work import total\n\ndef step():\n    return total(2000) and None\n\ndef control():\n    return sum(range(1000))\n"


def git(folder: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", "-c", "user.name=n", "-c", "user.email=n@example.org", *arguments],
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
    ).stdout


def commit(folder: Path, message: str, **files: str) -> None:
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_py", ".py")
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    git(folder, "add", "-A")
    git(folder, "commit", "--quiet", "-m", message)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """On `main` a function, on `slow` one that takes thirty times as long, on `empty` none; hooks
    that would leave a file. Temporary files have a folder of their own.
    """
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setattr(tempfile, "tempdir", None)
    (tmp_path / "tmp").mkdir()
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch", "main")
    commit(folder, "one", bench_py=BENCH, part__work_py=WORK.format(n="n"))
    git(folder, "checkout", "--quiet", "-b", "slow")
    commit(folder, "two", part__work_py=WORK.format(n="30 * n"))
    git(folder, "checkout", "--quiet", "-b", "empty", "main")
    git(folder, "rm", "--quiet", "-r", "part")
    commit(folder, "three", bench_py="def other(): pass\n")
    git(folder, "checkout", "--quiet", "--force", "slow")
    hook = folder / ".git" / "hooks" / "post-checkout"
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/hook-ran\n")
    hook.chmod(0o755)
    return folder


def state(folder: Path) -> tuple[object, ...]:
    """All that a comparison must leave as it is."""
    entries = sorted(
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if "__pycache__" not in path.parts
    )
    return (
        *(
            git(folder, *arguments.split())
            for arguments in ("status -s", "worktree list", "branch -v")
        ),
        entries,
    )


def compare(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return breakeven("compare", *arguments, folder=folder)


def test_a_slower_revision_is_found(repository: Path, tmp_path: Path) -> None:
    """Exit code 1, with a control that both revisions have; the repository, which has uncommitted
    changes, stays as it is.
    """
    (repository / "part" / "work.py").write_text("raise SystemExit\n")
    before = state(repository)
    found = compare(
        repository,
        *("--revision", "main", "--revision", "HEAD", "--control", "bench.py:control"),
        *("--time", "15s", "--format", "json", "--", "bench.py:step"),
    )
    assert (found.returncode, found.stderr) == (1, "")
    said = json.loads(found.stdout)
    (place,) = said["places"]
    assert [arm["name"].split()[0] for arm in place["arms"]] == ["HEAD"]
    assert place["arms"][0]["high"] < 0.7
    assert (place["void"], place["failures"]) == ("", {})
    assert "Uncommitted changes are not measured: HEAD is the last commit" in said["method"]
    assert state(repository) == before
    assert list((tmp_path / "tmp").iterdir()) == []
    assert not (tmp_path / "hook-ran").exists()


@pytest.mark.parametrize(
    ("control", "reason"),
    [
        (
            "def control():\n    return sum(range(300_000)) and 499500\n",
            r" moved: 0\.| has no interval",
        ),
        ("def control():\n    return 1\n", " failed: its result is not that of control.py:control"),
        ("def control():\n    raise ValueError('no')\n", " failed: it raises ValueError: no"),
        ("def other(): pass\n", " failed: control.py has no function 'control'"),
        ("", " failed: there is no Python file control.py"),
    ],
    ids=["moves", "returns", "raises", "lacks", "missing"],
)
def test_a_control_that_moves_fails_or_is_missing_voids_the_result(
    repository: Path, control: str, reason: str
) -> None:
    """Exit code 3, although the revision is slower, with the reason in the output and in the field
    `void`; controls are compared with each other, since they return something else.
    """
    before = "def control():\n    return sum(range(1000))\n"
    commit(repository, "before", control_py=before, bench_py=BENCH.replace("(2000)", "(200)"))
    if not control:
        git(repository, "rm", "--quiet", "control.py")
    commit(repository, "after", bench_py=BENCH, **({"control_py": control} if control else {}))
    found = compare(
        repository,
        *("--revision", "HEAD~1", "--revision", "HEAD", "--control", "control.py:control"),
        *("--time", "1s", "--format", "json", "--", "bench.py:step"),
    )
    assert (found.returncode, found.stderr) == (3, "")
    shown = json.loads(found.stdout)
    (place,) = shown["places"]
    assert place["void"].startswith("the control control.py:control at HEAD")
    assert re.search(reason, place["void"])
    assert shown["sentences"] == [f"Nothing may be concluded: {place['void']}"]
    assert [arm["verdict"] for arm in place["arms"]] == ["undecided"]


@pytest.mark.parametrize(
    ("revisions", "function", "reason"),
    [
        (("main", "sloww"), "bench.py:step", "there is no revision 'sloww'; did you mean 'slow'?"),
        (("main", "--all"), "bench.py:step", "there is no revision '--all'"),
        (("main",), "bench.py:step", "write two different revisions or more"),
        (("main", "slow"), "bench.py:setp", "bench.py has no function 'setp'"),
        (("main", "empty"), "bench.py:step", "empty"),
        (("main", "empty"), "part/work.py:total", ": there is no Python file work.py"),
        (("main", "slow"), "/etc/x.py:f", "is not in the repository"),
        (("main", "slow"), "bench.py", "names no function"),
    ],
)
def test_wrong_usage_is_one_line(
    repository: Path, revisions: tuple[str, ...], function: str, reason: str
) -> None:
    before = state(repository)
    options = [f"--revision={revision}" for revision in revisions]
    found = compare(repository, *options, "--time", "2s", "--", function)
    assert (found.returncode, found.stdout) == (2, "")
    assert reason in found.stderr
    assert found.stderr.count("\n") == 1
    assert state(repository) == before


def test_outside_of_a_repository_it_is_one_line(tmp_path: Path) -> None:
    found = compare(tmp_path, "--revision=a", "--revision=b", "--", "bench.py:step")
    assert (found.returncode, found.stdout) == (2, "")
    assert "is in no git repository: fatal: not a git repository" in found.stderr


def test_set_up_runs_in_each_tree(repository: Path) -> None:
    """What it makes is there when functions are loaded; a failure is one line."""
    commit(repository, "made", bench_py="import made\ndef step(): return made.x\n")
    git(repository, "branch", "copy", "HEAD~0")
    arguments = ("--revision=HEAD", "--revision=copy", "--time=1s")
    made = compare(repository, *arguments, "--setup", "echo x = 1 > made.py", "--", "bench.py:step")
    assert (made.returncode != 2, made.stderr) == (True, "")
    failed = compare(
        repository, *arguments, "--setup", "echo why >&2; exit 3", "--", "bench.py:step"
    )
    assert (failed.returncode, failed.stderr) == (
        2,
        "breakeven: --setup fails with exit code 3: why\n",
    )
    assert git(repository, "worktree", "list").count("\n") == 1


def test_a_submodule_is_said(repository: Path) -> None:
    git(repository, "update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},libs/part")
    git(repository, "commit", "--quiet", "-m", "submodule")
    found = Repository(repository)
    with found.trees(["main", "HEAD"], None) as trees:
        *_, note = found.notes(trees)
        assert note == "The submodules of HEAD are empty in its work tree: libs/part"


def test_imports_of_the_working_copy_void_the_result(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder of the path of imports that lies in the repository is taken from the tree; a module
    that is loaded by its full path from the working copy, as the finder of an editable install
    does, is named.
    """
    bench = "import importlib.util as u, inside\nspec = u.spec_from_file_location('o', {path!r})\n"
    commit(
        repository,
        "paths",
        bench_py=bench.format(path=str(repository / "part" / "work.py"))
        + "o = u.module_from_spec(spec)\nspec.loader.exec_module(o)\n"
        "import sys\nsys.modules['o'] = o\ndef step(): return inside.x\n",
        lib__inside_py="x = 1\n",
    )
    (repository / "lib" / "inside.py").write_text("x = 2\n")
    monkeypatch.setenv("PYTHONPATH", str(repository / "lib"))
    found = compare(
        repository, "--revision=HEAD", "--revision=HEAD~0", "--time=1s", "--", "bench.py:step"
    )
    assert found.returncode == 3
    shown = " ".join(found.stdout.split())
    assert f"imports o from {repository}/part/work.py, not from its revision" in shown
    assert "inside.py, not from" not in shown


@pytest.mark.parametrize(("path", "code"), [("installed", 3), ("repository/src", 1)])
def test_an_installed_package_of_a_src_layout_voids_the_result(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, code: int
) -> None:
    """One and the same module in both revisions, though one is slower; with `src` on the path each
    revision imports its own.
    """
    bench = "def step():\n    from package.work import total\n    return total(2000) and None\n"
    (repository / "src").mkdir()
    (repository / "src" / "package").mkdir()
    (repository / "src" / "package" / "__init__.py").write_text("")
    commit(repository, "src", bench_py=bench, src__package__work_py=WORK.format(n="n"))
    (tmp_path / "installed").mkdir()
    shutil.copytree(repository / "src" / "package", tmp_path / "installed" / "package")
    commit(repository, "slower", src__package__work_py=WORK.format(n="30 * n"))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / path))
    options = ("--revision=HEAD~1", "--revision=HEAD", "--time=2s", "--timeout=1m")
    found = compare(repository, *options, "--", "bench.py:step")
    assert found.returncode == code, found.stdout + found.stderr
    expected = "imports package from" in " ".join(found.stdout.split())
    assert expected == (code == 3)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_trees_of_an_interrupted_comparison_are_removed(
    repository: Path, tmp_path: Path, number: int
) -> None:
    """At once by Ctrl-C; after SIGKILL by the next comparison, and its processes at once. Trees of a
    comparison that runs stay.
    """
    before = state(repository)
    started = start(repository)
    (folder,) = (tmp_path / "tmp").glob(f"{TREES_PREFIX}*")
    remove_abandoned()
    assert (folder / "0" / "bench.py").exists()
    children = measuring(started.pid)
    started.send_signal(number)
    started.wait(20)
    wait_until(lambda: not any(child.is_running() for child in children))
    if number == signal.SIGKILL:
        assert (folder / LOCK).exists()
        with Repository(repository).trees(["main"], None):
            assert not folder.exists()
    assert list((tmp_path / "tmp").iterdir()) == []
    assert state(repository) == before


def test_a_tree_that_was_removed_by_hand_is_forgotten(repository: Path, tmp_path: Path) -> None:
    """And those of the user's own that are away stay as they are."""
    git(repository, "worktree", "add", "--quiet", "--detach", str(tmp_path / "mine"), "main")
    (tmp_path / "mine").rename(tmp_path / "away")
    before = state(repository)
    gone = tmp_path / "tmp" / f"{TREES_PREFIX}gone" / "0"
    git(repository, "worktree", "add", "--quiet", "--detach", str(gone), "main")
    gone.parent.rename(tmp_path / "elsewhere")
    with Repository(repository).trees(["main"], None):
        assert "gone" not in git(repository, "worktree", "list")
    assert state(repository) == before


def start(repository: Path) -> subprocess.Popen[bytes]:
    """A comparison for an hour that has begun to time."""
    started = subprocess.Popen(
        [
            *(sys.executable, "-m", "orchestrator", "compare", "--time", "1h"),
            *("--revision", "HEAD", "--revision", "slow", "--", "bench.py:step"),
        ],
        cwd=repository,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    try:
        wait_until(lambda: len(measuring(started.pid)) == 8)
    except AssertionError:
        started.kill()
        started.wait()
        raise
    return started


def measuring(parent: int) -> list[psutil.Process]:
    """The processes of two slots of two arms, and one each that ends them."""
    found = []
    for process in psutil.Process(parent).children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):  # a visit ended
            if process.name().startswith("python"):
                found.append(process)
    return found


def wait_until(holds: Callable[[], bool], seconds: float = 20.0) -> None:
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.02)
