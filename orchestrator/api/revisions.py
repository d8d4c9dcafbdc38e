"""Revisions of a git repository as arms: each in a work tree of its own in a temporary folder, so
that nothing of the user's repository changes.
"""

import contextlib
import fcntl
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from orchestrator.api.function_arms import FunctionArm, FunctionOf, default_python
from orchestrator.api.result import Result
from sweeps.errors import UserError, did_you_mean

TREES_PREFIX = "breakeven-trees-"
LOCK = "lock"
"""File that a running comparison holds locked, so that the next one finds what a killed one
left."""
STARTING_S = 60.0
"""A folder this young may not have its lock yet."""


class Revision(NamedTuple):
    """A commit and the work tree that holds it."""

    name: str
    """As the user wrote it."""
    commit: str
    tree: Path

    @property
    def label(self) -> str:
        return f"{self.name} ({self.commit[:7]})"


class Repository:
    """The git repository of a folder. Raises `UserError` where there is none."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = folder
        if shutil.which("git") is None:
            raise UserError("--revision needs git, which is not found in $PATH")
        try:
            self.root = Path(self.git("rev-parse", "--show-toplevel").strip())
        except subprocess.CalledProcessError as error:
            reason = error.stderr.strip().partition("\n")[0]
            raise UserError(f"{folder} is in no git repository: {reason}") from None

    def git(self, *arguments: str) -> str:
        """What a git command prints; it runs no hooks and refreshes no index."""
        return subprocess.run(
            ["git", "--no-optional-locks", "-c", f"core.hooksPath={os.devnull}", *arguments],
            cwd=self.folder,
            env=outside_git(),
            check=True,
            capture_output=True,
            text=True,
        ).stdout

    def commit(self, revision: str) -> str:
        """The full name of a commit. Raises `UserError`."""
        try:
            return self.git(
                "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}"
            ).strip()
        except subprocess.CalledProcessError:
            known = self.git("for-each-ref", "--format=%(refname:short)").split()
            raise UserError(
                f"there is no revision {revision!r}{did_you_mean(revision, known)}"
            ) from None

    def _in_tree(self, revision: Revision, file: Path) -> Path:
        """A file of the user's work tree in that of a revision. Raises `UserError`."""
        file = file.resolve()
        if not file.is_relative_to(self.root):
            raise UserError(f"{file} is not in the repository {self.root}")
        return revision.tree / file.relative_to(self.root)

    def submodules(self, commit: str) -> list[str]:
        """Paths of the submodules of a commit."""
        lines = self.git("ls-tree", "-r", commit).splitlines()
        return [line.partition("\t")[2] for line in lines if line.startswith("160000")]

    def has_changes(self) -> bool:
        """Whether tracked files differ from HEAD."""
        return bool(self.git("status", "--porcelain", "--untracked-files=no"))

    def arm(
        self, label: str, revision: Revision, function: FunctionOf, inputs: FunctionOf | None
    ) -> FunctionArm:
        """A function as it is in a revision, in whose work tree it runs, with the environment that
        is there, if any. Raises `UserError` for a file outside of the repository.
        """
        moved = [
            None if each is None else each._replace(file=self._in_tree(revision, each.file))
            for each in (function, inputs)
        ]
        assert moved[0] is not None
        python = revision.tree / ".venv" / "bin" / "python"
        folder = revision.tree / self.folder.resolve().relative_to(self.root)
        return FunctionArm(
            label,
            moved[0],
            moved[1],
            str(python) if python.exists() else default_python(),
            self.root,
            revision.tree,
            folder if folder.is_dir() else revision.tree,
        )

    def notes(self, revisions: Sequence[Revision]) -> Iterator[str]:
        """What of the work tree and of submodules is not measured."""
        head = self.commit("HEAD")
        if any(each.commit == head for each in revisions) and self.has_changes():
            yield "Uncommitted changes are not measured: HEAD is the last commit"
        for revision in revisions:
            if paths := self.submodules(revision.commit):
                yield (
                    f"The submodules of {revision.name} are empty in its work tree:"
                    f" {', '.join(paths)}"
                )

    @contextlib.contextmanager
    def trees(self, revisions: Sequence[str], setup: str | None) -> Iterator[list[Revision]]:
        """A work tree of each revision, in which `setup` has run; they are removed at the end.

        Raises `UserError` where `setup` fails.
        """
        remove_abandoned()
        self._forget_removed()
        folder = Path(tempfile.mkdtemp(prefix=TREES_PREFIX))
        made: list[Revision] = []
        with (folder / LOCK).open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            try:
                for number, name in enumerate(revisions):
                    tree = folder / f"{number}"
                    commit = self.commit(name)
                    made.append(Revision(name, commit, tree))
                    self.git("worktree", "add", "--quiet", "--detach", str(tree), commit)
                    if setup is not None:
                        _set_up(tree, setup)
                yield made
            finally:
                _remove(folder)
                self._forget_removed()

    def _forget_removed(self) -> None:
        """Remove the repository's entries of trees of ours that are gone."""
        ours = f"worktree {Path(tempfile.gettempdir()) / TREES_PREFIX}"
        for line in self.git("worktree", "list", "--porcelain").splitlines():
            tree = line.removeprefix("worktree ")
            if line.startswith(ours) and not Path(tree).exists():
                self.git("worktree", "remove", "--force", "--force", tree)


def without_controls(result: Result, count: int) -> Result:
    """A result without the names after the first `count`, which are a control at each revision."""
    names = result.names[:count]
    arms = {name: arm for name, arm in result.arms.items() if name in names}
    failures = {name: reason for name, reason in result.failures.items() if name in names}
    return replace(result, names=names, arms=arms, failures=failures)


def outside_git() -> dict[str, str]:
    """The environment without what git sets in its hooks."""
    return {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}


def _set_up(tree: Path, command: str) -> None:
    environment = outside_git()
    environment.pop("VIRTUAL_ENV", None)
    done = subprocess.run(
        ["/bin/sh", "-c", command],
        cwd=tree,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        last = (done.stderr or done.stdout).strip().splitlines()[-1:]
        raise UserError(f"--setup {': '.join([f'fails with exit code {done.returncode}', *last])}")


def remove_abandoned() -> None:
    """Remove the work trees of comparisons that were killed, of any repository."""
    for folder in Path(tempfile.gettempdir()).glob(f"{TREES_PREFIX}*"):
        # of another user, or removed meanwhile
        with contextlib.suppress(OSError):
            if folder.stat().st_uid != os.geteuid():
                continue
            file = folder / LOCK
            if not file.exists() and time.time() - folder.stat().st_mtime < STARTING_S:
                continue
            with file.open("a") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _remove(folder)


def _remove(folder: Path) -> None:
    """Remove work trees with what their repositories know of them."""
    for tree in folder.glob("[0-9]*"):
        run = ["git", "-C", str(tree), "worktree", "remove", "--force", "--force", str(tree)]
        subprocess.run(run, env=outside_git(), capture_output=True, check=False)
    shutil.rmtree(folder, ignore_errors=True)
