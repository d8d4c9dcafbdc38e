"""Results are checked after the timed rounds too, in every mode of a comparison: an arm that returns
something else from a later call on has no speed-up.
"""

import subprocess
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import breakeven
from tests.orchestrator.commands import breakeven as command

LATER = 20
"""The call from which on an arm is wrong: the first checks are before it, timed calls after it."""
PATIENT = ("--timeout", "2m")
"""On a busy machine a process may take longer to start than the comparison."""
FILE = f"""\
import itertools
CALLS = itertools.count(1)
def right(): return sum(range(1000))
def wrong(): return sum(range(1000)) if next(CALLS) < {LATER} else 0
"""


def right(values: list[int]) -> int:
    return sum(values)


def wrong_later() -> Callable[[list[int]], int]:
    calls = count(1)
    return lambda values: sum(values) if next(calls) < LATER else 0


def changes_later() -> Callable[[list[int]], int]:
    calls = count(1)

    def function(values: list[int]) -> int:
        total = sum(values)
        if next(calls) >= LATER:
            values[0] += 1
        return total

    return function


def raises_later() -> Callable[[list[int]], int]:
    calls = count(1)

    def function(values: list[int]) -> int:
        if next(calls) >= LATER:
            raise RuntimeError("later")
        return sum(values)

    return function


def inputs(n: int = 100) -> Any:
    return (list(range(n)),)


def test_a_function_that_is_wrong_later_is_an_error() -> None:
    """By its results, and by its inputs, which are compared with those that were made."""
    with pytest.raises(breakeven.DifferentResultsError) as error:
        breakeven.compare({"old": right, "new": wrong_later()}, inputs, time=0.5)
    assert str(error.value).startswith(
        "new: differs from old after the timed rounds: the result is"
    )
    with pytest.raises(breakeven.DifferentResultsError, match="new: changes its inputs"):
        breakeven.compare({"old": right, "new": changes_later()}, inputs, time=0.5)
    with pytest.raises(breakeven.DifferentResultsError, match="after the timed rounds"):
        breakeven.curve({"old": right, "new": wrong_later()}, inputs, {"n": [100, 200]}, time=0.5)


def test_the_other_functions_are_measured_without_it() -> None:
    """It is left out with its reason; without a check of results it is not found."""
    arms = {"old": right, "bad": wrong_later(), "ends": raises_later(), "new": right}
    result = breakeven.compare(arms, inputs, time=0.5)
    assert set(result.failures) == {"bad", "ends"}
    assert result.failures["bad"].startswith("differs from old after the timed rounds")
    assert result.failures["ends"] == "raised RuntimeError: later"
    assert result.only.name == "new"
    unchecked = breakeven.compare(
        {"old": right, "new": wrong_later()}, inputs, time=0.5, check=None
    )
    assert unchecked.failures == {}


def test_a_function_of_a_file_that_is_wrong_later_is_an_error(tmp_path: Path) -> None:
    """In processes that are fresh in each visit; of two others one is measured."""
    (tmp_path / "arms.py").write_text(FILE)
    (tmp_path / "more.py").write_text(FILE)
    done = command(
        "compare", "arms.py:right", "arms.py:wrong", "--time", "0.5s", *PATIENT, folder=tmp_path
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(
        "breakeven: arms.py:wrong: its result after the timed rounds is not that of arms.py:right"
    )
    three = ("arms.py:right", "arms.py:wrong", "more.py:right")
    done = command("compare", *three, "--time", "0.5s", *PATIENT, folder=tmp_path)
    assert done.returncode in (0, 3)
    assert "arms.py:wrong failed: its result after the timed rounds is not" in done.stdout


def test_a_revision_that_is_wrong_later_is_an_error(tmp_path: Path) -> None:
    """In its work tree, with a process of its own."""
    git = ("git", "-c", "user.name=n", "-c", "user.email=n@example.org", "-C", str(tmp_path))
    subprocess.run([*git, "init", "--quiet"], check=True)
    for name in ("right", "wrong"):
        (tmp_path / "arms.py").write_text(FILE.replace(f"def {name}", "def step"))
        subprocess.run([*git, "add", "-A"], check=True)
        subprocess.run([*git, "commit", "--quiet", "-m", name], check=True)
    revisions = (
        "--revision",
        "HEAD~1",
        "--revision",
        "HEAD",
        "--time",
        "0.5s",
        *PATIENT,
        "--",
        "arms.py:step",
    )
    done = command("compare", *revisions, folder=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "its result after the timed rounds is not that of HEAD~1" in done.stderr


def test_a_command_that_is_wrong_later_is_an_error(tmp_path: Path) -> None:
    """One that counts its runs in a file."""
    (tmp_path / "later.sh").write_text(
        'echo x >> runs\nif [ "$(wc -l < runs)" -lt 5 ]; then echo right; else echo wrong; fi\n'
    )
    arms = ("sh -c 'echo right'", "sh later.sh")
    done = command("compare", "--command", *arms, "--time", "1s", *PATIENT, folder=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "sh later.sh: its output after the timed rounds is not that of" in done.stderr
    assert "line 1 is 'wrong' and not 'right'" in done.stderr
