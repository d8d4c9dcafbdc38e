"""The command `history`, on stores with simulated measurements of many days and revisions."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.fixtures.nightly import chain
from tests.orchestrator.commands import in_process


def history(path: Path, *options: str) -> Any:
    return in_process("history", "nightly", "--db", str(path), *options, folder=path.parent)


def test_a_planted_fall_is_named(tmp_path: Path) -> None:
    """With its size, its day and what changed there; the other arm has none. `--since` a later day
    forgives it.
    """
    chain(tmp_path / "x.db", 0, falls=6)
    shown = history(tmp_path / "x.db")
    assert shown.returncode == 1, shown.stderr
    assert "2 comparisons, 1 slower" in shown.stdout
    (line,) = (line for line in shown.stdout.splitlines() if "% slower since" in line)
    assert "commit 0000005 -> 0000006" in line
    assert "torch 2.14.0 -> 2.15.0" in line
    (fallen,) = (
        trend
        for trend in json.loads(history(tmp_path / "x.db", "--format", "json").stdout)
        if trend["changes"]
    )
    (change,) = fallen["changes"]
    assert change["after"] / change["before"] == pytest.approx(1 / 1.05, rel=0.01)
    assert change["at"] == fallen["measurements"][6]["at"]
    assert history(tmp_path / "x.db", "--since", change["at"][:10]).returncode == 1
    assert history(tmp_path / "x.db", "--since", "2027-01-01").returncode == 0


def test_a_fall_of_one_day_is_possible(tmp_path: Path) -> None:
    """It is printed, and the exit code is 0 until a second day shows it."""
    chain(tmp_path / "x.db", 0, falls=9)
    shown = history(tmp_path / "x.db")
    assert shown.returncode == 0
    (line,) = (line for line in shown.stdout.splitlines() if "possible: " in line)
    assert "% slower since" in line
    assert line.endswith("a second day like it would be a change")


@pytest.mark.slow
def test_twenty_chains(tmp_path: Path) -> None:
    """Of twenty stores without a change one at most has one; of twenty with a fall at a random day
    all but one at most name it, at its day.
    """
    random = np.random.default_rng(1)
    alarms, named = 0, 0
    for number in range(20):
        steady, falling = (tmp_path / f"{kind}{number}.db" for kind in ("steady", "falling"))
        chain(steady, 100 + number)
        alarms += history(steady).returncode != 0
        day = int(random.integers(2, 9))
        chain(falling, 200 + number, falls=day)
        shown = history(falling)
        named += shown.returncode == 1 and f"-> {day:07x}" in shown.stdout
    assert alarms <= 1
    assert named >= 19


def test_too_few_measurements_and_wrong_usage(tmp_path: Path) -> None:
    """Three days decide nothing: exit code 3; an unknown sweep, metric or day is one clear line, as is
    a store that is none.
    """
    path = tmp_path / "x.db"
    chain(path, 0, days=3)
    shown = history(path)
    assert shown.returncode == 3
    assert "2 with fewer than 4 measurements" in shown.stdout
    for options, wrong in (
        (("--metric", "ttft"), "choose one of latency"),
        (("--since", "yesterday"), "write 2026-11-23"),
        (("--since", "2026-13-45"), "write 2026-11-23"),
        (("--since", "20261123"), "write 2026-11-23"),
    ):
        shown = history(path, *options)
        assert shown.returncode == 2
        assert wrong in shown.stderr
    (tmp_path / "text.db").write_text("no store" * 999)
    assert history(tmp_path / "text.db").returncode == 2
    assert history(tmp_path / "missing.db").returncode == 2
    shown = in_process("history", "other", "--db", str(path), folder=tmp_path)
    assert (shown.returncode, "no sweep called other" in shown.stderr) == (2, True)
